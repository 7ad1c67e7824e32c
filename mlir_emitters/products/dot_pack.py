"""Copies whole panels of a product's right operand, as functions that the kernels of all products call."""

from __future__ import annotations

from collections.abc import Sequence

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Pointer, Unroll, Value
from ..core.elements import decode, flatten, raw_type
from ..loops.elemental import load_element
from ..loops.helper import call_helper, memory_types
from ..loops.squares import square_turned
from ..numerics.convert import convert_to
from .dot_dtypes import converts_in_vectors, read_vector
from .dot_words import WORD_BITS, word_of

DEPTH_TOGETHER = 128
"""Contracting elements that are packed together where B is stored by columns: half of the first cache."""

MINIMUM_SQUARE_SIDE = 4
"""Elements along a side of the least square that is transposed in registers."""

LINES_AHEAD = 2
"""Lines of a column that are fetched before they are read: a panel has more than a processor follows."""

ROWS_AHEAD = 6
"""Rows of B that are fetched before they are packed: often a page apart, which no processor foresees."""


@dataclass(frozen=True, slots=True)
class Pack:
    """Copies rows of `columns` elements of dtype `source` to adjacent rows of `wide`.

    unit: which stride of B is 1: along rows (n), of contracting elements (k), which the inner loop follows, or none
    (-). lanes: of a vector, which the columns are a multiple of. fetches: rows are fetched ahead. fma: whether the
    target has fused multiply-adds. parts: neighbours in memory that stay neighbours, columns each. words: contracting
    elements of a word; if several, rows of the panel are of words. Along columns (k), these are as in memory.
    """

    source: DType
    wide: DType
    columns: int
    lanes: int
    unit: str
    fetches: bool
    fma: bool
    parts: int = 1
    words: int = 1

    @property
    def name(self) -> str:
        shape = f"{self.columns}x{self.lanes}{self.unit}{'a' * self.fetches}{'c' * (self.parts - 1)}"
        shape += f"w{self.words}" * (self.words > 1)
        return f"mlir.pack.{self.source.value}.{self.wide.value}.{shape}"

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of B and of the panel; their offsets; the depth; strides of rows and columns."""
        held = [raw_type(b.types, d) for d in (self.source, self.wide)]
        return [*memory_types(b, held), *[b.types.i64] * 5]

    def call(self, b: Builder, source: Pointer, panel: Pointer, numbers: Sequence[Index]) -> None:
        """Call the function. numbers: the depth, the strides of rows and columns."""
        call_helper(b, self, [source, panel], numbers, 2)

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        source, panel, start, to, depth, row, column = parameters
        raw, element = (raw_type(b.types, d) for d in (self.source, self.wide))
        places = self.columns // self.parts

        def place(k: Index, n: Index) -> Index:
            first = b.mul(k, self.words)
            across = b.mul(first, self.parts) if self.unit == "k" else b.mul(first, row)
            return b.add(b.add(start, across), n if self.unit == "n" else b.mul(n, column))

        def target(k: Index, n: Index) -> Index:
            return b.add(b.add(to, b.mul(k, self.columns)), n)

        def copy(k: Index, n: Index) -> None:
            if self.parts > 1:
                pair = b.load(
                    b.pointer(source, place(k, b.mul(n, self.parts)), raw),
                    b.vector(self.parts, raw),
                    self.source.bytes,
                )
                at = target(k, b.mul(n, self.parts))
                b.store(pair, b.pointer(panel, at, element), self.wide.bytes)
                return
            if self.words > 1:
                value = word_of(b, source, place(k, n), self.words)
                value = b.bitcast(value, element) if self.wide.is_float else value
            else:
                code = load_element(b, source, self.source, place(k, n))
                value = flatten(convert_to(b, self.source, self.wide, decode(b, self.source, code)))[0]
            b.store(value, b.pointer(panel, target(k, n), element), self.wide.bytes)

        def strip(first: Index, count: Index) -> None:
            with b.loop(0, places, unroll=Unroll.NONE) as slow, b.loop(0, count, unroll=Unroll.NONE) as fast:
                copy(b.add(first, fast.index), slow.index)

        def squares(first: Index) -> None:
            """As many rows of the panel as a vector has lanes, of squares that are transposed in registers."""
            with b.loop(0, self.columns, self.lanes, unroll=Unroll.NONE) as loop:
                rows = []
                for n in range(self.lanes):
                    at = b.add(loop.index, n)
                    if self.fetches:
                        later = b.add(first, LINES_AHEAD * b.processor.line_bytes // self.wide.bytes)
                        b.prefetch(b.pointer(source, place(later, at), raw))
                    rows.append(self._vector(b, b.pointer(source, place(first, at), raw)))
                for n, vector in enumerate(square_turned(b, rows, self.wide.bytes)):
                    at = b.pointer(panel, target(b.add(first, n), loop.index), element)
                    b.store(vector, at, self.lanes * self.wide.bytes)

        if self.unit == "k":
            step = self.lanes if self.turns else DEPTH_TOGETHER
            rest = b.rem(depth, step)
            whole = b.sub(depth, rest)
            with b.loop(0, whole, step, unroll=Unroll.NONE) as group:
                if self.turns:
                    squares(group.index)
                else:
                    strip(group.index, DEPTH_TOGETHER)
            strip(whole, rest)
            return
        with b.loop(0, depth, unroll=Unroll.NONE) as slow:
            if self.fetches:
                for n in range(0, self.columns, b.processor.line_bytes // self.source.bytes):
                    for k in range(self.words):
                        at = b.add(place(b.add(slow.index, ROWS_AHEAD), n), b.mul(row, k))
                        b.prefetch(b.pointer(source, at, raw))
            if self._in_vectors:
                # LLVM would not: it has to test whether panel and source overlap, which takes as long as a short row.
                for n in range(0, self.columns, self.lanes):
                    starts = [b.add(place(slow.index, n), b.mul(row, k)) for k in range(self.words)]
                    rows = [b.pointer(source, start, raw) for start in starts]
                    value = self._vector(b, rows[0]) if self.words == 1 else self._joined(b, rows)
                    at = b.pointer(panel, target(slow.index, n), element)
                    b.store(value, at, self.lanes * self.wide.bytes)
            else:
                with b.loop(0, places, unroll=Unroll.NONE) as fast:
                    copy(slow.index, fast.index)

    @property
    def _in_vectors(self) -> bool:
        """Whether rows of B are copied, and converted, a vector at a time."""
        return self.unit == "n" and (self._converts or self.words > 1)

    @property
    def turns(self) -> bool:
        """Whether columns of B go through registers, in squares of vectors."""
        return (
            self.unit == "k"
            and self.parts == 1
            and (self.words > 1 or self._converts)
            and self.lanes >= MINIMUM_SQUARE_SIDE
        )

    @property
    def _converts(self) -> bool:
        return self.source is self.wide or converts_in_vectors(self.source, self.wide)

    def _joined(self, b: Builder, rows: Sequence[Pointer]) -> Value:
        """A vector of words; each holds the same number of rows of B."""
        bits, words = WORD_BITS // self.words, b.vector(self.lanes, b.types.i32)
        raw = b.vector(self.lanes, raw_type(b.types, self.source))
        extension = "arith.extui" if self.source.is_unsigned or self.source.is_float else "arith.extsi"

        def all_of(number: int) -> Value:
            return b.filled(number, words)

        total: Value | None = None
        for n, place in enumerate(rows):
            value = b.op(extension, b.load(place, raw, self.source.bytes), type=words)
            if n < self.words - 1 and extension == "arith.extsi":
                value = b.op("arith.andi", value, all_of((1 << bits) - 1))
            value = b.op("arith.shli", value, all_of(bits * n)) if n else value
            total = value if total is None else b.op("arith.ori", total, value)
        assert total is not None
        return b.bitcast(total, b.vector(self.lanes, b.types.f32)) if self.wide.is_float else total

    def _vector(self, b: Builder, place: Pointer) -> Value:
        """A vector of B, converted, or as words."""
        if self.words == 1:
            return read_vector(b, place, self.source, self.wide, self.lanes)
        raw, element = (raw_type(b.types, d) for d in (self.source, self.wide))
        value = b.load(place, b.vector(self.lanes * self.words, raw), self.source.bytes)
        return b.op("vector.bitcast", value, type=b.vector(self.lanes, element))
