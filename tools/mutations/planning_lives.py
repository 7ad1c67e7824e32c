"""Mutants of when values live, what is merged, and what is computed in place."""

from __future__ import annotations

from typing import Any

from ...hlo.analysis import leaves, overwrites, updates
from ...hlo.opcodes import Op
from ...passes.fusion import reading_order
from ...planning import coalesce, inplace, liveness
from .base import rebind
from .planning_registry import always, change, simple

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
    leaves,
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


simple("inplace/all reads are in place", updates, "reads_in_place", always(True), *IN_PLACE)
simple("inplace/no read is in place", updates, "reads_in_place", always(False), *IN_PLACE)
simple("inplace/an updated operand may be read", updates, "_only_updated", always(True), *IN_PLACE)
simple("inplace/widths do not matter", inplace, "_same_widths", lambda old: lambda a, b: a.is_array, *IN_PLACE)
simple("inplace/layouts do not matter", inplace, "_same_shapes", lambda old: lambda a, b: a.size == b.size, *IN_PLACE)
simple(
    "inplace/all results are one group",
    inplace,
    "_groups",
    lambda old: lambda body: [list(body.root.operands)],
    *IN_PLACE,
)
simple("inplace/updates are copied", liveness, "updated_operands", always(()), *IN_PLACE)
simple("overwrites/no reader comes first", reading_order, "reads_first", always({}), "table_loops")
simple("overwrites/every reader depends on the write", overwrites._Order, "_reaches", always(True), "table_loops")
simple(
    "overwrites/a kernel may read what it overwrites",
    reading_order.ReadingOrder,
    "allows",
    always(True),
    "table_loops",
)
simple("liveness/a branch ends no lives", Walker, "part", always(None), "table_loops")
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
