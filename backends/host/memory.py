"""A caching allocator of 64-byte aligned blocks. It hands out numpy arrays that own their block.

Touching fresh pages takes several times as long as a typical kernel, so a block is reused once its last array is gone.
The lists of blocks are native (pool_code.py), because the entry from Python takes and gives back blocks, too.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
import threading
import weakref
from typing import Any

from ...hlo.errors import InputError
from ...hlo.later import np
from ...hlo.records import dataclass
from ...planning.allocation import POOL_ALIGNMENT

IDLE_LIMIT = 512 << 20
"""Limit of the bytes in unused blocks that a pool keeps."""

UNLIMITED = (1 << 64) - 1


def size_class(size: int) -> int:
    """Bytes of the block for a request. At most an eighth is added, apart from rounding up to the alignment."""
    step = max(POOL_ALIGNMENT, 1 << max(0, size.bit_length() - 4))
    return max(step, (size + step - 1) // step * step)


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """Memory for results, temporaries and constants. Bytes are those of whole blocks.

    bytes_in_use: in blocks that arrays use; peak_bytes_in_use: the most of them at once; cached_bytes: in idle blocks,
    which the next allocations take. allocations: blocks handed out since the start; system_allocations: how many of
    them were new. bytes_limit: of bytes_in_use and cached_bytes together, or None.
    """

    bytes_in_use: int
    peak_bytes_in_use: int
    cached_bytes: int
    allocations: int
    system_allocations: int
    bytes_limit: int | None


class BlockPool:
    """A pool of memory blocks. It is thread-safe. A block returns to the pool when its last array dies.

    idle_limit: bytes that stay in idle blocks; blocks of the size that was not used for the longest time go first.
    limit: bytes in all blocks; idle ones are freed before an allocation fails.
    """

    def __init__(self, idle_limit: int = IDLE_LIMIT, limit: int | None = None):
        self._limits = idle_limit, limit
        self._shelves: dict[int, int] = {}
        self._lock = threading.Lock()

    @functools.cached_property
    def _words(self) -> ctypes.Array[ctypes.c_uint64]:
        """The native record."""
        code = _code()
        with self._lock:
            if "_words" in self.__dict__:
                return self.__dict__["_words"]
            words = (ctypes.c_uint64 * code.words).from_address(code.pool())
            words[code.idle_limit], words[code.limit] = self._limits[0], _limit_word(self._limits[1])
            self.__dict__["_words"] = words
        weakref.finalize(self, _end_of_pool, words).atexit = False
        return words

    def shelf(self, capacity: int) -> int:
        """The address of the native record of a size class."""
        shelf = self._shelves.get(capacity)
        if shelf is None:
            pool = ctypes.addressof(self._words)
            with self._lock:
                if capacity not in self._shelves:
                    self._shelves[capacity] = _code().shelf(pool, capacity)
                shelf = self._shelves[capacity]
        return shelf

    def allocate(self, size: int) -> np.ndarray:
        """`size` bytes at a 64-byte boundary, uninitialised. Views keep the block alive too. Raises MemoryError."""
        return np.ndarray(size, np.uint8, self.take(size_class(size))[0])

    def take(self, capacity: int) -> tuple[Any, int]:
        """A block of a size class: a buffer that keeps the block while an array uses it, and its address.

        Raises MemoryError.
        """
        shelf, code = self.shelf(capacity), _code()
        address = code.take(shelf) if capacity < 1 << 63 else None
        if not address:
            raise MemoryError(f"no block of {capacity:,} bytes")
        buffer: Any = _buffer_type(capacity).from_address(address)
        buffer.lent = code.give, shelf, address
        return buffer, address

    def trim(self, limit: int = 0) -> None:
        """Free idle blocks until at most `limit` bytes are idle."""
        _code().trim(ctypes.addressof(self._words), limit)

    def set_limit(self, limit: int | None) -> None:
        """Set the bytes that all blocks may take together; None for no limit. Frees idle blocks beyond it."""
        code = _code()
        self._words[code.limit] = _limit_word(limit)
        if limit is not None:
            self.trim(max(0, limit - self.stats().bytes_in_use))

    @property
    def idle_bytes(self) -> int:
        return self.stats().cached_bytes

    def stats(self) -> MemoryStats:
        words, code = list(self._words), _code()
        limit = words[code.limit]
        in_use, peak, cached, taken, made = (words[n] for n in code.counters)
        return MemoryStats(in_use, peak, cached, taken, made, None if limit == UNLIMITED else limit)


@dataclass(frozen=True, eq=False, slots=True)
class _Code:
    """The native functions, called with the interpreter's lock; the number of a pool's words, and some of them.

    counters: the words in the order of MemoryStats. addresses: those of the functions, for other native code.
    """

    pool: Any
    shelf: Any
    take: Any
    give: Any
    trim: Any
    words: int
    lock: int
    idle_limit: int
    limit: int
    counters: tuple[int, ...]
    addresses: dict[str, int]
    loaded: object


_LOADING = threading.Lock()
_loaded: _Code | None = None


def _code() -> _Code:
    global _loaded
    if _loaded is None:
        with _LOADING:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def _load() -> _Code:
    from ...codegen.load import load
    from ...codegen.runtime import runtime_object
    from . import pool_words as c

    loaded = load([runtime_object(f"{sys.platform} {c.CODE}", _text)])
    address, word = ctypes.c_void_p, ctypes.c_uint64

    def function(name: str, result: Any, *arguments: Any) -> Any:
        return ctypes.PYFUNCTYPE(result, *arguments)(loaded.address(name))

    return _Code(
        function("testbed_pool", address),
        function("testbed_shelf", address, address, word),
        function("testbed_take", address, address),
        function("testbed_give", None, address, address),
        function("testbed_trim", None, address, word),
        c.POOL_WORDS,
        c.LOCK,
        c.IDLE_LIMIT,
        c.LIMIT,
        (c.IN_USE, c.PEAK, c.IDLE, c.TAKEN, c.MADE),
        {name: loaded.address(name) for name in ("testbed_take", "testbed_give")},
        loaded,
    )


def _text() -> str:
    from .pool_code import pool_ir

    return pool_ir()


def native_functions() -> dict[str, int]:
    """The addresses of testbed_take and testbed_give (pool_code.py)."""
    return _code().addresses


def _limit_word(limit: int | None) -> int:
    return UNLIMITED if limit is None else limit


def _end_of_pool(words: ctypes.Array[ctypes.c_uint64]) -> None:
    """Free what is idle, and let blocks that are in use be freed when they come back."""
    code = _code()
    words[code.idle_limit] = 0
    code.trim(ctypes.addressof(words), 0)


@functools.cache
def _buffer_type(capacity: int) -> type[ctypes.Array]:
    """A ctypes array type for blocks. numpy keeps the buffer as the `base` of all arrays and views on it, so that the
    buffer is finalized when the last of them dies.
    """
    return type("PoolBuffer", (ctypes.c_uint8 * capacity,), {"__del__": _end_of_buffer})


def _end_of_buffer(buffer: Any) -> None:
    lent = getattr(buffer, "lent", None)
    if lent is not None:
        give, shelf, address = lent
        give(shelf, address)


POOL = BlockPool()
"""The pool of this process."""


def memory_stats() -> MemoryStats:
    """The memory of this process's executables: results that are alive, temporaries, constants, and idle blocks."""
    return POOL.stats()


def set_memory_limit(limit: int | None) -> None:
    """Limit the memory of this process's executables, in bytes; None for no limit. Idle blocks beyond it are freed.

    An allocation that would exceed it raises OutOfMemoryError, which names the array. Raises InputError.
    """
    if limit is not None and not 0 <= limit < UNLIMITED:
        raise InputError(f"the limit of memory is {limit} bytes", remedy="give a number of bytes from 0 on, or None")
    POOL.set_limit(limit)


def trim_memory() -> None:
    """Free all idle blocks."""
    POOL.trim()


def _after_fork() -> None:
    """Release the locks, which threads that do not exist in the child may have held."""
    global _LOADING
    POOL._lock, _LOADING = threading.Lock(), threading.Lock()
    words = POOL.__dict__.get("_words")
    if words is not None:
        words[_code().lock] = 0


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
