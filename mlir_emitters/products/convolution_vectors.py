"""Convolutions whose lanes are output features: accumulators are vectors that loops over the window carry in registers.

The last vector of a run of features is masked where they do not fill it. Positions that make no whole tile are computed
one at a time, as those at the border are, so that a kernel has two bodies of products, whatever its sizes. Where these
are in a function that kernels share, the kernel has one loop around its call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.dtypes import DType
from ...hlo.records import replace
from ..core.builder import Index, Pointer, Unroll, Value
from ..core.elements import Scalar, decode, flatten, raw_type
from ..core.facts import Facts
from ..core.graph import Buffer, Node
from ..loops.elemental import Elemental
from ..loops.form import fewer
from ..loops.ranges import Steps, chunks, outer_loops
from ..numerics.convert import convert_to
from ..reductions.windows import Geometry, Site
from .convolution_blocks import FEATURE, MINIMUM_WORK, SPATIAL, Blocks, chain_of, in_chains, inside_of, reuse_axis
from .convolution_tiles import Tiles, Write
from .convolution_window import Loop, Window, turns
from .dot import accumulator_of
from .dot_dtypes import COMPUTE, IN_VECTORS, read_vector
from .dot_registers import FEW_REGISTERS

MAXIMUM_SUM_VECTORS = 24
"""Vectors of sums of a tile: more need no fewer loads, and are more code."""

MAXIMUM_COPY_BYTES = 3 << 18
"""Bytes of a copy: it shall fit in the second cache besides the input, and on the stack."""

COPY_PLACES = 40
"""Places that share a copy at least: it takes a load and a store for each element."""

OF_TILE, OF_ONE = 1, 5
"""What a tile takes besides its positions, and one position alone, which reads all weights, too: in half positions."""

CONVERTED = 2
"""The cost of a vector of the kernel that is converted to the dtype of the sums, in loads."""

MINIMUM_FEATURES = 4
"""Minimum output features for which a masked vector takes less time than scalars."""


def why_not_vectors(facts: Facts, node: Node, lanes: int) -> str | None:
    """Why a convolution with this lane axis is not computed in vectors of features; None if it is."""
    geometry, kernel, wide = Geometry.of(node), node.inputs[1], accumulator_of(node)
    if lanes != FEATURE or geometry.steps(node)[FEATURE][2] != 1:
        return "output features are not the closest neighbours, or no neighbours in the kernel"
    if facts.strict or wide not in (DType.F32, DType.F64):
        return f"sums are in order, or of {wide.value}"
    readable = kernel.dtype is wide or (kernel.dtype in IN_VECTORS and COMPUTE.get(kernel.dtype) is wide)
    if kernel.writer is not None or not readable:
        return f"the kernel is not in memory, or not read in vectors of {wide.value}"
    few = geometry.features < MINIMUM_FEATURES
    return fewer(geometry.features, "output features", MINIMUM_FEATURES) if few else None


def best_sizes(
    registers: int, vectors: int, positions: int, reading: int = 1, alone: int = MAXIMUM_SUM_VECTORS
) -> tuple[int, int]:
    """(vectors of features, positions) of the tile with the fewest loads a product, for as many of both.

    Registers hold the sums, the vectors of the kernel and a factor of the input. reading: the cost of a vector of the
    kernel, in loads: of one that is converted it is more. alone: the most positions with one vector each.
    """
    tiles = []
    for n in (1, 2, 3, 4):
        most = min((registers - n - 1) // n, (MAXIMUM_SUM_VECTORS if n > 1 else alone) // n, positions)
        for p in range(most, most // 2, -1):
            used = vectors / (-(-vectors // n) * n) * (positions - positions % p) / positions
            tiles.append((used * n * p / (reading * n + p), n, p))
    _, n, p = max(tiles)
    return n, p


def lanes_for(features: int, vector_bits: int, bits: int) -> int:
    """Elements of a vector: those of the machine's, or fewer where half of them hold all features."""
    lanes = vector_bits // bits
    while lanes * bits > 128 and 2 * features <= lanes:
        lanes //= 2
    return lanes


