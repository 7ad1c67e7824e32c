"""The blocks of a device that are in use: for statistics, limits, and blocks that are given back twice."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from .device import AllocatorStatistics, BackendError, DeviceMemory


class Blocks:
    """Addresses and sizes of the blocks in use. Threads may call it at the same time.

    The garbage collector ends owners at any time, in a thread that holds the lock, too: a block whose owner died is
    noted, and forgotten by whoever takes the lock next.
    """

    def __init__(self) -> None:
        self._lock, self._dead = threading.Lock(), deque[tuple[int, object]]()
        self._used: dict[int, tuple[int, object]] = {}
        self._in_use = self._peak = self._count = self._largest = 0
        self._limit: int | None = None

    @contextmanager
    def _locked(self) -> Iterator[None]:
        with self._lock:
            while self._dead:
                self._forget(*self._dead.popleft())
            yield

    def limit(self, limit: int | None) -> None:
        if limit is not None and limit < 0:
            raise BackendError(f"no memory limit of {limit} bytes", remedy="give 0 or more, or None")
        with self._locked():
            self._limit = limit

    def reserve(self, size: int) -> None:
        """Count a block before it is made. Raises BackendError past the limit, or for less than no bytes."""
        if size < 0:
            raise BackendError(f"cannot allocate {size} bytes", remedy="give 0 or more")
        with self._locked():
            if self._limit is not None and self._in_use + size > self._limit:
                what = f"cannot allocate {size} bytes: {self._in_use} of {self._limit} are in use"
                raise BackendError(what, remedy="give back blocks, or raise the memory limit")
            self._in_use += size
            self._peak, self._largest = max(self._peak, self._in_use), max(self._largest, size)
            self._count += 1

    def add(self, address: int, size: int, owner: object = None) -> None:
        """The block that was reserved is at this address, until it is removed or its owner dies."""
        use = object()  # of this block, not of the next one at the same address
        with self._locked():
            self._forget(address)  # one whose owner is dying
            self._used[address] = size, use
        if owner is not None:
            weakref.finalize(owner, self._dead.append, (address, use)).atexit = False

    def cancel(self, size: int) -> None:
        """The block that was reserved could not be made."""
        with self._locked():
            self._in_use -= size

    def check(self, address: int) -> None:
        """Raises BackendError if no block begins there."""
        with self._locked():
            known = address in self._used
        if not known:
            raise _unknown(address)

    def remove(self, memory: DeviceMemory) -> None:
        with self._locked():
            known = self._forget(memory.address)
        if not known:
            raise _unknown(memory.address)

    def _forget(self, address: int, use: object = None) -> bool:
        """Whether there was a block (this one, if it is given), which is not in use any more. The lock is held."""
        found = self._used.get(address)
        if found is None or use not in (None, found[1]):
            return False
        del self._used[address]
        self._in_use -= found[0]
        return True

    def statistics(self) -> AllocatorStatistics:
        with self._locked():
            return AllocatorStatistics(self._in_use, self._peak, self._count, self._largest, self._limit)


def _unknown(address: int) -> BackendError:
    what = f"no block of this device is at {address:#x}"
    return BackendError(what, remedy="give one that it allocated, and that was not given back")
