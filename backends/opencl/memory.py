"""Blocks of memory whose addresses kernels take as they are.

Where the host's memory is the device's own, they come from the pool of the host: it keeps blocks whose pages were
touched, and asks for huge pages. Elsewhere they are unified shared memory (USM) of the driver.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import byref, c_int32
from functools import partial

from ..accelerator.memory import Memory
from ..device import MemorySpace
from ..host.memory import POOL, size_class
from .errors import check
from .library import Device

ALIGNMENT = 64
"""Bytes; what the Plan promises of its blocks. The pool's have the same."""

TOO_LARGE, NO_MEMORY = -61, -4


class UsmMemory(Memory):
    """The memory of a context on a device."""

    def __init__(self, device: Device, context: int, ordinal: int):
        super().__init__(ordinal)
        self._device, self._context = device, context

    def _take(self, size: int, space: MemorySpace) -> tuple[int, Callable[[], object]]:
        device, code, wanted = self._device, c_int32(), max(size, 1)
        if device.shares_memory:
            return self._of_host(wanted)
        if space is MemorySpace.HOST:
            address = device.clHostMemAllocINTEL(self._context, None, wanted, ALIGNMENT, byref(code))
        else:
            address = device.clDeviceMemAllocINTEL(self._context, device.handle, None, wanted, ALIGNMENT, byref(code))
        check(code.value or (0 if address else -4), f"allocate {size} bytes")
        return address, partial(device.clMemFreeINTEL, self._context, address)

    def _of_host(self, size: int) -> tuple[int, Callable[[], object]]:
        what = f"allocate {size} bytes"
        check(TOO_LARGE if size > self._device.largest_block else 0, what)
        try:
            buffer, address = POOL.take(size_class(size))
        except MemoryError:
            check(NO_MEMORY, what)
            raise AssertionError from None
        held = [buffer]  # the block is idle again when nothing holds its buffer
        return address, held.clear
