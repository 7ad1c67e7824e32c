"""The register tile of matrix products as a function of a module of its own, which the kernels of all products call.

Its sizes and strides are arguments, so that its text is the same in every program: it is compiled once a process, and
kept in the cache. A kernel has the loops around it, which LLVM compiles in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...codegen.field.element import constant
from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Pointer, Unroll, Value
from ..core.elements import decode, flatten, raw_type
from ..loops.elemental import load_element
from ..loops.helper import call_helper, memory_types
from ..numerics.convert import convert_to
from .dot_dtypes import IN_VECTORS
from .dot_words import multiply_add, word_of

ROWS_IN_TURN = 8
"""Rows of A from which lines are fetched in turn: at least a tile's, at most the elements of a line."""


@dataclass(frozen=True, slots=True)
class Tile:
    """rows × columns sums in vectors of `lanes`.

    left, right: dtypes of factors in memory, converted to `wide`; total: of the memory that sums are stored to. unit:
    which stride of A is 1: of contracting elements (k), of rows (m), or none (-). packed: the distance of rows of B
    that are aligned vectors; 0: it is an argument, and they are not. apart: into how many sums each vector is split.
    masked: only some of the last columns are stored. ahead: the dtype of what is fetched of A, or None. fma: whether
    the target has fused multiply-adds. words: how many elements a place of the depth has (dot_words.py); if several,
    sums begin with the row in front of B's first one. pairs: two neighbours of a row of A, bf16, are read at once.
    later: whether rows of B are fetched ahead. parts: of an element, which are neighbours in A and in a row of B, as
    they are in memory; of each vector there are sums of the products with either part of A's element, which are joined.
    """

    wide: DType
    left: DType
    right: DType
    total: DType
    rows: int
    columns: int
    lanes: int
    unit: str
    packed: int
    apart: int
    masked: bool
    ahead: DType | None
    fma: bool
    words: int = 1
    pairs: bool = False
    later: bool = False
    parts: int = 1

    @property
    def name(self) -> str:
        dtypes = ".".join(d.value for d in (self.wide, self.left, self.right, self.total))
        ahead = "" if self.ahead is None else f".{self.ahead.value}"
        marks = f"{self.unit}{self.packed}{'m' * self.masked}{'p' * self.pairs}{'' if self.words == 1 else self.words}"
        marks += f"{'f' * self.later}{'c' * (self.parts - 1)}"
        return f"mlir.tile.{dtypes}.{self.rows}x{self.columns}x{self.lanes}.{self.apart}.{marks}{ahead}"

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of A, B and sums, and of what is fetched; their offsets; the stride
        along A's rows and that of B's rows; the depth; the stride of rows of sums; whether sums are added (0 or 1); the
        columns to store; the starts of A's other rows; the stride of rows of what is fetched; the distance of what is
        fetched of B; the lines of a row of sums to fetch for writing.
        """
        held = [raw_type(b.types, d) for d in (self.left, self.right, self.total, self.ahead) if d is not None]
        numbers = 6 + self.starts + (self.ahead is not None) + self.later
        return [*memory_types(b, held), *[b.types.i64] * (len(held) + numbers)]

    @property
    def starts(self) -> int:
        """How many rows of A begin at offsets that are arguments. Where LLVM knew that they are at equal distances,
        it would compute each from the one before, in each step.
        """
        return 1 if self.unit == "m" else self.rows

    def call(self, b: Builder, places: Sequence[Pointer], numbers: Sequence[Index]) -> None:
        """Call the function. places: the first elements of A, B and sums, and of what is fetched; numbers: the others
        of the parameters.
        """
        call_helper(b, self, places, numbers, len(places))

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        _Body(b, self).emit(parameters)


class _Body:
    """The function's body."""

    def __init__(self, b: Builder, tile: Tile) -> None:
        self.b, self.tile = b, tile
        self.element = raw_type(b.types, tile.wide)
        self.total = raw_type(b.types, tile.total)
        whole = tile.columns.bit_count() == 1 and tile.words == 1
        self.lanes = tile.columns if whole else tile.lanes
        self.vectors = tile.columns // self.lanes
        self.vector = b.vector(self.lanes, self.element)

    def emit(self, parameters: Sequence[Value]) -> None:
        b, count = self.b, 3 if self.tile.ahead is None else 4
        self.memory, offsets, numbers = parameters[:count], parameters[count : 2 * count], parameters[2 * count :]
        self.left_at, self.right_at, self.out_at, *ahead_at = offsets
        self.step, right_row, self.depth, self.out_row, adds, self.columns, *others, lines = numbers
        self.later: Index = others.pop() if self.tile.later else 0
        self.right_row: Index = self.tile.packed or right_row
        self.starts, self.ahead = [0, *others[: self.tile.starts - 1]], [*ahead_at, *others[self.tile.starts - 1 :]]
        self._fetch_results(lines)
        sums = self._sums()
        adding = b.branch(b.compare_integers("ne", adds, b.constant(0, b.types.i64)), [])
        for side, added in ((0, True), (1, False)):
            with adding.side(side):
                for n, value in enumerate(sums):
                    self._store(value, *divmod(n, self.vectors), added)

    def _fetch_results(self, lines: Value) -> None:
        """Fetch the lines of the result that a tile replaces or adds to, while its sums are computed."""
        b, line = self.b, self.b.processor.line_bytes // self.tile.total.bytes
        with b.loop(0, self.tile.rows, unroll=Unroll.NONE) as row, b.loop(0, lines, unroll=Unroll.NONE) as column:
            place = b.add(b.mul(row.index, self.out_row), b.mul(column.index, line))
            b.prefetch(b.pointer(self.memory[2], b.add(self.out_at, place), self.total), writes=True)

    def _sums(self) -> list[Value]:
        b, tile = self.b, self.tile
        zero = b.filled(0, self.vector)
        count = tile.rows * tile.parts * self.vectors
        begin = [zero] * (tile.apart * count)
        if tile.words > 1 and not tile.wide.is_float:
            begin = [self._right(-1, v * self.lanes) for v in range(self.vectors)] * tile.rows
        if tile.pairs:
            return self._sums_of_pairs(begin)
        with b.loop(0, self.depth, tile.apart, begin, Unroll.NONE) as loop:
            sums: list[Value] = []
            for turn in range(tile.apart):
                k = b.add(loop.index, turn)
                sources = [self._right(k, v * self.lanes) for v in range(self.vectors)]
                for m in range(tile.rows * tile.parts):
                    factor = b.op("vector.broadcast", self._left(m, k), type=self.vector)
                    sums += [self._multiply_add(factor, x, loop.carried[len(sums) + v]) for v, x in enumerate(sources)]
                if tile.later:
                    self._fetch_right(k)
                if tile.ahead is not None:
                    self._fetch_left(k)  # in front of the loads, LLVM would load all factors at once
            loop.next = sums
        found = list(loop.values)
        while len(found) > count:
            half = len(found) // 2
            found = [self._plus(x, y) for x, y in zip(found[:half], found[half:], strict=True)]
        return self._joined(found) if tile.parts == 2 else found

    def _joined(self, sums: Sequence[Value]) -> list[Value]:
        """The sums of complex numbers: b = (x, y) times the real parts of A plus (-y, x) times the imaginary ones."""
        b, found = self.b, list[Value]()
        values = ", ".join([f"{constant(-1.0):.17e}, {constant(1.0):.17e}"] * (self.lanes // 2))
        sign = b.vector_constant(ir.Attribute.parse(f"dense<[{values}]> : {self.vector}"), self.vector, "sign")
        for first in range(0, len(sums), 2 * self.vectors):
            for n in range(first, first + self.vectors):
                real, imaginary = sums[n], sums[n + self.vectors]
                swapped = b.shuffled([lane ^ 1 for lane in range(self.lanes)], imaginary)
                found.append(b.fma(swapped, sign, real))
        return found

    def _sums_of_pairs(self, sums: Sequence[Value]) -> list[Value]:
        """First the even products, then the odd ones: a factor is half of a word that is broadcast from memory, and
        takes one operation. In a loop of both, LLVM keeps the words on the stack until their other half is used.
        """
        b = self.b
        for turn, (operation, number) in enumerate((("arith.shli", 16), ("arith.andi", -1 << 16))):
            words = b.vector(self.lanes, b.types.i32)
            with b.loop(0, self.depth, 2, sums, Unroll.NONE) as loop:
                k = loop.index
                sources = [self._right(b.add(k, turn), v * self.lanes) for v in range(self.vectors)]
                found: list[Value] = []
                for m in range(self.tile.rows):
                    constant = b.filled(number, words)
                    both = word_of(b, self.memory[0], self._left_place(m, k), 2)  # A[m, k] is the lower half
                    pair = b.op("vector.broadcast", both, type=words)
                    factor = b.bitcast(b.op(operation, pair, constant), self.vector)
                    found += [
                        self._multiply_add(factor, x, loop.carried[len(found) + v]) for v, x in enumerate(sources)
                    ]
                loop.next = found
            sums = list(loop.values)
        return list(sums)

    def _left_place(self, m: int, k: Index) -> Index:
        """Where A[m, k] is; of complex numbers, where factor m is: a part of row m // 2."""
        b = self.b
        parts = self.tile.parts
        words = self.tile.words if self.tile.left is not self.tile.wide else 1
        along = b.mul(k, parts * words) if self.tile.unit == "k" else b.mul(k, self.step)
        row = m if self.tile.unit == "m" else b.add(self.starts[m // parts], m % parts)
        return b.add(b.add(self.left_at, row), along)

    def _left(self, m: int, k: Index) -> Value:
        """A[m, k], converted."""
        b, dtype = self.b, self.tile.left
        if self.tile.words > 1 and dtype is DType.BF16:
            return b.bitcast(word_of(b, self.memory[0], self._left_place(m, k), 2), self.element)
        raw = load_element(b, self.memory[0], dtype, self._left_place(m, k))
        return flatten(convert_to(b, dtype, self.tile.wide, decode(b, dtype, raw)))[0]

    def _right(self, k: Index, column: int) -> Value:
        """Columns of row k of B from `column` on."""
        b, tile, dtype = self.b, self.tile, self.tile.right
        raw = raw_type(b.types, dtype)
        place = b.pointer(self.memory[1], b.add(b.add(self.right_at, b.mul(k, self.right_row)), column), raw)
        if dtype is tile.wide:
            return b.load(place, self.vector, (tile.lanes if tile.packed else 1) * dtype.bytes)
        return IN_VECTORS[dtype](b, b.load(place, b.vector(self.lanes, raw), dtype.bytes), self.vector)

    def _fetch_right(self, k: Index) -> None:
        """Fetch what the tile, or a later call, reads of a later row of B: lines a page apart, which no processor
        foresees.
        """
        b, tile, raw = self.b, self.tile, raw_type(self.b.types, self.tile.right)
        place = b.add(b.add(self.right_at, self.later), b.mul(k, self.right_row))
        for column in range(0, tile.columns, b.processor.line_bytes // tile.right.bytes):
            b.prefetch(b.pointer(self.memory[1], b.add(place, column), raw), second=True)

    def _fetch_left(self, k: Index) -> None:
        """Fetch a line of the rows of a tile; each row has its turn before k has run over the elements of a line."""
        b, tile = self.b, self.tile
        assert tile.ahead is not None
        at, stride = self.ahead
        row = b.least(b.rem(k, ROWS_IN_TURN // tile.parts), tile.rows - 1)
        offset = b.add(b.add(at, b.mul(row, stride)), b.mul(k, tile.words * tile.parts))
        b.prefetch(b.pointer(self.memory[3], offset, raw_type(b.types, tile.ahead)))

    def _multiply_add(self, x: Value, y: Value, total: Value) -> Value:
        b = self.b
        if self.tile.words > 1:
            return multiply_add(b, self.tile.words, x, y, total)
        if not self.tile.wide.is_float:
            return b.op("arith.addi", total, b.op("arith.muli", x, y))
        return b.fma(x, y, total)

    def _plus(self, total: Value, value: Value) -> Value:
        return self.b.op("arith.addf" if self.tile.wide.is_float else "arith.addi", total, value)

    def _store(self, value: Value, m: int, v: int, added: bool) -> None:
        """Store sums, or add them to their totals."""
        b, tile = self.b, self.tile
        offset = b.add(b.add(self.out_at, b.mul(self.out_row, m)), v * self.lanes)
        place = b.pointer(self.memory[2], offset, self.total)
        type = b.vector(self.lanes, self.total)
        if tile.total is not tile.wide:
            value = b.op("arith.extf", value, type=type)
        if not tile.masked or v < self.vectors - 1:
            if added:
                value = self._plus(b.load(place, type, tile.total.bytes), value)
            b.store(value, place, tile.total.bytes)
            return
        left = b.at(b.sub(self.columns, v * self.lanes))
        mask = b.op("vector.create_mask", left, type=b.vector(self.lanes, b.types.i1))
        if added:
            zero = b.filled(0, type)
            value = self._plus(b.load_masked(place, mask, zero, tile.total.bytes), value)
        b.store_masked(value, place, mask, tile.total.bytes)
