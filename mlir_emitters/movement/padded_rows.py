"""Pads of an array in memory whose short rows become longer: vectors of the result, for each of which one vector of the
array is loaded, and lanes of it or the padding value are chosen. LLVM scatters parts of rows, or moves each element.
"""

from __future__ import annotations

import math

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...planning.partition import Partition
from ..core.builder import Builder, Index, Unroll
from ..core.elements import flatten, parts, raw_type
from ..core.facts import Facts
from ..core.graph import Buffer
from ..loops.elemental import Elemental
from ..loops.form import Answer, fewer, fitting, more
from ..loops.ranges import Steps, bounds
from ..loops.view import Subject, View

MAXIMUM_ROW_ELEMENTS = 16
"""Elements of a row of the result, and of the vectors in code."""

MINIMUM_ELEMENTS = 1 << 12
"""Elements of a result."""

NARROW_BYTES = 2
"""Bytes of a lane, at most, that a processor may move within a part of a vector only."""


@dataclass(frozen=True, slots=True)
class Padding:
    """source, filler: the operands; rows: of both arrays. In parts of elements: taken, put, made: the lengths of a row
    of the operand, of what is in front of it, and of a row of the result.
    """

    source: Buffer
    filler: Buffer
    rows: int
    taken: int
    put: int
    made: int

    def emit(self, e: Elemental, result: Buffer, steps: Steps | None) -> None:
        b, dtype = e.b, result.dtype
        element = raw_type(b.types, dtype)
        size = dtype.component.bytes
        vector = max(b.vector_bits, 128) // 8
        lanes = (min(vector, b.processor.narrow_shuffle_bytes) if size <= NARROW_BYTES else vector) // size
        several = parts(dtype)
        space = b.alloca(element, several, 64)
        for n, value in enumerate(flatten(e.value(self.filler, (), raw=True))):
            b.store(value, b.pointer(space, n, element), size)
        filler = b.load(b.pointer(space, 0, element), b.vector(several, element), size)
        filler = b.shuffled([n % several for n in range(lanes)], filler)
        group = lanes // math.gcd(self.made, lanes)
        chosen = [self._chosen(first, lanes) for first in range(0, group * self.made, lanes)]
        most = 1 + max(n for _, choice in chosen for n in choice if n < lanes)
        loaded = min(n for n in (lanes // 4, lanes // 2, lanes) if n >= most)  # what crosses no line is faster
        reach = max(first for first, _ in chosen) + loaded
        lower, upper = bounds(b, steps, self.rows)
        last = (self.rows * self.taken - reach) // self.taken + 1  # row behind those whose vectors are in the operand
        stop = b.least(b.sub(upper, group - 1), last)
        pointers = [e.pointers[x.argument] for x in (self.source, result)]
        with b.loop(lower, stop, group, unroll=Unroll.DONE) as loop:
            read, write = (b.mul(loop.index, n) for n in (self.taken, self.made))
            for number, (first, choice) in enumerate(chosen):
                vector = b.vector(loaded, element)
                row = b.load(b.pointer(pointers[0], b.add(read, first), element), vector, size)
                if loaded < lanes:
                    row = b.shuffled([n % loaded for n in range(lanes)], row)
                value = b.shuffled(choice, row, filler)
                b.store(value, b.pointer(pointers[1], b.add(write, number * lanes), element), size)
        rest = after(b, lower, stop, group)
        with b.loop(rest, upper, 1, unroll=Unroll.NONE) as loop:
            read, write = (b.mul(loop.index, n) for n in (self.taken, self.made))
            outside = flatten(e.value(self.filler, (), raw=True))
            for n in range(self.made):
                k = n - self.put
                value = outside[n % several]
                if 0 <= k < self.taken:
                    value = b.load(b.pointer(pointers[0], b.add(read, k), element), element, size)
                b.store(value, b.pointer(pointers[1], b.add(write, n), element), size)

    def _chosen(self, start: int, lanes: int) -> tuple[int, list[int]]:
        """Of the vector of a group's rows that begins at a part: (the first part of the operand that is loaded, for
        each lane the number of a loaded one, or behind these that of a lane of the padding value).
        """
        rows = [divmod(n, self.made) for n in range(start, start + lanes)]
        found = [row * self.taken + k - self.put if 0 <= k - self.put < self.taken else None for row, k in rows]
        first = min((n for n in found if n is not None), default=0)
        return first, [lanes + lane if n is None else n - first for lane, n in enumerate(found)]


def after(b: Builder, lower: Index, upper: Index, step: int) -> Index:
    """The first number that a loop from `lower` to `upper` does not reach."""
    count = b.greatest(b.sub(upper, lower), 0)
    return b.add(lower, b.mul(b.div(b.add(count, step - 1), step), step))


def are_whole_rows(result: Buffer, partition: Partition | None) -> bool:
    """Whether steps are whole rows, one after the other in memory."""
    order = result.order
    numbered = [d for d in (() if partition is None else partition.dimensions) if result.dims[d] != 1]
    return partition is None or (len(numbered) < len(order) and order[: len(numbered)] == numbered)


def padding_of(facts: Facts, result: Buffer) -> Padding | str:
    """The padding of a result that is such a pad; why it is none."""
    node = result.writer
    if node is None or node.opcode is not Op.PAD:
        return "it is no pad"
    (source, filler), dtype, whole = node.inputs, result.dtype, result.order
    if result.shape.size < MINIMUM_ELEMENTS:
        return fewer(result.shape.size, "elements", MINIMUM_ELEMENTS)
    if source.writer is not None:
        return "what is padded is not in memory"
    if dtype is DType.PRED or dtype.bits < 8 or not whole:
        return f"there are no vectors of {dtype.value}"
    fast = whole[-1]
    others = [p for d, p in enumerate(node.attributes["padding"]) if d != fast]
    here, size, made = node.attributes["padding"][fast], source.dims[fast], result.dims[fast]
    if any(p.low or p.high or p.interior for p in others) or here.interior or min(here.low, here.high) < 0:
        return "not only the ends of rows are padded"
    if made > MAXIMUM_ROW_ELEMENTS:
        return more(made, "elements of a row", MAXIMUM_ROW_ELEMENTS)
    if size == 0 or source.shape.minor_to_major != result.shape.minor_to_major:
        return "rows have no elements, or another order in memory"
    full = made.bit_count() == size.bit_count() == 1 and not facts.processor.masks and not dtype.is_complex
    if full:
        return f"rows of {size} and {made} elements fill vectors, of which LLVM makes some by itself"
    lengths = (n * parts(dtype) for n in (size, here.low, made))
    return Padding(source, filler, result.shape.size // made, *lengths)


def fits(view: View, subject: Subject) -> Answer:
    return fitting(padding_of(view.facts, subject.first), are_whole_rows(subject.first, view.partition))


def emit(e: Elemental, subject: Subject, padding: Padding, steps: Steps | None) -> None:
    padding.emit(e, subject.first, steps)
