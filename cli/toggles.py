"""`testbed toggles`: the ledger of the migration: shows it, changes a row's state, runs the gate of a row."""

from __future__ import annotations

import datetime
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from .json_output import json_option, print_document
from .output import say, table, wrapped
from .params import FILE, patience_option
from .toggles_promote import change_row

if TYPE_CHECKING:
    from ..migration.ledger import Hold, Row


class RowName(click.ParamType[str]):
    """A row of the ledger; the command judges it, completion knows all names."""

    name = "row"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from ..migration.units import row_names

        return [CompletionItem(name) for name in row_names() if name.startswith(incomplete)]


ROW = RowName()
reason_option = click.option("--reason", default="", metavar="TEXT", help="Why; it goes into the row's history.")
until_option = click.option(
    "--until",
    type=click.DateTime(["%Y-%m-%d"]),
    metavar="DATE",
    help="Hold the row back until this day; then its flags are an error. Needs --reason.",
)


@click.group(invoke_without_command=True)
@click.option("--ledger", type=FILE, metavar="FILE", help="Another ledger than the package's.")
@click.option(
    "--rehearse-removal",
    "removal",
    type=click.Choice(["legacy:elemental", "legacy"]),
    help="Remove these emitters in a copy of the checkout, and run tests and conformance on what is left.",
)
@click.option(
    "--tests",
    "paths",
    multiple=True,
    metavar="PATH",
    help="Tests of the rehearsal. Repeatable. [default: a few folders]",
)
@json_option("the rows")
@click.pass_context
def command(
    context: click.Context, ledger: str | None, removal: str | None, paths: tuple[str, ...], as_json: bool
) -> int | None:
    """Show how far each unit has moved from the old emitters to the new, and the evidence. Exit 1 if a hold expired.

    A ROW is UNIT.CLASS, such as reduce.float: the elemental graph or an unnested op, and a class of element types.
    """
    context.obj = _file(ledger)
    if context.invoked_subcommand is not None:
        if as_json:
            raise click.UsageError("--json prints the table: leave out the subcommand")
        return None
    if paths and removal is None:
        raise click.UsageError("--tests are those of --rehearse-removal")
    if removal is not None:
        from .toggles_removal import rehearse

        return rehearse(removal, paths)
    return _show(context.obj, as_json)


def _file(given: str | None) -> Path:
    from ..migration.ledger_states import FILE as OWN

    return OWN if given is None else Path(given)


# A group's own subcommands return their status, as other commands do.
@command.command("set")
@click.argument("name", metavar="ROW", type=ROW)
@click.argument("state", type=click.Choice(["off", "shadow", "on", "removed"]))
@reason_option
@until_option
@click.pass_obj
def set_state(file: Path, name: str, state: str, reason: str, until: datetime.datetime | None) -> int:
    """Move ROW to a state: off (old emitters), shadow (both run), on (new ones), removed (the old ones are gone).

    on needs evidence of a gate that passed, or a reason.
    """
    from ..migration.ledger import move

    hold = _hold(until, reason)
    change_row(file, name, lambda ledger, today: move(ledger, name, state, today, reason, hold))
    return 0


@command.command()
@click.option("--old", required=True, metavar="STACK", help="The stack that is left.")
@click.option("--new", required=True, metavar="STACK", help="The stack that takes its place.")
@click.option("--option", type=click.IntRange(1, 4), default=1, help="The plan's option that all rows have.")
@click.pass_obj
def begin(file: Path, old: str, new: str, option: int) -> int:
    """Write a new ledger, the FILE of --ledger, for the migration from one stack to another. All rows are off."""
    from ..migration.ledger_file import begin_ledger

    begin_ledger(file, old, new, option)
    return 0


@command.command()
@click.argument("name", metavar="ROW", type=ROW)
@reason_option
@until_option
@click.pass_obj
def rollback(file: Path, name: str, reason: str, until: datetime.datetime | None) -> int:
    """Put ROW into the state that it had before its last step forward."""
    from ..migration.ledger import roll_back

    hold = _hold(until, reason)
    change_row(file, name, lambda ledger, today: roll_back(ledger, name, today, reason, hold))
    return 0


