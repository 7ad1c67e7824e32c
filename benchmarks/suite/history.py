"""Runs of the suite over time: a file with one report a line, and the comparison of a report with an earlier one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ...formats.program import read_text
from ...formats.whole_files import write_text
from ...hlo.errors import InputError
from ..tables import left, right, text_table
from .figures import geomean, wrap
from .report import scientific
from .results import Report, Row, read_reports
from .rivals import OURS

RESAMPLES = 1000
GREW = 2.0
"""An error that is more than GREW times the earlier one, and more than SMALL, has grown."""
SMALL = 1e-15


@dataclass(frozen=True)
class Change:
    """How a contestant's time on a workload changed: later / earlier, with a 95% bootstrap interval of both medians.

    relative: the times are multiples of the base's in the same run, so that a slower machine does not matter.
    """

    name: str
    threads: int
    column: str
    median: float
    low: float
    high: float
    relative: bool

    @property
    def is_beyond_noise(self) -> bool:
        return self.low > 1 or self.high < 1

    def __str__(self) -> str:
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]{'*' if self.is_beyond_noise else ' '}"


def append(path: Path, report: Report) -> None:
    """Add a report to a history file, which is replaced as a whole."""
    former = read_text(path) if path.exists() else ""
    if former:
        read_reports(path)  # a file of another kind is refused, not overwritten
    line = json.dumps(report.as_json(), separators=(",", ":"))
    write_text(path, former + ("" if not former or former.endswith("\n") else "\n") + line + "\n")


def earlier(against: str, history: Path | None, fingerprint: str) -> Report:
    """The report to compare with: the latest of a file, of this machine if there is one. LAST means the history file.

    Raises InputError if there is none.
    """
    if against == "LAST" and history is None:
        raise InputError("--against LAST needs a history", remedy="add --history FILE")
    path = history if against == "LAST" and history is not None else Path(against)
    reports = read_reports(path)
    if not reports:
        raise InputError(f"{path}: holds no report", remedy="run the suite once with --history")
    same = [r for r in reports if r.machine.get("fingerprint") == fingerprint]
    return (same or reports)[-1]


def changes(now: Report, then: Report) -> list[Change]:
    """The changes of every contestant but the base on every workload that both reports have, the slowest first."""
    rows = {(row.name, row.threads): row for row in then.rows}
    found = []
    for row in now.rows:
        before = rows.get((row.name, row.threads))
        for column in row.columns if before is not None else ():
            assert before is not None
            change = _change(row, before, column, _shared_base(now, then, column))
            if change is not None:
                found.append(change)
    return sorted(found, key=lambda c: -c.median)


def _shared_base(now: Report, then: Report, column: str) -> str | None:
    """xla, where it is the same version in both: our times are compared as multiples of its times."""
    same = now.versions.get("jaxlib") is not None and now.versions.get("jaxlib") == then.versions.get("jaxlib")
    return "xla" if same and column != "xla" else None


def _change(now: Row, then: Row, column: str, base: str | None) -> Change | None:
    if now.time(column) is None or then.time(column) is None:
        return None
    if base is not None and (now.time(base) is None or then.time(base) is None):
        base = None
    later, former = (_samples(row, column, base) for row in (now, then))
    generator = np.random.default_rng(0)

    def medians(values: np.ndarray) -> np.ndarray:
        return np.median(values[generator.integers(0, len(values), (RESAMPLES, len(values)))], axis=1)

    low, high = np.percentile(medians(later) / medians(former), [2.5, 97.5])
    middle = float(np.median(later) / np.median(former))
    return Change(now.name, now.threads, column, middle, float(low), float(high), base is not None)


def _samples(row: Row, column: str, base: str | None) -> np.ndarray:
    rounds = np.array(row.columns[column].rounds)
    if base is None:
        return rounds
    others = np.array(row.columns[base].rounds)
    shared = min(len(rounds), len(others))  # a slow contestant sits out the last rounds
    return rounds[:shared] / others[:shared]


def grown_errors(now: Report, then: Report) -> list[str]:
    """A line for each error of our stacks that has grown."""
    rows = {(row.name, row.threads): row for row in then.rows}
    lines = []
    for row in now.rows:
        before = rows.get((row.name, row.threads))
        for column in OURS if before is not None else ():
            assert before is not None
            pair = [r.columns[column].error if column in r.columns else None for r in (row, before)]
            if pair[0] is not None and pair[1] is not None and pair[0] > max(GREW * pair[1], SMALL):
                lines.append(f"{row.name}: {column}: error {scientific(pair[1])} -> {scientific(pair[0])}")
    return list(dict.fromkeys(lines))


def as_text(now: Report, then: Report, found: Sequence[Change]) -> str:
    """The comparison as a table, a workload a line, with geometric means."""
    since = f"Change since {then.when}, commit {then.commit or 'unknown'}"
    title = [wrap(f"{since}: later / earlier time, with its 95% interval; *: beyond noise.")]
    if now.machine.get("fingerprint") != then.machine.get("fingerprint"):
        title.append("The earlier run was made on another machine.")
    relative = {c.relative for c in found}
    if True in relative:
        title.append("Times of our stacks are multiples of XLA's in the same run.")
    columns = [c for c in now.columns if any(f.column == c for f in found)]
    shown = [c for c in columns if c in OURS] or columns
    cells = {(c.name, c.threads, c.column): str(c) for c in found}
    keys = list(dict.fromkeys((c.name, c.threads) for c in found if c.column in shown))
    rows = [[name, str(threads), *(cells.get((name, threads, c), "- ") for c in shown)] for name, threads in keys]
    means = [geomean(c.median for c in found if c.column == column) for column in shown]
    rows.append(["geometric mean", "", *("-" if m is None else f"{m:.2f}" for m in means)])
    table = text_table([left("workload"), right("threads"), *map(right, shown)], rows)
    errors = grown_errors(now, then)
    return "\n".join([*title, "", table, *(["", "Errors that grew:", *errors] if errors else [])])
