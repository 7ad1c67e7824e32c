"""`testbed opt MODULE`: runs HLO passes and prints the module; a table on stderr shows the effect of each pass."""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .inputs import Inputs, input_options
from .json_output import json_option, print_document
from .opt_lhlo import optimize_lhlo
from .opt_lists import list_passes, list_rules
from .opt_steps import PassEffect, change_of, meaning_of, run_pass, table, verify_after
from .output import say
from .params import FILE, MODULE, PASS_LIST, patience_option

if TYPE_CHECKING:
    from ..hlo.ir import Module


@click.command()
@click.argument("module", type=MODULE)
@click.option(
    "--passes",
    type=PASS_LIST,
    metavar="A,B,…",
    help="Passes to run, in order; '' for none. [default: the pipeline of a plan]",
)
@click.option(
    "--print-before",
    multiple=True,
    metavar="PASS",
    help="Also print the module before this pass; a glob such as 'fuse*' selects several. Repeatable.",
)
@click.option("--print-after", multiple=True, metavar="PASS", help="The same after this pass.")
@click.option(
    "--dump-on-change",
    metavar="DIR",
    type=FILE,
    help="Write the module to a new folder at first and after each pass that changes it, as NNN.PASS.hlo.",
)
@click.option("--verify-each", is_flag=True, help="Verify the module after each pass.")
@click.option(
    "--evaluate-each",
    is_flag=True,
    help="Evaluate the module after each pass. Report the first pass, and its first rewrite, that changes a result.",
)
@input_options(" For --evaluate-each.")
@click.option(
    "--pass-limit", type=click.IntRange(0), metavar="N", help="Apply only the first N rewrites, for bisection."
)
@click.option(
    "-o",
    "--output",
    type=FILE,
    metavar="OUT.HLO",
    help="Write the module to a file instead of printing it (-: print it).",
)
@patience_option
@json_option("the module and the effect of each pass")
@click.option(
    "--list", is_flag=True, is_eager=True, expose_value=False, callback=list_passes, help="List the passes and exit."
)
@click.option(
    "--list-rules",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=list_rules,
    help="List the rules of the algebra pass, mark those that change roundings, and exit.",
)
def command(
    module: str,
    passes: str | None,
    print_before: tuple[str, ...],
    print_after: tuple[str, ...],
    dump_on_change: str | None,
    verify_each: bool,
    evaluate_each: bool,
    inputs: Inputs,
    pass_limit: int | None,
    output: str | None,
    patience: float,
    as_json: bool,
) -> int:
    """Print MODULE's HLO after passes. The passes that a pass requires run before it.

    Exit 1 if a pass changes a result; 2 if a pass is unknown, or the module does not verify after a pass.
    """
    from ..formats.text.printer import print_module
    from ..formats.whole_files import write_text
    from ..migration.programs import load_program, plan_of
    from ..passes.fuel import Fuel, limited
    from ..passes.pipeline import complete, default_passes, select

    if not evaluate_each and inputs.options:
        raise click.UsageError(f"{inputs.options[0]} is for --evaluate-each: add that")
    program = load_program(module)
    named = None if passes is None or plan_of(program) is not None else select(_names(passes))
    if plan_of(program) is not None:
        return optimize_lhlo(module, program, None if passes is None else _names(passes), output)
    chosen = complete(named if named is not None else select(default_passes(program.module)))
    names = [step.name for step in chosen]
    printer = Printer(len(chosen), _matching("--print-before", print_before, names), as_json)
    after = _matching("--print-after", print_after, names)
    meaning = meaning_of(program, inputs, patience) if evaluate_each else None
    dump = _dumping(dump_on_change) if dump_on_change is not None else None
    fuel = Fuel(pass_limit)
    rows: list[PassEffect] = []
    now = program.module
    if dump is not None:
        dump(0, "input", now)
    wrong: list[str] | None = None
    for number, step in enumerate(chosen, 1):
        before = now
        if step.name in printer.before:
            printer.show("before", number, step.name, now)
        with limited(fuel):
            now, row = run_pass(step, now, fuel)
        rows.append(row)
        if dump is not None and now is not before:
            dump(number, step.name, now)
        if verify_each:
            verify_after(now, step.name)
        if meaning is not None and (wrong := change_of(meaning, step, before, now, rows)) is not None:
            break
        if step.name in after:
            printer.show("after", number, step.name, now)
    if wrong is not None:
        for line in wrong:
            say(line, err=True)
    text = print_module(now)
    if wrong is None and output not in (None, "-"):
        write_text(Path(str(output)), text)
    if as_json:
        hlo = text if output in (None, "-") and wrong is None else None
        effects = [asdict(row) for row in rows]
        body = {"module": module, "passes": effects, "printed": printer.printed, "hlo": hlo, "wrong": wrong}
        return print_document("opt", 0 if wrong is None else 1, body)
    if wrong is not None:
        return 1
    if output in (None, "-"):
        click.echo(text, nl=False)
    say(table(rows, fuel), err=True)
    return 0


class Printer:
    """Prints the module around passes, or keeps it for the JSON document."""

    def __init__(self, count: int, before: set[str], as_json: bool):
        self.count, self.before, self.as_json = count, before, as_json
        self.printed: list[dict[str, Any]] = []

    def show(self, when: str, number: int, name: str, module: Module) -> None:
        from ..formats.text.printer import print_module

        text = print_module(module)
        if self.as_json:
            self.printed.append({"when": when, "pass": name, "number": number, "hlo": text})
        else:
            click.echo(f"// {when} {name}, pass {number} of {self.count}\n{text}")


def _matching(option: str, patterns: Sequence[str], names: Sequence[str]) -> set[str]:
    """The passes among `names` that match a pattern. Raises UsageError for a pattern that matches none."""
    from ..passes.pipeline import select

    found: set[str] = set()
    for pattern in patterns:
        matching = {n for n in names if fnmatch.fnmatchcase(n, pattern)}
        if not matching:
            if not set("*?[") & set(pattern):
                select([pattern])
            ran = ", ".join(dict.fromkeys(names)) or "none"
            raise click.UsageError(f"{option} {pattern}: no such pass among those that run: {ran}")
        found |= matching
    return found


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _dumping(name: str) -> Callable[[int, str, Module], None]:
    """A function that writes a module to the folder `name` if its text differs from the last one that it wrote."""
    from ..formats.text.printer import print_module
    from ..formats.whole_files import write_text
    from ..hlo.errors import InputError

    folder = Path(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"{folder}: exists and is not an empty folder", remedy="give a new folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot write: {error.strerror}", remedy="give a writable folder") from None
    last = ""

    def dump(number: int, step: str, module: Module) -> None:
        nonlocal last
        text = print_module(module)
        if text != last:
            write_text(folder / f"{number:03}.{step}.hlo", text)
            last = text

    return dump
