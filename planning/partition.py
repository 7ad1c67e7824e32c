"""Parallel partition: the outer dimensions of its results over which a kernel may be split, and the least chunk.

A kernel that may be split computes any range [begin, end) of `extent` steps independently of the others; step k is the
k-th position in `dimensions`, the first of them slowest. A kernel that reads several elements of a result is not split.
A stack whose loops cannot run over some of the steps ignores this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from ..hlo.analysis.cost_analysis import CostAnalysis
from ..hlo.analysis.rows import rows_of_body
from ..hlo.ir import Computation, Instruction
from ..hlo.opcodes import Op
from ..hlo.records import dataclass, replace
from ..hlo.shapes import Shape
from .inplace import BY_ELEMENT
from .split_rules import (
    ITEM_RULES,
    PRODUCT_ROWS,
    RULES,
    WALK,
    SplitRule,
    along_pixels,
    fastest,
    roles_of,
    window_elements,
)

CHUNK = 1 << 17
"""Minimum work of a chunk in simple operations; half of it or more where chunks of equal size need that.

A kernel of less than two chunks, about 100,000 elements, is faster on one thread.
"""

GRAINS = (256, 64, 8)
"""Least chunks are multiples of the first of these of which the extent has GRAINS_IN_EXTENT, so that chunks consist of
whole tiles and cache lines. The first is for reductions only: blocks of 64 columns take twice the time of 256.
"""

GRAINS_IN_EXTENT = 4

COLUMNS = (1024, 512)
"""Columns of a chunk of a reduction: the first if there are four chunks then, the second if two. The first are a page
of f32 of each row; reading a quarter of a page of each takes 1.4 times as long.
"""

STREAMED = 2048
"""Columns of a chunk of a product with few rows, where the chunks are then four or more. Such a product takes the time
of reading a matrix once, and chunks of 64 columns read pieces of its rows that are too short: twice the time.
"""

FEW_ROWS, MORE_ROWS = 4, 17
"""Minimum rows of a product that keeps a part of a matrix in a cache, or has more to compute than to read: the
second number is for matrices in memory.
"""

IN_MEMORY = 1 << 22
"""Bytes of such a matrix: more than the second cache holds."""

COLUMN_GRAINS = (64, 32, 16)
"""Columns of a product in a chunk of columns: multiples of the first of these that gives two chunks, so that panels
have whole vectors.
"""

WITHOUT_GRAIN = frozenset({Op.CONVOLUTION, Op.SORT, Op.TOPK})
"""Ops with much work in a step, and no tiles along the steps."""

PIECES = 64
"""Minimum number of steps to stop at: it suffices for any number of threads, so inner dimensions are not split."""

FEW_PIECES = 14
"""The same for convolutions, which compute several positions along an inner dimension together, and in front of the
last dimension: loops over steps of several dimensions find positions by division, element by element or in blocks.
"""

LIGHT = 8
"""Instructions of a fusion, parameters included, that may be in a few copies of a loop's body."""

BYTES = 4
"""Bytes that move in the time of one simple operation."""

CACHED = 1 << 18
"""Bytes of a convolution's weights that stay in a processor's own cache. Each chunk reads larger ones from memory."""

SHARERS = 64
"""Positions of a chunk that share these: 64 multiplications for each element that is read, at 8 to 32 a cycle."""

FEWEST_PARTS = 3
"""Chunks of a convolution all the same: several processors read several parts of memory at once."""

TRANSCENDENTAL = 16
"""Simple operations in the time of one exp or sine."""


