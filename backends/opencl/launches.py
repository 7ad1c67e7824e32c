"""Launches that follow each other, enqueued by one call of native code: a call from Python for each argument and launch
costs as much as the runtime's own work.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..accelerator.launches import Bases, Launch
from ..device import LaunchDimensions
from .errors import check
from .launch_words import NOWHERE
from .library import Device


def sizes_of(dimensions: LaunchDimensions) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(All items, those of a group) along x, y and z, as OpenCL takes them."""
    blocks, threads = dimensions.blocks, dimensions.threads
    return tuple(b * t for b, t in zip(blocks, threads, strict=True)), threads


@dataclass(frozen=True, eq=False, slots=True)
class Launches:
    """Launches that several threads may enqueue at once: each uses kernels of its own, whose arguments are their state,
    so that what they were given last need not be given again.
    """

    rows: Sequence[Launch]
    device: Device
    idle: list[_Own] = field(default_factory=list)

    def enqueue(self, queue: int, bases: Bases) -> None:
        """Raises BackendError with the launch that the driver refuses."""
        try:
            own = self.idle.pop()
        except IndexError:
            own = _own(self.rows, self.device)
        try:
            stopped = own.enqueue(queue, bases)
        finally:
            self.idle.append(own)
        if stopped:
            number, code = divmod(stopped, 1 << 32)
            check(code - (1 << 32), f"run {self.rows[number].kernel.name}")


@dataclass(frozen=True, eq=False, slots=True)
class _Own:
    """words: of launches, for native code. functions: the addresses of the driver's. forget: as in launches_code.py."""

    kernels: Sequence[object]
    words: ctypes.Array[ctypes.c_uint64]
    functions: tuple[int, int]
    forget: int

    def enqueue(self, queue: int, bases: Bases) -> int:
        words, count, places = ctypes.addressof(self.words), len(self.kernels), ctypes.addressof(bases)
        return _code()(words, count, places, queue, *self.functions, self.forget)


def _own(rows: Sequence[Launch], device: Device) -> _Own:
    """The launches with their words (launch_words.py). A block of USM may come again at an address as another one."""
    words: list[int] = []
    kernels = [row.kernel.handle.another() for row in rows]
    for row, kernel in zip(rows, kernels, strict=True):
        sizes, group = sizes_of(row.dimensions)
        words += [kernel.value, *sizes, *group, len(row.places)]
        words += [word for place in row.places for word in (*place, NOWHERE)]
    forget = 0 if device.shares_memory else NOWHERE
    return _Own(kernels, (ctypes.c_uint64 * len(words))(*words), _functions(device), forget)


def _functions(device: Device) -> tuple[int, int]:
    """The addresses of the driver's functions."""
    functions: dict[str, Any] = device.functions
    names = ("clSetKernelArgMemPointerINTEL", "clEnqueueNDRangeKernel")
    give, enqueue = (ctypes.cast(functions[name], ctypes.c_void_p).value or 0 for name in names)
    return give, enqueue


@functools.cache
def _code() -> Callable[..., int]:
    from ...codegen.load import load
    from ...codegen.runtime import runtime_object

    loaded = load([runtime_object("opencl launches 2", _text)])
    word, address = ctypes.c_uint64, ctypes.c_void_p
    types = (word, address, word, address, address, address, address, word)
    function: Any = ctypes.CFUNCTYPE(*types)(loaded.address("testbed_launches"))
    function.loaded = loaded
    return function


def _text() -> str:
    from .launches_code import launches_ir

    return launches_ir()
