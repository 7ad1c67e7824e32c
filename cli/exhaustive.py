"""`testbed exhaustive`: every input of ops on small types, on both stacks against the evaluator."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..formats.documents import json_of
from .fuzz_options import names_of
from .json_output import json_option, print_document
from .output import say, wrapped
from .params import FILE, NameList
from .progress import progress

if TYPE_CHECKING:
    from ..differential.exhaustive import Result
    from ..hlo.dtypes import DType

SAVE_SECONDS = 5.0
SCHEMA = 2
"""Of the file of results. 2: it names the stacks that they are of."""


def _ops() -> list[str]:
    from ..differential.exhaustive import TYPES, rows

    return list(dict.fromkeys(row.op.value for row in rows(TYPES)))


def _dtypes() -> list[str]:
    from ..differential.exhaustive import TYPES

    return [dtype.value for dtype in TYPES]


@click.command()
@click.option("--ops", type=NameList(_ops), metavar="OP,…", help="Only these opcodes.")
@click.option(
    "--dtypes",
    type=NameList(_dtypes),
    metavar="TYPE,…",
    help="Only these types. f32 is left out unless it is named: each op has 256 parts, and each takes seconds.",
)
@click.option("--stacks", default="evaluator,legacy,mlir", show_default=True, help="The first one is the reference.")
@click.option("--jobs", type=click.IntRange(1), default=os.cpu_count() or 1, show_default=True, help="Processes.")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Begin no part after this time.")
@click.option("-o", "output", metavar="F", type=FILE, help="A file of results, from which another run goes on.")
@json_option("the result of each part")
def command(
    ops: str | None,
    dtypes: str | None,
    stacks: str,
    jobs: int,
    seconds: float | None,
    output: str | None,
    as_json: bool,
) -> int:
    """Run unary ops and conversions on all 8- and 16-bit inputs, and binary ops on all pairs of 8-bit ones.

    Exit 1 if a result lies outside its bounds, or a stack fails.
    """
    from ..codegen.options import Target
    from ..differential.exhaustive import EIGHT, SIXTEEN, parts_of, rows, run_parts
    from ..hlo.dtypes import BY_NAME
    from ..hlo.opcodes import Op
    from ..migration.stacks import STACKS, parse_stacks
    from .interrupt import patience
    from .toggles_gate import commit

    names = parse_stacks(stacks, list(STACKS))
    if len(names) < 2:
        raise click.UsageError("--stacks needs two stacks or more to compare")
    types: Sequence[DType] = (*SIXTEEN, *EIGHT)
    if dtypes is not None:
        types = [BY_NAME[name] for name in names_of("--dtypes", dtypes, _dtypes())]
    chosen = list(rows(types, frozenset(map(Op, names_of("--ops", ops, _ops()))) if ops is not None else None))
    results = _read(Path(output), names) if output else []
    of = read_commit(Path(output)) if results and output else commit()
    left = parts_of(chosen, frozenset((r.row, r.part) for r in results))
    until = time.monotonic() + seconds if seconds is not None else float("inf")
    saved = time.monotonic()
    with patience(10), progress(len(left)) as advance:

        def take(result: Result) -> None:
            nonlocal saved
            results.append(result)
            advance()
            if output and time.monotonic() - saved > SAVE_SECONDS:
                _write(Path(output), names, of, results)
                saved = time.monotonic()

        try:
            run_parts(left, jobs, names, take, lambda: time.monotonic() > until, Target.host())
        finally:
            if output:
                _write(Path(output), names, of, results)
    asked = {row.name for row in chosen}
    shown = [r for r in results if r.row in asked]  # the file may hold others
    bad = [r for r in shown if r.status not in ("agree", "refused")]
    wanted = sum(row.parts for row in chosen)
    if as_json:
        body = {
            "stacks": list(names),
            "parts": wanted,
            "left": wanted - len(shown),
            "results": [r.to_json() for r in shown],
        }
        return print_document("exhaustive", int(bool(bad)), body)
    _report(shown, bad, wanted)
    return 1 if bad else 0


def _report(results: Sequence[Result], bad: Sequence[Result], wanted: int) -> None:
    for r in bad:
        at = f" at ({', '.join(r.inputs)})" if r.inputs else ""
        say(wrapped(f"{r.status}  {r.row}: {r.failures} of {r.cases} elements{at}; {r.reason}"))
    refused = [r for r in results if r.status == "refused"]
    for r in refused:
        say(wrapped(f"refused  {r.row}: {r.reason}"))
    cases = sum(r.cases for r in results)
    say(
        f"{len(results)} of {wanted} parts, {cases} inputs: {len(results) - len(bad) - len(refused)} agree, "
        f"{len(refused)} refused, {len(bad)} wrong"
    )


def _read(file: Path, stacks: Sequence[str]) -> list[Result]:
    """The results in a file; none if there is no such file. Raises InputError if it is another one's, or if they are of
    other stacks.
    """
    from ..hlo.errors import InputError

    if not file.exists():
        return []
    stored, results = read_results(file)
    if stored != tuple(stacks):
        remedy = f"give --stacks {','.join(stored)}, or another file with -o"
        raise InputError(f"{file}: results of other stacks", remedy=remedy)
    return results


def read_results(file: Path) -> tuple[tuple[str, ...], list[Result]]:
    """The stacks and the results in a file that `-o` wrote. Raises InputError if it is another one's."""
    from ..differential.exhaustive import Result
    from ..hlo.errors import InputError

    try:
        stored = json_of(file.read_text(encoding="utf-8"))
        if stored["schema"] != SCHEMA:
            raise InputError(f"{file}: schema {stored['schema']}, not {SCHEMA}", remedy="give another file with -o")
        results = [Result(**{**r, "inputs": tuple(r["inputs"])}) for r in stored["results"]]
        return tuple(map(str, stored["stacks"])), results
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}", remedy="give another file with -o") from None
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file}: no results of testbed exhaustive: {error!r}", remedy="give another file") from None


def read_commit(file: Path) -> str:
    """The commit whose files the results in a file are of: the first one, if a run was resumed."""
    return str(json_of(file.read_text(encoding="utf-8")).get("commit", "unknown"))


def _write(file: Path, stacks: Sequence[str], commit: str, results: Sequence[Result]) -> None:
    from ..formats.whole_files import write_text

    head = {"schema": SCHEMA, "stacks": list(stacks), "commit": commit}
    write_text(file, json.dumps({**head, "results": [r.to_json() for r in results]}) + "\n")
