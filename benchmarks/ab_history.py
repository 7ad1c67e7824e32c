"""Comparisons over time: a file with one a line, what changed between them, and a plot of it."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from ..formats.documents import json_of
from ..formats.program import Program, read_text
from ..formats.whole_files import write_text, write_whole
from ..hlo.errors import InputError
from .compare import Comparison
from .suite.machine import commit, machine
from .suite.plot import check_name
from .tables import left, right, text_table

MOST_PLOTTED = 12
"""Series of a plot: the longest ones."""


@dataclass(frozen=True)
class Record:
    """A comparison that took place. digest: of the program's text. machine: its fingerprint. Ratios: b's to a's."""

    when: str
    commit: str
    machine: str
    program: str
    digest: str
    a: str
    b: str
    ratio: float
    low: float
    high: float
    compile_ratio: float
    memory_ratio: float

    @property
    def series(self) -> tuple[str, str, str, str]:
        """What the comparisons that may be compared with it have in common."""
        return self.digest, self.a, self.b, self.machine

    def differs_from(self, earlier: Record) -> bool:
        """Whether the intervals have nothing in common."""
        return self.low > earlier.high or self.high < earlier.low


def record_of(name: str, program: Program, found: Comparison) -> Record:
    """The record of a comparison that has just taken place, here."""
    digest = hashlib.sha256(program.text.encode()).hexdigest()[:12]
    measured = (found.ratio, found.low, found.high, found.compile_ratio, found.memory_ratio)
    when = datetime.now().isoformat(timespec="seconds")
    return Record(when, commit(), str(machine()["fingerprint"]), name, digest, found.a, found.b, *measured)


def read_history(path: Path) -> list[Record]:
    """The records of a file. Raises InputError with the line that is none."""
    records = []
    for number, line in enumerate(read_text(path).splitlines(), 1):
        try:
            values = json_of(line)
            records.append(Record(**{f.name: _checked(f.name, f.type, values[f.name]) for f in fields(Record)}))
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path}:{number}: no comparison of testbed ab: {type(error).__name__}: {error}",
                remedy="give a file that --history wrote",
            ) from None
    return records


def _checked(name: str, kind: object, value: Any) -> Any:
    wanted = str if kind == "str" else (int, float)
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}")
    return value


def append(path: Path, records: Iterable[Record]) -> None:
    """Add records to a history file, which is replaced as a whole; a file of another kind is refused."""
    former = read_history(path) if path.exists() else []
    write_text(path, "".join(json.dumps(asdict(r), separators=(",", ":")) + "\n" for r in [*former, *records]))


def by_series(records: Sequence[Record]) -> list[list[Record]]:
    """The records of each program, pair of stacks and machine, in their order."""
    found: dict[tuple[str, str, str, str], list[Record]] = {}
    for record in records:
        found.setdefault(record.series, []).append(record)
    return list(found.values())


@dataclass(frozen=True)
class Drift:
    """The last ratio of a series relative to the first. Small steps add up that no comparison with the one before
    shows. low, high: the furthest that both intervals allow.
    """

    since: str
    ratio: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        return self.low > 1 or self.high < 1

    def __str__(self) -> str:
        return f"since {self.since}: {self.ratio:.3f} [{self.low:.3f}, {self.high:.3f}]{'*' * self.is_sure}"


def drift_of(series: Sequence[Record]) -> Drift | None:
    """The drift of a series; None for a single comparison."""
    if len(series) < 2:
        return None
    first, last = series[0], series[-1]
    ratio = last.ratio / first.ratio
    return Drift(first.commit or first.when, ratio, last.low / first.high, last.high / first.low)


def table(records: Sequence[Record], width: int | None = None) -> str:
    """A table for each series; * where the interval has nothing in common with the one before. Then its drift."""
    texts = []
    for series in by_series(records):
        rows = []
        for earlier, r in zip([None, *series], series, strict=False):
            changed = "*" if earlier is not None and r.differs_from(earlier) else ""
            ratio = f"{r.ratio:.3f} [{r.low:.3f}, {r.high:.3f}]{changed}"
            rows.append((r.when, r.commit, ratio, f"{r.compile_ratio:.2f}", f"{r.memory_ratio:.2f}"))
        columns = [left("when"), left("commit"), left("run time [95%]"), right("compile"), right("memory")]
        heading = f"{series[0].program}: {series[0].b} / {series[0].a} on machine {series[0].machine}"
        drift = drift_of(series)
        texts.append(f"{heading}\n{text_table(columns, rows, width)}" + (f"\n{drift}" if drift else ""))
    return "\n\n".join(texts)


def plot(records: Sequence[Record], path: Path) -> None:
    """Write a picture of the ratios over time, with their intervals. Raises InputError if there is nothing to show."""
    check_name(path)
    shown = sorted(by_series(records), key=len, reverse=True)[:MOST_PLOTTED]
    if not shown:
        raise InputError("nothing to plot: the history is empty", remedy="compare something with --history FILE first")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 2.2 * len(shown) + 0.6), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    for axes, series in zip(figure.subplots(len(shown), 1, squeeze=False)[:, 0], shown, strict=True):
        middles = [r.ratio for r in series]
        errors = [[r.ratio - r.low for r in series], [r.high - r.ratio for r in series]]
        axes.errorbar(range(len(series)), middles, yerr=errors, fmt="o-", color="#2f6db3", capsize=3, linewidth=1)
        axes.axhline(1, color="#222222", linewidth=1)
        axes.set_xticks(range(len(series)), [r.commit or r.when for r in series], rotation=30, ha="right", fontsize=7)
        axes.set_title(f"{series[0].program}: {series[0].b} / {series[0].a}", fontsize=9, loc="left")
        axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=130)
    write_whole(path, lambda file: file.write(content.getvalue()))
