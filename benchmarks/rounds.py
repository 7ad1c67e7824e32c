"""Paired rounds of two runs: warm-up, random order, blocks, a bootstrap interval of the ratio, and when to stop.

Two runs of equal code may differ for as long as they live: by where their code and arrays lie. So a comparison has
blocks, and each block has runs of its own, which are made for it; the interval comes from blocks drawn again, and
rounds within them. In a round both run once, in random order, so that the machine's drift and its neighbours hit both
alike.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .paired import Ratio

Run = Callable[[], object]
Clock = Callable[[], float]

LEAST_BLOCKS = 8
"""Blocks before the interval is looked at. Then it is looked at whenever there are a tenth more, and must be narrow
twice in a row: one that is narrow once may be so by chance.
"""

RESAMPLES = 1000

Z = 1.959964
"""Half the width of a normal distribution's 95%, in standard deviations."""

BATCH = 1e-4
"""Seconds of runs between two looks at the clock: much shorter than the system's slices of time, so that most batches
are not interrupted, even where other processes share the processor.
"""

STEADY, GAIN = 4, 0.97
"""A run is warm once the fastest of its last STEADY times is not below GAIN times the fastest before."""


@dataclass(frozen=True)
class Settings:
    """width: stop once the 95% interval is narrower than this part of the ratio. seconds: stop after this time,
    whatever the width. sample: seconds of a timed sample, which holds the runs that fit. rounds: in a block. compiles:
    how often each side is compiled for its compile time. seed: of the orders and of the bootstrap.
    """

    width: float = 0.02
    seconds: float = 10.0
    sample: float = 0.002
    rounds: int = 8
    compiles: int = 3
    seed: int = 0


@dataclass(frozen=True)
class Block:
    """Seconds of a run in each round, of a and of b. warm: runs of each until their times were steady."""

    a: tuple[float, ...]
    b: tuple[float, ...]
    warm: tuple[int, int]


def paired_blocks(
    make: Callable[[int, int], Run],
    settings: Settings,
    clock: Clock = time.perf_counter,
    on_block: Callable[[int, float, Ratio | None], object] = lambda blocks, seconds, found: None,
) -> tuple[list[Block], bool]:
    """Blocks until the interval is narrow enough or the time is over, and whether it is. make(side, block): a new run
    of side 0 or 1. on_block: called between blocks with their number, the seconds that are left, the interval so far.
    """
    found: Ratio | None = None
    rng = np.random.default_rng(settings.seed)
    blocks: list[Block] = []
    end = clock() + settings.seconds
    look, narrow = LEAST_BLOCKS, 0
    while True:
        blocks.append(_block(make, len(blocks), settings, rng, clock))
        if len(blocks) == look:
            look += 1 + look // 10
            found = interval(blocks, settings.seed)
            narrow = narrow + 1 if found.high - found.low <= settings.width * found.median else 0
            if narrow == 2:
                return blocks, True
        on_block(len(blocks), max(0.0, end - clock()), found)
        if clock() >= end and len(blocks) >= 2:
            return blocks, False


def _block(
    make: Callable[[int, int], Run], number: int, settings: Settings, rng: np.random.Generator, clock: Clock
) -> Block:
    runs: list[Run] = [lambda: None, lambda: None]
    for side in random_order(rng):
        runs[side] = make(side, number)
    warm, repeats = [0, 0], [1, 1]
    for side in random_order(rng):
        warm[side], fastest = warmed(runs[side], settings.sample, clock)
        repeats[side] = max(1, min(100_000, round(settings.sample / max(fastest, 1e-9))))
    times: tuple[list[float], list[float]] = [], []
    enabled = gc.isenabled()
    gc.disable()
    try:
        for _ in range(settings.rounds):
            for side in random_order(rng):
                times[side].append(timed(runs[side], repeats[side], clock))
    finally:
        if enabled:
            gc.enable()
    return Block(tuple(times[0]), tuple(times[1]), (warm[0], warm[1]))


def random_order(rng: np.random.Generator) -> tuple[int, int]:
    return (0, 1) if rng.random() < 0.5 else (1, 0)


def warmed(run: Run, sample: float, clock: Clock = time.perf_counter) -> tuple[int, float]:
    """Run until the times are steady, or 50 samples' time is over: (how many runs, the fastest time)."""
    times: list[float] = []
    end = clock() + 50 * sample
    while True:
        start = clock()
        run()
        times.append(clock() - start)
        before = times[:-STEADY]
        if (before and min(times[-STEADY:]) >= GAIN * min(before)) or (clock() >= end and len(times) > 1):
            return len(times), min(times)


def timed(run: Run, repeats: int, clock: Clock = time.perf_counter) -> float:
    """Seconds of a run: the median of `repeats` runs, in batches of BATCH seconds where they are short."""
    if repeats > 1:
        start = clock()
        run()  # it also pays for the cold caches after the other side
        batch = max(1, min(repeats, round(BATCH / max(clock() - start, 1e-9))))
    else:
        batch = 1
    times = []
    for _ in range(max(1, repeats // batch)):
        start = clock()
        for _ in range(batch):
            run()
        times.append((clock() - start) / batch)
    return float(np.median(times))


def interval(blocks: Sequence[Block], seed: int = 0) -> Ratio:
    """The median of b / a over all rounds, with its 95% interval."""
    return geometric_mean([blocks], seed)


def geometric_mean(comparisons: Sequence[Sequence[Block]], seed: int = 0) -> Ratio:
    """The geometric mean over comparisons of the median of b / a over all rounds, with a 95% bootstrap interval: blocks
    drawn again, then rounds in each.

    A bootstrap of few blocks is too narrow. So it takes the percentiles that make that of a mean as wide as Student's
    t (Hesterberg 2015, expanded percentiles), for the comparison with the fewest.
    """
    rng = np.random.default_rng(seed)
    middle, drawn = 0.0, np.zeros(RESAMPLES)
    for blocks in comparisons:
        ratios = np.log([[b / a for a, b in zip(block.a, block.b, strict=True)] for block in blocks])
        count, rounds = ratios.shape
        chosen = rng.integers(0, count, (RESAMPLES, count, 1))
        picked = ratios[chosen, rng.integers(0, rounds, (RESAMPLES, count, rounds))]
        middle += float(np.median(ratios)) / len(comparisons)
        drawn += np.median(picked.reshape(RESAMPLES, -1), axis=1) / len(comparisons)
    tail = _expanded_tail(min(map(len, comparisons)))
    low, high = np.percentile(drawn, [100 * tail, 100 - 100 * tail])
    return Ratio(math.exp(middle), math.exp(low), math.exp(high))


def _expanded_tail(count: int) -> float:
    """The part to cut off at each end, for `count` blocks; Student's t by Cornish and Fisher's expansion."""
    if count < 2:
        return 0.0
    n = count - 1
    t = Z + (Z**3 + Z) / (4 * n) + (5 * Z**5 + 16 * Z**3 + 3 * Z) / (96 * n**2)
    return 0.5 * math.erfc(math.sqrt(count / n) * t / math.sqrt(2))
