"""A program on the old emitters and on the new ones, as the gate of the ledger measures it (ADR 40).

Times are of this process's processor, not of the clock: what else the machine does counts little.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..backends.base import CompileOptions
from ..formats.program import Program
from ..migration.compile import compile_program
from ..migration.flags import Flags
from ..migration.ledger_states import USUAL
from ..migration.parity import Speed
from .compare import compare, compile_times, memory_ratio
from .growth import growth
from .rounds import Block, Settings

FLOOR = 16 << 20
"""Bytes added to both peaks of memory: small ones, which pages and allocators decide, count as equal."""

TIED_COMPILES = 2
"""How often a program with the same machine code on both stacks is compiled on each."""

SETTINGS = Settings(seconds=3.0, compiles=5)
"""Seconds are the processor's, for each program."""


def race(
    program: Program, inputs: Sequence[np.ndarray], settings: Settings, stacks: tuple[str, str] = USUAL
) -> tuple[Speed, Sequence[Block]]:
    """Time a program on both stacks: the speed, and the times that it comes from. Raises what compiling raises."""
    old, new = stacks
    found = compare(program, old, new, inputs, settings, clock=time.process_time)
    memory = memory_ratio(_peak(program, old, inputs), _peak(program, new, inputs), FLOOR)
    compiling = 1e3 * found.compile_seconds[1], found.compile_ratio
    return Speed(program.name, found.ratio, found.low, found.high, *compiling, memory), found.blocks


def tie(
    program: Program, inputs: Sequence[np.ndarray], settings: Settings, stacks: tuple[str, str]
) -> tuple[Speed, Sequence[Block]]:
    """As `race`, for a program whose machine code is the same on both stacks: only compiling is timed."""
    times = compile_times(program, stacks, inputs, replace(settings, compiles=TIED_COMPILES), time.process_time)
    old, new = (_peak(program, stack, inputs) for stack in stacks)
    memory = memory_ratio(old, new, FLOOR)
    speed = Speed(program.name, 1.0, 1.0, 1.0, 1e3 * times[1], times[1] / times[0], memory)
    return speed, [Block((1.0,), (1.0,), (0, 0))]


def _peak(program: Program, stack: str, inputs: Sequence[np.ndarray]) -> int | None:
    """Bytes of memory that compiling and running takes."""
    from ..backends.host.memory import trim_memory

    trim_memory()  # or the second stack would take the blocks of the first one
    options = CompileOptions(cache=None)
    return growth(lambda: compile_program(program, Flags.parse(stack), options).execute(inputs))[0]
