"""A device of a driver: its memory, and copies named synchronous, which run in a queue of their own."""

from __future__ import annotations

import ctypes
from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

from ...hlo.later import np
from ..device import (
    AllocatorStatistics,
    BackendError,
    DeviceDescription,
    DeviceMemory,
    Kernel,
    KernelSpec,
    MemorySpace,
    Named,
    StreamExecutor,
    bytes_of,
    check_copy,
)
from .device import Queue
from .launches import Bases, Launch, Step
from .memory import Memory
from .queue_stream import QueueEvent, QueueStream, QueueTimer, check_own
from .targets import DeviceTarget


class DriverExecutor(StreamExecutor):
    """One device. A subclass calls `_start` when its driver is ready. code_target: of kernels' code. shares_memory:
    whether the host's memory is the device's own.
    """

    def __init__(self, platform: Named, code_target: DeviceTarget, ordinal: int):
        super().__init__(platform, ordinal)
        self.code_target = code_target

    def _start(self, memory: Memory) -> None:
        self._memory, self._copies = memory, self.create_stream()

    @property
    @abstractmethod
    def _description(self) -> DeviceDescription: ...

    def description(self) -> DeviceDescription:
        return self._description

    @property
    def shares_memory(self) -> bool:
        return False

    # -- memory --------------------------------------------------------------------------------------------------------
    def allocate(self, size: int, space: MemorySpace = MemorySpace.DEVICE) -> DeviceMemory:
        return self._memory.allocate(size, space)

    def deallocate(self, memory: DeviceMemory) -> None:
        self._memory.deallocate(memory)

    def synchronous_memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        check_own(self.ordinal, destination, source)
        check_copy(size, destination.size, source.size)
        self._copy(destination.address, source.address, size)

    def synchronous_memcpy_from_host(self, destination: DeviceMemory, source: np.ndarray) -> None:
        data = bytes_of(source)
        check_copy(data.size, destination.size, data.size)
        self._copy(destination.address, data.ctypes.data, data.size)

    def synchronous_memcpy_to_host(self, destination: np.ndarray, source: DeviceMemory) -> None:
        data = bytes_of(destination)
        check_copy(data.size, data.size, source.size)
        self._copy(data.ctypes.data, source.address, data.size)

    def _copy(self, to: int, source: int, size: int) -> None:
        self._copies.copy(to, source, size)
        self._copies.synchronize()

    def host_view(self, memory: DeviceMemory) -> np.ndarray:
        if memory.space is not MemorySpace.HOST:
            raise BackendError("the host cannot reach the device's memory", remedy="allocate it in MemorySpace.HOST")
        return np.ctypeslib.as_array((ctypes.c_uint8 * memory.size).from_address(memory.address))

    def statistics(self) -> AllocatorStatistics:
        return self._memory.statistics()

    def set_memory_limit(self, limit: int | None) -> None:
        self._memory.limit(limit)

    # -- streams -------------------------------------------------------------------------------------------------------
    @abstractmethod
    def create_stream(self) -> QueueStream: ...

    def create_event(self) -> QueueEvent:
        return QueueEvent()

    def create_timer(self, stream: QueueStream) -> QueueTimer:  # type: ignore[override]  # its own streams only
        return QueueTimer(stream)

    # -- kernels -------------------------------------------------------------------------------------------------------
    @abstractmethod
    def build(self, code: bytes, flush: bool = False) -> Any:
        """Code for the device → a loaded program. Raises BackendError in one line."""

    @abstractmethod
    def kernel(self, program: Any, name: str, arguments: int) -> Kernel:
        """A kernel of a program. Raises BackendError if there is none."""

    def launches(self, rows: Sequence[Launch]) -> Step:
        """What enqueues the launches of a program, in order."""

        def enqueue(stream: Queue, bases: Bases) -> None:
            for row in rows:
                row.enqueue(stream, bases)

        return enqueue

    def load_kernel(self, spec: KernelSpec) -> Kernel:
        """spec.code: what the device's `build` takes, with a kernel whose arguments are pointers to its memory."""
        return self.kernel(self.build(spec.code), spec.name, spec.arguments)
