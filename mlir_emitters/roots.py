"""Roots of kernels with loops of their own, those that need more than one nest over the result: which results are
emitted by their root, and the forms of scatters, sorts, windows and updates.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..hlo.opcodes import Op
from .core.facts import Code, Facts
from .core.graph import Buffer, Node, origin
from .loops.elemental import Elemental
from .loops.form import Answer, Fits, fewer, fitting
from .loops.ranges import Steps
from .loops.view import Subject, View
from .movement import indexing, padding
from .movement.update import copy_unless_there
from .reductions import pool_lines, reduce_window
from .sorts import sort
from .sorts.sort_abreast import Abreast, Tile, tile_for

ROOTS = frozenset({Op.CONCATENATE, Op.DOT, Op.DYNAMIC_UPDATE_SLICE, Op.PAD, Op.REDUCE_WINDOW, Op.SCATTER, Op.SORT})
"""Opcodes of roots that may have loops of their own."""

_BY_ELEMENT = frozenset({Op.CONCATENATE, Op.DOT, Op.PAD})
"""Those of ROOTS whose elements are computed each by itself where the outer shape is that of devices."""


def why_no_loops(facts: Facts, node: Node | None, result: Buffer) -> str | None:
    """Why a root has no loops of its own; None if it may have."""
    if node is None or node.opcode not in ROOTS:
        return "its root needs one nest over the result"
    if facts.by_element and node.opcode in _BY_ELEMENT:
        return "elements are computed each by itself"
    return padding.why_not(facts, node, result) if node.opcode is Op.PAD else None


def why_not_apart(facts: Facts, node: Node | None, result: Buffer, results: Sequence[Buffer]) -> str | None:
    """Why a result is not emitted by its root; None if it may be. A concatenate or pad next to a result of its shape
    and layout is not: the Plan lets it take over what the other reads (planning/inplace.py), as both are computed
    before either is stored.
    """
    reason = why_no_loops(facts, node, result)
    if reason is not None or node is None:
        return reason
    if not result.dims and node.opcode is not Op.SCATTER:
        return "the result is a scalar"
    beside = node.opcode in (Op.CONCATENATE, Op.PAD) and any(
        r is not result and r.writer is not None and (r.dims, r.strides) == (result.dims, result.strides)
        for r in results
    )
    return "it is beside a result of its shape, and may take over what that reads" if beside else None


# Scatters -------------------------------------------------------------------------------------------------------------


def scatter_fits(view: View, subject: Subject) -> Answer:
    """In steps if each window lies at one position along the dimensions that they number."""
    a = subject.node.attributes
    alone = {*a["inserted_window_dims"], *a.get("input_batching_dims", ())}
    prepared = () if view.facts.by_element else indexing.prepared_of(subject.node)
    return Fits(prepared, alone.issuperset(view.numbered))


def emit_scatter(e: Elemental, subject: Subject, prepared: Sequence[Buffer], steps: Steps | None) -> None:
    results = subject.outputs
    for source, result in zip(subject.node.inputs, results, strict=False):
        copy_unless_there(e, source, result, steps)
    indexing.ScatterLoops(e, subject.node, results, prepared, steps).emit()


# Sorts ----------------------------------------------------------------------------------------------------------------


def _along(view: View, node: Node) -> bool:
    return node.attributes["dimensions"][0] not in view.numbered


def sorted_abreast_fits(view: View, subject: Subject) -> Answer:
    tile = tile_for(view.facts, view.scratch, subject.node, subject.outputs, view.numbered)
    return fitting(tile, _along(view, subject.node))


def first_sorted_fits(view: View, subject: Subject) -> Answer:
    plan = sort.first_plan(view.facts, subject.node, subject.outputs)
    return plan if isinstance(plan, str) else Fits(plan, _along(view, subject.node), Code(lean=True))


def inserted_fits(view: View, subject: Subject) -> Answer:
    plan, (d,) = sort.RowPlan.of(subject.node, subject.outputs), subject.node.attributes["dimensions"]
    if any(plan.lanes):
        return f"rows of {subject.node.inputs[0].dims[d]:,} elements, or parts of rows: runs have {plan.run}"
    return Fits(plan, _along(view, subject.node))


def sorted_by_digits_fits(view: View, subject: Subject) -> Answer:
    plan = sort.radix_plan(view.facts, view.scratch, subject.node, subject.outputs)
    return fitting(plan, _along(view, subject.node))


def merged_fits(view: View, subject: Subject) -> Answer:
    return Fits(sort.RowPlan.of(subject.node, subject.outputs), _along(view, subject.node))


def emit_sorted_abreast(e: Elemental, subject: Subject, tile: Tile, steps: Steps | None) -> None:
    node, results = subject.node, subject.outputs
    Abreast(e, node, results, [sort.first_wanted(node, origin(r)) for r in results], tile).emit(steps)


def emit_sorted_rows(e: Elemental, subject: Subject, plan: sort.RowPlan, steps: Steps | None) -> None:
    sort.RowSort(e, subject.node, subject.outputs, plan).emit(steps)


# Windows --------------------------------------------------------------------------------------------------------------


def running_fits(view: View, subject: Subject) -> Answer:
    """In steps if they number neither the dimension of the run, nor that of a tile."""
    found = reduce_window.cumulative(subject.node)
    if found is None:
        return "windows are not those before them, and one element more"
    return Fits(found, not {found[0], subject.node.output.fastest} & {*view.numbered})


def emit_running(e: Elemental, subject: Subject, found: tuple[int, bool], steps: Steps | None) -> None:
    reduce_window.RunningReduction(e, subject.node, subject.outputs, *found).emit(steps)


def pool_fits(view: View, subject: Subject) -> Answer:
    node, shape = subject.node, subject.node.output.shape
    if not reduce_window.is_pool(node):
        along = shape.dims[shape.minor_to_major[0]] if shape.dims else 1
        few = along < reduce_window.MINIMUM_RESULTS
        return fewer(along, "results along memory", reduce_window.MINIMUM_RESULTS) if few else "elements have an order"
    return Fits(in_steps=shape.minor_to_major[0] not in view.numbered)


def lines_fit(view: View, subject: Subject) -> Answer:
    answer = pool_fits(view, subject)
    return answer if isinstance(answer, str) else pool_lines.why_not_lines(subject.node) or answer


def emit_pool(e: Elemental, subject: Subject, _: None, steps: Steps | None) -> None:
    reduce_window.Pool(e, subject.node, subject.first).emit(steps)


def emit_lines(e: Elemental, subject: Subject, _: None, steps: Steps | None) -> None:
    pool_lines.LinePool(e, subject.node, subject.first).emit(steps)
