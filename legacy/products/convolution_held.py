"""Convolutions whose output features are neighbours in memory: the sums of a few positions × vectors of features are in
vector registers over the inner loops of the window and over the input features.

One body serves all whole tiles of a kernel; a second one takes the positions that are left, and those at the border,
one at a time. Where products are in a function that kernels share, both are one loop around its call. Nothing is
unrolled, and LLVM has nothing to vectorise: that is most of the time to compile.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.records import dataclass, replace
from ..core.builder import Code, IndexValue, Loop, Once, Range, Unroll
from ..core.registers import I64, memory_type
from ..core.stack import alloca
from ..core.view import View
from ..loops.elemental import Elemental, Index
from ..loops.form import Results, needs
from ..loops.lanewise import Lanewise
from ..loops.memory import Pointer, address
from ..loops.ranges import Steps, loops_over
from ..numerics.convert import convert
from ..reductions.long_sums import OUTSIDE, UNBOUNDED, Level, levels_of
from ..reductions.windows import OUT, SPATIAL, Convolution
from .convolution_columns import MINIMUM_MULTIPLICATIONS, Blocks, Columns, Part, across_role
from .convolution_micro import Dimension, Micro, Vectors
from .dot import accumulator_dtype
from .dot_problem import registers

TERMS = 320
"""Products that are added to a register before it is added to a partial sum in memory, as in tiled products."""

MOST = 8
"""Positions of a tile: this many sums of one vector each keep two units busy for the four cycles of an addition."""

MOST_ALONE = 12
"""The same for one vector each, where a function computes them: fewer calls, and fewer reads of weights."""

TILE_COST, ALONE_COST = 0.5, 2.5
"""What a tile costs beside its positions, and a position that is computed alone, in positions of a tile."""

MINIMUM_VECTOR_BYTES = 16
"""Bytes of the shortest vector."""

CACHED = 1 << 18
"""Bytes of weights that stay in the second cache wherever they lie."""

MAXIMUM_PANEL_BYTES = 3 << 18
"""Bytes of a copied block of features at most: it should stay in that cache, and lies on the stack of a thread."""

COPIED_POSITIONS = 32
"""Minimum positions for which copying weights, which costs two memory accesses for each, does not count."""

CALLED = 1000
"""Minimum multiply-adds of vectors in a whole tile for which a call, some 30 cycles, costs a few parts in a hundred."""

CALLED_ALONE = 400
"""The same where a position has one vector: what a call costs is gained at the border, where each position has two sums
of which neither waits for the other.
"""

FACTORS = frozenset({DType.F32, DType.F64, DType.F16, DType.BF16})
"""Dtypes of weights that are read as vectors."""


@dataclass(frozen=True, slots=True)
class Grid:
    """lanes: of a vector; width: features of a whole tile."""

    lanes: int
    width: int

    @property
    def vectors(self) -> int:
        return -(-self.width // self.lanes)


@dataclass(frozen=True, slots=True)
class Holding:
    """held: the first spatial dimension whose loop is inside the sums'; each: input features that are added up there.
    copied: whether blocks of features are. behind: what follows, if that is a few plain operations on vectors.
    """

    grid: Grid
    held: int
    each: int
    copied: bool
    behind: Lanewise | None


def blocks_held(view: View, results: Results, column: int) -> Blocks:
    """Raises Unfit."""
    (instruction,) = results.products
    c, grid, across = Convolution.of(instruction), grid_of(view, instruction, column), across_role(instruction, column)
    held = first_held(c, UNBOUNDED if view.strict else TERMS)
    each = c.ins if view.strict else features_of(c.ins)
    copied = is_copied(instruction, accumulator_dtype(instruction))
    found = Holding(grid, held, each, copied, Lanewise.of(view, results, c.dims.output_feature))
    place = start, end, apart = inside_of(c, across)
    inside = (end - start) // apart
    step = positions_of(grid, view.vector_bits, inside) if c.products >= MINIMUM_MULTIPLICATIONS and inside > 0 else 1
    calls = _calls(view, instruction, found, step)
    over = tiles_of(grid, view.vector_bits, end - start) if calls and step > 1 and apart == 1 else (step, False)
    parts, levels = parts_of_tiles(c, across, place, step, calls, over), levels_held(c, held, each)
    return Blocks(
        column, across, grid.width, tuple(parts), levels, adds=held > 0 or each < c.ins, calls=calls, form=found
    )


def _calls(view: View, instruction: Instruction, found: Holding, step: int) -> bool:
    """Whether products are computed by the function that kernels share: they are many, of an input in memory."""
    c, source, vectors = Convolution.of(instruction), instruction.operands[0], found.grid.vectors
    products = found.each * math.prod(-(-axis.window // axis.holes) for axis in c.axes[found.held :])
    least = CALLED_ALONE if vectors == 1 and found.each >= MOST else CALLED
    return products * step * vectors >= least and source in view.leaves and source.shape.dtype in FACTORS


def levels_held(c: Convolution, held: int, each: int) -> tuple[list[Level], ...]:
    """The loops around sums in registers."""
    found, terms = levels_of([c.ins // each], 1, OUTSIDE, OUTSIDE)
    levels = [found]
    for axis in reversed(c.axes[:held]):
        found, terms = levels_of([axis.window], terms, OUTSIDE, OUTSIDE)
        levels.append(found or [Level(0, 1, False)])
    return tuple(levels[::-1])


def parts_of_tiles(
    c: Convolution,
    across: int | None,
    inside: tuple[int, int, int],
    step: int,
    calls: bool,
    tiles: tuple[int, bool] | None = None,
) -> Iterator[Part]:
    """inside: as of inside_of; step: positions of a whole tile; tiles: (the same, whether the last tile lies over the
    one before), if tiles are to cover all positions so.
    """
    if across is None:
        yield Part(0, 1, 1)
        return
    start, end, apart = inside
    holes = across >= SPATIAL and c.axes[across - SPATIAL].holes > 1
    if holes and not (calls and step > 1):
        start, end, step = 0, 0, 1
    if calls and step > 1 and apart == 1 and tiles is not None:
        step, over = tiles
        if over:
            yield Part(start, end, step, rest=True)
            return
    end -= (end - start) % (step * apart)
    if calls and step > 1 and start < end and (holes or end - start < c.sizes[across]):
        yield Part(start, end, step, rest=True, apart=apart)
        return
    if end > start:
        yield Part(start, end, step)
    if end - start < c.sizes[across]:
        yield Part(start, end, 1, border=True)


def inside_of(c: Convolution, across: int | None) -> tuple[int, int, int]:
    """(start, end, apart): the positions of whole tiles, each of which has positions `apart` from each other."""
    if across is None or across < SPATIAL:
        return 0, 1 if across is None else c.sizes[across], 1
    axis = c.axes[across - SPATIAL]
    return *axis.between(), axis.period


def grid_of(view: View, instruction: Instruction, column: int) -> Grid:
    """The vectors of a convolution's tiles. Raises Unfit if its sums are not held in registers."""
    c, dtype, weights = Convolution.of(instruction), accumulator_dtype(instruction), instruction.operands[1]
    floats = dtype in (DType.F32, DType.F64) and instruction.shape.dtype.is_float
    needs(floats, f"sums of {dtype.value}, not of f32 or f64")
    needs(weights.shape.dtype in FACTORS and weights in view.leaves, "weights are computed, or no floats")
    apart = c.strides(instruction)[2][OUT]
    needs(column == OUT and apart == 1, f"neighbours are no output features, or {apart} elements apart in the weights")
    lanes = max(view.vector_bits, 128) // dtype.bits
    whole, rest = divmod(c.outs, lanes)
    short = is_short(rest, dtype)
    needs(whole or not short, f"{c.outs} features fill no vector of {MINIMUM_VECTOR_BYTES} bytes")
    preferred = (4, 3, 2) if registers(view.vector_bits) > 16 else (2, 3)
    if rest and not short and c.outs // (rest & -rest) <= max(preferred):
        return Grid(rest & -rest, c.outs)
    if is_copied(instruction, dtype):
        preferred = tuple(n for n in (*preferred, 1) if n * lanes * c.terms * dtype.bytes <= MAXIMUM_PANEL_BYTES)
        needs(preferred, f"a copied block of {c.terms} terms has more than {MAXIMUM_PANEL_BYTES} bytes")
    even = [n for n in preferred if whole % n == 0]
    few = [n for n in preferred if n <= whole]
    return Grid(lanes, lanes * next(iter(even or few), 1))


