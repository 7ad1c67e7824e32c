"""The result of a conformance run: rows, counts by stack, and the JSON form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..formats.whole_files import write_text

STATUSES = ("passed", "failed", "undecided", "unsupported", "crashed")


@dataclass(frozen=True)
class CaseResult:
    """One case on one stack. status: one of STATUSES. seconds: None where the process died."""

    id: str
    stack: str
    status: str
    reason: str = ""
    max_abs: float | None = None
    max_rel: float | None = None
    max_ulp: float | None = None
    seconds: float | None = 0.0


def summary(rows: Sequence[CaseResult], stacks: Sequence[str]) -> dict[str, dict[str, int]]:
    """Counts by stack and status."""
    counts = Counter((r.stack, r.status) for r in rows)
    return {s: {status: counts[s, status] for status in STATUSES} for s in stacks}


def write_json(
    path: Path, rows: Sequence[CaseResult], stacks: Sequence[str], expected: Mapping[int, str] | None = None
) -> None:
    """Write the report as JSON. The file appears complete or not at all.

    expected: why a row (by number) was expected to fail; its case has the reason as `expected_failure`.
    """
    cases = [asdict(r) for r in rows]
    for number, reason in (expected or {}).items():
        cases[number]["expected_failure"] = reason
    report = {"stacks": summary(rows, stacks), "cases": cases}
    write_text(path, json.dumps(report, indent=1) + "\n")
