"""`testbed fuzz`: draws programs, runs them on several stacks, shrinks what differs; a campaign or one blob again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .json_output import json_option, print_document
from .output import say, wrapped
from .params import FILE, NameList
from .setup import provide

if TYPE_CHECKING:
    from ..differential.campaign.cause import Cause
    from ..differential.campaign.state import State
    from ..differential.campaign.task import Orders


@dataclass(frozen=True)
class Profile:
    """seconds: of a run; instructions: of an entry computation at most."""

    seconds: float
    instructions: int


PROFILES = {"ci": Profile(20, 8), "dev": Profile(300, 12), "campaign": Profile(4 * 3600, 24)}
DEFAULT_PROFILE = "dev"
DEFAULT_STACKS = "evaluator,legacy,mlir"
DEFAULT_FOLDER = "fuzz"
LIMIT = 60.0
"""Seconds that a task may take before it counts as a hang."""


def _ops() -> list[str]:
    from ..differential.generate.table import GROW

    return [op.value for op in GROW]


def _dtypes() -> list[str]:
    from ..differential.generate.values import DRAWN

    return [dtype.value for dtype in DRAWN]


@click.command()
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="How long to draw. Default: the profile's.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.option(
    "--profile",
    type=click.Choice(list(PROFILES)),
    default=DEFAULT_PROFILE,
    show_default=True,
    help="ci: seconds, small programs; dev: minutes; campaign: hours, larger programs.",
)
@click.option("--ops", type=NameList(_ops), metavar="OP,…", help="Draw only these opcodes, and what they need.")
@click.option("--dtypes", type=NameList(_dtypes), metavar="TYPE,…", help="Draw only these element types, pred and s32.")
@click.option(
    "--stacks",
    default=DEFAULT_STACKS,
    show_default=True,
    help="Stacks to compare, from evaluator, optimized, legacy, mlir, xla. Of legacy and mlir, mixtures are drawn too.",
)
@click.option("--no-mixtures", is_flag=True, help="Draw no mixtures of legacy and mlir.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the programs that are drawn.")
@click.option(
    "-o", "output", default=DEFAULT_FOLDER, show_default=True, metavar="DIR", type=FILE, help="Folder of the campaign."
)
@click.option("--first", is_flag=True, help="End at the first finding.")
@click.option("--resume", is_flag=True, help="Go on with the campaign in DIR.")
@click.option("--blob", metavar="B", help="Run one drawn program again, and print it.")
@json_option("counts, coverage and findings")
def command(
    seconds: float | None,
    jobs: int,
    profile: str,
    ops: str | None,
    dtypes: str | None,
    stacks: str,
    no_mixtures: bool,
    seed: int,
    output: str,
    first: bool,
    resume: bool,
    blob: str | None,
    as_json: bool,
) -> int:
    """Draw programs, run each on several stacks, and compare the results within the programs' bounds.

    What differs, crashes or hangs is made small and written to DIR/findings, one folder for each cause. Exit 1 if
    there is any.
    """
    orders = _orders(PROFILES[profile], ops, dtypes, stacks, not no_mixtures)
    if blob is not None:
        return _again(blob, orders, as_json)
    provide("dev", "hypothesis")
    from ..codegen.options import Target
    from ..differential.campaign.campaign import Campaign
    from .interrupt import patience

    folder = Path(output)
    state = _state(folder, resume, seed)
    length = seconds if seconds is not None else PROFILES[profile].seconds
    with patience(10), _watching(as_json) as (on_progress, on_finding):
        Campaign(
            orders,
            folder,
            state,
            jobs,
            length,
            LIMIT,
            Target.host(),
            first=first,
            on_progress=on_progress,
            on_finding=on_finding,
        ).run()
    status = 1 if state.findings else 0
    if as_json:
        body = state.to_json()
        kept = {key: body[key] for key in body if key not in ("schema", "rounds")}
        return print_document("fuzz", status, {"folder": str(folder), **kept})
    _report(state, folder, _again_with(profile, ops, dtypes, stacks, no_mixtures))
    return status


def _again_with(profile: str, ops: str | None, dtypes: str | None, stacks: str, no_mixtures: bool) -> str:
    """The command that runs a blob of these options again, up to the blob."""
    from itertools import chain
    from shlex import join

    named = {"--profile": profile, "--ops": ops, "--dtypes": dtypes, "--stacks": stacks}
    usual = {"--profile": DEFAULT_PROFILE, "--stacks": DEFAULT_STACKS}
    given = [(name, value) for name, value in named.items() if value is not None and value != usual.get(name)]
    return join(["./testbed", "fuzz", *chain(*given), *(["--no-mixtures"] if no_mixtures else []), "--blob"])


def _orders(profile: Profile, ops: str | None, dtypes: str | None, stacks: str, mixed: bool) -> Orders:
    """What tasks are drawn from. Raises click.UsageError for unknown names."""
    from ..differential.campaign.task import Orders
    from ..differential.generate.program import Limits
    from ..differential.generate.values import DRAWN
    from ..hlo.dtypes import BY_NAME
    from ..hlo.opcodes import Op
    from ..migration.stacks import STACKS, parse_stacks

    names = parse_stacks(stacks, list(STACKS))
    if len(names) < 2:
        raise click.UsageError("--stacks needs two stacks or more to compare")
    chosen_ops = frozenset(map(Op, names_of("--ops", ops, _ops()))) if ops is not None else None
    chosen = tuple(BY_NAME[d] for d in names_of("--dtypes", dtypes, _dtypes())) if dtypes is not None else DRAWN
    return Orders(Limits(profile.instructions, ops=chosen_ops, dtypes=chosen), names, mixed)


def names_of(option: str, text: str, known: Sequence[str]) -> list[str]:
    """The names in a list with commas. Raises click.UsageError for an unknown one or none."""
    import difflib

    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(known[:8])}, …"
            raise click.UsageError(f"{option}: {name!r} is not among them ({hint})")
    if not names:
        raise click.UsageError(f"{option}: give a name or more")
    return names


def _state(folder: Path, resume: bool, seed: int) -> State:
    """The state that the campaign begins with."""
    from ..differential.campaign.state import STATE_FILE, State, read_state
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
    return State(seed)


def _again(blob: str, orders: Orders, as_json: bool) -> int:
    """Run the task of a blob in a process of its own, and print it."""
    from ..differential.campaign.task import task_of
    from ..differential.child import Child
    from ..formats.text.printer import print_module

    task = task_of(blob, orders)
    with Child() as child:
        found = child.outcome(task.case.module, task.case.inputs, task.stacks, LIMIT, task.setting, again=True)
    status = 1 if found.is_finding else 0
    text = print_module(task.case.module)
    if as_json:
        body = {"kind": found.kind.value, "blamed": list(found.blamed), "sentence": found.sentence}
        return print_document("fuzz", status, {"module": text, "stacks": list(task.stacks), **body})
    click.echo(text)
    for name, run in found.runs.items():
        say(wrapped(f"{name}: {run.kind.value}{f' ({run.reason})' if run.reason else ''}"))
    say(wrapped(f"{found.kind.value}: {found.sentence}"))
    return status


# what is shown

Watch = tuple[Callable[["State"], None], Callable[["Cause", str], None]]


@contextmanager
def _watching(as_json: bool) -> Iterator[Watch]:
    """(What to call with the state a few times a second, and with each new cause): a live view on a terminal, else a
    line for each finding.
    """
    if as_json:
        yield (lambda state: None), (lambda cause, blob: None)
        return

    def line(cause: Cause, blob: str) -> None:
        say(wrapped(f"found  {cause.title}"))

    if not sys.stderr.isatty():
        yield (lambda state: None), line
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), transient=True, refresh_per_second=4) as live:
        yield (lambda state: live.update(summary(state))), line


def summary(state: State) -> str:
    """Counts, coverage by stack and causes, in a few lines."""
    rate = state.cases / state.seconds if state.seconds else 0.0
    covered: dict[str, int] = {}
    for _, _, stack in state.coverage:
        covered[stack] = covered.get(stack, 0) + 1
    pairs = ", ".join(f"{stack} {count}" for stack, count in sorted(covered.items()))
    lines = [
        f"{state.cases} cases in {state.seconds:.0f} s ({rate:.1f} a second), {state.refused} refused by all stacks",
        f"pairs of opcode and type that ran: {pairs or 'none'}",
        f"causes: {len(state.causes)}",
    ]
    lines += [f"  {known.count:>5} × {known.cause.title}{' (flaky)' if known.flaky else ''}" for known in state.causes]
    if state.unrepeated:
        lines.append(f"  {len(state.unrepeated)} ended a process once and not again")
    return "\n".join(lines)


def _report(state: State, folder: Path, again: str) -> None:
    for text in summary(state).splitlines():
        say(wrapped(text, 8))
    for known in state.causes:
        say(wrapped(f"{known.cause.name}: {known.sentence}"))
        say(f"  ./testbed diff {folder / 'findings' / known.cause.name}")
        say(f"  {again} {known.blob}")
    for blob in state.unrepeated:
        say(f"  {again} {blob}")
