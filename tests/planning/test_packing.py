"""Packing of buffers into an arena, and lists of intervals."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...planning import packing as room
from ...planning.allocation import slot_alignment
from ...planning.coalesce import overlaps, union
from ...planning.packing import Bin, fill_bins, pack, peak, whole_slots


def buffers(seed: int, count: int) -> tuple[list[int], list[list[tuple[int, int]]]]:
    draw = random.Random(seed)
    sizes, segments = [], []
    for _ in range(count):
        points = sorted(draw.sample(range(200), 2 * draw.randint(1, 2)))
        sizes.append(draw.choice([0, 1, 4, 8, 24, 64, 100, 1000, 4096]))
        segments.append(list(zip(points[::2], points[1::2])))
    return sizes, segments


@pytest.mark.parametrize("limit", [0, 4000])
@given(seed=st.integers(0, 2**32), count=st.integers(0, 40))
def test_packing_never_puts_two_live_buffers_into_the_same_bytes(limit: int, seed: int, count: int):
    sizes, segments = buffers(seed, count)
    kept, room.EXACT_LIMIT = room.EXACT_LIMIT, limit
    try:
        packed = pack(sizes, segments)
    finally:
        room.EXACT_LIMIT = kept
    assert packed.bound == peak([whole_slots(s) for s in sizes], segments) <= packed.size
    for a in range(count):
        assert packed.offsets[a] % slot_alignment(sizes[a]) == 0 and packed.offsets[a] + sizes[a] <= packed.size
        for b in range(a):
            if overlaps(segments[a], segments[b]) and sizes[a] and sizes[b]:
                assert (
                    packed.offsets[a] + sizes[a] <= packed.offsets[b]
                    or packed.offsets[b] + sizes[b] <= packed.offsets[a]
                )


def test_small_buffers_share_a_line_and_none_lies_across_two():
    assert [slot_alignment(n) for n in (0, 1, 2, 3, 4, 24, 33, 64, 1000)] == [1, 1, 2, 4, 4, 32, 64, 64, 64]
    packed = pack([4, 24, 1, 8, 4], [[(0, 2)]] * 5)
    assert packed.size == packed.bound == 49
    lines = [(o // 64, (o + s - 1) // 64) for o, s in zip(packed.offsets, [4, 24, 1, 8, 4])]
    assert all(first == last for first, last in lines)


@pytest.mark.parametrize("seed", range(30))
def test_packing_is_close_to_the_most_bytes_alive_at_once(seed: int):
    """Only for buffers that are alive during one interval, as almost all are."""
    draw = random.Random(seed)
    starts = [draw.randrange(60) for _ in range(draw.randint(5, 60))]
    sizes = [draw.choice([1, 4, 8, 24, 100, 256, 1000, draw.randrange(1, 9000)]) for _ in starts]
    packed = pack(sizes, [[(start, start + draw.choice([1, 3, 9, 20]))] for start in starts])
    assert packed.size <= 1.05 * packed.bound


def test_packing_reuses_dead_buffers():
    packed = pack([100] * 50, [[(n, n + 2)] for n in range(50)])
    assert packed.size == packed.bound == 256


@given(seed=st.integers(0, 2**32), count=st.integers(0, 40))
def test_existing_blocks_never_hold_two_live_buffers_in_the_same_bytes(seed: int, count: int):
    sizes, segments = buffers(seed, count)
    bins = [Bin(0, 4096), Bin(1, 100)]
    bins[0].hold(0, 64, [(0, 20), (50, 60)])
    placed = fill_bins(bins, dict(enumerate(sizes)), dict(enumerate(segments)))
    held = [(0, 0, 64, [(0, 20), (50, 60)])]
    held += [(block, offset, whole_slots(sizes[n]), segments[n]) for n, (block, offset) in placed.items()]
    assert all(offset + sizes[n] <= bins[block].size for n, (block, offset) in placed.items())
    for a, (block, offset, size, alive) in enumerate(held):
        for other, start, length, others in held[:a]:
            if block == other and overlaps(alive, others):
                assert offset + size <= start or start + length <= offset
    if any(0 < size <= 64 for size in sizes):
        assert placed


def test_a_chain_is_compared_with_its_neighbours_only(monkeypatch: pytest.MonkeyPatch):
    """Else the time of planning is the square of a program's length."""
    tests = []
    meet = room._meet
    monkeypatch.setattr(room, "_meet", lambda a, b: tests.append(0) or meet(a, b))
    alive = {n: [(n, n + 2)] for n in range(500)}
    placed = fill_bins([Bin(0, 128)], dict.fromkeys(alive, 64), alive)
    assert len(placed) == 500 and len(tests) < 1000


@given(st.integers(0, 2**32))
def test_interval_lists_agree_with_sets_of_ticks(seed: int):
    _, segments = buffers(seed, 2)
    a, b = ({t for start, stop in s for t in range(start, stop)} for s in segments)
    assert {t for start, stop in overlaps(*segments) for t in range(start, stop)} == a & b
    assert {t for start, stop in union(*segments) for t in range(start, stop)} == a | b
