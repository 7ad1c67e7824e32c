"""The interfaces of a back end, named as in XLA: Platform, StreamExecutor, Compiler, Executable, TransferManager."""

from __future__ import annotations

import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..codegen.cache import DEFAULT_CACHE, ObjectCache
from ..codegen.options import EmitOptions, EmittedModule
from ..hlo.devices import MOST_DEVICES, Devices
from ..hlo.errors import InputError, TestbedError
from ..hlo.records import dataclass, field
from .device import BackendError as BackendError
from .device import Capability as Capability
from .device import DeviceMemory as DeviceMemory
from .device import MemoryFault as MemoryFault
from .device import Stream as Stream
from .device import StreamExecutor as StreamExecutor
from .device import refused as refused
from .executables import Executable as Executable
from .transfers import TransferManager as TransferManager

if TYPE_CHECKING:
    from ..hlo.ir import Module
    from ..planning.plan import KernelRequest


@dataclass(frozen=True)
class Emitter:
    """One code-generation stack as a back end sees it.

    emit: requests → one LLVM module. unsupported: all errors that `emit` would raise. shadow: another stack, whose
    kernels run behind these, on copies, and are compared with them. alone: its IR says what holds for one call of a
    kernel only (invariant loads), so no kernel of it becomes a part of a loop. language: of the text that it emits:
    llvm, or c, which then is one file for all kernels of a program.
    """

    name: str
    emit: Callable[[Sequence[KernelRequest], EmitOptions], EmittedModule]
    unsupported: Callable[[Sequence[KernelRequest]], Sequence[TestbedError]] = lambda requests: ()
    shadow: Emitter | None = None
    alone: bool = False
    language: str = "llvm"


Made = TypeVar("Made")


def made_once(make: Callable[[Any, int], Made]) -> Callable[[Any, int], Made]:
    """A method that makes one thing for each number of a device, also if threads ask for it at once."""
    lock, found = threading.RLock(), functools.cache(make)

    @functools.wraps(make)
    def once(platform: Any, ordinal: int) -> Made:
        with lock:
            return found(platform, ordinal)

    return once


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
    memory: whether a kernel reads memory beside its arguments or memory that was not written, leaves elements of a
    result unwritten, or writes outside; a run raises MemoryCheckError or RedZoneError.
    """

    NAN = "nan"
    FINITE = "finite"
    CHECKSUM = "checksum"
    REDZONE = "redzone"
    MEMORY = "memory"


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
    batches: which kernels of a stack share a module; None: a few consecutive ones. threads: that compile at the same
    time; None: one a processor. Neither changes a kernel.
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
    batches: Callable[[Sequence[KernelRequest]], Sequence[Sequence[KernelRequest]]] | None = None
    threads: int | None = None

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


@dataclass(frozen=True)
class AheadOptions:
    """As XLA's AotCompilationOptions. emit: with the target. entry_point: the C function; None: by the module's name.

    relocation_model: static, pic or pie.
    """

    emit: EmitOptions
    entry_point: str | None = None
    relocation_model: str = "pic"


ProgramT = TypeVar("ProgramT")


class Compiler(ABC, Generic[ProgramT]):
    """HLO → executable in two halves, as XLA's RunHloPasses and RunBackend."""

    platform_name = "host"
    """Of the platform that it compiles for, for messages."""

    @abstractmethod
    def run_hlo_passes(self, module: Module, options: CompileOptions) -> ProgramT:
        """Do everything that precedes the emission of kernels. The result does not depend on the stacks."""

    @abstractmethod
    def compile(self, program: ProgramT, emit_for: EmitFor | None, options: CompileOptions) -> Executable:
        """Emit each kernel with the stack that `emit_for` chooses, and load the code.

        A back end without stacks ignores `emit_for`, and takes None for it.
        """

    def compile_ahead_of_time(
        self, program: ProgramT, emit_for: EmitFor | None, options: AheadOptions
    ) -> dict[str, bytes]:
        """Files by name, from which a program without Python is built."""
        raise refused(self.platform_name, Capability.AHEAD_OF_TIME)

    def load_executable(self, data: bytes, key: bytes | None = None) -> Executable:
        """The executable of `Executable.serialize`. Raises InputError for other bytes."""
        raise refused(self.platform_name, Capability.SERIALIZATION)


class Platform(ABC):
    """A kind of device. Its executor, compiler and transfer manager work only with each other.

    capabilities: what it has beyond memory, copies, a compiler and runs. keeps_subnormals: its arithmetic takes
    subnormals for what they are, as XLA:GPU does, where XLA:CPU takes them for zeros.
    """

    name: str
    capabilities: frozenset[Capability] = frozenset()
    keeps_subnormals: bool = False

    def unavailable(self) -> str | None:
        """Why it has no device here, in one line; None if it has some."""
        return None if self.visible_device_count() else "no device"

    @abstractmethod
    def visible_device_count(self) -> int: ...

    @abstractmethod
    def executor(self, ordinal: int = 0) -> StreamExecutor:
        """A device, always the same one for its number. Raises BackendError if there is none."""

    @abstractmethod
    def compiler(self) -> Compiler[Any]: ...

    @abstractmethod
    def transfer_manager(self) -> TransferManager: ...

    def check_ordinal(self, ordinal: int) -> None:
        if not 0 <= ordinal < self.visible_device_count():
            count = self.visible_device_count()
            raise BackendError(f"platform {self.name} has no device {ordinal}", remedy=f"it has {count}, from 0 on")