@dataclass(frozen=True, slots=True)
class Partition:
    """How a kernel may be split.

    dimensions: of its results, outermost in memory first. extent: number of steps, the product of their sizes. least:
    minimum number of steps per chunk.
    """

    dimensions: tuple[int, ...]
    extent: int
    least: int

    def __str__(self) -> str:
        return f"{self.extent} steps over {list(self.dimensions)}, {self.least} at least"

    def ranges(self, workers: int) -> tuple[tuple[int, int], ...]:
        """At most `workers` ranges of at least `least` steps that cover all steps, of nearly equal length."""
        count = max(1, min(workers, self.extent // self.least))
        cuts = [self.extent * n // count for n in range(count + 1)]
        return tuple(pairwise(cuts))


def partition_of(kernel: Instruction) -> Partition | None:
    """The partition of an unnested op or a fusion; None if it cannot be split or is too small to benefit."""
    work = _work(kernel)
    if not _are_alike(shapes := [shape for _, shape in kernel.shape.leaves()]):
        rows = _rows(kernel)
        return None if rows is None else _of_rows(kernel, rows, work)
    ops = _opcodes(kernel)
    crossed = _crossed(kernel)
    dimensions, extent = _dimensions(kernel, shapes[0], ops, crossed)
    if extent < 2 or work < 2 * CHUNK:
        return None
    grain = _grain(extent, ops)
    if _shares_columns(kernel, dimensions):
        if grain < GRAINS[0]:
            dimensions, extent = dimensions[:-1], extent // shapes[0].dims[dimensions[-1]]
            if not dimensions:
                return None
            grain = _grain(extent, ops)
        else:
            columns, (most, fewest) = shapes[0].dims[dimensions[-1]], COLUMNS
            grain = most if columns >= 4 * most else fewest if columns >= 2 * fewest else grain
    if crossed in dimensions:
        grain = max(grain, GRAINS[1])
    if _takes(kernel, dimensions, rows=True):
        grain = max(grain, PRODUCT_ROWS)
    if _takes(kernel, dimensions, rows=False):
        grain = max(grain, next((n for n in COLUMN_GRAINS if 2 * n <= extent), grain))
    if _streams_columns(kernel, dimensions):
        grain = max(grain, min(STREAMED, extent // GRAINS_IN_EXTENT) // GRAINS[0] * GRAINS[0])
    least = grain * max(1, math.ceil(max(CHUNK / work, 1 / _most_chunks(kernel, dimensions)) * extent / grain))
    return None if 2 * least > extent else Partition(dimensions, extent, _even(extent, least, grain))


def _are_alike(shapes: Sequence[Shape]) -> bool:
    """Whether all are arrays of the same dimensions and strides; there is one at least."""
    if not shapes or any(not s.is_array or s.is_dynamic for s in shapes):
        return False
    return all(s.dims == shapes[0].dims and s.strides == shapes[0].strides for s in shapes)


def _of_rows(kernel: Instruction, rows: Partition, work: float) -> Partition | None:
    """The partition of a row kernel whose results have several shapes: an array, and a number of each of its rows."""
    if work < 2 * CHUNK:
        return None
    grain = _grain(rows.extent, _opcodes(kernel))
    least = grain * max(1, math.ceil(CHUNK / work * rows.extent / grain))
    return None if 2 * least > rows.extent else replace(rows, least=_even(rows.extent, least, grain))


def _even(extent: int, least: int, grain: int) -> int:
    """The least chunk nearest to this one, half of it or more, of which the extent is a multiple; or else this one."""
    sizes = range(-(-least // (2 * grain)) * grain, min(2 * least, extent // 2) + 1, grain)
    even = [size for size in sizes if extent % size == 0]
    return min(even, key=lambda size: abs(size - least), default=least)


def _most_chunks(kernel: Instruction, dimensions: Sequence[int]) -> float:
    """How many chunks pay at most, whatever the work."""
    root = kernel.called()[0].root if kernel.opcode is Op.FUSION else kernel
    if root.opcode is Op.SCATTER:
        return window_elements(root) // WALK
    body = kernel.called()[0].instructions if kernel.opcode is Op.FUSION else (kernel,)
    heavy = (i for i in body if i.opcode is Op.CONVOLUTION and i.operands[1].shape.bytes > CACHED)
    heavy = (i for i in heavy if i.attributes["dim_labels"].output_feature not in dimensions)
    return min((max(FEWEST_PARTS, _positions(i) // SHARERS) for i in heavy), default=math.inf)


def _positions(convolution: Instruction) -> int:
    """Positions of a convolution's result, each of which needs all weights."""
    features = convolution.shape.dims[convolution.attributes["dim_labels"].output_feature]
    return convolution.shape.size // features


def _shares_columns(kernel: Instruction, dimensions: Sequence[int]) -> bool:
    """Whether chunks are columns of a reduction, so that each walks over all rows."""
    body = kernel.called()[0] if kernel.opcode is Op.FUSION else None
    if body is not None and body.root.opcode is not Op.REDUCE and rows_of_body(body) is not None:
        return False
    reduces = [i for i in ((kernel,) if body is None else body.instructions) if i.opcode is Op.REDUCE]
    result = next(shape for _, shape in kernel.shape.leaves())
    return fastest(result) in dimensions and any(fastest(r.operands[0].shape) not in r.dimensions for r in reduces)


def _streams_columns(kernel: Instruction, dimensions: Sequence[int]) -> bool:
    """Whether chunks are columns of a product with few rows, so that each reads a piece of all rows of a matrix."""
    result = next(shape for _, shape in kernel.shape.leaves())
    body = kernel.called()[0].instructions if kernel.opcode is Op.FUSION else (kernel,)
    few = any(_has_few_rows(i) for i in body if i.opcode is Op.DOT)
    return few and fastest(result) in dimensions


def _has_few_rows(dot: Instruction) -> bool:
    """Whether a product takes the time of reading a matrix once."""
    inner = fastest(dot.shape)
    large = max(o.shape.bytes for o in dot.operands[:2]) > IN_MEMORY
    return inner >= 0 and dot.shape.size < (MORE_ROWS if large else FEW_ROWS) * dot.shape.dims[inner]


def _takes(kernel: Instruction, dimensions: Sequence[int], rows: bool) -> bool:
    """Whether chunks are rows, or columns, of a product, not whole products of a batch."""
    body = kernel.called()[0].instructions if kernel.opcode is Op.FUSION else (kernel,)
    return any(not {*dimensions}.isdisjoint(roles_of(i)[1 if rows else 2]) for i in body if i.opcode is Op.DOT)


def _crossed(kernel: Instruction) -> int:
    """The dimension of the results in which an operand is contiguous, if the results are not; -1 if there is none. Of
    chunks along it each reads a part of every line of the operand.
    """
    result = next(shape for _, shape in kernel.shape.leaves())
    body = kernel.called()[0].instructions if kernel.opcode is Op.FUSION else (kernel,)
    for i in body:
        source = fastest(i.operands[0].shape) if i.opcode is Op.TRANSPOSE and i.shape.dims == result.dims else -1
        if source >= 0 and i.dimensions.index(source) != fastest(result):
            return i.dimensions.index(source)
    return -1


def _grain(extent: int, ops: frozenset[Op]) -> int:
    """What least chunks are multiples of."""
    if Op.FFT in ops:  # fewer rows are no block of rows, or a call of a library that mostly makes its table
        return GRAINS[-1]
    if not WITHOUT_GRAIN.isdisjoint(ops):
        return 1
    fits = (grain for grain in GRAINS if grain * GRAINS_IN_EXTENT <= extent)
    return next((grain for grain in fits if grain <= GRAINS[1] or Op.REDUCE in ops), 1)


def _opcodes(kernel: Instruction) -> frozenset[Op]:
    return kernel.called()[0].opcodes if kernel.opcode is Op.FUSION else frozenset((kernel.opcode,))


def _dimensions(kernel: Instruction, shape: Shape, ops: frozenset[Op], crossed: int) -> tuple[tuple[int, ...], int]:
    """(the dimensions to split, their extent). Not the crossed one if no tiles divide it and the others suffice."""
    independent = _independent(kernel, RULES)
    inner = fastest(shape)
    if crossed >= 0 and independent[inner] and _is_thin(kernel, shape, crossed):
        return (inner,), shape.dims[inner]
    skips = not ops.isdisjoint((Op.DOT, Op.CONVOLUTION))
    if crossed >= 0 and shape.dims[crossed] % GRAINS[-1]:
        others = math.prod(n for d, n in enumerate(shape.dims) if d not in (crossed, fastest(shape)))
        if others >= FEW_PIECES:
            independent, skips = [a and d != crossed for d, a in enumerate(independent)], True
    if Op.CONVOLUTION not in ops:
        return _outer(shape, independent, skips, PIECES, -1)
    body = kernel.called()[0].instructions if kernel.opcode is Op.FUSION else (kernel,)
    pixels = (i for i in body if i.opcode is Op.CONVOLUTION and along_pixels(i))
    feature = next((i.attributes["dim_labels"].output_feature for i in pixels), -1)
    return _outer(shape, independent, skips, FEW_PIECES, feature)


def _is_thin(kernel: Instruction, shape: Shape, crossed: int) -> bool:
    """Whether results are a few rows of which each position reads neighbours of the operand: chunks, and loops inside
    them, are along the rows, so that these are read once, not once a row. Loops have copies of what is computed.
    """
    few = 1 < shape.dims[crossed] < GRAINS[-1] and shape.size == shape.dims[crossed] * shape.dims[fastest(shape)]
    return few and (kernel.opcode is not Op.FUSION or len(kernel.called()[0].instructions) <= LIGHT)


def _outer(
    shape: Shape, independent: Sequence[bool], skips: bool, pieces: int, between: int
) -> tuple[tuple[int, ...], int]:
    """(the outermost independent dimensions in memory, until there are that many pieces; the product of their sizes).

    They are neighbours there, the last one only if there are few pieces. skips: dimensions outside them may be others;
    between: one that may be another anywhere.
    """
    found: list[int] = []
    extent = 1
    for d in reversed(shape.minor_to_major):
        if not independent[d] and (d == between or (skips and not found)):
            continue
        last = d == shape.minor_to_major[0] and not skips
        if not independent[d] or extent >= (min(pieces, FEW_PIECES) if last else pieces):
            break
        if shape.dims[d] != 1:
            found.append(d)
            extent *= shape.dims[d]
    return tuple(found), extent


def _work(kernel: Instruction) -> float:
    """Work in simple operations; 0 if a cheap upper bound shows that it is below two chunks."""
    body = kernel.called()[0].instructions if kernel.opcode is Op.FUSION else (kernel,)
    if all(i.opcode in BY_ELEMENT for i in body):
        most = max(shape.size for i in (*body, kernel) for _, shape in i.shape.leaves())
        if most * len(body) * TRANSCENDENTAL < 2 * CHUNK:
            return 0.0
    cost = CostAnalysis().of(kernel)
    return max(cost.flops + TRANSCENDENTAL * cost.transcendentals, cost.bytes / BYTES)


def _independent(kernel: Instruction, rules: Mapping[Op, SplitRule]) -> Sequence[bool]:
    """For each dimension of the results: whether elements at different positions along it are independent."""
    rank = next(shape.rank for _, shape in kernel.shape.leaves())
    if kernel.opcode is not Op.FUSION:
        rule = rules.get(kernel.opcode)
        return rule(kernel, rank) if rule is not None else [False] * rank
    return _of_body(kernel.called()[0], rank, rules)


def _of_body(body: Computation, rank: int, rules: Mapping[Op, SplitRule]) -> Sequence[bool]:
    """`_independent` for a fusion: the dimensions that all its ops allow; a row kernel is split between rows."""
    rows = rows_of_body(body) if body.root.opcode is not Op.REDUCE else None
    roots = body.root.operands if body.root.opcode is Op.TUPLE else (body.root,)
    if rows is not None:
        dims, inside = roots[0].shape.dims, 1
        allowed = [False] * rank
        for d in range(rank):  # row-major, as the arrays of row kernels are
            inside *= dims[d]
            allowed[d] = rows.count % inside == 0
        return allowed
    result = next(shape for _, shape in roots[0].shape.leaves())  # a reduction may have several of one shape
    allowed = [True] * rank
    for i in body.instructions:
        if i.opcode in BY_ELEMENT:
            continue
        rule = rules.get(i.opcode)
        leaf = next(shape for _, shape in i.shape.leaves())
        if rule is None or leaf.dims != result.dims:
            return [False] * rank
        allowed = [a and b for a, b in zip(allowed, rule(i, rank), strict=True)]
    return allowed


# --- for devices -----------------------------------------------------------------------------------------------------
def finest_partition(kernel: Instruction) -> Partition | None:
    """The partition into the most steps of one element or row each, for devices; None if a kernel cannot be split.

    All dimensions that are independent, outermost in memory first.
    """
    rows = _rows(kernel)
    if rows is not None:
        return rows
    if not _are_alike(shapes := [shape for _, shape in kernel.shape.leaves()]):
        return None
    independent = _independent(kernel, ITEM_RULES)
    found: list[int] = []
    for d in reversed(shapes[0].minor_to_major):
        if not independent[d]:
            break
        if shapes[0].dims[d] != 1:
            found.append(d)
    extent = math.prod(shapes[0].dims[d] for d in found)
    return Partition(tuple(found), extent, 1) if extent >= 2 else None


def _rows(kernel: Instruction) -> Partition | None:
    """The rows of a row kernel, whose results may be of several shapes that begin with the same dimensions."""
    body = kernel.called()[0] if kernel.opcode is Op.FUSION else None
    rows = rows_of_body(body) if body is not None and body.root.opcode is not Op.REDUCE else None
    shapes = [shape for _, shape in kernel.shape.leaves()]
    if rows is None or rows.count < 2 or not all(s.is_array and s.is_row_major and not s.is_dynamic for s in shapes):
        return None
    found: list[int] = []
    extent = 1
    for d, size in enumerate(shapes[0].dims):
        if extent == rows.count:
            break
        if any(s.rank <= d or s.dims[d] != size for s in shapes):
            return None
        extent *= size
        if size != 1:
            found.append(d)
    return Partition(tuple(found), extent, 1) if extent == rows.count else None
