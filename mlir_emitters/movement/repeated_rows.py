"""Results that repeat a row: of a short array that is broadcast, of what is computed from an iota along it. A piece of
such rows is computed once, on the stack, and copied.
"""

from __future__ import annotations

import math

from ...codegen.processors import Processor
from ...hlo.records import dataclass
from ..core.access import AccessMap
from ..core.builder import Unroll, Value
from ..core.elements import ROUNDED, flatten, parts, raw_type
from ..core.facts import Facts
from ..core.graph import Buffer, reachable
from ..loops.elemental import Elemental
from ..loops.form import Answer, fewer, fitting, more
from ..loops.ranges import Steps, bounds, outer_loops
from ..loops.view import Subject, View
from ..numerics.elementwise import EMIT
from .padded_rows import after, are_whole_rows

MINIMUM_PIECE_BYTES = 1 << 10
"""Bytes of a piece: a loop over it is worth its beginning."""

MAXIMUM_PIECE_BYTES = Processor().first_cache_bytes // 2
"""Bytes of a piece: it stays in the first cache of any processor."""

MAXIMUM_READ_ROW_BYTES = 1 << 7
"""Bytes of a row that is only read: LLVM has full vectors of longer ones."""

MINIMUM_BYTES = 1 << 13
"""Bytes of a result."""


@dataclass(frozen=True, slots=True)
class Repetition:
    """A row of `length` elements along these dimensions, the slowest first, `rows` times; `piece` of them are kept."""

    dimensions: tuple[int, ...]
    length: int
    rows: int
    piece: int

    def emit(self, e: Elemental, result: Buffer, steps: Steps | None) -> None:
        b, dtype = e.b, result.dtype
        element, size, several = raw_type(b.types, dtype), dtype.component.bytes, parts(dtype)
        length, count = self.length * several, self.length * several * self.piece
        line = b.processor.line_bytes
        piece, target = b.alloca(element, count, line), e.pointers[result.argument]
        self._fill(e, result, piece)
        if self.piece > 1:
            with b.loop(length, count, 1) as loop:
                before = b.load(b.pointer(piece, b.sub(loop.index, length), element), element, size)
                b.store(before, b.pointer(piece, loop.index, element), size)
        lower, upper = bounds(b, steps, self.rows)
        stop = b.sub(upper, self.piece - 1)
        vector = b.vector(line // size, element)
        with b.loop(lower, stop, self.piece, unroll=Unroll.NONE) as rows:
            start = b.mul(rows.index, length)
            with b.loop(0, count, line // size) as lanes:
                value = b.load(b.pointer(piece, lanes.index, element), vector, size)
                b.store(value, b.pointer(target, b.add(start, lanes.index), element), size)
        rest = after(b, lower, stop, self.piece)
        start = b.mul(rest, length)
        with b.loop(0, b.mul(b.sub(upper, rest), length), 1) as last:
            value = b.load(b.pointer(piece, last.index, element), element, size)
            b.store(value, b.pointer(target, b.add(start, last.index), element), size)

    def _fill(self, e: Elemental, result: Buffer, piece: Value) -> None:
        """Compute a row at the beginning of the piece."""
        b, several, element = e.b, parts(result.dtype), raw_type(e.b.types, result.dtype)
        with outer_loops(b, None, (), result.dims, self.dimensions) as places:
            index = tuple(places.get(d, 0) for d in range(len(result.dims)))
            at = b.mul(e.offset(result, index), several)
            for n, value in enumerate(flatten(e.value(result, index, raw=True))):
                b.store(value, b.pointer(piece, b.add(at, n), element), result.dtype.component.bytes)


def repetition_of(facts: Facts, reads: AccessMap) -> Repetition | str:
    """The repetition of short rows that a result is; why it is none."""
    result, differs = reads.results[0], reads.varying
    order = result.order
    if result.writer is None or not order:
        return "it has one element, or is in memory"
    if result.shape.bytes < MINIMUM_BYTES:
        return fewer(result.shape.bytes, "bytes", MINIMUM_BYTES)
    if not differs or order[0] in differs:
        return "no row comes again along the slowest dimension" if differs else "all elements are equal"
    inside = order[min(order.index(d) for d in differs) :]
    length = math.prod(result.dims[d] for d in inside)
    size = length * result.dtype.bytes
    made = result.dtype in ROUNDED or any(node.opcode in EMIT for node in reachable([result]))
    if size > (most := MAXIMUM_PIECE_BYTES if made else MAXIMUM_READ_ROW_BYTES):
        return more(size, "bytes of a row", most)
    line = facts.processor.line_bytes
    whole = line // math.gcd(size, line)
    piece, rows = -(-max(1, MINIMUM_PIECE_BYTES // size) // whole) * whole, result.shape.size // length
    if piece * size > MAXIMUM_PIECE_BYTES:
        return more(piece * size, "bytes of a piece of whole lines", MAXIMUM_PIECE_BYTES)
    if rows < 2 * piece:
        return fewer(rows, "rows", 2 * piece)
    return Repetition(tuple(inside), length, rows, piece)


def fits(view: View, subject: Subject) -> Answer:
    return fitting(repetition_of(view.facts, subject.reads), are_whole_rows(subject.first, view.partition))


def emit(e: Elemental, subject: Subject, repetition: Repetition, steps: Steps | None) -> None:
    repetition.emit(e, subject.first, steps)
