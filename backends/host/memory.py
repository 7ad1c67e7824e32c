"""A caching allocator of 64-byte aligned blocks, handed out as numpy arrays that own them.

Fresh pages cost several times what a kernel costs, so a block whose last array is gone is kept for the next request.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from ...hlo.plan import POOL_ALIGNMENT


def _by_interface(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


_POINTER_AT, _DATA = ctypes.c_size_t.from_address, object.__basicsize__


def _by_layout(array: np.ndarray) -> int:
    """The pointer right behind the object's head: the C interface of numpy fixes it there, and it is read in a sixth of
    the time."""
    return _POINTER_AT(id(array) + _DATA).value


def _address_of() -> Callable[[np.ndarray], int]:
    if sys.implementation.name != "cpython":
        return _by_interface
    probe = np.arange(6, dtype=np.uint16)
    for view in (probe, probe[1:], probe[::-1], probe.reshape(2, 3).T[1:]):
        if _by_layout(view) != _by_interface(view):
            return _by_interface
    return _by_layout


address_of = _address_of()
"""Address of an array's first element."""

IDLE_LIMIT = 512 << 20
"""Bytes of unused blocks that a pool keeps."""


def size_class(size: int) -> int:
    """Bytes of the block that a request gets: at most an eighth more than asked for."""
    step = max(POOL_ALIGNMENT, 1 << max(0, size.bit_length() - 4))
    return max(step, (size + step - 1) // step * step)


class BlockPool:
    """Thread-safe. Blocks return by themselves when the last array on them dies."""

    def __init__(self, idle_limit: int = IDLE_LIMIT):
        self.idle_limit = idle_limit
        self.idle_bytes = 0
        self._free: OrderedDict[int, list[np.ndarray]] = OrderedDict()  # by class, the least recently used first
        # A finalizer may run at any point of this thread, also inside `allocate`: the lock must let it in.
        self._lock = threading.RLock()

    def allocate(self, size: int) -> np.ndarray:
        """`size` bytes at a 64-byte boundary, not cleared. Views keep the block as the array itself does."""
        return self.allocate_at(size)[0]

    def allocate_at(self, size: int) -> tuple[np.ndarray, int]:
        """As `allocate`, with the address."""
        capacity = size_class(size)
        with self._lock:
            blocks = self._free.get(capacity)
            raw = blocks.pop() if blocks else None
            if raw is not None:
                self.idle_bytes -= capacity
        if raw is None:
            raw = np.empty(capacity + POOL_ALIGNMENT - 1, np.uint8)
        owner = _Owner(self, raw, capacity, size)
        return np.asarray(owner), owner.address

    def _release(self, raw: np.ndarray, capacity: int) -> None:
        with self._lock:
            self._free.setdefault(capacity, []).append(raw)
            self._free.move_to_end(capacity)
            self.idle_bytes += capacity
            if self.idle_bytes > self.idle_limit:
                self.trim(self.idle_limit)

    def trim(self, limit: int = 0) -> None:
        """Give idle blocks back to the system until at most `limit` bytes are idle."""
        with self._lock:
            while self.idle_bytes > limit:
                capacity, blocks = next(iter(self._free.items()))
                if blocks:
                    blocks.pop()
                    self.idle_bytes -= capacity
                if not blocks:
                    del self._free[capacity]


class _Owner:
    """Keeps a block while arrays use it: numpy holds it as the `base` of every view."""

    __slots__ = ("__array_interface__", "_capacity", "_pool", "_raw", "address")

    def __init__(self, pool: BlockPool, raw: np.ndarray, capacity: int, size: int):
        self._pool, self._raw, self._capacity = pool, raw, capacity
        start = address_of(raw)
        self.address = start + -start % POOL_ALIGNMENT
        self.__array_interface__ = {"data": (self.address, False), "shape": (size,), "typestr": "|u1", "version": 3}

    def __del__(self) -> None:
        self._pool._release(self._raw, self._capacity)


POOL = BlockPool()
"""The process's pool."""
