"""Products of a tall matrix and a few columns, as functions that the kernels of all products call: every row of the
tall one lies along the contracting dimension, so its vectors are multiplied with those of all columns, which are packed
as rows. The tile of large products would fill a part of its vectors of columns only.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue, Unroll
from ..core.helper import call, declared
from ..core.registers import I32, I64, POINTER, memory_type, poison, shuffled, splat
from ..core.stack import ALIGNMENT
from ..loops.memory import Pointer, load, prefetch, store
from ..numerics.convert import convert
from ..numerics.narrow import decode_vector
from .dot_pairs import PARTS

FLOATS = frozenset({DType.F16, DType.BF16, DType.F32, DType.F64})
"""Dtypes of which vectors are converted to those of sums as they are read."""

HEIGHTS = (8, 4, 3, 2, 1)
"""Rows that may be multiplied together: each is a stream of memory, of which processors follow some ten."""

MOST_SUMS = 16
"""Sums of these rows: more of them hide no more latency."""


def height_of(columns: int, registers: int) -> int:
    """Rows that are multiplied together: registers hold their sums, a vector of a column, and one of each row, or the
    other way round.
    """
    fits = (h for h in HEIGHTS if h * columns + min(h, columns) + 1 < registers and h * columns <= MOST_SUMS)
    return next(fits, 1)


@dataclass(frozen=True, slots=True)
class PackColumns:
    """Copies columns to adjacent rows of whole vectors. What is left behind the last whole vector of a row is at the
    end of a vector of its own that begins with zeros. A column of complex numbers becomes two rows of parts: the
    products of a row (a, b) with (re, -im) add up to the real part, those with (im, re) to the other.
    """

    source: DType
    target: DType
    lanes: int

    @property
    def name(self) -> str:
        return f"legacy.columns.{self.source.value}.{self.target.value}.{self.lanes}"

    def call(
        self, code: Code, source: ir.Value, target: ir.Value, sizes: tuple[int, int], row: int, along: int
    ) -> None:
        """sizes: of columns, of elements of each, or of their parts; row, along: the distances of columns and of their
        elements.
        """
        call(code.b, self, [source, target, *map(I64, (*sizes, row, along))])

    def declare(self, module: ir.Module) -> ir.Function:
        return declared(module, self.name, [POINTER, POINTER, *[I64] * 4], [True, False], (0, 1), aligned=(1,))

    def define(self, module: ir.Module) -> None:
        function = self.declare(module)
        code = Code(module, function)
        b = code.b
        source, target, columns, depth, row, along = function.args
        whole = b.and_(depth, I64(-self.lanes))
        rest = b.sub(depth, whole)
        rests = b.icmp_unsigned("!=", rest, I64(0))
        pitch = b.add(whole, b.select(rests, I64(self.lanes), I64(0)))
        shift = b.sub(pitch, depth)
        for value in (whole, pitch, shift):
            code.define(value, code.scope)

        parts = PARTS if self.source.is_complex else 1

        def put(column: ir.Value, n: int, at: ir.Value, value: ir.Value) -> None:
            """Store to row n of those that a column becomes."""
            first = code.b.mul(code.b.add(code.b.mul(column, I64(parts)), I64(n)), pitch)
            store(code, Pointer(target), self.target, code.b.add(first, at), value)

        def copy(column: ir.Value, first: IndexValue, end: IndexValue, moved: IndexValue, unroll: Unroll) -> None:
            with code.range(code.divide(first, parts), code.divide(end, parts), unroll=unroll) as k:
                b, place = code.b, code.value(k)
                offset = b.add(b.mul(column, row), b.mul(place, along))
                code.define(offset, code.scope)
                value = load(code, Pointer(source), self.source, offset)
                at = b.add(b.mul(place, I64(parts)), code.value(moved))
                if isinstance(value, tuple):
                    re, im = value
                    for n, pair in enumerate(((re, b.fneg(im)), (im, re))):
                        put(column, n, at, pair[0])
                        put(column, n, b.add(at, I64(1)), pair[1])
                else:
                    put(column, 0, at, convert(code, self.source, self.target, value))

        with code.range(0, columns, unroll=Unroll.NEVER) as columns_:
            column = code.value(columns_)
            copy(column, 0, whole, 0, Unroll.NEVER)
            with code.range(whole, code.add(whole, shift), unroll=Unroll.SCALAR) as zero:
                for n in range(parts):
                    put(column, n, code.value(zero), ir.Constant(memory_type(self.target), 0))
            copy(column, whole, depth, shift, Unroll.SCALAR)
        code.b.ret_void()


def pitch_of(depth: int, lanes: int) -> int:
    """The elements of a packed column."""
    return -(-depth // lanes) * lanes


@dataclass(frozen=True, slots=True)
class Narrow:
    """Multiplies rows of dtype `source` with `columns` packed columns of dtype `dtype`, `rows` of them at once.

    fetches: it fetches the next rows. `rests`: the depth is no multiple of the lanes. dense: the
    sums of a row are adjacent, and those of the next one follow.
    """

    source: DType
    dtype: DType
    rows: int
    columns: int
    lanes: int
    fetches: bool
    rests: bool
    dense: bool

    @property
    def name(self) -> str:
        marks = f"{'a' * self.fetches}{'r' * self.rests}{'d' * self.dense}"
        return f"legacy.narrow.{self.source.value}.{self.dtype.value}.{self.rows}x{self.columns}x{self.lanes}{marks}"

    def call(
        self,
        code: Code,
        source: ir.Value,
        packed: ir.Value,
        target: ir.Value,
        rows: IndexValue,
        depth: int,
        row: int,
        distances: tuple[int, int],
        adds: ir.Value,
    ) -> None:
        """rows: their number; row: their distance; distances: of the target's rows and columns; adds: an i64, 0 or 1:
        whether sums are added to the target. Rows that are multiplied together begin at arguments of their own: LLVM,
        where it knows of equal distances, computes each address from the last one, and loads wait.
        """
        numbers = [
            code.value(rows),
            *map(I64, (depth, row, *distances)),
            adds,
            *(I64(row * r) for r in range(1, self.rows)),
        ]
        call(code.b, self, [source, packed, target, *numbers])

    def declare(self, module: ir.Module) -> ir.Function:
        types = [POINTER] * 3 + [I64] * (5 + self.rows)
        return declared(module, self.name, types, [True, True, False], (0, 1, 2), aligned=(1,))

    def define(self, module: ir.Module) -> None:
        _Body(self, module).emit()


class _Body:
    """The function's body."""

    def __init__(self, narrow: Narrow, module: ir.Module) -> None:
        self.narrow = narrow
        function = narrow.declare(module)
        self.code = Code(module, function)
        self.source, self.packed, self.target, self.count, self.depth, self.row, *numbers = function.args
        *self.distances, self.adds = numbers[:3]
        self.later = [I64(0), *numbers[3:]]
        self.type = ir.VectorType(memory_type(narrow.dtype), narrow.lanes)
        self.raw = ir.VectorType(memory_type(narrow.source), narrow.lanes)

    def emit(self) -> None:
        code, n = self.code, self.narrow
        b, lanes = code.b, I64(n.lanes)
        self.whole = b.and_(self.depth, I64(-n.lanes))
        self.pitch = b.add(self.whole, lanes) if n.rests else self.depth
        if n.rests:
            numbers = ir.Constant(ir.VectorType(I32, n.lanes), list(range(n.lanes)))
            before = b.trunc(b.sub(self.pitch, self.depth), I32)
            self.mask = b.icmp_unsigned(">=", numbers, splat(b, before, n.lanes))
        whole = b.sub(self.count, b.urem(self.count, I64(n.rows)))
        for value in (self.whole, self.pitch, whole):
            code.define(value, code.scope)
        for first, end, height in ((0, whole, n.rows), (whole, self.count, 1)):
            with code.range(first, end, height, unroll=Unroll.NEVER) as i:
                self._rows(code.value(i), height)
            if n.rows == 1:
                break
        code.b.ret_void()

    def _rows(self, top: ir.Value, height: int) -> None:
        """The sums of `height` rows from `top` on."""
        b = self.code.b
        first = b.mul(top, self.row)
        starts = [self._at(self.source, self.raw, b.add(first, self.later[r])) for r in range(height)]
        sums = self._whole_vectors(starts)
        if self.narrow.rests:
            first = self.code.b.sub(self.depth, I64(self.narrow.lanes))
            sums = self._added(sums, self._vectors(starts, first, self.mask), self.whole)
        self._store(self._in_lanes(sums), top, height)

    def _whole_vectors(self, starts: Sequence[ir.Value]) -> list[ir.Value]:
        """The sums, row by row, of the products of whole vectors."""
        code = self.code
        zeros = [ir.Constant(self.type, None)] * (len(starts) * self.narrow.columns)
        loop = code.range(0, self.whole, self.narrow.lanes, carried=zeros, unroll=Unroll.NEVER)
        b, place = code.b, code.value(loop.index)
        if self.narrow.fetches:
            for start in starts:
                ahead = b.add(place, b.mul(self.row, I64(self.narrow.rows)))
                prefetch(code, Pointer(start), self.narrow.source, ahead, second=True)
        return [*loop.close(self._added(loop.carried, self._vectors(starts, place), place))]

    def _vectors(self, starts: Sequence[ir.Value], place: ir.Value, mask: ir.Value | None = None) -> list[ir.Value]:
        """A vector of each row, converted, with zeros in lanes that are not in the mask."""
        b, found = self.code.b, []
        for start in starts:
            value = b.load(self._at(start, self.raw, place), typ=self.raw, align=self.narrow.source.bytes)
            value = decode_vector(b, self.narrow.source, value)
            found.append(value if mask is None else b.select(mask, value, ir.Constant(self.type, None)))
        return found

    def _added(self, sums: Sequence[ir.Value], rows: Sequence[ir.Value], place: ir.Value) -> list[ir.Value]:
        """The sums, row by row, with the products of vectors of the rows and of the columns from `place` on."""
        b, count, found = self.code.b, self.narrow.columns, list(sums)
        for n in range(count):
            at = self._at(self.packed, self.type, b.add(b.mul(self.pitch, I64(n)), place))
            column = b.load(at, typ=self.type, align=min(ALIGNMENT, self.narrow.lanes * self.narrow.dtype.bytes))
            for r, row in enumerate(rows):
                found[r * count + n] = b.fadd(found[r * count + n], b.fmul(row, column))
        return found

    def _in_lanes(self, sums: Sequence[ir.Value]) -> ir.Value:
        """The sum over the lanes of each vector, in the lanes of one: halves of parts of two vectors are joined."""
        b, width, vectors = self.code.b, self.narrow.lanes, list(sums)
        while width > 1:
            half = width // 2
            if len(vectors) > 1:
                pairs = [(x, [*vectors, poison(x.type)][i + 1]) for i, x in enumerate(vectors)][::2]
            else:
                pairs = [(vectors[0], poison(vectors[0].type))]
            joined = []
            for x, y in pairs:
                lanes = x.type.count * (2 if len(vectors) > 1 else 1)
                parts = [range(p, p + half) for p in range(0, lanes, width)]
                low = [k for part in parts for k in part]
                joined.append(b.fadd(*(shuffled(b, x, [k + s for k in low], y) for s in (0, half))))
            vectors, width = joined, half
        while len(vectors) > 1:  # more sums than lanes
            both = range(2 * vectors[0].type.count)
            pairs = [(x, [*vectors, poison(x.type)][i + 1]) for i, x in enumerate(vectors)][::2]
            vectors = [shuffled(b, x, both, y) for x, y in pairs]
        return vectors[0]

    def _store(self, sums: ir.Value, top: ir.Value, height: int) -> None:
        """Store the sums, or add them."""
        b, n = self.code.b, self.narrow
        count = height * n.columns
        if n.dense and count > 1:
            whole = sums if sums.type.count == count else shuffled(b, sums, range(count))
            parts = [(self._at(self.target, self.type, b.mul(top, I64(n.columns))), whole)]
        else:
            parts = []
            for k in range(count):
                r, column = divmod(k, n.columns)
                place = b.add(b.mul(b.add(top, I64(r)), self.distances[0]), b.mul(self.distances[1], I64(column)))
                parts.append((self._at(self.target, self.type, place), b.extract_element(sums, I32(k))))
        adds = self.code.branch(b.icmp_unsigned("!=", self.adds, I64(0)))
        for place, value in parts:
            b = self.code.b
            before = b.load(place, typ=value.type, align=n.dtype.bytes)
            b.store(b.fadd(before, value), place, align=n.dtype.bytes)
        adds.otherwise()
        for place, value in parts:
            self.code.b.store(value, place, align=n.dtype.bytes)
        adds.join((), ())

    def _at(self, pointer: ir.Value, vector: ir.Type, place: ir.Value) -> ir.Value:
        return self.code.b.gep(pointer, [place], source_etype=vector.element)
