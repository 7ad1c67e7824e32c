"""Arrays between logical order (the caller's) and the layouts of a device, leaf by leaf, and as tuples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Protocol

from ..hlo import dtypes
from ..hlo.errors import InputError
from ..hlo.later import np
from ..hlo.records import dataclass
from ..hlo.shapes import Shape
from .device import BackendError, Capability, DeviceMemory, Stream, StreamExecutor, refused


@dataclass(frozen=True, slots=True)
class ShapedBuffer:
    """The arrays of a value in the memory of a device. leaves: one block for each array leaf of the shape, in order."""

    shape: Shape
    leaves: tuple[DeviceMemory, ...]


class Fed(Protocol):
    """What has an infeed and an outfeed: an executable."""

    def infeed(self, *leaves: Any, device: int = 0) -> None: ...

    def outfeed(self, device: int = 0, timeout: float = 0.0) -> list[np.ndarray]: ...


class TransferManager(ABC):
    """Moves values between the host and devices. platform_name: for messages."""

    platform_name = "host"

    def device_shape(self, shape: Shape) -> Shape:
        """The layout that a shape has on the device: its own, unless the back end says otherwise."""
        return shape

    @abstractmethod
    def byte_size_requirement(self, shape: Shape) -> int:
        """Size in bytes of the arrays of a shape on the device."""

    @abstractmethod
    def transfer_to_device(self, executor: StreamExecutor, array: np.ndarray, shape: Shape) -> DeviceMemory:
        """Allocate device memory and copy an array to it in the shape's layout. Raises InputError if it is no such."""

    @abstractmethod
    def transfer_from_device(self, executor: StreamExecutor, memory: DeviceMemory, shape: Shape) -> np.ndarray:
        """Copy device memory to a new array in logical order."""

    def transfer_to_device_async(self, stream: Stream, array: np.ndarray, shape: Shape) -> DeviceMemory:
        """As `transfer_to_device`, in a stream. The array must stay as it is until the stream has come that far."""
        raise refused(self.platform_name, Capability.ASYNC_COPIES)

    def transfer_from_device_async(
        self, stream: Stream, memory: DeviceMemory, shape: Shape, result: np.ndarray
    ) -> None:
        """As `transfer_from_device`, in a stream, to an array of the host."""
        raise refused(self.platform_name, Capability.ASYNC_COPIES)

    def transfer_tuple_to_device(
        self, executor: StreamExecutor, arrays: Sequence[np.ndarray], shape: Shape
    ) -> ShapedBuffer:
        """Copy the leaves of a value to the device. Nothing stays there if one of them does not fit."""
        shapes = _leaves(shape)
        if len(arrays) != len(shapes):
            raise InputError(f"{shape} has {len(shapes)} arrays, {len(arrays)} given", remedy="give one for each leaf")
        done: list[DeviceMemory] = []
        try:
            for array, leaf in zip(arrays, shapes, strict=True):
                done.append(self.transfer_to_device(executor, array, leaf))
        except BaseException:
            for memory in done:
                executor.deallocate(memory)
            raise
        return ShapedBuffer(shape, tuple(done))

    def transfer_tuple_from_device(self, executor: StreamExecutor, buffer: ShapedBuffer) -> list[np.ndarray]:
        shapes = _leaves(buffer.shape)
        return [self.transfer_from_device(executor, m, s) for m, s in zip(buffer.leaves, shapes, strict=True)]

    def transfer_to_infeed(self, executable: Fed, leaves: Sequence[Any], device: int = 0) -> None:
        """Append a value to the infeed of a program, which has one for each device that it runs on."""
        executable.infeed(*leaves, device=device)

    def transfer_from_outfeed(self, executable: Fed, device: int = 0, timeout: float = 0.0) -> list[np.ndarray]:
        """The next value of the outfeed of a program."""
        return executable.outfeed(device, timeout)


def _leaves(shape: Shape) -> list[Shape]:
    return [leaf for _, leaf in shape.leaves() if leaf.is_array]


class GenericTransferManager(TransferManager):
    """For a device whose arrays lie in one block each, in the layout of their shape: needs its copies only."""

    def __init__(self, platform_name: str):
        self.platform_name = platform_name

    def byte_size_requirement(self, shape: Shape) -> int:
        return sum(leaf.bytes for leaf in _leaves(shape))

    def transfer_to_device(self, executor: StreamExecutor, array: np.ndarray, shape: Shape) -> DeviceMemory:
        physical = in_memory_order(array, self.device_shape(shape))
        memory = executor.allocate(physical.nbytes)
        executor.synchronous_memcpy_from_host(memory, physical)
        return memory

    def transfer_from_device(self, executor: StreamExecutor, memory: DeviceMemory, shape: Shape) -> np.ndarray:
        physical = self._room(memory, shape)
        executor.synchronous_memcpy_to_host(physical, memory)
        return np.asarray(in_logical_order(physical, self.device_shape(shape)), order="C")

    def transfer_to_device_async(self, stream: Stream, array: np.ndarray, shape: Shape) -> DeviceMemory:
        physical = in_memory_order(array, self.device_shape(shape))
        memory = stream.executor.allocate(physical.nbytes)
        stream.memcpy_from_host(memory, physical)
        return memory

    def transfer_from_device_async(
        self, stream: Stream, memory: DeviceMemory, shape: Shape, result: np.ndarray
    ) -> None:
        _check(result, shape)
        if result.flags.c_contiguous and self.device_shape(shape).is_row_major:
            stream.memcpy_to_host(result, memory)
            return
        physical = self._room(memory, shape)
        stream.memcpy_to_host(physical, memory)
        stream.enqueue(lambda: np.copyto(result, in_logical_order(physical, self.device_shape(shape))))

    def _room(self, memory: DeviceMemory, shape: Shape) -> np.ndarray:
        """An array for the bytes of a block. Raises BackendError if the block is too small."""
        if memory.size < shape.bytes:
            what = f"{shape} needs {shape.bytes} bytes, the block has {memory.size}"
            raise BackendError(what, remedy="give the block of an array of that shape")
        return np.empty([shape.dims[d] for d in _major_to_minor(self.device_shape(shape))], shape.dtype.numpy)


def in_memory_order(array: np.ndarray, shape: Shape) -> np.ndarray:
    """An array of a shape as it lies in memory: contiguous, with the slowest dimension first. Raises InputError."""
    array = np.asarray(array)
    _check(array, shape)
    return np.asarray(array.transpose(_major_to_minor(shape)), shape.dtype.numpy, order="C")


def in_logical_order(physical: np.ndarray, shape: Shape) -> np.ndarray:
    """A view, in logical order, of an array as it lies in memory."""
    return physical.transpose(np.argsort(_major_to_minor(shape)))


def _major_to_minor(shape: Shape) -> tuple[int, ...]:
    return tuple(reversed(shape.minor_to_major))


def _check(array: np.ndarray, shape: Shape) -> None:
    """Raise InputError unless dtype and dimensions are the shape's; the byte order may differ."""
    given = dtypes.FROM_NUMPY.get(array.dtype.newbyteorder("="))
    if given is not shape.dtype or array.shape != shape.dims:
        name = given.value if given else str(array.dtype)
        what = f"expected {shape.without_layout()}, given {name}[{','.join(map(str, array.shape))}]"
        raise InputError(what, remedy="give an array of that shape and dtype")
