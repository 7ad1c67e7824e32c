"""Shows that every way to run a compiled program gives the bits of the reference, the interpreted thunks: read back from
the bytes of its file, and with its thunks in other orders that their declared uses allow.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from ..backends.base import CompileOptions
from ..backends.host.executable import HostExecutable
from ..backends.host.loader import deserialize_and_load
from ..formats.program import Program
from ..migration.compile import compile_program
from ..migration.flags import STACK_NAMES, Flags
from ..thunks.legal_order import reordered
from .fake_inputs import fake_inputs

ORDERS = 2
"""Random orders of a program's thunks that run."""


def difference(program: Program) -> str | None:
    """Which way to run a program gives other bits, on either stack; None if none does."""
    inputs = list(program.inputs) if program.inputs is not None else fake_inputs(program.module)
    for stack in STACK_NAMES:
        executable = compile_program(program, Flags.parse(stack), CompileOptions())
        wanted = executable.execute(inputs)
        for way, prepare in WAYS.items():
            if not same_bits(prepare(executable).execute(inputs), wanted):
                return f"{stack}: the results {way} differ"
    return None


def in_order(seed: int) -> Callable[[HostExecutable], HostExecutable]:
    """A function that makes the executable with its thunks in another legal order."""

    def prepare(executable: HostExecutable) -> HostExecutable:
        image = replace(executable.image, thunks=reordered(executable.thunks, Random(seed)))
        return HostExecutable(image, executable.program, executable.code, executable.target, {})

    return prepare


WAYS: Mapping[str, Callable[[HostExecutable], HostExecutable]] = {
    "from a file": lambda executable: deserialize_and_load(executable.serialize()),
    **{f"in another order of thunks ({seed})": in_order(seed) for seed in range(ORDERS)},
}
"""The end of a sentence → what makes an executable that runs in this way."""


def same_bits(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> bool:
    return len(a) == len(b) and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True)
    )
