"""Old emitters against new ones on a program: run time in pairs, compile time, memory of the process.

Times are of this process's processor, not of the clock: what else the machine does counts little. Kernels run on one
thread here.
"""

from __future__ import annotations

import gc
import math
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..backends.base import CompileOptions
from ..backends.host.executable import HostExecutable
from ..hlo.ir import Module
from ..migration import Flags, compile_module
from .growth import growth

OLD, NEW = "legacy", "mlir"
COMPILES = 3
"""Compiles of each; the fastest counts."""
FLOOR = 16 << 20
"""Bytes added to both peaks of memory: small ones, which pages and allocators decide, count as equal."""
SECONDS = 0.004
"""Of one timing: the program is repeated until they have passed."""

Inputs = Sequence[np.ndarray]


@dataclass(frozen=True)
class Race:
    """A program on both stacks, and what its compiles took. Ratios are new to old.

    old, new: perform one run. compile_ms: of the new emitters. memory_ratio: peak over peak of compiling and running.
    """

    old: Callable[[], Any]
    new: Callable[[], Any]
    compile_ms: float
    compile_ratio: float
    memory_ratio: float


def start_race(module: Module, inputs: Inputs) -> Race:
    """Compile a program on both stacks. Raises what compiling raises."""
    compilers = {stack: partial(_compile, module, stack) for stack in (OLD, NEW)}
    made = {stack: compiler() for stack, compiler in compilers.items()}  # loads what is imported on first use
    taken = dict.fromkeys(compilers, math.inf)
    for _ in range(COMPILES):
        for stack, compiler in compilers.items():
            taken[stack] = min(taken[stack], _seconds(compiler))
    memory = {stack: FLOOR + (growth(partial(_once, module, stack, inputs))[0] or 0) for stack in compilers}
    ratios = taken[NEW] / taken[OLD], memory[NEW] / memory[OLD]
    return Race(_runner(made[OLD], inputs), _runner(made[NEW], inputs), 1e3 * taken[NEW], *ratios)


def _compile(module: Module, stack: str) -> HostExecutable:
    return compile_module(module, Flags.parse(stack), CompileOptions(cache=None))


def _once(module: Module, stack: str, inputs: Inputs) -> None:
    _compile(module, stack).execute(inputs)


def _seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _runner(executable: HostExecutable, inputs: Inputs) -> Callable[[], Any]:
    outputs = executable.execute(inputs)
    return lambda: executable.execute(inputs, outputs=outputs)


def run_rounds(races: Sequence[Race], rounds: int, seed: int = 0) -> list[tuple[float, ...]]:
    """For each race, the ratio of run times in each round. A round times both, in random order."""
    order = random.Random(seed)
    found: list[tuple[float, ...]] = []
    enabled = gc.isenabled()
    gc.disable()
    try:
        for race in races:
            repeats = [max(1, min(100_000, int(SECONDS / max(_warm(run), 1e-9)))) for run in (race.old, race.new)]
            found.append(tuple(_ratio(race, repeats, order.random() < 0.5) for _ in range(rounds)))
    finally:
        if enabled:
            gc.enable()
    return found


def _warm(run: Callable[[], Any]) -> float:
    run()
    return _seconds(run)


def _ratio(race: Race, repeats: Sequence[int], old_first: bool) -> float:
    pairs = list(zip((race.old, race.new), repeats, strict=True))
    times = [_mean(*pair) for pair in (pairs if old_first else pairs[::-1])]
    old, new = times if old_first else times[::-1]
    return new / old


def _mean(run: Callable[[], Any], repeats: int) -> float:
    run()  # not timed: it pays for the cold caches after the other one
    start = time.process_time()
    for _ in range(repeats):
        run()
    return max(time.process_time() - start, 1e-9) / repeats


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """(median, low, high) of the ratios of rounds, with a 95% bootstrap interval."""
    return geometric_mean([ratios])


def geometric_mean(ratios: Sequence[Sequence[float]], resamples: int = 2000) -> tuple[float, float, float]:
    """(mean, low, high): the geometric mean over programs of the median ratio of their rounds, and its 95% interval.

    Rounds are resampled within each program.
    """
    draws = np.random.default_rng(0)
    middle, drawn = 0.0, np.zeros(resamples)
    for rounds in ratios:
        values = np.log(rounds)
        middle += float(np.median(values)) / len(ratios)
        picks = draws.integers(0, len(values), (resamples, len(values)))
        drawn += np.median(values[picks], axis=1) / len(ratios)
    low, high = np.percentile(drawn, [2.5, 97.5])
    return math.exp(middle), math.exp(low), math.exp(high)
