"""The register tile of large products, as a function that the kernels of all products call.

Its sizes and strides are arguments, so that its text is the same in every program: it is compiled once a process, and
kept in the cache. A kernel has the loops around it, which LLVM compiles in a fraction of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue, Unroll
from ..core.helper import call, declared
from ..core.registers import I32, I64, POINTER, memory_type, splat
from ..loops.memory import Pointer, prefetch
from .dot_words import multiply_add

ROWS_IN_TURN = 8
"""Rows of A from which lines are fetched in turn: at least a tile's, and at most the elements of a line."""


B_AHEAD = 16
"""Rows of B that are fetched before a tile reads them in place, often a page apart. A row takes some 16 cycles."""


class Along(Enum):
    """Which stride of the left operand is 1, so that its elements are at constant distances or have a common index."""

    DEPTH = "k"
    ROWS = "m"
    NEITHER = "x"

    @staticmethod
    def of(row: int, column: int) -> Along:
        return Along.DEPTH if column == 1 else Along.ROWS if row == 1 else Along.NEITHER


@dataclass(frozen=True, slots=True)
class Ahead:
    """What is fetched while a tile is computed: the first element, the distances of rows and of places in bytes."""

    first: ir.Value
    row: int
    place: int


@dataclass(frozen=True, slots=True)
class Micro:
    """A tile of `rows` × `vectors` vectors of `lanes` lanes, whose B is a panel of rows of `panel` elements; 0: it is
    read where it lies, and the distance of its rows is an argument, as is that of the row to be fetched.

    chained: there are several chains of additions. masked: only some of the last columns are stored. fetches: it
    fetches lines of the left operand. group: elements of a word (dot_words.py), which is one place of the depth; 1: of
    dtype.
    """

    dtype: DType
    rows: int
    lanes: int
    vectors: int
    panel: int
    along: Along
    chained: bool
    masked: bool
    fetches: bool
    group: int = 1

    @property
    def wraps(self) -> bool:
        """Whether sums are of integers; they begin with sums of each column (dot_words.py)."""
        return self.group > 1 and not self.dtype.is_float

    @property
    def name(self) -> str:
        shape = f"{self.rows}x{self.vectors}x{self.lanes}.{self.panel}.{self.along.value}"
        marks = f"{'c' * self.chained}{'m' * self.masked}{'a' * self.fetches}{'' if self.group == 1 else self.group}"
        return f"legacy.tile.{self.dtype.value}.{shape}{marks}"

    @property
    def starts(self) -> int:
        """How many rows of A begin at addresses that are arguments. Where LLVM knew that they are at equal distances,
        it would compute each from the one before, in each step.
        """
        return 1 if self.along is Along.ROWS else self.rows

    @property
    def width(self) -> int:
        return self.lanes * self.vectors

    @property
    def parts(self) -> tuple[int, int]:
        """(lanes of LLVM's values, their number) for a row of the tile. One value is cut into vectors of the machine at
        the end; LLVM does so well for powers of two only.
        """
        whole = self.group == 1 and self.width & (self.width - 1) == 0
        return (self.width, 1) if whole else (self.lanes, self.vectors)

    def call(
        self,
        code: Code,
        left: tuple[ir.Value, int, int],
        panel: ir.Value,
        depth: tuple[int, int],
        target: tuple[ir.Value, int],
        adds: ir.Value,
        partial: ir.Value,
        width: int,
        lines: int,
        ahead: Ahead | None,
        row: int = 0,
    ) -> None:
        """Emit a call that stores A · panel to a matrix, or adds it.

        left: the first element and the strides of A; depth: products of a sum, and of a chain of additions; target: the
        first element and the stride of rows; adds: an i64, 0 or 1; partial: memory for a tile, if there are several
        chains, or what the sums of each column begin with, if there are words; width: columns to store; lines: cache
        lines of a row of the target to fetch for writing; row: the stride of B's rows, if it lies where it was.
        """
        numbers = [left[2], *depth, target[1], lines, width, *(left[1] * r for r in range(1, self.starts))]
        values = [left[0], panel, target[0], partial, adds, *map(I64, numbers)]
        if ahead is not None:
            values += [ahead.first, I64(ahead.row), I64(ahead.place)]
        if not self.panel:
            values += [I64(row), I64(row * B_AHEAD)]
        call(code.b, self, values)

    @property
    def parameters(self) -> tuple[str, ...]:
        """Their names."""
        ahead, in_place = _AHEAD if self.fetches else (), () if self.panel else _IN_PLACE
        return (*_NAMES, *(f"row{r}" for r in range(1, self.starts)), *ahead, *in_place)

    def declare(self, module: ir.Module) -> ir.Function:
        names = self.parameters
        types = [POINTER if name in _POINTERS else I64 for name in names]
        function = declared(module, self.name, types, [_POINTERS[name] for name in names if name in _POINTERS])
        for name, parameter in zip(names, function.args, strict=True):
            parameter.name = name
            if name in _POINTERS:
                parameter.add_attribute("noundef")
        return function

    def define(self, module: ir.Module) -> None:
        _Body(self, module).emit()


