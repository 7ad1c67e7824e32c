"""dot of many rows along memory with a few columns: dot products of vectors, several rows at once (dot_slim_tile.py).
Register tiles as in dot_tiled.py would use a few lanes of their vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Index, Unroll
from ..core.elements import Scalar, encode, flatten, raw_type
from ..core.facts import Facts
from ..core.graph import Buffer, Node
from ..loops.elemental import Elemental, Indices
from ..loops.form import Answer, Fits, fewer, more
from ..loops.ranges import Steps, bounds, chunks
from ..loops.view import Subject, View
from ..reductions.results import epilogue
from .dot import accumulator_of, narrow
from .dot_dims import Dimension, dimensions_of
from .dot_dtypes import converts_in_vectors
from .dot_narrow_tile import SlimColumns, SlimTile, rows_at_once
from .dot_product import MINIMUM_VECTOR_BITS, Operand, Product, loops_of_steps, open_loops, positions_of_step
from .dot_registers import FEW_REGISTERS

MAXIMUM_COLUMNS = 8
"""Columns: more of them fill vectors of a register tile."""

MAXIMUM_COLUMNS_OF_FEW = 7
"""The same with few registers, unless the tile's B would be the many rows, which it copies."""

MINIMUM_ROWS = 16
"""Rows for which columns are worth a copy."""

MINIMUM_ROW_VECTORS = 3
"""Vectors of a row: sums over the lanes of fewer take longer than their products."""

MAXIMUM_COLUMN_BYTES = 1 << 18
"""Bytes of columns that are copied to the stack."""

BAND_ROWS = 96
"""Rows of a block; their sums may be on the stack."""

LONG_ROW_BYTES = 2 << 10
"""Bytes of a row: a processor does not find the next one of as long ones in time."""

STREAM_ROWS = 8
"""Rows at once then."""


def fits(view: View, subject: Subject) -> Answer:
    node, result = subject.node, subject.product_result
    product = slim_product_of(view.facts, node, result)
    if isinstance(product, str):
        return product
    steps, wide = view.partition, accumulator_of(node)
    of_rows = steps is not None and positions_of_step(product.row, steps) > 0
    narrow = bool(subject.products) or result.dtype is not wide
    form = _blocking_of(view.facts, product, wide, narrow, of_rows)
    return Fits(form, steps is None or of_rows or loops_of_steps(product.outer, steps) > 0)


@dataclass(frozen=True, slots=True)
class NarrowBlocking:
    """wide: the dtype of sums; lanes: of vectors; block: elements of the depth; narrow: whether sums are on the stack
    first, and what follows is computed of them; of_rows: whether the steps number rows. rows: at once; later: rows
    further on are fetched.
    """

    product: Product
    wide: DType
    lanes: int
    block: int
    narrow: bool
    of_rows: bool
    rows: int
    later: bool


def _blocking_of(facts: Facts, product: Product, wide: DType, narrow: bool, of_rows: bool) -> NarrowBlocking:
    columns, depth, row = product.column.size, product.depth.size, product.row.lhs * product.left.dtype.bytes
    lanes = lanes_for(facts.vector_bits, wide, depth, columns)
    # The columns of a block take half of the first cache.
    block = facts.processor.first_cache_bytes // 2 // (columns * wide.bytes) // lanes * lanes
    # Rows are far in the last cache, or beyond it.
    later = row >= LONG_ROW_BYTES and row * product.row.size >= 3 * facts.processor.last_cache_bytes // 4
    rows = STREAM_ROWS if later and columns == 1 else rows_at_once(columns, facts.processor.vector_registers)
    return NarrowBlocking(product, wide, lanes, block, narrow, of_rows, rows, later)


