"""`testbed planted`: plants bugs at run time, one after the other, and says whether fuzzing catches them."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .fuzz_options import PROFILES, names_of
from .json_output import json_option, print_document
from .output import say, table, wrapped
from .params import FILE, NameList

if TYPE_CHECKING:
    from ..differential.campaign.task import Orders
    from ..differential.planted.hunt import Caught, Hunts
    from ..differential.planted.reach import Reached


def _faults() -> list[str]:
    from ..differential.planted.table import FAULTS

    return list(FAULTS)


@click.command()
@click.option("--faults", type=NameList(_faults), metavar="NAME,…", help="Only these faults.")
@click.option("--list", "listed", is_flag=True, help="Print the faults, each with what is wrong, and stop.")
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    default=600.0,
    show_default=True,
    help="How long to draw for each fault, until it is met.",
)
@click.option(
    "--reduce-seconds",
    type=click.FloatRange(0, min_open=True),
    default=60.0,
    show_default=True,
    help="How long to make each catch small.",
)
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the programs that are drawn.")
@click.option(
    "-o", "output", default="planted", show_default=True, metavar="DIR", type=FILE, help="Folder of the results."
)
@click.option(
    "--expect",
    type=click.IntRange(1),
    metavar="CASES",
    help="Draw this many cases, once for all faults, print after how many each is caught on average, and stop.",
)
@click.option("--resume", is_flag=True, help="Go on in DIR with the faults that have no result yet.")
@json_option("what became of each fault")
def command(
    faults: str | None,
    listed: bool,
    seconds: float,
    reduce_seconds: float,
    jobs: int,
    seed: int,
    output: str,
    expect: int | None,
    resume: bool,
    as_json: bool,
) -> int:
    """Plant each fault in processes of its own, and fuzz until it is caught; then reduce and bisect the catch.

    A finding that the healthy testbed has, too, is no catch. Exit 1 if a fault was not caught. --expect says how long
    that takes on average, much sooner: each case is tried with all faults that it reaches.
    """
    from .setup import provide

    names = names_of("--faults", faults, _faults()) if faults is not None else _faults()
    if listed:
        return _print_list(names, as_json)
    provide("dev", "hypothesis")
    from ..codegen.options import Target
    from ..differential.campaign.task import Orders
    from ..differential.generate.program import Limits
    from ..differential.planted.hunt import Hunter, Summary
    from .interrupt import patience

    orders = Orders(Limits(PROFILES["dev"].instructions))
    if expect is not None:
        return _expect(names, expect, seed, orders, jobs, seconds, as_json)
    hunts = _hunts(Path(output), resume, seed)
    with patience(10):
        for row in Hunter(orders, jobs, seconds, Target.host(), reduce_seconds).hunt(hunts, names):
            if not as_json:
                say(wrapped(sentence(row)))
    rows = [hunts.done[name] for name in names]
    status = 0 if all(row.caught for row in rows) else 1
    summary = Summary.of(rows)
    if as_json:
        body = {"folder": output, "summary": asdict(summary), "faults": [asdict(row) for row in rows]}
        return print_document("planted", status, body)
    _print_table(rows)
    say(
        wrapped(
            f"{summary.caught} of {summary.faults} caught; blame is right in {summary.blame_right}, bisect in "
            f"{summary.culprit_right}; median of {summary.instructions:g} instructions, reduced in "
            f"{summary.reducing:.1f} s; {summary.alarms} findings of the healthy testbed"
        )
    )
    return status


def _expect(names: list[str], cases: int, seed: int, orders: Orders, jobs: int, seconds: float, as_json: bool) -> int:
    """Print how many cases it takes to catch each fault. The status is 1 if one was never caught."""
    from ..codegen.options import Target
    from ..differential.planted.reach import measure
    from .interrupt import patience
    from .progress import progress

    with patience(10), progress(cases) as advance:
        found = measure(names, cases, seed, orders, jobs, Target.host(), advance)
    rows = sorted(found.rows.values(), key=lambda row: (-row.expected, row.name))
    status = 0 if all(row.caught for row in rows) else 1
    expected = found.found_in(seconds, jobs)
    if as_json:
        faults = [{**asdict(row), "expected": row.expected if row.caught else None} for row in rows]
        head = {"cases": found.cases, "alarms": found.alarms, "cases_per_second": round(found.rate, 3)}
        return print_document("planted", status, {**head, "expected_caught": round(expected, 2), "faults": faults})
    _print_expected(rows)
    say(
        wrapped(
            f"{found.cases} cases, {found.rate:.1f} a second and process, {len(found.alarms)} findings of the healthy "
            f"testbed; {seconds:g} s of {jobs} processes catch {expected:.1f} of {len(rows)} faults on average"
        )
    )
    return status


def _print_expected(rows: list[Reached]) -> None:
    from ..benchmarks.tables import left, right

    heads = (left("fault"), *map(right, ("cases", "reach it", "catch it", "cases until caught")))
    cells = [
        (row.name, *map(str, (row.cases, row.reached, row.caught)), f"{row.expected:.0f}" if row.caught else "more")
        for row in rows
    ]
    say(table(list(heads), cells))


def _hunts(folder: Path, resume: bool, seed: int) -> Hunts:
    """The results to go on with. Raises InputError where the folder does not fit."""
    from ..differential.planted.hunt import RESULTS_FILE, Hunts, read_hunts
    from ..formats.whole_files import write_text
    from ..hlo.errors import InputError

    if resume:
        return read_hunts(folder)
    if (folder / RESULTS_FILE).exists():
        raise InputError(f"{folder} holds results", remedy="--resume goes on with them; or give another folder with -o")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot write: {error.strerror}", remedy="give another one with -o") from None
    write_text(folder / ".gitignore", "*\n")  # as that of fuzz: results are no part of a checkout
    return Hunts(folder, seed)


def sentence(row: Caught) -> str:
    """What became of a fault, in a line."""
    alarms = f"; {row.alarms} findings of the healthy testbed" if row.alarms else ""
    if not row.caught:
        return f"{row.name}: not caught in {row.cases} cases, {row.seconds:.0f} s{alarms}"
    blame = ", ".join(row.blamed) or "nobody"
    return (
        f"{row.name}: caught after {row.cases} cases, {row.seconds:.0f} s; {row.kind}, blames {blame}"
        f"{'' if row.blame_right else ' (wrong)'}; culprit {row.culprit or 'unknown'}"
        f"{'' if row.culprit_right else ' (wrong)'}; {row.after} instructions, {row.reducing:.0f} s{alarms}"
    )


def _print_table(rows: list[Caught]) -> None:
    from ..benchmarks.tables import left, right

    heads = (left("fault"), left("caught"), *map(right, ("cases", "s")), left("blame"), left("bisect"))
    words = {True: "right", False: "wrong"}
    cells = [
        (
            *(row.name, "yes" if row.caught else "no", str(row.cases), f"{row.seconds:.0f}"),
            *((words[row.blame_right], words[row.culprit_right]) if row.caught else ("", "")),
            *((str(row.after), f"{row.reducing:.0f}") if row.caught else ("", "")),
        )
        for row in rows
    ]
    say(table([*heads, right("size"), right("reduce s")], cells))


def _print_list(names: list[str], as_json: bool) -> int:
    from ..benchmarks.tables import left
    from ..differential.planted.table import FAULTS

    chosen = [FAULTS[name] for name in names]
    if as_json:
        rows = [
            {
                "name": f.name,
                "family": f.family,
                "sentence": f.sentence,
                "where": [spot.place for spot in f.spots],
                "blamed": list(f.blamed),
                "culprits": list(f.culprits),
            }
            for f in chosen
        ]
        return print_document("planted", 0, {"faults": rows})
    cells = [(f.name, f.family, f.sentence) for f in chosen]
    say(table([left("fault"), left("family"), left("what is wrong")], cells))
    return 0
