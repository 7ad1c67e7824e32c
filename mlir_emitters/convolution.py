"""convolution: one element as loops over its window, and a kernel that sums many elements side by side, on the stack
(convolution_tiles.py) or in vector registers (convolution_vectors.py, convolution_depthwise.py, convolution_depth.py).
"""

from __future__ import annotations

from ..hlo.opcodes import Op
from ..planning.partition import Partition
from .builder import Builder, Index, Loop, Unroll
from .convolution_depth import DepthTiles, features_in_steps, is_deep
from .convolution_depthwise import DepthwiseTiles, is_depthwise
from .convolution_plain import PlainTiles
from .convolution_tiles import CLOSE, FEATURE, Tiles, Write, lane_axis, reuse_axis, widened, zero_of
from .convolution_vectors import VectorTiles, suits
from .dot import accumulator_of, multiply_add, narrow
from .elemental import Elemental, ElementRule, Indices, Reads
from .elements import encode, flatten, unflatten
from .graph import Node
from .lanewise import Lanewise
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
        along = zip(geometry.slides, site.spatial, geometry.window_steps(node), strict=True)
        for slide, position, steps in along:
            unroll = Unroll.ANY if max(steps) <= CLOSE else Unroll.SCALAR  # LLVM would gather few positions
            loops.append(b.open_loop(*slide.taps(b, position), carried, unroll))
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


def emit_convolution(
    e: Elemental, node: Node, write: Write, steps: Steps | None = None, behind: Lanewise | None = None
) -> bool:
    """Emit all results of a convolution, or those of the steps, in tiles. False if no axis is suitable for lanes.
    behind: what `write` does with them, for vectors, if it can.
    """
    kind, lanes = _kind(e.b, node)
    if lanes is None:
        return False
    if kind is VectorTiles and behind is not None:
        PlainTiles(e, node, lanes, write, behind).emit(steps)
    else:
        kind(e, node, lanes, write).emit(steps)
    return True


def _kind(b: Builder, node: Node) -> tuple[type[Tiles], int | None]:
    """(How a convolution is computed, its lane axis)."""
    if is_deep(b, node):
        return DepthTiles, FEATURE
    lanes = lane_axis(node)
    if lanes is None:
        return Tiles, None
    kinds = ((DepthwiseTiles, is_depthwise), (VectorTiles, suits))
    return next((kind for kind, fits in kinds if fits(b, node, lanes)), Tiles), lanes


def takes_steps(b: Builder, node: Node, partition: Partition) -> bool:
    """Whether `emit_convolution` can compute some of the steps: those of loops around the tiles."""
    geometry, (kind, lanes) = Geometry.of(node), _kind(b, node)
    axes = [geometry.axis_of(d) for d in partition.dimensions]
    if lanes is None or {None, reuse_axis(node, lanes, kind.holes)} & {*axes}:
        return False
    return lanes not in axes or (kind is DepthTiles and features_in_steps(b, node, partition))
