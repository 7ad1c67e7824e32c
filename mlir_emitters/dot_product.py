"""Dots as matrix products C = A · B: which dimensions are rows, columns and depth, whether tiles pay off, and which
steps of a partition the loops over tiles can compute.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..hlo.dtypes import DType
from ..hlo.records import dataclass, replace
from ..hlo.shapes import Shape
from ..planning.partition import Partition
from .builder import Builder, Index, Loop
from .dot import accumulator_of
from .dot_dims import Dimension, dimensions_of
from .dot_dtypes import IN_VECTORS, TILED, dtype_of_sums
from .elements import parts
from .graph import Buffer, Node
from .ranges import Steps, bounds, positions_of

LEAST_COLUMNS = 8  # narrower products of rows that are stored as such are dot products, for which loops are as fast
TRANSPOSE_ROWS = 16  # with fewer rows, and B stored by columns, products are dot products: scalars are slow to pack

TINY = 9
"""Elements of the smaller matrix up to which vectors lie along rows or a batch: a tile would use few of its lanes."""

NEAR = 3 << 16  # bytes of operands that stay in the caches of any processor


@dataclass(frozen=True, slots=True)
class Product:
    """The operands of a product in the order in which they are multiplied, and its dimensions; outer: loops around.

    Complex operands are seen as real ones of twice as many columns, `parts` of them for an element. The strides of
    rows, depth and loops are in real numbers; that of columns is in elements, half of it in real numbers.
    """

    left: Buffer
    right: Buffer
    row: Dimension
    column: Dimension
    depth: Dimension
    outer: Sequence[Dimension]
    parts: int = 1

    @property
    def factors(self) -> int:
        """Rows of real factors: how often each vector of B is used."""
        return self.row.size * self.parts

    @property
    def near(self) -> bool:
        """Whether both operands of one product stay in a processor's own caches: nothing needs to be fetched ahead."""
        left, right = self.factors * self.left.dtype.bytes, self.column.size * self.right.dtype.bytes
        return (left + right) * self.depth.size <= NEAR


def product_of(b: Builder, node: Node, result: Buffer, vector_bits: int) -> Product | None:
    """The product as loops over tiles; None if plain loops suit it better."""
    lhs, rhs = node.inputs
    if b.strict or lhs.writer is not None or rhs.writer is not None or vector_bits < 128:
        return None
    if not _are_tiled({lhs.dtype, rhs.dtype, result.dtype}) or (result.dtype.is_integer and lhs.dtype.is_float):
        return None
    batch, rows, columns, contracted = dimensions_of(node)
    if len(contracted) != 1 or not contracted[0].size:
        return None
    none = Dimension(1, 0, 0, 0)
    column, row = columns.pop() if columns else none, rows.pop() if rows else none
    if (
        column.out != 1 and row.out == 1 and row.size >= LEAST_COLUMNS
    ):  # a transposed result: multiply the other way round
        row, column, depth = (d.flipped() for d in (column, row, contracted[0]))
        product = Product(rhs, lhs, row, column, depth, [d.flipped() for d in (*batch, *rows, *columns)])
    else:
        product = Product(lhs, rhs, row, column, contracted[0], [*batch, *rows, *columns])
    row, column, depth = product.row, product.column, product.depth
    along = depth.rhs == 1 and (depth.lhs == 1 or row.size == 1)  # both operands are contiguous as dot products read
    if column.out != 1 or column.size < (LEAST_COLUMNS if along else 2) or column.size * depth.size <= TINY:
        return None
    cheap = {lhs.dtype, rhs.dtype} <= IN_VECTORS.keys() | {DType.F32, DType.F64, DType.C64, DType.C128}
    if row.size < (TRANSPOSE_ROWS if cheap else 2) and column.rhs != 1 and along:
        return None
    return _of_reals(product) if result.dtype.is_complex else product


def _are_tiled(dtypes: set[DType]) -> bool:
    return dtypes <= TILED or dtypes in ({DType.C64}, {DType.C128})


def _of_reals(product: Product) -> Product:
    """A product of complex numbers as one of real numbers. What is added up for an element are the products of both
    parts of A's elements with both of B's, from which a tile makes the two parts of the sum.
    """
    n = parts(product.left.dtype)

    def wider(d: Dimension) -> Dimension:
        return replace(d, lhs=n * d.lhs, rhs=n * d.rhs, out=n * d.out)

    left, right = (_as_reals(x, n) for x in (product.left, product.right))
    column = replace(product.column, size=n * product.column.size)
    outer = [wider(d) for d in product.outer]
    return Product(left, right, wider(product.row), column, wider(product.depth), outer, n)


def _as_reals(buffer: Buffer, parts: int) -> Buffer:
    """An array of complex numbers as one with a dimension more, of their parts."""
    shape = Shape(buffer.dtype.component, (*buffer.dims, parts))
    return Buffer(shape, buffer.argument, buffer.alignment)


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


def takes_steps(b: Builder, node: Node, result: Buffer, vector_bits: int, partition: Partition) -> bool:
    """Whether a tiled product can compute some of the steps: batches, rows, or groups of columns of whole vectors."""
    product = product_of(b, node, result, vector_bits)
    if product is None:
        return False
    wide = dtype_of_sums(accumulator_of(node))
    columns = positions_of_step(product.column, partition) * partition.least
    if columns:
        return columns % (vector_bits // (8 * wide.bytes)) == 0
    return loops_of_steps(product.outer, partition) > 0 or positions_of_step(product.row, partition) > 0
