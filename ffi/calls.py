"""Errors of handlers, and the runs in which they happen: what a handler does wrong ends the run that called it."""

from __future__ import annotations

import ctypes
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..hlo.errors import TestbedError
from .abi import ErrorCode


class CallError(TestbedError):
    """A handler reported an error, or threw an exception. instruction: of HLO; code: absl's."""

    def __init__(self, instruction: str, target: str, code: int, text: str):
        self.instruction, self.target, self.text = instruction, target, text
        try:
            self.code = ErrorCode(code)
        except ValueError:
            self.code = ErrorCode.UNKNOWN
        super().__init__(f"{instruction}: custom-call({target}): {self.code.name}: {text}")


@dataclass(eq=False)
class Run:
    """One run of a program on one thread. stop: lets it end before its next kernel. states: (site, stage) → the type
    and the address of what its prepare and initialize stages keep. ending: (deleter, address) of those.
    """

    stop: Callable[[], object]
    device: int
    id: int = field(default_factory=itertools.count(1).__next__)
    error: CallError | None = None
    states: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    ending: list[tuple[int, int]] = field(default_factory=list)

    def fail(self, error: CallError) -> None:
        """Keep the first error, and let the run end."""
        if self.error is None:
            self.error = error
        self.stop()

    def end(self) -> None:
        """Delete the states of this run."""
        while self.ending:
            deleter, state = self.ending.pop()
            _DELETER(deleter)(state)


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Local(threading.local):
    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.data: list[dict[int, int]] = []
        self.errors: list[CallError] = []


_LOCAL = _Local()


def current() -> Run | None:
    """The innermost run on this thread."""
    return _LOCAL.runs[-1] if _LOCAL.runs else None


def raise_failed() -> None:
    """Raise the error of a handler that has failed in the innermost run on this thread."""
    if _LOCAL.runs and _LOCAL.runs[-1].error is not None:
        raise _LOCAL.runs[-1].error


@contextmanager
def running(run: Run) -> Iterator[Run]:
    """What handlers on this thread belong to meanwhile."""
    _LOCAL.runs.append(run)
    try:
        yield run
    finally:
        _LOCAL.runs.pop()


@contextmanager
def user_data(values: dict[int, int]) -> Iterator[None]:
    """Data for handlers that runs on this thread call: type id → address. They must live until the runs have ended."""
    _LOCAL.data.append(values)
    try:
        yield
    finally:
        _LOCAL.data.pop()


def data_of(type_id: int) -> int | None:
    """The address of the data of a type, innermost first; None if there is none."""
    return next((values[type_id] for values in reversed(_LOCAL.data) if type_id in values), None)
