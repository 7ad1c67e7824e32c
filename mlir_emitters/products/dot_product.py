"""Dots as matrix products C = A · B: which dimensions are rows, columns and depth, whether tiles pay off, and which
steps of a partition the loops over tiles can compute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.dtypes import DType
from ...hlo.records import dataclass, replace
from ...planning.partition import Partition
from ..core.builder import Builder, Index, Loop
from ..core.elements import parts
from ..core.facts import Facts
from ..core.graph import Buffer, Node
from ..loops.form import fewer
from ..loops.ranges import Steps, bounds, positions_of
from .dot import accumulator_of
from .dot_dims import Dimension, dimensions_of
from .dot_dtypes import IN_VECTORS, TILED, converts_in_vectors, dtype_of_sums

MINIMUM_COLUMNS = 8
"""Columns: narrower products of rows that are stored as such are dot products, for which loops are as fast."""

MINIMUM_TRANSPOSE_ROWS = 16
"""Rows: with fewer, and B stored by columns, products are dot products: scalars are slow to pack."""


MINIMUM_VECTOR_BITS = 128
"""Bits of vectors: with shorter ones, a processor has none."""

TINY_ELEMENTS = 9
"""Elements of the smaller matrix up to which vectors lie along rows or a batch: a tile would use few of its lanes."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An array in memory: its numbers' dtype, and the argument that it is."""

    dtype: DType
    argument: int

    @staticmethod
    def of(buffer: Buffer) -> Operand:
        """Complex numbers are two real ones."""
        return Operand(buffer.dtype.component, buffer.argument)


@dataclass(frozen=True, slots=True)
class Product:
    """The operands of a product in the order in which they are multiplied, and its dimensions; outer: loops around.

    Complex operands are seen as real ones of twice as many columns, `parts` of them for an element. The strides of
    rows, depth and loops are in real numbers; that of columns is in elements, half of it in real numbers.
    """

    left: Operand
    right: Operand
    row: Dimension
    column: Dimension
    depth: Dimension
    outer: tuple[Dimension, ...]
    parts: int = 1

    @property
    def factors(self) -> int:
        """Rows of real factors: how often each vector of B is used."""
        return self.row.size * self.parts

    @property
    def told(self) -> tuple[tuple[str, str], ...]:
        """For reports, what is multiplied."""
        sizes = ("rows", self.row.size), ("depth", self.depth.size), ("columns", self.column.size)
        return tuple((name, str(size)) for name, size in sizes)

    def is_near(self, facts: Facts) -> bool:
        """Whether both operands of one product stay in a processor's own caches, three quarters of the smallest second
        ones: nothing needs to be fetched ahead.
        """
        left, right = self.factors * self.left.dtype.bytes, self.column.size * self.right.dtype.bytes
        return (left + right) * self.depth.size <= 3 * facts.processor.second_cache_bytes // 16


def product_of(facts: Facts, node: Node, result: Buffer) -> Product | str:
    """The product as loops over tiles; why plain loops suit it better."""
    lhs, rhs = node.inputs
    if facts.strict or facts.vector_bits < MINIMUM_VECTOR_BITS:
        return (
            "sums are in order" if facts.strict else fewer(facts.vector_bits, "bits of a vector", MINIMUM_VECTOR_BITS)
        )
    if lhs.writer is not None or rhs.writer is not None:
        return "an operand is not in memory"
    if not _are_tiled({lhs.dtype, rhs.dtype, result.dtype}) or (result.dtype.is_integer and lhs.dtype.is_float):
        return f"{lhs.dtype.value} times {rhs.dtype.value} is {result.dtype.value}"
    batch, rows, columns, contracted = dimensions_of(node)
    if len(contracted) != 1 or not contracted[0].size:
        return f"{len(contracted)} contracting dimensions" if len(contracted) != 1 else "sums of nothing"
    none = Dimension(1, 0, 0, 0)
    column, row = columns.pop() if columns else none, rows.pop() if rows else none
    if column.out != 1 and row.out == 1 and row.size >= MINIMUM_COLUMNS:
        # a transposed result: multiply the other way round
        row, column, depth = (d.flipped() for d in (column, row, contracted[0]))
        outer = tuple(d.flipped() for d in (*batch, *rows, *columns))
        product = Product(Operand.of(rhs), Operand.of(lhs), row, column, depth, outer)
    else:
        outer = *batch, *rows, *columns
        product = Product(Operand.of(lhs), Operand.of(rhs), row, column, contracted[0], outer)
    reason = _why_not(product)
    return reason or (_of_reals(product, parts(result.dtype)) if result.dtype.is_complex else product)


