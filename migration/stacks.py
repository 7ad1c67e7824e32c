"""The implementations that a program can run on, by name: evaluator, optimized (the evaluator after all passes), the
two stacks, and XLA:CPU.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..evaluator.evaluator import evaluate
from ..formats.program import Program
from ..hlo.errors import InputError
from .flags import OTHERS, STACK_NAMES, XLA_STACKS
from .names import DEVICES
from .prepared import Prepared as Prepared

if TYPE_CHECKING:
    from .compile import Plans

Prepare = Callable[[Program, str | None, bool, str, "Plans | None"], Prepared]
"""A program, flags that replace the stack's own, whether kernels are guarded, how they are called, plans: as in
`prepare`.
"""


@dataclass(frozen=True)
class Run:
    """Results of a stack on a program, and times in seconds. run_seconds: of a run, once caches are warm."""

    results: list[np.ndarray]
    compile_seconds: float
    run_seconds: float
    kernels: tuple[tuple[str, str], ...] = field(default=())


def _prepare_evaluator(
    program: Program, emitters: str | None, red_zones: bool, host_program: str, plans: Plans | None
) -> Prepared:
    return Prepared(lambda inputs: evaluate(program.module, inputs))


def _prepare_optimized(
    program: Program, emitters: str | None, red_zones: bool, host_program: str, plans: Plans | None
) -> Prepared:
    """Run passes and schedule, but generate no code: the evaluator runs the optimised module."""
    from ..hlo.verify.verifier import verify
    from ..passes.pipeline import optimize
    from ..planning.schedule import schedule

    start = time.perf_counter()
    verify(program.module)
    module = schedule(optimize(program.module))
    verify(module)
    return Prepared(lambda inputs: evaluate(module, inputs), time.perf_counter() - start)


def _prepare_compiled(stack: str) -> Prepare:
    def prepare(
        program: Program, emitters: str | None, red_zones: bool, host_program: str, plans: Plans | None
    ) -> Prepared:
        from ..backends.base import CompileOptions
        from . import Flags
        from .compile import Plans, compile_program

        plans = plans or Plans()
        start, spared = time.perf_counter(), plans.spared
        options = CompileOptions(red_zones=red_zones, host_program=host_program)
        executable = compile_program(program, Flags.parse(emitters or stack), options, plans)
        seconds = time.perf_counter() - start + plans.spared - spared
        executable.close_infeed()  # nobody else could fill it
        return Prepared(executable.execute, seconds, tuple(executable.kernels), executable)

    return prepare


def _prepare_xla(
    program: Program, emitters: str | None, red_zones: bool, host_program: str, plans: Plans | None
) -> Prepared:
    """In a child process, since XLA ends its process at some modules. emitters: XLA's flags."""
    from ..backends.xla import IsolatedXla, parse_xla_flags

    executable = IsolatedXla(program.text_for_xla, parse_xla_flags(emitters))
    return Prepared(executable.execute, executable.seconds, timer=lambda: executable.run_seconds)


def _prepare_on(stack: str, name: str) -> Prepare:
    def prepare(
        program: Program, emitters: str | None, red_zones: bool, host_program: str, plans: Plans | None
    ) -> Prepared:
        from .platforms import parse_platform, prepare_on_platform

        return prepare_on_platform(parse_platform(name), program, emitters or stack, host_program)

    return prepare


LONG = 1.0
"""Seconds from which a run is not repeated for its time."""

LEAST_RUNS, MOST_RUNS, SECONDS = 3, 101, 0.6
"""Runs whose median is a time: as many as fit into a third of SECONDS, within these limits; none if LEAST_RUNS take
longer than SECONDS.
"""

STACKS: dict[str, Prepare] = {
    "evaluator": _prepare_evaluator,
    "optimized": _prepare_optimized,
    **{name: _prepare_compiled(name) for name in (*STACK_NAMES, *OTHERS, *XLA_STACKS)},
    "xla": _prepare_xla,
    **{f"{stack}@{name}": _prepare_on(stack, name) for name in DEVICES for stack in STACK_NAMES},
}


def parse_stacks(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Parse a comma-separated list of stack names. Raises InputError for an unknown or repeated name."""
    names = tuple(n.strip() for n in text.split(",") if n.strip())
    for name in names:
        if name not in known:
            raise InputError(f"unknown stack {name!r}", remedy=f"choose from {', '.join(known)}")
    if not names or len(set(names)) != len(names):
        raise InputError(
            f"{text!r} names {'no stack' if not names else 'a stack twice'}", remedy=f"choose from {', '.join(known)}"
        )
    return names


def prepare(
    stack: str,
    program: Program,
    emitters: str | None = None,
    red_zones: bool = False,
    host_program: str = "auto",
    plans: Plans | None = None,
) -> Prepared:
    """Compile a program for a stack. emitters: flags that replace the stack's own (of the stack xla: XLA's flags).
    red_zones: guard its kernels. host_program: how they are called, as in CompileOptions. plans: those of other stacks;
    the seconds are as if each stack planned by itself.
    """
    return STACKS[stack](program, emitters, red_zones, host_program, plans)


def run(
    stack: str,
    program: Program,
    inputs: Sequence[np.ndarray],
    emitters: str | None = None,
    red_zones: bool = False,
) -> Run:
    """Compile and run a program."""
    return run_prepared(prepare(stack, program, emitters, red_zones), inputs)


def run_prepared(prepared: Prepared, inputs: Sequence[np.ndarray]) -> Run:
    """Run what is compiled. Runs are repeated for their time, because the first one includes cold caches."""
    results, first = _timed(prepared, inputs)
    return Run(results, prepared.seconds, _warm_seconds(prepared, inputs, first), prepared.kernels)


def _warm_seconds(prepared: Prepared, inputs: Sequence[np.ndarray], first: float) -> float:
    """The median of further runs; that of the first one, if it took long."""
    if first >= LONG:
        return first
    warm = _timed(prepared, inputs)[1]
    if prepared.kernels and warm < LONG:  # the second run of compiled code compiles the entry of all further ones
        warm = _timed(prepared, inputs)[1]
    if warm * LEAST_RUNS > SECONDS:
        return warm
    count = min(MOST_RUNS, max(LEAST_RUNS, int(SECONDS / 3 / max(warm, 1e-9))))
    return statistics.median(_timed(prepared, inputs)[1] for _ in range(count))


def _timed(prepared: Prepared, inputs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], float]:
    start = time.perf_counter()
    results = prepared.run(inputs)
    return results, prepared.timer() if prepared.timer else time.perf_counter() - start
