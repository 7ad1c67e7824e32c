"""How the time of a run grows with a program's work, and the time of compiling with its rank and length.

A slope is that of a straight line through logarithms. Times are of the processor, the least of several rounds; rounds
are added as long as a slope is too steep, so that what else the machine does refuses nothing: faults are a whole power.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import linear_regression

import numpy as np

from ...backends.base import CompileOptions
from ...codegen.threads import on_threads
from ...hlo.analysis.cost_analysis import CostAnalysis
from ...hlo.ir import Module
from ...migration.compile import compile_module
from ...migration.flags import Flags
from ..paired import race

STEEPER = 1.1
"""The slope of run time, as a multiple of that of the cost, above which a row is refused."""

ROUNDS, SECONDS, TRIES = 3, 0.003, 6

RANK_TIMES, RANK_SECONDS = 6.0, 0.2
"""Limits on compiling at the highest rank: a multiple of the time at the lowest, or seconds."""

LENGTH_SLOPE = 1.1
"""Of compile time by the number of instructions."""

Measure = Callable[[], Mapping[int, float]]
"""A round: size → seconds."""

Feed = Callable[[Module], Sequence[np.ndarray]]


def slope(values: Mapping[int, float]) -> float:
    """The exponent with which values grow with their keys."""
    sizes = [math.log(size) for size in values]
    return linear_regression(sizes, [math.log(value) for value in values.values()]).slope


def best(measure: Measure, fits: Callable[[Mapping[int, float]], bool], tries: int = TRIES) -> dict[int, float]:
    """The least of the rounds so far, by size, as soon as they fit, or after the last one."""
    least: dict[int, float] = {}
    for _ in range(tries):
        for size, seconds in measure().items():
            least[size] = min(seconds, least.get(size, math.inf))
        if fits(least):
            break
    return least


def cost_of(module: Module) -> float:
    """Operations and bytes of a module."""
    found = CostAnalysis().of_computation(module.entry)
    return found.flops + found.transcendentals + found.bytes


def steeper_than_cost(modules: Mapping[int, Module], stack: str, feed: Feed, tries: int = TRIES) -> list[str]:
    """Whether the run time of modules by size grows faster than their cost on a stack."""
    allowed = STEEPER * slope({size: cost_of(module) for size, module in modules.items()})
    with on_threads(1):
        runs = {size: _run(module, stack, feed(module)) for size, module in modules.items()}

        def measure() -> Mapping[int, float]:
            times = race(
                {str(size): run for size, run in runs.items()},
                rounds=ROUNDS,
                seconds=SECONDS,
                clock=time.process_time,
            )
            return {int(size): timing.minimum for size, timing in times.items()}

        least = best(measure, lambda found: slope(found) <= allowed, tries)
    if slope(least) <= allowed:
        return []
    return [
        f"run time grows with the {slope(least):.2f}th power of the size, the cost with the {allowed / STEEPER:.2f}th"
    ]


def _run(module: Module, stack: str, inputs: Sequence[np.ndarray]) -> Callable[[], object]:
    made = compile_module(module, Flags.parse(stack), CompileOptions())
    return lambda: made.execute(inputs)


def compile_seconds(modules: Mapping[int, Module], stack: str) -> Measure:
    """A round of compiling each module without a cache of objects. What the first compile of a process imports counts
    nowhere: it would hide how the smallest one grows.
    """
    flags, options = Flags.parse(stack), CompileOptions(cache=None, threads=1)
    compile_module(modules[min(modules)], flags, options)

    def measure() -> Mapping[int, float]:
        found = {}
        for size, module in modules.items():
            start = time.process_time()
            compile_module(module, flags, options)
            found[size] = time.process_time() - start
        return found

    return measure


def compiles_by_rank(modules: Mapping[int, Module], stack: str, tries: int = TRIES) -> list[str]:
    """Whether compiling takes too long at the highest of some ranks."""
    low, high = min(modules), max(modules)

    def fits(found: Mapping[int, float]) -> bool:
        return found[high] <= max(RANK_SECONDS, RANK_TIMES * found[low])

    least = best(compile_seconds(modules, stack), fits, tries)
    if fits(least):
        return []
    return [f"compiling takes {least[high]:.2f} s at rank {high}, and {least[low]:.2f} s at rank {low}"]


def compiles_by_length(modules: Mapping[int, Module], stack: str, tries: int = TRIES) -> list[str]:
    """Whether compile time grows faster than the number of instructions, as far as LENGTH_SLOPE permits."""
    least = best(compile_seconds(modules, stack), lambda found: slope(found) <= LENGTH_SLOPE, tries)
    if slope(least) <= LENGTH_SLOPE:
        return []
    return [f"compile time grows with the {slope(least):.2f}th power of the number of instructions"]
