"""`testbed opt MODULE`: runs HLO passes and prints the module; a table on stderr shows the effect of each pass."""

from __future__ import annotations

import fnmatch
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

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
    """The effect of one pass. rewrites: the fuel that it used."""

    name: str
    seconds: float
    before: int
    after: int
    rewrites: int


def _list(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value:
        return
    from ..passes.pipeline import OPTIMIZE, PASSES

    width = max(map(len, PASSES))
    for step in PASSES.values():
        needs = f"; requires {', '.join(sorted(step.requires))}" if step.requires else ""
        makes = f"; guarantees {', '.join(sorted(step.guarantees))}" if step.guarantees else ""
        alone = "" if step.name in OPTIMIZE else "; by name only"
        document = " ".join((step.run.__doc__ or "").strip().split("\n\n")[0].split()).rstrip(".")
        click.echo(f"{step.name:<{width}}  {document}{needs}{makes}{alone}")
    context.exit(0)


def _list_rules(context: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value:
        return
    from ..passes.algebra.sweep import ALL_RULES

    width = max(len(r.name) for r in ALL_RULES)
    for r in ALL_RULES:
        differs = f" (inexact, {r.ulp:g} ulp: {r.inexact})" if r.inexact else ""
        click.echo(f"{r.name:<{width}}  {r.pattern}{differs}")
    context.exit(0)


@click.command()
@click.argument("module")
@click.option(
    "--passes", metavar="A,B,…", help="Passes to run, in order; '' for none. [default: the pipeline of a plan]"
)
@click.option(
    "--print-after",
    multiple=True,
    metavar="PASS",
    help="Also print the module after this pass; a glob such as 'fuse*' selects several. Repeatable.",
)
@click.option("--verify-each", is_flag=True, help="Verify the module after each pass.")
@click.option(
    "--evaluate-each",
    is_flag=True,
    help="Evaluate the module after each pass. Report the first pass, and its first rewrite, that changes a result.",
)
@click.option("--inputs", metavar="IO.NPZ", help="Inputs of --evaluate-each. [default: the module's own, or seed 0]")
@click.option("--seed", type=int, metavar="N", help="Make the inputs of --evaluate-each from a seed instead.")
@click.option(
    "--pass-limit", type=click.IntRange(0), metavar="N", help="Apply only the first N rewrites, for bisection."
)
@click.option(
    "-o", "--output", metavar="OUT.HLO", help="Write the module to a file instead of printing it (-: print it)."
)
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=_list, help="List the passes and exit."
)
@click.option(
    "--list-rules",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_rules,
    help="List the rules of the algebra pass, mark those that change roundings, and exit.",
)
def command(
    module: str,
    passes: str | None,
    print_after: tuple[str, ...],
    verify_each: bool,
    evaluate_each: bool,
    inputs: str | None,
    seed: int | None,
    pass_limit: int | None,
    output: str | None,
) -> int:
    """Print MODULE's HLO after passes. The passes that a pass requires run before it.

    Exit 1 if a pass changes a result; 2 if a pass is unknown, or the module does not verify after a pass.
    """
    from ..formats.program import load_program
    from ..formats.text.printer import print_module
    from ..formats.whole_files import write_text
    from ..passes.fuel import Fuel, limited
    from ..passes.pipeline import complete, default_passes, select

    _check_inputs(evaluate_each, inputs, seed)
    named = None if passes is None else select(_names(passes))
    program = load_program(module)
    chosen = complete(named if named is not None else select(default_passes(program.module)))
    printed = _printed(print_after, [step.name for step in chosen])
    meaning = _meaning(program, inputs, seed) if evaluate_each else None
    fuel = Fuel(pass_limit)
    rows: list[PassEffect] = []
    now = program.module
    for number, step in enumerate(chosen, 1):
        before = now
        with limited(fuel):
            now, row = _run(step, now, fuel)
        rows.append(row)
        if verify_each:
            _verify(now, step.name)
        if meaning is not None and not _keeps(meaning, step, before, now, rows):
            return 1
        if step.name in printed:
            click.echo(f"// after {step.name}, pass {number} of {len(chosen)}\n{print_module(now)}")
    if output is None or output == "-":
        click.echo(print_module(now), nl=False)
    else:
        write_text(Path(output), print_module(now))
    click.echo(_table(rows, fuel), err=True)
    return 0


def _check_inputs(evaluate_each: bool, inputs: str | None, seed: int | None) -> None:
    if inputs is not None and seed is not None:
        raise click.UsageError("--inputs and --seed exclude each other")
    if not evaluate_each and (inputs is not None or seed is not None):
        raise click.UsageError(f"{'--seed' if inputs is None else '--inputs'} is for --evaluate-each: add that")


def _printed(patterns: Sequence[str], names: Sequence[str]) -> set[str]:
    """The passes among `names` that match a pattern. Raises UsageError for a pattern that matches none."""
    from ..passes.pipeline import select

    found: set[str] = set()
    for pattern in patterns:
        matching = {n for n in names if fnmatch.fnmatchcase(n, pattern)}
        if not matching:
            if not set("*?[") & set(pattern):
                select([pattern])
            ran = ", ".join(dict.fromkeys(names)) or "none"
            raise click.UsageError(f"--print-after {pattern}: no such pass among those that run: {ran}")
        found |= matching
    return found


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _run(step: Pass, module: Module, fuel: Fuel) -> tuple[Module, PassEffect]:
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


def _verify(module: Module, name: str) -> None:
    from ..hlo.errors import VerificationError
    from ..hlo.verify.verifier import verify

    try:
        verify(module)
    except VerificationError as error:
        raise VerificationError(
            f"after {name}: {error.message}", location=error.location, remedy=error.remedy
        ) from None


def _meaning(program: Program, inputs: str | None, seed: int | None) -> Meaning:
    from ..differential.preserving import Meaning
    from .inputs import choose_inputs

    return Meaning.of(program.module, choose_inputs(program, inputs, seed))


def _keeps(meaning: Meaning, step: Pass, before: Module, after: Module, rows: Sequence[PassEffect]) -> bool:
    """Whether the results are unchanged. If not, report the pass, the rewrite and how to reproduce it."""
    from ..differential.preserving import find_rewrite

    change = meaning.change(after)
    if change is None:
        return True
    last = rows[-1]
    click.echo(f"{step.name} changes the results: {change}", err=True)
    found = find_rewrite(meaning, step.run, before, last.rewrites)
    number = sum(r.rewrites for r in rows[:-1]) + found.number
    click.echo(
        f"its rewrite {found.number} of {last.rewrites} does; to see it: "
        f"--passes {','.join(r.name for r in rows)} --pass-limit {number}, and {number - 1}",
        err=True,
    )
    for line in found.difference[:MOST_LINES]:
        click.echo(line, err=True)
    if len(found.difference) > MOST_LINES:
        click.echo(f"… and {len(found.difference) - MOST_LINES} lines more", err=True)
    return False


def _table(rows: Sequence[PassEffect], fuel: Fuel) -> str:
    from ..benchmarks.tables import left, right, text_table

    before, after = (rows[0].before, rows[-1].after) if rows else (0, 0)
    total = PassEffect("total", sum(r.seconds for r in rows), before, after, fuel.spent)
    cells = [(r.name, f"{r.seconds * 1e3:.2f}", str(r.before), str(r.after), str(r.rewrites)) for r in (*rows, total)]
    return text_table([left("pass"), right("ms"), right("before"), right("after"), right("rewrites")], cells)
