"""Kernels that groups of a device's items compute: which ones this stack has, and their emission."""

from __future__ import annotations

from llvmlite import ir

from ..codegen.options import EmitOptions, Grouped
from ..hlo.opcodes import Op
from ..planning.plan import KernelRequest
from .elemental import Elemental
from .group import Group
from .group_convolution import ConvolutionTile, convolution_tiling
from .group_crossing import SquareKernel, Squares, squares_of
from .group_dot import Tile, Tiling, tiling_of
from .group_rows import emit_group_rows, lanes_of
from .kernel import begin, groups_of, products_of, write_all
from .leaf import Leaf, is_whole
from .row_graph import RowGraph
from .rows import find_rows
from .update import is_update


def emit_grouped(module: ir.Module, request: KernelRequest, options: EmitOptions) -> Grouped | None:
    """Add the kernel's function to the module; None, and nothing is added, if groups cannot compute it."""
    probe = begin(ir.Module("probe", context=ir.Context()), request, options, ranged=False)
    if not any(_forms(*probe, options)):
        return None
    e, leaves = begin(module, request, options, ranged=False)
    rows, lanes, tiling, squares = _forms(e, leaves, options)
    assert options.group is not None
    group = Group(e.code, options.group)
    if squares is not None:
        SquareKernel(e, squares, group).emit(lambda index: write_all(e, leaves, index))
        made = Grouped(squares.steps, group.shape.across, group.shape.down, group.used)
    elif tiling is not None:
        kind = Tile if tiling.instruction.opcode is Op.DOT else ConvolutionTile
        kind(e, tiling, group).emit(lambda index: write_all(e, leaves, index))
        made = Grouped(tiling.steps, group.shape.across, group.shape.down, group.used)
    else:
        assert rows is not None
        emit_group_rows(e, leaves, rows, group, lanes)
        made = Grouped(rows.grid.count, lanes, 1, group.used)
    e.code.root.builder.ret_void()
    return made


def _forms(
    e: Elemental, leaves: list[Leaf], options: EmitOptions
) -> tuple[RowGraph | None, int, Tiling | None, Squares | None]:
    """(rows, the items for one) or tiles: of the product on which all results depend through elementwise ops only; or
    squares of results that are read across.
    """
    shape = options.group
    assert shape is not None
    if any(not leaf.shape.size for leaf in leaves):
        return None, 0, None, None
    rows = find_rows(e, leaves, single=True)
    if rows is not None:
        lanes = lanes_of(rows, e, shape)
        return (rows, lanes, None, None) if lanes else (None, 0, None, None)
    found = groups_of(e, leaves)
    if len(found) != 1:
        return None, 0, None, None
    products, roots = products_of(e, found[0]), [leaf.instruction for leaf in leaves]
    if products:
        return None, 0, tiling_of(products[0], shape) or convolution_tiling(products[0], shape), None
    if any(is_update(root) or (is_whole(root) and root not in e.leaves) for root in roots):
        return None, 0, None, None
    return None, 0, None, squares_of(e, roots, shape)
