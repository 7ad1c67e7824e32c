"""Rows times a few columns, all of them along memory, as functions of modules of their own that the kernels of all
products call: the vectors of several rows are multiplied with those of all columns, and the sums over their lanes
become the lanes of one vector.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Pointer, Unroll, Value
from ..core.elements import decode, flatten, raw_type
from ..loops.elemental import load_element
from ..loops.helper import call_helper, memory_types
from ..numerics.convert import convert_to
from .dot_dtypes import read_vector

ROWS_AT_ONCE = 8
"""Rows, streams of memory that a processor follows at the same time."""

SUMS_AT_ONCE = 16
"""Sums, enough to hide the latency of an addition."""


def rows_at_once(columns: int, registers: int) -> int:
    """Rows whose sums, and a vector of each, are in registers beside a vector of a column."""
    return max(1, min(ROWS_AT_ONCE, SUMS_AT_ONCE // columns, (registers - 2) // (columns + 1)))


@dataclass(frozen=True, slots=True)
class SlimColumns:
    """Copies columns, converted to `wide`, to rows of whole vectors of `lanes`. Elements behind the last whole vector
    are the last ones of another, whose first ones are zeros.
    """

    source: DType
    wide: DType
    lanes: int
    fma: bool

    @property
    def name(self) -> str:
        return f"mlir.slim.columns.{self.source.value}.{self.wide.value}.{self.lanes}"

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of columns and their copies; offsets; the number of columns, of elements of each;
        the distances of columns and of their elements.
        """
        held = [raw_type(b.types, d) for d in (self.source, self.wide)]
        return [*memory_types(b, held), *[b.types.i64] * 6]

    def call(self, b: Builder, places: Sequence[Pointer], numbers: Sequence[Index]) -> None:
        """Call the function. places: of columns and copies; numbers: the others of the parameters."""
        call_helper(b, self, places, numbers, 2)

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        source, target, start, to, columns, depth, across, along = parameters
        element = raw_type(b.types, self.wide)
        rest = b.rem(depth, self.lanes)
        whole = b.sub(depth, rest)
        moved = b.rem(b.sub(self.lanes, rest), self.lanes)
        pitch = b.add(depth, moved)
        zero = b.constant(0.0, element)

        def copy(column: Index, first: Index, end: Index, by: Index) -> None:
            with b.loop(first, end, unroll=Unroll.NONE) as k:
                offset = b.add(start, b.add(b.mul(column, across), b.mul(k.index, along)))
                raw = load_element(b, source, self.source, offset)
                value = flatten(convert_to(b, self.source, self.wide, decode(b, self.source, raw)))[0]
                at = b.add(b.add(to, b.mul(column, pitch)), b.add(k.index, by))
                b.store(value, b.pointer(target, at, element), self.wide.bytes)

        with b.loop(0, columns, unroll=Unroll.NONE) as column:
            copy(column.index, 0, whole, 0)
            with b.loop(0, moved, unroll=Unroll.NONE) as k:
                at = b.add(b.add(to, b.mul(column.index, pitch)), b.add(whole, k.index))
                b.store(zero, b.pointer(target, at, element), self.wide.bytes)
            copy(column.index, whole, depth, moved)


