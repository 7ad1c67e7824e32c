"""Radix sort: stable counting sorts of a row, from the lowest digit of integer keys to the highest.

All digits are counted in one pass over the row. A digit that is the same in all keys moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.records import dataclass, replace
from ..core.builder import Index, Pointer, Unroll, Value
from ..loops.elemental import Elemental
from .sort_keys import Keys
from .sort_lanes import Lane, Source, read_all

MINIMUM_WIDE_DIGIT_ELEMENTS = 1 << 15
"""Row length from which 32-bit keys have digits of WIDE_DIGIT_BITS: a pass less is worth counts that fill a cache."""

WIDE_DIGIT_BITS = 11
"""Bits of a digit of long rows of 32-bit keys."""


DIGIT_BITS = 8
"""Of other digits."""

MAXIMUM_ROW_ELEMENTS = (1 << 31) - 1
"""Counts have 32 bits."""

MINIMUM_PASS_ELEMENTS = 10
"""Elements of a row for each pass from which passes are faster than merges: each pass adds up its counts."""


@dataclass(frozen=True, slots=True)
class Digits:
    """bits: of a digit; passes: how many digits a key has."""

    bits: int
    passes: int

    @property
    def values(self) -> int:
        return 1 << self.bits

    @property
    def bytes(self) -> int:
        """Of the counts of all digits."""
        return 4 * self.values * self.passes


def digits_for(keys: Keys, length: int) -> Digits | None:
    """How rows of this length are sorted by digits; None if they are merged."""
    bits = WIDE_DIGIT_BITS if keys.bits == 32 and length >= MINIMUM_WIDE_DIGIT_ELEMENTS else DIGIT_BITS
    digits = Digits(bits, -(-keys.bits // bits))
    return digits if MINIMUM_PASS_ELEMENTS * digits.passes <= length <= MAXIMUM_ROW_ELEMENTS else None


class CountingSort:
    """Sorts rows of one length. counts: memory for the counts of all digits."""

    def __init__(self, e: Elemental, keys: Keys, length: int, digits: Digits, counts: Pointer):
        self.e, self.b, self.keys, self.length, self.digits, self.counts = e, e.b, keys, length, digits, counts

    def sort(self, source: Source, home: Sequence[Lane], away: Sequence[Lane]) -> tuple[list[Lane], Value]:
        """(Lanes that hold the sorted row, whether these are `away`). The lanes' bases are as loops carry them."""
        b, t = self.b, self.b.types
        self.count(source, home)
        bases = [lane.base for lane in (*home, *away)]
        loop = b.open_loop(0, self.digits.passes, 1, [*bases, b.constant(0, t.i1)], Unroll.NONE)
        number = len(home)
        here = [replace(lane, base=base) for lane, base in zip(home, loop.carried[:number], strict=True)]
        there = [replace(lane, base=base) for lane, base in zip(away, loop.carried[number:-1], strict=True)]
        shift, first = b.mul(loop.index, self.digits.bits), b.mul(loop.index, self.digits.values)
        sample = self.digit(self.keys.unsigned(self.e, read_all(b, here, 0)), shift)
        alike = b.compare_integers("eq", b.load(self.slot(first, sample), t.i32, 4), b.constant(self.length, t.i32))
        branch = b.branch(alike, [v.type for v in loop.carried])
        with branch.side(0) as results:
            results += loop.carried
        with branch.side(1) as results:
            self.add_up(first)
            self.move(here, there, shift, first)
            turned = b.binary("xori", loop.carried[-1], 1)
            results += [*loop.carried[number:-1], *loop.carried[:number], turned]
        loop.next = branch.values
        b.close_loop(loop)
        sorted_ = [replace(lane, base=base) for lane, base in zip(home, loop.values[:number], strict=True)]
        return sorted_, loop.values[-1]

    def sort_in_turn(self, source: Source, home: Sequence[Lane], away: Sequence[Lane]) -> list[Lane]:
        """Sort into `home`, each digit by code of its own: SPIR-V has no loops that carry memory."""
        passes = self.digits.passes
        here, there = (home, away) if passes % 2 == 0 else (away, home)
        self.count(source, here)
        for number in range(passes):
            first = number * self.digits.values
            self.add_up(first)
            self.move(here, there, number * self.digits.bits, first)
            here, there = there, here
        return list(home)

    def count(self, source: Source, home: Sequence[Lane]) -> None:
        """Copy a row to `home`, and count the values of all digits."""
        b, t = self.b, self.b.types
        with b.loop(0, self.digits.values * self.digits.passes) as loop:
            b.store(b.constant(0, t.i32), b.pointer(self.counts, loop.index, t.i32), 4)
        with b.loop(0, self.length) as loop:
            element = source(loop.index)
            for lane, value in zip(home, element, strict=True):
                lane.write(b, loop.index, value)
            key = self.keys.unsigned(self.e, element)
            for number in range(self.digits.passes):
                slot = self.slot(number * self.digits.values, self.digit(key, number * self.digits.bits))
                b.store(b.binary("addi", b.load(slot, t.i32, 4), 1), slot, 4)

    def add_up(self, first: Index) -> None:
        """Replace the counts of a digit's values by the position of the first element with each."""
        b, t = self.b, self.b.types
        with b.loop(0, self.digits.values, 1, [b.constant(0, t.i32)], Unroll.NONE) as loop:
            slot = self.slot(first, loop.index)
            total = b.binary("addi", loop.carried[0], b.load(slot, t.i32, 4))
            b.store(loop.carried[0], slot, 4)
            loop.next = [total]

    def move(self, here: Sequence[Lane], there: Sequence[Lane], shift: Index, first: Index) -> None:
        b, t = self.b, self.b.types
        with b.loop(0, self.length) as loop:
            element = read_all(b, here, loop.index)
            slot = self.slot(first, self.digit(self.keys.unsigned(self.e, element), shift))
            place = b.load(slot, t.i32, 4)
            b.store(b.binary("addi", place, 1), slot, 4)
            position = b.extui(place, t.i64)
            for lane, value in zip(there, element, strict=True):
                lane.write(b, position, value)

    def digit(self, key: Value, shift: Index) -> Value:
        """The digit from bit `shift` on, as an i64."""
        b = self.b
        wide = key if key.type == b.types.i64 else b.extui(key, b.types.i64)
        return b.binary("andi", b.binary("shrui", wide, b.materialize(shift)), self.digits.values - 1)

    def slot(self, first: Index, value: Index) -> Pointer:
        return self.b.pointer(self.counts, self.b.add(first, value), self.b.types.i32)
