"""A program on the old emitters and on the new ones, as the gate of the ledger measures it (ADR 40).

Times are of this process's processor, not of the clock: what else the machine does counts little.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from ..backends.base import CompileOptions
from ..formats.program import Program
from ..migration.compile import compile_program
from ..migration.flags import Flags
from ..migration.parity import Speed
from .compare import compare, memory_ratio
from .growth import growth
from .rounds import Block, Settings

OLD, NEW = "legacy", "mlir"
FLOOR = 16 << 20
"""Bytes added to both peaks of memory: small ones, which pages and allocators decide, count as equal."""

SETTINGS = Settings(seconds=3.0, compiles=5)
"""Seconds are the processor's, for each program."""


def race(program: Program, inputs: Sequence[np.ndarray], settings: Settings) -> tuple[Speed, Sequence[Block]]:
    """Time a program on both stacks: the speed, and the times that it comes from. Raises what compiling raises."""
    found = compare(program, OLD, NEW, inputs, settings, clock=time.process_time)
    memory = memory_ratio(_peak(program, OLD, inputs), _peak(program, NEW, inputs), FLOOR)
    compiling = 1e3 * found.compile_seconds[1], found.compile_ratio
    return Speed(program.name, found.ratio, found.low, found.high, *compiling, memory), found.blocks


def _peak(program: Program, stack: str, inputs: Sequence[np.ndarray]) -> int | None:
    """Bytes of memory that compiling and running takes."""
    from ..backends.host.memory import trim_memory

    trim_memory()  # or the second stack would take the blocks of the first one
    options = CompileOptions(cache=None)
    return growth(lambda: compile_program(program, Flags.parse(stack), options).execute(inputs))[0]
