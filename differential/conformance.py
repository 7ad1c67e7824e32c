"""Run a corpus in worker processes: a crash or a hang is one row of the report, never the end of the run."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, as_completed

from pebble import ProcessExpired, ProcessPool

from .case_runner import run_case
from .corpus import Case
from .report import CaseResult

Runner = Callable[[Case, str], CaseResult]
"""Runs a case on a stack in a worker process. It must be importable, because it is sent to the worker by name."""


def run_cases(
    cases: Sequence[Case],
    stacks: Sequence[str],
    *,
    jobs: int,
    limit: float,
    on_row: Callable[[CaseResult], None] = lambda row: None,
    runner: Runner = run_case,
) -> list[CaseResult]:
    """Run every case on every stack in `jobs` worker processes; `limit`: seconds for one case on one stack."""
    context = multiprocessing.get_context("spawn")  # fork would copy LLVM's and MLIR's state
    rows: dict[Future[CaseResult], CaseResult] = {}
    with ProcessPool(jobs, context=context, initializer=_be_quiet) as pool:
        try:
            tasks: dict[Future[CaseResult], tuple[str, str]] = {
                pool.schedule(runner, (case, stack), timeout=limit): (case.id, stack)
                for case in cases
                for stack in stacks
            }
            for future in as_completed(tasks):
                rows[future] = _row(future, *tasks[future], limit)
                on_row(rows[future])
        except BaseException:
            pool.stop()  # else the pool's end waits for what is scheduled
            raise
    return [rows[future] for future in tasks]


def _be_quiet() -> None:
    """Discard whatever a stack prints to stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _row(future: Future[CaseResult], case: str, stack: str, limit: float) -> CaseResult:
    """The row of a finished task, or what ended its process."""
    try:
        return future.result()
    except TimeoutError:
        return CaseResult(case, stack, "crashed", f"no answer within {limit:g} s", seconds=limit)
    except ProcessExpired as died:
        code = died.exitcode or 0
        reason = f"killed by signal {-code}" if code < 0 else f"exited with status {code}"
        return CaseResult(case, stack, "crashed", reason, seconds=None)
