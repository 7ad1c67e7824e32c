"""Mutants of where buffers lie, of scratch memory, partition and schedule, and of steps."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

from ...hlo import collector
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...planning import (
    allocation,
    buffers,
    inplace,
    kernels,
    liveness,
    orders,
    packing,
    partition,
    planner,
    schedule,
    scratch,
    split_rules,
)
from ...planning.order_graph import OrderGraph
from ...planning.partition import Partition
from ...planning.plan import AllocationKind, BufferSlice
from .base import rebind, set_constant
from .planning_registry import always, change, simple


def _constant_name(value: int) -> None:
    set_constant("POOL_ALIGNMENT", 64, value)


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
SPLIT = [op for op in split_rules.RULES if op not in inplace.BY_ELEMENT] + [Op.ADD, Op.TRANSPOSE, Op.PAD]
for _op in SPLIT:

    @change(f"partition/{_op.value} is split nowhere", "partition")
    def _nowhere(op: Op = _op) -> None:
        split_rules.RULES[op] = lambda i, rank: [False] * rank  # type: ignore[index]

    if split_rules.RULES[_op] is not split_rules._all:

        @change(f"partition/{_op.value} is split anywhere", "partition")
        def _anywhere(op: Op = _op) -> None:
            split_rules.RULES[op] = split_rules._all  # type: ignore[index]


for _op in (Op.SCATTER, Op.DYNAMIC_UPDATE_SLICE, Op.RNG_BIT_GENERATOR):

    @change(f"partition/{_op.value} is split", "partition")
    def _split(op: Op = _op) -> None:
        split_rules.RULES[op] = split_rules._all  # type: ignore[index]


for _constant in ("CHUNK", "PIECES", "BYTES", "TRANSCENDENTAL"):

    @change(f"partition/{_constant} doubled", "partition")
    def _doubled(name: str = _constant) -> None:
        setattr(partition, name, 2 * getattr(partition, name))


# --- packing ----------------------------------------------------------------------------------------------------------
simple(
    "packing/slots half as aligned",
    allocation,
    "slot_alignment",
    lambda old: lambda size: max(old(size) // 2, 1),
    "packing",
    "buffers",
)
simple(
    "packing/slots twice as aligned",
    allocation,
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
