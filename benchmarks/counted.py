"""Hardware counters of a program: a run, and a call of each kernel and copy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..profiling.counters import Counters, open_counters
from ..profiling.report import Report
from ..thunks.kinds import CopyThunk, KernelThunk, Thunk
from ..thunks.marked import numbered_steps

if TYPE_CHECKING:
    from ..backends.host.executable import HostExecutable

MOST_CALLS = 20_000
"""Kernels and copies a run up to which each is counted: to read the counters takes some microseconds."""

RUNS = 5


def counted(report: Report, executable: HostExecutable, inputs: Sequence[np.ndarray]) -> Report:
    """The report with counters of a run, and of a call of each step where these are few enough."""
    execute = executable.execute
    execute(inputs)
    with open_counters() as counters:
        notes = (*report.notes, *counters.notes)
        if not counters.descriptors:
            return replace(report, notes=notes)
        before = counters.read()
        for _ in range(RUNS):
            execute(inputs)
        whole = _difference(before, counters.read(), RUNS)
        calls = sum(step.calls for step in report.steps)
        if calls > MOST_CALLS:
            notes += (f"counters of the whole run only: it has {calls:,.0f} steps, more than {MOST_CALLS:,}",)
            return replace(report, counters=whole, notes=notes)
        by_step = _by_step(executable, inputs, counters)
    steps = tuple(replace(step, counters=by_step.get(n)) for n, step in enumerate(report.steps))
    return replace(report, counters=whole, steps=steps, notes=notes)


def _difference(before: Mapping[str, float], after: Mapping[str, float], runs: int) -> dict[str, float]:
    return {name: max(after[name] - before[name], 0.0) / runs for name in after}


def _by_step(
    executable: HostExecutable, inputs: Sequence[np.ndarray], counters: Counters
) -> dict[int, dict[str, float]]:
    """Step → counts of a call: the mean of RUNS runs, less what reading the counters costs."""
    numbers = {id(thunk): n for n, (_, thunk) in enumerate(numbered_steps(executable.thunks))}
    sums: dict[int, dict[str, float]] = {}
    calls: dict[int, int] = {}
    own = _least([_difference(counters.read(), counters.read(), 1) for _ in range(20)])

    def observe(thunk: Thunk, run: Callable[[], object]) -> None:
        if not isinstance(thunk, (KernelThunk, CopyThunk)):
            run()
            return
        before = counters.read()
        run()
        found = _difference(before, counters.read(), 1)
        number = numbers[id(thunk)]
        calls[number] = calls.get(number, 0) + 1
        row = sums.setdefault(number, dict.fromkeys(found, 0.0))
        for name, value in found.items():
            row[name] += max(value - own[name], 0.0)

    for _ in range(RUNS):
        executable.execute(inputs, observer=observe)
    return {n: {name: value / calls[n] for name, value in row.items()} for n, row in sums.items()}


def _least(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    return {name: min(row[name] for row in rows) for name in rows[0]}