@command.command()
@click.argument("names", metavar="[ROW]…", nargs=-1, type=ROW)
@click.option("--all", "every", is_flag=True, help="All rows that have no evidence of this commit yet.")
@click.option("--cases", type=click.IntRange(1), metavar="N", help="Differential cases of the row's own. [default: 40]")
@click.option("--corpus", multiple=True, type=FILE, metavar="DIR", help="A suite whose modules count, too. Repeatable.")
@click.option(
    "--exhaustive", type=FILE, metavar="FILE", help="What exhaustive -o wrote: pairs that ran on every input count."
)
@patience_option
@click.option(
    "--checks",
    default="all",
    show_default=True,
    metavar="NAMES",
    help="What the gate asks besides: all, none, or of drawn, scaling, aliasing, rank, length, accuracy, x86-64-v3, "
    "x86-64-v4.",
)
@click.option("--drawn", type=click.IntRange(1), metavar="N", help="Cases of the check drawn. [default: 2000]")
@click.option("--dry-run", is_flag=True, help="Run the gate, but leave the ledger as it is.")
@click.pass_obj
def promote(
    file: Path,
    names: tuple[str, ...],
    every: bool,
    cases: int | None,
    corpus: tuple[str, ...],
    exhaustive: str | None,
    patience: float,
    checks: str,
    drawn: int | None,
    dry_run: bool,
) -> int:
    """Run the gate of each ROW: differential cases, run time, compile time and memory against the old emitters
    (ADR 40), and the checks of docs/migrating.md.

    If it passes, the row is on. If not, the row stays as it is, the evidence is kept, and the exit status is 1. --all
    goes on where a run was cut short.
    """
    from .toggles_checks import DRAWN, named_checks
    from .toggles_promote import Extras, promote_rows

    if every == bool(names):
        raise click.UsageError("give rows, or --all")
    results = Path(exhaustive) if exhaustive is not None else None
    more = Extras(named_checks(checks), drawn or DRAWN)
    return promote_rows(file, names, cases, [Path(c) for c in corpus], results, dry_run, patience, more)


