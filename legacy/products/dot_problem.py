"""Which dots are tiled products: their sizes, the dtype they are summed in, how their operands lie in memory, and which
steps of a partition their loops can compute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum, auto
from itertools import pairwise
from typing import TypeAlias

from llvmlite import ir

from ...codegen.processors import Processor
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.records import dataclass, replace
from ...hlo.shapes import Shape
from ...planning.partition import Partition
from ..core.registers import memory_type
from ..core.view import View
from ..loops.form import Unfit, at_least, known, needs
from ..numerics.narrow import NARROW
from .dot import accumulator_dtype
from .dot_dims import DotDims
from .dot_pairs import PARTS

FEW_ROWS = 32
"""Up to this number of rows, a second tile height costs more compile time than it saves."""

MINIMUM_ROWS = 4
"""Rows of A, at least."""

MINIMUM_DEPTH = 4
"""Products of a sum, at least."""

MINIMUM_MULTIPLICATIONS = 16**3
"""Multiplications below which the simpler loops are as fast."""

LARGE_DEPTH = 256
"""Minimum products for which a vector of which columns fill a part only is better than a sum of strided elements."""

WIDE = {DType.F32: NARROW | {DType.F32}, DType.F64: frozenset({DType.F64})}
"""Dtype of the sums → those of the operands that are converted to it."""

FLAT_ROWS = 16
"""Rows of a tile that reads B where it lies. Of more rows, most of the addresses of A's rows would be on the stack."""

STREAMED_ROWS, STREAMED_TILE_ROWS = 16, 8
"""Rows of a product that streams B, and of its tiles: higher ones read too short pieces of B's rows."""

STREAMED_DEPTH = 12 << 10
"""Products of such sums, at most: each adds up parts of a few of them in one chain."""

FLAT_TILES = 2
"""Tiles of rows up to which B is read where it lies: more of them gain from a copy."""

NEAR_CACHES = 4
"""Second caches that B fills, up to which a tile may read a vector or two of each row. Of memory, longer pieces have to
be read.
"""

FAR_BYTES = 1 << 13
"""Bytes between rows of B up to which a larger B may be read so, too, if a tile has lines of it."""

FAR_PIECES = 1 << 7
"""The same in multiples of what a tile reads of a row."""

SPREAD_BYTES = 1 << 18
"""Bytes on the stack that A's rows may be copied to."""

COMPLEX = frozenset({DType.C64, DType.C128})
"""Dtypes of sums and operands whose products are tiles of their parts."""

NARROW_PANEL_VECTORS, PANELS_TOGETHER = 2, 4
"""Vectors of a panel up to which panels are packed together, and how many."""

WHOLE = frozenset({DType.S32, DType.U32, DType.S64, DType.U64})
"""Integers that are multiplied as they are; of 64 bits where vectors have an instruction for it."""

SHORT = frozenset({DType.S2, DType.S4, DType.S8, DType.U2, DType.U4, DType.U8})
"""Integers of at most a byte."""


