"""XLA in a child process that many programs share: a crash or a hang of XLA is an error of one program.

`IsolatedXla` is `XlaExecutable` there. The child ends with this process, whatever ends that.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from multiprocessing import Pipe
from typing import IO, Any

import numpy as np

from ...hlo.errors import InputError
from .errors import XlaCrashed, XlaRefused, reason_of_death
from .flags import NO_FLAGS, XlaFlags
from .installed import require_installed

LIMIT = 300.0
"""Seconds that the child has for a request."""

_BOOT = "import sys; sys.path[:] = {path!r}; from {worker} import serve; serve({descriptor})"


class Restarted(Exception):
    """The process that a request was for has ended."""


class Child:
    """A process that answers requests in turn; it is started at the first, and again after its death."""

    def __init__(self, worker: str = f"{__package__}.worker"):
        self._worker = worker
        self._lock = threading.RLock()
        self._process: subprocess.Popen | None = None
        self._connection: Any = None
        self._errors: IO[bytes] | None = None
        self._forgotten: list[int] = []
        self.starts = 0

    def request(self, *request: Any, limit: float = LIMIT, start: int | None = None) -> Any:
        """The child's answer. Raises XlaRefused if it is a refusal, XlaCrashed if the child ends or takes too long.

        start: the value of `starts` that the request is for; raises Restarted if the process is another one by now.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            if start not in (None, self.starts):
                raise Restarted
            try:
                forgotten, self._forgotten = self._forgotten, []
                self._connection.send((forgotten, *request))
                if not self._connection.poll(limit):
                    raise XlaCrashed(f"no answer within {limit:g} s")
                kind, *answer = self._connection.recv()
            except (EOFError, ConnectionError, BrokenPipeError):
                raise XlaCrashed(self._death()) from None
            except BaseException:  # the answer to this request would be taken for the next one's
                self.stop()
                raise
            if kind == "refused":
                raise XlaRefused(*answer)
            if kind == "input":
                raise InputError(answer[0], remedy=answer[1])
            return answer[0]

    def forget(self, number: int) -> None:
        """Free an executable with the next request."""
        self._forgotten.append(number)

    def stop(self) -> None:
        """End the process."""
        with self._lock:
            if self._process is None:
                return
            self._process.kill()
            self._process.wait()
            self._close()

    def _start(self) -> None:
        self._close()
        ours, theirs = Pipe()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by _close)
        boot = _BOOT.format(path=sys.path, worker=self._worker, descriptor=theirs.fileno())
        self._process = subprocess.Popen(
            [sys.executable, "-c", boot],
            stdin=subprocess.PIPE,  # held open as long as this process lives
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        self._connection = ours
        self.starts += 1

    def _death(self) -> str:
        """Why the process ended, in one line."""
        assert self._process is not None and self._errors is not None
        code = self._process.wait()
        self._errors.seek(0)
        said = reason_of_death(self._errors.read().decode("utf-8", "replace"))
        self._close()
        ended = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exited with status {code}"
        return f"{ended}: {said}" if said else ended

    def _close(self) -> None:
        for file in (self._connection, self._errors, self._process and self._process.stdin):
            if file:
                file.close()
        self._process = self._connection = self._errors = None
        self._forgotten = []


_child = Child()
_owner = os.getpid()


def _shared() -> Child:
    """This process's child; a forked process has one of its own."""
    global _child, _owner
    if _owner != os.getpid():
        _child, _owner = Child(), os.getpid()
    return _child


@atexit.register
def _stop() -> None:
    if _owner == os.getpid():
        _child.stop()


class IsolatedXla:
    """A module compiled by XLA:CPU in the child. seconds: the time that XLA took to compile it.

    Raises InputError if jaxlib is absent or a flag is unknown, XlaRefused if XLA refuses the module.
    """

    def __init__(self, text: str, flags: XlaFlags = NO_FLAGS):
        require_installed()
        self.text, self.flags = text, flags
        self.run_seconds = 0.0
        self._child = _shared()
        self._compile()

    def _compile(self) -> None:
        self._number, self.seconds = self._child.request("compile", self.text, self.flags)
        self._start = self._child.starts

    def execute(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Results on inputs. run_seconds is then the time of the run alone, without the copies between processes."""
        try:
            results, self.run_seconds = self._child.request("run", self._number, list(inputs), start=self._start)
        except Restarted:  # another program ended the process
            self._compile()
            return self.execute(inputs)
        return results

    def __del__(self) -> None:
        child = getattr(self, "_child", None)
        if child is not None and getattr(self, "_start", None) == child.starts:
            child.forget(self._number)
