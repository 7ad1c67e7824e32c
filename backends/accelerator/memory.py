"""Blocks of a device's memory whose addresses are the driver's, so that a slice is an address, too."""

from __future__ import annotations

import threading
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable

from ..blocks import Blocks
from ..device import AllocatorStatistics, DeviceMemory, MemorySpace


class Block:
    """The owner of a block: gives it back once, at the latest when nobody knows it any more."""

    def __init__(self, free: Callable[[], object]):
        self._free = weakref.finalize(self, free)
        self._free.atexit = False

    def free(self) -> None:
        self._free()


class Memory(ABC):
    """The memory of a device, with its count of blocks and its limit."""

    def __init__(self, ordinal: int):
        self._ordinal = ordinal
        self._blocks, self._lock = Blocks(), threading.Lock()

    @abstractmethod
    def _take(self, size: int, space: MemorySpace) -> tuple[int, Callable[[], object]]:
        """(the address of at least one byte, what gives the block back). Raises BackendError if there is no room."""

    def allocate(self, size: int, space: MemorySpace) -> DeviceMemory:
        self._blocks.reserve(size)
        try:
            address, free = self._take(size, space)
        except BaseException:
            self._blocks.cancel(size)
            raise
        block = Block(free)
        self._blocks.add(address, size, block)
        return DeviceMemory(address, size, block, space, self._ordinal)

    def deallocate(self, memory: DeviceMemory) -> None:
        with self._lock:
            self._blocks.remove(memory)
            if isinstance(memory.owner, Block):
                memory.owner.free()

    def statistics(self) -> AllocatorStatistics:
        return self._blocks.statistics()

    def limit(self, limit: int | None) -> None:
        self._blocks.limit(limit)
