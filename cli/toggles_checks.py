"""Checks of a row's gate beyond its fixed cases and its race: a row of a table each (docs/migrating.md)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ..hlo.errors import InputError
from ..migration.names import XLA_STACKS

if TYPE_CHECKING:
    from ..hlo.ir import Module
    from ..migration.ledger import Row

DRAWN = 2000


@dataclass(frozen=True)
class Orders:
    """drawn: how many drawn cases; patience: seconds of one to find out what the float rules permit."""

    drawn: int = DRAWN
    patience: float = 20.0


Run = Callable[["Row", tuple[str, str], Orders], list[str]]
"""A row, its stacks, orders → a phrase for each reason to refuse the row."""


@dataclass(frozen=True)
class Check:
    """xla: whether stacks of XLA's can be asked, which have no compile time, no checking mode and one processor."""

    name: str
    run: Run
    xla: bool = False


def _drawn(row: Row, stacks: tuple[str, str], orders: Orders) -> list[str]:
    from ..differential.gate.drawn import drawn_cases

    return drawn_cases(row.unit, row.dtypes, stacks, orders.drawn, orders.patience)


def _modules(row: Row, make: Callable[[str, str, int], str], sizes: Sequence[int]) -> dict[int, Module]:
    from ..formats.text.parser import parse_module

    return {n: parse_module(make(row.unit, row.dtypes, n), f"{row.name} of size {n}") for n in sizes}


def _scaling(row: Row, stacks: tuple[str, str], _: Orders) -> list[str]:
    from ..benchmarks.gate.growth import steeper_than_cost
    from ..differential.filled_inputs import filled_inputs
    from ..differential.gate.scales import FACTORS, scaled

    modules = _modules(row, scaled, FACTORS)
    return steeper_than_cost(modules, stacks[1], lambda module: filled_inputs(module, "random", 1))


def _aliasing(row: Row, stacks: tuple[str, str], _: Orders) -> list[str]:
    from ..differential.gate.aliasing import aliased_cases

    return aliased_cases(row.unit, row.dtypes, stacks)


def _rank(row: Row, stacks: tuple[str, str], _: Orders) -> list[str]:
    from ..benchmarks.gate.growth import compiles_by_rank
    from ..differential.gate.scales import RANKS, ranked

    return compiles_by_rank(_modules(row, ranked, RANKS), stacks[1])


def _length(row: Row, stacks: tuple[str, str], _: Orders) -> list[str]:
    from ..benchmarks.gate.growth import compiles_by_length
    from ..differential.gate.scales import LENGTHS, lengthened

    return compiles_by_length(_modules(row, lengthened, LENGTHS), stacks[1])


def _accuracy(row: Row, stacks: tuple[str, str], _: Orders) -> list[str]:
    from ..differential.gate.accuracy import less_accurate_cases

    return less_accurate_cases(row.unit, row.dtypes, stacks)


def _processor(level: str, row: Row, stacks: tuple[str, str], orders: Orders) -> list[str]:
    from ..differential.gate.processors import cases_on

    return cases_on(level, row.unit, row.dtypes, stacks, budget=orders.patience)


CHECKS: dict[str, Check] = {
    check.name: check
    for check in (
        Check("drawn", _drawn, xla=True),
        Check("scaling", _scaling),
        Check("aliasing", _aliasing),
        Check("rank", _rank),
        Check("length", _length),
        Check("accuracy", _accuracy, xla=True),
        Check("x86-64-v3", partial(_processor, "x86-64-v3")),
        Check("x86-64-v4", partial(_processor, "x86-64-v4")),
    )
}


def named_checks(text: str) -> list[Check]:
    """The checks of names with commas between them, `all` or `none`. Raises InputError for others."""
    if text in ("all", "none"):
        return list(CHECKS.values()) if text == "all" else []
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in CHECKS]
    if unknown or not names:
        raise InputError(f"no check {', '.join(unknown)!r}", remedy=f"all, none, or of {', '.join(CHECKS)}")
    return [CHECKS[name] for name in names]


def run_checks(
    checks: Sequence[Check], row: Row, stacks: tuple[str, str], orders: Orders
) -> tuple[list[str], list[str]]:
    """(What ran, in words; a phrase for each reason to refuse the row)."""
    from ..differential.gate.processors import LEVELS, runnable

    ran, found = [], []
    for check in checks:
        if set(stacks) & set(XLA_STACKS) and not check.xla:
            continue
        if check.name in LEVELS and not runnable(check.name):
            continue
        said = check.run(row, stacks, orders)
        ran.append(f"{check.name} {orders.drawn}" if check.name == "drawn" else check.name)
        if said:
            more = f" ({len(said)} of these)" if len(said) > 1 else ""
            found.append(f"{check.name}: {said[0]}{more}")
    return ran, found
