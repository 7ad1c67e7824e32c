"""Kernels that groups of a device's items compute: which ones this stack has, and their emission."""

from __future__ import annotations

from llvmlite import ir

from ..codegen.options import EmitOptions, Grouped
from ..hlo.opcodes import Op
from ..planning.plan import KernelRequest
from .elemental import Elemental
from .group import Group
from .group_convolution import ConvolutionTile, convolution_tiling
from .group_dot import Tile, Tiling, tiling_of
from .group_rows import emit_group_rows, lanes_of
from .kernel import begin, groups_of, products_of, write_all
from .leaf import Leaf
from .row_graph import RowGraph
from .rows import find_rows


def emit_grouped(module: ir.Module, request: KernelRequest, options: EmitOptions) -> Grouped | None:
    """Add the kernel's function to the module; None, and nothing is added, if groups cannot compute it."""
    probe = begin(ir.Module("probe", context=ir.Context()), request, options, ranged=False)
    if not any(_forms(*probe, options)):
        return None
    e, leaves = begin(module, request, options, ranged=False)
    rows, lanes, tiling = _forms(e, leaves, options)
    assert options.group is not None
    group = Group(e.code, options.group)
    if tiling is not None:
        kind = Tile if tiling.instruction.opcode is Op.DOT else ConvolutionTile
        kind(e, tiling, group).emit(lambda index: write_all(e, leaves, index))
        made = Grouped(tiling.steps, group.shape.across, group.shape.down, group.used)
    else:
        assert rows is not None
        emit_group_rows(e, leaves, rows, group, lanes)
        made = Grouped(rows.grid.count, lanes, 1, group.used)
    e.code.root.builder.ret_void()
    return made


def _forms(e: Elemental, leaves: list[Leaf], options: EmitOptions) -> tuple[RowGraph | None, int, Tiling | None]:
    """(rows, the items for one) or tiles: of the product on which all results depend through elementwise ops only."""
    shape = options.group
    assert shape is not None
    if any(not leaf.shape.size for leaf in leaves):
        return None, 0, None
    rows = find_rows(e, leaves, single=True)
    if rows is not None:
        lanes = lanes_of(rows, e, shape)
        return (rows, lanes, None) if lanes else (None, 0, None)
    found = groups_of(e, leaves)
    products = products_of(e, found[0]) if len(found) == 1 else []
    if not products:
        return None, 0, None
    return None, 0, tiling_of(products[0], shape) or convolution_tiling(products[0], shape)
