"""The host CPU as a platform. Device 0 is this process: its memory, threads as streams, object files as kernels."""

from __future__ import annotations

import ctypes
import platform as machine
from collections.abc import Sequence

import numpy as np

from ...codegen.load import load
from ...codegen.threads import processors
from ..base import Platform, made_once
from ..blocks import Blocks
from ..device import (
    AllocatorStatistics,
    Capability,
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
from ..thread_stream import ThreadEvent, ThreadStream, ThreadTimer
from ..transfers import GenericTransferManager
from .addresses import address_of
from .compiler import HostCompiler
from .memory import POOL


class HostStreamExecutor(StreamExecutor):
    """This process. Its memory in either space is the process's own, in blocks of the pool."""

    def __init__(self, platform: Named, ordinal: int = 0):
        super().__init__(platform, ordinal)
        self._blocks = Blocks()

    def description(self) -> DeviceDescription:
        return DeviceDescription(machine.processor() or machine.machine(), cores=processors())

    def allocate(self, size: int, space: MemorySpace = MemorySpace.DEVICE) -> DeviceMemory:
        """The block returns to the pool when its last DeviceMemory dies, whether it was given back or not."""
        self._blocks.reserve(size)
        try:
            block = POOL.allocate(size)
        except BaseException:
            self._blocks.cancel(size)
            raise
        address = address_of(block)
        self._blocks.add(address, size, block)
        return DeviceMemory(address, size, block, space, self.ordinal)

    def deallocate(self, memory: DeviceMemory) -> None:
        self._blocks.remove(memory)

    def synchronous_memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        check_copy(size, destination.size, source.size)
        ctypes.memmove(destination.address, source.address, size)

    def synchronous_memcpy_from_host(self, destination: DeviceMemory, source: np.ndarray) -> None:
        data = bytes_of(source)
        check_copy(data.size, destination.size, data.size)
        ctypes.memmove(destination.address, address_of(data), data.size)

    def synchronous_memcpy_to_host(self, destination: np.ndarray, source: DeviceMemory) -> None:
        data = bytes_of(destination)
        check_copy(data.size, data.size, source.size)
        ctypes.memmove(address_of(data), source.address, data.size)

    def create_stream(self) -> ThreadStream:
        return ThreadStream(self, _call)

    def create_event(self) -> ThreadEvent:
        return ThreadEvent()

    def create_timer(self, stream: ThreadStream) -> ThreadTimer:  # type: ignore[override]  # its own streams only
        return ThreadTimer(stream)

    def host_view(self, memory: DeviceMemory) -> np.ndarray:
        return np.ctypeslib.as_array((ctypes.c_uint8 * memory.size).from_address(memory.address))

    def load_kernel(self, spec: KernelSpec) -> Kernel:
        """spec.code: an object file for this processor, with the kernel's function in the ABI of ARCHITECTURE.md."""
        code = load([spec.code])
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * spec.arguments)(code.address(spec.name))
        return Kernel(spec.name, spec.arguments, (function, code))

    def statistics(self) -> AllocatorStatistics:
        return self._blocks.statistics()

    def set_memory_limit(self, limit: int | None) -> None:
        """Of the blocks that this executor allocates; `testbed.set_memory_limit` is for all memory of runs."""
        self._blocks.limit(limit)


def _call(kernel: Kernel, arguments: Sequence[DeviceMemory]) -> None:
    kernel.handle[0](*(memory.address for memory in arguments))


class HostTransferManager(GenericTransferManager):
    pass


class HostPlatform(Platform):
    name = "host"
    capabilities = frozenset(Capability) - {Capability.PEER_COPIES}

    def visible_device_count(self) -> int:
        return 1

    def executor(self, ordinal: int = 0) -> HostStreamExecutor:
        self.check_ordinal(ordinal)
        return self._executors(ordinal)

    @made_once
    def _executors(self, ordinal: int) -> HostStreamExecutor:
        return HostStreamExecutor(self, ordinal)

    def compiler(self) -> HostCompiler:
        return HostCompiler()

    def transfer_manager(self) -> HostTransferManager:
        return HostTransferManager(self.name)