@dataclass(frozen=True, slots=True)
class Problem:
    """C[rows, columns] = A[rows, depth] · B[depth, columns]. Columns of C are adjacent.

    dtype: of the sums; left, right, result: of A, B and C. group: how many contracting elements of narrow integers or
    of bf16 are multiplied together, as a word (dot_words.py); depth: the number of words; elements: of contracting
    elements; in_words: words of A are read where they lie. together: panels
    beside each other for which rows of A are converted once. parts: real numbers of an element: with two, columns and
    depth count these (dot_pairs.py), and A and C are read and written as matrices of them; A is not if its elements
    along the depth are apart, left is then complex. flat: tiles read B where it lies, because each of its elements is
    used in one or two; spread: A's rows are copied, since too many lines of a column share a set of the first cache;
    streamed: flat, of a large B of which a few rows are read along all columns, and added to C, while the next ones are
    fetched. height: rows of a tile, where these are some rows of a product, whose memory is for its tiles; 0: what
    suits the rows.
    """

    dtype: DType
    left: DType
    right: DType
    result: DType
    rows: int
    columns: int
    depth: int
    lanes: int
    vectors: int
    group: int
    elements: int
    processor: Processor
    parts: int = 1
    in_words: bool = False
    together: int = 1
    flat: bool = False
    spread: bool = False
    streamed: bool = False
    height: int = 0

    @property
    def tile_rows(self) -> int:
        """Rows of a tile: the most that registers allow; for few rows, and for words of integers, of which no tile
        waits for memory, a divisor, so that one tile's code is enough.
        """
        if self.height:
            return self.height
        if self.flat:
            return flat_height(self.rows, self.processor.vector_registers, self.streamed)
        registers = self.processor.vector_registers
        full = (registers - widest(registers) - 1) // widest(registers)
        heights = range(full, 3, -1) if self.rows <= FEW_ROWS or self.wraps else ()
        return next((n for n in heights if self.rows % n == 0), full)

    def depth_of(self, size: int) -> int:
        """The number of rows of a panel of `size` bytes: whole elements, of which each has as many rows as parts."""
        # Also where a call's columns are too few: bits are the same.
        together = PANELS_TOGETHER if self.is_narrow else 1
        rows = size // (self.panel * together * self.dtype.bytes)
        return rows - rows % self.parts

    def fetches(self, count: int) -> bool:
        """Whether a tile of `count` rows fetches ahead what it reads and writes: where A, B and C lie beyond the first
        caches. The last rows, too few for a tile, do not: their code would take as long to compile.
        """
        return self.large and count == self.tile_rows

    @property
    def large(self) -> bool:
        """Whether A, B and C lie beyond the first caches: they take more than a quarter of the second one."""
        depth = self.elements // self.parts
        sizes = (self.rows, self.elements, self.left), (depth, self.columns, self.right)
        size = sum(m * n * dtype.component.bits for m, n, dtype in sizes)
        size += self.rows * self.columns * self.result.bits
        return size > self.processor.second_cache_bytes // 4 * 8

    @property
    def converts_left(self) -> bool:
        """Whether tiles read a copy of A's rows, of another dtype or in words."""
        return self.left is not self.dtype and not self.in_words

    @property
    def wraps(self) -> bool:
        """Whether sums are of integers, whose order does not matter."""
        return not self.dtype.is_float

    @property
    def panel_bytes(self) -> int:
        """Bytes of a packed panel: a quarter of the smallest second caches, which also hold rows of A."""
        return self.processor.second_cache_bytes // 16

    @property
    def panel(self) -> int:
        """Columns of a panel."""
        return self.lanes * self.vectors

    @property
    def is_narrow(self) -> bool:
        """Whether converting A's rows for each panel takes a fifth of the time."""
        return self.vectors <= NARROW_PANEL_VECTORS and self.converts_left and self.parts == self.group == 1

    @property
    def stretch(self) -> int:
        """Columns of the panels that are packed together."""
        return self.panel * self.together

    @property
    def element(self) -> ir.Type:
        return memory_type(self.dtype)


