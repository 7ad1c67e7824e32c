"""Processes that emit device code, one for each module: a fork of one that only loaded LLVM.

LLVM's SPIR-V back end keeps numbers of a module's blocks for the next one, where other values have them, too; and it
ends the process at what it does not know.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import IO

from ...codegen.errors import CodegenError
from .targets import DeviceTarget

LIMIT = 120.0
"""Seconds for a module."""

_BOOT = "import sys; sys.path[:] = {path!r}; from {module} import serve; serve({descriptor})"


class LateError(Exception):
    """There is no answer within LIMIT. It may still come, so the emitter cannot be used again."""


class Emitter:
    """A process that forks one for each module, and leads a group of processes. One thread uses it at a time."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        ours, theirs = Pipe()
        self.errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed by stop)
        boot = _BOOT.format(path=sys.path, module=__name__, descriptor=theirs.fileno())
        self.process = subprocess.Popen(
            [sys.executable, "-c", boot],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self.errors,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self.connection = ours

    def emit(self, text: str, target: DeviceTarget) -> bytes:
        """The code. Raises CodegenError for what LLVM refuses or dies of, and LateError."""
        self.connection.send((text, target))
        if not self.connection.poll(LIMIT):
            raise LateError
        kind, answer = self.connection.recv()
        if kind == "done":
            return bytes(answer)
        message, remedy = answer if kind == "refused" else (self._death(target, answer), "use the host for this kernel")
        raise CodegenError(message, remedy=remedy)

    def _death(self, target: DeviceTarget, status: int) -> str:
        """Why a process of a module ended, in one line."""
        self.errors.seek(0)
        said = self.errors.read().decode("utf-8", "replace").splitlines()
        self.errors.seek(0)
        self.errors.truncate()
        line = next((x for x in said if "error" in x.lower() or "unable" in x.lower() or "cannot" in x.lower()), "")
        ended = f"signal {-status}" if status < 0 else f"status {status}"
        return f"LLVM makes no code for {target.name}: {' '.join(line.split())[:200] or f'it ended with {ended}'}"

    def stop(self) -> None:
        """End it and the process that it forked. A fork of this process only forgets it."""
        self.connection.close()
        if self.owner == os.getpid():
            if self.process.poll() is None:
                with suppress(ProcessLookupError):
                    os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.errors.close()


_idle: list[Emitter] = []
_lock = threading.Lock()


def emitted_apart(text: str, target: DeviceTarget) -> bytes:
    """The device's code for a module, made in a process of its own. Raises CodegenError in one line."""
    with _lock:
        while _idle and (_idle[-1].owner != os.getpid() or _idle[-1].process.poll() is not None):
            _idle.pop().stop()
        emitter = _idle.pop() if _idle else None
    emitter = emitter or Emitter()
    try:
        made = emitter.emit(text, target)
    except CodegenError:
        _give_back(emitter)
        raise
    except LateError:
        emitter.stop()
        what = f"LLVM makes no code for {target.name} within {LIMIT:g} s"
        raise CodegenError(what, remedy="use the host for this kernel") from None
    except (EOFError, OSError):
        emitter.stop()
        raise CodegenError("the process that runs LLVM has ended", remedy="try again") from None
    except BaseException:
        emitter.stop()
        raise
    _give_back(emitter)
    return made


def _give_back(emitter: Emitter) -> None:
    with _lock:
        _idle.append(emitter)


@atexit.register
def _stop() -> None:
    while _idle:
        _idle.pop().stop()


# --- in the other process --------------------------------------------------------------------------------------------
def serve(descriptor: int) -> None:
    """Answer requests until the other side is closed."""
    from ...codegen.llvm import start
    from . import emit  # noqa: F401  # loaded once, for all forks

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    start()
    connection: Connection = Connection(descriptor)
    while True:
        try:
            text, target = connection.recv()
        except EOFError:
            return
        child = os.fork()
        if child == 0:
            _answer(connection, text, target)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if status:
            connection.send(("died", status))


def _answer(connection: Connection, text: str, target: DeviceTarget) -> None:
    """Emit one module and end."""
    from .emit import emit

    try:
        connection.send(("done", emit(text, target)))
    except CodegenError as error:
        connection.send(("refused", (error.message, error.remedy)))
    except Exception as error:
        what = f"LLVM makes no code for {target.name}: {' '.join(str(error).split())[:300]}"
        connection.send(("refused", (what, "use the host for this kernel")))
    os._exit(0)
