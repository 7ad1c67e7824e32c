"""Mutants of the planner: lives too short, memory shared that may not be, parts that overlap or are missing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...planning import (
    buffers,
    coalesce,
    collector,
    inplace,
    kernels,
    liveness,
    orders,
    packing,
    partition,
    plan,
    planner,
    schedule,
    scratch,
)
from ...planning.order_graph import OrderGraph
from ...planning.partition import Partition
from ...planning.plan import AllocationKind, BufferSlice
from .base import Mutant, Note, Room, rebind, set_constant

Apply = Callable[[], None]
_found: list[Mutant] = []
_targets: dict[str, tuple[Any, str]] = {}
"""Functions that mutants replace, by site."""


def change(name: str, *words: str, site: str = "") -> Callable[[Apply], Apply]:
    """Register a mutant; words: of tests that run first."""

    def add(apply: Apply) -> Apply:
        _found.append(Mutant(f"planning/{name}", site, apply, words))
        return apply

    return add


def mutants() -> Sequence[Mutant]:
    return _found


def instead(where: Any, name: str, make: Callable[[Any], Any]) -> Apply:
    """Replace a function or a method everywhere by what is made of it."""

    def apply() -> None:
        old = getattr(where, name)
        new = make(old)
        setattr(where, name, new)
        if not isinstance(where, type):
            rebind(old, new)

    return apply


def simple(name: str, where: Any, function: str, make: Callable[[Any], Any], *words: str) -> None:
    site = f"{where.__name__}.{function}"
    _targets[site] = where, function
    change(name, *words, site=site)(instead(where, function, make))


def always(answer: Any) -> Callable[[Any], Any]:
    return lambda old: lambda *_, **__: answer


# --- lives ------------------------------------------------------------------------------------------------------------
LIVE = ("liveness", "buffers", "planning")
Walker = liveness._Walker


def _touch_short(old: Any) -> Any:
    def touch(self: Any, variables: Any) -> None:
        before = [list(self.variables[v].segments) for v in variables if v >= 0]
        old(self, variables)
        for v, segments in zip([v for v in variables if v >= 0], before):
            start, stop = self.variables[v].segments[-1]
            if stop > segments[-1][1]:
                self.variables[v].segments[-1] = (start, stop - 1)

    return touch


def _constant_name(value: int) -> None:
    set_constant("POOL_ALIGNMENT", 64, value)


simple("liveness/a value dies one tick early", Walker, "touch", _touch_short, *LIVE)
simple("liveness/a read does not keep a value alive", Walker, "touch", lambda old: lambda self, variables: None, *LIVE)
simple("liveness/a slot gets no new life", Walker, "define", lambda old: lambda self, variable: None, *LIVE)
simple("liveness/copies are forgotten", Walker, "copy", lambda old: lambda self, *_: None, *LIVE)
simple(
    "liveness/every leaf is passed through a loop",
    liveness,
    "passed_through",
    lambda old: lambda module: {c: (True,) * len(kept) for c, kept in old(module).items()},
    *LIVE,
)
simple(
    "liveness/no leaf is passed through a loop",
    liveness,
    "passed_through",
    lambda old: lambda module: {c: (False,) * len(kept) for c, kept in old(module).items()},
    *LIVE,
)
simple("liveness/aliases of the header are dropped", liveness, "aliased_parameters", always({}), "donation", "alias")
simple(
    "liveness/an alias of another parameter",
    liveness,
    "aliased_parameters",
    lambda old: lambda module: {n: p + 1 for n, p in old(module).items()},
    "donation",
)
simple(
    "liveness/the next element of a tuple",
    liveness,
    "element_range",
    lambda old: lambda shape, index: old(shape, max(index - 1, 0)),
    *LIVE,
)
simple("liveness/every copy is plain", liveness, "is_plain_copy", lambda old: lambda i: i.opcode is Op.COPY, *LIVE)
simple("liveness/no copy is plain", liveness, "is_plain_copy", always(False), *LIVE)
simple(
    "liveness/reshapes move bytes",
    liveness,
    "moves_no_bytes",
    lambda old: lambda i: i.opcode is not Op.RESHAPE and old(i),
    *LIVE,
)
simple(
    "liveness/every transpose is an alias",
    liveness,
    "moves_no_bytes",
    lambda old: lambda i: i.opcode is Op.TRANSPOSE or old(i),
    *LIVE,
)


# --- coalescing -------------------------------------------------------------------------------------------------------
Classes = coalesce.Classes
simple("coalesce/conflicts are ignored", Classes, "_conflict", always(False), "buffers", "collect")
simple("coalesce/an operand may live on", Classes, "_hands_over", always(True), "buffers", "planning")
simple("coalesce/nothing is merged", Classes, "merge", always(False), "buffers", "planning")
simple(
    "coalesce/overlaps of one tick are none",
    coalesce,
    "overlaps",
    lambda old: lambda a, b: [(s, e) for s, e in old(a, b) if e - s > 1],
    "buffers",
)
simple(
    "coalesce/the union loses the second part",
    coalesce,
    "union",
    lambda old: lambda a, b: old(a, []) if a else old(a, b),
    "buffers",
)


@change("coalesce/read-only values may be overwritten", "buffers", "donation")
def _writable() -> None:
    liveness.Variable.read_only = property(lambda self: False)  # type: ignore[assignment, misc]


# --- in place ---------------------------------------------------------------------------------------------------------
IN_PLACE = ("planning", "buffers", "buffer_proof")


@change("inplace/a reduce is by element", *IN_PLACE)
def _reduce_by_element() -> None:
    rebind(inplace.BY_ELEMENT, inplace.BY_ELEMENT | {Op.REDUCE, Op.DOT, Op.SORT, Op.REDUCE_WINDOW, Op.CONVOLUTION})


@change("inplace/nothing but elementwise is by element", *IN_PLACE)
def _little_by_element() -> None:
    rebind(inplace.BY_ELEMENT, inplace.ELEMENTWISE)


simple("inplace/all reads are in place", inplace, "_reads_in_place", always(True), *IN_PLACE)
simple("inplace/no read is in place", inplace, "_reads_in_place", always(False), *IN_PLACE)
simple("inplace/an updated operand may be read", inplace, "_only_updated", always(True), *IN_PLACE)
simple("inplace/widths do not matter", inplace, "_same_widths", lambda old: lambda a, b: a.is_array, *IN_PLACE)
simple("inplace/layouts do not matter", inplace, "_same_shapes", lambda old: lambda a, b: a.size == b.size, *IN_PLACE)
simple(
    "inplace/all results are one group",
    inplace,
    "_groups",
    lambda old: lambda body: [list(body.root.operands)],
    *IN_PLACE,
)
simple("inplace/updates are copied", inplace, "updated_operands", always(()), *IN_PLACE)
simple("inplace/nothing is reused", inplace, "reuses", always(()), *IN_PLACE)
simple(
    "inplace/sorts reuse what else is read",
    inplace,
    "sort_operands",
    lambda old: (
        lambda i: (
            old(i)
            if i.opcode is not Op.FUSION or i.called()[0].root.opcode is not Op.SORT
            else [
                (o.parameter_number, k) for k, o in enumerate(i.called()[0].root.operands) if o.opcode is Op.PARAMETER
            ]
        )
    ),
    "sort",
    "scratch",
)
simple(
    "inplace/rows reuse any parameter",
    inplace,
    "_row_pairs",
    lambda old: (
        lambda body: (
            [
                (p, e)
                for e in (body.root.operands if body.root.opcode is Op.TUPLE else [body.root])
                for p in body.parameters
            ]
            if old(body)
            else []
        )
    ),
    *IN_PLACE,
)
simple(
    "inplace/loops reuse any parameter",
    inplace,
    "_loop_pairs",
    lambda old: lambda body: [(p, e) for _, e in old(body)[:1] for p in body.parameters],
    *IN_PLACE,
)
simple("inplace/rows reuse nothing", inplace, "_row_pairs", always([]), *IN_PLACE)
simple("inplace/loops reuse nothing", inplace, "_loop_pairs", always([]), *IN_PLACE)
simple("inplace/libraries take nothing over", inplace, "_taken_over", always(()), *IN_PLACE)


# --- scratch ----------------------------------------------------------------------------------------------------------
simple("scratch/one byte too few", scratch, "scratch_bytes", lambda old: lambda i: max(old(i) - 1, 0), "scratch")
simple("scratch/none", scratch, "scratch_bytes", always(0), "scratch")
simple("scratch/half for sorts", scratch, "sort_bound", lambda old: lambda i, cut=False: old(i, cut) // 2, "scratch")
simple("scratch/cut sorts as whole ones", scratch, "sort_bound", lambda old: lambda i, cut=False: old(i), "scratch")


@change("scratch/sorts need none", "scratch")
def _no_sort() -> None:
    del scratch.SCRATCH[Op.SORT]


@change("scratch/twice as much on the stack", "scratch")
def _on_stack() -> None:
    set_constant("ON_STACK", scratch.ON_STACK, 2 * scratch.ON_STACK)


# --- partition --------------------------------------------------------------------------------------------------------
def _ranges(edit: Callable[[list[tuple[int, int]]], list[tuple[int, int]]]) -> Callable[[Any], Any]:
    return lambda old: lambda self, workers: tuple(edit(list(old(self, workers))))


simple(
    "partition/the first step is left out",
    Partition,
    "ranges",
    _ranges(lambda r: [(r[0][0] + 1, r[0][1]), *r[1:]]),
    "partition",
)
simple(
    "partition/the last step is left out",
    Partition,
    "ranges",
    _ranges(lambda r: [*r[:-1], (r[-1][0], r[-1][1] - 1)]),
    "partition",
)
simple(
    "partition/two ranges share a step",
    Partition,
    "ranges",
    _ranges(lambda r: [(max(a - 1, 0), b) for a, b in r]),
    "partition",
)
simple(
    "partition/a step between ranges is left out",
    Partition,
    "ranges",
    _ranges(lambda r: [(a + (n > 0), b) for n, (a, b) in enumerate(r)]),
    "partition",
)
simple(
    "partition/one range more than workers",
    Partition,
    "ranges",
    lambda old: lambda self, workers: old(self, workers + 1),
    "partition",
)


def _least(old: Any) -> Any:
    def of(kernel: Instruction) -> Any:
        found = old(kernel)
        return found and replace(found, least=max(found.least // 2, 1))

    return of


def _extent(old: Any) -> Any:
    def of(kernel: Instruction) -> Any:
        found = old(kernel)
        return found and replace(found, extent=found.extent + 1)

    return of


simple("partition/half the least steps", partition, "partition_of", _least, "partition")
simple("partition/one step too many", partition, "partition_of", _extent, "partition")
simple("partition/nothing is split", partition, "partition_of", always(None), "partition")
SPLIT = [op for op in partition.RULES if op not in inplace.BY_ELEMENT] + [Op.ADD, Op.TRANSPOSE, Op.PAD]
for _op in SPLIT:

    @change(f"partition/{_op.value} is split nowhere", "partition")
    def _nowhere(op: Op = _op) -> None:
        partition.RULES[op] = lambda i, rank: [False] * rank  # type: ignore[index]

    if partition.RULES[_op] is not partition._all:

        @change(f"partition/{_op.value} is split anywhere", "partition")
        def _anywhere(op: Op = _op) -> None:
            partition.RULES[op] = partition._all  # type: ignore[index]


for _op in (Op.SCATTER, Op.DYNAMIC_UPDATE_SLICE, Op.RNG_BIT_GENERATOR):

    @change(f"partition/{_op.value} is split", "partition")
    def _split(op: Op = _op) -> None:
        partition.RULES[op] = partition._all  # type: ignore[index]


for _constant in ("CHUNK", "PIECES", "BYTES", "TRANSCENDENTAL"):

    @change(f"partition/{_constant} doubled", "partition")
    def _doubled(name: str = _constant) -> None:
        setattr(partition, name, 2 * getattr(partition, name))


# --- packing ----------------------------------------------------------------------------------------------------------
simple(
    "packing/slots half as aligned",
    plan,
    "slot_alignment",
    lambda old: lambda size: max(old(size) // 2, 1),
    "packing",
    "buffers",
)
simple(
    "packing/slots twice as aligned",
    plan,
    "slot_alignment",
    lambda old: lambda size: 2 * old(size),
    "packing",
    "buffers",
)
simple(
    "packing/a slot is one byte short",
    packing,
    "whole_slots",
    lambda old: lambda size: max(old(size) - 1, 0),
    "packing",
)
simple(
    "packing/a gap is one byte short",
    packing,
    "_tightest_gap",
    lambda old: lambda taken, size, alignment: old(taken, size - 1, alignment),
    "packing",
)
simple(
    "packing/a place overlaps by one byte",
    packing,
    "_tightest_gap",
    lambda old: lambda taken, size, alignment: max(old(taken, size, alignment) - 1, 0),
    "packing",
)
simple(
    "packing/any gap does",
    packing,
    "_tightest_gap",
    lambda old: lambda taken, size, alignment: old(taken[-1:], size, alignment),
    "packing",
)
simple("packing/lives never meet", packing, "_meet", always(False), "packing", "buffers")
simple("packing/lives always meet", packing, "_meet", always(True), "packing", "buffers")
simple(
    "packing/the bound is too low",
    packing,
    "peak",
    lambda old: lambda sizes, segments: old(sizes, segments) // 2,
    "packing",
)
simple("packing/the top is one byte short", packing, "_top", lambda old: lambda o, s: max(old(o, s) - 1, 0), "packing")
simple(
    "packing/no improvement",
    packing,
    "_improved",
    lambda old: lambda sizes, segments, ranks, best, bound: best,
    "packing",
)
simple("packing/results are not filled", packing, "fill_bins", always({}), "packing", "buffers")
simple("packing/what is freed stays taken", packing, "_release", always(None), "packing")
simple("packing/bins forget what they hold", packing.Bin, "hold", always(None), "packing", "buffers")


@change("packing/one order only", "packing")
def _one_order() -> None:
    rebind(packing.ORDERS, packing.ORDERS[:1])


@change("plan/the pool half as aligned", "planning", "buffers")
def _pool() -> None:
    _constant_name(32)


@change("plan/callers' arrays twice as aligned", "planning", "buffers")
def _user() -> None:
    set_constant("USER_ALIGNMENT", 16, 32)


def _overlaps(old: Any) -> Any:
    return lambda self, other: old(self, other) and self.offset + self.size - other.offset > 1


simple("plan/slices that share one byte do not overlap", BufferSlice, "overlaps", _overlaps, "assignment", "packing")
simple(
    "plan/addresses are as aligned as the block",
    BufferSlice,
    "alignment",
    lambda old: lambda self, block: block,
    "planning",
)


# --- buffers ----------------------------------------------------------------------------------------------------------
simple(
    "buffers/copies in the wrong order",
    buffers,
    "_sequence",
    lambda old: lambda copies, classes, timeline: old(copies, classes, timeline)[::-1],
    "buffers",
)
simple(
    "buffers/cycles of copies are not broken", buffers, "_spare", lambda old: lambda timeline, like, at: like, "buffers"
)
simple(
    "buffers/copies are left out",
    buffers,
    "_sequence",
    lambda old: lambda copies, classes, timeline: old(copies, classes, timeline)[1:],
    "buffers",
)


@change("buffers/constants are temporaries", "buffers")
def _no_constants() -> None:
    for module in (buffers, liveness):
        module.AllocationKind = _Kinds  # type: ignore[attr-defined]


class _Kinds:
    PARAMETER, RESULT, TEMPORARY = AllocationKind.PARAMETER, AllocationKind.RESULT, AllocationKind.TEMPORARY
    CONSTANT = AllocationKind.TEMPORARY


# --- schedule ---------------------------------------------------------------------------------------------------------
def _edges(drop: Callable[[Any, int], set[int]]) -> Callable[[Any], Any]:
    def make(old: Any) -> Any:
        def edges(self: Any, effectful: Any) -> None:
            old(self, effectful)
            for n in range(len(self.before)):
                self.before[n] = drop(self, n)
            self.after = [[m for m, needs in enumerate(self.before) if n in needs] for n in range(len(self.before))]

        return edges

    return make


def _operands(graph: Any, n: int) -> set[int]:
    return {graph.number[o] for o in graph.instructions[n].operands}


def _as_written(old: Any) -> Any:
    def order(graph: Any) -> Any:
        return list(graph.instructions), graph.peak(list(range(len(graph.instructions))))

    return order


def _scheduled_again(old: Any) -> Any:
    def again(module: Any) -> Any:
        attributes = {k: v for k, v in module.attributes.items() if k != "is_scheduled"}
        return old(Module(module.name, module.computations, module.entry, attributes))

    return again


def _no_extras(old: Any) -> Any:
    def extras(self: Any) -> None:
        old(self)
        self.scratch = [0] * len(self.scratch)

    return extras


SCHEDULE = ("schedule", "effects")
simple("schedule/effects in any order", OrderGraph, "_edges", _edges(_operands), *SCHEDULE)
simple(
    "schedule/the last operand may come later",
    OrderGraph,
    "_edges",
    _edges(lambda g, n: g.before[n] - {max(_operands(g, n), default=-1)}),
    *SCHEDULE,
)
simple("schedule/nothing is reordered", schedule, "best_order", _as_written, *SCHEDULE)
simple("schedule/nothing is ever broken", OrderGraph, "broken", always(0), *SCHEDULE)
simple("schedule/half the peak", OrderGraph, "peak", lambda old: lambda self, order: old(self, order) // 2, *SCHEDULE)
simple("schedule/nothing is taken over", OrderGraph, "taken_over", always(0), *SCHEDULE)
simple("schedule/carried leaves in any order", OrderGraph, "_carried", always(None), *SCHEDULE)
simple("schedule/what runs needs no memory", OrderGraph, "_extras", _no_extras, *SCHEDULE)
simple("schedule/a schedule that was given is changed", schedule, "schedule", _scheduled_again, *SCHEDULE)
simple("schedule/post order backwards", orders, "post_order", lambda old: lambda g: old(g)[::-1], *SCHEDULE)
simple("schedule/list order backwards", orders, "list_order", lambda old: lambda g: old(g)[::-1], *SCHEDULE)


# --- kernels and steps ------------------------------------------------------------------------------------------------
simple("kernels/all kernels as aligned as the pool", kernels.KernelTable, "_alignment", always(64), "planning")
simple("kernels/no alignment is promised", kernels.KernelTable, "_alignment", always(1), "planning")
simple("kernels/kernels of one name", kernels.KernelTable, "_name", always("kernel"), "planning")
simple(
    "kernels/kernels of one opcode are shared",
    kernels,
    "instruction_key",
    lambda old: lambda i, more: i.opcode,
    "planning",
)
simple("kernels/no kernel is shared", kernels, "instruction_key", lambda old: lambda i, more: i.name, "planning")
simple("planner/trip counts are not known", planner, "trip_count", always(None), "planning")
simple("planner/one trip more", planner, "trip_count", lambda old: lambda i: (old(i) or 0) + 1, "planning")
simple("planner/no copies", planner._Steps, "copies", always(()), "planning", "buffers")
simple("planner/unused results are computed", planner, "has_side_effect", always(True), "planning")
simple("planner/effects without a result are left out", planner, "has_side_effect", always(False), "planning")
simple("planner/dynamic shapes pass", planner, "refuse_dynamic", always(None), "planning")
simple("collector/is not at rest", collector, "collector_at_rest", lambda old: nullcontext, "collector")


def record(note: Note) -> None:
    """Note when the functions run that mutants replace; any test may notice the other mutants."""
    for site, (where, function) in _targets.items():
        instead(where, function, partial(noting, note, site))()


def noting(note: Note, site: str, old: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        note(site)
        return old(*arguments, **named)

    return call


ROOM = Room(("planning", "backends/test_red_zones.py"), mutants, record)
