"""The first few elements of a sorted row without a sort of the row: what is not after a threshold is collected.

The row is dealt out to groups. The least keys of the groups are keys of different elements, so the k-th of them is not
before the k-th key of the row: that is the threshold. Elements before it lie in fewer than k groups, which bounds how
many are collected; of those equal to it, the first k suffice. In short rows each element is a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ..core.builder import IndexValue, Unroll
from ..core.registers import BOOL, I32, I64, Register, splat
from ..loops.elemental import Elemental
from .sort_order import KeyOrder
from .sort_rows import OperandRows

MINIMUM_SHARE = 16
"""Least elements of a row for each wanted element. Of shorter rows, a sort of the whole row is nearly as fast."""

MINIMUM_SHARE_OF_SHORT = 4
"""The same for rows below GROUPED_LENGTH, of which exactly the wanted elements are collected."""

GROUPED_LENGTH = 512
"""Least elements of a row that is dealt out to groups."""

MINIMUM_LENGTH = 32
"""Least elements of a row, and the block of rows that are shorter than BLOCK."""

GROUPS = 4
"""Groups for each wanted element: the more, the fewer elements are collected, half of the row's share of k at most."""

BLOCK = 64
"""Keys that are compared with the threshold at once: the bits of a word."""


def is_worth(length: int, wanted: int) -> bool:
    """Whether the first `wanted` elements of rows of this length are selected."""
    return length >= max(
        MINIMUM_LENGTH, (MINIMUM_SHARE_OF_SHORT if length < GROUPED_LENGTH else MINIMUM_SHARE) * wanted
    )


