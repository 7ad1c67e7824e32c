"""The memory and the stream of one run of a program on a device."""

from __future__ import annotations

import ctypes
from contextlib import suppress

from ...planning.allocation import AllocationKind
from ...thunks.image import Image
from ..device import DeviceMemory
from .device import Device


class Context:
    """The memory and the stream of one run. bases: address of each allocation; behind them the items' scratch memory,
    and what leaves without a buffer have. Those of inputs and results are set for each run.
    """

    def __init__(self, device: Device, image: Image, scratch: int):
        self.stream = device.create_stream()
        self.bases = (ctypes.c_uint64 * (len(image.allocations) + 2))()
        self._device, self._blocks, self._own = device, list[DeviceMemory](), dict[int, int]()
        self._allocations = image.allocations
        try:
            for a in image.allocations:
                if a.kind is AllocationKind.TEMPORARY:
                    self.bases[a.index] = self._take(a.size)
            self.bases[len(image.allocations)] = self._take(scratch) if scratch else 0
        except BaseException:
            self.free()
            raise

    def _take(self, size: int) -> int:
        self._blocks.append(self._device.allocate(size))
        return self._blocks[-1].address

    def own(self, index: int) -> int:
        """The context's own memory for an input or a result, which it keeps from run to run."""
        if index not in self._own:
            self._own[index] = self._take(self._allocations[index].size)
        return self._own[index]

    def abandon(self) -> None:
        """Give the memory back after an error, when the stream has stopped. What the stream says comes after the error,
        which the caller raises.
        """
        try:
            with suppress(Exception):
                self.stream.synchronize()
        finally:
            self.free()

    def free(self) -> None:
        blocks, self._blocks = self._blocks, []
        self._own.clear()
        for block in blocks:
            self._device.deallocate(block)
