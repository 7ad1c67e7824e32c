"""Errors of handlers, and the runs in which they happen: what a handler does wrong ends the run that called it."""

from __future__ import annotations

import ctypes
import functools
import itertools
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

from ..hlo.errors import TestbedError
from .abi import Attrs, ErrorCode
from .memory import Memory
from .options import attributes_from


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


class _Block(ctypes.Structure):
    """What compiled functions know of a run: the places of host_context_ir.py."""

    _fields_ = (
        ("id", ctypes.c_int64),
        ("device", ctypes.c_int64),
        ("options", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("data_count", ctypes.c_int64),
    )


class _Local(threading.local):
    def __init__(self) -> None:
        self.runs: list[tuple[Run, _Block]] = []
        self.data: list[dict[int, int]] = []
        self.options: list[Attrs] = []


_LOCAL = _Local()


@functools.cache
def key() -> int:
    """The key under which each thread keeps the address of its innermost run's block."""
    made = ctypes.c_uint32()
    if ctypes.CDLL(None).pthread_key_create(ctypes.byref(made), None):
        raise TestbedError("no key is left for the data of threads")
    return made.value


@functools.cache
def _set_specific() -> Callable[[int, int | None], int]:
    function = ctypes.CDLL(None).pthread_setspecific
    function.argtypes = (ctypes.c_uint32, ctypes.c_void_p)
    return cast("Callable[[int, int | None], int]", function)


def current() -> Run | None:
    """The innermost run on this thread."""
    return _LOCAL.runs[-1][0] if _LOCAL.runs else None


def raise_failed() -> None:
    """Raise the error of a handler that has failed in the innermost run on this thread."""
    run = current()
    if run is not None and run.error is not None:
        raise run.error


@contextmanager
def running(run: Run) -> Iterator[Run]:
    """What handlers on this thread belong to meanwhile."""
    data = {number: address for values in _LOCAL.data for number, address in values.items()}
    rows = (ctypes.c_uint64 * (2 * len(data)))(*itertools.chain.from_iterable(data.items()))
    options = ctypes.addressof(_LOCAL.options[-1]) if _LOCAL.options else None
    block = _Block(run.id, run.device, options, ctypes.addressof(rows), len(data))
    _LOCAL.runs.append((run, block))
    _set_specific()(key(), ctypes.addressof(block))
    try:
        yield run
    finally:
        _LOCAL.runs.pop()
        _set_specific()(key(), ctypes.addressof(_LOCAL.runs[-1][1]) if _LOCAL.runs else None)


@contextmanager
def user_data(values: dict[int, int]) -> Iterator[None]:
    """Data for handlers that runs on this thread call: type id → address. They must live until the runs have ended.

    What an inner one gives hides what an outer one does.
    """
    _LOCAL.data.append(values)
    try:
        yield
    finally:
        _LOCAL.data.pop()


@contextmanager
def custom_options(values: Mapping[str, Any]) -> Iterator[None]:
    """Options for handlers (`Ctx<CustomOptions>` of version 0.5) that runs on this thread call, beside the attributes.

    values: as `attributes_from` takes them. Without it, or in a run that began before, handlers get none.
    """
    memory = Memory()
    _LOCAL.options.append(memory.attributes(attributes_from(values)))
    try:
        yield
    finally:
        _LOCAL.options.pop()