def positions_of(grid: Grid, vector_bits: int, inside: int) -> int:
    """Positions of a tile, among `inside`: as many as registers allow, or a few less where less of them are left."""
    vectors = grid.vectors
    most = max(1, min(MOST, (registers(vector_bits) - vectors - 1) // vectors, inside))
    return min(range(most, most // 2, -1), key=lambda n: inside % n)


def tiles_of(grid: Grid, vector_bits: int, inside: int) -> tuple[int, bool]:
    """(Positions of a tile, whether the last of the tiles lies further back, over the one before), where what makes no
    whole tile would be computed one position at a time: that takes longer than two, since it reads as many weights.
    """
    vectors = grid.vectors
    limit = MOST_ALONE if vectors == 1 else MOST
    most = max(1, min(limit, (registers(vector_bits) - vectors - 1) // vectors, inside))
    found = []
    for n in range(most, most // 2, -1):
        whole, rest = divmod(inside, n)
        found.append((whole * (n + TILE_COST) + rest * ALONE_COST, n, False))
        if rest:
            found.append(((whole + 1) * (n + TILE_COST), n, True))
    _, positions, over = min(found, key=lambda tiles: tiles[0])
    return positions, over


def is_short(rest: int, dtype: DType) -> bool:
    """Whether some features make vectors too short: they are the end of a whole vector, whose others are computed
    again, and not stored.
    """
    return rest > 0 and (rest & -rest) * dtype.bytes < MINIMUM_VECTOR_BYTES


def blocks_of(grid: Grid, outs: int) -> list[tuple[int, int, int]]:
    """(first feature, end, features of a tile): whole tiles, then whole vectors, then what is left."""
    ends = [outs - outs % grid.width, outs - outs % grid.lanes, outs]
    starts = [0, *ends[:-1]]
    widths = [grid.width, ends[1] - ends[0], ends[2] - ends[1]]
    return [(s, end, width) for s, end, width in zip(starts, ends, widths, strict=True) if s != end]


@dataclass(frozen=True, slots=True)
class Weights:
    """Reads the kernel of a convolution: `width` neighbouring features, in the dtype of the sums.

    panel: a copy of a block of features, row by row, in the dtype of the sums; None: they are read where they are.
    """

    code: Code
    operand: Instruction
    dtype: DType
    width: int
    panel: Pointer | None = None

    @property
    def vectors(self) -> Vectors:
        """How they are read."""
        return Vectors(self.operand.shape.dtype if self.panel is None else self.dtype, self.dtype, self.width)

    @property
    def strides(self) -> list[int]:
        """The strides of what is read, in elements. The features of a copied block are numbered from its first one."""
        shape = self.operand.shape
        if self.panel is None:
            return list(shape.strides)
        fastest = shape.minor_to_major[0]
        return [0 if d == fastest else n // shape.dims[fastest] * self.width for d, n in enumerate(shape.strides)]

    def at(self, e: Elemental, position: Sequence[IndexValue]) -> ir.Value:
        """The address of the first feature at a position."""
        offset = self.code.value(self.code.weighted_sum(position, self.strides))
        pointer = e.leaves[self.operand] if self.panel is None else self.panel
        return self.code.b.gep(pointer.value, [offset], source_etype=memory_type(self.vectors.source))

    def copy(self, e: Elemental, start: IndexValue) -> None:
        """Fill the panel with the features from `start` on."""
        assert self.panel is not None
        code, shape = self.code, self.operand.shape
        read = Vectors(shape.dtype, self.dtype, self.width)
        outs = shape.dims[shape.minor_to_major[0]]
        loop = code.loop(shape.size // outs, unroll=Unroll.DONE)
        source = code.add(code.multiply(loop.index, outs), start)
        for n, value in enumerate(read.load(code, address(code, e.leaves[self.operand], shape.dtype, source))):
            target = code.add(code.multiply(loop.index, self.width), n * read.lanes)
            code.b.store(value, address(code, self.panel, self.dtype, target), align=self.dtype.bytes)
        loop.close()


def first_held(c: Convolution, most: int) -> int:
    """The first spatial dimension whose loop, with those inside it, adds at most `most` products; where the input
    features alone are more, the number of dimensions.
    """
    first, terms = len(c.axes), c.ins
    while first and terms * c.axes[first - 1].window <= most:
        first -= 1
        terms *= c.axes[first].window
    return first


def is_copied(instruction: Instruction, dtype: DType) -> bool:
    """Whether blocks of features are copied. A block is a part of each row of the weights, and these parts share few
    sets of a cache: large weights would come from memory for every tile.
    """
    c, weights = Convolution.of(instruction), instruction.operands[1].shape
    dense = c.groups == 1 and weights.minor_to_major[0] == c.dims.kernel_output_feature
    many = instruction.shape.size // c.outs >= COPIED_POSITIONS
    return dense and many and weights.size * dtype.bytes > CACHED


def features_of(ins: int) -> int:
    """Input features whose products are added in registers: all, or nearly equal parts."""
    return -(-ins // -(-ins // TERMS))


class Held(Columns):
    """The same sums, held in registers. No column is among the steps' dimensions."""

    between = Unroll.DONE
    behind: Lanewise | None = None
    stored: IndexValue = 0
    """The first positions of a tile that another one stores."""

    def __post_init__(self) -> None:
        found: Holding = self.blocks.form
        self.grid, self.held, self.each, self.behind = found.grid, found.held, found.each, found.behind
        super().__post_init__()
        self.around = Unroll.NEVER
        count = self.c.terms * self.grid.width
        self.panel = Pointer(alloca(self.code, memory_type(self.dtype), count)) if found.copied else None

    def _part(self, part: Part, start: IndexValue, width: int) -> None:
        if not part.rest:
            super()._part(part, start, width)
            return
        assert self.across is not None
        code, inside = self.code, part.end - part.start
        tiles, over = -(-inside // part.step), inside % part.step > 0
        loop = code.loop(tiles + self.c.sizes[self.across] - inside, unroll=Unroll.NEVER)
        one = self._beside(part, code.subtract(loop.index, tiles))
        block, phase = code.divide(loop.index, part.apart), code.remainder(loop.index, part.apart)
        first = code.add(code.multiply(block, part.step * part.apart), code.add(phase, part.start))
        whole = code.b.icmp_unsigned("<", code.value(loop.index), I64(tiles))
        back = code.minimum(first, part.end - part.step) if over else first
        place = code.b.select(whole, code.value(back), code.value(one))
        self.count = code.b.select(whole, I64(part.step), I64(1))
        stored = code.b.select(whole, code.value(code.subtract(first, back)), I64(0))
        for value in (place, self.count, stored):
            code.define(value, code.scope)
        self.stored = stored if over else 0
        self.place[self.across] = place
        self._tile(part, start, width)
        self.stored = 0
        loop.close()

    def unfinished(self, part: Part) -> Loop | Once | Range:
        if isinstance(self.stored, int):
            return super().unfinished(part)
        return self.code.range(self.stored, self.positions(part), unroll=self.between)

    def call(
        self,
        part: Part,
        weights: Weights,
        input_: ir.Value,
        apart: int,
        row: ir.Value,
        dimensions: Sequence[Dimension],
    ) -> None:
        """Call the function. input_, row: addresses of the first factors; the rest as of Micro.call."""
        source, loops = self.instruction.operands[0].shape.dtype, len(dimensions) - 1
        adjacent, even = dimensions[-1].input == 1, self.c.ins % 2 == self.each % 2 == 0
        few = registers(self.code.view.vector_bits) <= 16  # with more, factors are ready before sums
        pairs = few and adjacent and even and (source, self.dtype) == (DType.BF16, DType.F32)
        micro = Micro(source, weights.vectors, part.step, loops, adjacent, self.blocks.adds, part.rest, pairs)
        micro.call(self.code, input_, apart, row, self.sums.innermost(), dimensions, self.positions(part))

    def _row(self, place: list[IndexValue], row: IndexValue, start: IndexValue, width: int) -> None:
        behind, shape = self.behind, self.instruction.shape
        if behind is None or self.known or width % self.grid.lanes:
            super()._row(place, row, start, width)
            return
        lanes = self.grid.lanes
        for n in range(0, width, lanes):
            place[self.column] = self.code.add(start, n)
            position = self.c.result(self.code, place)
            offset = Index.at(self.code, shape, position).offset(shape)
            behind.store(self.e, self.sums.get_vector(self.code.add(row, n), lanes), offset, position[behind.column])

    def positions(self, part: Part) -> IndexValue:
        return self.count if part.rest else part.step

    def _blocks(
        self, steps: Steps | None, inside: Sequence[int], order: Sequence[int]
    ) -> Iterator[tuple[list[IndexValue], IndexValue, int]]:
        """Blocks are outermost: their weights, a part of each row of the kernel, stay in the cache for all places."""
        code, sizes = self.code, self.c.sizes
        for start, end, width in blocks_of(self.grid, sizes[self.column]):
            if end - start == width and is_short(width, self.dtype):
                self.known = self.grid.lanes - width
                start, width = start - self.known, self.grid.lanes
            loop = code.loop(end - start, start=start, step=width, unroll=Unroll.NEVER)
            self.weights = Weights(code, self.instruction.operands[1], self.dtype, width, self.panel)
            if self.panel is not None:
                self.weights.copy(self.e, loop.index)
            with loops_over(code, steps, inside, sizes, order, Unroll.NEVER) as places:
                yield places, loop.index, width
            loop.close()
        self.known = 0

    def _taps(self, part: Part, taps: list[IndexValue], start: IndexValue, width: int) -> None:
        if len(taps) < self.held:
            super()._taps(part, taps, start, width)
            return

        def add_up(first: IndexValue, features: int) -> None:
            tile = _Tile(self, part, start, self.weights, first, features)
            if self.blocks.calls:
                tile.call(taps)
            else:
                tile.put(taps)

        whole, rest = divmod(self.c.ins, self.each)
        feature: list[IndexValue] = [0]
        with self.sums.loops(self.levels[-1], [whole], feature, self.each):
            add_up(feature[0], self.each)
        if rest:
            add_up(whole * self.each, rest)


@dataclass(frozen=True, slots=True)
class _Tile:
    """Products of `features` input features from `first` on, at some positions, with features from `start` on."""

    columns: Held
    part: Part
    start: IndexValue
    weights: Weights
    first: IndexValue
    features: int

    def call(self, taps: list[IndexValue]) -> None:
        """Compute them by the function that kernels share."""
        columns, code, weights, part = self.columns, self.columns.code, self.weights, self.part
        c, source = columns.c, columns.instruction.operands[0]
        left, right = source.shape.strides, weights.strides
        starts = list(taps)
        dimensions: list[Dimension] = []
        for n in range(len(taps), len(c.axes)):
            axis, (start, end, step) = c.axes[n], columns.reach(self.part, n)
            count = code.divide(code.add(code.maximum(code.subtract(end, start), 0), step - 1), step)
            along = axis.dilation * step // axis.holes * left[c.dims.input_spatial[n]]
            row = right[c.dims.kernel_spatial[n]] * step
            dimensions.append(Dimension(count, along, -row if axis.reverse else row))
            starts.append(start)
        feature = left[c.dims.input_feature]
        features = Dimension(self.features, feature, right[c.dims.kernel_input_feature])
        if dimensions and features.continues(dimensions[-1]):
            features = replace(features, count=code.multiply(dimensions.pop().count, self.features))
        dimensions.append(features)
        place = list(columns.place)
        place[columns.column] = self.start
        first, row_position = c.operands(code, place, starts, self.first)
        offset = code.value(Index.at(code, source.shape, first).offset(source.shape))
        apart = 0
        if columns.across is not None:
            holes = c.axes[columns.across - SPATIAL].holes if columns.across >= SPATIAL else 1
            apart = c.strides(columns.instruction)[1][columns.across] * part.apart // holes
        element = memory_type(source.shape.dtype)
        input_ = code.b.gep(columns.e.leaves[source].value, [offset], source_etype=element)
        columns.call(part, weights, input_, apart, weights.at(columns.e, row_position), dimensions)

    def put(self, taps: list[IndexValue]) -> None:
        """Compute them here."""
        vectors = self.weights.vectors
        zeros = [ir.Constant(vectors.type, None)] * (self.part.step * vectors.width // vectors.lanes)
        for n, value in enumerate(self.sums(taps, zeros)):
            self.columns.sums.put_vector(n * vectors.lanes, value, add=self.columns.blocks.adds)

    def sums(self, taps: list[IndexValue], before: Sequence[ir.Value]) -> list[ir.Value]:
        """`before` plus the products at the window positions of the remaining dimensions: by position of the tile."""
        columns, number = self.columns, len(taps)
        code = columns.code
        if number < len(columns.c.axes):
            start, end, step = columns.reach(self.part, number)
            loop = code.range(start, end, step, carried=before, unroll=Unroll.NEVER)
            return [*loop.close(self.sums([*taps, loop.index], loop.carried))]
        inner = code.loop(self.features, carried=before, unroll=Unroll.NEVER)
        return [*inner.close(self._products(taps, code.add(self.first, inner.index), inner.carried))]

    def _products(self, taps: list[IndexValue], feature: IndexValue, before: Sequence[ir.Value]) -> list[ir.Value]:
        columns, code = self.columns, self.columns.code
        place = list(columns.place)
        place[columns.column] = self.start
        vectors, position = self.weights.vectors, columns.c.operands(code, place, taps, feature)[1]
        weights = vectors.load(code, self.weights.at(columns.e, position))
        found: list[ir.Value] = []
        for factor in self._factors(taps, feature):
            value = vectors.splat(code, factor)
            for weight in weights:
                found.append(code.b.fadd(before[len(found)], code.b.fmul(value, weight)))
        return found

    def _factors(self, taps: list[IndexValue], feature: IndexValue) -> Iterator[ir.Value]:
        """The elements of the input for the positions of the tile, in the dtype of the sums."""
        columns, code = self.columns, self.columns.code
        source, dtype = columns.instruction.operands[0], columns.instruction.operands[0].shape.dtype
        place = list(columns.place)
        for p in range(self.part.step):
            if columns.across is not None:
                place[columns.across] = code.add(columns.place[columns.across], p)
            position = columns.c.operands(code, place, taps, feature)[0]
            found = convert(code, dtype, columns.dtype, columns.e.value(source, Index.at(code, source.shape, position)))
            assert isinstance(found, ir.Value)
            yield found
