"""A run in a child process with red zones and a time limit: handlers that crash, hang or write out of bounds are named.

The child is a fork, so that it has the handlers of this process. It writes the step that it is at to shared memory.
"""

from __future__ import annotations

import faulthandler
import mmap
import os
import pickle
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...hlo.errors import InputError, TestbedError
from ...thunks.kinds import KernelThunk
from ..base import BackendError
from . import red_zones
from .executable import HostExecutable

LIMIT = 10.0
"""Seconds that a step may take."""

_POLL = 0.05
_HEAD = 8


class HandlerError(BackendError):
    """A step ended the child process, or went on for too long. instruction: of HLO."""

    def __init__(self, instruction: str, what: str):
        self.instruction = instruction
        super().__init__(f"{instruction or 'the program'}: {what}")


def run_checked(executable: HostExecutable, inputs: Sequence[Any], limit: float = LIMIT) -> list[np.ndarray]:
    """Run once in a child process, between guard bytes. limit: seconds that a step may take.

    Raises what the run raises (CallError, RedZoneError, InputError), with its text, and HandlerError for a step that
    crashes or hangs. This process is as before, whatever happens. executable: compiled with `red_zones=True` or for the
    checking mode.
    """
    if not (executable.has_red_zones or executable.checks_memory):
        raise InputError("no red zones to run between", remedy="compile it with CompileOptions(red_zones=True)")
    place = mmap.mmap(-1, mmap.PAGESIZE)
    receiver, sender = os.pipe()
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX and Python warn of locks that other threads hold: the limit ends those
        child = os.fork()
    if child == 0:
        os.close(receiver)
        _in_child(executable, inputs, place, sender)
    os.close(sender)
    try:
        data = _received(receiver, child, place, limit)
    finally:
        os.close(receiver)
        _ended(child)
        place.close()
    kind, value = pickle.loads(data)
    if kind == "done":
        return list(value)
    raise _Again.of(*value)


def _in_child(executable: HostExecutable, inputs: Sequence[Any], place: mmap.mmap, sender: int) -> None:
    """Run, send what came out, and end the process."""
    status = 1
    faulthandler.disable()  # the parent says what happened
    try:

        def note(thunk: KernelThunk) -> None:
            name = thunk.name.encode()[: mmap.PAGESIZE - 3 * _HEAD]
            count = int.from_bytes(place[:_HEAD], "little") + 1
            place[:] = (count.to_bytes(_HEAD, "little") + len(name).to_bytes(_HEAD, "little") + name).ljust(len(place))

        red_zones.note_kernels(note)
        answer: tuple[str, list[Any]]
        try:
            answer = "done", list(executable.execute(inputs))
        except TestbedError as error:
            answer = "error", [(type(error).__module__, type(error).__name__), str(error), vars(error)]
        with os.fdopen(sender, "wb") as file:
            file.write(pickle.dumps(answer))
        status = 0
    except BaseException:  # the fork must never go on as this process
        traceback.print_exc()
    finally:
        os._exit(status)


class _Again:
    """Errors of the child, made again here."""

    @staticmethod
    def of(name: tuple[str, str], text: str, fields: dict[str, Any]) -> TestbedError:
        kind = getattr(sys.modules.get(name[0]), name[1], TestbedError)
        error = kind.__new__(kind)
        Exception.__init__(error, text)
        for key, value in fields.items():
            setattr(error, key, value)
        assert isinstance(error, TestbedError)
        return error


def _received(receiver: int, child: int, place: mmap.mmap, limit: float) -> bytes:
    """All that the child sends. Raises HandlerError if it ends before, or stays at one step for too long."""
    data, step, since = b"", -1, time.monotonic()
    while True:
        ready, _, _ = select.select([receiver], [], [], _POLL)
        if ready:
            block = os.read(receiver, 1 << 20)
            if not block:
                break
            data += block
        now = int.from_bytes(place[:_HEAD], "little")
        if now != step or ready:
            step, since = now, time.monotonic()
        if time.monotonic() - since > limit:
            raise HandlerError(_name(place), f"did not return within {limit:g} s")
    if not data:
        _, status = os.waitpid(child, 0)
        why = f"status {os.waitstatus_to_exitcode(status)}"
        if os.WIFSIGNALED(status):
            why = signal.Signals(os.WTERMSIG(status)).name
        raise HandlerError(_name(place), f"ended its process ({why})")
    return data


def _name(place: mmap.mmap) -> str:
    size = int.from_bytes(place[_HEAD : 2 * _HEAD], "little")
    return place[2 * _HEAD : 2 * _HEAD + size].decode("utf-8", "replace")


def _ended(child: int) -> None:
    """End the child, if it is still there."""
    try:
        if os.waitpid(child, os.WNOHANG)[0] == 0:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    except ChildProcessError:  # it has been waited for
        return
