"""convolution: one element as loops over its window, and a kernel that sums many elements side by side, on the stack
(convolution_tiles.py) or in vector registers (convolution_vectors.py, convolution_depthwise.py, convolution_depth.py).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Index, Loop, Unroll
from ..core.elements import encode, flatten, unflatten
from ..core.facts import Code, Facts
from ..core.graph import Node
from ..loops.elemental import Elemental, ElementRule, Indices, Reads
from ..loops.form import Answer, Fits
from ..loops.lanewise import Lanewise
from ..loops.ranges import Steps
from ..loops.view import Subject, View
from ..reductions.results import write_together
from ..reductions.windows import Geometry
from .convolution_blocks import CLOSE_ELEMENTS, FEATURE, Blocks, lane_axis, tile_blocks
from .convolution_depth import DepthTiles, depth_blocks, why_not_deep, width_in_steps
from .convolution_depthwise import ChannelBlocks, DepthwiseTiles, channel_blocks, why_not_depthwise
from .convolution_plain import PlainTiles
from .convolution_tiles import Tiles, Write, widened, zero_of
from .convolution_vectors import LEAN_INPUTS, VectorTiles, vector_blocks, why_not_vectors
from .dot import accumulator_of, multiply_add, narrow

T = TypeVar("T")


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
            unroll = Unroll.ANY if max(steps) <= CLOSE_ELEMENTS else Unroll.SCALAR  # LLVM would gather few positions
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
        carried = b.close_loops(loops, carried)
    value = narrow(b, wide, node.output.dtype, unflatten(list(carried), wide))
    return encode(b, node.output.dtype, value) if raw else value


RULES: dict[Op, ElementRule] = {Op.CONVOLUTION: convolution_value}


def deep_fits(view: View, subject: Subject) -> Answer:
    facts, node, partition = view.facts, subject.node, view.partition
    reason = why_not_deep(facts, node)
    if reason is not None:
        return reason
    blocks = depth_blocks(facts, node)
    if partition is None or FEATURE not in _axes(view, node):
        return Fits(blocks, _around(view, node, blocks), Code(lean=_is_lean(node)))
    return Fits(blocks, _around(view, node, blocks) and width_in_steps(facts, node, partition) is not None)


def channels_fit(view: View, subject: Subject) -> Answer:
    form = _of_lanes(view, subject, why_not_depthwise, channel_blocks)
    return form if isinstance(form, str) else Fits(form, _outside(view, subject.node, form.blocks))


def vectors_fit(view: View, subject: Subject) -> Answer:
    node, blocks = subject.node, _of_lanes(view, subject, why_not_vectors, vector_blocks)
    if isinstance(blocks, str):
        return blocks
    behind = Lanewise.of(subject.results, node, node.attributes["dim_labels"].output_feature)
    return Fits(Vectors(blocks, behind), _outside(view, node, blocks), Code(shares=blocks.calls, lean=_is_lean(node)))


@dataclass(frozen=True, slots=True)
class Vectors:
    """behind: what makes the kernel's result of vectors of sums, if they go into its memory from registers."""

    blocks: Blocks
    behind: Lanewise | None


def tiles_fit(view: View, subject: Subject) -> Answer:
    blocks = _of_lanes(view, subject, lambda facts, node, lanes: None, tile_blocks)
    return blocks if isinstance(blocks, str) else Fits(blocks, _outside(view, subject.node, blocks))


def _of_lanes(
    view: View,
    subject: Subject,
    why_not: Callable[[Facts, Node, int], str | None],
    blocks_of: Callable[[Facts, Node, int], T],
) -> T | str:
    """The blocks, if there is an axis for the lanes, and the form is for it."""
    lanes = lane_axis(subject.node)
    if lanes is None:
        return "along no axis are there close neighbours in the result and in both operands"
    return why_not(view.facts, subject.node, lanes) or blocks_of(view.facts, subject.node, lanes)


def _is_lean(node: Node) -> bool:
    """Whether all vectors of loops over features are there."""
    geometry = Geometry.of(node)
    return min(geometry.inputs, geometry.features) >= LEAN_INPUTS


def _axes(view: View, node: Node) -> list[int | None]:
    """The axes of a site that the steps number; None for the features of several groups."""
    geometry = Geometry.of(node)
    return [geometry.axis_of(d) for d in view.numbered]


def _around(view: View, node: Node, blocks: Blocks) -> bool:
    """Whether the steps are those of loops around the positions of a tile."""
    return view.partition is None or not {None, blocks.reuse} & {*_axes(view, node)}


def _outside(view: View, node: Node, blocks: Blocks) -> bool:
    """Whether they are those of loops around the lanes of a tile, too."""
    return _around(view, node, blocks) and blocks.lanes not in _axes(view, node)


def emit_deep(e: Elemental, subject: Subject, blocks: Blocks, steps: Steps | None) -> None:
    DepthTiles(e, subject.node, blocks, _write(e, subject)).emit(steps)


def emit_channels(e: Elemental, subject: Subject, blocks: ChannelBlocks, steps: Steps | None) -> None:
    DepthwiseTiles(e, subject.node, blocks, _write(e, subject)).emit(steps)


def emit_vectors(e: Elemental, subject: Subject, form: Vectors, steps: Steps | None) -> None:
    if form.behind is None:
        VectorTiles(e, subject.node, form.blocks, _write(e, subject)).emit(steps)
    else:
        PlainTiles(e, subject.node, form.blocks, _write(e, subject), form.behind).emit(steps)


def emit_tiles(e: Elemental, subject: Subject, blocks: Blocks, steps: Steps | None) -> None:
    Tiles(e, subject.node, blocks, _write(e, subject)).emit(steps)


def _write(e: Elemental, subject: Subject) -> Write:
    return lambda index: write_together(e, subject.results, index)
