"""A caching allocator of 64-byte aligned blocks. It hands out numpy arrays that own their block.

Touching fresh pages takes several times as long as a typical kernel, so a block is reused once its last array is gone.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections import OrderedDict, deque
from typing import Any

import numpy as np

from ...planning.plan import POOL_ALIGNMENT
from .addresses import address_of

IDLE_LIMIT = 512 << 20
"""Limit of the bytes in unused blocks that a pool keeps."""


def size_class(size: int) -> int:
    """Bytes of the block for a request. At most an eighth is added, apart from rounding up to the alignment."""
    step = max(POOL_ALIGNMENT, 1 << max(0, size.bit_length() - 4))
    return max(step, (size + step - 1) // step * step)


class BlockPool:
    """A pool of memory blocks. It is thread-safe. A block returns to the pool when its last array dies."""

    def __init__(self, idle_limit: int = IDLE_LIMIT):
        self.idle_limit = idle_limit
        self.idle_bytes = 0
        self._free: OrderedDict[int, list[_Block]] = OrderedDict()  # by size class, least recently used first
        self._lock = threading.Lock()
        # A finalizer may run in a thread that holds the lock, so finalizers append here and do not wait for the lock.
        self._returned: deque[_Block] = deque()

    def allocate(self, size: int) -> np.ndarray:
        """`size` bytes at a 64-byte boundary, uninitialised. Views keep the block alive too."""
        return np.ndarray(size, np.uint8, self.take(size_class(size))[0])

    def take(self, capacity: int) -> tuple[Any, int]:
        """A block of a size class: a buffer that keeps the block while an array uses it, and its address."""
        with self._lock:
            if self._returned:
                self._sort_in()
            blocks = self._free.get(capacity)
            block = blocks.pop() if blocks else None
            if block is not None:
                self.idle_bytes -= capacity
        if block is None:
            raw = np.empty(capacity + POOL_ALIGNMENT - 1, np.uint8)
            start = address_of(raw)
            block = raw, start + -start % POOL_ALIGNMENT, capacity
        buffer: Any = _buffer_type(capacity).from_address(block[1])
        buffer.lent = self, block
        return buffer, block[1]

    def _give_back(self, block: _Block) -> None:
        self._returned.append(block)
        if self._lock.acquire(blocking=False):  # otherwise the current or the next holder of the lock does it
            try:
                self._sort_in()
            finally:
                self._lock.release()

    def _sort_in(self) -> None:
        """Make returned blocks idle, and free the least recently used ones beyond the limit. Needs the lock."""
        while self._returned:
            block = self._returned.popleft()
            self._free.setdefault(block[2], []).append(block)
            self._free.move_to_end(block[2])
            self.idle_bytes += block[2]
        if self.idle_bytes > self.idle_limit:
            self._shrink(self.idle_limit)

    def trim(self, limit: int = 0) -> None:
        """Free idle blocks until at most `limit` bytes are idle."""
        with self._lock:
            self._sort_in()
            self._shrink(limit)

    def _shrink(self, limit: int) -> None:
        while self.idle_bytes > limit:
            capacity, blocks = next(iter(self._free.items()))
            if blocks:
                blocks.pop()
                self.idle_bytes -= capacity
            if not blocks:
                del self._free[capacity]


_Block = tuple[np.ndarray, int, int]
"""The array that owns the memory, the first aligned address, and the size class in bytes."""


@functools.cache
def _buffer_type(capacity: int) -> type[ctypes.Array]:
    """A ctypes array type for blocks. numpy keeps the buffer as the `base` of all arrays and views on it, so that the
    buffer is finalized when the last of them dies.
    """
    return type("PoolBuffer", (ctypes.c_uint8 * capacity,), {"__del__": _end_of_buffer})


def _end_of_buffer(buffer: Any) -> None:
    lent = getattr(buffer, "lent", None)
    if lent is not None:
        pool, block = lent
        pool._give_back(block)


POOL = BlockPool()
"""The pool of this process."""
