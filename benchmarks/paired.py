"""Interleaved timing of several contestants in one process, and paired ratios with a bootstrap interval.

Each round runs every contestant once, in rotating order, so that drift of the machine's speed affects all equally.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from .tables import left, right, text_table


@dataclass(frozen=True)
class Timing:
    """Seconds per run, one value per round."""

    rounds: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.rounds))

    @property
    def minimum(self) -> float:
        return min(self.rounds)


@dataclass(frozen=True)
class Ratio:
    """The median of the ratios of all rounds, with a 95% bootstrap interval."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}]"


def race(
    contestants: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 15,
    seconds: float = 0.05,
    budget: float = math.inf,
    pause: float = 0.0,
    clock: Callable[[], float] | None = None,
) -> dict[str, Timing]:
    """Time contestants in rotation. In a round, each runs repeatedly for about `seconds`; the mean time of a run
    counts.

    budget: a contestant sits out the remaining rounds once its timed runs have taken this many seconds. pause:
    seconds of sleep before each contestant. clock: in seconds; perf_counter if none.
    """
    clock = clock or time.perf_counter
    repeats = {name: _repeats(run, seconds, clock) for name, run in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in contestants}
    spent = dict.fromkeys(contestants, 0.0)
    names = list(contestants)
    enabled = gc.isenabled()
    gc.disable()
    try:
        for round_number in range(rounds):
            shift = round_number % len(names)
            for name in names[shift:] + names[:shift]:
                if spent[name] < budget:
                    time.sleep(pause)
                    times[name].append(_time(contestants[name], repeats[name], clock))
                    spent[name] += times[name][-1] * repeats[name]
    finally:
        if enabled:
            gc.enable()
    return {name: Timing(tuple(values)) for name, values in times.items()}


def _time(run: Callable[[], object], repeats: int, clock: Callable[[], float]) -> float:
    run()  # not timed: it pays for the cold caches after another contestant
    start = clock()
    for _ in range(repeats):
        run()
    return (clock() - start) / repeats


def _repeats(run: Callable[[], object], seconds: float, clock: Callable[[], float]) -> int:
    run()
    start = clock()
    run()
    return max(1, min(100_000, int(seconds / max(clock() - start, 1e-9))))


def ratio(a: Timing, b: Timing, *, seed: int = 0, resamples: int = 2000) -> Ratio:
    """a / b, paired by round; rounds that one of them sat out do not count."""
    shared = min(len(a.rounds), len(b.rounds))
    ratios = np.array(a.rounds[:shared]) / np.array(b.rounds[:shared])
    picks = np.random.default_rng(seed).integers(0, len(ratios), (resamples, len(ratios)))
    low, high = np.percentile(np.median(ratios[picks], axis=1), [2.5, 97.5])
    return Ratio(float(np.median(ratios)), float(low), float(high))


def table(result: Mapping[str, Timing], compile_seconds: Mapping[str, float], width: int | None = None) -> str:
    """A text table: median and minimum of one run, ratio to the first contestant, compile time.

    width: most columns that it takes, or None.
    """
    base = next(iter(result))
    columns = [left(""), right("median ms"), right("min ms"), right("compile s"), left(f"ratio to {base} [95%]")]
    rows = [
        (
            name,
            f"{timing.median * 1e3:.4f}",
            f"{timing.minimum * 1e3:.4f}",
            f"{compile_seconds.get(name, 0.0):.3f}",
            "1" if name == base else str(ratio(timing, result[base])),
        )
        for name, timing in result.items()
    ]
    return text_table(columns, rows, width)


def stage_table(stages: Mapping[str, Mapping[str, float]], width: int | None = None) -> str:
    """A text table of compile times in ms: contestant → stage → seconds. Empty if there are none."""
    names = list(dict.fromkeys(stage for found in stages.values() for stage in found))
    if not names:
        return ""
    columns = [left("compile ms"), *map(right, names)]
    rows = [
        (name, *(f"{found[stage] * 1e3:.1f}" if stage in found else "-" for stage in names))
        for name, found in stages.items()
        if found
    ]
    return text_table(columns, rows, width)
