"""One device as XLA's StreamExecutor has it: memory, streams, events, timers, kernels, limits and statistics.

A back end declares what it has of it (Capability); what it does not declare refuses in one line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, Protocol

from ..hlo.errors import TestbedError
from ..hlo.later import np
from ..hlo.records import dataclass, field


class BackendError(TestbedError):
    """An unknown platform, or an operation that a device refuses."""


class MemoryFault(BackendError):
    """A kernel goes wrong with memory: a checking mode of the host found it. kernel, instruction: which."""

    def __init__(self, kernel: str, instruction: str, message: str, remedy: str):
        self.kernel, self.instruction = kernel, instruction
        super().__init__(message, remedy=remedy)


class Capability(StrEnum):
    """What a back end may have beyond memory, copies, a compiler and runs. The value is its name in messages."""

    EVENTS = "events"  # Stream.record and wait_for, StreamExecutor.create_event
    TIMERS = "timers"  # StreamExecutor.create_timer
    ASYNC_COPIES = "asynchronous copies"  # Stream.memcpy, memcpy_from_host, memcpy_to_host
    PEER_COPIES = "copies between devices"  # StreamExecutor.memcpy_from_peer
    MEMSET = "memset"  # Stream.memset, memset32
    HOST_MEMORY = "host memory"  # allocate(space=MemorySpace.HOST), StreamExecutor.host_view
    HOST_CALLBACKS = "host callbacks"  # Stream.enqueue
    KERNELS = "kernels"  # StreamExecutor.load_kernel, Stream.launch
    STATISTICS = "statistics"  # StreamExecutor.statistics
    MEMORY_LIMIT = "memory limit"  # StreamExecutor.set_memory_limit
    ASYNC_EXECUTION = "asynchronous execution"  # Executable.execute_async_on_stream
    SERIALIZATION = "serialization"  # Executable.serialize, Compiler.load_executable
    AHEAD_OF_TIME = "ahead-of-time compilation"  # Compiler.compile_ahead_of_time
    LAYOUTS = "layouts"  # arrays on the device in the layout of their shape; without it, they are row-major
    FEEDS = "feeds"  # TransferManager.transfer_to_infeed, transfer_from_outfeed


class Named(Protocol):
    """A platform, as far as a device needs to know it."""

    name: str


def refused(platform: str, capability: Capability) -> BackendError:
    """The error of an operation that a platform does not declare."""
    return BackendError(f"platform {platform} has no {capability.value}", remedy="testbed platforms lists what it has")


class MemorySpace(StrEnum):
    """Where a block lies: in the device's own memory, or in memory that the host reads and writes, too (pinned)."""

    DEVICE = "device"
    HOST = "host"


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """A block of a device's memory. owner: keeps the block alive; None if it was deallocated. ordinal: the device."""

    address: int
    size: int
    owner: Any = None
    space: MemorySpace = MemorySpace.DEVICE
    ordinal: int = 0

    def slice(self, offset: int, size: int) -> DeviceMemory:
        """A part of the block. Raises BackendError if it does not lie in it."""
        if offset < 0 or size < 0 or offset + size > self.size:
            what = f"no {size} bytes at {offset} in a block of {self.size}"
            raise BackendError(what, remedy="take a part that lies in it")
        return DeviceMemory(self.address + offset, size, self.owner, self.space, self.ordinal)


@dataclass(frozen=True, slots=True)
class DeviceDescription:
    """A device and its limits. memory_bytes: None if nobody knows. clock_rate_hz: of its timers' steps; 0: unknown.

    threads_per_block, blocks: the most of a launch, along x, y and z.
    """

    name: str
    vendor: str = ""
    cores: int = 1
    memory_bytes: int | None = None
    threads_per_block: tuple[int, int, int] = (1, 1, 1)
    blocks: tuple[int, int, int] = (1, 1, 1)
    shared_memory_bytes: int = 0


@dataclass(frozen=True, slots=True)
class AllocatorStatistics:
    """Blocks of a device. bytes_limit: of bytes_in_use, or None."""

    bytes_in_use: int
    peak_bytes_in_use: int
    allocations: int
    largest_allocation: int
    bytes_limit: int | None


@dataclass(frozen=True, slots=True)
class LaunchDimensions:
    """Blocks and threads in a block, along x, y and z."""

    blocks: tuple[int, int, int] = (1, 1, 1)
    threads: tuple[int, int, int] = (1, 1, 1)

    def check(self, description: DeviceDescription) -> None:
        """Raises BackendError for none along a dimension, or more than the device takes."""
        limits = (("blocks", self.blocks, description.blocks), ("threads", self.threads, description.threads_per_block))
        for what, given, most in limits:
            if any(not 1 <= n <= limit for n, limit in zip(given, most, strict=True)):
                remedy = f"from 1 to {', '.join(map(str, most))}"
                raise BackendError(f"{description.name} cannot run {', '.join(map(str, given))} {what}", remedy=remedy)


@dataclass(frozen=True, slots=True)
class KernelSpec:
    """Code that a device loads: an object file, HLO text, PTX or SPIR-V, as the platform says. arguments: how many
    blocks of memory the kernel takes.
    """

    name: str
    code: bytes = field(repr=False)
    arguments: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """A loaded kernel. handle: the executor's own."""

    name: str
    arguments: int
    handle: Any = field(repr=False)

    def check(self, arguments: Sequence[DeviceMemory]) -> None:
        if len(arguments) != self.arguments:
            what = f"kernel {self.name} takes {self.arguments} blocks of memory, {len(arguments)} given"
            raise BackendError(what, remedy="give one for each argument")


