"""A launch of a program: a kernel, its items, and where its arguments lie in the program's allocations."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..device import Kernel, LaunchDimensions

Bases = ctypes.Array[ctypes.c_uint64]
"""The address of each allocation of a run."""

Step = Callable[[Any, Bases], None]
"""(stream, address of each allocation): enqueue work of a program; control flow waits for what it reads."""


class Starts(Protocol):
    """A stream, as far as launches use it."""

    def start(self, kernel: Kernel, dimensions: LaunchDimensions, addresses: Sequence[int]) -> None: ...


@dataclass(frozen=True, slots=True)
class Launch:
    """places: (allocation, offset) of each argument. nanoseconds: that it keeps one processor busy, roughly; 0 where
    nobody knows.
    """

    kernel: Kernel
    dimensions: LaunchDimensions
    places: tuple[tuple[int, int], ...]
    nanoseconds: int = 0

    def enqueue(self, stream: Starts, bases: Bases) -> None:
        stream.start(self.kernel, self.dimensions, self.addresses(bases))

    def addresses(self, bases: Bases) -> list[int]:
        """Those of its arguments."""
        return [bases[allocation] + offset for allocation, offset in self.places]
