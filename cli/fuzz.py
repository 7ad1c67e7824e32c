"""`testbed fuzz`: draws programs, runs them on several stacks, shrinks what differs; a campaign or one blob again."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .fuzz_found import failing, keep_findings, tried_first
from .fuzz_options import PROFILES, Options, drawing_options, given_names
from .fuzz_since import focused
from .json_output import json_option, print_document
from .output import say, wrapped
from .params import FILE, handlers_option, patience_option
from .setup import provide
from .status import UNDECIDED

if TYPE_CHECKING:
    from rich.table import Table

    from ..differential.campaign.campaign import Campaign
    from ..differential.campaign.cause import Cause
    from ..differential.campaign.state import State
    from ..differential.campaign.task import Orders

DEFAULT_FOLDER = "fuzz"
LIMIT = 60.0
"""Seconds that a task may take before it counts as a hang."""

MANY_CASES = 1000
"""The minimum share of cases for which the summary says what did not run."""

LINE_SECONDS = 60.0
"""How often a campaign says where it stands, if standard error is no terminal."""


@click.command()
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="How long to draw. Default: the profile's.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes.")
@drawing_options
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the programs that are drawn.")
@click.option(
    "-o", "output", default=DEFAULT_FOLDER, show_default=True, metavar="DIR", type=FILE, help="Folder of the campaign."
)
@click.option(
    "--since",
    metavar="REV",
    help="Draw for the opcodes and forms whose code differs from a revision of git, and say which: everything, where "
    "all programs go through it.",
)
@click.option(
    "--found",
    "found_folder",
    metavar="DIR",
    type=FILE,
    help="Try the examples in DIR first, and keep there what is found.",
)
@click.option("--first", is_flag=True, help="End at the first finding.")
@click.option(
    "--bisect/--no-bisect",
    "bisects",
    default=None,
    help="When the time is over, reduce and bisect each finding, for a minute or two. Default: in profile campaign.",
)
@click.option("--resume", is_flag=True, help="Go on with the campaign in DIR.")
@patience_option
@handlers_option
@click.option("--blob", metavar="B", help="Run one drawn program again, and print it.")
@json_option("counts, coverage and findings")
@click.pass_context
def command(
    context: click.Context,
    seconds: float | None,
    jobs: int,
    seed: int,
    output: str,
    since: str | None,
    found_folder: str | None,
    first: bool,
    bisects: bool | None,
    resume: bool,
    blob: str | None,
    patience: float,
    handlers: tuple[str, ...],
    as_json: bool,
    **drawing: Any,
) -> int:
    """Draw programs, run each on several stacks, and compare the results within the programs' bounds.

    What differs, crashes or hangs is made small and written to DIR/findings, one folder for each cause. Exit 1 if
    there is any, 3 if there is none but a case is undecided. --resume draws what the campaign draws.
    """
    if since is not None and (resume or blob is not None):
        raise click.UsageError("--since is for a new campaign: a campaign goes on with what it draws, as its blobs do")
    options, changed = focused(Options(**drawing), since)
    if blob is not None:
        return _again(blob, replace(options.orders(), budget=patience), handlers, as_json)
    options.orders()  # refuses what it cannot draw, before a folder is made
    provide("dev", "hypothesis")
    from ..codegen.options import Target
    from ..differential.campaign.campaign import Campaign
    from ..ffi.from_files import load_handlers
    from .interrupt import patience as patient

    folder = Path(output)
    state = _state(folder, resume, seed)
    if resume:
        options = options.resumed(state.options, given_names(context))
    state.options = options.to_json()
    orders = replace(options.orders(), budget=patience)
    if not as_json:
        for line in (f"seed {state.seed}", *changed.why):
            say(wrapped(line))
    examples = Path(found_folder) if found_folder is not None else None
    length = seconds if seconds is not None else PROFILES[options.profile].seconds
    with patient(10):
        tried = tried_first(examples, patience, handlers, as_json) if examples is not None else []
    with patient(10), _watching(as_json, orders) as (on_progress, on_finding):
        campaign = Campaign(
            orders,
            folder,
            state,
            jobs,
            length,
            LIMIT + patience,
            Target.host(),
            first=first,
            on_progress=on_progress,
            on_finding=on_finding,
        )
        if handlers:
            campaign.begin = partial(load_handlers, handlers)
        campaign.run()
        if bisects if bisects is not None else options.profile == "campaign":
            _bisect(campaign)
        kept = keep_findings(campaign, examples, as_json) if examples is not None else []
    status = 1 if state.findings or failing(tried) else UNDECIDED if state.undecided else 0
    if as_json:
        more = {
            "focus": list(changed.why),
            "examples": {
                "tried": len(tried),
                "failing": [t.name for t in failing(tried)],
                "kept": [p.name for p in kept],
            },
        }
        return print_document("fuzz", status, _document(state, folder, orders) | more)
    _report(state, folder, options.again(), orders)
    if missed := changed.missed(state.forms):
        say(wrapped(missed))
    return status


def _document(state: State, folder: Path, orders: Orders) -> dict[str, Any]:
    from ..differential.campaign.coverage import reached

    body = state.to_json()
    ran = {stack: r.to_json() for stack, r in reached(state.coverage, orders).items()}
    kept = {key: body[key] for key in body if key not in ("schema", "rounds")}
    return {"folder": str(folder), **kept, "cases_per_second": round(state.rate, 3), "reached": ran}


def _state(folder: Path, resume: bool, seed: int) -> State:
    """The state that the campaign begins with."""
    from ..differential.campaign.state import STATE_FILE, State, read_state
    from ..formats.whole_files import write_text
    from ..hlo.errors import InputError

    if resume:
        return read_state(folder)
    if (folder / STATE_FILE).exists():
        raise InputError(
            f"{folder} holds a campaign", remedy="--resume goes on with it; or give another folder with -o"
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot write: {error.strerror}", remedy="give a writable folder with -o") from None
    write_text(folder / ".gitignore", "*\n")  # as caches of tools do: a campaign is no part of a checkout
    return State(seed)


def _again(blob: str, orders: Orders, handlers: tuple[str, ...], as_json: bool) -> int:
    """Run the task of a blob in a process of its own, and print it."""
    from ..differential.campaign.task import task_of
    from ..differential.child import Child
    from ..differential.outcome import OutcomeKind
    from ..ffi.from_files import load_handlers
    from ..formats.text.printer import print_module

    task = task_of(blob, orders)
    with Child(partial(load_handlers, handlers)) as child:
        found = child.outcome(task.case.module, task.case.inputs, task.stacks, LIMIT, task.setting, again=True)
    status = 1 if found.is_finding else UNDECIDED if found.kind is OutcomeKind.UNDECIDED else 0
    text = print_module(task.case.module)
    if as_json:
        body = {"kind": found.kind.value, "blamed": list(found.blamed), "sentence": found.sentence}
        return print_document("fuzz", status, {"module": text, "stacks": list(task.stacks), **body})
    click.echo(text)
    for name, run in found.runs.items():
        say(wrapped(f"{name}: {run.kind.value}{f' ({run.reason})' if run.reason else ''}"))
    say(wrapped(f"{found.kind.value}: {found.sentence}"))
    return status


def _bisect(campaign: Campaign) -> None:
    """Reduce and bisect the findings that were not yet, and save what is guilty."""
    from ..differential.follow_up import SMALL, follow_up

    for known in campaign.state.causes:
        place = known.cause.folder(campaign.folder)
        if known.culprit is None and not (place / SMALL).exists():
            small = follow_up(place, begin=campaign.begin, jobs=campaign.jobs)
            known.culprit = small.culprit if small is not None else ""
            campaign.state.save(campaign.folder)


# what is shown

Watch = tuple[Callable[["State"], None], Callable[["Cause", str], None]]


@contextmanager
def _watching(as_json: bool, orders: Orders) -> Iterator[Watch]:
    """(What to call with the state a few times a second, and with each new cause): a live view on a terminal, else a
    line for each finding, and one each LINE_SECONDS on standard error.
    """

    def line(cause: Cause, blob: str) -> None:
        if not as_json:
            say(wrapped(f"found  {cause.title}"))

    if not sys.stderr.isatty():
        yield _each_minute(), line
        return
    from rich.console import Console, Group
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True, refresh_per_second=4) as live:
        yield (lambda state: live.update(Group(summary(state, orders), _coverage(state, orders)))), line


def _coverage(state: State, orders: Orders) -> Table:
    """What ran: a row for each family of opcodes, a column for each stack."""
    from rich.table import Table

    from ..differential.campaign.coverage import by_family, stacks_in

    shown = Table("family", *stacks_in(state.coverage))
    for family, stacks in by_family(state.coverage, orders).items():
        shown.add_row(family, *map(str, stacks.values()))
    return shown


def _each_minute() -> Callable[[State], None]:
    said = time.monotonic()

    def tell(state: State) -> None:
        nonlocal said
        if time.monotonic() - said > LINE_SECONDS:
            said = time.monotonic()
            click.echo(f"{_rate(state)}; {state.findings} causes", err=True)

    return tell


def summary(state: State, orders: Orders) -> str:
    """Counts, coverage by stack and causes, in a few lines."""
    from ..differential.campaign.coverage import forms_left, reached

    ran = reached(state.coverage, orders)
    lines = [_rate(state), f"ran: {'; '.join(f'{stack} {what}' for stack, what in ran.items()) or 'nothing'}"]
    left = sorted({op for what in ran.values() for op in what.left})
    if left and state.cases >= MANY_CASES:
        lines.append(f"opcodes that did not run on some stack: {', '.join(left)}")
    for stack, (count, missed) in forms_left(state.forms, ran).items():
        lines.append(f"forms of {stack}: {count - len(missed)}/{count}")
        if missed and state.cases >= MANY_CASES:
            lines.append(f"  not reached: {', '.join(missed)}")
    lines.append(f"causes: {len(state.causes)}")
    lines += [f"  {known.count:>5} × {known.cause.title}{' (flaky)' if known.flaky else ''}" for known in state.causes]
    if state.undecided:
        lines.append(f"  {len(state.undecided)} undecided: what the float rules permit took longer than --patience")
    if state.unrepeated:
        lines.append(f"  {len(state.unrepeated)} ended a process once and not again")
    return "\n".join(lines)


def _rate(state: State) -> str:
    cases = f"{state.cases} cases in {state.seconds:.0f} s ({state.rate:.1f} a second)"
    return f"{cases}, {state.refused} refused by all stacks"


def _report(state: State, folder: Path, again: str, orders: Orders) -> None:
    for text in summary(state, orders).splitlines():
        say(wrapped(text, 8))
    for known in state.causes:
        say(wrapped(f"{known.cause.name}: {known.sentence}"))
        if known.culprit is not None:
            say(wrapped(f"  culprit: {known.culprit or 'unknown'}", 4))
        say(f"  ./testbed diff {known.cause.folder(folder)}")
        say(f"  {again} {known.blob}")
    for blob in (*state.unrepeated, *state.undecided):
        say(f"  {again} {blob}")
