"""Errors of handlers, and the runs in which they happen: what a handler does wrong ends the run that called it.

A thread keeps the address of a block under one key (run_words.py): of its innermost run, or of what a caller gives to
runs. The native entry of programs does the same for the runs of a context (backends/host/entry_code.py).
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar, cast

from ..hlo.errors import TestbedError
from .abi import ErrorCode
from .memory import Memory
from .options import attributes_from

F = TypeVar("F", bound=Callable[..., Any])


class CallError(TestbedError):
    """A handler reported an error, or threw an exception. instruction: of HLO; code: absl's."""

    def __init__(self, instruction: str, target: str, code: int, text: str):
        self.instruction, self.target, self.text = instruction, target, text
        try:
            self.code = ErrorCode(code)
        except ValueError:
            self.code = ErrorCode.UNKNOWN
        super().__init__(f"{instruction}: custom-call({target}): {self.code.name}: {text}")


class _Block(ctypes.Structure):
    """What compiled functions know of a run: the words of run_words.py."""

    _fields_ = (
        ("id", ctypes.c_int64),
        ("device", ctypes.c_int64),
        ("options", ctypes.c_void_p),
        ("data", ctypes.c_void_p),
        ("data_count", ctypes.c_int64),
        ("has_failed", ctypes.c_int64),
        ("stream", ctypes.c_void_p),
    )

    def inherit(self, outer: _Block) -> None:
        """Take over the options and the user data of another block."""
        for name in ("options", "data", "data_count"):
            setattr(self, name, getattr(outer, name))


class Lent(Protocol):
    """What a run on a device lends to handlers. queue: the driver's own, in which a handler enqueues its work."""

    queue: int

    def allocate(self, size: int, alignment: int) -> int:
        """The address of memory of the device. Raises BackendError."""

    def free(self, address: int) -> None:
        """Give it back when the work that is in the queue now is done."""


class Run:
    """One run of a program on one thread.

    stop: lets it end before its next kernel, or go on if called with False. states: (site, stage) → the type and the
    address of what its prepare and initialize stages keep. ending: (deleter, address) of those. lent: of a run on a
    device.
    """

    def __init__(self, stop: Callable[..., object], device: int = 0, lent: Lent | None = None):
        self.stop, self.lent = stop, lent
        self.error: CallError | None = None
        self.states: dict[tuple[int, int], tuple[int, int]] = {}
        self.ending: list[tuple[int, int]] = []
        self.block = _Block(device=device, stream=lent.queue if lent is not None else 0)
        _RUNS[self.address] = self

    @property
    def address(self) -> int:
        """The address of its block."""
        return ctypes.addressof(self.block)

    def fail(self, error: CallError) -> None:
        """Keep the first error, and let the run end."""
        if self.error is None:
            self.error = error
        self.block.has_failed = 1
        self.stop()

    def end(self) -> None:
        """Delete the states of this run, and let the program go on."""
        while self.ending:
            deleter, state = self.ending.pop()
            _DELETER(deleter)(state)
        self.states.clear()
        if self.block.has_failed:
            self.block.has_failed = 0
            self.stop(False)

    def raise_error(self) -> None:
        """Raise the error that a handler reported, and forget it."""
        error, self.error = self.error, None
        if error is not None:
            raise error


class Runs(Run):
    """The runs of a context, one after the other, as native code begins and ends them."""

    def __call__(self, _: None) -> None:
        """End a run in which a handler has failed, and raise what it reported."""
        self.end()
        self.raise_error()


_DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_RUNS: weakref.WeakValueDictionary[int, Run] = weakref.WeakValueDictionary()
"""Address of a block → its run."""

_NUMBERS = itertools.count(1, 2)
"""Numbers of runs; compiled code gives the even ones."""


@functools.cache
def key() -> int:
    """The key under which each thread keeps the address of a block."""
    made = ctypes.c_uint32()
    if ctypes.CDLL(None).pthread_key_create(ctypes.byref(made), None):
        raise TestbedError("no key is left for the data of threads")
    return made.value


@functools.cache
def _specific() -> tuple[Callable[[int], int | None], Callable[[int, int | None], int]]:
    """pthread_getspecific and pthread_setspecific."""
    library = ctypes.CDLL(None)
    get, set_ = library.pthread_getspecific, library.pthread_setspecific
    get.argtypes, get.restype = (ctypes.c_uint32,), ctypes.c_void_p
    set_.argtypes = (ctypes.c_uint32, ctypes.c_void_p)
    return get, set_


def _here() -> int | None:
    """The address of the block that is this thread's."""
    return _specific()[0](key())


def current() -> Run | None:
    """The innermost run on this thread."""
    return _RUNS.get(_here() or 0)


def raise_failed() -> None:
    """Raise the error of a handler that has failed in the innermost run on this thread."""
    run = current()
    if run is not None and run.error is not None:
        raise run.error


@contextmanager
def _entered(address: int) -> Iterator[None]:
    """Keep the address of a block for this thread meanwhile."""
    before, (_, put) = _here(), _specific()
    put(key(), address)
    try:
        yield
    finally:
        put(key(), before)


@contextmanager
def running(run: Run) -> Iterator[Run]:
    """What handlers on this thread belong to meanwhile."""
    before = _here()
    run.block.inherit(_Block.from_address(before) if before else _Block())
    with _entered(run.address):
        yield run


@contextmanager
def _given(change: Callable[[_Block], object]) -> Iterator[None]:
    """Let runs on this thread begin with what `change` makes of this thread's block. It returns what that points to."""
    before, made = _here(), _Block()
    run = current()
    if before:
        outer = _Block.from_address(before)
        if run is not None and not outer.id:
            outer.id = next(_NUMBERS)
        ctypes.pointer(made)[0] = outer
    kept = change(made)
    address = ctypes.addressof(made)
    if run is not None:
        _RUNS[address] = run
    try:
        with _entered(address):
            yield
    finally:
        _RUNS.pop(address, None)
        del kept


@contextmanager
def user_data(values: dict[int, int]) -> Iterator[None]:
    """Data for handlers that runs on this thread call: type id → address. They must live until the runs have ended.

    What an inner one gives hides what an outer one does.
    """

    def change(block: _Block) -> object:
        count = 2 * block.data_count
        before = (ctypes.c_uint64 * count).from_address(block.data)[:] if count else []
        data = dict(zip(before[::2], before[1::2])) | values
        rows = (ctypes.c_uint64 * (2 * len(data)))(*itertools.chain.from_iterable(data.items()))
        block.data, block.data_count = ctypes.addressof(rows), len(data)
        return rows

    with _given(change):
        yield


@contextmanager
def custom_options(values: Mapping[str, Any]) -> Iterator[None]:
    """Options for handlers (`Ctx<CustomOptions>` of version 0.5) that runs on this thread call, besides the attributes.

    values: as `attributes_from` takes them. Without it, or in a run that began before, handlers get none.
    """

    def change(block: _Block) -> object:
        memory = Memory()
        attributes = memory.attributes(attributes_from(values))
        block.options = ctypes.addressof(attributes)
        return memory, attributes

    with _given(change):
        yield


def carried(function: F) -> F:
    """A function for another thread, whose runs begin with the options and the user data of this one."""
    before, mine = _here(), _Block()
    if before:
        mine.inherit(_Block.from_address(before))

    @functools.wraps(function)
    def on_another(*arguments: Any, **named: Any) -> Any:
        with _entered(ctypes.addressof(mine)):
            return function(*arguments, **named)

    return cast("F", on_another)
