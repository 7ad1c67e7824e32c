"""A caching allocator of 64-byte aligned blocks, handed out as numpy arrays that own them.

Fresh pages cost several times what a kernel costs, so a block whose last array is gone is kept for the next request.
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
        self._free: OrderedDict[int, list[_Block]] = OrderedDict()  # by class, the least recently used first
        self._lock = threading.Lock()
        # Finalizers run at any point of any thread, also of one that holds the lock: they only append here.
        self._returned: deque[_Block] = deque()

    def allocate(self, size: int) -> np.ndarray:
        """`size` bytes at a 64-byte boundary, not cleared. Views keep the block as the array itself does."""
        return np.ndarray(size, np.uint8, self.take(size_class(size))[0])

    def take(self, capacity: int) -> tuple[Any, int]:
        """A block of a size class, as a buffer for arrays that keeps it while one lives, and its address."""
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
        if self._lock.acquire(blocking=False):  # else whoever holds it, or the next, sorts it in
            try:
                self._sort_in()
            finally:
                self._lock.release()

    def _sort_in(self) -> None:
        """What came back becomes idle; the least recently used beyond the limit goes. With the lock held."""
        while self._returned:
            block = self._returned.popleft()
            self._free.setdefault(block[2], []).append(block)
            self._free.move_to_end(block[2])
            self.idle_bytes += block[2]
        if self.idle_bytes > self.idle_limit:
            self._shrink(self.idle_limit)

    def trim(self, limit: int = 0) -> None:
        """Give idle blocks back to the system until at most `limit` bytes are idle."""
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
"""The array that has the memory, the first address at a boundary, and the size class."""


@functools.cache
def _buffer_type(capacity: int) -> type[ctypes.Array]:
    """numpy holds a buffer as the `base` of every array and view on it; its end is the end of them all."""
    return type("PoolBuffer", (ctypes.c_uint8 * capacity,), {"__del__": _end_of_buffer})


def _end_of_buffer(buffer: Any) -> None:
    lent = getattr(buffer, "lent", None)
    if lent is not None:
        pool, block = lent
        pool._give_back(block)


POOL = BlockPool()
"""The process's pool."""
