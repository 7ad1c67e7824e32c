"""Copies whole panels of a product's right operand, as functions that the kernels of all products call."""

from __future__ import annotations

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue, Unroll
from ..core.helper import call, declared
from ..core.registers import I64, POINTER, memory_type, transposed
from ..loops.memory import Pointer, address, load, prefetch, store
from ..numerics.convert import convert
from ..numerics.narrow import decode_vector
from .dot_pairs import PARTS, put, put_row
from .dot_words import joined

STRIP = 64
"""Rows of a panel that are packed together where B is read across them: each line of the panel is written in many
places, so that these rows should stay in the first cache.
"""

TURNED = frozenset({DType.F16, DType.BF16, DType.F32, DType.F64, DType.S8, DType.U8, DType.S16})
"""Elements of which vectors are converted, or words, and transposed."""

LINES_AHEAD = 2
"""Lines of a column that are fetched before they are read: a panel has more columns than a processor follows."""

ROWS_AHEAD = 8
"""Rows of B that are fetched before they are packed. Processors foresee accesses within a page of memory only, and rows
are often a page apart; their lines then share one set of the first cache, which holds about as many.
"""


@dataclass(frozen=True, slots=True)
class Pack:
    """Copies rows of `columns` elements of dtype `source` to adjacent rows of elements of dtype `target`. Of complex
    ones, `columns` are their parts, and each row is two of the panel (dot_pairs.py).

    across: the inner loop is along a row of B, else along a column. unit: elements of the inner loop are adjacent.
    fetches: it fetches rows ahead. lanes: of a vector, the side of squares that are transposed in registers where
    elements of a column are adjacent. group: elements of a word (dot_words.py); if several, rows are of words.
    """

    source: DType
    target: DType
    columns: int
    across: bool
    unit: bool
    fetches: bool
    lanes: int
    group: int

    @property
    def width(self) -> int:
        """Elements of a row."""
        return self.columns // PARTS if self.source.is_complex else self.columns

    @property
    def turns(self) -> bool:
        """Whether it transposes squares of vectors."""
        return self.unit and not self.across and (self.group == 1 or self.is_memory) and self.source in TURNED

    @property
    def is_memory(self) -> bool:
        """Whether words are as they lie in memory."""
        return self.unit and not self.across and self.source.bits * self.group == self.target.bits

    @property
    def name(self) -> str:
        marks = f"{'rk'[not self.across]}{'u' * self.unit}{'a' * self.fetches}{self.lanes if self.turns else ''}"
        marks += f"w{self.group}" if self.group > 1 else ""
        return f"legacy.pack.{self.source.value}.{self.target.value}.{self.columns}{marks}"

    def call(self, code: Code, source: ir.Value, target: ir.Value, rows: int, row: int, column: int) -> None:
        """row, column: the strides of B in elements."""
        call(code.b, self, [source, target, I64(rows), I64(row), I64(column)])

    def declare(self, module: ir.Module) -> ir.Function:
        return declared(module, self.name, [POINTER, POINTER, I64, I64, I64], [True, False], (0, 1), aligned=(1,))

    def define(self, module: ir.Module) -> None:
        function = self.declare(module)
        code = Code(module, function)
        source, target, rows, row, column = function.args
        body = _Body(code, self, Pointer(source), Pointer(target), row, column)
        if self.across:
            with code.range(0, rows, unroll=Unroll.NEVER) as outer:
                if self.fetches:
                    body.fetch(code.add(outer, ROWS_AHEAD))
                body.copy_row(outer)
        else:
            step = self.lanes if self.turns else STRIP
            whole = code.b.and_(rows, I64(-step))
            with code.range(0, whole, step, unroll=Unroll.NEVER) as strip:
                if self.turns:
                    body.squares(strip)
                else:
                    body.strip(strip, STRIP)
            body.strip(whole, code.b.sub(rows, whole))
        code.b.ret_void()


