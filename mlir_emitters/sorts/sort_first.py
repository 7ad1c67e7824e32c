"""Selects the first k of a sorted row, for small k, by a bound on the k-th key.

Position p of a row belongs to class p mod m. The minima of m ≥ k classes are keys of m elements, so the k-th smallest
of them, the bound, is not below the k-th key of the row. Fewer than k of m classes have elements below the bound: these
and the first k elements that equal it are the candidates, which are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.builder import Index, Pointer, Unroll, Value
from ..loops.elemental import Elemental
from .sort_keys import Keys
from .sort_lanes import Lane, Source

MINIMUM_SHARE = 12
"""Elements of a row for each of its k first ones, at least; a shorter row is sorted."""

MINIMUM_SHARE_OF_SHORT = 3
"""As above, for a row below MINIMUM_CLASSED_ELEMENTS elements."""

MINIMUM_CLASSED_ELEMENTS = 384
"""Elements from which a row has classes. In a shorter one each element is its own, so the bound is the k-th key."""


CLASSES_OF_WANTED = 3
"""Classes for each of the k elements."""

MASK_KEYS = 32
"""Keys that are compared with the bound at once, and the least elements of a row."""


def is_selected(length: int, wanted: int) -> bool:
    """Whether the first `wanted` elements of rows of this length are selected."""
    return length >= max(
        MASK_KEYS, wanted * (MINIMUM_SHARE if length >= MINIMUM_CLASSED_ELEMENTS else MINIMUM_SHARE_OF_SHORT)
    )


def classes(length: int, wanted: int) -> int:
    """How many: a divisor of the length if there is one that is not much larger than needed, or the length. A multiple
    of MASK_KEYS unless it is the length.
    """
    if length < MINIMUM_CLASSED_ELEMENTS:
        return length
    least = -(-max(CLASSES_OF_WANTED * wanted, 2 * MASK_KEYS) // MASK_KEYS) * MASK_KEYS
    fits = [n for n in range(least, 2 * least, MASK_KEYS) if length % n == 0]
    return fits[0] if fits else least


class FirstOfRow:
    """Finds candidates. keys: memory for the keys of a row; minima: for those of the classes, until it finds any."""

    def __init__(self, e: Elemental, order: Keys, length: int, wanted: int, keys: Pointer, minima: Pointer):
        self.e, self.b, self.order, self.length, self.wanted = e, e.b, order, length, wanted
        self.keys, self.minima, self.type, self.bytes = keys, minima, order.type(e), order.bits // 8
        self.count = classes(length, wanted)
        if self.count == length:
            self.minima = keys

    def candidates(self, source: Source, lanes: Sequence[Lane]) -> Value:
        """Write the candidates to the lanes, in their order; returns how many there are: `wanted` or more."""
        b = self.b
        self.find_minima(source)
        bound = self.bound()
        zero = b.constant(0, b.types.i64)
        whole = self.length // MASK_KEYS * MASK_KEYS
        with b.loop(0, whole, MASK_KEYS, [zero, zero], Unroll.NONE) as loop:
            mask = self.mask(loop.index, self.limit(bound, loop.carried[1]))
            loop.next = self.take(source, lanes, loop.index, mask, bound, loop.carried)
        state = loop.values
        if whole < self.length:  # the last mask is of elements before them, too
            limit = self.limit(bound, state[1])
            mask = self.mask(self.length - MASK_KEYS, limit)
            new = b.binary("andi", mask, -1 << (MASK_KEYS - self.length + whole))
            state = self.take(source, lanes, self.length - MASK_KEYS, new, bound, state)
        return state[0]

    def find_minima(self, source: Source) -> None:
        """Store the keys, and the minimum of each class."""
        b, count = self.b, self.count
        if count == self.length:
            with b.loop(0, count) as loop:
                self.store(self.order.unsigned(self.e, source(loop.index)), self.keys, loop.index)
            return
        vector = b.vector(MASK_KEYS, self.type)
        most = b.filled(-1, vector)
        with b.loop(0, count, MASK_KEYS, unroll=Unroll.DONE) as loop:  # `count` is a multiple of MASK_KEYS
            b.store(most, b.pointer(self.minima, loop.index, self.type), self.bytes)
        rest = self.length % count

        def classify(start: Index, size: int) -> None:
            with b.loop(0, size, unroll=Unroll.LEAN) as loop:  # 8 % slower, and a tenth less to compile
                position = b.add(start, loop.index)
                key = self.order.unsigned(self.e, source(position))
                self.store(key, self.keys, position)
                least = b.op("arith.minui", key, self.load(self.minima, loop.index))
                self.store(least, self.minima, loop.index)

        with b.loop(0, self.length - rest, count, unroll=Unroll.NONE) as turns:
            classify(turns.index, count)
        if rest:
            classify(self.length - rest, rest)

    def bound(self) -> Value:
        """The k-th smallest minimum: the largest number of which fewer than k minima are smaller, from its top bit."""
        b, t = self.b, self.b.types
        bits = self.order.bits
        sums = t.i64 if bits == 64 else t.i32
        with b.loop(
            0, bits, 1, [b.constant(0, self.type), b.constant(1 << (bits - 1), self.type)], Unroll.NONE
        ) as loop:
            bound, bit = loop.carried
            raised = b.binary("ori", bound, bit)
            with b.loop(0, self.count, 1, [b.constant(0, sums)]) as each:
                smaller = b.compare_integers("ult", self.load(self.minima, each.index), raised)
                each.next = [b.binary("addi", each.carried[0], b.extui(smaller, sums))]
            few = b.compare_integers("ult", each.values[0], b.constant(self.wanted, sums))
            loop.next = [b.select(few, raised, bound), b.binary("shrui", bit, 1)]
        return loop.values[0]

    def limit(self, bound: Value, equal: Value) -> Value:
        """The last key that is wanted: not the bound any more if k elements are equal to it."""
        b = self.b
        enough = b.compare_integers("sge", equal, b.constant(self.wanted, b.types.i64))
        full = b.binary("andi", enough, b.compare_integers("ne", bound, b.constant(0, self.type)))
        return b.select(full, b.binary("subi", bound, 1), bound)

    def mask(self, start: Index, bound: Value) -> Value:
        """A bit for each of MASK_KEYS keys: whether it is not above a bound."""
        b, t = self.b, self.b.types
        vector = b.vector(MASK_KEYS, self.type)
        keys = b.load(b.pointer(self.keys, start, self.type), vector, self.bytes)
        bounds = b.op("vector.broadcast", bound, type=vector)
        flags = b.op("arith.cmpi", keys, bounds, type=b.vector(MASK_KEYS, t.i1), attributes=t.compare_integer["ule"])
        word = b.op("vector.bitcast", flags, type=b.vector(1, t.i32))
        return b.lane(word, 0)

    def take(
        self, source: Source, lanes: Sequence[Lane], start: Index, mask: Value, bound: Value, state: Sequence[Value]
    ) -> list[Value]:
        """Append the elements of a mask to the lanes. state: how many elements these hold, how many equal the bound."""
        b, t = self.b, self.b.types
        some = b.open_while([mask, *state])
        some.test(b.compare_integers("ne", some.carried[0], b.constant(0, t.i32)))
        left, found, equal = some.carried
        position = b.add(b.extui(b.op("math.cttz", left), t.i64), start)
        for lane, value in zip(lanes, source(position), strict=True):
            lane.write(b, found, value)
        here = b.compare_integers("eq", self.load(self.keys, position), bound)
        more = b.compare_integers("slt", equal, b.constant(self.wanted, t.i64))
        below = b.binary("xori", here, 1)
        taken = b.binary("ori", below, more)
        following = [b.binary("andi", left, b.binary("subi", left, 1))]
        following.append(b.binary("addi", found, b.extui(taken, t.i64)))
        following.append(b.binary("addi", equal, b.extui(here, t.i64)))
        some.close(following)
        return some.values[1:]

    def load(self, base: Pointer, position: Index) -> Value:
        return self.b.load(self.b.pointer(base, position, self.type), self.type, self.bytes)

    def store(self, value: Value, base: Pointer, position: Index) -> None:
        self.b.store(value, self.b.pointer(base, position, self.type), self.bytes)
