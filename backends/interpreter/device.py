"""The interpreter's devices: memory with addresses of its own, which no other code can read, and HLO as kernels."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...hlo.ir import Module
from ...hlo.shapes import Shape
from ...hlo.verify.verifier import verify
from ..blocks import Blocks
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
from ..thread_stream import ThreadEvent, ThreadStream, ThreadTimer
from ..transfers import in_logical_order, in_memory_order

FIRST_ADDRESS, ALIGNMENT = 1 << 44, 64
"""Addresses are numbers above those of any process. Each device counts its own; none is used twice."""


@dataclass(frozen=True, eq=False)
class Block:
    """Bytes at an address of a device."""

    address: int
    content: np.ndarray


class InterpreterStreamExecutor(StreamExecutor):
    """A device that the evaluator simulates."""

    def __init__(self, platform: Named, ordinal: int):
        super().__init__(platform, ordinal)
        self._blocks, self._lock = Blocks(), threading.Lock()
        self._next = FIRST_ADDRESS * (ordinal + 1)

    def description(self) -> DeviceDescription:
        return DeviceDescription("evaluator", "testbed")

    def allocate(self, size: int, space: MemorySpace = MemorySpace.DEVICE) -> DeviceMemory:
        self._blocks.reserve(size)
        try:
            content = np.empty(size, np.uint8)
        except BaseException:
            self._blocks.cancel(size)
            raise
        with self._lock:
            address = self._next
            self._next += max(-(-size // ALIGNMENT), 1) * ALIGNMENT
        block = Block(address, content)
        self._blocks.add(address, size, block)
        return DeviceMemory(address, size, block, space, self.ordinal)

    def deallocate(self, memory: DeviceMemory) -> None:
        self._blocks.remove(memory)

    def content(self, memory: DeviceMemory) -> np.ndarray:
        """The bytes of a block or of a part of one. Raises BackendError if it is not, or no longer, of this device."""
        block = memory.owner
        if not isinstance(block, Block) or memory.ordinal != self.ordinal:
            what = f"a block of device {memory.ordinal} is not in the memory of device {self.ordinal}"
            raise BackendError(what, remedy="copy it here first (memcpy_from_peer)")
        self._blocks.check(block.address)
        start = memory.address - block.address
        return block.content[start : start + memory.size]

    def synchronous_memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        check_copy(size, destination.size, source.size)
        self.content(destination)[:size] = self.content(source)[:size]

    def synchronous_memcpy_from_host(self, destination: DeviceMemory, source: np.ndarray) -> None:
        data = bytes_of(source)
        check_copy(data.size, destination.size, data.size)
        self.content(destination)[: data.size] = data

    def synchronous_memcpy_to_host(self, destination: np.ndarray, source: DeviceMemory) -> None:
        data = bytes_of(destination)
        check_copy(data.size, data.size, source.size)
        data[:] = self.content(source)[: data.size]

    def memcpy_from_peer(
        self, destination: DeviceMemory, peer: StreamExecutor, source: DeviceMemory, size: int
    ) -> None:
        check_copy(size, destination.size, source.size)
        if not isinstance(peer, InterpreterStreamExecutor):
            raise BackendError(f"no device of {self.platform.name}", remedy="copy through the host")
        self.content(destination)[:size] = peer.content(source)[:size]

    def create_stream(self) -> ThreadStream:
        return ThreadStream(self, self._evaluate)

    def create_event(self) -> ThreadEvent:
        return ThreadEvent()

    def create_timer(self, stream: ThreadStream) -> ThreadTimer:  # type: ignore[override]  # its own streams only
        return ThreadTimer(stream)

    def host_view(self, memory: DeviceMemory) -> np.ndarray:
        if memory.space is not MemorySpace.HOST:
            raise BackendError("the host cannot reach the device's memory", remedy="allocate it in MemorySpace.HOST")
        return self.content(memory)

    def load_kernel(self, spec: KernelSpec) -> Kernel:
        """spec.code: HLO text. Its parameters are the first arguments, the leaves of its result the others."""
        module = parse_module(spec.code.decode(), spec.name)
        verify(module)
        shapes = (*module.parameter_shapes, *(leaf for _, leaf in module.result_shape.leaves()))
        if spec.arguments != len(shapes) or not all(shape.is_array for shape in shapes):
            what = f"{spec.name} has {len(shapes)} parameters and results, {spec.arguments} arguments given"
            raise InputError(what, remedy="give one block of memory for each; parameters are arrays")
        return Kernel(spec.name, spec.arguments, module)

    def statistics(self) -> AllocatorStatistics:
        return self._blocks.statistics()

    def set_memory_limit(self, limit: int | None) -> None:
        self._blocks.limit(limit)

    def _evaluate(self, kernel: Kernel, arguments: Sequence[DeviceMemory]) -> None:
        module: Module = kernel.handle
        count = len(module.parameter_shapes)
        inputs = [self.read(m, s) for m, s in zip(arguments[:count], module.parameter_shapes, strict=True)]
        results = zip(arguments[count:], module.result_shape.leaves(), evaluate(module, inputs), strict=True)
        for memory, (_, shape), result in results:
            self.write(memory, shape, result)

    def read(self, memory: DeviceMemory, shape: Shape) -> np.ndarray:
        """A copy of the array in a block, in logical order. Raises InputError if the block is too small."""
        if memory.size < shape.bytes:
            what = f"{shape} needs {shape.bytes} bytes, the block has {memory.size}"
            raise InputError(what, remedy="give the block of an array of that shape")
        flat = self.content(memory)[: shape.bytes].copy().view(shape.dtype.numpy)
        return in_logical_order(flat.reshape([shape.dims[d] for d in reversed(shape.minor_to_major)]), shape)

    def write(self, memory: DeviceMemory, shape: Shape, array: np.ndarray) -> None:
        """Put an array into a block in the layout of its shape."""
        self.synchronous_memcpy_from_host(memory, in_memory_order(array, shape))
