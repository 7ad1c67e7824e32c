"""What a device's StreamExecutor and Stream have beyond the interfaces, so that `compiler.py` can use them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from ..device import DeviceMemory, Kernel, LaunchDimensions, MemorySpace
from .launches import Launch, Step
from .notes import Command
from .targets import DeviceTarget


class Queue(Protocol):
    """A stream. start: a launch that was checked before, on blocks that the caller keeps until it is done.

    keep: what must live until the work that is enqueued now is done. lend: the driver's own queue, for a handler on
    this thread that enqueues its work there. watch, mark, noted, watched: when what
    is enqueued begins and ends.
    """

    def start(self, kernel: Kernel, dimensions: LaunchDimensions, addresses: Sequence[int]) -> None: ...

    def copy(self, to: int, source: int, size: int, *keep: object) -> None: ...

    def keep(self, *what: object) -> None: ...

    def lend(self) -> int: ...

    def watch(self) -> None: ...

    def mark(self, number: int) -> None: ...

    def noted(self) -> AbstractContextManager[None]: ...

    def watched(self) -> list[int | Command]: ...

    def synchronize(self) -> None: ...


class Device(Protocol):
    """An executor. code_target: of kernels' code. identity: what the device's binaries depend on.

    build: code → a loaded program, whose binary() is built faster; empty if there is none; and whose stored() is what a
    file keeps of it. flush: whether subnormals count as zero, as in XLA:CPU. launches: a step that enqueues them in
    order. shares_memory: the host's memory is the device's own: kernels take any address of it, and the host reads what
    they wrote.
    """

    ordinal: int
    code_target: DeviceTarget

    @property
    def shares_memory(self) -> bool: ...

    @property
    def identity(self) -> str: ...

    def build(self, code: bytes, flush: bool = False) -> Any: ...

    def kernel(self, program: Any, name: str, arguments: int) -> Kernel: ...

    def launches(self, rows: Sequence[Launch]) -> Step: ...

    def allocate(self, size: int, space: MemorySpace = ...) -> DeviceMemory: ...

    def deallocate(self, memory: DeviceMemory) -> None: ...

    def create_stream(self) -> Any: ...
