"""The tiles of convolutions whose sums are in registers: their positions and features, and the loops around them."""

from __future__ import annotations

import math
from collections.abc import Iterator

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.records import dataclass
from ..core.view import View
from ..loops.form import Results, needs
from ..loops.lanewise import Lanewise
from ..reductions.long_sums import OUTSIDE_TERMS, UNBOUNDED, Level, levels_of
from ..reductions.windows import OUT, SPATIAL, Convolution
from .convolution_columns import MINIMUM_MULTIPLICATIONS, Blocks, Part, across_role
from .dot import accumulator_dtype

CHAIN_PRODUCTS = 320
"""Products that are added to a register before it is added to a partial sum in memory, as in tiled products."""


MAXIMUM_POSITIONS = 8
"""Positions of a tile: this many sums of one vector each keep two units busy for the four cycles of an addition."""


MAXIMUM_ALONE_POSITIONS = 12
"""The same for one vector each, where a function computes them: fewer calls, and fewer reads of weights."""


TILE_COST, ALONE_COST = 0.5, 2.5
"""What a tile costs beside its positions, and a position that is computed alone, in positions of a tile."""


MINIMUM_VECTOR_BYTES = 16
"""Bytes of the shortest vector."""


MAXIMUM_PANEL_BYTES = 3 << 18
"""Bytes of a copied block of features at most: it should stay in the second cache, and is on a thread's stack."""


COPIED_POSITIONS = 32
"""Minimum positions for which copying weights, which costs two memory accesses for each, does not count."""


MINIMUM_CALLED_PRODUCTS = 1000
"""Minimum multiply-adds of vectors in a whole tile for which a call, some 30 cycles, costs a few parts in a hundred."""


MINIMUM_CALLED_ALONE_PRODUCTS = 400
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
    held = first_held(c, UNBOUNDED if view.strict else CHAIN_PRODUCTS)
    each = c.ins if view.strict else features_of(c.ins)
    copied = is_copied(view, instruction, accumulator_dtype(instruction))
    found = Holding(grid, held, each, copied, Lanewise.of(view, results, c.dims.output_feature))
    place = start, end, apart = inside_of(c, across)
    inside = (end - start) // apart
    registers, many = view.processor.vector_registers, c.products >= MINIMUM_MULTIPLICATIONS
    step = positions_of(grid, registers, inside) if many and inside > 0 else 1
    calls = _calls(view, instruction, found, step)
    over = tiles_of(grid, registers, end - start) if calls and step > 1 and apart == 1 else (step, False)
    parts, levels = parts_of_tiles(c, across, place, step, calls, over), levels_held(c, held, each)
    return Blocks(
        column, across, grid.width, tuple(parts), levels, adds=held > 0 or each < c.ins, calls=calls, form=found
    )


def _calls(view: View, instruction: Instruction, found: Holding, step: int) -> bool:
    """Whether products are computed by the function that kernels share: they are many, of an input in memory."""
    c, source, vectors = Convolution.of(instruction), instruction.operands[0], found.grid.vectors
    products = found.each * math.prod(-(-axis.window // axis.holes) for axis in c.axes[found.held :])
    least = (
        MINIMUM_CALLED_ALONE_PRODUCTS if vectors == 1 and found.each >= MAXIMUM_POSITIONS else MINIMUM_CALLED_PRODUCTS
    )
    return products * step * vectors >= least and source in view.leaves and source.shape.dtype in FACTORS


def levels_held(c: Convolution, held: int, each: int) -> tuple[list[Level], ...]:
    """The loops around sums in registers."""
    found, terms = levels_of([c.ins // each], 1, OUTSIDE_TERMS, OUTSIDE_TERMS)
    levels = [found]
    for axis in reversed(c.axes[:held]):
        found, terms = levels_of([axis.window], terms, OUTSIDE_TERMS, OUTSIDE_TERMS)
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
    preferred = (4, 3, 2) if view.processor.vector_registers > 16 else (2, 3)
    if rest and not short and c.outs // (rest & -rest) <= max(preferred):
        return Grid(rest & -rest, c.outs)
    if is_copied(view, instruction, dtype):
        preferred = tuple(n for n in (*preferred, 1) if n * lanes * c.terms * dtype.bytes <= MAXIMUM_PANEL_BYTES)
        needs(preferred, f"a copied block of {c.terms} terms has more than {MAXIMUM_PANEL_BYTES} bytes")
    even = [n for n in preferred if whole % n == 0]
    few = [n for n in preferred if n <= whole]
    return Grid(lanes, lanes * next(iter(even or few), 1))


def positions_of(grid: Grid, registers: int, inside: int) -> int:
    """Positions of a tile, among `inside`: the most that registers allow, or a few less where fewer are left."""
    vectors = grid.vectors
    most = max(1, min(MAXIMUM_POSITIONS, (registers - vectors - 1) // vectors, inside))
    return min(range(most, most // 2, -1), key=lambda n: inside % n)


def tiles_of(grid: Grid, registers: int, inside: int) -> tuple[int, bool]:
    """(Positions of a tile, whether the last of the tiles lies further back, over the one before), where what makes no
    whole tile would be computed one position at a time: that takes longer than two, since it reads all weights, too.
    """
    vectors = grid.vectors
    limit = MAXIMUM_ALONE_POSITIONS if vectors == 1 else MAXIMUM_POSITIONS
    most = max(1, min(limit, (registers - vectors - 1) // vectors, inside))
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


def first_held(c: Convolution, most: int) -> int:
    """The first spatial dimension whose loop, with those inside it, adds at most `most` products; where the input
    features alone are more, the number of dimensions.
    """
    first, terms = len(c.axes), c.ins
    while first and terms * c.axes[first - 1].window <= most:
        first -= 1
        terms *= c.axes[first].window
    return first


def is_copied(view: View, instruction: Instruction, dtype: DType) -> bool:
    """Whether blocks of features are copied. A block is a part of each row of the weights, and these parts share few
    sets of a cache: weights of more than a quarter of the second one would come from memory for every tile.
    """
    c, weights = Convolution.of(instruction), instruction.operands[1].shape
    dense = c.groups == 1 and weights.minor_to_major[0] == c.dims.kernel_output_feature
    many = instruction.shape.size // c.outs >= COPIED_POSITIONS
    return dense and many and weights.size * dtype.bytes > view.processor.second_cache_bytes // 4


def features_of(ins: int) -> int:
    """Input features whose products are added in registers: all, or nearly equal parts."""
    return -(-ins // -(-ins // CHAIN_PRODUCTS))
