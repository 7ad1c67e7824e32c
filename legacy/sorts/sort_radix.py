"""Sort by the digits of integer keys, the last digit first: one stable pass over the rows for each digit.

Digits of all passes are counted while the row is read. A pass in which all keys have one digit is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ..core.builder import IndexValue, Unroll
from ..core.registers import I32, I64, Register, flatten
from ..loops.elemental import Elemental
from .sort_order import KeyOrder
from .sort_rows import OperandRow, OperandRows, at_starts

DIGIT = 8
"""Bits of a digit: the counts of 32-bit keys and 256 streams of elements stay in the first cache."""

VALUES = 1 << DIGIT

MINIMUM_LENGTH_OF_DIGIT = 8
"""Least elements of a row for each digit of its keys. Shorter rows are faster by merges: each pass adds up counts."""

MAXIMUM_LENGTH = (1 << 31) - 1
"""Counts have 32 bits."""


def digits(order: KeyOrder) -> int:
    return order.type.width // DIGIT


def is_worth(order: KeyOrder, length: int) -> bool:
    """Whether rows of this length are sorted by digits."""
    return MINIMUM_LENGTH_OF_DIGIT * digits(order) <= length <= MAXIMUM_LENGTH


def count_bytes(order: KeyOrder) -> int:
    """Bytes of the counts."""
    return digits(order) * VALUES * 4


class RadixSort:
    """Sorts a row. counts: memory for `count_bytes`."""

    def __init__(self, e: Elemental, order: KeyOrder, length: int, counts: ir.Value):
        self.e, self.code, self.order, self.length, self.counts = e, e.code, order, length, counts

    def sort(
        self, source: Callable[[IndexValue], Sequence[Register]], home: OperandRows, away: OperandRows
    ) -> list[OperandRow]:
        """Sort what `source` gives into `home` or `away`, whose strides are 1; returns where the elements are."""
        code = self.code
        self._read(source, home)
        starts = [row.start for row in (*home, *away)]
        loop = code.loop(digits(self.order), carried=starts, unroll=Unroll.NEVER)
        count = len(home)
        rows, others = at_starts(home, loop.carried[:count]), at_starts(away, loop.carried[count:])
        shift = code.multiply(loop.index, DIGIT)
        counts = self._counts(code.multiply(loop.index, VALUES))
        alike = code.b.load(self._slot(counts, self._digit(self._key(rows, 0), shift)), typ=I32)
        branch = code.branch(code.b.icmp_unsigned("==", alike, I32(self.length)))
        branch.otherwise()
        self._place(counts)
        self._move(rows, others, shift, counts)
        kept, moved = tuple(loop.carried), (*loop.carried[count:], *loop.carried[:count])
        joined = branch.join(kept, moved)
        last = loop.close(list(joined))
        return at_starts(home, [flatten(start)[0] for start in last[:count]])

    def _read(self, source: Callable[[IndexValue], Sequence[Register]], home: OperandRows) -> None:
        """Copy the row, and count how often each digit has each value."""
        code = self.code
        with code.loop(digits(self.order) * VALUES) as zero:
            code.b.store(I32(0), self._slot(self.counts, code.value(zero)))
        with code.loop(self.length) as i:
            values = source(i)
            for row, value in zip(home, values, strict=True):
                row.write(code, i, value)
            key = self._unsigned(self.order.of(self.e, values))
            for number in range(digits(self.order)):
                slot = self._slot(self._counts(number * VALUES), self._digit(key, number * DIGIT))
                code.b.store(code.b.add(code.b.load(slot, typ=I32), I32(1)), slot)

    def _place(self, counts: ir.Value) -> None:
        """Turn the counts of a pass into the first positions of elements with each digit."""
        code = self.code
        loop = code.loop(VALUES, carried=[I32(0)], unroll=Unroll.NEVER)
        (before,) = loop.carried
        slot = self._slot(counts, code.value(loop.index))
        after = code.b.add(code.b.load(slot, typ=I32), flatten(before)[0])
        code.b.store(flatten(before)[0], slot)
        loop.close([after])

    def _move(self, rows: OperandRows, others: OperandRows, shift: IndexValue, counts: ir.Value) -> None:
        """Move the elements to the positions of their digits, in order."""
        code = self.code
        with code.loop(self.length) as i:
            values = [row.read(code, i) for row in rows]
            digit = self._digit(self._unsigned(self.order.of(self.e, values)), shift)
            slot = self._slot(counts, digit)
            place = code.b.load(slot, typ=I32)
            code.b.store(code.b.add(place, I32(1)), slot)
            position = code.b.zext(place, I64)
            code.define(position, code.scope)
            for row, value in zip(others, values, strict=True):
                row.write(code, position, value)

    def _key(self, rows: OperandRows, position: IndexValue) -> ir.Value:
        return self._unsigned(self.order.of(self.e, [row.read(self.code, position) for row in rows]))

    def _unsigned(self, key: ir.Value) -> ir.Value:
        """A signed key as an unsigned one of the same order."""
        return self.code.b.xor(key, key.type(-1 << (key.type.width - 1)))

    def _digit(self, key: ir.Value, shift: IndexValue) -> ir.Value:
        """The digit that begins at a bit of a key, as an i64."""
        b, type_ = self.code.b, key.type
        if isinstance(shift, int):
            amount = type_(shift)
        else:
            amount = shift if type_.width == 64 else b.trunc(shift, type_)
        digit = b.and_(b.lshr(key, amount), type_(VALUES - 1))
        return digit if type_.width == 64 else b.zext(digit, I64)

    def _counts(self, first: IndexValue) -> ir.Value:
        return self._slot(self.counts, self.code.value(first))

    def _slot(self, counts: ir.Value, number: ir.Value) -> ir.Value:
        return self.code.b.gep(counts, [number], inbounds=True, source_etype=I32)
