"""The interfaces of a back end, named as in XLA: Platform, StreamExecutor, Compiler, Executable, TransferManager."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..codegen.cache import DEFAULT_CACHE, ObjectCache
from ..codegen.options import EmitOptions, EmittedModule
from ..hlo.devices import MOST_DEVICES, Devices
from ..hlo.errors import InputError, TestbedError
from ..hlo.later import np
from .executables import Executable as Executable

if TYPE_CHECKING:
    from ..hlo.ir import Module
    from ..hlo.shapes import Shape
    from ..planning.plan import KernelRequest


class BackendError(TestbedError):
    """An unknown platform, or an operation that a device refuses."""


@dataclass(frozen=True)
class Emitter:
    """One code-generation stack as a back end sees it.

    emit: requests → one LLVM module. unsupported: all errors that `emit` would raise. shadow: another stack, whose
    kernels run behind these, on copies, and are compared with them. alone: its IR says what holds for one call of a
    kernel only (invariant loads), so no kernel of it becomes a part of a loop.
    """

    name: str
    emit: Callable[[Sequence[KernelRequest], EmitOptions], EmittedModule]
    unsupported: Callable[[Sequence[KernelRequest]], Sequence[TestbedError]] = lambda requests: ()
    shadow: Emitter | None = None
    alone: bool = False


EmitFor = Callable[["KernelRequest"], Emitter]
"""Chooses the stack of a kernel. Only migration/ creates such functions."""


class HostProgramKind(StrEnum):
    """How kernels are called. compiled: by one native function, made by MLIR; interpreted: by a table, which a native
    runner follows; auto: what costs less together with its compilation. The results are the same.
    """

    AUTO = "auto"
    COMPILED = "compiled"
    INTERPRETED = "interpreted"


class DebugKind(StrEnum):
    """What is checked while a program runs. nan: the first NaN in what each kernel computes; finite: infinities, too.

    checksum: noted of what each kernel and copy wrote. redzone: whether a kernel wrote outside of its arguments.
    """

    NAN = "nan"
    FINITE = "finite"
    CHECKSUM = "checksum"
    REDZONE = "redzone"


@dataclass(frozen=True)
class CompileOptions:
    """cache: the cache of objects on disk; None disables it. keep_stages: keep the text of every IR stage.

    red_zones: run kernels between guard bytes and report writes out of bounds (slow).
    profile: note when each step begins and ends, for `HostExecutable.profile`; results keep their bits.
    debug: a DebugKind or its name: checks in the program, for `HostExecutable.findings`; results keep their bits.
    host_program: a HostProgramKind or its name.
    tolerances: kernel → by how much each result of its shadow may differ, in representable values, and in those at the
    largest magnitude; None: not at all.
    replicas, partitions: the devices that run the program together (`HostExecutable.execute_replicated`).
    """

    emit: EmitOptions = field(default_factory=EmitOptions.host)
    cache: ObjectCache | None = DEFAULT_CACHE
    keep_stages: bool = False
    red_zones: bool = False
    profile: bool = False
    debug: DebugKind | str = ""
    host_program: HostProgramKind | str = HostProgramKind.AUTO
    tolerances: Callable[[KernelRequest], Sequence[tuple[int, int]]] | None = None
    replicas: int = 1
    partitions: int = 1

    def __post_init__(self) -> None:
        names = [kind.value for kind in HostProgramKind]
        if self.host_program not in names:
            raise InputError(f"unknown host program {self.host_program!r}", remedy=f"choose from {', '.join(names)}")
        kinds = [kind.value for kind in DebugKind]
        if self.debug and self.debug not in kinds:
            raise InputError(f"unknown checks {self.debug!r}", remedy=f"choose from {', '.join(kinds)}")
        if self.debug and (self.profile or self.red_zones):
            raise InputError("checks, a profile and red zones need programs of their own", remedy="choose one of them")
        if self.replicas < 1 or self.partitions < 1:
            raise InputError(f"there is no device: {self.devices}", remedy="give at least one of each")
        if self.devices.count > MOST_DEVICES:
            raise InputError(f"too many devices: {self.devices}", remedy=f"give up to {MOST_DEVICES}")

    @property
    def devices(self) -> Devices:
        return Devices(self.replicas, self.partitions)


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """A block of a device's memory. owner: keeps the block alive; None if it was deallocated."""

    address: int
    size: int
    owner: Any = None


class Stream(ABC):
    """A queue of work that a device runs in order."""

    @abstractmethod
    def enqueue(self, work: Callable[[], object]) -> None: ...

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until all work is done. Raises the exception of the first piece of work that failed."""


class StreamExecutor(ABC):
    """One device: memory, copies, streams, symbols."""

    @abstractmethod
    def allocate(self, size: int) -> DeviceMemory: ...

    @abstractmethod
    def deallocate(self, memory: DeviceMemory) -> None: ...

    @abstractmethod
    def synchronous_memcpy(self, destination: DeviceMemory, source: DeviceMemory, size: int) -> None:
        """Copy the first `size` bytes between two blocks of this device."""

    @abstractmethod
    def create_stream(self) -> Stream: ...


ProgramT = TypeVar("ProgramT")


class Compiler(ABC, Generic[ProgramT]):
    """HLO → executable in two halves, as XLA's RunHloPasses and RunBackend."""

    @abstractmethod
    def run_hlo_passes(self, module: Module, options: CompileOptions) -> ProgramT:
        """Do everything that precedes the emission of kernels. The result does not depend on the stacks."""

    @abstractmethod
    def compile(self, program: ProgramT, emit_for: EmitFor, options: CompileOptions) -> Executable:
        """Emit each kernel with the stack that `emit_for` chooses, and load the code."""


class TransferManager(ABC):
    """Moves arrays between logical order (the caller's) and the layouts of a device."""

    @abstractmethod
    def byte_size_requirement(self, shape: Shape) -> int:
        """Size in bytes of an array shape on the device."""

    @abstractmethod
    def transfer_to_device(self, executor: StreamExecutor, array: np.ndarray, shape: Shape) -> DeviceMemory:
        """Allocate device memory and copy an array to it in the shape's layout."""

    @abstractmethod
    def transfer_from_device(self, executor: StreamExecutor, memory: DeviceMemory, shape: Shape) -> np.ndarray:
        """Copy device memory to a new array in logical order."""


class Platform(ABC):
    """A kind of device. Its executor, compiler and transfer manager work only with each other."""

    name: str

    @abstractmethod
    def visible_device_count(self) -> int: ...

    @abstractmethod
    def executor(self, ordinal: int = 0) -> StreamExecutor: ...

    @abstractmethod
    def compiler(self) -> Compiler[Any]: ...

    @abstractmethod
    def transfer_manager(self) -> TransferManager: ...

    def check_ordinal(self, ordinal: int) -> None:
        if not 0 <= ordinal < self.visible_device_count():
            count = self.visible_device_count()
            raise BackendError(f"platform {self.name} has no device {ordinal}", remedy=f"it has {count}, from 0 on")
