"""An image: all that a run needs of a compiled program besides its machine code. A compiler or a file makes it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ..hlo.devices import ONE_DEVICE, Devices
from ..hlo.dynamic_border import DynamicBorder
from ..hlo.errors import Location
from ..hlo.records import dataclass
from ..hlo.shapes import Shape
from ..planning.allocation import Allocation, BufferSlice
from .kinds import SequentialThunk, Split, depends_on_device


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One pointer that a kernel takes: bytes, alignment in bytes, and whether it writes there."""

    size: int
    alignment: int
    written: bool


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel's function. emitter: the name of the stack that made it. split: its steps, if it
    takes a range of them."""

    symbol: str
    emitter: str
    arguments: tuple[KernelArgument, ...]
    split: Split | None = None


@dataclass(frozen=True, eq=False)
class Image:
    """parameters, results: their arrays in order; a token is none. elsewhere: number of a result without an allocation
    → where it is at the end of a run. constants: index of an allocation → its bytes, 64-byte aligned.

    seconds: estimate of the time between two moments at which Python handles signals. largest: allocation of
    temporaries → the largest array in it, in words, and its place in the source. devices: how many run it together.
    """

    parameters: tuple[Shape, ...]
    results: tuple[Shape, ...]
    allocations: tuple[Allocation, ...]
    elsewhere: Mapping[int, BufferSlice]
    constants: Mapping[int, memoryview]
    kernels: tuple[Kernel, ...]
    thunks: SequentialThunk
    border: DynamicBorder | None = None
    flush_subnormals: bool = True
    seconds: float = 0.0
    largest: Mapping[int, tuple[str, Location | None]] = MappingProxyType({})
    devices: Devices = ONE_DEVICE

    @property
    def depends_on_device(self) -> bool:
        """Whether a run depends on more than its memory: other devices, a host, or the number of the device."""
        return self.devices.count > 1 or depends_on_device(self.thunks)
