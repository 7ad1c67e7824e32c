"""Launches that follow each other, enqueued by one call of native code: a call from Python for each argument and launch
costs as much as the runtime's own work.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..accelerator.launches import Bases, Launch
from ..device import LaunchDimensions
from .errors import check
from .library import Device


def sizes_of(dimensions: LaunchDimensions) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(All items, those of a group) along x, y and z, as OpenCL takes them."""
    blocks, threads = dimensions.blocks, dimensions.threads
    return tuple(b * t for b, t in zip(blocks, threads, strict=True)), threads


@dataclass(frozen=True, eq=False, slots=True)
class Launches:
    """rows: what is launched. words: the same for native code. functions: the addresses of the driver's."""

    rows: Sequence[Launch]
    words: ctypes.Array[ctypes.c_uint64]
    functions: tuple[int, int]

    def enqueue(self, queue: int, bases: Bases) -> None:
        """Raises BackendError with the launch that the driver refuses."""
        stopped = _code()(ctypes.addressof(self.words), len(self.rows), ctypes.addressof(bases), queue, *self.functions)
        if stopped:
            number, code = divmod(stopped, 1 << 32)
            check(code - (1 << 32), f"run {self.rows[number].kernel.name}")


def launches(rows: Sequence[Launch], device: Device) -> Launches:
    """The launches with their words (launch_words.py)."""
    words: list[int] = []
    for row in rows:
        sizes, group = sizes_of(row.dimensions)
        words += [row.kernel.handle.value, *sizes, *group, len(row.places)]
        words += [word for place in row.places for word in place]
    return Launches(tuple(rows), (ctypes.c_uint64 * len(words))(*words), _functions(device))


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

    loaded = load([runtime_object("opencl launches 1", _text)])
    word, address = ctypes.c_uint64, ctypes.c_void_p
    types = (word, address, word, address, address, address, address)
    function: Any = ctypes.CFUNCTYPE(*types)(loaded.address("testbed_launches"))
    function.loaded = loaded
    return function


def _text() -> str:
    from .launches_code import launches_ir

    return launches_ir()
