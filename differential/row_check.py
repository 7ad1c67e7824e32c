"""The differential half of a row's gate: its programs, and modules of suites that hold it, on evaluator and stacks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ..backends.host.executable import HostExecutable
from ..evaluator.evaluator import evaluate
from ..formats.text.parser import parse_module
from ..hlo.dtypes import FROM_NUMPY
from ..hlo.errors import UnsupportedError
from ..hlo.ir import Module
from ..migration import Flags, compile_module
from ..migration.choose import dtypes_of
from ..migration.ledger_states import USUAL
from ..migration.names import XLA_STACKS
from ..migration.parity import Compared
from ..migration.units import pairs_of
from .bounds import Bound, bounds_of
from .comparison import compare_within, disagreeing
from .corpus import load_case, read_suite
from .filled_inputs import filled_inputs
from .permitted import BUDGET, Permitted
from .row_programs import cases_of
from .same_code import same_code

KINDS = ("random", "random", "random", "random", "nan")
"""Inputs of one case after the other."""

Program = tuple[str, Module, list[np.ndarray]]
"""Name, module, inputs."""


def check_row(
    unit: str,
    dtypes: str,
    count: int,
    suites: Sequence[Path] = (),
    on_case: Callable[[], None] = lambda: None,
    stacks: tuple[str, str] = USUAL,
    budget: float = BUDGET,
) -> Compared:
    """Compare evaluator, old and new emitters on `count` programs of a row and on the modules of suites that hold it.

    on_case: called after each. The seeds are 0 to count - 1. A program whose machine code is the same on both stacks
    is not run. budget: seconds of a program to find out what else the float rules permit.
    """
    ran, refused, same, worst = 0, 0, 0, 0.0
    wrong: list[str] = []
    undecided: list[str] = []
    for name, module, inputs in (*_own(unit, dtypes, count), *_of_suites(unit, dtypes, suites)):
        try:
            alike = same_code(module, stacks)
            complaints, open_, ulp = ([], [], 0.0) if alike else compare_stacks(module, inputs, stacks, budget)
        except UnsupportedError:
            refused += 1
            continue
        ran, same, worst = ran + 1, same + alike, max(worst, ulp)
        wrong += [f"{name}: {complaint}" for complaint in complaints[:1]]
        undecided += [f"{name}: {complaint}" for complaint in open_[:1]]
        on_case()
    return Compared(ran, f"0-{count - 1}", worst, tuple(wrong), refused, same, tuple(undecided))


def _own(unit: str, dtypes: str, count: int) -> Iterator[Program]:
    for number, text in enumerate(cases_of(unit, dtypes, count)):
        module = parse_module(text, f"{unit}.{dtypes} case {number}")
        yield f"case {number}", module, filled_inputs(module, KINDS[number % len(KINDS)], number)


def _of_suites(unit: str, dtypes: str, suites: Sequence[Path]) -> Iterator[Program]:
    for suite in suites:
        for case in read_suite(suite):
            program = load_case(case)
            if program.inputs is not None and holds(program.module, unit, dtypes):
                yield case.id, program.module, list(program.inputs)


def holds(module: Module, unit: str, dtypes: str) -> bool:
    """Whether an instruction of a module needs the row of a unit and class."""
    instructions = (i for computation in module.computations for i in computation.instructions)
    return any((unit, dtypes) in pairs_of(i.opcode, dtypes_of(i)) for i in instructions)


def compare_stacks(
    module: Module, inputs: Sequence[np.ndarray], stacks: tuple[str, str] = USUAL, budget: float = BUDGET
) -> tuple[list[str], list[str], float]:
    """(a sentence for each leaf in which a stack is wrong, one for each where it may be, the largest finite difference
    between the stacks in ulp).

    Raises UnsupportedError if both stacks refuse the module. If one does, that is a sentence.
    """
    results, refusals = {}, {}
    for stack in stacks:
        try:
            results[stack] = _executable(module, stack).execute(inputs)
        except UnsupportedError as error:
            refusals[stack] = error
    if not results:
        raise refusals[stacks[-1]]
    complaints = [f"{stack} refuses it: {error.what}" for stack, error in refusals.items()]
    bounds = bounds_of(module)
    with np.errstate(all="ignore"):
        expected = evaluate(module, inputs)
        permitted, undecided = Permitted(module, inputs, budget=budget), list[str]()
        for stack, leaves in results.items():
            for answer, complaint in _differences(stack, leaves, expected, bounds, permitted):
                (undecided if answer is None else complaints).append(complaint)
        return complaints, undecided, 0.0 if refusals else _apart(results[stacks[1]], results[stacks[0]], bounds)


def _executable(module: Module, stack: str) -> HostExecutable:
    """The module, compiled. Raises UnsupportedError, for a stack of XLA's too if XLA made no kernel of the module."""
    made = compile_module(module, Flags.parse(stack))
    if stack in XLA_STACKS and all(emitter != stack for _, emitter in made.kernels):
        raise UnsupportedError(stack, module.entry.root.opcode.value, remedy="XLA gives it to a library")
    return made


def _differences(
    stack: str,
    actual: Sequence[np.ndarray],
    expected: Sequence[np.ndarray],
    bounds: Sequence[Bound],
    permitted: Permitted,
) -> Iterator[tuple[bool | None, str]]:
    """Of each leaf in which a stack differs from the oracle beyond what is permitted: (False, why), (None, why if that
    is undecided).
    """
    for leaf, (a, e, bound) in enumerate(zip(actual, expected, bounds, strict=True)):
        found = compare_within(a, e, FROM_NUMPY[e.dtype], bound)
        if found.agrees:
            continue
        answer = permitted.permits(leaf, [a], bound, disagreeing(a, e, FROM_NUMPY[e.dtype], bound))
        if not answer:
            why = f"; {permitted.skipped}" if answer is None else ""
            yield answer, f"{stack} is {found.max_ulp:.3g} ulp off in result {leaf} ({found.message}){why}"


def _apart(new: Sequence[np.ndarray], old: Sequence[np.ndarray], bounds: Sequence[Bound]) -> float:
    """The largest finite distance between two results, in steps between neighbouring values."""
    found = [
        compare_within(a, b, FROM_NUMPY[b.dtype], bound).max_ulp for a, b, bound in zip(new, old, bounds, strict=True)
    ]
    return max((d for d in found if math.isfinite(d)), default=0.0)
