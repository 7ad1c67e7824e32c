"""Blocks of unified shared memory (USM): addresses that kernels take as they are."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_int32
from functools import partial

from ..accelerator.memory import Memory
from ..device import MemorySpace
from .errors import check
from .library import Device

ALIGNMENT = 64
"""Bytes; what the Plan promises of its blocks."""


class UsmMemory(Memory):
    """The memory of a context on a device. freed: the number of blocks given back, whose addresses others may have."""

    freed = 0

    def __init__(self, device: Device, context: int, ordinal: int):
        super().__init__(ordinal)
        self._device, self._context = device, context

    def _take(self, size: int, space: MemorySpace) -> tuple[int, Callable[[], object]]:
        device, code, wanted = self._device, c_int32(), max(size, 1)
        if space is MemorySpace.HOST:
            address = device.clHostMemAllocINTEL(self._context, None, wanted, ALIGNMENT, byref(code))
        else:
            address = device.clDeviceMemAllocINTEL(self._context, device.handle, None, wanted, ALIGNMENT, byref(code))
        check(code.value or (0 if address else -4), f"allocate {size} bytes")
        return address, partial(self._free, address)

    def _free(self, address: int) -> None:
        self.freed += 1
        self._device.clMemFreeINTEL(self._context, address)
