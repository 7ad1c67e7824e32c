"""What a run of the suite found, as values that are written to and read from JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from ...formats.documents import json_of
from ...formats.program import read_text
from ...hlo.errors import InputError
from .limits import Limits

SCHEMA = 1


@dataclass
class Figures:
    """One contestant on one workload. Times in seconds; None where a figure is not known.

    status: 'ok'; 'absent' if it cannot run it here; 'failed' if it should have, with the reason. rounds: mean time of a
    run, per round. temporary_bytes: the arena of a run. growth_bytes: growth of resident memory in the first run, fresh
    results included; compile_bytes: in the first compilation. stages: seconds of a compilation by stage; threads add
    up. error, worst_error: accuracy.Error.
    """

    status: str = "failed"
    reason: str = ""
    rounds: list[float] = field(default_factory=list)
    compile_seconds: list[float] = field(default_factory=list)
    temporary_bytes: int | None = None
    growth_bytes: int | None = None
    error: float | None = None
    worst_error: float | None = None
    compile_bytes: int | None = None
    stages: dict[str, float] = field(default_factory=dict)

    @property
    def run_median(self) -> float | None:
        return median(self.rounds) if self.rounds else None

    @property
    def run_minimum(self) -> float | None:
        return min(self.rounds) if self.rounds else None

    @property
    def compile_median(self) -> float | None:
        return median(self.compile_seconds) if self.compile_seconds else None

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {
            "run_median": self.run_median,
            "run_minimum": self.run_minimum,
            "compile_median": self.compile_median,
        }


@dataclass
class Row:
    """One workload at one number of threads. failure: why nothing was measured. no_error: why errors are missing."""

    name: str
    group: str
    threads: int
    columns: dict[str, Figures] = field(default_factory=dict)
    failure: str = ""
    no_error: str = ""
    bytes_touched: int | None = None
    flops: float | None = None
    double: bool = False

    def time(self, column: str, minimum: bool = False) -> float | None:
        """Seconds of a run: the median of the rounds, or their minimum."""
        figures = self.columns.get(column)
        if figures is None or figures.status != "ok":
            return None
        return figures.run_minimum if minimum else figures.run_median

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"columns": {name: figures.as_json() for name, figures in self.columns.items()}}


@dataclass
class Report:
    """A whole run. machine, versions: machine.py. limits: by number of threads. interrupted: it was ended by Ctrl-C."""

    when: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    commit: str
    columns: tuple[str, ...]
    options: Mapping[str, Any]
    limits: dict[int, Limits] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    interrupted: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            **{k: v for k, v in asdict(self).items() if k not in ("rows", "limits")},
            "columns": list(self.columns),
            "limits": {str(threads): asdict(limits) for threads, limits in self.limits.items()},
            "workloads": [row.as_json() for row in self.rows],
        }

    @staticmethod
    def from_json(values: Mapping[str, Any]) -> Report:
        """Raises KeyError or TypeError if the values are no report."""
        if values["schema"] != SCHEMA:
            raise KeyError(f"schema {values['schema']}")
        return Report(
            **{k: values[k] for k in ("when", "machine", "versions", "commit", "options", "interrupted")},
            columns=tuple(values["columns"]),
            limits={int(n): Limits.from_json(limits) for n, limits in values["limits"].items()},
            rows=[_row(row) for row in values["workloads"]],
        )


def _row(values: Mapping[str, Any]) -> Row:
    computed = ("run_median", "run_minimum", "compile_median")
    columns = {
        name: Figures(**{k: v for k, v in figures.items() if k not in computed})
        for name, figures in values["columns"].items()
    }
    return Row(**{**values, "columns": columns})


def read_reports(path: Path) -> list[Report]:
    """The reports in a file: one JSON object (--json), or one per line (--history). Raises InputError."""
    text = read_text(path)
    try:
        try:
            return [Report.from_json(json_of(text))]
        except json.JSONDecodeError:
            return [Report.from_json(json_of(line)) for line in text.splitlines() if line.strip()]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: not a report of the suite ({type(error).__name__}: {error})",
            remedy="give a file that --json or --history wrote",
        ) from None