def _why_not(product: Product) -> str:
    """Why tiles do not pay off; empty if they do."""
    row, column, depth, (lhs, rhs) = product.row, product.column, product.depth, (product.left, product.right)
    along = depth.rhs == 1 and (depth.lhs == 1 or row.size == 1)  # both operands are contiguous as dot products read
    if column.out != 1:
        return "columns are not neighbours in the result"
    least = MINIMUM_COLUMNS if along else 2
    if column.size < least:
        return fewer(column.size, "columns", least)
    if column.size * depth.size <= TINY_ELEMENTS:
        return f"{column.size * depth.size} elements of a matrix, no more than {TINY_ELEMENTS}"
    cheap = {lhs.dtype, rhs.dtype} <= IN_VECTORS.keys() | {DType.F32, DType.F64}
    least = MINIMUM_TRANSPOSE_ROWS if cheap else 2
    few = row.size < least and column.rhs != 1 and along
    return fewer(row.size, "rows, of columns that would be transposed", least) if few else ""


def is_readable(product: Product, wide: DType) -> bool:
    """Whether vectors of B can be read where they lie."""
    source = product.right.dtype
    return product.column.rhs == 1 and (source is wide or converts_in_vectors(source, wide))


def _are_tiled(dtypes: set[DType]) -> bool:
    return dtypes <= TILED or dtypes in ({DType.C64}, {DType.C128})


def _of_reals(product: Product, n: int) -> Product:
    """A product of numbers of `n` parts as one of real numbers. What is added up for an element are products of both
    parts of A's elements with both of B's, from which a tile makes the two parts of the sum.
    """

    def wider(d: Dimension) -> Dimension:
        return replace(d, lhs=n * d.lhs, rhs=n * d.rhs, out=n * d.out)

    column = replace(product.column, size=n * product.column.size)
    row, depth, outer = wider(product.row), wider(product.depth), tuple(map(wider, product.outer))
    return replace(product, row=row, column=column, depth=depth, outer=outer, parts=n)


def positions_of_step(dimension: Dimension, partition: Partition) -> int:
    """The positions along a dimension in a step; 0 if the steps do not number the first places that it runs over."""
    places = tuple(d for d, _ in dimension.places)
    return dimension.size // partition.extent if places[: len(partition.dimensions)] == partition.dimensions else 0


def loops_of_steps(outer: Sequence[Dimension], partition: Partition) -> int:
    """How many of the loops around tiles the steps number together; 0 if they number none, or a part of several."""
    places: tuple[int, ...] = ()
    for count, dimension in enumerate(outer, 1):
        places += tuple(d for d, _ in dimension.places)
        if places == partition.dimensions or (count == 1 and positions_of_step(dimension, partition)):
            return count
    return 0


def open_loops(b: Builder, outer: Sequence[Dimension], steps: Steps | None) -> tuple[list[Loop], list[Index]]:
    """(The loops around tiles, of which one runs over the steps; the place along each dimension)."""
    sizes = [d.size for d in outer]
    count = 0 if steps is None else loops_of_steps(outer, steps.partition)
    loops, places = list[Loop](), list[Index]()
    if count:
        loops.append(b.open_loop(*bounds(b, steps, math.prod(sizes[:count]))))
        places = positions_of(b, loops[0].index, sizes[:count])
    for size in sizes[count:]:
        loops.append(b.open_loop(0, size))
        places.append(loops[-1].index)
    return loops, places


def computes_steps(facts: Facts, node: Node, product: Product, partition: Partition | None) -> bool:
    """Whether a tiled product can compute some of the steps: batches, rows, or groups of columns of whole vectors."""
    if partition is None:
        return True
    wide = dtype_of_sums(accumulator_of(node))
    columns = positions_of_step(product.column, partition) * partition.least
    if columns:
        return columns % (facts.vector_bits // (8 * wide.bytes)) == 0
    return loops_of_steps(product.outer, partition) > 0 or positions_of_step(product.row, partition) > 0