def slim_product_of(facts: Facts, node: Node, result: Buffer) -> Product | str:
    """The product with the many rows on its left; why it is not of this kind."""
    lhs, rhs = node.inputs
    wide = accumulator_of(node)
    if facts.strict or facts.vector_bits < MINIMUM_VECTOR_BITS:
        return (
            "sums are in order" if facts.strict else fewer(facts.vector_bits, "bits of a vector", MINIMUM_VECTOR_BITS)
        )
    if wide not in (DType.F32, DType.F64) or not result.dtype.is_float:
        return f"sums are of {wide.value}, results of {result.dtype.value}"
    if any(x.writer is not None or not _is_read(x.dtype, wide) for x in node.inputs):
        return "an operand is not in memory, or not read in vectors"
    batch, rows, columns, contracted = dimensions_of(node)
    if len(contracted) != 1:
        return f"{len(contracted)} contracting dimensions"
    flipped = [[d.flipped() for d in side] for side in (batch, columns, rows, contracted)]
    sides = (False, lhs, rhs, (batch, rows, columns, contracted)), (True, rhs, lhs, flipped)
    reasons = []
    for copied, left, right, (around, many, few, (depth,)) in sides:
        reasons.append(_why_not(facts, wide, many, few, depth, copied))
        if not reasons[-1]:
            column = few[0] if few else Dimension(1, 0, 0, 0)
            operands = Operand.of(left), Operand.of(right)
            return Product(*operands, many[-1], column, depth, (*around, *many[:-1]))
    return reasons[0] if reasons[0] == reasons[1] else f"left: {reasons[0]}; right: {reasons[1]}"


def _why_not(
    facts: Facts, wide: DType, many: Sequence[Dimension], few: Sequence[Dimension], depth: Dimension, copied: bool
) -> str:
    """Why these are not many rows along memory, and few columns; empty if they are. copied: of them the tile's B is."""
    if not many or many[-1].size < MINIMUM_ROWS:
        return fewer(many[-1].size if many else 1, "rows", MINIMUM_ROWS)
    if len(few) > 1 or depth.lhs != 1:
        return f"{len(few)} dimensions of columns" if len(few) > 1 else "rows do not lie along memory"
    columns = few[0].size if few else 1
    lanes = lanes_for(facts.vector_bits, wide, depth.size, columns)
    crowded = facts.processor.vector_registers <= FEW_REGISTERS
    most = MAXIMUM_COLUMNS_OF_FEW if crowded and not copied else MAXIMUM_COLUMNS
    if columns > most:
        return more(columns, "columns", most)
    if depth.size < MINIMUM_ROW_VECTORS * lanes:
        return fewer(depth.size, "elements of a row", MINIMUM_ROW_VECTORS * lanes)
    size = depth.size * columns * wide.bytes
    return more(size, "bytes of columns", MAXIMUM_COLUMN_BYTES) if size > MAXIMUM_COLUMN_BYTES else ""


def lanes_for(vector_bits: int, wide: DType, depth: int, columns: int) -> int:
    """Of the vectors: for a single column half or a quarter of the processor's, if its rows are short. Plain loops
    would gather elements of several such rows, which takes several times as long; more columns have register tiles.
    """
    lanes, least = vector_bits // (8 * wide.bytes), MINIMUM_VECTOR_BITS // (8 * wide.bytes)
    while columns == 1 and depth < MINIMUM_ROW_VECTORS * lanes and lanes > least:
        lanes //= 2
    return lanes


def _is_read(dtype: DType, wide: DType) -> bool:
    return dtype is wide or converts_in_vectors(dtype, wide)


def emit(e: Elemental, subject: Subject, form: NarrowBlocking, steps: Steps | None) -> None:
    """Emit the loops of a product."""
    _SlimProduct(e, form, subject.product_result, epilogue(e, subject), steps).emit()


@dataclass(frozen=True, slots=True)
class _Part:
    """A block of the depth: its first element, and how many it has."""

    first: Index
    depth: int


