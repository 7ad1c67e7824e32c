"""`testbed profile --roofline`: kernels by operations a byte and operations a second, under the limits of the machine.

A kernel's area is its share of the time. Kernels without floating-point operations have a panel of their own, by bytes
a second. FLOPs and bytes are those of the cost analysis: what a kernel must do, not what it did.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import plots
from .buffers_plot import bytes_text, shortened
from .graph_theme import Theme, theme_of

if TYPE_CHECKING:
    from ..benchmarks.suite.limits import Limits
    from ..profiling.report import Report, Step

LABELLED = 12
"""Kernels with a number in the plot and a line beside it: those that take the most time."""

LABEL_WIDTH, LABEL_HEIGHT = 14.0, 12.0
"""The room of a number in the plot, in points."""

APART = 1.35
"""The ratio from which two lines of a logarithmic axis have words of their own."""

COLOURS = {"legacy": "#d9730d", "mlir": "#3b82f6", "library": "#10a37f"}
OTHER = "#8b5cf6"
"""Colours by stack; both read well on light and on dark."""


class Point(NamedTuple):
    """A kernel. intensity: operations a byte. speed: operations a second; bandwidth: bytes a second. time: ns a run."""

    name: str
    stack: str
    intensity: float
    speed: float
    bandwidth: float
    time: float


Places = Sequence[tuple[float, float, Point]]


def points_of(report: Report) -> list[Point]:
    """The kernels and copies that took longer than a mark, the longest first: of shorter ones too little is known."""
    kinds = ("kernel", "copy")
    timed = [s for s in report.steps if s.kind in kinds and s.calls and s.bytes and s.own / s.calls > report.marginal]
    return sorted(map(_point, timed), key=lambda p: -p.time)


def _point(step: Step) -> Point:
    """A transcendental counts as one operation."""
    operations, seconds = step.flops + step.transcendentals, step.own / step.calls / 1e9
    return Point(
        step.name,
        step.stack or step.kind,
        operations / step.bytes,
        operations / seconds,
        step.bytes / seconds,
        step.own,
    )


def draw(report: Report, limits: Limits, target: Path, theme: str = "light") -> None:
    """Write the plot. The file appears complete or not at all. Raises InputError if it cannot be written."""
    plots.draw(lambda: figure_of(report, limits, theme_of(theme)), target)


def figure_of(report: Report, limits: Limits, theme: Theme) -> Any:
    """The plot as a matplotlib figure."""
    figure = plots.new_figure(theme)
    moving, roof = figure.subplots(1, 2, width_ratios=(1, 5))
    figure.subplots_adjust(left=0.07, right=0.74, top=0.92, bottom=0.09, wspace=0.22)
    for axes in (moving, roof):
        plots.colour(axes, theme)
        axes.set_yscale("log")
        axes.grid(True, which="major", color=theme.line, alpha=0.25, linewidth=0.5)
    points = points_of(report)
    whole = sum(p.time for p in points) or 1.0
    numbers = {id(p): n for n, p in enumerate(points[:LABELLED], 1)}
    _roof(roof, points, limits, whole, theme)
    _moving(moving, [p for p in points if not p.intensity], limits, whole, theme)
    title = f"{report.program}, {report.emitters}: kernels under the limits of this machine, {limits.threads} threads"
    figure.suptitle(title.replace(", 1 threads", ", 1 thread"), color=theme.text, fontsize=11)
    for axes, shown in ((moving, _places([p for p in points if not p.intensity])), (roof, _roof_places(points))):
        _number(axes, [(x, y, numbers[id(p)]) for x, y, p in shown if id(p) in numbers], theme)
    _beside(figure, points, whole, numbers, theme)
    return figure


def bandwidths(limits: Limits) -> dict[str, float]:
    """Bytes a second by name: of arrays of the best size, which the caches hold, and of the largest ones."""
    size, speed = max(limits.bandwidth, key=lambda row: row[1])
    return {f"{bytes_text(size)} in caches": speed, "memory": limits.bandwidth[-1][1]}


def _roof(axes: Any, all_points: Sequence[Point], limits: Limits, whole: float, theme: Theme) -> None:
    points = [p for p in all_points if p.intensity]
    peak = max(limits.flops.values())
    low = min([0.01, *(p.intensity / 2 for p in points)])
    high = max([100.0, *(p.intensity * 2 for p in points)])
    for (name, speed), style in zip(bandwidths(limits).items(), ("--", "-"), strict=True):
        bend = peak / speed
        xs = [low, bend, high] if bend < high else [low, high]
        axes.plot(xs, [min(x * speed, peak) for x in xs], style, color=theme.text, linewidth=1.1, alpha=0.8)
        words, box = f"{name}, {speed / 1e9:.1f} GB/s", {"facecolor": theme.page, "edgecolor": "none", "pad": 1}
        axes.text(low * 2, low * 1.6 * speed, words, color=theme.text, fontsize=8, va="top", bbox=box)
    for speed in limits.flops.values():
        axes.axhline(speed, color=theme.line, linewidth=0.8, linestyle=":")
    for speed, words in _peaks(limits):
        axes.text(high / 1.1, speed * 1.06, words, color=theme.text, fontsize=8, ha="right")
    _scatter(axes, _roof_places(points), whole, theme)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    floor = min([low * limits.bandwidth[-1][1], *(p.speed / 2 for p in points)])
    axes.set_ylim(floor, peak * 3)
    axes.set_xlabel("operations a byte")
    axes.set_ylabel("operations a second")


def _peaks(limits: Limits) -> list[tuple[float, str]]:
    """What stands at the lines of the fastest multiply-adds; lines that nearly meet share their words."""
    found: list[tuple[float, str]] = []
    for dtype, speed in sorted(limits.flops.items(), key=lambda row: row[1]):
        words = f"{dtype}, {speed / 1e9:.0f} GFLOP/s"
        if found and speed < APART * found[-1][0]:
            found[-1] = speed, f"{found[-1][1]}; {words}"
        else:
            found.append((speed, words))
    return found


def _roof_places(points: Sequence[Point]) -> Places:
    return [(p.intensity, p.speed, p) for p in points if p.intensity]


def _places(points: Sequence[Point]) -> Places:
    """Kernels without operations, side by side."""
    return [((n % 5 - 2) / 8, p.bandwidth, p) for n, p in enumerate(points)]


def _moving(axes: Any, points: Sequence[Point], limits: Limits, whole: float, theme: Theme) -> None:
    speeds = bandwidths(limits)
    slowest = min([min(speeds.values()) / 10, *(p.bandwidth / 2 for p in points)])
    axes.set_ylim(slowest, max([max(speeds.values()) * 3, *(p.bandwidth * 2 for p in points)]))
    for (name, speed), style in zip(speeds.items(), ("--", "-"), strict=True):
        axes.axhline(speed, color=theme.text, linewidth=1.1, alpha=0.8, linestyle=style)
        axes.text(-0.48, speed * 1.06, name.partition(" in ")[2] or name, color=theme.text, fontsize=8)
    _scatter(axes, _places(points), whole, theme)
    axes.set_xlim(-0.5, 0.5)
    axes.set_xticks([])
    axes.set_xlabel("no operations")
    axes.set_ylabel("bytes a second")


def _scatter(axes: Any, places: Places, whole: float, theme: Theme) -> None:
    for x, y, p in places:
        size = 20 + 900 * p.time / whole
        colour = COLOURS.get(p.stack, OTHER)
        axes.scatter([x], [y], s=size, color=colour, alpha=0.75, edgecolors=theme.page, linewidths=0.6, zorder=3)


def _number(axes: Any, marks: Sequence[tuple[float, float, int]], theme: Theme) -> None:
    """Write numbers at marks; one that would lie on another number goes beside its mark, with a line to it."""
    taken: list[tuple[float, float]] = []
    per_point = axes.figure.dpi / 72
    for x, y, number in marks:
        px, py = axes.transData.transform((x, y)) / per_point
        dx, dy = next(
            ((a, b) for a, b in _around() if all(_is_clear(px + a - u, py + b - v) for u, v in taken)), (0.0, 0.0)
        )
        taken.append((px + dx, py + dy))
        line = {"arrowstyle": "-", "color": theme.text, "alpha": 0.6, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 0}
        axes.annotate(
            str(number), (x, y), (dx, dy), textcoords="offset points", color=theme.text, fontsize=8, zorder=4,
            ha="center", va="center", arrowprops=line if (dx, dy) != (0.0, 0.0) else None,
        )  # fmt: skip


def _around() -> Iterator[tuple[float, float]]:
    """Distances from a mark, in points: none, then circles that grow."""
    yield 0.0, 0.0
    for ring in range(1, 12):
        for n in range(8 * ring):
            turn = 2 * math.pi * n / (8 * ring)
            yield LABEL_WIDTH * ring * math.cos(turn), LABEL_WIDTH * ring * math.sin(turn)


def _is_clear(dx: float, dy: float) -> bool:
    return abs(dx) >= LABEL_WIDTH or abs(dy) >= LABEL_HEIGHT


def _beside(figure: Any, points: Sequence[Point], whole: float, numbers: dict[int, int], theme: Theme) -> None:
    """The stacks with their colours, and the kernels with numbers."""
    y = 0.90
    for stack in dict.fromkeys(p.stack for p in points):
        figure.text(0.755, y, "●", color=COLOURS.get(stack, OTHER), fontsize=10)
        figure.text(0.775, y, stack, color=theme.text, fontsize=8.5)
        y -= 0.03
    y -= 0.015
    for p in points[:LABELLED]:
        figure.text(0.755, y, f"{numbers[id(p)]:>2}  {shortened(p.name, 34)}", color=theme.text, fontsize=8)
        speed = f"{p.speed / 1e9:.3g} GFLOP/s, " if p.intensity else ""
        words = f"{p.time / whole:.1%}, {speed}{p.bandwidth / 1e9:.3g} GB/s"
        figure.text(0.775, y - 0.022, words, color=theme.text, alpha=0.75, fontsize=7.5)
        y -= 0.055
    if len(points) > LABELLED:
        figure.text(0.755, y, f"… {len(points) - LABELLED} shorter ones", color=theme.text, fontsize=8)
