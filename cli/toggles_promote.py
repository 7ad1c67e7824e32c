"""`testbed toggles promote`: the gates of rows, one after the other; what has evidence of this commit is left out."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .output import say, table, wrapped

if TYPE_CHECKING:
    from ..differential.exhaustive import Result
    from ..migration.ledger import Evidence, Ledger, Row
    from ..migration.parity import Speed
    from .toggles_checks import Check


@dataclass(frozen=True)
class Extras:
    """What a gate asks besides. drawn: how many drawn cases."""

    checks: Sequence[Check]
    drawn: int


def promote_rows(
    file: Path,
    names: Sequence[str],
    cases: int | None,
    corpora: Sequence[Path],
    exhaustive: Path | None,
    dry_run: bool,
    patience: float,
    extras: Extras,
) -> int:
    """The exit status: 1 if a gate refused its row. names: none for all rows that have no evidence of this commit."""
    from ..migration.ledger import refuse_record
    from ..migration.ledger_file import read_ledger
    from ..migration.units import row_names

    refuse_record(read_ledger(file))
    if not dry_run:
        refuse_changed_files()
    results = _results(exhaustive, read_ledger(file).stacks) if exhaustive is not None else None
    wanted = [read_ledger(file).row(name).name for name in names] if names else _left(file, row_names())
    if not names:
        say(f"{len(wanted)} rows have no evidence of this commit")
    refused = [name for name in wanted if _promote(file, name, cases, corpora, results, dry_run, patience, extras)]
    if len(wanted) > 1:
        say(wrapped(f"{len(wanted) - len(refused)} of {len(wanted)} passed; refused: {', '.join(refused) or 'none'}"))
    return 1 if refused else 0


def refuse_changed_files() -> None:
    """Raise InputError where the checkout has changes that are in no commit, so that evidence could not name what was
    measured.
    """
    from ..hlo.errors import InputError
    from .toggles_gate import UNCOMMITTED, commit

    if commit() == UNCOMMITTED:
        raise InputError(
            "the checkout has changes that are in no commit, so evidence could not say what was measured",
            remedy="commit them first (git status lists them), or give --dry-run",
        )


def _left(file: Path, names: Sequence[str]) -> list[str]:
    """The rows without evidence of the commit and the versions of now."""
    from ..migration.ledger_file import read_ledger
    from .toggles_gate import UNCOMMITTED, UNKNOWN, commit, versions

    ledger, now = read_ledger(file), (commit(), versions())
    if now[0] in (UNCOMMITTED, UNKNOWN):
        return list(names)
    return [n for n in names if (e := ledger.row(n).evidence) is None or (e.commit, e.versions) != now]


def _promote(
    file: Path,
    name: str,
    cases: int | None,
    corpora: Sequence[Path],
    results: Sequence[Result] | None,
    dry_run: bool,
    patience: float,
    extras: Extras,
) -> bool:
    """Run the gate of a row, and write what it says. Returns whether it refuses the row."""
    from ..migration.ledger import judge
    from ..migration.ledger_file import read_ledger
    from ..migration.parity import PARITY
    from .progress import progress
    from .toggles_gate import run_gate, suites

    ledger = read_ledger(file)
    before, count = ledger.row(name), cases or PARITY.cases
    with progress(count) as advance:
        evidence, speeds = run_gate(
            before,
            count,
            [*suites(), *corpora],
            on_case=advance,
            stacks=ledger.stacks,
            patience=patience,
            checks=extras.checks,
            drawn=extras.drawn,
        )
    if results is not None:
        evidence = with_every_input(before, evidence, results)
    _report(speeds)
    if not dry_run:
        change_row(file, name, lambda ledger, today: judge(ledger, name, evidence))
    say(wrapped(f"{name}: {'refused: ' + evidence.refused if evidence.refused else 'passed'}"))
    return bool(evidence.refused)


def change_row(file: Path, name: str, change: Callable[[Ledger, datetime.date], Ledger]) -> None:
    """Change a row of the ledger in a file, and say what became of its state."""
    from ..migration.ledger_file import change_ledger, read_ledger

    before = read_ledger(file).row(name)
    after = change_ledger(file, lambda ledger: change(ledger, datetime.date.today())).row(name)
    held = f", held back until {after.hold.until}" if after.hold else ""
    if after != before:
        kept = before.state == after.state
        say(f"{after.name}: {after.state if kept else f'{before.state} → {after.state}'}{held}")


def _report(speeds: Sequence[Speed]) -> None:
    from ..benchmarks.tables import left, right

    rows = [
        [s.name, f"{s.ratio:.2f} [{s.low:.2f}, {s.high:.2f}]", f"{s.compile_ratio:.2f}", f"{s.memory_ratio:.2f}"]
        for s in speeds
    ]
    say(table([left("new to old"), left("run [95%]"), right("compile"), right("memory")], rows))


def _results(file: Path, of: Sequence[str]) -> list[Result]:
    """The results of `testbed exhaustive` in a file. Raises InputError for those of other stacks or another commit."""
    from ..hlo.errors import InputError
    from .exhaustive import read_commit, read_results
    from .toggles_gate import commit

    stacks, results = read_results(file)
    if not {"evaluator", *of} <= set(stacks):
        remedy = f"run testbed exhaustive on evaluator,{','.join(of)}"
        raise InputError(f"{file}: results of {', '.join(stacks)}", remedy=remedy)
    if read_commit(file) != commit():
        remedy = "run testbed exhaustive again, with a new file"
        raise InputError(f"{file}: results of {read_commit(file)}, not of {commit()}", remedy=remedy)
    return results


def with_every_input(row: Row, evidence: Evidence, results: Sequence[Result]) -> Evidence:
    """The evidence of a row with what ran on every input; refused where a pair of the row is wrong on some input."""
    from ..differential.exhaustive import complete
    from ..hlo.opset import OPSET
    from ..migration.units import CLASSES, UNITS

    known = complete(results)
    pairs = [(op, d) for op in UNITS[row.unit] for d in CLASSES[row.dtypes] if op in OPSET and d in OPSET[op].dtypes]
    right = sum(known.get(pair, False) for pair in pairs)
    wrong = sorted(f"{op.value} {d.value}" for op, d in pairs if known.get((op, d)) is False)
    refused = "; ".join(filter(None, [evidence.refused, f"wrong on some input: {', '.join(wrong)}" if wrong else ""]))
    kind = "exhaustive" if pairs and right == len(pairs) else evidence.kind
    return replace(evidence, kind=kind, every_input=right, pairs=len(pairs), refused=refused)
