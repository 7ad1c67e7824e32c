"""convolution: one element as loops over its window, and a kernel that sums many elements side by side, on the stack
(convolution_tiles.py) or in vector registers (convolution_vectors.py).
"""

from __future__ import annotations

from ..hlo.opcodes import Op
from ..planning.partition import Partition
from .builder import Builder, Index, Loop
from .convolution_depthwise import DepthwiseTiles, is_depthwise
from .convolution_tiles import Tiles, Write, lane_axis, reuse_axis, widened, zero_of
from .convolution_vectors import VectorTiles, suits
from .dot import accumulator_of, multiply_add, narrow
from .elemental import Elemental, ElementRule, Indices, Reads
from .elements import encode, flatten, unflatten
from .graph import Node
from .ranges import Steps
from .windows import Geometry


def convolution_value(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    b, geometry = e.b, Geometry.of(node)
    lhs, rhs = node.inputs
    wide = accumulator_of(node)
    carried = flatten(zero_of(b, wide))
    if not geometry.is_empty:
        site = geometry.site_of(b, index)
        loops: list[Loop] = []
        taps: list[Index] = []
        for slide, position in zip(geometry.slides, site.spatial, strict=True):
            loops.append(b.open_loop(*slide.taps(b, position), carried))
            taps.append(loops[-1].index)
            carried = loops[-1].carried
        loops.append(b.open_loop(0, geometry.inputs, 1, carried))
        left, right = geometry.factors(b, site, taps, loops[-1].index)
        x = yield lhs, left, False
        y = yield rhs, right, False
        total = unflatten(loops[-1].carried, wide)
        with b.reassociating():
            carried = flatten(multiply_add(b, wide, *widened(b, node, wide, x, y), total))
        for loop in reversed(loops):
            loop.next = carried
            b.close_loop(loop)
            carried = loop.values
    value = narrow(b, wide, node.output.dtype, unflatten(list(carried), wide))
    return encode(b, node.output.dtype, value) if raw else value


RULES: dict[Op, ElementRule] = {Op.CONVOLUTION: convolution_value}


def emit_convolution(e: Elemental, node: Node, write: Write, steps: Steps | None = None) -> bool:
    """Emit all results of a convolution, or those of the steps, in tiles. False if no axis is suitable for lanes."""
    lanes = lane_axis(node)
    if lanes is None:
        return False
    _kind(e.b, node, lanes)(e, node, lanes, write).emit(steps)
    return True


def _kind(b: Builder, node: Node, lanes: int) -> type[Tiles]:
    return DepthwiseTiles if is_depthwise(b, node, lanes) else VectorTiles if suits(b, node, lanes) else Tiles


def takes_steps(b: Builder, node: Node, partition: Partition) -> bool:
    """Whether `emit_convolution` can compute some of the steps: those of loops around the tiles."""
    geometry, lanes = Geometry.of(node), lane_axis(node)
    axes = [geometry.axis_of(d) for d in partition.dimensions]
    if lanes is None:
        return False
    return not {None, lanes, reuse_axis(node, lanes, _kind(b, node, lanes).holes)} & {*axes}
