"""Sorts of many short rows with a known order of keys: a network of exchanges over rows that lie side by side.

Rows are copied to a tile, element by element of all rows, so that a vector holds one place of several rows. Of few
elements only neighbours are exchanged, and only if the first one comes later: the sort is stable. Of more, keys are
exchanged that tell their places, too; each result's elements are fetched from there in the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from llvmlite import ir

from ...codegen.processors import Processor
from ...hlo.ir import Instruction
from ...hlo.records import dataclass
from ...planning.allocation import POOL_ALIGNMENT
from ...planning.partition import Partition
from ..core.builder import IndexValue, Unroll
from ..core.registers import I8, I64, Register
from ..loops.elemental import Elemental, Index
from ..loops.form import Results, at_least, known, needs
from ..loops.memory import Pointer, load, store
from ..loops.ranges import Steps, loops_over, numbered, pieces
from .sort_network import pair_table
from .sort_order import KeyOrder
from .sort_rows import Target

MAXIMUM_LENGTH = 64
"""Elements of a row."""

NUMBERED = (17, 1088)
"""Least elements of a row whose keys tell their places; least bits of the row's elements of all operands. A network of
neighbours has half of their square of exchanges, in each of which all operands take part; fetching an element costs as
much as some exchanges of narrow ones.
"""

NUMBERED_WITHOUT_MASKS = (8, 320)
"""The same on processors without masks: there, one condition for operands of several widths is taken apart again and
again. Measured with AVX2, pairs of 8 f32 and s32 take half of the time with places, those of 16 a quarter.
"""

MINIMUM_ROWS = 16
"""Rows below which nothing is gained."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Memory of `lanes` rows: of the keys, and of the elements of each operand, their bits and byte offsets.

    held: how many of these, the first ones, tell the order: the keys, and the places where they do not fit into keys.
    numbered: whether keys tell their places.
    """

    lanes: int
    bits: tuple[int, ...]
    offsets: tuple[int, ...]
    size: int
    held: int
    numbered: bool

    @staticmethod
    def of(length: int, key: int, elements: Sequence[int], most: int, processor: Processor) -> Tile | None:
        """The widest one of at most `most` bytes. key, elements: bits of each."""
        shortest, least = NUMBERED if processor.masks else NUMBERED_WITHOUT_MASKS
        numbered = length >= shortest and length * sum(elements) >= least
        keys = [key] if not numbered else [2 * key] if key <= 32 else [key, key]
        bits = [*keys, *elements]
        lanes = processor.line_bytes * 8 // bits[0]
        while lanes:
            sizes = [-(-length * lanes * b // 8 // POOL_ALIGNMENT) * POOL_ALIGNMENT for b in bits]
            if sum(sizes) <= most:
                offsets = tuple(sum(sizes[:n]) for n in range(len(sizes)))
                return Tile(lanes, tuple(bits), offsets, sum(sizes), len(keys), numbered)
            lanes //= 2
        return None


def tile_of(instruction: Instruction, order: KeyOrder, room: int, processor: Processor) -> Tile:
    """The tile for a sort's rows. Raises Unfit if they are too long or too few, or elements are no single numbers."""
    shapes, (dimension,) = [shape for _, shape in instruction.shape.leaves()], instruction.dimensions
    length = shapes[0].dims[dimension]
    needs(2 <= length <= MAXIMUM_LENGTH, f"rows of {length} elements, not 2 to {MAXIMUM_LENGTH}")
    needs(not any(shape.dtype.is_complex for shape in shapes), "complex numbers go along with the keys")
    rows = math.prod(shapes[0].dims) // length
    at_least(rows, MINIMUM_ROWS, "rows")
    found = Tile.of(length, order.type.width, [8 * shape.dtype.bytes for shape in shapes], room, processor)
    return known(found, f"{room} bytes of scratch memory hold no row")


@dataclass(frozen=True, slots=True)
class Abreast:
    """order: of keys. column: the dimension whose rows lie side by side: the fastest that has enough, or that with the
    most. by_steps: whether rows of neighbouring steps do instead: the column has too few, and there are more steps.
    """

    order: KeyOrder
    tile: Tile
    column: int | None
    by_steps: bool

    @staticmethod
    def of(results: Results, order: KeyOrder, tile: Tile, partition: Partition | None) -> Abreast:
        (dimension,), dims = results.root.dimensions, results.root.operands[0].shape.dims
        inside = () if partition is None else partition.dimensions
        others = [d for d in results.shape.minor_to_major if d != dimension and d not in inside]
        enough = [d for d in others if dims[d] >= tile.lanes]
        column = next(iter(enough), max(others, key=lambda d: dims[d], default=None))
        rows = 1 if column is None else dims[column]
        more = partition is not None and rows < tile.lanes and rows < partition.extent
        return Abreast(order, tile, column, more)