class Event(ABC):
    """A place in a stream: whether it was reached. One that was not recorded counts as reached."""

    @property
    @abstractmethod
    def is_complete(self) -> bool: ...

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until it is reached."""


class Timer(ABC):
    """The time between two places in a stream."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def elapsed(self) -> float:
        """Seconds from start to stop; waits until the stream has reached the latter."""


class Stream(ABC):
    """A queue of work that a device runs in order. All but `synchronize` return at once."""

    def __init__(self, executor: StreamExecutor):
        self.executor = executor

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work is done. Raises the exception of the first piece of work that failed."""

    def _refused(self, capability: Capability) -> BackendError:
        return refused(self.executor.platform.name, capability)

    def enqueue(self, work: Callable[[], object]) -> None:
        """Call a function of the host, in order with the other work."""
        raise self._refused(Capability.HOST_CALLBACKS)

    def record(self, event: Event) -> None:
        """Let the event be reached when all work until here is done."""
        raise self._refused(Capability.EVENTS)

    def wait_for(self, other: Event | Stream) -> None:
        """Let further work wait for an event, or for all work that is in another stream now."""
        raise self._refused(Capability.EVENTS)

    def memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        """Copy the first bytes between two blocks of this device."""
        raise self._refused(Capability.ASYNC_COPIES)

    def memcpy_from_host(self, destination: DeviceMemory, source: np.ndarray) -> None:
        """Copy a contiguous array to the device. It must stay as it is until the copy is done."""
        raise self._refused(Capability.ASYNC_COPIES)

    def memcpy_to_host(self, destination: np.ndarray, source: DeviceMemory) -> None:
        """Fill a contiguous array from the first bytes of a block."""
        raise self._refused(Capability.ASYNC_COPIES)

    def memset(self, memory: DeviceMemory, value: int) -> None:
        """Set each byte of a block."""
        raise self._refused(Capability.MEMSET)

    def memset32(self, memory: DeviceMemory, pattern: int) -> None:
        """Set each four bytes of a block to a number, least byte first. Its size must be a multiple of four."""
        raise self._refused(Capability.MEMSET)

    def launch(self, kernel: Kernel, dimensions: LaunchDimensions, arguments: Sequence[DeviceMemory]) -> None:
        """Run a kernel. Raises BackendError for a wrong number of arguments, and for dimensions beyond the limits."""
        raise self._refused(Capability.KERNELS)


class StreamExecutor(ABC):
    """One device. Copies named synchronous are done when they return; what a stream does is not waited for."""

    def __init__(self, platform: Named, ordinal: int = 0):
        self.platform, self.ordinal = platform, ordinal

    @abstractmethod
    def description(self) -> DeviceDescription: ...

    @abstractmethod
    def allocate(self, size: int, space: MemorySpace = MemorySpace.DEVICE) -> DeviceMemory:
        """A block that nothing else uses; its content is not defined. Raises BackendError or OutOfMemoryError."""

    @abstractmethod
    def deallocate(self, memory: DeviceMemory) -> None:
        """Give a block back. Raises BackendError if it is not one of this device, or was given back before."""

    @abstractmethod
    def synchronous_memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        """Copy the first `size` bytes between two blocks of this device."""

    @abstractmethod
    def synchronous_memcpy_from_host(self, destination: DeviceMemory, source: np.ndarray) -> None:
        """Copy a contiguous array to the first bytes of a block."""

    @abstractmethod
    def synchronous_memcpy_to_host(self, destination: np.ndarray, source: DeviceMemory) -> None:
        """Fill a contiguous array from the first bytes of a block."""

    @abstractmethod
    def create_stream(self) -> Stream: ...

    def _refused(self, capability: Capability) -> BackendError:
        return refused(self.platform.name, capability)

    def create_event(self) -> Event:
        raise self._refused(Capability.EVENTS)

    def create_timer(self, stream: Stream) -> Timer:
        raise self._refused(Capability.TIMERS)

    def memcpy_from_peer(
        self, destination: DeviceMemory, peer: StreamExecutor, source: DeviceMemory, size: int
    ) -> None:
        """Copy bytes from a block of another device of the platform to one of this device."""
        raise self._refused(Capability.PEER_COPIES)

    def host_view(self, memory: DeviceMemory) -> np.ndarray:
        """The bytes of a block in MemorySpace.HOST, as an array that shares them."""
        raise self._refused(Capability.HOST_MEMORY)

    def load_kernel(self, spec: KernelSpec) -> Kernel:
        """Raises a TestbedError for code that cannot be loaded."""
        raise self._refused(Capability.KERNELS)

    def statistics(self) -> AllocatorStatistics:
        raise self._refused(Capability.STATISTICS)

    def set_memory_limit(self, limit: int | None) -> None:
        """From now on, refuse an allocation that would take the bytes in use past a limit; None: take what there is."""
        raise self._refused(Capability.MEMORY_LIMIT)


def check_copy(size: int, destination: int, source: int) -> None:
    """Raises BackendError for a copy beyond the blocks' sizes in bytes."""
    if not 0 <= size <= min(destination, source):
        raise BackendError(
            f"cannot copy {size} bytes from a block of {source} to one of {destination}",
            remedy="copy no more than the smaller block holds",
        )


def bytes_of(array: np.ndarray) -> np.ndarray:
    """The bytes of an array on the host, shared. Raises BackendError unless it is contiguous in row-major order."""
    if not array.flags.c_contiguous:
        raise BackendError("cannot copy an array with gaps", remedy="give a contiguous one (numpy.ascontiguousarray)")
    return array.reshape(-1).view(np.uint8)
