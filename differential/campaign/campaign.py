"""Runs a campaign: hunters in their own processes, whose deaths and hangs are findings, and one state of them all."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from ...codegen.options import Target
from ...hlo.errors import TestbedError
from ..child import Begin
from ..conformance import inherited_signals_blocked
from ..patience import processor_seconds
from .cause import Cause
from .hunter import Hunt, hunt
from .search import SHRINK_SECONDS
from .state import State
from .task import Orders

SAVE_SECONDS, SHOW_SECONDS = 10.0, 0.25
"""How often the state is saved and shown: to add up its coverage costs more than to read a message of a hunter."""

START_SECONDS = 60.0
"""In which a process must say something after its start."""

PATIENCE = 10
"""A process that has used no processor time to speak of, on a busy machine, is waited for this many times as long."""


@dataclass
class _Process:
    """A hunter. running: the task that it began last. caught: the smallest task so far of the finding that it makes
    small. since: the time, by time.monotonic, when it said something. worked: the processor time that it had used then.
    """

    number: int
    handle: Any
    connection: Connection
    running: str = ""
    caught: str = ""
    since: float = field(default_factory=time.monotonic)
    worked: float = 0.0
    suspects: tuple[str, ...] = ()
    done: bool = False

    def hangs(self, allowed: float) -> bool:
        """Whether it has been silent for longer than `allowed` seconds, and has had the processor for half of them."""
        silent = time.monotonic() - self.since
        if silent <= allowed:
            return False
        return processor_seconds(self.handle.pid, silent) - self.worked > allowed / 2 or silent > PATIENCE * allowed


Watch = Callable[[State], None]


@dataclass
class Campaign:
    """limit: seconds that a task may take. begin: runs first in each process. first: end at the first new finding.

    shrink_seconds: for each finding. on_progress is called a few times a second, on_finding for each new cause.
    met: (cases, seconds) of the campaign when its first finding of this run was met, before it was made small.
    """

    orders: Orders
    folder: Path
    state: State
    jobs: int
    seconds: float
    limit: float
    target: Target | None = None
    begin: Begin | None = None
    first: bool = False
    shrink_seconds: float = SHRINK_SECONDS
    on_progress: Watch = lambda state: None
    on_finding: Callable[[Cause, str], None] = lambda cause, blob: None
    met: tuple[int, float] | None = None
    _before: float = 0.0

    def run(self) -> State:
        """Hunt until the time is over. The state is saved every SAVE_SECONDS, and however this ends."""
        self._start, self._before, known = time.monotonic(), self.state.seconds, self.state.findings
        self._until = time.time() + self.seconds
        self.folder.mkdir(parents=True, exist_ok=True)
        self.state.save(self.folder)
        processes = [self._begin(number) for number in range(self.jobs)]
        saved = shown = time.monotonic()
        try:
            while not all(p.done for p in processes) and not (self.first and self.state.findings > known):
                for n, process in enumerate(processes):
                    if not process.done and self._ended(process):
                        processes[n] = self._after(process)
                open_ = [p.connection for p in processes if not p.done]
                for connection in wait(open_, timeout=0.2) if open_ else ():
                    process = next(p for p in processes if p.connection is connection)
                    self._read(process)
                self._clock()
                if time.monotonic() - shown > SHOW_SECONDS:
                    self.on_progress(self.state)
                    shown = time.monotonic()
                if time.monotonic() - saved > SAVE_SECONDS:
                    self.state.save(self.folder)
                    saved = time.monotonic()
        finally:
            for process in processes:
                process.handle.kill()
            for process in processes:
                process.handle.join()
                process.connection.close()
            self._clock()
            self.state.save(self.folder)
        return self.state

    def _clock(self) -> None:
        self.state.seconds = self._before + time.monotonic() - self._start

    def _begin(self, number: int, suspects: Sequence[str] = ()) -> _Process:
        ours, theirs = multiprocessing.Pipe()
        told = Hunt(
            orders=self.orders,
            folder=str(self.folder),
            seed=self.state.seed,
            number=number,
            first_round=self.state.rounds.get(number, 0),
            until=self._until,
            limit=self.limit,
            known=tuple(known.cause for known in self.state.causes),
            suspects=tuple(suspects),
            target=self.target,
            begin=self.begin,
            shrink_seconds=self.shrink_seconds,
        )
        context = multiprocessing.get_context("spawn")
        with inherited_signals_blocked():
            handle = context.Process(target=hunt, args=(told, theirs, os.getpid()), daemon=False)
            handle.start()
        theirs.close()
        return _Process(number, handle, ours, suspects=tuple(suspects))

    # what a process says

    def _read(self, process: _Process) -> None:
        """Read all that it has said."""
        try:
            while process.connection.poll():
                kind, *values = process.connection.recv()
                self._take(process, kind, values)
        except (EOFError, ConnectionError):
            process.handle.join()

    def _take(self, process: _Process, kind: str, values: list[Any]) -> None:
        process.since, process.worked = time.monotonic(), processor_seconds(process.handle.pid, 0.0)
        if kind == "begin":
            process.running = values[0]
        elif kind == "counts":
            cases, refused, coverage, again, forms = values
            self.state.cases += cases
            self.state.refused += refused
            self.state.coverage.update(coverage)
            self.state.forms.update(forms)
            self.state.met_again(again)
        elif kind == "round":
            process.running = process.caught = ""
            self.state.rounds[process.number] = values[0]
        elif kind == "smaller":
            self._meet()
            process.caught = values[0]
        elif kind == "finding":
            self._meet()
            process.caught = ""
            cause, blob, flaky, sentence = values
            if self.state.meet(cause, blob, sentence, flaky):
                self.on_finding(cause, blob)
        elif kind == "undecided":
            self.state.undecided.append(values[0])
        elif kind == "unrepeated":
            self.state.unrepeated.append(values[0])
        elif kind == "done":
            process.done = True

    def _meet(self) -> None:
        if self.met is None:
            self._clock()
            self.met = self.state.cases, self.state.seconds

    # how it ends

    def _ended(self, process: _Process) -> bool:
        """Whether it died, or hangs and was ended."""
        if not process.handle.is_alive():
            self._read(process)
            return not process.done
        allowed = self.limit if process.running else max(self.limit, START_SECONDS)
        if process.suspects and not process.running:
            allowed *= 10  # it waits for processes of its own
        if process.hangs(allowed):
            process.handle.kill()
            process.handle.join()
            self._read(process)
            return not process.done
        return False

    def _after(self, process: _Process) -> _Process:
        """A new process in the place of one that died. It begins with what the old one had caught, and the task that it
        ran.
        """
        process.connection.close()
        if not process.running:
            if process.suspects:  # it died of something else than its suspect
                self.state.unrepeated += process.suspects
            elif self.state.rounds.get(process.number, 0) == 0 and self.state.cases == 0:
                raise TestbedError(
                    f"a process of the campaign ended at its start, with status {process.handle.exitcode}",
                    remedy="what it said stands above; if nothing, lower --jobs: memory may be short",
                )
            return self._begin(process.number)
        self.state.rounds[process.number] = self.state.rounds.get(process.number, 0) + 1
        return self._begin(process.number, [blob for blob in (process.caught, process.running) if blob])
