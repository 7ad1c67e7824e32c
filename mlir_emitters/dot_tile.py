"""The register tile of matrix products as a function of a module of its own, which the kernels of all products call.

Its sizes and strides are arguments, so that its text is the same in every program: it is compiled once a process, and
kept in the cache. A kernel has the loops around it, which LLVM compiles in a fraction of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

from mlir import ir

from ..codegen.helpers import text_once
from ..hlo.dtypes import DType
from . import math_library, pipeline
from .builder import Builder, Index, Pointer, Unroll, Value
from .convert import convert_to
from .dot_dtypes import IN_VECTORS
from .elemental import load_element
from .elements import decode, flatten, raw_type
from .memory import Place, bytes_of

CACHE_LINE = 64  # bytes; where lines are longer, some are fetched twice
TURNS = 8  # rows of A from which lines are fetched in turn: at least a tile's, at most the elements of a line
MEMORY = 1 << 45  # bytes of the function's memrefs: more than any array has


@dataclass(frozen=True, slots=True)
class Tile:
    """rows × columns sums in vectors of `lanes`.

    left, right: dtypes of factors in memory, converted to `wide`; total: of the memory that sums are stored to. unit:
    which stride of A is 1: of contracting elements (k), of rows (m), or none (-). packed: whether rows of B are aligned
    vectors. apart: into how many sums each vector is split. masked: only some of the last columns are stored. ahead:
    the dtype of what is fetched of A, or None. fma: whether the target has fused multiply-adds.
    """

    wide: DType
    left: DType
    right: DType
    total: DType
    rows: int
    columns: int
    lanes: int
    unit: str
    packed: bool
    apart: int
    masked: bool
    ahead: DType | None
    fma: bool

    @property
    def name(self) -> str:
        dtypes = ".".join(d.value for d in (self.wide, self.left, self.right, self.total))
        ahead = "" if self.ahead is None else f".{self.ahead.value}"
        marks = f"{self.unit}{'p' * self.packed}{'m' * self.masked}"
        return f"mlir.tile.{dtypes}.{self.rows}x{self.columns}x{self.lanes}.{self.apart}.{marks}{ahead}"

    def types(self, b: Builder) -> list[ir.Type]:
        """Of the parameters: memory of A, B and sums, and of what is fetched; then numbers, as in `call`."""
        held = [raw_type(b.types, d) for d in (self.left, self.right, self.total, self.ahead) if d is not None]
        fetched = 2 if self.ahead is not None else 0
        return [*b.argument_types([MEMORY] * len(held), held), *[b.types.i64] * (NUMBERS + fetched)]


NUMBERS = 11
"""Parameters that are numbers: the offset of A, its strides of rows and of contracting elements; the offset of B and
its stride of rows; the depth; the offset of the sums, their stride of rows; whether they are added (0 or 1); columns to
store; lines of a row of sums to fetch. Where A is fetched ahead, the offset of that and its stride of rows follow.
"""


def call(b: Builder, tile: Tile, places: list[Pointer], numbers: list[Index]) -> None:
    """Call the function of a tile. places: the first elements of A, B and the sums, and of what is fetched; numbers:
    the others of the parameters, without offsets.
    """
    memory, offsets = [], []
    for place in places:
        assert isinstance(place, Place)
        memory.append(_whole(b, place.memref))
        offsets.append(place.offset)
    left, right, out = offsets[:3]
    row, step, right_row, depth, out_row, adds, columns, lines, *ahead = numbers
    given = [left, row, step, right, right_row, depth, out, out_row, adds, columns, lines, *offsets[3:], *ahead]
    b.external(tile.name, [*(m.type for m in memory), *[b.types.i64] * len(given)], None)
    b.helpers[tile.name] = tile
    attributes = {"callee": ir.FlatSymbolRefAttr.get(tile.name)}
    b.operation("func.call", [], [*memory, *map(b.materialize, given)], attributes)


def _whole(b: Builder, memref: Value) -> Value:
    """A memref as one of MEMORY bytes, the parameters' type."""
    element = ir.MemRefType(memref.type).element_type
    count = MEMORY // bytes_of(element)
    attributes = {
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        "static_offsets": ir.DenseI64ArrayAttr.get([0]),
        "static_sizes": ir.DenseI64ArrayAttr.get([count]),
        "static_strides": ir.DenseI64ArrayAttr.get([1]),
    }
    type = ir.MemRefType.get([count], element)
    make = lambda: b.at_entry("memref.reinterpret_cast", type, [memref], attributes)  # noqa: E731
    return b.constant_once(("whole", memref), make)


def text_of(tile: Tile, session: pipeline.Session, vector_bits: int) -> str:
    """LLVM IR of a module with the function of a tile. pipeline.LOCK must be held."""
    return text_once((tile, vector_bits), lambda: _text(tile, session, vector_bits))


def _text(tile: Tile, session: pipeline.Session, vector_bits: int) -> str:
    with session.context, ir.Location.unknown():
        module = ir.Module.create()
        b = Builder(module, session.types, strict=False, fma=tile.fma, vector_bits=vector_bits)
        _Body(b, tile).emit()
        math_library.expand(b)
        pipeline.lower(module, session.passes)
        return pipeline.translate(module)


