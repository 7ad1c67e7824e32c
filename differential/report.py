"""What a conformance run reports: rows, counts by stack, and the JSON form."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ..hlo.errors import InputError

STATUSES = ("passed", "failed", "unsupported", "crashed")


@dataclass(frozen=True)
class Row:
    """One case on one stack. status: passed, failed, unsupported or crashed."""

    id: str
    stack: str
    status: str
    reason: str = ""
    max_abs: float | None = None
    max_rel: float | None = None
    max_ulp: float | None = None
    seconds: float = 0.0


def summary(rows: Sequence[Row], stacks: Sequence[str]) -> dict[str, dict[str, int]]:
    """Counts by stack and status."""
    counts = Counter((r.stack, r.status) for r in rows)
    return {s: {status: counts[s, status] for status in STATUSES} for s in stacks}


def write_json(path: Path, rows: Sequence[Row], stacks: Sequence[str]) -> None:
    """The report; written to a temporary name and renamed."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_text(
            json.dumps({"stacks": summary(rows, stacks), "cases": [asdict(r) for r in rows]}, indent=1) + "\n",
            encoding="utf-8",
        )
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror or error}", remedy="give a writable path") from None
    finally:
        temporary.unlink(missing_ok=True)
