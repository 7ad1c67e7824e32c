"""Depthwise convolutions: a function of a module of its own, compiled once a process, has the products of a few
positions with all channels of a run; a kernel has the loops around its call, and one over the finished sums.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass, replace
from ..core.builder import Builder, Index, Pointer, Unroll, Value
from ..core.elements import raw_type
from ..core.facts import Facts
from ..core.graph import Node
from ..loops.elemental import Elemental
from ..loops.form import fewer, more
from ..loops.helper import call_helper, memory_types
from ..reductions.windows import Geometry, Site
from .convolution_blocks import (
    ALONE_PRODUCTS,
    BLOCK_LANES,
    MINIMUM_WORK,
    SPATIAL,
    Blocks,
    chain_of,
    in_chains,
    reuse_axis,
)
from .convolution_tiles import Write
from .convolution_vectors import VectorTiles
from .convolution_window import Loop, turns
from .dot import accumulator_of
from .dot_dtypes import is_read_in_vectors, read_vector

GROUP = 1
"""The axis of a Site along which channels lie."""

MAXIMUM_PLACES = 8
"""Positions that share what they read: with one vector each, this many sums hide the four cycles of an addition."""

MINIMUM_PLACES = 4
"""Fewer positions with two vectors each share less than twice as many with one."""

MINIMUM_CALLED_PRODUCTS = 250
"""Minimum multiply-adds of vectors in a tile for which a call, some 30 cycles, counts little."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A tile: positions; vectors of channels at these, and at one position; taps of the last dimension of the window
    that lie as far apart as the positions, so that these share what they read, or 0.
    """

    positions: int
    vectors: int
    alone: int
    taps: int


def shape_of(facts: Facts, node: Node) -> Shape:
    """The tile with the most sums that registers hold beside the weights that stay in them and a piece of the input."""
    geometry, reuse = Geometry.of(node), reuse_axis(node, GROUP)
    registers = facts.processor.vector_registers
    last = geometry.slides[-1] if reuse == SPATIAL + len(geometry.slides) - 1 else None
    taps = last.window if last is not None and last.gap == 1 and last.stride == last.spread else 0
    taps = taps if taps < registers // 2 else 0
    vectors = geometry.groups // lanes_of(facts, node)
    places = 1 if reuse is None else geometry.extents[reuse]
    if reuse is not None and reuse >= SPATIAL:
        places = max(1, len(geometry.slides[reuse - SPATIAL].covered()))
    together = 2 if vectors % 2 == 0 and registers // 2 - 1 - max(taps, 1) >= MINIMUM_PLACES else 1
    most = min(MAXIMUM_PLACES, places, registers // together - 1 - max(taps, 1))
    positions = min(range(most, most // 2, -1), key=lambda n: places % n)
    return Shape(positions, together, math.gcd(vectors, 4), taps if positions > 1 else 0)


def lanes_of(facts: Facts, node: Node) -> int:
    return max(facts.vector_bits, 128) // (8 * accumulator_of(node).bytes)


def why_not_depthwise(facts: Facts, node: Node, lanes: int) -> str | None:
    """Why the function does not compute a convolution with this lane axis; None if it does: of many products, of floats
    in memory, whose channels are neighbours there and fill vectors, and whose sums are short.
    """
    geometry, wide = Geometry.of(node), accumulator_of(node)
    if lanes != GROUP or geometry.inputs != 1 or geometry.features != 1 or geometry.group_of_batch:
        return "channels are not apart"
    if facts.strict or geometry.steps(node)[GROUP][1:] != (1, 1):
        return "sums are in order" if facts.strict else "channels are not neighbours in both operands"
    if wide not in (DType.F32, DType.F64) or not all(is_read_in_vectors(buffer, wide) for buffer in node.inputs[:2]):
        return f"an operand is not in memory, or not read in vectors of {wide.value}"
    products = math.prod(slide.window for slide in geometry.slides)
    if products > ALONE_PRODUCTS:
        return more(products, "products of a sum", ALONE_PRODUCTS)
    width = lanes_of(facts, node)
    if geometry.groups % width or geometry.work < MINIMUM_WORK:
        some = f"{geometry.groups} channels fill no vectors of {width}"
        return some if geometry.groups % width else fewer(geometry.work, "multiplications", MINIMUM_WORK)
    window = math.prod(-(-slide.window // slide.gap) for slide in geometry.slides)
    work = min(BLOCK_LANES, geometry.groups) // width * window * shape_of(facts, node).positions
    return (
        fewer(work, "multiply-adds of a tile's vectors", MINIMUM_CALLED_PRODUCTS)
        if work < MINIMUM_CALLED_PRODUCTS
        else None
    )


@dataclass(frozen=True, slots=True)
class ChannelBlocks:
    blocks: Blocks
    shape: Shape


def channel_blocks(facts: Facts, node: Node, lanes: int) -> ChannelBlocks:
    """Of sums that are vectors of channels."""
    geometry, shape, width = Geometry.of(node), shape_of(facts, node), lanes_of(facts, node)
    blocks = Blocks(lanes, reuse_axis(node, lanes), min(BLOCK_LANES, geometry.groups), shape.positions, 1, width, width)
    return ChannelBlocks(in_chains(facts, node, replace(blocks, calls=True), chain_of(geometry)), shape)


class DepthwiseTiles(VectorTiles):
    """Loops: runs of channels, the other axes, positions; the rest is in the function."""

    adds = False
    holes = False

    def __init__(self, e: Elemental, node: Node, form: ChannelBlocks, write: Write):
        super().__init__(e, node, form.blocks, write)
        self.shape = form.shape

    def _window(self, site: Site, taps: list[Index], count: int, start: Index, width: int, shares: bool) -> None:
        """All products of a tile, stored."""
        b, geometry, (source, kernel) = self.b, self.geometry, self.node.inputs[:2]
        labels, starts, loops = geometry.labels, [], []
        for n, slide in enumerate(geometry.slides):
            every = shares and self.reuse == SPATIAL + n
            lower, upper, step = (0, slide.window, 1) if every else slide.taps(b, site.spatial[n])
            along = slide.spread * step // slide.gap * source.strides[labels.input_spatial[n]]
            row = kernel.strides[labels.kernel_spatial[n]] * step
            loops.append(Loop(turns(b, lower, upper, step), along, -row if slide.reverse else row))
            starts.append(lower)
        indices = geometry.factors(b, site.moved(self.lanes, start), starts, 0)
        places: list[Pointer] = [
            b.pointer(self.e.pointers[x.argument], self.e.offset(x, index), raw_type(b.types, x.dtype))
            for x, index in zip((source, kernel), indices, strict=True)
        ]
        lanes = (self.vector_lanes * self.shape.vectors, self.vector_lanes * self.shape.alone)
        function = Channels(
            self.wide, source.dtype, kernel.dtype, self.tile, *lanes, len(loops), self.shape.taps, b.fma_hardware
        )
        numbers = [
            self.positions(count),
            width,
            self.step,
            *(n for loop in loops for n in (loop.count, loop.input, loop.kernel)),
        ]
        call_helper(b, function, [*places, b.pointer(self.space, 0, self.element)], numbers, offsets=2)


@dataclass(frozen=True, slots=True)
class Channels:
    """Sums of channels at each of `positions` places, or at one: `lanes` channels at a time, or `alone`.

    input, kernel: dtypes in memory, converted to `wide`. loops: dimensions of the window; taps: as of Shape. fma:
    whether the target has fused multiply-adds.
    """

    wide: DType
    input: DType
    kernel: DType
    positions: int
    lanes: int
    alone: int
    loops: int
    taps: int
    fma: bool

    @property
    def name(self) -> str:
        dtypes = ".".join(d.value for d in (self.wide, self.input, self.kernel))
        return f"mlir.channels.{dtypes}.{self.positions}x{self.lanes}.{self.alone}.{self.loops}.{self.taps}"

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of the input, the kernel and the sums; the offsets of the first two; the numbers
        of places and of channels, the distance of places in the input; the count and the strides of each loop.
        """
        memory = memory_types(b, [raw_type(b.types, d) for d in (self.input, self.kernel, self.wide)])
        return [*memory, *[b.types.i64] * (5 + 3 * self.loops)]

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        if self.positions == 1:
            _Sums(self, b, parameters, 1).emit()
            return
        many = b.branch(b.compare_integers("ne", parameters[5], b.constant(1, b.types.i64)), [])
        for side, positions in ((0, self.positions), (1, 1)):
            with many.side(side):
                _Sums(self, b, parameters, positions).emit()