_NAMES = ("a", "panel", "c", "partial", "adds", "column", "depth", "chain", "c_row", "lines", "width")
_AHEAD = ("ahead", "ahead_row", "ahead_place")
_IN_PLACE = ("b_row", "b_ahead")
_POINTERS = {"a": True, "panel": True, "c": False, "partial": False, "ahead": True}
"""Parameters that are pointers → whether they are only read."""


class _Body:
    """The function's body."""

    def __init__(self, micro: Micro, module: ir.Module) -> None:
        self.micro = micro
        function = micro.declare(module)
        self.code = Code(module, function)
        self.of = {p.name: p for p in function.args}
        lanes, self.values = micro.parts
        self.type = ir.VectorType(memory_type(micro.dtype), lanes)
        self.zero = ir.Constant(self.type, None)

    def emit(self) -> None:
        code, of, micro = self.code, self.of, self.micro
        self._fetch_target()
        starts = [of["a"], *(self._gep(of["a"], of[f"row{r}"]) for r in range(1, micro.starts))]
        if micro.chained:
            self._chains(starts)
            self._finish([self._load(place) for place in self._partials()])
        else:
            self._finish(self._sums(starts, 0, of["depth"]))
        code.b.ret_void()

    def _chains(self, starts: Sequence[ir.Value]) -> None:
        """Sums in `partial` of sums of at most `chain` products."""
        code, of = self.code, self.of
        for place in self._partials():
            self._store(self.zero, place)
        chains = code.begin_while([I64(0)])
        (first,) = chains.carried
        chains.test(code.b.icmp_unsigned("<", first, of["depth"]))
        left = code.b.sub(of["depth"], first)
        count = code.b.select(code.b.icmp_unsigned("<", left, of["chain"]), left, of["chain"])
        code.define(count, code.scope)
        for place, total in zip(self._partials(), self._sums(starts, first, count), strict=True):
            self._store(code.b.fadd(self._load(place), total), place)
        chains.close([code.b.add(first, of["chain"])])

    def _fetch_target(self) -> None:
        """Fetch the lines of C that the tile replaces or adds to, while its sums are computed."""
        code, of = self.code, self.of
        with (
            code.loop(self.micro.rows, unroll=Unroll.NEVER) as r,
            code.range(0, of["lines"], unroll=Unroll.NEVER) as line,
        ):
            b = code.b
            row = b.mul(code.value(r), b.mul(of["c_row"], I64(self.micro.dtype.bytes)))
            offset = b.add(row, b.mul(code.value(line), I64(code.view.processor.line_bytes)))
            prefetch(code, Pointer(of["c"]), DType.S8, offset, write=True)

    def _sums(self, starts: Sequence[ir.Value], first: IndexValue, count: ir.Value) -> list[ir.Value]:
        """The sums of `count` products from place `first` on: the tile's values, row by row."""
        code, micro = self.code, self.micro
        first_sums = [self.zero] * self.values
        if micro.wraps:
            first_sums = [self._load(place) for place in self._partials()[: self.values]]
        k = code.loop(count, carried=first_sums * micro.rows, unroll=Unroll.NEVER)
        sums = list(k.carried)
        place = code.value(code.add(first, k.index))
        columns = [self._load(at, micro.lanes if micro.panel else 1) for at in self._panel(place)]
        for r in range(micro.rows):
            factor = self._factor(starts, r, place)
            for v in range(self.values):
                n = r * self.values + v
                sums[n] = self._multiply_add(sums[n], factor, columns[v])
        if not micro.panel:
            self._fetch_right(place)
        if micro.fetches:
            self._fetch_left(place)  # in front, all factors are loaded behind it, in too many registers
        return k.close(sums)

    def _multiply_add(self, total: ir.Value, factor: ir.Value, columns: ir.Value) -> ir.Value:
        if self.micro.group > 1:
            return multiply_add(self.code, self.micro.group, total, factor, columns)
        if not self.micro.dtype.is_float:
            return self.code.b.add(total, self.code.b.mul(factor, columns))
        return self.code.b.fadd(total, self.code.b.fmul(factor, columns))

    def _panel(self, place: ir.Value) -> list[ir.Value]:
        row = I64(self.micro.panel) if self.micro.panel else self.of["b_row"]
        first = self._gep(self.of["panel"], self.code.b.mul(place, row, flags=("nsw",)))
        return [self._gep(first, I64(v * self.type.count)) for v in range(self.values)]

    def _factor(self, starts: Sequence[ir.Value], r: int, place: ir.Value) -> ir.Value:
        """A[r, place] in each lane."""
        b, along = self.code.b, self.micro.along
        if along is Along.ROWS:
            at = self._gep(self._gep(self.of["a"], b.mul(place, self.of["column"], flags=("nsw",))), I64(r))
        else:
            at = self._gep(
                starts[r], place if along is Along.DEPTH else b.mul(place, self.of["column"], flags=("nsw",))
            )
        aligned = self.micro.dtype.bytes // (self.micro.group if self.micro.dtype.is_float else 1)
        scalar = b.load(at, typ=self.type.element, align=aligned)
        return splat(b, scalar, self.type.count)

    def _fetch_right(self, place: ir.Value) -> None:
        """Fetch what the tile reads of a later row of B."""
        b, of, dtype = self.code.b, self.of, self.micro.dtype
        start = b.add(b.mul(place, of["b_row"], flags=("nsw",)), of["b_ahead"])
        for column in range(0, self.micro.width, self.code.view.processor.line_bytes // dtype.bytes):
            prefetch(self.code, Pointer(of["panel"]), dtype, b.add(start, I64(column)), second=True)

    def _fetch_left(self, place: ir.Value) -> None:
        """Fetch a line. When `place` has run over the elements of a line, all rows had their turn."""
        b, of = self.code.b, self.of
        turn = b.and_(place, I64(ROWS_IN_TURN - 1))
        last = I64(self.micro.rows - 1)
        row = b.select(b.icmp_unsigned("<", turn, last), turn, last)
        offset = b.add(b.mul(row, of["ahead_row"]), b.mul(place, of["ahead_place"]))
        prefetch(self.code, Pointer(of["ahead"]), DType.S8, offset)

    def _finish(self, sums: Sequence[ir.Value]) -> None:
        """Store sums to C, or add them."""
        code, micro = self.code, self.micro
        adds = code.branch(code.b.icmp_unsigned("!=", self.of["adds"], I64(0)))
        for place, total, mask in self._places(sums):
            before = self._load(place, 1) if mask is None else self._masked_load(place, mask)
            self._put(place, code.b.fadd(total, before) if micro.dtype.is_float else code.b.add(total, before), mask)
        adds.otherwise()
        for place, total, mask in self._places(sums):
            self._put(place, total, mask)
        adds.join((), ())

    def _places(self, sums: Sequence[ir.Value]) -> list[tuple[ir.Value, ir.Value, ir.Value | None]]:
        """(address in C, sum, the lanes to store)."""
        b, of, found = self.code.b, self.of, []
        for n, total in enumerate(sums):
            r, v = divmod(n, self.values)
            mask = self._mask(v) if self.micro.masked and v == self.values - 1 else None
            row = self._gep(of["c"], b.mul(of["c_row"], I64(r)))
            found.append((self._gep(row, I64(v * self.type.count)), total, mask))
        return found

    def _mask(self, v: int) -> ir.Value:
        """Which lanes of value v of a row are columns to store."""
        b, lanes = self.code.b, self.type.count
        numbers = ir.VectorType(I32, lanes)
        wide = splat(b, b.trunc(self.of["width"], I32), lanes)
        return b.icmp_unsigned("<", ir.Constant(numbers, [v * lanes + n for n in range(lanes)]), wide)

    def _put(self, place: ir.Value, value: ir.Value, mask: ir.Value | None) -> None:
        if mask is None:
            self.code.b.store(value, place, align=self.micro.dtype.bytes)
            return
        name = f"llvm.masked.store.{self._suffix()}.p0"
        self.code.intrinsic(name, ir.VoidType(), [value, place, I32(self.micro.dtype.bytes), mask])

    def _masked_load(self, place: ir.Value, mask: ir.Value) -> ir.Value:
        name = f"llvm.masked.load.{self._suffix()}.p0"
        return self.code.intrinsic(name, self.type, [place, I32(self.micro.dtype.bytes), mask, self.zero])

    def _suffix(self) -> str:
        return f"v{self.type.count}{'f' if self.micro.dtype.is_float else 'i'}{self.micro.dtype.bits}"

    def _partials(self) -> list[ir.Value]:
        """The addresses of the tile's values in `partial`."""
        count = self.micro.rows * self.values
        return [self._gep(self.of["partial"], I64(n * self.type.count)) for n in range(count)]

    def _load(self, place: ir.Value, lanes: int | None = None) -> ir.Value:
        """A value; lanes: whose bytes the address is a multiple of, a vector's if not given."""
        return self.code.b.load(place, typ=self.type, align=(lanes or self.micro.lanes) * self.micro.dtype.bytes)

    def _store(self, value: ir.Value, place: ir.Value) -> None:
        self.code.b.store(value, place, align=self.micro.lanes * self.micro.dtype.bytes)

    def _gep(self, pointer: ir.Value, offset: ir.Value) -> ir.Value:
        return self.code.b.gep(pointer, [offset], source_etype=memory_type(self.micro.dtype))
