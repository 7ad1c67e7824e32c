"""A process that runs cases: a crash or a hang of one is an outcome, after which the next case has a new process.

The child says which stack it begins with, so that what ends it is blamed on the right one; the other stacks still run.
It ends with this process, whatever ends that.
"""

from __future__ import annotations

import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from multiprocessing import Pipe
from types import TracebackType
from typing import IO, Any, TypeVar

import numpy as np

from ..backends.xla.errors import reason_of_death
from ..hlo.errors import InputError, TestbedError
from ..hlo.ir import Module
from .outcome import STACKS, Outcome, Run, RunKind, confirmed
from .setting import USUAL, Setting

LIMIT = 60.0
"""Seconds that a stack has for a case."""

JUDGING = 120.0
"""Seconds to read a case, and to judge its results: BUDGET of permitted.py, and more runs of the evaluator."""

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
        limit_s: float = LIMIT,
        setting: Setting = USUAL,
        *,
        again: bool = False,
    ) -> Outcome:
        """The outcome of a case. module: HLO text, or a module. limit_s: for each stack.

        again: run a finding once more, to see whether it is flaky. Raises InputError (or another error of reading) for
        a case that is not one, as `outcome.outcome` does.
        """
        once = partial(self._outcome, module, inputs, stacks, limit_s, setting)
        return confirmed(once(), once) if again else once()

    def _outcome(
        self, module: str | Module, inputs: Sequence[np.ndarray], stacks: Sequence[str], limit: float, setting: Setting
    ) -> Outcome:
        known: dict[str, Run] = {}
        while True:
            running = ""
            try:
                self._send((module, list(inputs), list(stacks), setting, known))
                while True:
                    wait = limit if running else max(limit, JUDGING)
                    if not self._connection.poll(wait):
                        known[running] = Run(RunKind.HUNG, reason=f"no answer within {wait:g} s", seconds=wait)
                        self.close()
                        break
                    kind, value = self._connection.recv()
                    if kind == "error":
                        raise value
                    if kind == "outcome":
                        return value
                    running = value
            except (EOFError, ConnectionError):
                known[running] = Run(RunKind.CRASHED, reason=self._death())
            except BaseException as error:
                if not isinstance(error, TestbedError):
                    self.close()  # the answer to this case would be taken for the next one's
                raise
            if not running:  # not a stack, but the comparison or the start
                raise InputError(f"the case ends the process that reads it: {known[''].reason}", remedy="report it")

    def call(self, function: Callable[..., T], *arguments: Any, limit_s: float = LIMIT) -> T | str:
        """What a function of a module returns there; why there is no answer, in words, if the process ends over it."""
        try:
            self._send((function, arguments))
            if not self._connection.poll(limit_s):
                self.close()
                return f"no answer within {limit_s:g} s"
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