class SideBySide:
    """Sorts all rows, or those of steps."""

    def __init__(self, e: Elemental, instruction: Instruction, given: Abreast, results: Sequence[Target]):
        self.e, self.code, self.instruction = e, e.code, instruction
        self.order, self.tile, self.column, self.by_steps = given.order, given.tile, given.column, given.by_steps
        self.results = results
        (self.dimension,) = instruction.dimensions
        self.dims = instruction.operands[0].shape.dims
        self.length = self.dims[self.dimension]
        base = e.scratch.take(e.code, self.tile.size)
        b = e.code.b
        self.places = [b.gep(base, [I64(o)], inbounds=True, source_etype=I8) for o in self.tile.offsets]

    def emit(self, steps: Steps | None) -> None:
        inside, column = numbered(steps), self.column
        minor_first = [d for d in self.results[0].shape.minor_to_major if d != self.dimension]
        if steps is not None and self.by_steps:
            self._emit_steps(steps, [d for d in reversed(minor_first) if d not in inside])
            return
        others = [d for d in reversed(minor_first) if d != column]
        with loops_over(self.code, steps, self.dims, others) as positions:
            rows = 1 if column is None else self.dims[column]
            for first, count in pieces(self.code, rows, self.tile.lanes):
                self._sort(positions, () if column is None else (column,), first, count)

    def _emit_steps(self, steps: Steps, others: Sequence[int]) -> None:
        """Rows of neighbouring steps lie side by side."""
        code, lanes, inside = self.code, self.tile.lanes, steps.dimensions
        rows = code.range(steps.begin, code.subtract(steps.end, lanes - 1), lanes, unroll=Unroll.NEVER)
        with rows as row, loops_over(code, None, self.dims, others) as positions:
            self._sort(positions, inside, row, lanes)
        count = code.remainder(code.subtract(steps.end, steps.begin), lanes)
        rest = code.b.icmp_unsigned("!=", code.value(count), I64(0))
        with code.when(rest), loops_over(code, None, self.dims, others) as positions:
            self._sort(positions, inside, code.subtract(steps.end, count), count)

    def _sort(self, positions: Sequence[IndexValue], side: Sequence[int], first: IndexValue, count: IndexValue) -> None:
        """Sort `count` rows. side: the dimensions along which they have the numbers `first` and so on."""
        self._fill(positions, side, first, count)
        if self.tile.numbered:
            self._exchange_numbered()
        else:
            self._exchange()
        self._write(positions, side, first, count)

    def _place(
        self, positions: Sequence[IndexValue], side: Sequence[int], row: IndexValue, at: IndexValue
    ) -> list[IndexValue]:
        """The position of an element: the one at `at` of row number `row` along `side`."""
        place, sizes = list(positions), [self.dims[d] for d in side]
        for d, position in zip(side, self.code.split(row, sizes), strict=True):
            place[d] = position
        place[self.dimension] = at
        return place

    def _fill(self, positions: Sequence[IndexValue], side: Sequence[int], first: IndexValue, count: IndexValue) -> None:
        """Copy rows to the tile, with their keys."""
        code = self.code
        at, lane, close = self._loops(count, self.length, len(side) > 1)
        place = self._place(positions, side, code.add(first, lane), at)
        values = [self.e.value(o, Index.at(code, o.shape, place)) for o in self.instruction.operands]
        offset = code.add(code.multiply(at, self.tile.lanes), lane)
        for n, key in enumerate(self._keys(values, at)):
            code.b.store(key, self._key_place(n, offset), align=key.type.width // 8)
        for o, start, value in zip(self.instruction.operands, self.places[self.tile.held :], values, strict=True):
            store(code, Pointer(start), o.shape.dtype, offset, value)
        close()

    def _keys(self, values: Sequence[Register], at: IndexValue) -> list[ir.Value]:
        """What is held to compare the element at a place of its row."""
        b, key, place = self.code.b, self.order.of(self.e, values), self.code.value(at)
        if not self.tile.numbered:
            return [key]
        if self.tile.held > 1:
            return [key, place]
        wide = ir.IntType(self.tile.bits[0])
        narrow = place if wide == place.type else b.trunc(place, wide)
        return [b.or_(b.shl(b.sext(key, wide), wide(key.type.width)), narrow)]

    def _key_place(self, number: int, offset: IndexValue) -> ir.Value:
        type_ = ir.IntType(self.tile.bits[number])
        return self.code.b.gep(self.places[number], [self.code.value(offset)], inbounds=True, source_etype=type_)

    def _source(self, offset: IndexValue, lane: IndexValue) -> IndexValue:
        """Where in a tile the element lies that belongs at an offset."""
        tile, code, b = self.tile, self.code, self.code.b
        if not tile.numbered:
            return offset
        number, bits = tile.held - 1, tile.bits[tile.held - 1]
        place = b.load(self._key_place(number, offset), typ=ir.IntType(bits), align=bits // 8)
        if number == 0:
            place = b.and_(place, place.type((1 << bits // 2) - 1))
        place = place if bits == I64.width else b.zext(place, I64)
        code.define(place, code.scope)
        return code.add(code.multiply(place, tile.lanes), lane)

    def _write(
        self, positions: Sequence[IndexValue], side: Sequence[int], first: IndexValue, count: IndexValue
    ) -> None:
        """Copy what is wanted of the rows to the results."""
        code = self.code
        for result, start in zip(self.results, self.places[self.tile.held :], strict=True):
            shape = result.shape
            at, lane, close = self._loops(count, shape.dims[self.dimension], len(side) > 1)
            offset = code.add(code.multiply(code.add(at, result.start), self.tile.lanes), lane)
            value = load(code, Pointer(start), shape.dtype, self._source(offset, lane))
            place = self._place(positions, side, code.add(first, lane), at)
            store(code, result.pointer, shape.dtype, code.weighted_sum(place, shape.strides), value)
            close()

    def _loops(self, count: IndexValue, length: int, splits: bool) -> tuple[IndexValue, IndexValue, Callable[[], None]]:
        """Loops over the places of `count` rows: (place in a row, row, what closes them). splits: whether the position
        of a row takes divisions.
        """
        code = self.code
        by_row = splits or self.results[0].shape.minor_to_major[0] == self.dimension
        outer = code.loop(count if by_row else length, unroll=Unroll.NEVER)
        inner = code.loop(
            length if by_row else count, unroll=Unroll.FREELY if isinstance(count, int) else Unroll.SCALAR
        )

        def close() -> None:
            inner.close()
            outer.close()

        return (inner.index, outer.index, close) if by_row else (outer.index, inner.index, close)

    def _exchange(self) -> None:
        """Exchange neighbours, of which the first has an even number or an odd one by turns, until all are in order."""
        code = self.code
        with code.loop((self.length + 1) // 2, unroll=Unroll.NEVER):
            for first in (0, 1):
                pairs = (self.length - first) // 2
                if pairs:
                    with code.loop(pairs, unroll=Unroll.NEVER) as i:
                        self._exchange_pair(code.add(code.multiply(i, 2), first))

    def _exchange_pair(self, at: IndexValue) -> None:
        b, later, behind = self.code.b, None, self.code.add(at, 1)
        for number in range(len(self.places)):
            low, high = self._fetch(number, at), self._fetch(number, behind)
            later = b.icmp_signed(">", low, high) if later is None else later
            self._put(number, at, b.select(later, high, low))
            self._put(number, behind, b.select(later, low, high))

    def _exchange_numbered(self) -> None:
        """Exchange keys of any two places, if the first one comes later, until all that is wanted is in order."""
        code, held = self.code, range(self.tile.held)
        start = min(result.start for result in self.results)
        end = max(result.start + result.shape.dims[self.dimension] for result in self.results)
        table, count = pair_table(code, self.length, start, end)
        with code.loop(2 * count, step=2, unroll=Unroll.NEVER) as i:
            b, pair = code.b, []
            for k in (0, 1):
                entry = b.gep(table, [code.value(code.add(i, k))], inbounds=True, source_etype=I8)
                pair.append(b.zext(b.load(entry, typ=I8, align=1), I64))
            low, high = ([self._fetch(number, place) for number in held] for place in pair)
            later = b.icmp_signed(">", low[-1], high[-1])
            if len(held) > 1:
                later = b.and_(later, b.icmp_signed("==", low[0], high[0]))
                later = b.or_(later, b.icmp_signed(">", low[0], high[0]))
            for number in held:
                self._put(number, pair[0], b.select(later, high[number], low[number]))
                self._put(number, pair[1], b.select(later, low[number], high[number]))

    def _fetch(self, number: int, at: IndexValue) -> ir.Value:
        """One place of all rows, of an array of the tile."""
        place, type_, align = self._vector(number, at)
        return self.code.b.load(place, typ=type_, align=align)

    def _put(self, number: int, at: IndexValue, value: ir.Value) -> None:
        place, _, align = self._vector(number, at)
        self.code.b.store(value, place, align=align)

    def _vector(self, number: int, at: IndexValue) -> tuple[ir.Value, ir.VectorType, int]:
        """(The address, the type, its alignment)."""
        bits = self.tile.bits[number]
        type_ = ir.VectorType(ir.IntType(bits), self.tile.lanes)
        place = self.code.b.gep(self.places[number], [self.code.value(at)], inbounds=True, source_etype=type_)
        return place, type_, math.gcd(bits // 8 * self.tile.lanes, POOL_ALIGNMENT)
