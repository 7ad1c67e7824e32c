"""Where the marks of the board's plots lie, for the template figures.html.jinja. Units are those of the viewBox."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...benchmarks.ab_history import Drift, Record, drift_of
from .ledger_view import LIMITS, LedgerView, RowView
from .suites import SuiteRun

WIDTH, ROW, GAP, TOP, BOTTOM = 1120, 18, 8, 30, 34
"""Of the plot of rows: its width, a row, between units, above and below the panels."""

NAMES = 205
"""Where the names of rows end."""

PANELS = ((225, 540), (805, 290))
"""(left, width) of the panels for run time and compile time."""

FEWEST, MOST = 0.5, 2.0
"""Ratios at the ends of the axes; what lies beyond is drawn at the end, with its number."""

TICKS = (0.5, 0.7, 1.0, 1.4, 2.0)


@dataclass(frozen=True)
class Tick:
    at: float
    label: str


@dataclass(frozen=True)
class Mark:
    """A row of the plot. low, at, high: of run time on the x axis. beyond: the number, if it lies off the axis.

    compile: where the ratio of compile times lies, and its number if that is off the axis.
    """

    y: float
    label: str
    href: str
    state: str
    glyph: str
    tip: str
    low: float
    at: float
    high: float
    beyond: str
    compile: float
    compile_beyond: str
    band: bool


@dataclass(frozen=True)
class Parity:
    """The plot of all rows with evidence. ticks and limits: of the two panels."""

    width: int
    names: int
    height: float
    marks: tuple[Mark, ...]
    panels: tuple[tuple[int, int], ...]
    ticks: tuple[tuple[Tick, ...], ...]
    limits: tuple[float, float]
    ones: tuple[float, float]


def parity(view: LedgerView) -> Parity:
    """Run time and compile time of the new emitters as multiples of the old ones', a row each."""
    rows = [row for row in view.rows if row.evidence is not None]
    y, unit, number, marks = float(TOP), "", 0, list[Mark]()
    for row in rows:
        if unit and row.unit != unit:
            y += GAP
            number += 1
        unit = row.unit
        marks.append(_mark(row, y, number % 2 == 0))
        y += ROW
    ticks = tuple(tuple(Tick(_ratio(t, panel), f"{t:g}") for t in TICKS) for panel in PANELS)
    limits = (_ratio(LIMITS.mean, PANELS[0]), _ratio(LIMITS.compile, PANELS[1]))
    ones = (_ratio(1, PANELS[0]), _ratio(1, PANELS[1]))
    return Parity(WIDTH, NAMES, y + BOTTOM, tuple(marks), PANELS, ticks, limits, ones)


def _mark(row: RowView, y: float, band: bool) -> Mark:
    e = row.evidence
    assert e is not None
    tip = (
        f"{row.name}, {row.state}: run time {e.ratio:.2f} (95% interval {e.low:.2f} to {e.high:.2f}), "
        f"compile time {e.compile_ratio:.2f}, memory {e.memory_ratio:.2f}"
    )
    low, at, high = (_ratio(v, PANELS[0]) for v in (e.low, e.ratio, e.high))
    return Mark(
        y,
        row.name.removesuffix(".host"),
        f"index.html#{row.id}",
        row.state,
        row.glyph,
        tip,
        low,
        at,
        high,
        _beyond(e.ratio),
        _ratio(e.compile_ratio, PANELS[1]),
        _beyond(e.compile_ratio),
        band,
    )


def _beyond(value: float) -> str:
    return "" if FEWEST <= value <= MOST else f"{value:.2g}"


def _ratio(value: float, panel: tuple[int, int], ends: tuple[float, float] = (FEWEST, MOST)) -> float:
    """The x of a ratio, on a logarithmic axis; at its end where the ratio lies beyond."""
    (left, width), (least, most) = panel, ends
    inside = min(max(value, least), most)
    return round(left + width * math.log(inside / least) / math.log(most / least), 2)


# -- an interval in a cell --------------------------------------------------------------------------------------------
SPARK, SPARK_ENDS = (0, 130), (0.7, 1.4)
"""(left, width) of the interval in a cell of the matrix, and the ratios at its ends."""


@dataclass(frozen=True)
class Spark:
    low: float
    at: float
    high: float
    one: float