@dataclass(frozen=True, slots=True)
class _Body:
    """The function's arguments. row, column: the strides of B."""

    code: Code
    pack: Pack
    source: Pointer
    target: Pointer
    row: ir.Value
    column: ir.Value

    def strip(self, first: IndexValue, count: IndexValue) -> None:
        code = self.code
        with (
            code.loop(self.pack.width, unroll=Unroll.NEVER) as outer,
            code.range(0, count, unroll=Unroll.NEVER) as inner,
        ):
            self.copy(code.add(first, inner), outer)

    def squares(self, first: IndexValue) -> None:
        """As many rows of the panel from `first` on as a vector has lanes: squares, transposed in registers."""
        code, pack, lanes = self.code, self.pack, self.pack.lanes
        with code.loop(pack.columns, step=lanes, unroll=Unroll.NEVER) as i:
            ahead = code.add(first, LINES_AHEAD * code.view.processor.line_bytes // pack.target.bytes)
            vectors = []
            for n in range(lanes):
                column = code.add(i, n)
                if pack.fetches:
                    prefetch(code, self.source, pack.source, self._offset(ahead, column))
                vectors.append(self._vector(first, column))
            for n, vector in enumerate(transposed(code.b, vectors)):
                place = code.add(code.multiply(code.add(first, n), pack.columns), i)
                at = address(code, self.target, pack.target, place)
                code.b.store(vector, at, align=lanes * pack.target.bytes)

    def _vector(self, k: IndexValue, j: IndexValue) -> ir.Value:
        """A vector of column j from row k on, converted."""
        code, pack = self.code, self.pack
        at = address(code, self.source, pack.source, self._offset(k, j))
        element = memory_type(pack.target if pack.group > 1 else pack.source)
        vector = code.b.load(at, typ=ir.VectorType(element, pack.lanes), align=pack.source.bytes)
        return vector if pack.group > 1 else decode_vector(code.b, pack.source, vector)

    def copy_row(self, k: IndexValue) -> None:
        """Copy a row."""
        code, pack = self.code, self.pack
        if pack.source.is_complex and pack.unit:
            source = address(code, self.source, pack.source, self._offset(k, 0))
            put_row(code, pack.target, source, self.target, pack.columns, k)
            return
        with code.loop(pack.width, unroll=Unroll.NEVER) as inner:
            self.copy(k, inner)

    def copy(self, k: IndexValue, j: IndexValue) -> None:
        """Copy one element."""
        code, pack = self.code, self.pack
        if pack.source.is_complex:
            value = load(code, self.source, pack.source, self._offset(k, j))
            put(code, pack.target, self.target, pack.columns, k, j, value)
            return
        if pack.group > 1 and pack.is_memory:
            at = address(code, self.source, pack.source, self._offset(k, j))
            value = code.b.load(at, typ=memory_type(pack.target), align=pack.source.bytes)
        elif pack.group > 1:
            places = [self._offset(k, j, n) for n in range(pack.group)]
            value = joined(code, pack.source, [load(code, self.source, pack.source, place) for place in places])
        else:
            value = convert(code, pack.source, pack.target, load(code, self.source, pack.source, self._offset(k, j)))
        store(code, self.target, pack.target, code.add(code.multiply(k, pack.columns), j), value)

    def fetch(self, k: IndexValue) -> None:
        """Fetch a row."""
        line = self.code.view.processor.line_bytes * 8 // self.pack.source.bits
        for n in range(self.pack.group):
            for first in range(0, self.pack.width, line):
                prefetch(self.code, self.source, self.pack.source, self._offset(k, first, n))

    def _offset(self, k: IndexValue, j: IndexValue, n: int = 0) -> IndexValue:
        """Of element n of the word in row k of the panel, and column j."""
        code, pack = self.code, self.pack
        row: ir.Value | int = 1 if pack.unit and not pack.across else self.row
        column: ir.Value | int = 1 if pack.unit and pack.across else self.column
        place = code.add(code.multiply(k, pack.group), n)
        return code.add(_product(code, place, row), _product(code, j, column))


def _product(code: Code, number: IndexValue, stride: IndexValue) -> IndexValue:
    if isinstance(stride, int):
        return code.multiply(number, stride)
    product = code.b.mul(code.value(number), stride, flags=("nsw",))
    code.define(product, code.scope)
    return product
