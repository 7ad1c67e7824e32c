"""A process that runs cases: a crash or a hang of one is an outcome, after which the next case has a new process.
A loop without end is a hang that ends in place (patience.py), and the process stays.

The child says which stack it begins with, so that what ends it is blamed on the right one; the other stacks still run.
It ends with this process, whatever ends that.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from multiprocessing import Pipe
from types import TracebackType
from typing import IO, Any, TypeVar

import numpy as np

from ..backends.xla.errors import reason_of_death
from ..hlo.errors import InputError, TestbedError
from ..hlo.ir import Module
from .outcome import STACKS, Outcome, Run, RunKind, confirmed
from .patience import Patience, no_answer, processor_seconds
from .setting import USUAL, Setting

LIMIT = 60.0
"""Seconds that a stack has for a case."""

JUDGING = 100.0
"""Seconds to read a case, and to judge its results, besides the budget of the setting."""

LATE, WAITING, STARVED = 1.25, 3.0, 30.0
"""A process that has not ended a stack in place has LATE times its time, of the processor; by the clock, WAITING times
that if it waits for something, and STARVED times if others have the processor.
"""

IDLE = 0.02
"""The part of a processor that a process uses at most if it waits for something."""

MEMORY = 4 << 30
"""Bytes that a child may allocate."""

_BOOT = "import sys; sys.path[:] = {path!r}; from {worker} import serve; serve({descriptor})"

T = TypeVar("T")

Begin = Callable[[], object]
"""Runs in each new process before its first case. It is sent by pickle: a function of a module, or a partial of one."""


class Child:
    """A process for cases; it is started at the first, and again after its death. Close it, or use it in `with`."""

    def __init__(self, begin: Begin | None = None, *, memory: int = MEMORY):
        """memory: bytes that it may allocate; what does not fit is refused."""
        self.begin, self._memory = begin, memory
        self._process: subprocess.Popen | None = None
        self._connection: Any = None
        self._errors: IO[bytes] | None = None
        self.starts = 0

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def outcome(
        self,
        module: str | Module,
        inputs: Sequence[np.ndarray],
        stacks: Sequence[str] = STACKS,
        limit: float | Patience = LIMIT,
        setting: Setting = USUAL,
        *,
        again: bool = False,
    ) -> Outcome:
        """The outcome of a case. module: HLO text, or a module. limit: seconds for each stack, or more about them.

        again: run a finding once more, to see whether it is flaky. Raises InputError (or another error of reading) for
        a case that is not one, as `outcome.outcome` does.
        """

        def once() -> Outcome:
            found = self._outcome(module, inputs, stacks, limit, setting)
            assert found is not None
            return found

        return confirmed(once(), once) if again else once()

    def outcome_like(
        self,
        wanted: Outcome,
        module: Module,
        inputs: Sequence[np.ndarray],
        stacks: Sequence[str],
        limit: float | Patience,
        setting: Setting,
    ) -> Outcome | None:
        """The outcome of a case; None as soon as it cannot have the signature of `wanted` any more."""
        return self._outcome(module, inputs, stacks, limit, setting, wanted)

    def _outcome(
        self,
        module: str | Module,
        inputs: Sequence[np.ndarray],
        stacks: Sequence[str],
        limit: float | Patience,
        setting: Setting,
        wanted: Outcome | None = None,
    ) -> Outcome | None:
        patience = limit if isinstance(limit, Patience) else Patience(limit)
        known: dict[str, Run] = {}
        judging = JUDGING + 2 * setting.budget
        like = None if wanted is None else replace(wanted, runs={}, verdict=None)
        while True:
            running, allowed = "", max(patience.whole, judging)
            try:
                self._send((module, list(inputs), list(stacks), setting, known, patience, like))
                while True:
                    if not self._says(running, allowed):
                        known[running] = Run(RunKind.HUNG, reason=no_answer(allowed), seconds=allowed)
                        self.close()
                        break
                    kind, value = self._connection.recv()
                    if kind == "error":
                        raise value
                    if kind == "outcome":
                        return value
                    running, allowed = value if value[0] else ("", max(patience.whole, judging))
            except (EOFError, ConnectionError):
                known[running] = Run(RunKind.CRASHED, reason=self._death())
            except BaseException as error:
                if not isinstance(error, TestbedError):
                    self.close()  # the answer to this case would be taken for the next one's
                raise
            if not running:  # not a stack, but the comparison or the start
                raise InputError(f"the case ends the process that reads it: {known[''].reason}", remedy="report it")

    def _says(self, running: str, allowed: float) -> bool:
        """Whether it says something in time. running: a stack, which is to end in place before."""
        if not running:
            return self._connection.poll(allowed)
        assert self._process is not None
        pid, most, since = self._process.pid, LATE * allowed + 1, time.monotonic()
        worked = processor_seconds(pid, 0.0)
        while not self._connection.poll(0.5):
            silent = time.monotonic() - since
            used = processor_seconds(pid, silent + worked) - worked
            if used > most or silent > (WAITING if used < IDLE * silent else STARVED) * most:
                return False
        return True

    def call(self, function: Callable[..., T], *arguments: Any, limit_s: float = LIMIT) -> T | str:
        """What a function of a module returns there; why there is no answer, in words, if the process ends over it."""
        try:
            self._send((function, arguments))
            if not self._connection.poll(limit_s):
                self.close()
                return no_answer(limit_s)
            kind, value = self._connection.recv()
        except (EOFError, ConnectionError):
            return self._death()
        except BaseException:
            self.close()
            raise
        if kind == "error":
            raise value
        return value

    def _send(self, request: tuple[Any, ...]) -> None:
        if self._process is None or self._process.poll() is not None:
            self._start()
        self._connection.send(request)

    def _start(self) -> None:
        self.close()
        ours, theirs = Pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by close)
        boot = _BOOT.format(path=sys.path, worker=f"{__package__}.child_worker", descriptor=theirs.fileno())
        self._process = subprocess.Popen(
            [sys.executable, "-c", boot],
            stdin=subprocess.PIPE,  # held open as long as this process lives
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=[theirs.fileno()],
            process_group=0,  # Ctrl-C is for this process
        )
        theirs.close()
        self._connection = ours
        self.starts += 1
        ours.send((self._memory, pickle.dumps(self.begin)))
        ours.recv()  # it is ready

    def _death(self) -> str:
        """Why the process ended, in one line."""
        assert self._process is not None and self._errors is not None
        code = self._process.wait()
        self._errors.seek(0)
        said = reason_of_death(self._errors.read().decode("utf-8", "replace"))
        self.close()
        ended = signal.Signals(-code).name if code < 0 else f"exited with status {code}"
        return f"{ended}: {said}" if said else ended

    def close(self) -> None:
        """End the process; another case starts a new one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        for file in (self._connection, self._errors, self._process and self._process.stdin):
            if file:
                file.close()
        self._process = self._connection = self._errors = None
