"""Each distinct kernel of programs on two or more stacks, timed as a program of its own: where stacks lack parity."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..formats.program import Program
from ..hlo.errors import TestbedError
from .contestants import contestant
from .paired import Ratio, race, ratio

CLOSE, FAR = 1.25, 2.0
"""Ratios up to which kernels are at parity, and above which each needs a reason."""


@dataclass(frozen=True)
class KernelRatio:
    """programs: that have the kernel. seconds: of a run on the first stack, the median. ratios: run time on each other
    stack to that on the first. refused: why it was not timed; '' if it was.
    """

    name: str
    programs: tuple[str, ...]
    seconds: float
    ratios: tuple[Ratio, ...] = ()
    refused: str = ""


@dataclass(frozen=True)
class LoneKernel:
    """A kernel as a program, with inputs, and the programs that have it."""

    name: str
    programs: tuple[str, ...]
    program: Program
    inputs: Sequence[np.ndarray]


def kernel_ratios(
    kernels: Iterable[LoneKernel], stacks: Sequence[str], least: float, rounds: int, seconds: float
) -> Iterator[KernelRatio]:
    """Time the kernels. Those that take less than `least` seconds on the first stack have no ratios."""
    for kernel in kernels:
        name, programs = kernel.name, kernel.programs
        try:
            runs = {stack: contestant(stack, kernel.program, kernel.inputs).run for stack in stacks}
        except TestbedError as error:
            yield KernelRatio(name, programs, 0.0, refused=str(error))
            continue
        first = race({stacks[0]: runs[stacks[0]]}, rounds=3, seconds=seconds)[stacks[0]].median
        if first < least:
            yield KernelRatio(name, programs, first)
            continue
        times = race(runs, rounds=rounds, seconds=seconds)
        found = tuple(ratio(times[stack], times[stacks[0]]) for stack in stacks[1:])
        yield KernelRatio(name, programs, times[stacks[0]].median, found)


@dataclass(frozen=True)
class Parity:
    """Of the timed kernels: how many; the geometric mean of a stack's ratios; the share of CLOSE ones; how many are
    FAR.
    """

    kernels: int
    mean: float
    close: float
    far: int


def parity(ratios: Sequence[Ratio]) -> Parity:
    """What the ratios of one stack say together. There is at least one."""
    values = [r.median for r in ratios]
    close, far = sum(v <= CLOSE for v in values), sum(v > FAR for v in values)
    return Parity(len(values), statistics.geometric_mean(values), close / len(values), far)
