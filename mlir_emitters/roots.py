"""Roots of kernels with loops of their own: those that need more than one nest over the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..hlo.opcodes import Op
from ..planning.partition import Partition
from . import concatenate, indexing, padding, pool_lines, reduce_window, sort
from .builder import Builder, Index
from .complex_dot import emit_columns
from .dot_slim import emit_slim, slim_product_of
from .dot_tiled import emit_matmul
from .elemental import Elemental
from .graph import Buffer, Node, origin
from .ranges import Steps
from .sort_abreast import Abreast, tile_for
from .update import copy_unless_there, emit_update

Targets = Sequence[tuple[Buffer, Buffer]]
"""(An output of a node, the result that it is)."""


def emit_scatter(e: Elemental, node: Node, targets: Targets, steps: Steps | None) -> bool:
    """Emit all results of a scatter. False if results are unused or used twice: the plain nest refuses these."""
    by_number = {source.number: result for source, result in targets}
    if not len(by_number) == len(targets) == len(node.outputs):
        return False
    results = [by_number[k] for k in range(len(targets))]
    for source, result in zip(node.inputs, results, strict=False):
        copy_unless_there(e, source, result, steps)
    indexing.ScatterLoops(e, node, results, steps).emit()
    return True


def emit_sort(e: Elemental, node: Node, targets: Targets, steps: Steps | None) -> bool:
    by_number = {source.number: result for source, result in targets}
    if not len(by_number) == len(targets) == len(node.outputs):
        return False
    results = [by_number[k] for k in range(len(targets))]
    starts = [sort.first_wanted(node, origin(r)) for r in results]
    tile = tile_for(e, node, results, steps)
    rows = sort.RowSort(e, node, results, starts) if tile is None else Abreast(e, node, results, starts, tile)
    rows.emit(steps)
    return True


def emit_reduce_window(e: Elemental, node: Node, targets: Targets, steps: Steps | None) -> bool:
    found = reduce_window.cumulative(node)
    by_number = {source.number: result for source, result in targets}
    if not len(by_number) == len(targets) == len(node.outputs):
        return False
    if found is None:
        if reduce_window.is_pool(node):
            made = pool_lines.LinePool if pool_lines.has_lines(node) else reduce_window.Pool
            made(e, node, targets[0][1]).emit(steps)
            return True
        return False
    reduce_window.RunningReduction(e, node, [by_number[k] for k in range(len(targets))], *found).emit(steps)
    return True


def emit_dot(e: Elemental, node: Node, targets: Targets, steps: Steps | None) -> bool:
    if len(targets) != 1:
        return False
    result = targets[0][1]
    return emit_product(e, node, result, None, steps) or emit_columns(e, node, result)


def emit_product(
    e: Elemental, node: Node, result: Buffer, write: Callable[[tuple[Index, ...]], None] | None, steps: Steps | None
) -> bool:
    """Emit a dot in tiles. write: called for each result; None stores them. False if plain loops suit it better."""
    slim = slim_product_of(e.b, node, result)
    if slim is None:
        return emit_matmul(e, node, result, e.b.vector_bits, write, steps)
    emit_slim(e, node, slim, result, write, steps)
    return True


ROOTS: dict[Op, Callable[[Elemental, Node, Targets, Steps | None], bool]] = {
    Op.CONCATENATE: concatenate.emit_concatenate,
    Op.DOT: emit_dot,
    Op.DYNAMIC_UPDATE_SLICE: emit_update,
    Op.PAD: padding.emit_padding,
    Op.REDUCE_WINDOW: emit_reduce_window,
    Op.SCATTER: emit_scatter,
    Op.SORT: emit_sort,
}
"""Roots that need more than one nest over the result. They return False if the plain nest is right."""

_BY_ELEMENT = frozenset({Op.CONCATENATE, Op.DOT, Op.PAD})
"""Those of ROOTS whose elements are computed each by itself where the outer shape is that of devices."""


def has_own_loops(b: Builder, node: Node, result: Buffer) -> bool:
    """Whether a root is emitted by its row of ROOTS."""
    if node.opcode not in ROOTS or (b.by_element and node.opcode in _BY_ELEMENT):
        return False
    return node.opcode is not Op.PAD or padding.has_loops(b, node, result)


def has_loops_apart(b: Builder, node: Node | None, result: Buffer, results: Sequence[Buffer]) -> bool:
    """Whether a result is emitted by its root's row of ROOTS. A concatenate or pad beside a result of its shape and
    layout is not: the Plan lets it take over what the other reads (planning/inplace.py), as both are computed before
    either is stored.
    """
    if node is None or not has_own_loops(b, node, result):
        return False
    return node.opcode not in (Op.CONCATENATE, Op.PAD) or not any(
        r is not result and r.writer is not None and (r.dims, r.strides) == (result.dims, result.strides)
        for r in results
    )


def root_takes_steps(b: Builder, node: Node, result: Buffer, partition: Partition) -> bool:
    rule = _ROOTS_IN_STEPS.get(node.opcode)
    return rule is not None and rule(b, node, result, partition)


_ROOTS_IN_STEPS: dict[Op, Callable[[Builder, Node, Buffer, Partition], bool]] = {
    Op.CONCATENATE: lambda b, node, result, partition: concatenate.takes_steps(node, result, partition),
    Op.PAD: lambda b, node, result, partition: padding.takes_steps(node, partition),
    Op.REDUCE_WINDOW: lambda b, node, result, partition: reduce_window.takes_steps(node, partition),
    Op.SCATTER: lambda b, node, result, partition: indexing.takes_steps(node, partition),
    Op.SORT: lambda b, node, result, partition: node.attributes["dimensions"][0] not in partition.dimensions,
}
"""Roots in ROOTS that can compute some of the steps. Kernels with others run on one thread."""