class _Sums:
    """The sums at the first places."""

    def __init__(self, function: Channels, b: Builder, parameters: Sequence[Value], positions: int):
        self.function, self.b, self.positions = function, b, positions
        self.input, self.kernel, self.sums, self.input_at, self.kernel_at, _, self.channels, self.apart = parameters[:8]
        self.loops = [parameters[8 + 3 * n : 11 + 3 * n] for n in range(function.loops)]
        self.lanes = function.lanes if positions > 1 else function.alone
        self.vector = b.vector(self.lanes, raw_type(b.types, function.wide))

    def emit(self) -> None:
        b, wide = self.b, self.function.wide
        element = raw_type(b.types, wide)
        with b.loop(0, self.channels, self.lanes, unroll=Unroll.NONE) as run:
            zero = b.filled(0, self.vector)
            first = b.add(self.input_at, run.index), b.add(self.kernel_at, run.index)
            for p, value in enumerate(self._over(0, *first, [zero] * self.positions)):
                place = b.add(b.mul(self.channels, p), run.index)
                b.store(value, b.pointer(self.sums, place, element), wide.bytes)

    def _over(self, level: int, at: Index, row: Index, before: Sequence[Value]) -> list[Value]:
        """`before` plus the products in the loops from `level` on. at, row: of the first factors."""
        b, left = self.b, self.function.loops - level
        if not left:
            weights = self._weights(row)
            inputs = [self._inputs(b.add(at, b.mul(self.apart, p))) for p in range(self.positions)]
            return [b.fma(x, weights, total) for x, total in zip(inputs, before, strict=True)]
        if left == 1 and self.function.taps and self.positions > 1:
            return self._shared(at, row, before)
        count, along, below = self.loops[level]
        with b.loop(0, count, 1, before, Unroll.NONE) as loop:
            place = b.add(at, b.mul(loop.index, along)), b.add(row, b.mul(loop.index, below))
            loop.next = self._over(level + 1, *place, loop.carried)
        return loop.values

    def _shared(self, at: Index, row: Index, before: Sequence[Value]) -> list[Value]:
        """The products along the last dimension. Each piece of the input is read once, for all places."""
        b, taps, sums = self.b, self.function.taps, list(before)
        _, along, below = self.loops[-1]
        weights = [self._weights(b.add(row, b.mul(below, tap))) for tap in range(taps)]
        for piece in range(self.positions + taps - 1):
            x = self._inputs(b.add(at, b.mul(along, piece)))
            for tap in range(taps):
                if 0 <= piece - tap < self.positions:
                    sums[piece - tap] = b.fma(x, weights[tap], sums[piece - tap])
        return sums

    def _inputs(self, place: Index) -> Value:
        return self._read(self.input, self.function.input, place)

    def _weights(self, place: Index) -> Value:
        return self._read(self.kernel, self.function.kernel, place)

    def _read(self, memory: Value, dtype: DType, place: Index) -> Value:
        where = self.b.pointer(memory, place, raw_type(self.b.types, dtype))
        return read_vector(self.b, where, dtype, self.function.wide, self.lanes)
