"""Native functions for handlers written in Python, and the frames that they know: see trampoline_ir.py."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...codegen.load import LoadedCode, load
from ...codegen.runtime import runtime_object
from ..abi import HANDLER, Stage
from .frames import Notes
from .loops_ir import NOTE_WORDS, VIEW_WORDS
from .trampoline_ir import (
    HEADER,
    PROBES,
    RECORD,
    RECORD_WORDS,
    SLOT,
    SLOT_WORDS,
    SLOTS,
    STUBS,
    trampoline_ir,
)

_KEEP: list[Any] = []
"""What native code points to for ever: a runtime may call a handler as long as the process lives."""

_COUNT, _DATA, _RANK, _DIMS, _STRIDES, _DTYPE, _FLAGS = 0, 16, 24, 32, 40, 56, 64
"""Offsets in a numpy array object (PyArrayObject_fields). trampoline_ir.py has them, too."""


class Known(NamedTuple):
    """A decoded frame. views: pairs of a buffer's address and the array on it. function: calls the handler, without
    arguments or with the context's address (`wants_ctx`). finish(frame, value) makes an error of what it returned.
    """

    notes: Notes
    views: Sequence[tuple[int, np.ndarray]]
    function: Callable[..., Any]
    wants_ctx: bool
    finish: Callable[[int, Any], int]


@functools.cache
def _object() -> bytes:
    text = trampoline_ir()
    return runtime_object(text, lambda: text)


@functools.cache
def numpy_is_known() -> bool:
    """Whether numpy's arrays are laid out as the native code takes them to be."""
    one = np.empty((3, 5), np.float32)
    at, kept = id(one), one[:]
    dims = (ctypes.c_int64 * 2).from_address(_word(at + _DIMS))
    strides = (ctypes.c_int64 * 2).from_address(_word(at + _STRIDES))
    writable, one.flags.writeable = ctypes.c_int32.from_address(at + _FLAGS).value, False
    read_only = ctypes.c_int32.from_address(at + _FLAGS).value
    return (
        _word(at + _DATA) == kept.ctypes.data
        and ctypes.c_int32.from_address(at + _RANK).value == 2
        and (*dims, *strides) == (3, 5, 20, 4)
        and _word(at + _DTYPE) == id(one.dtype)
        and writable - read_only == _WRITEABLE
    )


_WRITEABLE = 0x400
"""NPY_ARRAY_WRITEABLE."""


def _word(address: int) -> int:
    return ctypes.c_uint64.from_address(address).value


class _Block:
    """One copy of the native code: STUBS functions."""

    def __init__(self) -> None:
        self.code: LoadedCode = load([_object()])
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.code))  # never unloaded
        address = ctypes.CFUNCTYPE(ctypes.c_void_p)(self.code.address("testbed_ffi_records"))()
        self.records = (ctypes.c_uint64 * (STUBS * RECORD_WORDS)).from_address(address)
        self.acquire = self._function("acquire", ctypes.c_int64)
        self.release = self._function("release", None)
        self.key = self._function("key", ctypes.c_uint64)
        self.first = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64)(self.code.address("testbed_ffi_first"))
        self.used = 0

    def _function(self, name: str, result: Any) -> Any:
        return ctypes.PYFUNCTYPE(result, ctypes.c_void_p)(self.code.address(f"testbed_ffi_{name}"))


_LOCK = threading.Lock()
_BLOCKS: list[_Block] = []


