"""`testbed conform DIR`: runs a conformance corpus on the chosen stacks, in worker processes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .output import say, wrapped
from .params import CASE_STACK_LIST, FILE, handlers_option, patience_option, xla_flags_option
from .status import UNDECIDED

if TYPE_CHECKING:
    from ..differential.expected_failures import Entry
    from ..differential.report import CaseResult


@click.command()
@click.argument("folder", metavar="DIR", type=FILE)
@click.option(
    "--stacks",
    default="evaluator,legacy,mlir",
    show_default=True,
    type=CASE_STACK_LIST,
    help="Stacks from: evaluator, optimized (the evaluator after all passes), legacy, mlir, c, xla, parse, "
    "lhlo (written as LHLO and read back: the same IR, thunks and bits on both stacks), "
    "executions (the compiled host program, a file, other legal orders of thunks, a profile, two threads: the bits of "
    "the interpreted thunks, on both stacks), "
    "exact (both stacks, the HLO and the passes over finite fields, without bounds).",
)
@xla_flags_option
@click.option(
    "--source",
    type=click.Choice(["hlo", "stablehlo"]),
    default="hlo",
    show_default=True,
    help="Which module of a case to run. stablehlo needs jaxlib and skips cases without a StableHLO module.",
)
@click.option("--json", "json_file", metavar="F", type=FILE, help="Write the report as JSON.")
@click.option(
    "--expected-failures",
    metavar="F",
    type=FILE,
    help="A text file with a line CASE reason or CASE@STACK reason for each known failure; one that passes fails.",
)
@click.option(
    "--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Worker processes."
)
@click.option("--filter", "pattern", metavar="GLOB", help="Run only cases whose id matches.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Run only N cases, picked at random with --seed.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, metavar="S", help="Seed of --sample.")
@click.option(
    "--limit",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit per case and stack, besides --patience.",
)
@patience_option
@handlers_option
def command(
    folder: str,
    stacks: str,
    xla_flags: str | None,
    source: str,
    json_file: str | None,
    expected_failures: str | None,
    jobs: int,
    pattern: str | None,
    sample: int | None,
    seed: int,
    limit: float,
    patience: float,
    handlers: tuple[str, ...],
) -> int:
    """Run the suite in DIR: a manifest.jsonl, modules and expected results (docs/testing.md describes the form).

    Exit 1 if a case failed or crashed that was not expected to, or passed that was. Unsupported cases do not fail; they
    are grouped by the missing emitter. Exit 3 if nothing failed, but it is undecided whether the float rules permit a
    result that differs.
    """
    from functools import partial

    from ..codegen.c_compiler import chosen_c_compiler
    from ..codegen.options import Target
    from ..codegen.threads import threads
    from ..differential.case_runner import run_case
    from ..differential.conformance import run_cases
    from ..differential.corpus import ALL_STACKS, PARSE, read_suite, select
    from ..differential.expected_failures import read_expected_failures, split
    from ..differential.report import write_json
    from ..migration.stacks import parse_stacks
    from .interrupt import patience as patient
    from .progress import progress

    names = parse_stacks(stacks, ALL_STACKS)
    if source != "hlo" and PARSE in names:
        raise click.UsageError("the parse stack reads HLO text: leave out --source")
    suite = read_suite(Path(folder), source)
    entries: tuple[Entry, ...] = ()
    if expected_failures is not None:
        entries = read_expected_failures(Path(expected_failures), (c.id for c in suite), ALL_STACKS)
    cases = select(suite, pattern, sample, seed)
    with patient(5), progress(len(cases) * len(names)) as advance:
        runner = partial(
            run_case,
            target=Target.host(),
            xla_flags=xla_flags,
            threads=threads(),
            c_compiler=chosen_c_compiler(),
            budget=patience,
            handlers=handlers,
        )
        rows = run_cases(cases, names, jobs=jobs, limit=limit + patience, on_row=lambda row: advance(), runner=runner)
    expected, passing = split(rows, entries)
    if json_file:
        write_json(Path(json_file), rows, names, expected)
    failed = _print_failures(rows, set(expected))
    for entry, row in passing:
        say(wrapped(f"passed  {row.stack}  {row.id}: expected to fail ({entry.reason}); remove {entry.place}"))
    _print_counts(rows, names, len(expected))
    return 1 if failed or passing else UNDECIDED if any(row.status == "undecided" for row in rows) else 0


def _print_failures(rows: list[CaseResult], expected: set[int]) -> int:
    """Print what is undecided, and the failures that were not expected; returns the number of these."""
    from ..differential.expected_failures import FAILURES

    bad = [row for n, row in enumerate(rows) if row.status in FAILURES and n not in expected]
    for row in [*bad, *(row for row in rows if row.status == "undecided")]:
        say(wrapped(f"{row.status}  {row.stack}  {row.id}: {row.reason}"))
    return len(bad)


def _print_counts(rows: list[CaseResult], stacks: tuple[str, ...], expected: int) -> None:
    from collections import Counter

    from ..differential.report import STATUSES, summary

    counts = summary(rows, stacks)
    width = max(len(s) for s in stacks)
    shown = [s for s in STATUSES if s != "undecided" or any(counts[stack][s] for stack in stacks)]
    for stack in stacks:
        say(f"{stack:<{width}}  " + "  ".join(f"{counts[stack][s]:>5} {s}" for s in shown))
        missing = Counter(r.reason for r in rows if r.stack == stack and r.status == "unsupported")
        for what, number in missing.most_common():
            say(wrapped(f"{'':<{width}}    unsupported {what}: {number}", width + 6))
    if expected:
        say(f"{expected} failures were expected")
    everywhere = {r.id for r in rows} - {r.id for r in rows if r.status != "passed"}
    say(wrapped(f"{len(everywhere)} of {len({r.id for r in rows})} cases pass on {', '.join(stacks)}"))
