"""Run a corpus in worker processes: a crash or a hang is one row of the report, never the end of the run."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait

from .case_runner import run_case
from .corpus import Case
from .report import Row

Runner = Callable[[Case, Sequence[str]], Iterable[Row]]
"""What a worker does with a case: yields one row a stack, in order. Must be importable, for it is sent by name."""


def run_cases(
    cases: Sequence[Case],
    stacks: Sequence[str],
    *,
    jobs: int,
    limit: float,
    on_row: Callable[[Row], None] = lambda row: None,
    runner: Runner = run_case,
) -> list[Row]:
    """Run every case on every stack in `jobs` worker processes; `limit`: seconds for one case on one stack."""
    queue = list(reversed([(case, tuple(stacks)) for case in cases]))
    workers = [_Worker(runner) for _ in range(min(jobs, len(queue)) or 1)]
    rows: list[Row] = []

    def note(row: Row) -> None:
        rows.append(row)
        on_row(row)

    try:
        while queue or any(w.busy for w in workers):
            for worker in workers:
                if not worker.busy and queue:
                    worker.give(*queue.pop())
            _collect(workers, queue, limit, note)
    finally:
        for worker in workers:
            worker.stop()
    order = {(c.id, s): (i, j) for i, c in enumerate(cases) for j, s in enumerate(stacks)}
    return sorted(rows, key=lambda r: order[r.id, r.stack])


def _collect(
    workers: list[_Worker], queue: list[tuple[Case, tuple[str, ...]]], limit: float, note: Callable[[Row], None]
) -> None:
    """Wait for a message or a deadline; take rows in; replace workers that died or hang, requeue what they left."""
    busy = [w for w in workers if w.busy]
    deadline = min(w.since + limit for w in busy)
    ready = wait([w.pipe for w in busy], timeout=max(0.0, deadline - time.monotonic()))
    for worker in busy:
        if worker.pipe in ready:
            row = worker.receive()
            if row is not None:
                note(row)
                continue
            reason = worker.death()
        elif time.monotonic() - worker.since >= limit:
            reason = f"no answer within {limit:g} s"
        else:
            continue
        case, left = worker.case, worker.left
        assert case is not None
        note(Row(case.id, left[0], "crashed", reason, seconds=round(time.monotonic() - worker.since, 4)))
        if left[1:]:
            queue.append((case, left[1:]))
        worker.restart()


class _Worker:
    """A child process that takes (case, stacks) and answers one row a stack."""

    def __init__(self, runner: Runner) -> None:
        self.runner = runner
        self.case: Case | None = None
        self.left: tuple[str, ...] = ()
        self.since = 0.0
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # fork would copy LLVM's and MLIR's state
        self.pipe, child = context.Pipe()
        self.process = context.Process(target=work, args=(child, self.runner), daemon=True)
        self.process.start()
        child.close()

    @property
    def busy(self) -> bool:
        return bool(self.left)

    def give(self, case: Case, stacks: tuple[str, ...]) -> None:
        self.case, self.left, self.since = case, stacks, time.monotonic()
        with suppress(OSError):  # it died while idle; the pipe's end is noticed by receive
            self.pipe.send((case, stacks))

    def receive(self) -> Row | None:
        """The next row, or None if the process died."""
        try:
            row = self.pipe.recv()
        except (EOFError, OSError):
            return None
        self.left, self.since = self.left[1:], time.monotonic()
        return row

    def death(self) -> str:
        self.process.join(5)
        code = self.process.exitcode
        return f"killed by signal {-code}" if code is not None and code < 0 else f"exited with status {code}"

    def restart(self) -> None:
        self.stop()
        self.left = ()
        self._start()

    def stop(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()


def work(pipe: Connection, runner: Runner) -> None:
    """A worker's life: imports stay loaded from case to case; what a stack prints to stdout goes nowhere."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, 1)
    while True:
        try:
            case, stacks = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            for row in runner(case, stacks):
                pipe.send(row)
        except (BrokenPipeError, KeyboardInterrupt):
            return
