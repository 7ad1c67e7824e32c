"""Where the marks of the board's plots lie, for the template figures.html.jinja. Units are those of the viewBox."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...benchmarks.ab_history import Drift, Record, drift_of
from .ledger_view import LIMITS, LedgerView, RowView

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
    """A comparison on the plot. changed: its interval has nothing in common with the one before."""

    x: float
    y: float
    low: float
    high: float
    label: str
    changed: bool
    record: Record


@dataclass(frozen=True)
class Course:
    """The comparisons of one program, pair of stacks and machine, in their order."""

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
    left, top, width, height = HISTORY
    least = min(1.0, *(r.low for r in series)) / 1.03
    most = max(1.0, *(r.high for r in series)) * 1.03

    def y(value: float) -> float:
        return round(top + height * (1 - math.log(value / least) / math.log(most / least)), 2)

    step = width / max(len(series), 2)
    moments = []
    for number, (earlier, r) in enumerate(zip([None, *series], series, strict=False)):
        changed = earlier is not None and r.differs_from(earlier)
        x = round(left + step * (number + 0.5), 2)
        moments.append(Moment(x, y(r.ratio), y(r.low), y(r.high), r.commit or r.when, changed, r))
    ticks = tuple(Tick(y(value), f"{value:.2f}") for value in _spread(least, most))
    title = f"{series[0].program}: {series[0].b} / {series[0].a} on machine {series[0].machine}"
    return Course(title, HISTORY, tuple(moments), ticks, y(1.0), drift_of(series))


def _spread(least: float, most: float) -> list[float]:
    """Five values between two, evenly on a logarithmic axis."""
    return [least * (most / least) ** (n / 4) for n in range(5)]
