"""Blocks of a GPU's memory, and of memory of the host that it reaches, too (pinned)."""

from __future__ import annotations

import ctypes
import threading
import weakref

from ..blocks import Blocks
from ..device import AllocatorStatistics, DeviceMemory, MemorySpace
from .driver import Driver


class Block:
    """The owner of a block: gives it back once, at the latest when nobody knows it any more."""

    def __init__(self, driver: Driver, device: int, function: str, address: int):
        self._free = weakref.finalize(self, _freed, driver, device, function, address)
        self._free.atexit = False

    def free(self) -> None:
        self._free()


def _freed(driver: Driver, device: int, function: str, address: int) -> None:
    driver.call("enter", device)
    driver.call(function, address)


class Memory:
    """The memory of a device. Addresses are those of the driver: a slice is an address, too."""

    def __init__(self, driver: Driver, device: int):
        self._driver, self._device = driver, device
        self._blocks, self._lock = Blocks(), threading.Lock()

    def allocate(self, size: int, space: MemorySpace) -> DeviceMemory:
        self._blocks.reserve(size)
        what, wanted = f"allocate {size} bytes", max(size, 1)
        try:
            self._driver.do(what, "enter", self._device)
            if space is MemorySpace.HOST:
                place = ctypes.c_void_p()
                self._driver.do(what, "host_allocate", ctypes.byref(place), wanted, 0)
                address, function = place.value or 0, "host_free"
            else:
                given = ctypes.c_uint64()
                self._driver.do(what, "allocate", ctypes.byref(given), wanted)
                address, function = given.value, "free"
        except BaseException:
            self._blocks.cancel(size)
            raise
        block = Block(self._driver, self._device, function, address)
        self._blocks.add(address, size, block)
        return DeviceMemory(address, size, block, space, self._device)

    def deallocate(self, memory: DeviceMemory) -> None:
        with self._lock:
            self._blocks.remove(memory)
            if isinstance(memory.owner, Block):
                memory.owner.free()

    def statistics(self) -> AllocatorStatistics:
        return self._blocks.statistics()

    def limit(self, limit: int | None) -> None:
        self._blocks.limit(limit)
