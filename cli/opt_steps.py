"""One pass of `testbed opt`: running it under fuel, verifying and evaluating what it made, and the table of all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from . import output
from .inputs import Inputs

if TYPE_CHECKING:
    from ..differential.preserving import Meaning
    from ..formats.program import Program
    from ..hlo.ir import Module
    from ..passes.fuel import Fuel
    from ..passes.pipeline import Pass

MOST_LINES = 12
"""Lines of difference to print for the rewrite that changed a result."""


@dataclass(frozen=True, slots=True)
class PassEffect:
    """The effect of one pass. before, after: numbers of instructions. rewrites: the fuel that it used."""

    name: str
    seconds: float
    before: int
    after: int
    rewrites: int


def run_pass(step: Pass, module: Module, fuel: Fuel) -> tuple[Module, PassEffect]:
    """Run a pass under fuel. A pass that does not count its rewrites counts as one rewrite if it changes the module."""
    from ..passes.pipeline import count_instructions

    start, spent = time.perf_counter(), fuel.spent
    done = module
    if fuel.limit is None or fuel.spent < fuel.limit:
        done = step.run(module)
        if done is not module and fuel.spent == spent:
            fuel.spent += 1
    seconds = time.perf_counter() - start
    return done, PassEffect(
        step.name, seconds, count_instructions(module), count_instructions(done), fuel.spent - spent
    )


def verify_after(module: Module, name: str) -> None:
    """Raises VerificationError that names the pass if its module breaks a rule."""
    from ..hlo.errors import VerificationError
    from ..hlo.verify.verifier import verify

    try:
        verify(module)
    except VerificationError as error:
        raise VerificationError(
            f"after {name}: {error.message}", location=error.location, remedy=error.remedy
        ) from None


def meaning_of(program: Program, inputs: Inputs, patience: float) -> Meaning:
    """The results that passes must keep. patience: seconds to find out what else the float rules permit."""
    from ..differential.preserving import Meaning

    return Meaning.of(program.module, inputs.values(program, expected=False).inputs, patience)


def change_of(
    meaning: Meaning, step: Pass, before: Module, after: Module, rows: Sequence[PassEffect]
) -> list[str] | None:
    """None if the results are unchanged; else lines that name the pass, the rewrite and how to reproduce it."""
    from ..differential.preserving import find_rewrite

    change = meaning.change(after)
    if change is None:
        return None
    last = rows[-1]
    found = find_rewrite(meaning, step.run, before, last.rewrites)
    number = sum(r.rewrites for r in rows[:-1]) + found.number
    again = f"--passes {','.join(r.name for r in rows)} --pass-limit {number}, and {number - 1}"
    more = len(found.difference) - MOST_LINES
    return [
        f"{step.name} changes the results: {change}",
        f"its rewrite {found.number} of {last.rewrites} does; to see it: {again}",
        *found.difference[:MOST_LINES],
        *([f"… and {more} lines more"] if more > 0 else []),
    ]


def table(rows: Sequence[PassEffect], fuel: Fuel) -> str:
    """The effects of the passes and their sum, as text."""
    from ..benchmarks.tables import left, right

    before, after = (rows[0].before, rows[-1].after) if rows else (0, 0)
    total = PassEffect("total", sum(r.seconds for r in rows), before, after, fuel.spent)
    cells = [(r.name, f"{r.seconds * 1e3:.2f}", str(r.before), str(r.after), str(r.rewrites)) for r in (*rows, total)]
    columns = [left("pass"), right("ms"), right("before"), right("after"), right("rewrites")]
    return output.table(columns, cells)