@dataclass(frozen=True, slots=True)
class SlimTile:
    """Multiplies rows of dtype `source`, `rows` at once, with copies of `columns` columns, which are of dtype `wide`.

    `rests`: whether the depth is no multiple of the lanes. dense: the sums of all rows are adjacent, row by row. later:
    the next rows are fetched.
    """

    source: DType
    wide: DType
    rows: int
    columns: int
    lanes: int
    rests: bool
    dense: bool
    later: bool
    fma: bool

    @property
    def name(self) -> str:
        marks = f"{'r' * self.rests}{'d' * self.dense}{'f' * self.later}"
        return f"mlir.slim.{self.source.value}.{self.wide.value}.{self.rows}x{self.columns}x{self.lanes}.{marks}"

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of rows, columns and sums; offsets; the number of rows, the depth; the distance of
        rows; those of rows and columns of sums; whether sums are added (0 or 1); those of later rows from the first of
        some that are multiplied together. LLVM would compute the address of each from that of the last one.
        """
        held = [raw_type(b.types, d) for d in (self.source, self.wide, self.wide)]
        return [*memory_types(b, held), *[b.types.i64] * (8 + self.rows)]

    def call(self, b: Builder, places: Sequence[Pointer], numbers: Sequence[Index]) -> None:
        """Call the function. places: of rows, columns and sums; numbers: the others of the parameters, but the last."""
        call_helper(b, self, places, [*numbers, *(b.mul(numbers[2], r) for r in range(1, self.rows))], 3)

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        _Body(b, self, parameters).emit()


class _Body:
    """The function's body."""

    def __init__(self, b: Builder, tile: SlimTile, parameters: Sequence[Value]) -> None:
        self.b, self.tile = b, tile
        self.memory, self.starts, numbers = parameters[:3], parameters[3:6], parameters[6:]
        self.count, self.depth, self.row, self.out_row, self.out_column, self.adds, *later = numbers
        self.later = [0, *later]
        self.raw, self.element = (raw_type(b.types, d) for d in (tile.source, tile.wide))
        self.vector = b.vector(tile.lanes, self.element)

    def emit(self) -> None:
        b, tile = self.b, self.tile
        rest = b.rem(self.depth, tile.lanes)
        self.whole = b.sub(self.depth, rest)
        self.pitch = b.add(self.whole, tile.lanes if tile.rests else 0)
        self.mask = self._mask(b.sub(tile.lanes, rest)) if tile.rests else None
        self.zeros = b.filled(0, self.vector)
        together = b.sub(self.count, b.rem(self.count, tile.rows))
        with b.loop(0, together, tile.rows, unroll=Unroll.NONE) as top:
            self._rows(top.index, tile.rows)
        if tile.rows > 1:
            with b.loop(together, self.count, unroll=Unroll.NONE) as top:
                self._rows(top.index, 1)

    def _mask(self, first: Index) -> Value:
        """The lanes from one on."""
        b, lanes = self.b, self.tile.lanes
        type = b.vector(lanes, b.types.i32)
        numbers = b.vector_constant(ir.Attribute.parse(f"dense<{list(range(lanes))}> : {type}"), type, ("lanes", lanes))
        least = b.op("vector.broadcast", b.trunci(b.materialize(first), b.types.i32), type=type)
        masks, order = b.vector(lanes, b.types.i1), b.types.compare_integer["sge"]
        return b.op("arith.cmpi", numbers, least, type=masks, attributes=order)

    def _rows(self, top: Index, rows: int) -> None:
        """The sums of `rows` rows from `top` on."""
        b, tile = self.b, self.tile
        first = b.add(self.starts[0], b.mul(top, self.row))
        starts = [b.add(first, later) for later in self.later[:rows]]
        with b.loop(0, self.whole, tile.lanes, [self.zeros] * (rows * tile.columns), Unroll.NONE) as k:
            vectors = [self._of_row(start, k.index) for start in starts]
            if tile.later:
                for start in starts:
                    place = b.add(b.add(start, b.mul(self.row, tile.rows)), k.index)
                    b.prefetch(b.pointer(self.memory[0], place, self.raw), second=True)
            k.next = self._added(k.carried, vectors, k.index)
        sums: Sequence[Value] = k.values
        if self.mask is not None:
            last = b.sub(self.depth, tile.lanes)
            vectors = [b.select(self.mask, self._of_row(start, last), self.zeros) for start in starts]
            sums = self._added(sums, vectors, self.whole)
        self._store(self._across(sums), top, rows)

    def _of_row(self, start: Index, k: Index) -> Value:
        b, tile = self.b, self.tile
        place = b.pointer(self.memory[0], b.add(start, k), self.raw)
        return read_vector(b, place, tile.source, tile.wide, tile.lanes)

    def _added(self, sums: Sequence[Value], rows: Sequence[Value], k: Index) -> list[Value]:
        """The sums, row by row, with products of vectors of rows and columns."""
        b, tile, found = self.b, self.tile, list(sums)
        for n in range(tile.columns):
            at = b.add(b.add(self.starts[1], b.mul(self.pitch, n)), k)
            column = b.load(
                b.pointer(self.memory[1], at, self.element), self.vector, min(64, tile.lanes * tile.wide.bytes)
            )
            for r, row in enumerate(rows):
                place = r * tile.columns + n
                found[place] = b.fma(row, column, found[place])
        return found

    def _across(self, sums: Sequence[Value]) -> Value:
        """The sum over the lanes of each vector, in lanes of one: each step joins the halves of two vectors' parts."""
        width, vectors = self.tile.lanes, list(sums)
        while width > 1:
            width //= 2
            several = len(vectors) > 1
            pairs = (
                list(zip(vectors[::2], [*vectors[1::2], vectors[-1]], strict=False)) if several else [(vectors[0],) * 2]
            )
            vectors = [self._halves(x, y, width, several) for x, y in pairs]
        while len(vectors) > 1:
            count = ir.VectorType(vectors[0].type).shape[0]
            pairs = list(zip(vectors[::2], [*vectors[1::2], vectors[-1]], strict=False))
            vectors = [self.b.shuffled(range(2 * count), x, y) for x, y in pairs]
        return vectors[0]

    def _halves(self, x: Value, y: Value, half: int, both: bool) -> Value:
        """The first halves of the parts of x (and y) plus the second ones."""
        count = ir.VectorType(x.type).shape[0] * (2 if both else 1)
        low = [k for part in range(0, count, 2 * half) for k in range(part, part + half)]
        first, second = (self.b.shuffled([k + by for k in low], x, y) for by in (0, half))
        return self.b.op("arith.addf", first, second)

    def _store(self, sums: Value, top: Index, rows: int) -> None:
        """Store the sums, or add them to what is there."""
        b, tile, count = self.b, self.tile, rows * self.tile.columns
        parts: list[tuple[Pointer, Value]] = []
        if tile.dense and count > 1:
            at = b.add(self.starts[2], b.mul(top, tile.columns))
            parts.append((b.pointer(self.memory[2], at, self.element), b.shuffled(range(count), sums)))
        else:
            for lane in range(count):
                row, column = divmod(lane, tile.columns)
                inside = b.add(b.mul(b.add(top, row), self.out_row), b.mul(self.out_column, column))
                value = b.lane(sums, lane)
                parts.append((b.pointer(self.memory[2], b.add(self.starts[2], inside), self.element), value))
        adding = b.branch(b.compare_integers("ne", self.adds, b.constant(0, b.types.i64)), [])
        with adding.side(0):
            for place, value in parts:
                b.store(b.op("arith.addf", b.load(place, value.type, tile.wide.bytes), value), place, tile.wide.bytes)
        with adding.side(1):
            for place, value in parts:
                b.store(value, place, tile.wide.bytes)
