"""How many drawn cases it takes until each planted fault is caught, from one stream of cases for all faults.

A hunt draws for one fault at a time. Here each case runs on the healthy testbed once, which notes the faults whose
lines it reaches (marks.py). Only these are planted, one after the other, and only the stacks that they spoil run again.
"""

from __future__ import annotations

import gc
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from random import Random

import numpy as np

from ...codegen.options import Target, assume_host
from ..campaign.task import Orders, Task, draw_task
from ..child import Child
from ..outcome import Outcome, concluded, run_stack
from ..shared import Shared
from .fault import planted
from .marks import RAN, mark, may_show
from .table import FAULTS

LIMIT = 60.0
"""Seconds that a healthy case has."""

PATIENCE = 30
"""With a fault, a case that takes this many times as long, and LEAST seconds more, hangs: a loop may have no end."""
LEAST = 10.0

ENOUGH = 4
"""A fault that was caught this often is left alone: how often it is met is known within a factor of about two."""


@dataclass
class Reached:
    """cases: that were drawn while the fault was planted in what reaches it. reached: of those, that run its lines.
    caught: of those, that end otherwise than on the healthy testbed.
    """

    name: str
    cases: int = 0
    reached: int = 0
    caught: int = 0

    @property
    def expected(self) -> float:
        """Cases until the fault is caught, on average; infinite if it never was."""
        return self.cases / self.caught if self.caught else math.inf

    def chance(self, cases: float) -> float:
        """The probability that a number of cases catches it; 0 if it never was caught."""
        return -math.expm1(-cases / self.expected)


@dataclass
class Reach:
    """Of all faults. alarms: numbers of the cases that are findings without any fault. busy: seconds that healthy runs
    took, of all processes together.
    """

    rows: dict[str, Reached]
    cases: int = 0
    alarms: list[int] = field(default_factory=list)
    busy: float = 0.0

    @property
    def rate(self) -> float:
        """Healthy cases a second of one process."""
        return self.cases / self.busy if self.busy else 0.0

    def found_in(self, seconds: float, jobs: int) -> float:
        """How many faults campaigns of these seconds and processes catch, on average."""
        return sum(row.chance(seconds * jobs * self.rate) for row in self.rows.values())


def measure(
    names: Sequence[str],
    cases: int,
    seed: int,
    orders: Orders,
    jobs: int = 1,
    target: Target | None = None,
    on_case: Callable[[], None] = lambda: None,
) -> Reach:
    """Draw `cases` cases, or fewer if all faults were caught ENOUGH times before."""
    found = Reach({name: Reached(name) for name in names})
    numbers, lock = count(), threading.Lock()

    def work() -> None:
        with Child(partial(_begin, tuple(names), target)) as child:
            while (number := next(numbers)) < cases:
                left = [row.name for row in found.rows.values() if row.caught < ENOUGH]
                if not left:
                    return
                _one(child, found, lock, (number, seed, orders), left)
                on_case()

    with ThreadPoolExecutor(jobs) as pool:
        for done in [pool.submit(work) for _ in range(jobs)]:
            done.result()
    return found


def _one(child: Child, found: Reach, lock: threading.Lock, drawn: tuple[int, int, Orders], left: Sequence[str]) -> None:
    """Run one case, and then with each fault of `left` that it reaches."""
    answer = child.call(_healthy, *drawn, left, limit_s=LIMIT)
    with lock:
        found.cases += 1
        if isinstance(answer, str) or answer[0]:
            found.alarms.append(drawn[0])
            return
        found.busy += answer[2]
    limit = LEAST + PATIENCE * answer[2]
    caught = [name for name in answer[1] if child.call(_spoiled, *drawn, name, limit_s=limit) is not False]
    with lock:
        for name in left:
            row = found.rows[name]
            row.cases, row.reached = row.cases + 1, row.reached + (name in answer[1])
            row.caught += name in caught


# in the process that runs cases


@dataclass
class _Last:
    """The case that ran last, which the faults spoil."""

    drawn: tuple[int, int] | None = None
    task: Task | None = None
    shared: Shared | None = None
    outcome: Outcome | None = None


_LAST = _Last()


def _begin(names: Sequence[str], target: Target | None) -> None:
    assume_host(target)
    mark(FAULTS[name] for name in names)
    gc.collect()
    gc.freeze()


def _healthy(number: int, seed: int, orders: Orders, left: Sequence[str]) -> tuple[bool, list[str], float]:
    """(Whether the case is a finding without any fault, the faults that may show in it, seconds that it took)."""
    start = time.perf_counter()
    task, shared, found = _run(number, seed, orders)
    ran = set(RAN)
    seconds = time.perf_counter() - start
    _LAST.drawn, _LAST.task, _LAST.shared, _LAST.outcome = (number, seed), task, shared, found
    return found.is_finding, [n for n in left if may_show(FAULTS[n], task.case.module, ran)], seconds


def _run(number: int, seed: int, orders: Orders) -> tuple[Task, Shared, Outcome]:
    from hypothesis.internal.conjecture.data import ConjectureData

    from ..generate.strategy import Drawn

    RAN.clear()
    task = draw_task(Drawn(ConjectureData(random=Random(hash((seed, number))))), orders)
    module, inputs = task.case.module, task.case.inputs
    shared = Shared(module, task.setting, task.stacks)
    runs = {stack: run_stack(module, inputs, stack, task.setting, shared) for stack in task.stacks}
    with np.errstate(all="ignore"):
        return task, shared, concluded(module, inputs, runs)


def _spoiled(number: int, seed: int, orders: Orders, name: str) -> bool:
    """Whether the case is a finding with a fault. Stacks that the fault leaves as they are do not run again."""
    if _LAST.drawn != (number, seed):  # a process that has just started
        _healthy(number, seed, orders, [])
    task, healthy, before, fault = _LAST.task, _LAST.outcome, _LAST.shared, FAULTS[name]
    assert task is not None and healthy is not None and before is not None
    module, inputs, everywhere = task.case.module, task.case.inputs, len(fault.blamed) > 1
    with planted(fault):
        shared = Shared(module, task.setting, task.stacks) if everywhere else before.with_other_emitters()
        runs = {
            stack: run_stack(module, inputs, stack, task.setting, shared)
            if stack != "evaluator" and (everywhere or stack in fault.blamed or stack not in ("legacy", "mlir"))
            else run
            for stack, run in healthy.runs.items()
        }
    with np.errstate(all="ignore"):
        return concluded(module, inputs, runs).is_finding
