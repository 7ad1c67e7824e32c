"""Run a corpus in worker processes: a crash or a hang is one row of the report, never the end of the run."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from contextlib import contextmanager
from multiprocessing import resource_tracker

from pebble import ProcessExpired, ProcessPool

from ..codegen.cache import DEFAULT_CACHE
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
    others = set(multiprocessing.active_children())
    begin = os.getpid(), DEFAULT_CACHE.limit_bytes
    with ProcessPool(jobs, context=context, initializer=begin_worker, initargs=begin) as pool:
        try:
            with inherited_signals_blocked():
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
            for worker in set(multiprocessing.active_children()) - others:
                worker.kill()  # one in native code would not answer the pool for seconds
            raise
    return [rows[future] for future in tasks]


@contextmanager
def inherited_signals_blocked() -> Iterator[None]:
    """Threads and processes that start within never see Ctrl-C, not even while they load: it is for this process."""
    resource_tracker.ensure_running()  # its start unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


PR_SET_PDEATHSIG = 1
"""Linux's prctl: the signal that a process gets when the thread that started it ends."""


def begin_worker(parent: int, cache_limit: int) -> None:
    """Begin a worker: it discards whatever a stack prints to stdout, and ends with its parent, however that ends."""
    DEFAULT_CACHE.limit_bytes = cache_limit
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)


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
