"""Drawn programs that are about a row's opcodes, on the oracle and both stacks; a quarter in the checking mode."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...migration.names import XLA_STACKS
from ...migration.units import CLASSES, UNITS
from ..child import Child
from ..generate.module import draw_case
from ..generate.program import Limits
from ..generate.source import Seeded
from ..generate.values import DRAWN
from ..outcome import OutcomeKind
from ..setting import Setting

CASES = 2000
INSTRUCTIONS, DEPTH = 4, 1
"""Of a program beside what it is drawn for: small ones are quick, and others are `testbed fuzz`'s."""

CHECKED_EVERY, OPTIMIZED_EVERY = 4, 5
"""One case in the first number runs in the checking mode; one in the second is optimised by LLVM."""

LIMIT_SECONDS = 60.0
MOST_FINDINGS = 3
"""Findings after which the rest is not run: the row is refused."""


def limits_of(unit: str, dtypes: str, stacks: Sequence[str]) -> Limits:
    """Programs that have an opcode of the unit at least, on types of the class."""
    types = tuple(d for d in DRAWN if d in CLASSES[dtypes])
    starts = not set(stacks) & set(XLA_STACKS)
    return Limits(instructions=INSTRUCTIONS, depth=DEPTH, dtypes=types, focus=UNITS[unit], starts=starts)


def drawn_cases(
    unit: str,
    dtypes: str,
    stacks: Sequence[str],
    count: int = CASES,
    budget: float = 20.0,
    on_case: Callable[[], None] = lambda: None,
    begin: Callable[[], object] | None = None,
) -> list[str]:
    """What `count` drawn cases find. The seeds are 0 to count - 1. begin: as of Child, in the process of the cases."""
    limits, ours = limits_of(unit, dtypes, stacks), not set(stacks) & set(XLA_STACKS)
    found: list[str] = []
    with Child(begin) as child:
        for seed in range(count):
            case = draw_case(Seeded(seed), limits)
            setting = Setting(
                cache=False,
                memory=ours and seed % CHECKED_EVERY == CHECKED_EVERY - 1,
                optimized=seed % OPTIMIZED_EVERY == 0,
                budget=budget,
            )
            outcome = child.outcome(case.module, case.inputs, ("evaluator", *stacks), LIMIT_SECONDS, setting)
            if outcome.is_finding or outcome.kind is OutcomeKind.UNDECIDED:
                found.append(f"drawn case {seed} ({case.blob}): {outcome.sentence}")
            if len(found) >= MOST_FINDINGS:
                break
            on_case()
    return found