@command.command()
@click.argument("names", metavar="[ROW]…", nargs=-1, type=ROW)
@click.option("--all", "every", is_flag=True, help="All rows, stale or not.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.option("--cases", type=click.IntRange(1), default=2000, show_default=True, help="Of each row.")
@patience_option
@click.option("--dry-run", is_flag=True, help="Leave the ledger as it is.")
@click.pass_obj
def refresh(
    file: Path, names: tuple[str, ...], every: bool, jobs: int, cases: int, patience: float, dry_run: bool
) -> int:
    """Measure again the rows whose code has changed since their evidence, or each ROW: its kernels exactly, drawn
    cases, and a quick gate. A run that was cut short goes on where it ended.
    """
    from .toggles_refresh import refresh_rows

    if every and names:
        raise click.UsageError("give rows, or --all")
    return refresh_rows(file, names, every, jobs, cases, patience, dry_run)


@command.command()
@click.option(
    "--limit", type=click.IntRange(0), metavar="DAYS", help="Permit it for this number of days of commits, as CI does."
)
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.pass_obj
def stale(file: Path, limit: int | None, jobs: int) -> int:
    """Print the rows that are on and whose code has changed since their evidence, with the forms that changed. Exit 1
    if there is one.
    """
    from .toggles_stale import print_stale

    return print_stale(file, limit, jobs)


@command.command()
@click.pass_obj
def flags(file: Path) -> int:
    """Print the value for --emitters that the ledger stands for. `--emitters ledger` is that of the package's own."""
    from ..migration.ledger import flags_text
    from ..migration.ledger_file import read_ledger

    click.echo(flags_text(read_ledger(file)))
    return 0


def _hold(until: datetime.datetime | None, reason: str) -> Hold | None:
    from ..migration.ledger import Hold

    if until is None:
        return None
    if not reason:
        raise click.UsageError("--until needs --reason: what the row waits for")
    if until.date() < datetime.date.today():
        raise click.UsageError(f"--until {until.date()} has passed")
    return Hold(until.date(), reason)


# -- the table --------------------------------------------------------------------------------------------------------
def _show(file: Path, as_json: bool) -> int:
    from ..migration.ledger_file import read_ledger
    from ..migration.weights import migrated, read_weights, share_of
    from .toggles_stale import at_once, notes

    ledger, today = read_ledger(file), datetime.date.today()
    rows = [row for _, row in sorted(ledger.rows.items())]
    status = int(any(row.expired(today) for row in rows))
    weights = read_weights()
    if as_json:
        changed, open_ = at_once(ledger)
        bodies = [
            {
                **_body(row, today),
                "share": share_of(weights, row.name),
                "stale": None if row.name in open_ else row.name in changed,
                "changed_forms": list(changed[row.name].forms) if row.name in changed else [],
            }
            for row in rows
        ]
        head = {"ledger": str(file), "migrated": migrated(weights, ledger)}
        return print_document("toggles", status, {**head, "rows": bodies})
    from ..benchmarks.tables import left, right

    words = [left("row"), left("state"), right("opt")]
    numbers = [right("cases"), right("ulp"), left("run"), right("comp"), right("mem")]
    say(table([*words, *numbers], map(_cells, rows)))
    for row in rows:
        for note in _notes(row, today):
            say(wrapped(f"{_short(row)}: {note}"))
    for line in notes(ledger):
        say(wrapped(line))
    on = sum(row.is_on for row in rows)
    say(wrapped(f"{on} of {len(rows)} rows are on. Ratios are new emitters to old: of run time the 95% interval, of"
                " compile time (comp), of memory (mem)"))  # fmt: skip
    if any(row.evidence and row.evidence.pairs for row in rows):
        say(wrapped("cases: sampled ones, + M/N: of N pairs of opcode and type, M ran on every input"))
    for line in _options(rows):
        say(wrapped(line))
    say(wrapped(f"{migrated(weights, ledger):.1%} of the kernel time of {weights.programs} programs needs only these"))
    return status


def _options(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each of the plan's options that has rows, with its costs: geometric means over the evidence."""
    from ..migration.costs import costs_of
    from ..migration.ledger import OPTIONS

    for number in OPTIONS:
        cost = costs_of([row for row in rows if row.option == number])
        if cost.rows:
            run, compiling = (f"{r:.2f}" if r is not None else "unknown" for r in (cost.run, cost.compile))
            yield f"opt {number}, {OPTIONS[number]}: {cost.rows} rows, run time {run}, compile time {compiling}"


def _short(row: Row) -> str:
    """The row's name without that of the back end: there is one."""
    return row.name.removesuffix(".host")


def _cells(row: Row) -> list[str]:
    """A row of the table. Behind the sampled cases: pairs that ran on every input, of all that the row has."""
    head, e = [_short(row), row.state, str(row.option)], row.evidence
    if e is None:
        return [*head, "none", "", "", "", ""]
    cases = f"{e.cases} + {e.every_input}/{e.pairs}" if e.pairs else str(e.cases)
    return [
        *head,
        cases,
        f"{e.worst_ulp:g}",
        f"{e.low:.2f}–{e.high:.2f}",
        f"{e.compile_ratio:.2f}",
        f"{e.memory_ratio:.2f}",
    ]


def _notes(row: Row, today: datetime.date) -> Iterator[str]:
    if row.hold is not None:
        word = "EXPIRED" if row.expired(today) else "until"
        yield f"held back, {word} {row.hold.until}: {row.hold.reason}"
    if row.evidence is not None and row.evidence.refused:
        yield f"refused: {row.evidence.refused}"


def _body(row: Row, today: datetime.date) -> dict[str, Any]:
    """A row of the document (docs/json.md)."""
    hold = row.hold and {"until": str(row.hold.until), "reason": row.hold.reason, "expired": row.expired(today)}
    evidence = None
    if row.evidence is not None:
        forms = [{**asdict(f), "date": str(f.date)} for f in row.evidence.forms]
        evidence = {**asdict(row.evidence), "date": str(row.evidence.date), "forms": forms}
    history = [str(step) for step in row.history]
    head = {"name": row.name, "state": row.state, "option": row.option}
    return {**head, "history": history, "hold": hold, "evidence": evidence}
