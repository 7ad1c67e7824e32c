"""Sums of complex numbers, and of their products, along memory. Vectors hold both parts in turn, as they are loaded:
vectors of real parts and of imaginary ones would take as many moves as additions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from mlir import ir

from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Pointer, Unroll, Value
from ..core.elements import raw_type
from ..core.facts import Facts
from ..core.graph import Buffer
from ..loops.elemental import Elemental
from .long_sums import BLOCK_ELEMENTS, Blocks, Carried, LongSums

VECTOR_BYTES = 64
"""Bytes of a wide vector: the same on every processor, as is the order of additions."""

WIDE_VECTORS = 4
"""Wide vectors: one for each cycle of an addition."""

FEW_WIDE_VECTORS = 2
"""The same where there are two sums of each, and registers do not hold these and their factors."""

MINIMUM_RUN_ELEMENTS = 3
"""Elements of a run: two are as fast one by one."""


@dataclass(frozen=True, slots=True)
class Factor:
    """An array that is added up, or multiplied with another first, over dimensions, slowest first.

    place: an index along some of the first of these → that of the first element of what is left.
    """

    buffer: Buffer
    dimensions: Sequence[int]
    place: Callable[[Sequence[Index]], Sequence[Index]]

    @property
    def sizes(self) -> list[int]:
        return [self.buffer.dims[d] for d in self.dimensions]

    def start(self, e: Elemental, prefix: Sequence[Index]) -> Pointer:
        """Where a run begins."""
        stored = _stored(self.buffer)
        assert stored is not None
        offset = e.b.mul(e.offset(self.buffer, tuple(self.place(prefix))), 2)
        return e.b.pointer(e.pointers[stored.argument], offset, raw_type(e.b.types, self.buffer.dtype))


def _stored(buffer: Buffer) -> Buffer | None:
    """What is in memory with the same elements in the same order; None if that is nothing."""
    while buffer.writer is not None:
        if buffer.writer.opcode is not Op.RESHAPE:
            return None
        source = buffer.writer.inputs[0]
        if not (source.shape.is_row_major and buffer.shape.is_row_major):
            return None
        buffer = source
    return buffer


def outer_of_runs(facts: Facts, arrays: Sequence[tuple[Buffer, Sequence[int]]]) -> int | None:
    """How many of the dimensions are around the runs in which arrays of complex numbers lie in memory; None if they do
    not, or the runs are too short. arrays: each with the dimensions along which it is added up, slowest first.
    """
    first, dimensions = arrays[0]
    if facts.strict or facts.by_element or facts.vector_bits < 128 or not first.dtype.is_complex:
        return None
    if any(x.dtype is not first.dtype or _stored(x) is None for x, _ in arrays):
        return None
    sizes = [first.dims[d] for d in dimensions]
    outer = _outer(sizes, [[x.strides[d] for d in along] for x, along in arrays])
    return outer if math.prod(sizes[outer:]) >= MINIMUM_RUN_ELEMENTS else None


def sums_of_runs(e: Elemental, outer: int, *factors: Factor) -> LongSums:
    """The sum of an array of complex numbers, or of the products of two."""
    b, first = e.b, factors[0]
    count = math.prod(first.sizes[outer:])
    sums = (_Sums if len(factors) == 1 else _Products)(b, [*first.sizes[:outer], 2 * count], first.buffer)
    sums.add_runs([partial(factor.start, e) for factor in factors])
    return sums


def _outer(sizes: Sequence[int], strides: Sequence[Sequence[int]]) -> int:
    """How many of the first dimensions are around those whose elements are neighbours in all arrays."""
    outer, count = len(sizes), 1
    while outer and all(each[outer - 1] == count for each in strides):
        outer -= 1
        count *= sizes[outer]
    return outer


Start = Callable[[Sequence[Index]], Pointer]
"""An index along the outer dimensions → where a run begins."""


class _Runs(LongSums):
    """Partial sums in vectors: some wide ones, and one for each power of two in what is left of a run, from the widest
    on. sizes: the last one is that of a run, in real numbers.
    """

    each = 1  # vectors of sums beside each other

    def __init__(self, b: Builder, sizes: Sequence[int], buffer: Buffer):
        self.element = raw_type(b.types, buffer.dtype)
        super().__init__(b, sizes, [self.element, self.element])
        self.bytes = self.element.width // 8
        self.line = VECTOR_BYTES // self.bytes
        room = b.processor.vector_registers * b.vector_bits // 8 >= 2 * self.each * WIDE_VECTORS * VECTOR_BYTES
        self.most = WIDE_VECTORS if self.each == 1 or room else FEW_WIDE_VECTORS
        self.lines = min(self.most, sizes[-1] // self.line)
        self.pieces = [width for width in self._halves() if sizes[-1] & width]
        self.carried: Carried = ()

    def advanced(self, sums: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        """The `each` sums after one more vector of each array."""
        raise NotImplementedError

    def results_of(self, joined: Sequence[Sequence[Value]]) -> list[Value]:
        """The parts of the result, from the even and the odd lanes of each sum."""
        raise NotImplementedError

    def _halves(self) -> list[int]:
        """The widths below a line's, down to one element."""
        return [self.line >> k for k in range(1, self.line.bit_length() - 1)]

    def add_runs(self, starts: Sequence[Start]) -> None:
        """Emit the loops. starts: of each array."""
        b, size, line = self.b, self.sizes[-1], self.line

        def added(given: Carried, slot: int, prefix: Sequence[Index], at: Index) -> list[Value]:
            sums = given[slot * self.each : (slot + 1) * self.each]
            places = [b.pointer(start(prefix), at, self.element) for start in starts]
            return self.advanced(sums, [b.load(place, sums[0].type, self.bytes) for place in places])

        def whole(prefix: Sequence[Index], at: Index, given: Carried) -> Carried:
            found = [v for n in range(self.lines) for v in added(given, n, prefix, b.add(at, n * line))]
            return [*found, *given[len(found) :]]

        def rest(prefix: Sequence[Index], at: int, given: Carried) -> Carried:
            count = (size - at) // line
            found = [v for n in range(count) for v in added(given, n, prefix, at + n * line)]
            found += given[len(found) : self.lines * self.each]
            at += count * line
            for n, width in enumerate(self.pieces, self.lines):
                found += added(given, n, prefix, at)
                at += width
            return found

        def spill(given: Carried) -> Carried:
            self._to_totals(self._joined(given))
            return self._empty()

        self._open_totals()
        loops = Blocks(b, self.sizes, self.most * line, BLOCK_ELEMENTS, spill, Unroll.NONE)
        self.carried = loops.emit(whole, rest, self._empty())

    def rests(self) -> Sequence[Value]:
        return self._joined(self.carried)

    def _empty(self) -> list[Value]:
        zero = self.b.constant(-0.0, self.element)
        widths = [self.line] * self.lines + self.pieces
        return [self.b.op("vector.broadcast", zero, type=self._vector(n)) for n in widths for _ in range(self.each)]

    def _vector(self, width: int) -> ir.Type:
        return self.b.vector(width, self.element)

    def _joined(self, given: Carried) -> list[Value]:
        return self.results_of([self._lanes(given[n :: self.each]) for n in range(self.each)])

    def _lanes(self, sums: Sequence[Value]) -> list[Value]:
        """The sums of the even lanes and of the odd ones. The halves of a vector are added up, and to them the piece
        that is as wide, and so on.
        """
        b, lines, pieces = self.b, list(sums[: self.lines]), list(sums[self.lines :])
        while len(lines) > 1:
            odd = lines[len(lines) & ~1 :]
            lines = [b.op("arith.addf", x, y) for x, y in zip(lines[::2], lines[1::2], strict=False)] + odd
        total = lines[0] if lines else pieces.pop(0)
        while total.type.shape[0] > 2:
            total = b.op("arith.addf", *b.halves(total))
            if pieces and pieces[0].type == total.type:
                total = b.op("arith.addf", total, pieces.pop(0))
        return [b.lane(total, n) for n in range(2)]


class _Sums(_Runs):
    """Sums of one array."""

    def advanced(self, sums: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        return [self.b.op("arith.addf", sums[0], values[0])]

    def results_of(self, joined: Sequence[Sequence[Value]]) -> list[Value]:
        return list(joined[0])


class _Products(_Runs):
    """Sums of products: of equal parts, whose difference is real, and of different ones, whose sum is imaginary."""

    each = 2

    def advanced(self, sums: Sequence[Value], values: Sequence[Value]) -> list[Value]:
        left, right = values
        swapped = self.b.shuffled([lane ^ 1 for lane in range(left.type.shape[0])], left)
        return [self.b.fma(left, right, sums[0]), self.b.fma(swapped, right, sums[1])]

    def results_of(self, joined: Sequence[Sequence[Value]]) -> list[Value]:
        (real, minus), (first, second) = joined
        return [self.b.op("arith.subf", real, minus), self.b.op("arith.addf", first, second)]
