"""The host CPU as a platform. Device 0 is this process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from ...hlo.shapes import Shape
from ..base import BackendError, DeviceMemory, Platform, Stream, StreamExecutor, TransferManager
from .addresses import address_of
from .compiler import HostCompiler
from .leaves import Leaf
from .memory import POOL


class HostStream(Stream):
    """A stream that runs its work in order on its own thread."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="host-stream")
        self._pending: list[Future[object]] = []

    def enqueue(self, work: Callable[[], object]) -> None:
        self._pending.append(self._pool.submit(work))

    def synchronize(self) -> None:
        pending, self._pending = self._pending, []
        failures = [error for error in [future.exception() for future in pending] if error is not None]
        if failures:
            raise failures[0]


class HostStreamExecutor(StreamExecutor):
    def allocate(self, size: int) -> DeviceMemory:
        if size < 0:
            raise BackendError(f"cannot allocate {size} bytes")
        block = POOL.allocate(size)
        return DeviceMemory(address_of(block), size, block)

    def deallocate(self, memory: DeviceMemory) -> None:
        """Do nothing: the block returns to the pool when its last DeviceMemory dies."""

    def synchronous_memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        if not 0 <= size <= min(destination.size, source.size):
            raise BackendError(
                f"cannot copy {size} bytes from a block of {source.size} to one of {destination.size}",
                remedy="copy no more than the smaller block holds",
            )
        ctypes.memmove(destination.address, source.address, size)

    def create_stream(self) -> HostStream:
        return HostStream()


class HostTransferManager(TransferManager):
    def byte_size_requirement(self, shape: Shape) -> int:
        return sum(leaf.bytes for _, leaf in shape.leaves())

    def transfer_to_device(self, executor: StreamExecutor, array: np.ndarray, shape: Shape) -> DeviceMemory:
        leaf = Leaf("array", 0, shape, 1)
        address, physical = leaf.address(array)
        memory = executor.allocate(shape.bytes)
        ctypes.memmove(memory.address, address, physical.nbytes)
        return memory

    def transfer_from_device(self, executor: StreamExecutor, memory: DeviceMemory, shape: Shape) -> np.ndarray:
        if memory.size < shape.bytes:
            raise BackendError(f"{shape} needs {shape.bytes} bytes, the block has {memory.size}")
        leaf = Leaf("array", 0, shape, 1)
        physical = leaf.allocate_physical()
        ctypes.memmove(address_of(physical), memory.address, shape.bytes)
        return np.asarray(leaf.logical(physical), order="C")


class HostPlatform(Platform):
    name = "host"

    def visible_device_count(self) -> int:
        return 1

    def executor(self, ordinal: int = 0) -> HostStreamExecutor:
        self.check_ordinal(ordinal)
        return HostStreamExecutor()

    def compiler(self) -> HostCompiler:
        return HostCompiler()

    def transfer_manager(self) -> HostTransferManager:
        return HostTransferManager()