class _Body:
    """The function's body."""

    def __init__(self, b: Builder, tile: Tile) -> None:
        self.b, self.tile = b, tile
        self.element = raw_type(b.types, tile.wide)
        self.total = raw_type(b.types, tile.total)
        whole = tile.columns.bit_count() == 1
        self.lanes = tile.columns if whole else tile.lanes
        self.vectors = tile.columns // self.lanes
        self.vector = ir.VectorType.get([self.lanes], self.element)

    def emit(self) -> None:
        b, tile = self.b, self.tile
        with b.function(tile.name, tile.types(b), [], {}) as parameters:
            count = 3 if tile.ahead is None else 4
            self.memory, numbers = parameters[:count], parameters[count:]
            self.left_at, self.row, self.step, self.right_at, self.right_row, self.depth = numbers[:6]
            self.out_at, self.out_row, adds, self.columns, lines, *self.ahead = numbers[6:]
            self._fetch_results(lines)
            sums = self._sums()
            adding = b.branch(b.compare_integers("ne", adds, b.constant(0, b.types.i64)), [])
            for side, added in ((0, True), (1, False)):
                with adding.side(side):
                    for n, value in enumerate(sums):
                        self._store(value, *divmod(n, self.vectors), added)
            b.give()

    def _fetch_results(self, lines: Value) -> None:
        """Fetch the lines of the result that a tile replaces or adds to, while its sums are computed."""
        b, line = self.b, CACHE_LINE // self.tile.total.bytes
        with b.loop(0, self.tile.rows, unroll=Unroll.NONE) as row, b.loop(0, lines, unroll=Unroll.NONE) as column:
            place = b.add(b.mul(row.index, self.out_row), b.mul(column.index, line))
            b.prefetch(b.pointer(self.memory[2], b.add(self.out_at, place), self.total), writes=True)

    def _sums(self) -> list[Value]:
        b, tile = self.b, self.tile
        kind = 0.0 if tile.wide.is_float else 0
        zero = b.op("vector.broadcast", b.constant(kind, self.element), type=self.vector)
        count = tile.rows * self.vectors
        with b.loop(0, self.depth, tile.apart, [zero] * (tile.apart * count), Unroll.NONE) as loop:
            sums: list[Value] = []
            for turn in range(tile.apart):
                k = b.add(loop.index, turn)
                sources = [self._right(k, v * self.lanes) for v in range(self.vectors)]
                for m in range(tile.rows):
                    factor = b.op("vector.broadcast", self._left(m, k), type=self.vector)
                    sums += [self._multiply_add(factor, x, loop.carried[len(sums) + v]) for v, x in enumerate(sources)]
                if tile.ahead is not None:
                    self._fetch_left(k)  # in front of the loads, LLVM would load all factors at once
            loop.next = sums
        found = list(loop.values)
        while len(found) > count:
            half = len(found) // 2
            found = [self._plus(x, y) for x, y in zip(found[:half], found[half:], strict=True)]
        return found

    def _left(self, m: int, k: Index) -> Value:
        """A[m, k], converted."""
        b, dtype = self.b, self.tile.left
        along = k if self.tile.unit == "k" else b.mul(k, self.step)
        row = m if self.tile.unit == "m" else b.mul(self.row, m)
        place = b.add(b.add(self.left_at, row), along)
        raw = load_element(b, self.memory[0], dtype, place)
        return flatten(convert_to(b, dtype, self.tile.wide, decode(b, dtype, raw)))[0]

    def _right(self, k: Index, column: int) -> Value:
        """Columns of row k of B from `column` on."""
        b, tile, dtype = self.b, self.tile, self.tile.right
        raw = raw_type(b.types, dtype)
        place = b.pointer(self.memory[1], b.add(b.add(self.right_at, b.mul(k, self.right_row)), column), raw)
        if dtype is tile.wide:
            return b.load(place, self.vector, (tile.lanes if tile.packed else 1) * dtype.bytes)
        return IN_VECTORS[dtype](b, b.load(place, ir.VectorType.get([self.lanes], raw), dtype.bytes), self.vector)

    def _fetch_left(self, k: Index) -> None:
        """Fetch a line of the rows of a tile; each row has its turn before k has run over the elements of a line."""
        b, tile = self.b, self.tile
        assert tile.ahead is not None
        at, stride = self.ahead
        row = b.binary("minsi", b.materialize(b.rem(k, TURNS)), tile.rows - 1)
        offset = b.add(b.add(at, b.mul(row, stride)), k)
        b.prefetch(b.pointer(self.memory[3], offset, raw_type(b.types, tile.ahead)))

    def _multiply_add(self, x: Value, y: Value, total: Value) -> Value:
        b = self.b
        if not self.tile.wide.is_float:
            return b.op("arith.addi", total, b.op("arith.muli", x, y))
        if b.fma_hardware:
            return b.op("math.fma", x, y, total)
        return b.op("arith.addf", total, b.op("arith.mulf", x, y))

    def _plus(self, total: Value, value: Value) -> Value:
        return self.b.op("arith.addf" if self.tile.wide.is_float else "arith.addi", total, value)

    def _store(self, value: Value, m: int, v: int, added: bool) -> None:
        """Store sums, or add them to their totals."""
        b, tile = self.b, self.tile
        offset = b.add(b.add(self.out_at, b.mul(self.out_row, m)), v * self.lanes)
        place = b.pointer(self.memory[2], offset, self.total)
        type = ir.VectorType.get([self.lanes], self.total)
        if tile.total is not tile.wide:
            value = b.op("arith.extf", value, type=type)
        if not tile.masked or v < self.vectors - 1:
            if added:
                value = self._plus(b.load(place, type, tile.total.bytes), value)
            b.store(value, place, tile.total.bytes)
            return
        left = b.at(b.sub(self.columns, v * self.lanes))
        mask = b.op("vector.create_mask", left, type=ir.VectorType.get([self.lanes], b.types.i1))
        if added:
            zero = b.op("vector.broadcast", b.constant(0.0 if tile.total.is_float else 0, self.total), type=type)
            value = self._plus(b.load_masked(place, mask, zero, tile.total.bytes), value)
        b.store_masked(value, place, mask, tile.total.bytes)