def flat_height(rows: int, registers: int, streamed: bool = False) -> int:
    """Rows of a tile that reads B where it lies: all of them, or half."""
    return -(-rows // -(-rows // min(STREAMED_TILE_ROWS if streamed else FLAT_ROWS, registers - 2)))


def flat_vectors(rows: int, registers: int, streamed: bool = False) -> int:
    """The most vectors of columns of such a tile, a power of two."""
    room = (registers - 2) // flat_height(rows, registers, streamed)
    return 1 << (room.bit_length() - 1)


def widest(most: int) -> int:
    """Vectors of columns in a tile: an eighth of the registers. Sums use the rest, except for one factor."""
    return most // 8


def stride_of(shape: Shape, dims: Sequence[int]) -> int | None:
    """The stride of several dimensions traversed as one, in elements; None if it is not constant."""
    live = [d for d in dims if shape.dims[d] != 1]
    strides = shape.strides
    for outer, inner in pairwise(live):
        if strides[outer] != strides[inner] * shape.dims[inner]:
            return None
    return strides[live[-1]] if live else 1


@dataclass(frozen=True, slots=True)
class Side:
    """One operand: its strides along the dimensions of the result that loops run over, its free dimensions, and the
    strides along these and the contracting ones. outer: dimensions of the result in front of its free ones.
    """

    operand: Instruction
    loops: tuple[int, ...]
    outer: int
    free: tuple[int, ...]
    free_stride: int
    contracted_stride: int

    @property
    def size(self) -> int:
        """The number of elements along the free dimensions."""
        return math.prod(self.operand.shape.dims[d] for d in self.free)

    @property
    def has_words(self) -> bool:
        """Whether each row begins with a word of two elements: all distances but the contracting one are even."""
        apart = (*self.loops, self.free_stride if self.size > 1 else 0)
        return self.contracted_stride == 1 and all(stride % 2 == 0 for stride in apart)


Sides: TypeAlias = tuple[Side, Side, int, bool]
"""A, B, the row stride of the result, whether A and B are exchanged because the left operand's columns are adjacent."""


def sides_of(instruction: Instruction) -> Sides:
    """How the operands of a dot lie.

    Loops run over batches, and over as few of the left operand's first dimensions as make the others one.
    Raises Unfit if dimensions of a role have no common stride even so, or no neighbours in the result are adjacent.
    """
    most = max(1, len(DotDims.of(instruction).lhs_free))
    found = next((found for n in range(most) if (found := _sides_of(instruction, n)) is not None), None)
    return known(found, "dimensions of one role have no common stride, or no neighbours in the result are adjacent")


def _sides_of(instruction: Instruction, looped: int) -> Sides | None:
    """The same, with loops over a number of the left operand's free dimensions."""
    dims, (lhs, rhs) = DotDims.of(instruction), (o.shape for o in instruction.operands[:2])
    loops, middle = len(dims.lhs_batch) + looped, len(dims.lhs_batch) + len(dims.lhs_free)
    rows = stride_of(instruction.shape, range(loops, middle))
    columns = stride_of(instruction.shape, range(middle, instruction.shape.rank))
    strides = [lhs.strides[d] for d in (*dims.lhs_batch, *dims.lhs_free[:looped])]
    left = _side(instruction.operands[0], strides, loops, dims.lhs_free[looped:], dims.lhs_contracting)
    strides = [*(rhs.strides[d] for d in dims.rhs_batch), *[0] * looped]
    right = _side(instruction.operands[1], strides, middle, dims.rhs_free, dims.rhs_contracting)
    if left is None or right is None or rows is None or columns is None:
        return None
    if columns == 1:
        return left, right, rows, False
    return (right, left, columns, True) if rows == 1 else None


def _side(
    operand: Instruction, loops: Sequence[int], outer: int, free: tuple[int, ...], contracting: tuple[int, ...]
) -> Side | None:
    across, along = stride_of(operand.shape, free), stride_of(operand.shape, contracting)
    return None if across is None or along is None else Side(operand, tuple(loops), outer, free, across, along)


class Kind(Enum):
    """How numbers are multiplied: as floats; by the parts of complex numbers; integers of at most 16 bits, several
    together; integers as they are.
    """

    FLOAT = auto()
    COMPLEX = auto()
    SHORT = auto()
    WHOLE = auto()


def kind_of(view: View, instruction: Instruction) -> tuple[Kind, DType]:
    """(How a dot's numbers are multiplied, the dtype of the sums). Raises Unfit if they are not in tiles."""
    dtype, result = accumulator_dtype(instruction), instruction.shape.dtype
    given = {o.shape.dtype for o in instruction.operands[:2]}
    if dtype in SHORT | {DType.S16, DType.U16}:
        dtype = DType.S32  # which wraps to the same bits
    if dtype in WIDE and given <= WIDE[dtype] and result.is_float:
        return Kind.FLOAT, dtype
    if dtype in COMPLEX and given == {result} and not view.strict:
        return Kind.COMPLEX, dtype
    if dtype in (DType.S32, DType.U32) and given <= SHORT | {DType.S16} and view.products > 1:
        return Kind.SHORT, dtype
    if dtype in WHOLE and given == {dtype} and (dtype.bits == 32 or view.processor.long_products):
        return Kind.WHOLE, dtype
    raise Unfit(f"no tiles of {' and '.join(sorted(d.value for d in given))} with sums of {dtype.value}")


def problem_of(view: View, instruction: Instruction) -> tuple[Problem, Sides]:
    """The tiled form of a dot. Raises Unfit if it does not fit or does not pay off."""
    kind, dtype = kind_of(view, instruction)
    lhs, rhs = instruction.operands[:2]
    needs(lhs in view.leaves and rhs in view.leaves, "an operand is computed")
    sides, parts = sides_of(instruction), PARTS if kind is Kind.COMPLEX else 1
    depth = math.prod(lhs.shape.dims[d] for d in DotDims.of(instruction).lhs_contracting) * parts
    lanes = max(view.vector_bits, 128) // dtype.component.bits
    _must_be_large(sides, kind, parts, depth, lanes)
    if kind is Kind.FLOAT and all(side.operand.shape.dtype is dtype for side in sides[:2]):
        unpacked = _unpacked(view, instruction, sides, dtype, depth, lanes)
        if unpacked is not None:
            return unpacked, sides
    return _packed(view, instruction, sides, kind, dtype, depth, lanes), sides


def _must_be_large(sides: Sides, kind: Kind, parts: int, depth: int, lanes: int) -> None:
    """Raises Unfit if a product does not pay off."""
    rows, columns = sides[0].size, sides[1].size * parts
    along = sides[1].free_stride != 1 and sides[1].contracted_stride == 1  # dot products of contiguous rows
    least, work = lanes if along or depth < LARGE_DEPTH else 2, rows * columns * depth
    at_least(columns, least, "columns")
    at_least(rows, MINIMUM_ROWS, "rows")
    at_least(depth, MINIMUM_DEPTH, "products of a sum")
    at_least(work, MINIMUM_MULTIPLICATIONS, "multiplications")
    alone = kind is Kind.COMPLEX and sides[1].size == 1 and sides[0].contracted_stride != 1
    needs(not alone, "a tile would be empty but for one lane")


def _unpacked(
    view: View, instruction: Instruction, sides: Sides, dtype: DType, depth: int, lanes: int
) -> Problem | None:
    """The form in which tiles read B where it lies, if they may."""
    rows, columns, result = sides[0].size, sides[1].size, instruction.shape.dtype
    registers = view.processor.vector_registers
    if _is_streamed(view, sides, depth):
        vectors = flat_vectors(rows, registers, streamed=True)
        if result is dtype and columns % (vectors * lanes) == 0:
            sizes = rows, columns, depth, lanes, vectors, 1, depth, view.processor
            return Problem(dtype, dtype, dtype, dtype, *sizes, flat=True, streamed=True)
    if not _is_flat(view, sides, depth):
        return None
    short = columns & -columns  # all columns in one vector, if one is as long
    lanes = short if short == columns < lanes and short * dtype.bits >= 128 else lanes
    vectors = min(flat_vectors(rows, registers), -(-columns // lanes))
    sizes = rows, columns, depth, lanes, vectors, 1, depth, view.processor
    return Problem(dtype, dtype, dtype, result, *sizes, flat=True, spread=_shares_lines(view, sides[0]))


def _packed(
    view: View, instruction: Instruction, sides: Sides, kind: Kind, dtype: DType, depth: int, lanes: int
) -> Problem:
    """The form in which panels of B are packed."""
    parts, is_complex = (PARTS, True) if kind is Kind.COMPLEX else (1, False)
    rows, columns = sides[0].size, sides[1].size * parts
    left, right = (side.operand.shape.dtype for side in sides[:2])
    in_pairs = kind is Kind.FLOAT and left is right is DType.BF16 and view.bf16_pairs and not view.strict
    in_bytes = view.products == 4 and left in SHORT and right in SHORT - {DType.U8}
    group = (4 if in_bytes else 2) if kind is Kind.SHORT else 2 if in_pairs else 1
    if sides[0].contracted_stride == 1 and is_complex:
        left = dtype.component
    registers = view.processor.vector_registers
    vectors = min(widest(registers), -(-columns // lanes))
    words, result = -(-depth // group), dtype.component if is_complex else instruction.shape.dtype
    sizes = rows, columns, words, lanes, vectors, group, depth, view.processor
    in_words = in_pairs and depth % 2 == 0 and sides[0].has_words
    return Problem(dtype.component, left, right, result, *sizes, parts, in_words)


def _is_streamed(view: View, sides: Sides, depth: int) -> bool:
    """Whether a few rows are multiplied with a large B whose rows are far apart."""
    left, right = sides[:2]
    fits = left.size <= STREAMED_ROWS and depth <= STREAMED_DEPTH and not view.strict
    fits = fits and right.free_stride == 1 and (left.contracted_stride == 1 or _in_columns(left))
    return fits and _is_far(view, right, left.size, depth)


def _is_far(view: View, right: Side, rows: int, depth: int) -> bool:
    """Whether B is in memory, and tiles over all its depth would read too short pieces of its rows."""
    size = right.operand.shape.dtype.bytes
    piece = view.vector_bits // 8 * flat_vectors(rows, view.processor.vector_registers)
    far = min(FAR_BYTES, FAR_PIECES * piece)
    return (
        depth * right.size * size > NEAR_CACHES * view.processor.second_cache_bytes
        and right.contracted_stride * size > far
    )


def _is_flat(view: View, sides: Sides, depth: int) -> bool:
    """Whether tiles may read B where it lies."""
    left, right = sides[:2]
    size = right.operand.shape.dtype.bytes
    registers = view.processor.vector_registers
    if view.strict or left.size > FLAT_TILES * min(FLAT_ROWS, registers - 2) or right.free_stride != 1:
        return False
    if left.contracted_stride != 1 and not (_in_columns(left) and flat_vectors(left.size, registers) > 1):
        return False
    if _is_far(view, right, left.size, depth):
        return False
    return not _shares_lines(view, left) or left.size * depth * size <= SPREAD_BYTES


def _in_columns(left: Side) -> bool:
    """Whether A lies column by column: in the order in which a tile of all its rows reads it."""
    return left.free_stride == 1 and left.contracted_stride == left.size


def _shares_lines(view: View, left: Side) -> bool:
    """Whether elements of a column of A are so far apart that their lines take more than half of a set of the first
    cache.
    """
    stride = left.free_stride * left.operand.shape.dtype.bytes
    way = view.processor.way_bytes
    return left.size > view.processor.first_cache_ways // 2 * (way // math.gcd(stride, way))


def in_stretches(problem: Problem, columns: int) -> Problem:
    """The product with panels together where they are narrow. columns: a number that those of a call are a multiple of;
    0: all.
    """
    stretch = problem.panel * PANELS_TOGETHER
    fits = problem.is_narrow and problem.columns >= stretch and columns % stretch == 0
    return replace(problem, together=PANELS_TOGETHER) if fits else problem


def unstreamed(problem: Problem) -> Problem:
    """The product in panels that are packed, where its sums must be finished one after the other."""
    vectors = min(widest(problem.processor.vector_registers), -(-problem.columns // problem.lanes))
    return replace(problem, flat=False, streamed=False, vectors=vectors) if problem.streamed else problem


def positions_of_step(instruction: Instruction, partition: Partition, columns: bool) -> int | None:
    """The columns, or the rows, of a step; None if the steps do not number these."""
    sides = sides_of(instruction)
    side = sides[1] if columns else sides[0]
    live = [d for d in range(side.outer, side.outer + len(side.free)) if instruction.shape.dims[d] != 1]
    return side.size // partition.extent if partition.dimensions == tuple(live[: len(partition.dimensions)]) else None