def vector_blocks(facts: Facts, node: Node, lanes: int) -> Blocks:
    """Of sums that are vectors of features in registers."""
    geometry, wide, bits = Geometry.of(node), accumulator_of(node), max(facts.vector_bits, 128)
    reuse = reuse_axis(node, lanes, holes=True)
    vector_lanes = lanes_for(geometry.features, bits, 8 * wide.bytes)
    inside, apart = inside_of(geometry, reuse, holes=True)
    positions = max(1, len(inside) // apart) if geometry.work >= MINIMUM_WORK else 1
    reading = 1 if node.inputs[1].dtype is wide else CONVERTED
    alone = MAXIMUM_ALONE_POSITIONS if geometry.inputs >= LEAN_INPUTS else MAXIMUM_SUM_VECTORS
    registers, vectors = facts.processor.vector_registers, -(-geometry.features // vector_lanes)
    vectors, tile = best_sizes(registers, vectors, positions, reading, alone)
    width = min(vectors * vector_lanes, geometry.features)
    blocks = Blocks(lanes, reuse, width, tile, apart, vector_lanes, vector_lanes)
    size = math.prod(s.window for s in geometry.slides) * geometry.inputs * blocks.pitch(width)
    if _copies(facts, geometry, node.inputs[1], wide) and size * wide.bytes <= MAXIMUM_COPY_BYTES:
        blocks = replace(blocks, panel=size)
    blocks = in_chains(facts, node, blocks, chain_of(geometry))
    return _covering(node, blocks, inside) if _calls(node, blocks) else blocks


def _copies(facts: Facts, geometry: Geometry, kernel: Buffer, wide: DType) -> bool:
    """Whether the kernel is so large, and used so often, that a run of its features is copied for all positions. A
    quarter of the second cache holds one in any order of memory; runs of larger ones may fall on few sets.
    """
    places = math.prod(geometry.extents) // geometry.features
    first = kernel.strides[geometry.labels.kernel_output_feature] == 1
    large = size_of(kernel) * wide.bytes > facts.processor.second_cache_bytes // 4
    return first and geometry.groups == 1 and places >= COPY_PLACES and large


def _calls(node: Node, blocks: Blocks) -> bool:
    """Whether a function that kernels share computes products: they are many, of an input in memory."""
    source, wide = node.inputs[0], accumulator_of(node)
    return (
        source.writer is None
        and source.dtype in (wide, *IN_VECTORS)
        and blocks.products(node) >= MINIMUM_CALLED_PRODUCTS
    )


def _covering(node: Node, blocks: Blocks, inside: range) -> Blocks:
    """With calls: how high their tiles are, at most as high as they may be, whether the last one lies over another."""
    blocks, tile = replace(blocks, calls=True), blocks.tile
    spatial = blocks.reuse is not None and blocks.reuse >= SPATIAL
    if not spatial or blocks.apart > 1 or tile == 1 or len(inside) < tile:
        return blocks

    def time(tile: int, over: bool) -> int:
        whole, rest = divmod(len(inside), tile)
        return (whole + over) * (2 * tile + OF_TILE) + (0 if over else rest * OF_ONE)

    heights = range(tile, tile // 2, -1)
    ways = [(n, over) for n in heights for over in (False, True) if not over or len(inside) % n]
    height, over = min(ways, key=lambda way: time(*way))
    lower = replace(blocks, tile=height, over=over)
    return lower if _calls(node, lower) else blocks


class VectorTiles(Tiles):
    """Loops: runs of features, the other axes, positions, the window, input features."""

    between = Unroll.NONE
    holes = True
    """Whether a tile's positions may be apart: of an input with holes, those that meet the same window positions."""
    some: Value | None = None
    """How many positions of a tile are computed, where that is known at run time: all or one."""
    again: Value | None = None
    """How many of the first ones the tile before has stored, where tiles may lie over others."""

    def __init__(self, e: Elemental, node: Node, blocks: Blocks, write: Write):
        super().__init__(e, node, blocks, write)
        self.vector_lanes, self.calls, self.over = blocks.vector_lanes, blocks.calls, blocks.over
        self.vectors, self.inside = blocks.vectors, inside_of(self.geometry, self.reuse, self.holes)[0]

    def computes_apart(self, count: int) -> bool:
        """Whether a function computes the products at `count` positions: those of one beside tiles that are too small,
        too.
        """
        source, sums = self.node.inputs[0], self.tile * self.vectors
        many = self.geometry.inputs >= LEAN_INPUTS and self.blocks.products(self.node) >= MINIMUM_CALLED_BESIDE * sums
        beside = many and count == 1 < self.tile
        return self.calls or (beside and source.writer is None and source.dtype in (self.wide, *IN_VECTORS))

    @property
    def adds(self) -> bool:
        """Whether that function adds to the totals, which have the dtype of its sums."""
        return self.calls and self.totals is not None and self.totals.type == self.totals.chain

    def emit(self, steps: Steps | None = None) -> None:
        """Runs of features are outermost, so that the weights of one stay in the cache for all places."""
        geometry, extents = self.geometry, self.geometry.extents
        strides = geometry.steps(self.node)
        order = sorted(range(len(extents)), key=lambda axis: strides[axis][0], reverse=True)
        order = [axis for axis in order if axis not in (self.lanes, self.reuse)]
        axes = [geometry.axis_of(d) for d in steps.dimensions] if steps is not None else []
        inside = [axis for axis in axes if axis is not None]
        for start, width in chunks(self.b, 0, extents[self.lanes], self.width, Unroll.NONE):
            if self.panel is not None:
                Kernel(self, width).copy(start, self.panel)
            with outer_loops(self.b, steps, inside, extents, order, Unroll.NONE) as places:
                site = Site(0, 0, 0, (0,) * len(geometry.slides))
                for axis, place in places.items():
                    site = site.moved(axis, place)
                self._run(site, start, width)

    def _run(self, site: Site, start: Index, width: int) -> None:
        axis = self.reuse
        if axis is None:
            self._tile(site, 1, start, width, False)
            return
        extent, inner, apart = self.geometry.extents[axis], self.inside, self.apart
        if self.over:
            self._run_together(site, inner, start, width)
            return
        inner = inner[: len(inner) - len(inner) % (self.tile * apart)]
        if self.calls and self.tile > 1 and 0 < len(inner) < extent:
            self._run_together(site, inner, start, width)
            return
        shares = axis < SPATIAL or self.geometry.slides[axis - SPATIAL].gap == 1
        for number, _ in chunks(self.b, 0, len(inner) // self.tile, 1, Unroll.NONE):
            self._tile(site.moved(axis, self._first(number, inner)), self.tile, start, width, shares)
        for number, _ in chunks(self.b, 0, extent - len(inner), 1, Unroll.NONE):
            self._tile(site.moved(axis, self._beside(number, inner)), 1, start, width, False)

    def _first(self, number: Index, inner: range) -> Index:
        """The first position of the whole tile with this number: tiles whose positions are apart lie side by side, one
        for each phase.
        """
        b, apart = self.b, self.apart
        block, phase = b.div(number, apart), b.rem(number, apart)
        return b.add(b.add(b.mul(block, self.tile * apart), phase), inner.start)

    def _run_together(self, site: Site, inner: range, start: Index, width: int) -> None:
        """Whole tiles of `inner`, then the positions beside it, in one loop."""
        b, axis, tile = self.b, self.reuse, self.tile
        assert axis is not None
        tiles = -(-len(inner) // tile)
        with b.loop(0, tiles + self.geometry.extents[axis] - len(inner), unroll=Unroll.NONE) as loop:
            whole = b.compare_integers("slt", loop.index, b.materialize(tiles))
            first = b.materialize(self._first(loop.index, inner))
            if self.over:
                back = b.least(first, inner.stop - tile)
                self.again = b.select(whole, b.materialize(b.sub(first, back)), b.materialize(0))
                first = b.materialize(back)
            one = b.materialize(self._beside(b.sub(loop.index, tiles), inner))
            self.some = b.select(whole, b.materialize(tile), b.materialize(1))
            self._tile(site.moved(axis, b.select(whole, first, one)), tile, start, width, False)
            self.some = self.again = None

    @property
    def step(self) -> int:
        """The distance of a tile's positions in the input, in elements."""
        if self.reuse is None:
            return 0
        gap = self.geometry.slides[self.reuse - SPATIAL].gap if self.reuse >= SPATIAL else 1
        return self.geometry.steps(self.node)[self.reuse][1] * self.apart // gap

    def call(self, kernel: Kernel, places: Sequence[Pointer], loops: Sequence[Loop], count: int) -> None:
        """Call the function. places: of the first element of the input and of the kernel, and of the sums."""
        source, adjacent = self.node.inputs[0].dtype, loops[-1].input == 1
        few = self.b.processor.vector_registers <= FEW_REGISTERS  # with more, factors are ready before sums
        pairs = few and adjacent and (source, self.wide) == (DType.BF16, DType.F32) and self.geometry.inputs % 2 == 0
        window = Window(
            self.wide, source, kernel.reads, count, kernel.pitch, kernel.lanes, len(loops), adjacent,
            self.panel is None and kernel.width < kernel.pitch, self.adds, pairs, self.some is not None,
            self.b.fma_hardware,
        )  # fmt: skip
        window.call(self.b, places, self.step, kernel.width, loops, self.positions(count))

    def positions(self, count: int) -> Index:
        return count if self.some is None else self.some

    def unwritten(self) -> Index:
        return 0 if self.again is None else self.again

    def _spill(self, places: int) -> None:
        if not self.adds:
            super()._spill(places)

    def _final(self, slot: Index) -> Scalar:
        if self.totals is None:
            return super()._final(slot)
        return self.totals.final(slot, self.b.constant(0.0, self.element))  # of no products: 0, and no accumulator

    def _start(self, places: int) -> None:
        """Totals only: accumulators are written before they are read."""
        if self.totals is not None:
            self.totals.clear(places)

    def _window(self, site: Site, taps: list[Index], count: int, start: Index, width: int, shares: bool) -> None:
        b, n, pitch = self.b, len(taps), self.pitch(width)
        sums = Sums(self, site, count, start, width, shares)
        if self.totals is None:
            if self.computes_apart(count):
                sums.call(taps, sums.reach(n))
            else:
                self._keep(sums.over(taps, sums.zeros()))
            return
        lower, upper, step = sums.reach(n)
        if n < self.level:
            with b.loop(lower, upper, step, unroll=Unroll.NONE) as tap:
                self._window(site, [*taps, tap.index], count, start, width, shares)
            return
        for first, end in self._groups(n, lower, upper, step, count * pitch):
            if self.computes_apart(count):
                sums.call(taps, (first, end, step))
            else:
                self._keep(sums.along(taps, (first, end, step), sums.zeros()))

    def _keep(self, sums: Sequence[Value]) -> None:
        """Store the vectors of a tile, position by position."""
        b = self.b
        for number, value in enumerate(sums):
            (lanes,) = value.type.shape
            b.store(value, b.pointer(self.space, number * lanes, self.element), min(64, lanes * self.wide.bytes))


MINIMUM_CALLED_PRODUCTS = 1500
"""Minimum multiply-adds of vectors in a whole tile for which a call, some 30 cycles, costs a few parts in a hundred."""

MAXIMUM_ALONE_POSITIONS = 12
"""Positions with one vector each, at most, where there are LEAN_INPUTS: twice as many are more code, and little faster.
"""

LEAN_INPUTS = 8
"""Minimum input features, whose loop is innermost, for which it is as fast after few of LLVM's passes."""

MINIMUM_CALLED_BESIDE = 64
"""As above, for each sum of a position beside whole tiles: the second body of a kernel is then one call."""


class Sums:
    """The products of one tile."""

    def __init__(self, tiles: VectorTiles, site: Site, count: int, start: Index, width: int, shares: bool):
        self.tiles, self.b, self.site, self.count, self.shares = tiles, tiles.b, site, count, shares
        self.start, self.kernel = start, Kernel(tiles, width)

    def zeros(self) -> list[Value]:
        b = self.b
        zero = b.filled(0, self.kernel.vector)
        return [zero] * (self.count * self.kernel.vectors)

    def reach(self, n: int) -> tuple[Index, Index, int]:
        """The bounds of the loop over dimension n of the window, or over the input features."""
        tiles = self.tiles
        if n == len(tiles.geometry.slides):
            return 0, tiles.geometry.inputs, 1
        slide = tiles.geometry.slides[n]
        if self.shares and tiles.reuse == SPATIAL + n:
            return 0, slide.window, 1
        return slide.taps(self.b, self.site.spatial[n])

    def call(self, taps: list[Index], bounds: tuple[Index, Index, int]) -> None:
        """Store all products at the remaining dimensions, within these bounds of the first, by the function that
        kernels share.
        """
        tiles, b, kernel = self.tiles, self.b, self.kernel
        geometry, source = tiles.geometry, tiles.node.inputs[0]
        labels, starts, loops = geometry.labels, list(taps), []
        strides = kernel.strides
        for n, slide in list(enumerate(geometry.slides))[len(taps) :]:
            lower, upper, step = bounds if n == len(taps) else self.reach(n)
            along = slide.spread * step // slide.gap * source.strides[labels.input_spatial[n]]
            row = strides[labels.kernel_spatial[n]] * step
            loops.append(Loop(turns(b, lower, upper, step), along, -row if slide.reverse else row))
            starts.append(lower)
        first, end, _ = bounds if len(taps) == len(geometry.slides) else (0, geometry.inputs, 1)
        count = turns(b, first, end, 1)
        features = Loop(count, source.strides[labels.input_feature], strides[labels.kernel_input_feature])
        if loops and features.continues(loops[-1]):
            features = replace(features, count=b.mul(loops.pop().count, count))
        loops.append(features)
        left, right = geometry.factors(b, self.site.moved(FEATURE, self.start), starts, first)
        input_ = b.pointer(
            tiles.e.pointers[source.argument], tiles.e.offset(source, left), raw_type(b.types, source.dtype)
        )
        sums = tiles.totals.space if tiles.totals is not None and tiles.adds else tiles.space
        places = [input_, kernel.place(right), b.pointer(sums, 0, tiles.element)]
        tiles.call(kernel, places, loops, self.count)

    def over(self, taps: list[Index], before: Sequence[Value]) -> list[Value]:
        """`before` plus all products at the remaining dimensions of the window."""
        if len(taps) > len(self.tiles.geometry.slides):
            return self._products(taps[:-1], taps[-1], before)
        return self.along(taps, self.reach(len(taps)), before)

    def along(self, taps: list[Index], bounds: tuple[Index, Index, int], before: Sequence[Value]) -> list[Value]:
        """The same, within these bounds of the first of them."""
        with self.b.loop(*bounds, before, Unroll.DONE) as loop:
            loop.next = self.over([*taps, loop.index], loop.carried)
        return loop.values

    def _products(self, taps: Sequence[Index], feature: Index, before: Sequence[Value]) -> list[Value]:
        tiles, b, found = self.tiles, self.b, []
        here = self.site.moved(FEATURE, self.start)
        kernel = self.kernel.read(tiles.geometry.factors(b, here, taps, feature)[1])
        source = tiles.node.inputs[0]
        first = None
        if source.writer is None:
            first = tiles.e.offset(source, tiles.geometry.factors(b, here, taps, feature)[0])
        for k in range(self.count):
            if first is not None:  # at equal distances in memory: constant offsets to one address
                value = decode(b, source.dtype, tiles.e.load_raw(source, b.add(first, k * tiles.step)))
            else:
                if tiles.reuse is not None:
                    here = here.moved(tiles.reuse, b.add(self.site.coordinate(tiles.reuse), k * tiles.apart))
                value = tiles.e.value(source, tiles.geometry.factors(b, here, taps, feature)[0])
            scalar = flatten(convert_to(b, source.dtype, tiles.wide, value))[0]
            factor = b.op("vector.broadcast", scalar, type=self.kernel.vector)
            for vector in kernel:
                found.append(self._multiply_add(factor, vector, before[len(found)]))
        return found

    def _multiply_add(self, x: Value, y: Value, total: Value) -> Value:
        b = self.b
        if b.fma_hardware:
            return b.op("math.fma", x, y, total)
        return b.op("arith.addf", total, b.op("arith.mulf", x, y))


class Kernel:
    """Reads runs of `width` features of the kernel as vectors that are as long as powers of two allow: LLVM cuts them
    into the machine's at the end, and has a fraction of the code before.
    """

    def __init__(self, tiles: VectorTiles, width: int):
        self.tiles, self.b, self.buffer, self.width = tiles, tiles.b, tiles.node.inputs[1], width
        self.pitch = tiles.pitch(width)
        self.lanes = self.pitch & -self.pitch
        self.vectors = self.pitch // self.lanes
        self.vector = tiles.b.vector(self.lanes, tiles.element)

    @property
    def reads(self) -> DType:
        """The dtype of what is read."""
        return self.buffer.dtype if self.tiles.panel is None else self.tiles.wide

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides of what is read. The features of a copied run are numbered from its first one."""
        if self.tiles.panel is None:
            return self.buffer.strides
        d, row = self.tiles.geometry.labels.kernel_output_feature, self.tiles.geometry.features
        return tuple(0 if k == d else n // row * self.pitch for k, n in enumerate(self.buffer.strides))

    def place(self, index: tuple[Index, ...]) -> Pointer:
        """Where the vectors of an element are read."""
        b, tiles = self.b, self.tiles
        memory = tiles.e.pointers[self.buffer.argument] if tiles.panel is None else tiles.panel
        return b.pointer(memory, b.offset(index, self.strides), raw_type(b.types, self.reads))

    def read(self, index: tuple[Index, ...]) -> list[Value]:
        """The vectors from an element on: from the copy, if there is one."""
        b, tiles = self.b, self.tiles
        if tiles.panel is None:
            first = tiles.e.offset(self.buffer, index)
            return [self._load(b.add(first, v * self.lanes), v) for v in range(self.vectors)]
        place = b.offset(index, self.strides)
        pointers = [b.pointer(tiles.panel, b.add(place, v * self.lanes), tiles.element) for v in range(self.vectors)]
        return [b.load(pointer, self.vector, tiles.wide.bytes) for pointer in pointers]

    def copy(self, start: Index, panel: Value) -> None:
        """Copy the features from `start` on of all rows, converted and filled up with zeros."""
        b, tiles = self.b, self.tiles
        features = tiles.geometry.features
        with b.loop(0, size_of(self.buffer) // features, unroll=Unroll.DONE) as row:
            first = b.add(b.mul(row.index, features), start)
            for v in range(self.vectors):
                place = b.pointer(panel, b.add(b.mul(row.index, self.pitch), v * self.lanes), tiles.element)
                b.store(self._load(b.add(first, v * self.lanes), v), place, tiles.wide.bytes)

    def _load(self, offset: Index, v: int) -> Value:
        tiles, b, dtype = self.tiles, self.b, self.buffer.dtype
        stored = raw_type(b.types, dtype)
        place = b.pointer(tiles.e.pointers[self.buffer.argument], offset, stored)
        left = self.width - v * self.lanes
        mask = b.first_lanes(self.lanes, left) if left < self.lanes else None
        return read_vector(b, place, dtype, tiles.wide, self.lanes, mask)


def size_of(buffer: Buffer) -> int:
    """The number of elements of a buffer."""
    return math.prod(buffer.dims)
