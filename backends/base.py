"""The interfaces of a back end, named as in XLA: Platform, StreamExecutor, Compiler, Executable, TransferManager."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ..codegen.cache import DEFAULT_CACHE, ObjectCache
from ..codegen.options import EmitOptions, EmittedModule
from ..hlo.devices import MOST_DEVICES, Devices
from ..hlo.display import Displayed
from ..hlo.errors import InputError, TestbedError
from ..hlo.ir import Module
from ..hlo.shapes import Shape
from .calling import Calling

if TYPE_CHECKING:
    from ..planning.plan import KernelRequest


class BackendError(TestbedError):
    """An unknown platform, or an operation that a device refuses."""


@dataclass(frozen=True)
class Emitter:
    """One code-generation stack as a back end sees it.

    emit: requests → one LLVM module. unsupported: all errors that `emit` would raise. shadow: another stack, whose
    kernels run behind these, on copies, and are compared with them.
    """

    name: str
    emit: Callable[[Sequence[KernelRequest], EmitOptions], EmittedModule]
    unsupported: Callable[[Sequence[KernelRequest]], Sequence[TestbedError]] = lambda requests: ()
    shadow: Emitter | None = None


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


class _OfInstance:
    """An attribute of instances that inspect.signature and help read; the class itself has `of_class` there."""

    def __init__(self, read: Callable[[Executable], Any], of_class: Any = None):
        self._read, self._of_class = read, of_class

    def __get__(self, executable: Executable | None, owner: type | None = None) -> Any:
        return self._of_class if executable is None else self._read(executable)


class Executable(Displayed, ABC):
    """A compiled program: `executable(x, y)` runs it. Threads may call it at the same time."""

    program: Module
    """The module as its caller knows it: names, shapes and trees of arguments and results."""

    __signature__ = _OfInstance(lambda executable: executable.calling.signature())

    def __init_subclass__(cls) -> None:
        document = _OfInstance(lambda executable: executable.calling.document(), cls.__doc__)
        cls.__doc__ = document  # type: ignore[assignment]  # a str of an instance, which help() reads

    @cached_property
    def calling(self) -> Calling:
        """How it is called, from `program`."""
        return Calling(self.program)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Run once. Takes numpy arrays, Python numbers, buffers, DLPack objects and pytrees of them, in the order of
        the parameters or, for a program from JAX, in the trees that it was lowered with.

        out: the array for the result, or a tuple (or JAX's tree) of arrays as the result is; None makes a new array.
        donate: names or positions of arguments whose arrays may be overwritten; those that the module aliases to a
        result become it. A program with an argument called `out` or `donate` takes that by this name instead.

        Returns a numpy array, or a tuple (or JAX's tree) of them. Raises InputError that names the argument, what is
        expected and what is given.
        """
        options = self.calling.options(named)
        inputs = self.calling.leaves(arguments, named)
        return self.calling.result(self.execute(inputs, options.outputs, donated=options.donated))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.calling.text()}>"

    kernels: tuple[tuple[str, str], ...] = ()
    """(kernel, name of the stack that emitted it), in order of first use."""

    timings: Mapping[str, float] = {}
    """Seconds per stage of the compilation."""

    stages: tuple[tuple[str, str], ...] = ()
    """(file name, text) of every IR stage, if the options requested them."""

    @abstractmethod
    def execute(
        self,
        inputs: Sequence[Any],
        outputs: Sequence[np.ndarray | None] | None = None,
        *,
        donated: Collection[int] = (),
    ) -> list[np.ndarray]:
        """Run once. inputs: one array per leaf, flattened. outputs: arrays that receive the results; None makes new
        ones. donated: numbers of inputs that may be overwritten.

        Returns one array per result leaf.
        """


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
