"""Kernels that groups of a device's items compute: which ones this stack has, and their emission."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from llvmlite import ir

from ..codegen.options import EmitOptions, Grouped
from ..hlo.opcodes import Op
from ..hlo.records import dataclass
from ..planning.plan import KernelRequest
from .elemental import Elemental, Index
from .group import Group
from .group_columns import Columns, ColumnTile, columns_of
from .group_convolution import ConvolutionTile, convolution_tiling
from .group_crossing import SquareKernel, Squares, squares_of
from .group_dot import Tile, Tiling, tiling_of
from .group_rows import emit_group_rows, lanes_of, together_of
from .kernel import begin, groups_of, products_of, write_all
from .leaf import Leaf, is_whole
from .row_graph import RowGraph
from .rows import find_rows
from .update import is_update


def emit_grouped(module: ir.Module, request: KernelRequest, options: EmitOptions) -> Grouped | None:
    """Add the kernel's function to the module; None, and nothing is added, if groups cannot compute it."""
    probe = begin(ir.Module("probe", context=ir.Context()), request, options, ranged=False)
    if _form(*probe, options) is None:
        return None
    e, leaves = begin(module, request, options, ranged=False)
    form = _form(e, leaves, options)
    assert options.group is not None and form is not None
    group = Group(e.code, options.group)
    across, down = group.shape.across, group.shape.down

    def finish(index: Index) -> None:
        write_all(e, leaves, index)

    if isinstance(form, Rows):
        emit_group_rows(e, leaves, form.graph, group, form.lanes, form.together)
        steps, across, down = form.graph.grid.count // form.together, form.lanes, form.together
    else:
        _KINDS[type(form)](e, form, group).emit(finish)
        steps = form.steps
    e.code.root.builder.ret_void()
    return Grouped(steps, across, down, group.used)


def _tile(e: Elemental, tiling: Tiling, group: Group) -> Tile:
    return (Tile if tiling.instruction.opcode is Op.DOT else ConvolutionTile)(e, tiling, group)


@dataclass(frozen=True, slots=True)
class Rows:
    """lanes: items that share a row. together: rows of a group."""

    graph: RowGraph
    lanes: int
    together: int


Form: TypeAlias = Rows | Columns | Squares | Tiling
"""Rows; or columns or tiles of products on which all results depend through elementwise ops only; or squares of results
that are read across.
"""

_KINDS: dict[type, Callable[[Elemental, Any, Group], ColumnTile | SquareKernel | Tile]] = {
    Columns: ColumnTile,
    Squares: SquareKernel,
    Tiling: _tile,
}


def _form(e: Elemental, leaves: list[Leaf], options: EmitOptions) -> Form | None:
    shape = options.group
    assert shape is not None
    if any(not leaf.shape.size for leaf in leaves):
        return None
    rows = find_rows(e, leaves, single=True)
    if rows is not None:
        lanes = lanes_of(rows, e, shape)
        return Rows(rows, lanes, together_of(rows, lanes, shape)) if lanes else None
    found = groups_of(e, leaves)
    if len(found) != 1:
        return None
    products, roots = products_of(e, found[0]), [leaf.instruction for leaf in leaves]
    if products and products[0].opcode is Op.REDUCE:
        return columns_of(e, products, shape)
    if products:
        return tiling_of(products[0], shape) or convolution_tiling(products[0], shape)
    if any(is_update(root) or (is_whole(root) and root not in e.leaves) for root in roots):
        return None
    return squares_of(e, roots, shape)
