"""Sums of complex numbers that lie side by side in memory. What is added up are vectors of both parts in turn, as they
are loaded: vectors of real parts and of imaginary ones would take as many moves as additions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mlir import ir

from ..hlo.opcodes import Op
from .builder import Builder, Index, Pointer, Unroll, Value
from .elemental import Elemental
from .elements import raw_type
from .graph import Buffer
from .long_sums import BLOCK, Blocks, Carried, LongSums

CACHE_LINE = 64  # bytes of a wide vector
LINES = 4  # wide vectors: as many as an addition has cycles
LEAST = 8  # elements of a run: fewer are as fast one by one


def run_of(buffer: Buffer, order: Sequence[int]) -> tuple[list[int], int]:
    """(the outer ones of some dimensions, how many elements are neighbours along the others). order: slowest first."""
    outer, count = list(order), 1
    while outer and buffer.strides[outer[-1]] == count:
        count *= buffer.dims[outer.pop()]
    return outer, count


def is_run(e: Elemental, buffer: Buffer, order: Sequence[int]) -> bool:
    """Whether a sum over dimensions is of complex numbers in memory in runs that are long enough."""
    b = e.b
    if b.strict or b.by_element or b.vector_bits < 128 or not buffer.dtype.is_complex or _stored(buffer) is None:
        return False
    return run_of(buffer, order)[1] >= LEAST


def _stored(buffer: Buffer) -> Buffer | None:
    """What is in memory with the same elements in the same order; None if that is nothing."""
    while buffer.writer is not None:
        (source, *_) = buffer.writer.inputs or (buffer,)
        same = source.shape.is_row_major and buffer.shape.is_row_major
        if buffer.writer.opcode is not Op.RESHAPE or not same:
            return None
        buffer = source
    return buffer


def sums_of_runs(
    e: Elemental, buffer: Buffer, order: Sequence[int], place: Callable[[Sequence[Index]], Sequence[Index]]
) -> LongSums:
    """The sums of the real and the imaginary parts. place: an index along the outer dimensions → that of the first
    element of a run.
    """
    outer, count = run_of(buffer, order)
    element, stored = raw_type(e.b.types, buffer.dtype), _stored(buffer)
    assert stored is not None

    def start(prefix: Sequence[Index]) -> Pointer:
        offset = e.b.mul(e.offset(buffer, tuple(place(prefix))), 2)
        return e.b.pointer(e.pointers[stored.argument], offset, element)

    sums = _PairSums(e.b, [*(buffer.dims[d] for d in outer), 2 * count], element)
    sums.add_runs(start)
    return sums


class _PairSums(LongSums):
    """Partial sums in vectors: up to LINES wide ones, and one for each power of two in what is left of a run, from
    the widest on. sizes: the last one is that of a run, in real numbers.
    """

    def __init__(self, b: Builder, sizes: Sequence[int], element: ir.Type):
        super().__init__(b, sizes, [element, element])
        self.element, self.bytes = element, element.width // 8
        self.line = CACHE_LINE // self.bytes
        self.lines = min(LINES, sizes[-1] // self.line)
        self.pieces = [width for width in self._halves() if sizes[-1] & width]
        self.carried: Carried = ()

    def _halves(self) -> list[int]:
        """The widths below a line's, down to one element."""
        return [self.line >> k for k in range(1, self.line.bit_length() - 1)]

    def add_runs(self, start: Callable[[Sequence[Index]], Pointer]) -> None:
        """Emit the loops. start: an index along the outer dimensions → where a run begins."""
        b, size, line = self.b, self.sizes[-1], self.line
        self._open_totals()

        def added(total: Value, prefix: Sequence[Index], at: Index) -> Value:
            value = b.load(b.pointer(start(prefix), at, self.element), total.type, self.bytes)
            return b.op("arith.addf", total, value)

        def whole(prefix: Sequence[Index], at: Index, given: Carried) -> Carried:
            lines = [added(given[n], prefix, b.add(at, n * line)) for n in range(LINES)]
            return [*lines, *given[LINES:]]

        def rest(prefix: Sequence[Index], at: int, given: Carried) -> Carried:
            found = list(given)
            for n in range((size - at) // line):
                found[n] = added(found[n], prefix, at + n * line)
            at = size - size % line
            for n, width in enumerate(self.pieces, self.lines):
                found[n] = added(found[n], prefix, at)
                at += width
            return found

        def spill(given: Carried) -> Carried:
            self._to_totals(self._joined(given))
            return self._empty()

        loops = Blocks(b, self.sizes, LINES * line, BLOCK, spill, Unroll.NONE)
        self.carried = loops.emit(whole, rest, self._empty())

    def rests(self) -> Sequence[Value]:
        return self._joined(self.carried)

    def _empty(self) -> list[Value]:
        zero = self.b.constant(-0.0, self.element)
        widths = [self.line] * self.lines + self.pieces
        return [self.b.op("vector.broadcast", zero, type=self._vector(width)) for width in widths]

    def _vector(self, width: int) -> ir.Type:
        return ir.VectorType.get([width], self.element)

    def _joined(self, given: Carried) -> list[Value]:
        """Both sums. The halves of a vector are added up, and to them the piece that is as wide, and so on."""
        b, lines, pieces = self.b, list(given[: self.lines]), list(given[self.lines :])
        while len(lines) > 1:
            odd = lines[len(lines) & ~1 :]
            lines = [b.op("arith.addf", x, y) for x, y in zip(lines[::2], lines[1::2], strict=False)] + odd
        total = lines[0] if lines else pieces.pop(0)
        while (width := total.type.shape[0] // 2) > 1:
            total = b.op("arith.addf", *(self._part(total, at, width) for at in (0, width)))
            if pieces and pieces[0].type == total.type:
                total = b.op("arith.addf", total, pieces.pop(0))
        places = ({"static_position": ir.DenseI64ArrayAttr.get([n])} for n in range(2))
        return [b.op("vector.extract", total, type=self.element, attributes=place) for place in places]

    def _part(self, value: Value, start: int, width: int) -> Value:
        mask = {"mask": ir.DenseI64ArrayAttr.get(range(start, start + width))}
        return self.b.op("vector.shuffle", value, value, type=self._vector(width), attributes=mask)
