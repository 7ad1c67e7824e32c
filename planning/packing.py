"""Packing: offsets in one arena for buffers of known sizes and lifetimes, such that live buffers never overlap.

Each buffer occupies whole slots: its size is rounded up to a multiple of its alignment, which is its size up to a power
of two, 64 bytes at most (`slot_alignment` in plan.py).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..hlo.records import dataclass, field
from .allocation import slot_alignment

Segments = Sequence[tuple[int, int]]

EXACT_LIMIT = 4000
"""Maximum number of buffers to pack in several orders (quadratic, vectorised); more are packed in order of time."""


MOST_CHANGES = 2000
"""Maximum number of buffers that are placed again, in total, to improve a packing."""


@dataclass(frozen=True, slots=True)
class Packing:
    """offsets[i]: bytes, of buffer i. size: bytes of the arena. bound: maximum bytes alive at once."""

    offsets: tuple[int, ...]
    size: int
    bound: int


MOST_TRIALS = 200_000
"""Maximum number of pairs of a buffer and a bin that are tried."""


@dataclass(slots=True)
class Bin:
    """An existing block, and its contents as (start offset, stop offset, live segments), those that begin first in
    front. starts: where they begin.
    """

    number: int
    size: int
    held: list[tuple[int, int, Segments]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)

    def hold(self, offset: int, size: int, segments: Segments) -> None:
        if segments:
            at = bisect_right(self.starts, segments[0][0])
            self.starts.insert(at, segments[0][0])
            self.held.insert(at, (offset, offset + size, segments))

    def place(self, size: int, segments: Segments) -> int | None:
        """The offset at which `size` bytes are free throughout `segments`; None if there is none."""
        first, last = segments[0][0], segments[-1][1]
        before = self.held[: bisect_left(self.starts, last)]
        # Most have ended before: without the first test, long programs spend most of the planner's time here.
        taken = sorted({(a, b) for a, b, other in before if other[-1][1] > first and _meet(segments, other)})
        offset = _tightest_gap(taken, size, slot_alignment(size))
        return offset if offset + size <= self.size else None


def fill_bins(
    bins: Sequence[Bin], sizes: Mapping[int, int], segments: Mapping[int, Segments]
) -> dict[int, tuple[int, int]]:
    """Place buffers, largest and latest first, into existing blocks while these are free.

    Returns {buffer: (number of the bin, offset)} for the buffers that fit.
    """
    placed: dict[int, tuple[int, int]] = {}
    trials = MOST_TRIALS
    for n in sorted((n for n in sizes if sizes[n] and segments[n]), key=lambda n: (-sizes[n], -segments[n][0][0])):
        rounded = whole_slots(sizes[n])
        for block in bins:
            if sizes[n] > block.size:
                continue
            trials -= 1 + len(block.held)
            if trials < 0:
                return placed
            offset = block.place(sizes[n], segments[n])
            if offset is not None:
                block.hold(offset, rounded, segments[n])
                placed[n] = block.number, offset
                break
    return placed


def _meet(a: Segments, b: Segments) -> bool:
    """Whether two ascending lists of intervals intersect."""
    i = j = 0
    while i < len(a) and j < len(b):
        if a[i][0] < b[j][1] and b[j][0] < a[i][1]:
            return True
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return False


def whole_slots(size: int) -> int:
    """Bytes that a buffer occupies: its size in whole slots, so that no other buffer starts in its last slot."""
    alignment = slot_alignment(size)
    return -(-size // alignment) * alignment


def pack(sizes: Sequence[int], segments: Sequence[Segments]) -> Packing:
    """The best packing of several orders, improved by small changes as far as the number of buffers allows."""
    rounded = [whole_slots(s) for s in sizes]
    bound = peak(rounded, segments)
    best = _in_order(rounded, segments)
    if len(sizes) <= EXACT_LIMIT:
        best_ranks: list[int] = []
        for order in ORDERS:
            if _top(best, rounded) == bound:
                break
            ranks = sorted(range(len(sizes)), key=lambda n: order(rounded[n], segments[n]))
            candidate = _first_fit(rounded, segments, ranks)
            if not best_ranks or _top(candidate, rounded) < _top(best, rounded):
                best_ranks = ranks
            best = min(best, candidate, key=lambda offsets: _top(offsets, rounded))
        if _top(best, rounded) > bound:
            best = _improved(rounded, segments, best_ranks, best, bound)
    return Packing(tuple(best), _top(best, rounded), bound)


def _improved(
    sizes: Sequence[int], segments: Sequence[Segments], ranks: list[int], best: list[int], bound: int
) -> list[int]:
    """Repeatedly move the buffer with the highest end towards the front of the order and pack again."""
    places = {n: at for at, n in enumerate(ranks)}
    offsets = _first_fit(sizes, segments, ranks)
    for _ in range(MOST_CHANGES // max(len(sizes), 1)):
        highest = max(range(len(sizes)), key=lambda n: (offsets[n] + sizes[n], places[n]))
        at = places[highest]
        ranks = [*ranks[: at // 2], highest, *ranks[at // 2 : at], *ranks[at + 1 :]]
        places = {n: place for place, n in enumerate(ranks)}
        offsets = _first_fit(sizes, segments, ranks)
        best = min(best, offsets, key=lambda o: _top(o, sizes))
        if not at or _top(best, sizes) == bound:
            break
    return best


def _by_size(size: int, segments: Segments) -> tuple[int, int]:
    return -size, segments[0][0] if segments else 0


def _by_area(size: int, segments: Segments) -> tuple[int, int]:
    return -size * sum(e - s for s, e in segments), -size


def _by_life(size: int, segments: Segments) -> tuple[int, int]:
    return -sum(e - s for s, e in segments), -size


def _by_start(size: int, segments: Segments) -> tuple[int, int]:
    return segments[0][0] if segments else 0, -size


def _by_end(size: int, segments: Segments) -> tuple[int, int]:
    return -segments[-1][1] if segments else 0, -size


ORDERS: tuple[Callable[[int, Segments], tuple[int, int]], ...] = (_by_size, _by_area, _by_life, _by_start, _by_end)


def _top(offsets: Sequence[int], sizes: Sequence[int]) -> int:
    return max((o + s for o, s in zip(offsets, sizes)), default=0)


def peak(sizes: Sequence[int], segments: Sequence[Segments]) -> int:
    """The maximum number of bytes alive at once, a lower bound of every packing."""
    events: list[tuple[int, int]] = []
    for size, parts in zip(sizes, segments):
        for start, stop in parts:
            events.append((start, size))
            events.append((stop, -size))
    events.sort()
    live = most = 0
    for _, change in events:
        live += change
        most = max(most, live)
    return most


def _first_fit(sizes: Sequence[int], segments: Sequence[Segments], ranks: Sequence[int]) -> list[int]:
    """Place buffers in the given order, each in the tightest gap between the placed buffers alive with it."""
    n = len(sizes)
    offsets = [0] * n
    owner = np.empty(sum(len(s) for s in segments), dtype=np.int64)
    starts, stops, count = np.empty_like(owner), np.empty_like(owner), 0
    for k in ranks:
        if not sizes[k] or not segments[k]:
            continue
        hit = np.zeros(count, dtype=bool)
        for start, stop in segments[k]:
            hit |= (starts[:count] < stop) & (stops[:count] > start)
        taken = sorted({(offsets[o], offsets[o] + sizes[o]) for o in owner[:count][hit].tolist()})
        offsets[k] = _tightest_gap(taken, sizes[k], slot_alignment(sizes[k]))
        for start, stop in segments[k]:
            owner[count], starts[count], stops[count] = k, start, stop
            count += 1
    return offsets


def _tightest_gap(taken: list[tuple[int, int]], size: int, alignment: int) -> int:
    best, best_waste, cursor = -1, -1, 0
    for start, stop in taken:
        if start - cursor >= size and (best < 0 or start - cursor - size < best_waste):
            best, best_waste = cursor, start - cursor - size
        cursor = max(cursor, -(-stop // alignment) * alignment)
    return best if best >= 0 else cursor


def _in_order(sizes: Sequence[int], segments: Sequence[Segments]) -> list[int]:
    """Allocate at first use and free after last use, as an allocator would; holes in live segments are ignored."""
    spans = sorted((parts[0][0], parts[-1][1], n) for n, parts in enumerate(segments) if parts and sizes[n])
    offsets = [0] * len(sizes)
    gaps: list[tuple[int, int]] = []  # (start, stop), ascending
    ends: list[tuple[int, int]] = []
    top = 0
    for start, stop, n in spans:
        while ends and ends[0][0] <= start:
            _, freed = heapq.heappop(ends)
            _release(gaps, offsets[freed], offsets[freed] + sizes[freed])
        up = slot_alignment(sizes[n]) - 1
        fitting = [(b - a, a, g) for g, (a, b) in enumerate(gaps) if b - (a + up & ~up) >= sizes[n]]
        if fitting:
            a, b = gaps.pop(min(fitting)[2])
        else:
            a, b = gaps.pop() if gaps and gaps[-1][1] == top else (top, top)
        offset = a + up & ~up
        top = max(top, offset + sizes[n])
        for gap in ((a, offset), (offset + sizes[n], b)):
            if gap[0] < gap[1]:
                insort(gaps, gap)
        offsets[n] = offset
        heapq.heappush(ends, (stop, n))
    return offsets


def _release(gaps: list[tuple[int, int]], start: int, stop: int) -> None:
    """Return a block to the gaps, joining adjacent ones."""
    insort(gaps, (start, stop))
    at = gaps.index((start, stop))
    if at + 1 < len(gaps) and gaps[at + 1][0] == stop:
        stop = gaps.pop(at + 1)[1]
        gaps[at] = (start, stop)
    if at and gaps[at - 1][1] == start:
        gaps[at - 1] = (gaps[at - 1][0], stop)
        gaps.pop(at)
