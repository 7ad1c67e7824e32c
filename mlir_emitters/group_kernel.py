"""Kernels that groups of a device's items compute: which ones this stack has, and their emission."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ..codegen.options import Grouped, GroupShape
from ..hlo.opcodes import Op
from . import group_convolution, group_dot
from .builder import Builder
from .elemental import Elemental
from .graph import Buffer, KernelGraph, origin
from .group import Group, parameter_types
from .group_columns import ColumnKernel, column_blocks_of
from .group_convolution import ConvolutionKernel
from .group_crossing import CrossingKernel, crossing_tiles_of
from .group_dot import TileKernel
from .group_rows import GroupRows, lanes_of, rows_of_group
from .kernel import (
    RULES,
    alike,
    argument_attributes,
    held_types,
    products_of,
    write_together,
)
from .roots import has_own_loops
from .row_graph import row_graph
from .scratch import Scratch


def emit_grouped(b: Builder, graph: KernelGraph, shape: GroupShape) -> Grouped | None:
    """Emit the function of a kernel that groups compute; None, and nothing is emitted, if they cannot."""
    if not all(result.shape.size for result in graph.results):
        return None
    rows = row_graph(graph.results, single=True)
    lanes = lanes_of(rows, shape) if rows is not None else 0
    groups = alike(graph.results) if rows is None else []
    products = products_of(groups[0]) if len(groups) == 1 else []
    kind, tiling_of = _TILES.get(products[0].opcode, (TileKernel, None)) if products else (TileKernel, None)
    tiling = tiling_of(products[0], shape) if tiling_of is not None else None
    crossing = crossing_tiles_of(groups[0], shape) if _is_nest(b, graph, groups) and not products else None
    reduces = bool(products) and products[0].opcode is Op.REDUCE
    columns = column_blocks_of(products, shape) if reduces else None
    if not lanes and tiling is None and crossing is None and columns is None:
        return None
    count = len(graph.arguments)
    attributes = {"arg_attrs": ir.ArrayAttr.get(argument_attributes(b, graph, 1))}
    types = b.argument_types([a.size for a in graph.arguments], held_types(b, graph)) + parameter_types(b, shape)
    with b.function(graph.name, types, [], attributes) as parameters:
        group = Group(b, shape, parameters[count:])
        e = Elemental(b, parameters[:count], RULES, Scratch())
        if tiling is not None:
            kind(e, tiling, group, lambda index: write_together(e, graph.results, index)).emit()
            made = Grouped(tiling.steps, shape.across, shape.down, group.used)
        elif columns is not None:
            ColumnKernel(e, columns, group, lambda index: write_together(e, graph.results, index)).emit()
            made = Grouped(columns.steps, shape.across, shape.down, group.used)
        elif crossing is not None:
            kernel = CrossingKernel(e, crossing, group, graph.results)
            kernel.emit(lambda index: write_together(e, graph.results, index))
            made = Grouped(crossing.steps, shape.across, shape.down, group.used)
        else:
            assert rows is not None
            many = rows_of_group(rows, lanes, shape)
            GroupRows(e, rows, graph.results, {x.argument for x in graph.operands}, group, lanes, many).emit()
            made = Grouped(rows.count // many, lanes, many, group.used)
        b.give()
    return made


def _is_nest(b: Builder, graph: KernelGraph, groups: Sequence[Sequence[Buffer]]) -> bool:
    """Whether all results are computed by one nest of loops, element by element."""
    found = [(origin(result).writer, result) for result in graph.results]
    alone = all(node is not None and not has_own_loops(b, node, result) for node, result in found)
    return alone and len(groups) == 1 and len(groups[0]) == len(graph.results)


_TILES = {
    Op.CONVOLUTION: (ConvolutionKernel, group_convolution.tiling_of),
    Op.DOT: (TileKernel, group_dot.tiling_of),
}
"""By opcode: what emits the tiles of a product, and how it finds them."""
