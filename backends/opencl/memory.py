"""Blocks of unified shared memory (USM): addresses that kernels take as they are, so a slice is an address, too."""

from __future__ import annotations

import threading
import weakref
from ctypes import byref, c_int32

from ..blocks import Blocks
from ..device import AllocatorStatistics, DeviceMemory, MemorySpace
from .errors import check
from .library import Device

ALIGNMENT = 64
"""Bytes; what the Plan promises of its blocks."""


class Block:
    """The owner of a block: gives it back once, at the latest when nobody knows it any more."""

    def __init__(self, device: Device, context: int, address: int):
        self._free = weakref.finalize(self, _freed, device, context, address)
        self._free.atexit = False

    def free(self) -> None:
        self._free()


def _freed(device: Device, context: int, address: int) -> None:
    device.clMemFreeINTEL(context, address)


class Memory:
    """The memory of a context on a device."""

    def __init__(self, device: Device, context: int, ordinal: int):
        self._device, self._context, self._ordinal = device, context, ordinal
        self._blocks, self._lock = Blocks(), threading.Lock()

    def allocate(self, size: int, space: MemorySpace) -> DeviceMemory:
        self._blocks.reserve(size)
        code = c_int32()
        try:
            wanted = max(size, 1)
            if space is MemorySpace.HOST:
                address = self._device.clHostMemAllocINTEL(self._context, None, wanted, ALIGNMENT, byref(code))
            else:
                address = self._device.clDeviceMemAllocINTEL(
                    self._context, self._device.handle, None, wanted, ALIGNMENT, byref(code)
                )
            check(code.value or (0 if address else -4), f"allocate {size} bytes")
        except BaseException:
            self._blocks.cancel(size)
            raise
        block = Block(self._device, self._context, address)
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
