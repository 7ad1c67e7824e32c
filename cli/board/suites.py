"""Runs of the benchmark suite over time, as the board shows them: geometric means by contestant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...benchmarks.suite.figures import geomean
from ...benchmarks.suite.report import base_of, ratio_of
from ...benchmarks.suite.results import Report


@dataclass(frozen=True)
class SuiteRun:
    """A run. means: by contestant, the geometric mean of its times as multiples of the base's, and of how many."""

    when: str
    commit: str
    machine: str
    base: str
    threads: int
    means: tuple[tuple[str, float | None, int], ...]


def suite_runs(reports: Sequence[Report]) -> list[SuiteRun]:
    """The runs in their order, one for each number of threads."""
    return [_run(report, threads) for report in reports for threads in sorted({row.threads for row in report.rows})]


def _run(report: Report, threads: int) -> SuiteRun:
    base, rows = base_of(report), [row for row in report.rows if row.threads == threads]
    means = []
    for column in report.columns:
        if column != base:
            ratios = [ratio for row in rows if (ratio := ratio_of(row, column, base)) is not None]
            means.append((column, geomean(ratios), len(ratios)))
    machine = str(report.machine.get("fingerprint", ""))
    return SuiteRun(report.when, report.commit, machine, base, threads, tuple(means))
