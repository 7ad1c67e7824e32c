"""Shows that every way to run a compiled program gives the bits of the reference, the interpreted thunks on one thread:
by the compiled host program, from the bytes of a file, with thunks in other orders that their uses allow, with a
profile, on two threads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

import numpy as np

from ..backends.base import CompileOptions, HostProgramKind
from ..backends.host.executable import HostExecutable
from ..backends.host.loader import deserialize_and_load
from ..codegen.options import EmitOptions
from ..codegen.threads import on_threads
from ..formats.program import Program
from ..migration.compile import compile_program
from ..migration.flags import STACK_NAMES, Flags
from ..profiling.insert import profiled
from ..thunks import from_plan
from ..thunks.legal_order import reordered
from .fake_inputs import fake_inputs

ORDERS = 2
"""Random orders of a program's thunks that run."""


def difference(program: Program) -> str | None:
    """Which way to run a program gives other bits, on either stack; None if none does."""
    inputs = list(program.inputs) if program.inputs is not None else fake_inputs(program.module)
    for stack in STACK_NAMES:
        for ranges in (False, True):
            reason = _difference(program, stack, ranges, inputs)
            if reason is not None:
                return f"{stack}: the results {reason}{' with kernels in ranges' if ranges else ''} differ"
    return None


def _difference(program: Program, stack: str, ranges: bool, inputs: Sequence[np.ndarray]) -> str | None:
    """The way in which the results differ. ranges: kernels that may be split take ranges, which is other code."""

    def compiled(kind: HostProgramKind) -> HostExecutable:
        emit = replace(EmitOptions.host(), ranges=ranges)
        return compile_program(program, Flags.parse(stack), CompileOptions(emit=emit, host_program=kind))

    table, native = compiled(HostProgramKind.INTERPRETED), compiled(HostProgramKind.COMPILED)
    wanted = _results(table, inputs)
    for way, prepare in WAYS.items():
        if not same_bits(_results(prepare(table), inputs), wanted):
            return way
    ways = {"of the compiled host program": native, "of the compiled host program from a file": loaded(native)}
    for way, executable in ways.items():
        if not same_bits(_results(executable, inputs), wanted):
            return way
    for executable in (table, native) if ranges else ():
        if not same_bits(_results(executable, inputs, THREADS), wanted):
            return f"on {THREADS} threads"
    return None


THREADS = 2


def _results(executable: HostExecutable, inputs: Sequence[np.ndarray], count: int = 1) -> list[np.ndarray]:
    with on_threads(count):
        return executable.execute(inputs)


def loaded(executable: HostExecutable) -> HostExecutable:
    """The executable that the bytes of its file hold."""
    return deserialize_and_load(executable.serialize())


def in_order(seed: int) -> Callable[[HostExecutable], HostExecutable]:
    """A function that makes the executable with its thunks in another legal order."""

    def prepare(executable: HostExecutable) -> HostExecutable:
        image = replace(executable.image, thunks=reordered(executable.thunks, Random(seed)))
        return HostExecutable(image, executable.program, executable.code, executable.target, {})

    return prepare


def with_profile(executable: HostExecutable) -> HostExecutable:
    """The executable with a profile thunk around each thunk."""
    ranged = {kernel.symbol for kernel in executable.image.kernels if kernel.split is not None}
    image = replace(executable.image, thunks=from_plan(profiled(executable.plan), ranged=ranged))
    return HostExecutable(image, executable.program, executable.code, executable.target, {})


WAYS: Mapping[str, Callable[[HostExecutable], HostExecutable]] = {
    "from a file": loaded,
    **{f"in another order of thunks ({seed})": in_order(seed) for seed in range(ORDERS)},
    "with a profile": with_profile,
}
"""The end of a sentence → what makes an executable that runs the interpreted thunks in this way."""


def same_bits(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> bool:
    return len(a) == len(b) and all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True)
    )