class Trampoline:
    """The native function of a handler. slow: decodes a frame in Python; it must not raise."""

    def __init__(self, slow: Callable[[int], int], stage: Stage):
        with _LOCK:
            if not _BLOCKS or _BLOCKS[-1].used == STUBS:
                _BLOCKS.append(_Block())
            self._block = _BLOCKS[-1]
            number, self._block.used = self._block.used, self._block.used + 1
        callback = HANDLER(slow)
        _KEEP.append((self, callback))
        at = number * RECORD_WORDS
        self._record = at
        self._block.records[at + RECORD["slow"]] = ctypes.cast(callback, ctypes.c_void_p).value or 0
        self._block.records[at + RECORD["stage"]] = stage
        self.address = self._block.code.address(f"testbed_ffi_stub_{number}")
        self._slots: ctypes.Array[ctypes.c_uint64] | None = None
        self._held: list[Any] = [None] * SLOTS
        self._next = 0

    def remember(self, frame: int, known: Known) -> None:
        """Let native code call a frame like this one. With Python's lock, and unless all its slots are in use."""
        if not numpy_is_known():
            return
        slots = self._all_slots()
        key = self._block.key(frame)
        number = self._free_slot(key)
        if number is None:
            return
        address = ctypes.addressof(slots) + number * SLOT_WORDS * 8
        base = number * SLOT_WORDS
        slots[base + SLOT["key"]] = 0
        words, keep = _words(known, frame)
        escaped = functools.partial(self._forget, number, known)
        for name, value in {**words, "escaped": id(escaped), "finish": id(known.finish)}.items():
            slots[base + SLOT[name]] = value
        header = ctypes.string_at(frame + 40, 128)
        ctypes.memmove(address + HEADER * 8, header, 128)
        self._held[number] = known, keep, escaped
        slots[base + SLOT["key"]] = key
        self._block.release(address)

    def _all_slots(self) -> ctypes.Array[ctypes.c_uint64]:
        if self._slots is None:
            self._slots = (ctypes.c_uint64 * (SLOTS * SLOT_WORDS))()
            _KEEP.append(self._slots)
            self._block.records[self._record + RECORD["slots"]] = ctypes.addressof(self._slots)
        return self._slots

    def _free_slot(self, key: int) -> int | None:
        """A slot for a key, acquired: its own, an empty one, or one that held another frame."""
        slots = self._all_slots()
        first = self._block.first(key)
        near = [(first + n) % SLOTS for n in range(PROBES)]
        self._next += 1
        turned = near[self._next % PROBES :] + near[: self._next % PROBES]
        keys = {n: slots[n * SLOT_WORDS + SLOT["key"]] for n in turned}
        own = [n for n in turned if keys[n] == key]
        for number in own or sorted(turned, key=lambda n: keys[n] != 0):
            if self._block.acquire(ctypes.addressof(slots) + number * SLOT_WORDS * 8):
                return number
        return None

    def _forget(self, number: int, known: Known) -> None:
        """Somebody kept a view: it gets memory of its own, and the slot is emptied. The slot is the caller's."""
        slots = self._all_slots()
        slots[number * SLOT_WORDS + SLOT["key"]] = 0
        for _, array in known.views:
            own_memory(array)


def own_memory(array: np.ndarray) -> None:
    """Give a view a copy of what it shows, so that it stays valid."""
    owner: Any = array.base
    if numpy_is_known() and isinstance(owner, ctypes.Array):
        kept = array.copy()
        owner.kept = kept  # type: ignore[attr-defined]
        ctypes.c_void_p.from_address(id(array) + _DATA).value = kept.ctypes.data


def references(array: np.ndarray) -> int:
    """The reference count, read as native code reads it."""
    return ctypes.c_uint32.from_address(id(array) + _COUNT).value


def form(array: np.ndarray) -> tuple[object, ...]:
    """What a handler may change of an array in place, besides its elements."""
    return array.shape, array.strides, array.dtype, array.flags.num


def _words(known: Known, frame: int) -> tuple[dict[str, int], list[Any]]:
    """The words of a slot, and the memory that they point to."""
    buffers: list[Any] = [ctypes.create_string_buffer(data, len(data)) for _, data in known.notes]
    notes = (ctypes.c_uint64 * max(NOTE_WORDS * len(buffers), 1))()
    for n, ((address, data), buffer) in enumerate(zip(known.notes, buffers)):
        notes[NOTE_WORDS * n : NOTE_WORDS * (n + 1)] = [address, len(data), ctypes.addressof(buffer)]
    views = (ctypes.c_uint64 * max(VIEW_WORDS * len(known.views), 1))()
    for n, (address, array) in enumerate(known.views):
        flags = ctypes.c_uint32.from_address(id(array) + _FLAGS).value
        shape = (ctypes.c_int64 * max(2 * array.ndim, 1))(*array.shape, *array.strides)
        buffers.append(shape)
        words = [address, id(array), array.dtype.alignment - 1, 0, array.ndim, id(array.dtype), flags]
        views[VIEW_WORDS * n : VIEW_WORDS * (n + 1)] = [*words, ctypes.addressof(shape)]
    named = {
        "api": ctypes.c_uint64.from_address(frame + 16).value,
        "notes": ctypes.addressof(notes),
        "note_count": len(known.notes),
        "views": ctypes.addressof(views),
        "view_count": len(known.views),
        "function": id(known.function),
        "ctx": int(known.wants_ctx),
    }
    return named, [buffers, notes, views]