def group_count(length: int, wanted: int) -> int:
    """A multiple of BLOCK, and a divisor of the length if one is near; the length of a short row."""
    if length < GROUPED_LENGTH:
        return length
    least = max(2, -(-GROUPS * wanted // BLOCK)) * BLOCK
    return next((n for n in range(least, 2 * least, BLOCK) if length % n == 0), least)


class Selection:
    """Collects what may be among the first `wanted` elements of a row.

    keys: memory for a key of each element; least: for one of each group. Rows that are written may lie over `least`.
    """

    def __init__(self, e: Elemental, order: KeyOrder, length: int, wanted: int, keys: ir.Value, least: ir.Value):
        self.e, self.code, self.order, self.length, self.wanted = e, e.code, order, length, wanted
        self.keys, self.groups = keys, group_count(length, wanted)
        self.least = keys if self.groups == length else least

    def collect(self, source: Callable[[IndexValue], Sequence[Register]], rows: OperandRows) -> ir.Value:
        """Write elements in their order from the start of `rows` on; returns how many: `wanted` or more."""
        self._read(source)
        threshold = self._threshold()
        code, length = self.code, self.length
        block = BLOCK if length >= BLOCK else MINIMUM_LENGTH
        rest = length % block
        state: list[Register] = [I64(0), I64(0), threshold]
        loop = code.loop(length - rest, step=block, carried=state, unroll=Unroll.NEVER)
        state = loop.close(self._block(source, rows, threshold, loop.index, block, block, loop.carried))
        if rest:
            state = self._block(source, rows, threshold, length - block, block, rest, state)
        count = state[0]
        code.define(count, code.scope, again=True)
        return count

    def _read(self, source: Callable[[IndexValue], Sequence[Register]]) -> None:
        """Write the keys of all elements, and the least of each group."""
        code, type_, groups = self.code, self.order.type, self.groups
        if groups == self.length:
            with code.loop(groups, unroll=Unroll.NEVER) as i:
                code.b.store(self.order.of(self.e, source(i)), self._slot(self.keys, i))
            return
        with code.loop(groups, unroll=Unroll.NEVER) as last:
            code.b.store(type_((1 << (type_.width - 1)) - 1), self._slot(self.least, last))

        def deal(first: IndexValue, count: int) -> None:
            with code.loop(count, unroll=Unroll.NEVER) as at:
                place = code.add(first, at)
                key = self.order.of(self.e, source(place))
                code.b.store(key, self._slot(self.keys, place))
                slot = self._slot(self.least, at)
                least = code.b.load(slot, typ=type_)
                code.b.store(code.b.select(code.b.icmp_signed("<", key, least), key, least), slot)

        rest = self.length % groups
        with code.loop(self.length - rest, step=groups, unroll=Unroll.NEVER) as turn:
            deal(turn, groups)
        if rest:
            deal(self.length - rest, rest)

    def _threshold(self) -> ir.Value:
        """The k-th of the groups' least keys, bit by bit: the largest number that fewer than k of them are below."""
        code, type_ = self.code, self.order.type
        bits = type_.width
        counter = I64 if bits == 64 else I32
        lowest = type_(-1 << (bits - 1))
        loop = code.loop(bits, carried=[lowest, lowest], unroll=Unroll.NEVER)
        threshold, bit = loop.carried
        higher = code.b.add(threshold, bit)
        inner = code.loop(self.groups, carried=[counter(0)])
        (below,) = inner.carried
        key = code.b.load(self._slot(self.least, inner.index), typ=type_)
        (below,) = inner.close([code.b.add(below, code.b.zext(code.b.icmp_signed("<", key, higher), counter))])
        few = code.b.icmp_unsigned("<", below, counter(self.wanted))
        threshold, _ = loop.close([code.b.select(few, higher, threshold), code.b.lshr(bit, type_(1))])
        return threshold

    def _block(
        self,
        source: Callable[[IndexValue], Sequence[Register]],
        rows: OperandRows,
        threshold: ir.Value,
        first: IndexValue,
        count: int,
        new: int,
        state: Sequence[Register],
    ) -> list[Register]:
        """Collect from the last `new` of `count` elements. state: how many are collected, how many of these equal the
        threshold, and the last key that is still wanted.
        """
        code, type_, b = self.code, self.order.type, self.code.b
        places, ties, limit = (s for s in state if isinstance(s, ir.Value))
        keys = b.load(self._slot(self.keys, first), typ=ir.VectorType(type_, count), align=type_.width // 8)
        mask = b.bitcast(b.icmp_signed("<=", keys, splat(b, limit, count)), ir.IntType(count))
        mask = mask if count == BLOCK else b.zext(mask, I64)
        mask = mask if new == count else b.and_(mask, I64(-1 << (count - new)))
        each = code.begin_while([mask, places, ties])
        left, place, equal = (s for s in each.carried if isinstance(s, ir.Value))
        each.test(code.b.icmp_unsigned("!=", left, I64(0)))
        b = code.b
        lane = code.intrinsic("llvm.cttz.i64", I64, [left, BOOL(1)])
        position = b.add(lane, code.value(first), flags=("nsw",))
        for value in (place, position):
            code.define(value, code.scope)
        for row, value in zip(rows, source(position), strict=True):
            row.write(code, place, value)
        ties_here = b.icmp_signed("==", b.load(self._slot(self.keys, position), typ=type_), threshold)
        enough = b.icmp_signed(">=", equal, I64(self.wanted))
        taken = b.xor(b.and_(ties_here, enough), BOOL(1))
        after = b.add(place, b.zext(taken, I64), flags=("nsw",))
        more = b.add(equal, b.zext(ties_here, I64), flags=("nsw",))
        _, places, ties = each.close([b.and_(left, b.sub(left, I64(1))), after, more])
        b = code.b
        full = b.and_(
            b.icmp_signed(">=", ties, I64(self.wanted)),
            b.icmp_signed(">", threshold, type_(-1 << (type_.width - 1))),
        )
        return [places, ties, b.select(full, b.sub(threshold, type_(1)), threshold)]

    def _slot(self, base: ir.Value, number: IndexValue) -> ir.Value:
        return self.code.b.gep(base, [self.code.value(number)], inbounds=True, source_etype=self.order.type)