class _SlimProduct:
    """One product. Offsets are in elements of each buffer."""

    def __init__(
        self,
        e: Elemental,
        form: NarrowBlocking,
        result: Buffer,
        write: Callable[[Indices], None] | None,
        steps: Steps | None,
    ):
        self.e, self.b, self.form, self.result, self.write, self.steps = e, e.b, form, result, write, steps
        self.product, self.wide, self.lanes, self.block = form.product, form.wide, form.lanes, form.block
        b, columns, depth = self.b, form.product.column.size, form.product.depth.size
        self.element = raw_type(b.types, form.wide)
        self.columns = b.alloca(self.element, -(-depth // self.lanes) * self.lanes * columns, 64)
        self.sums = b.alloca(self.element, BAND_ROWS * columns, 64) if form.narrow else None
        self.coordinates: dict[int, Index] = {}

    def emit(self) -> None:
        b, p = self.b, self.product
        loops, places = open_loops(b, p.outer, None if self.form.of_rows else self.steps)
        offsets: list[Index] = [0, 0, 0]
        for d, place in zip(p.outer, places, strict=True):
            self.coordinates |= d.split(b, place)
            offsets = [b.add(o, b.mul(place, s)) for o, s in zip(offsets, (d.lhs, d.rhs, d.out), strict=True)]
        self.left, self.right, self.out = offsets
        self._pack()
        first, end = bounds(b, self.steps if self.form.of_rows else None, p.row.size)
        if self.sums is None and p.depth.size <= self.block:
            self._multiply(first, b.sub(end, first))
        else:
            with b.loop(first, end, BAND_ROWS, unroll=Unroll.NONE) as band:
                count = b.least(b.sub(end, band.index), BAND_ROWS)
                self._multiply(band.index, count)
                if self.sums is not None:
                    self._finish(band.index, count)
        b.close_loops(loops)

    def _parts(self, visit: Callable[[_Part], None]) -> None:
        """Loops over blocks of the depth."""
        for first, depth in chunks(self.b, 0, self.product.depth.size, self.block, Unroll.NONE, bare=False):
            visit(_Part(first, depth))

    def _copies(self, part: _Part):
        return self.b.pointer(self.columns, self.b.mul(part.first, self.product.column.size), self.element)

    def _pack(self) -> None:
        b, p = self.b, self.product
        helper = SlimColumns(p.right.dtype, self.wide, self.lanes, b.fma_hardware)

        def pack(part: _Part) -> None:
            at = b.add(self.right, b.mul(part.first, p.depth.rhs))
            places = [self._place(p.right, at), self._copies(part)]
            helper.call(b, places, [p.column.size, part.depth, p.column.rhs, p.depth.rhs])

        self._parts(pack)

    def _place(self, buffer: Buffer | Operand, offset: Index):
        return self.b.pointer(self.e.pointers[buffer.argument], offset, raw_type(self.b.types, buffer.dtype))

    def _multiply(self, top: Index, count: Index) -> None:
        """The sums of `count` rows from `top` on."""
        b, p, columns = self.b, self.product, self.product.column.size
        distances = (p.row.out, p.column.out) if self.sums is None else (columns, 1)
        dense = distances[0] == columns and (columns == 1 or distances[1] == 1)
        form = self.form
        to = self._place(self.result, b.add(self.out, b.mul(top, p.row.out))) if self.sums is None else self.sums

        def multiply(part: _Part) -> None:
            rests = part.depth % self.lanes != 0
            tile = SlimTile(
                p.left.dtype, self.wide, form.rows, columns, self.lanes, rests, dense, form.later, b.fma_hardware
            )
            at = b.add(b.add(self.left, b.mul(top, p.row.lhs)), part.first)
            adds = b.compare_integers("ne", b.materialize(part.first), b.materialize(0))
            numbers = [count, part.depth, p.row.lhs, *distances, b.extui(adds, b.types.i64)]
            tile.call(b, [self._place(p.left, at), self._copies(part), to], numbers)

        self._parts(multiply)

    def _finish(self, top: Index, count: Index) -> None:
        """Round the sums of `count` rows from `top` on into the result, or pass them to `write`."""
        b, p, dtype = self.b, self.product, self.result.dtype
        assert self.sums is not None
        with b.loop(0, count, unroll=Unroll.NONE) as row, b.loop(0, p.column.size, unroll=Unroll.NONE) as column:
            at = b.add(b.mul(row.index, p.column.size), column.index)
            value: Scalar = b.load(b.pointer(self.sums, at, self.element), self.element, self.wide.bytes)
            value = narrow(b, self.wide, dtype, value)
            place = b.add(top, row.index)
            if self.write is not None:
                found = self.coordinates | p.row.split(b, place) | p.column.split(b, column.index)
                index = tuple(found.get(d, 0) for d in range(len(self.result.dims)))
                b.remember((self.result, index, False), value)
                self.write(index)
            else:
                target = b.add(self.out, b.add(b.mul(place, p.row.out), b.mul(column.index, p.column.out)))
                b.store(flatten(encode(b, dtype, value))[0], self._place(self.result, target), dtype.bytes)
