"""Runs a program of the suite on a stack of ours or on a version of jaxlib, and says which faults it shows.

Limits of growth lie half a power from what is right: a linear cost that became quadratic, or one that began to grow, is
a whole power off, and a busy machine is not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from ...backends.base import CompileOptions
from ...backends.xla.versions import XlaVersion, run_with
from ...codegen.threads import on_threads
from ...evaluator.evaluator import evaluate
from ...hlo.dtypes import FROM_NUMPY
from ...hlo.errors import TestbedError
from ...hlo.ir import Module
from ...migration.compile import compile_module
from ...migration.flags import Flags
from ..bounds import bounds_of
from ..comparison import compare_within, disagreeing
from ..permitted import Permitted
from .suite import Look, Replayed

ROUNDS = 5
"""Runs of a timed program; the fastest counts."""

LIMIT_SECONDS = 120.0
"""For a version of jaxlib to compile a program and run it."""

COMPILE_TIMES = 8.0
"""Compiling a larger program may take this many times as long for each doubling of its size."""

COMPILE_FLOOR_SECONDS, COMPILE_FLOOR_BYTES = 1.0, 256 << 20
"""Seconds and bytes of compiling below which growth is no fault."""

SLOWER = 2.5
"""How many times as long a run takes that is a fault against another version."""


@dataclass(frozen=True)
class Cost:
    """Seconds of a run, seconds and bytes of compiling."""

    run: float
    compile: float
    bytes: int = 0


@dataclass
class Measured:
    """A program of the suite on one stack or version. wrong: a sentence for each size whose results are; refused: why
    something did not compile or run; costs: of the timed sizes.
    """

    wrong: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)


Run = Callable[[Module, Sequence[np.ndarray], int], tuple[Sequence[np.ndarray], Cost]]
"""A module, inputs and how often to run it → results and costs. Raises TestbedError."""


def on_stack(stack: str) -> Run:
    """A stack of ours, in this process, on one thread."""

    def run(module: Module, inputs: Sequence[np.ndarray], rounds: int) -> tuple[Sequence[np.ndarray], Cost]:
        with on_threads(1):
            start = time.process_time()
            made = compile_module(module, Flags.parse(stack), CompileOptions(cache=None, threads=1))
            compiling = time.process_time() - start
            fastest = math.inf
            for _ in range(rounds):
                given = [x.copy() for x in inputs]
                start = time.process_time()
                results = made.execute(given)
                fastest = min(fastest, time.process_time() - start)
        return results, Cost(fastest, compiling)

    return run


def on_version(version: XlaVersion, flags: tuple[str, ...] = ()) -> Run:
    """A version of jaxlib as its users have it, but on one processor."""

    def run(module: Module, inputs: Sequence[np.ndarray], rounds: int) -> tuple[Sequence[np.ndarray], Cost]:
        ran = run_with(version, module, inputs, rounds, flags, LIMIT_SECONDS)
        return ran.results, Cost(ran.seconds, ran.compile_seconds, ran.compile_bytes)

    return run


def measure(program: Replayed, run: Run) -> Measured:
    """Compare the results of a program's sizes with the evaluator's, and time the two that are timed."""
    found = Measured()
    for size in program.values:
        module = program.module(size)
        inputs = program.inputs(module)
        try:
            results, _ = run(module, inputs, 1)
        except TestbedError as error:
            found.refused.append(f"size {size}: {error.message}")
            continue
        found.wrong += [f"size {size}: {why}" for why in differences(module, inputs, results)]
    if program.timed is not None and not found.refused:
        try:
            found.costs = [_cost(program, size, run) for size in program.timed]
        except TestbedError as error:
            found.refused.append(error.message)
    return found


def _cost(program: Replayed, size: int, run: Run) -> Cost:
    module = program.module(size, timed=True)
    return run(module, program.inputs(module), ROUNDS)[1]


def differences(module: Module, inputs: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> Iterator[str]:
    """A sentence for each result leaf that is neither within the module's bound nor permitted."""
    with np.errstate(all="ignore"):
        expected, permitted = evaluate(module, inputs), Permitted(module, inputs)
        for leaf, (a, e, bound) in enumerate(zip(results, expected, bounds_of(module), strict=True)):
            dtype = FROM_NUMPY[e.dtype]
            found = compare_within(a, e, dtype, bound)
            if found.agrees or permitted.permits(leaf, [a], bound, disagreeing(a, e, dtype, bound)):
                continue
            at = found.first_bad_index
            yield f"result {leaf} has {found.failures} wrong elements" + (
                f", first {a[at]:g} for {e[at]:g}" if at is not None and a.dtype.kind == "f" else ""
            )


def faults(program: Replayed, found: Measured) -> list[str]:
    """What is wrong with a program by itself: a phrase each."""
    if found.refused:
        return [f"refused: {found.refused[0]}"]
    said = [f"wrong: {found.wrong[0]}"] if found.wrong else []
    if not found.costs or program.timed is None:
        return said
    first, last = found.costs
    times = program.timed[1] / program.timed[0]
    if program.look is not Look.COMPILE:
        grown = last.run / first.run
        if grown > program.work * math.sqrt(times):
            said.append(
                f"cost: {grown:.1f} times as long at {times:g} times the size, for {program.work:g} times the work"
            )
        return said
    allowed = COMPILE_TIMES ** math.log2(times)
    if last.compile > max(COMPILE_FLOOR_SECONDS, allowed * first.compile):
        said.append(f"compiling: {first.compile:.2f} s, and {last.compile:.2f} s at {times:g} times the size")
    if last.bytes > max(COMPILE_FLOOR_BYTES, allowed * first.bytes):
        said.append(f"compiling: {last.bytes >> 20} MiB at {times:g} times the size")
    return said


def slower(program: Replayed, old: Measured, new: Measured) -> str:
    """The phrase for a program that takes much longer than on another version; '' if it does not."""
    if not (old.costs and new.costs) or program.look is Look.COMPILE:
        return ""
    times = new.costs[-1].run / old.costs[-1].run
    return f"speed: {times:.1f} times as long" if times > SLOWER else ""
