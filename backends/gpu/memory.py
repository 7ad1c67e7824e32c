"""Blocks of a GPU's memory, and of memory of the host that it reaches, too (pinned)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import partial

from ..accelerator.memory import Memory
from ..device import MemorySpace
from .driver import Driver


def destroyed(driver: Driver, device: int, function: str, value: int) -> None:
    """Give a block, or another thing of a device, back to its driver.

    The garbage collector may call it between any two calls of a thread, whose device stays what it was.
    """
    before = driver.device
    driver.call("enter", device)
    driver.call(function, value)
    if before not in (None, device):
        driver.call("enter", before)


class GpuMemory(Memory):
    """The memory of a device of a driver."""

    def __init__(self, driver: Driver, ordinal: int):
        super().__init__(ordinal)
        self._driver = driver

    def _take(self, size: int, space: MemorySpace) -> tuple[int, Callable[[], object]]:
        what, wanted = f"allocate {size} bytes", max(size, 1)
        self._driver.do(what, "enter", self._ordinal)
        if space is MemorySpace.HOST:
            place = ctypes.c_void_p()
            self._driver.do(what, "host_allocate", ctypes.byref(place), wanted, 0)
            address, function = place.value or 0, "host_free"
        else:
            given = ctypes.c_uint64()
            self._driver.do(what, "allocate", ctypes.byref(given), wanted)
            address, function = given.value, "free"
        return address, partial(destroyed, self._driver, self._ordinal, function, address)
