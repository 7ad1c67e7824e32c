"""Batcher's merge exchange: which places of a row are compared, whatever they hold, until the row is in order.

Of n elements about n · log² n / 4 pairs are exchanged, and not only neighbours: equal keys keep their order only if a
key tells its place, too. Pairs on which no wanted place depends are left out. Reference: Knuth, TAOCP 5.2.2, M.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from llvmlite import ir

from ..core.builder import Code
from ..core.registers import I8, table


@functools.cache
def exchanges(length: int, start: int, end: int) -> tuple[tuple[int, int], ...]:
    """The pairs in their order; the lesser element comes to the first place. start, end: the places that are wanted."""
    wanted, found = set(range(start, end)), []
    for pair in reversed(list(_merge_exchange(length))):
        if not wanted.isdisjoint(pair):
            found.append(pair)
            wanted.update(pair)
    return tuple(reversed(found))


def _merge_exchange(length: int) -> Iterator[tuple[int, int]]:
    top = 1 << max(0, (length - 1).bit_length() - 1)
    apart = top if length > 1 else 0
    while apart:
        span, offset, distance = top, 0, apart
        while True:
            yield from ((i, i + distance) for i in range(length - distance) if i & apart == offset)
            if span == apart:
                break
            span, offset, distance = span // 2, apart, span - apart
        apart //= 2


def pair_table(code: Code, length: int, start: int, end: int) -> tuple[ir.Value, int]:
    """(A constant of the pairs' places, a byte each, so of at most 256; how many pairs)."""
    pairs = exchanges(length, start, end)
    places = bytearray(place for pair in pairs for place in pair)
    name = f"exchanges.{length}.{start}.{end}"
    return table(code.module, name, ir.ArrayType(I8, len(places)), places), len(pairs)
