"""Drawn cases for rows: a program is drawn for one row, compiled once a stack, and run on several inputs. Its cases
count for every row that it holds, and for each form of the kernels that need the row.

Runs in the process of a Child, so that a crash or a hang ends only that.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ...formats.text.parser import parse_module
from ...hlo.errors import TestbedError
from ...hlo.ir import Module
from ...hlo.verify.verifier import verify
from ...migration.choose import dtypes_of, needs
from ...migration.names import HOST
from ...migration.units import pairs_of
from ..child import Child
from ..execute import ready
from ..filled_inputs import filled_inputs
from ..generate.module import draw_case
from ..generate.source import Seeded
from ..outcome import Outcome, OutcomeKind, Run, RunKind, concluded, outcome
from ..patience import Patience, TooLong, clock
from ..setting import Setting, is_compiled
from ..shared import Shared
from .drawn import CHECKED_EVERY, LIMIT_SECONDS, OPTIMIZED_EVERY, limits_of
from .sized import sized

INPUTS = 5
"""Of a program, each a case."""

PROGRAMS_EACH = 4
"""A row has this many times the programs drawn that it would need if each held it; then its cases are counted."""

SIZED_EVERY = 3
"""Of this many programs, one is the row's op alone, at a size about a limit of a form."""

NOT_DRAWN = frozenset({("dot", "narrow"), ("convolution", "narrow")})
"""Rows whose programs are all so: the generator draws no products of these types."""

KINDS = ("random", "random", "nan")
"""Of inputs of a program of the row's op alone."""

SILENT_SECONDS = 900.0
"""After which a process with a program counts as hung: much longer than the limits in it, as others may work, too."""


@dataclass(frozen=True)
class Batch:
    """What a program gave. rows: that it holds; forms: (row, form of a stack) of its kernels. complaint: '' if all of
    its cases are right.
    """

    seed: int
    cases: int
    rows: frozenset[str]
    forms: frozenset[tuple[str, str]]
    complaint: str = ""


@dataclass(frozen=True)
class Subject:
    """A program with the inputs that it runs on. name: which one, in words."""

    name: str
    module: Module
    inputs: tuple[list[np.ndarray], ...]


def subject(unit: str, dtypes: str, seed: int, stacks: Sequence[str], inputs: int = INPUTS) -> Subject:
    """The program of a seed for a row."""
    if (unit, dtypes) in NOT_DRAWN or seed % SIZED_EVERY == SIZED_EVERY - 1:
        module = parse_module(sized(unit, dtypes, seed), f"{unit}.{dtypes} sized {seed}")
        verify(module)
        made = tuple(filled_inputs(module, KINDS[n % len(KINDS)], seed * inputs + n) for n in range(inputs))
        return Subject(f"sized case {seed}", module, made)
    case = draw_case(Seeded(seed), limits_of(unit, dtypes, stacks))
    return Subject(
        f"drawn case {seed} ({case.blob})",
        case.module,
        (case.inputs, *(case.other_inputs(n) for n in range(1, inputs))),
    )


def rows_of(module: Module) -> frozenset[str]:
    """The rows that a module's instructions need."""
    pairs = {pair for i in module.instructions() for pair in pairs_of(i.opcode, dtypes_of(i))}
    return frozenset(f"{unit}.{dtypes}.{HOST}" for unit, dtypes in pairs)


def setting_of(seed: int, budget: float) -> Setting:
    """How the program of a seed runs: some in the checking mode, some optimised by LLVM."""
    checked = seed % CHECKED_EVERY == CHECKED_EVERY - 1
    return Setting(cache=False, memory=checked, optimized=seed % OPTIMIZED_EVERY == 0, budget=budget)


def run_program(
    unit: str, dtypes: str, seed: int, stacks: tuple[str, str], budget: float, inputs: int = INPUTS
) -> Batch:
    """Make the program of a seed for a row, and judge it on its inputs."""
    case = subject(unit, dtypes, seed, stacks, inputs)
    setting, names = setting_of(seed, budget), ("evaluator", *stacks)
    shared = Shared(case.module, setting, names)
    outcomes = _outcomes(case, names, setting, shared)
    compared = [o for o in outcomes if o.kind is not OutcomeKind.ALL_REFUSE]
    wrong = next((o for o in compared if o.is_finding or o.kind is OutcomeKind.UNDECIDED), None)
    forms = _forms(shared, [name for name in stacks if is_compiled(name)]) if compared else frozenset()
    said = f"{case.name}: {wrong.sentence}" if wrong else ""
    return Batch(seed, len(compared), rows_of(case.module), forms, said)


def _forms(shared: Shared, stacks: Sequence[str]) -> frozenset[tuple[str, str]]:
    kernels = [(request.name, needs(request)) for request in shared.plan.emitted]
    return frozenset(
        (row, f"{stack} {form}")
        for name, rows in kernels
        for row in rows
        for stack in stacks
        for form in shared.forms_of.get((stack, name), ())
    )


def _outcomes(case: Subject, names: Sequence[str], setting: Setting, shared: Shared) -> list[Outcome]:
    """The outcome of each input. Where a stack does not run, that of the first one by itself says why."""
    try:
        with clock() as limited, np.errstate(all="ignore"):
            limited.allow(LIMIT_SECONDS * len(names))
            runs = [ready(case.module, name, setting, shared) for name in names]
            results = [[Run(RunKind.RAN, tuple(run(inputs))) for run in runs] for inputs in case.inputs]
    except (Exception, TooLong):
        return [outcome(case.module, case.inputs[0], names, setting, patience=Patience(LIMIT_SECONDS))]
    found = zip(case.inputs, results, strict=True)
    return [concluded(case.module, x, dict(zip(names, made, strict=True)), setting.budget) for x, made in found]


def judged(
    child: Child,
    unit: str,
    dtypes: str,
    seed: int,
    stacks: tuple[str, str],
    budget: float,
    inputs: int = INPUTS,
) -> Batch:
    """As run_program, in a process. What ends that is a complaint, with the stack to blame."""
    found = child.call(run_program, unit, dtypes, seed, stacks, budget, inputs, limit_s=SILENT_SECONDS)
    if isinstance(found, Batch):
        return found
    case, setting = subject(unit, dtypes, seed, stacks, inputs), setting_of(seed, budget)
    try:
        alone = child.outcome(case.module, case.inputs[0], ("evaluator", *stacks), LIMIT_SECONDS, setting)
        why = alone.sentence if alone.is_finding else f"the process of its cases ended: {found}"
    except TestbedError as error:
        why = str(error)
    return Batch(seed, 1, rows_of(case.module), frozenset(), f"{case.name}: {why}")


def programs_for(
    child: Child,
    unit: str,
    dtypes: str,
    stacks: tuple[str, str],
    budget: float,
    missing: Callable[[], int],
    on_batch: Callable[[Batch], bool],
) -> None:
    """Draw programs for a row until no case is missing, `on_batch` says False, or enough were drawn."""
    most = PROGRAMS_EACH * (missing() // INPUTS + 1)
    for seed in range(most):
        if missing() <= 0 or not on_batch(judged(child, unit, dtypes, seed, stacks, budget)):
            return
