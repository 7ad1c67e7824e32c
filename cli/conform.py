"""`testbed conform DIR`: runs a conformance corpus on the chosen stacks, in worker processes."""

from __future__ import annotations

import os
from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="DIR")
@click.option(
    "--stacks",
    default="evaluator,legacy,mlir",
    show_default=True,
    help="Stacks from: evaluator, optimized (the evaluator after all passes), legacy, mlir, xla, parse.",
)
@click.option(
    "--source",
    type=click.Choice(["hlo", "stablehlo"]),
    default="hlo",
    show_default=True,
    help="Which module of a case to run. stablehlo needs jaxlib and skips cases without a StableHLO module.",
)
@click.option("--json", "json_file", metavar="F", help="Write the report as JSON.")
@click.option(
    "--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Worker processes."
)
@click.option("--filter", "pattern", metavar="GLOB", help="Run only cases whose id matches.")
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Run only N cases, picked at random with --seed.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="Seed of --sample.")
@click.option(
    "--limit",
    type=click.FloatRange(0, min_open=True),
    default=120.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit per case and stack.",
)
def command(
    folder: str,
    stacks: str,
    source: str,
    json_file: str | None,
    jobs: int,
    pattern: str | None,
    sample: int | None,
    seed: int,
    limit: float,
) -> int:
    """Run the suite in DIR: a manifest.jsonl, modules and expected results (docs/testing.md describes the form).

    Exit 1 if a case failed or crashed. Unsupported cases do not fail; they are grouped by the missing emitter.
    """
    from functools import partial

    from ..codegen.options import Target
    from ..differential.case_runner import run_case
    from ..differential.conformance import run_cases
    from ..differential.corpus import ALL_STACKS, PARSE, read_suite, select
    from ..differential.report import summary, write_json
    from ..migration.stacks import parse_stacks
    from .progress import progress

    names = parse_stacks(stacks, ALL_STACKS)
    if source != "hlo" and PARSE in names:
        raise click.UsageError("the parse stack reads HLO text: leave out --source")
    cases = select(read_suite(Path(folder), source), pattern, sample, seed)
    with progress(len(cases) * len(names)) as advance:
        runner = partial(run_case, target=Target.host())
        rows = run_cases(cases, names, jobs=jobs, limit=limit, on_row=lambda row: advance(), runner=runner)
    if json_file:
        write_json(Path(json_file), rows, names)
    _print(rows, names)
    counts = summary(rows, names)
    return 1 if any(c["failed"] or c["crashed"] for c in counts.values()) else 0


def _print(rows: list, stacks: tuple[str, ...]) -> None:
    from collections import Counter

    from ..differential.report import STATUSES, summary

    for row in rows:
        if row.status in ("failed", "crashed"):
            click.echo(f"{row.status}  {row.stack}  {row.id}: {row.reason}")
    counts = summary(rows, stacks)
    width = max(len(s) for s in stacks)
    for stack in stacks:
        click.echo(f"{stack:<{width}}  " + "  ".join(f"{counts[stack][s]:>5} {s}" for s in STATUSES))
        missing = Counter(r.reason for r in rows if r.stack == stack and r.status == "unsupported")
        for what, number in missing.most_common():
            click.echo(f"{'':<{width}}    unsupported {what}: {number}")
    everywhere = {r.id for r in rows} - {r.id for r in rows if r.status != "passed"}
    click.echo(f"{len(everywhere)} of {len({r.id for r in rows})} cases pass on {', '.join(stacks)}")