def spark(row: RowView) -> Spark | None:
    """The run time's interval as a line; None without evidence."""
    e = row.evidence
    if e is None:
        return None
    low, at, high, one = (_ratio(v, SPARK, SPARK_ENDS) for v in (e.low, e.ratio, e.high, 1.0))
    return Spark(low, at, high, one)


# -- history ----------------------------------------------------------------------------------------------------------
HISTORY = (60, 20, 620, 160)
"""Left, top, width and height of a plot over time."""


@dataclass(frozen=True)
class Moment:
    """A ratio on the plot. tip: its numbers in words. changed: its interval has nothing in common with the one before.

    record: the comparison; None for a run of the suite.
    """

    x: float
    y: float
    low: float
    high: float
    label: str
    changed: bool
    tip: str
    record: Record | None = None


@dataclass(frozen=True)
class Course:
    """The comparisons of one program, pair of stacks and machine, in their order; or runs of the suite."""

    title: str
    box: tuple[int, int, int, int]
    moments: tuple[Moment, ...]
    ticks: tuple[Tick, ...]
    one: float
    drift: Drift | None

    @property
    def changes(self) -> int:
        return sum(m.changed for m in self.moments)

    @property
    def line(self) -> str:
        return " ".join(f"{m.x},{m.y}" for m in self.moments)


def course(series: Sequence[Record]) -> Course:
    """A plot of a series of comparisons."""
    axes = _Axes(min(r.low for r in series), max(r.high for r in series), len(series))
    moments = []
    for number, (earlier, r) in enumerate(zip([None, *series], series, strict=False)):
        changed = earlier is not None and r.differs_from(earlier)
        tip = f"{r.when}, {r.commit}: {r.ratio:.3f} [{r.low:.3f}, {r.high:.3f}]{', changed' * changed}"
        places = axes.x(number), axes.y(r.ratio), axes.y(r.low), axes.y(r.high)
        moments.append(Moment(*places, r.commit or r.when, changed, tip, r))
    title = f"{series[0].program}: {series[0].b} / {series[0].a} on machine {series[0].machine}"
    return Course(title, HISTORY, tuple(moments), axes.ticks, axes.y(1.0), drift_of(series))


def suite_courses(runs: Sequence[SuiteRun]) -> list[Course]:
    """A plot of the means of each contestant, on one machine and number of threads, that has two runs or more."""
    found: dict[tuple[str, str, str, int], list[tuple[SuiteRun, float]]] = {}
    for run in runs:
        for name, mean, _ in run.means:
            if mean is not None:
                found.setdefault((name, run.base, run.machine, run.threads), []).append((run, mean))
    return [_suite_course(key, series) for key, series in found.items() if len(series) > 1]


def _suite_course(key: tuple[str, str, str, int], series: Sequence[tuple[SuiteRun, float]]) -> Course:
    name, base, machine, threads = key
    axes = _Axes(min(mean for _, mean in series), max(mean for _, mean in series), len(series))
    moments = []
    for number, (run, mean) in enumerate(series):
        y, tip = axes.y(mean), f"{run.when}, {run.commit}: {mean:.3f}"
        moments.append(Moment(axes.x(number), y, y, y, run.commit or run.when, False, tip))
    title = f"Suite: {name} / {base} on machine {machine}, {threads} thread{'s' * (threads > 1)}"
    return Course(title, HISTORY, tuple(moments), axes.ticks, axes.y(1.0), None)


class _Axes:
    """Where ratios lie on a plot over time: 1 is always on it, and the axis is logarithmic."""

    def __init__(self, low: float, high: float, count: int):
        self.least, self.most, self.count = min(low, 1.0) / 1.03, max(high, 1.0) * 1.03, count

    def x(self, number: int) -> float:
        left, _, width, _ = HISTORY
        return round(left + width / max(self.count, 2) * (number + 0.5), 2)

    def y(self, value: float) -> float:
        _, top, _, height = HISTORY
        return round(top + height * (1 - math.log(value / self.least) / math.log(self.most / self.least)), 2)

    @property
    def ticks(self) -> tuple[Tick, ...]:
        return tuple(Tick(self.y(value), f"{value:.2f}") for value in _spread(self.least, self.most))


def _spread(least: float, most: float) -> list[float]:
    """Five values between two, evenly on a logarithmic axis."""
    return [least * (most / least) ** (n / 4) for n in range(5)]
