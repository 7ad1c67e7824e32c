"""A row's own cases on code for other processors than this one: levels of the x86-64 psABI."""

from __future__ import annotations

from ...codegen.options import Target, assume_host, assumed_host
from ..permitted import BUDGET
from ..row_check import check_row

LEVELS = ("x86-64-v3", "x86-64-v4")
CASES = 20


def runnable(level: str) -> bool:
    """Whether this machine runs code for a level."""
    return level in Target.levels()


def cases_on(
    level: str, unit: str, dtypes: str, stacks: tuple[str, str], count: int = CASES, budget: float = BUDGET
) -> list[str]:
    """What is wrong with a row's cases on code for a level. Nothing, if this machine does not run it."""
    if not runnable(level):
        return []
    before = assumed_host()
    assume_host(level)
    try:
        compared = check_row(unit, dtypes, count, stacks=stacks, budget=budget)
    finally:
        assume_host(before)
    return [f"{level}: {complaint}" for complaint in (*compared.wrong, *compared.undecided)]
