"""A plot of the arena over time: one rectangle per live range of a slice, and below it the number of live bytes.

A rectangle has a label where it has room for one, across or upright, shortened to its length. The largest slices stand
beside the plot with their colours and sizes.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from . import plots
from .graph_theme import Theme, theme_of

if TYPE_CHECKING:
    from ..planning.buffer_report import BufferReport

LISTED = 14
"""The number of slices, largest first, beside the plot."""

FONT, CHARACTER, LEAST = 7.0, 0.62, 4
"""Size of labels in points, width of a character relative to that, and the fewest characters of a label."""

COLOURS = ("tab20", "tab20b")
"""Names of matplotlib's sequences of colours, lighter ones first in the light theme."""


class Rectangle(NamedTuple):
    """A live range in the arena. x, width: schedule steps. y, height: bytes. names: of its values."""

    x: float
    y: float
    width: float
    height: float
    names: str


def draw(report: BufferReport, target: Path, theme: str = "light") -> None:
    """Write the plot. The file appears complete or not at all. Raises InputError if it cannot be written."""
    plots.draw(lambda: figure_of(report, theme_of(theme)), target)


def figure_of(report: BufferReport, theme: Theme) -> Any:
    """The plot as a matplotlib figure."""
    figure = plots.new_figure(theme)
    arena, alive = figure.subplots(2, 1, sharex=True, height_ratios=(5, 1))
    figure.subplots_adjust(left=0.07, right=0.72, top=0.94, bottom=0.07, hspace=0.05)
    for axes in (arena, alive):
        plots.colour(axes, theme)
        axes.yaxis.set_major_formatter(lambda value, _: bytes_text(value))
    _arena(arena, report, theme)
    _alive(alive, report, theme)
    return figure


def bytes_text(number: float) -> str:
    """Bytes with a decimal prefix: 1536 → 1.54 kB."""
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= scale:
            return f"{number / scale:.3g} {prefix}B"
    return f"{number:g} B"


def rectangles(report: BufferReport) -> list[Rectangle]:
    """Every live range in the arena."""
    from ..planning.plan import AllocationKind

    found: list[Rectangle] = []
    for a in report.plan.assignment.allocations:
        if a.kind is AllocationKind.TEMPORARY:
            for r in report.ranges_of(a.index):
                names = ", ".join(report.names[r]) or "a value on its way round a cycle of copies"
                found += [
                    Rectangle(start / 2, r.slice.offset, (stop - start) / 2, r.slice.size, names)
                    for start, stop in r.segments
                ]
    return found


def _arena(axes: Any, report: BufferReport, theme: Theme) -> None:
    from matplotlib import color_sequences
    from matplotlib.patches import Rectangle as Patch

    found = sorted(rectangles(report), key=lambda r: (-r.height, -r.width, r.x, r.y))
    colours = [c for name in COLOURS for c in color_sequences[name]]
    if theme.page == theme_of("light").page:
        colours = [_lighter(c) for c in colours]
    slices: dict[tuple[float, str], Any] = {}
    for r in found:
        colour = colours[len(slices) % len(colours)]
        patch = Patch((r.x, r.y), r.width, r.height, facecolor=colour, edgecolor=theme.page, linewidth=0.4)
        axes.add_patch(patch)
        slices.setdefault((r.y, r.names), patch)
    axes.set_xlim(0, report.buffers.timeline.length + 1)
    axes.set_ylim(0, max(report.arena, 1) * 1.03)
    bound = axes.axhline(report.bound, color="#e5484d", linewidth=0.9, linestyle="--")
    top = axes.axhline(report.arena, color=theme.text, linewidth=0.9)
    axes.set_ylabel("byte of the arena")
    axes.set_title(f"{report.plan.module.name}: arena {_distance(report)}", color=theme.text, fontsize=11)
    for r, patch in zip(found, axes.patches, strict=True):
        _label(axes, r, "#ffffff" if _is_dark(patch.get_facecolor()) else "#1b1f24")
    shown = list(slices.items())[:LISTED]
    sizes = {(r.y, r.names): r.height for r in found}
    rows = [(top, f"arena: {bytes_text(report.arena)}"), (bound, f"most bytes alive: {bytes_text(report.bound)}")]
    rows += [(patch, f"{bytes_text(sizes[key])}  {shortened(key[1], 34)}") for key, patch in shown]
    if len(slices) > LISTED:
        rows.append((Patch((0, 0), 0, 0, alpha=0), f"… {len(slices) - LISTED} smaller slices"))
    axes.legend(
        [handle for handle, _ in rows],
        [text for _, text in rows],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0,
        fontsize=8,
        facecolor=theme.page,
        edgecolor=theme.line,
        labelcolor=theme.text,
        title="largest slices",
        title_fontproperties={"size": 8},
    ).get_title().set_color(theme.text)


def _distance(report: BufferReport) -> str:
    return "as small as the bytes alive" if not report.excess else f"{report.excess:.1%} above the bytes alive"


def _lighter(colour: tuple[float, float, float]) -> tuple[float, ...]:
    return tuple(0.45 + 0.55 * part for part in colour[:3])


def _is_dark(colour: Any) -> bool:
    red, green, blue = colour[:3]
    return bool(0.299 * red + 0.587 * green + 0.114 * blue < 0.5)


def shortened(text: str, most: int) -> str:
    """The text in at most as many characters; what is missing is in the middle, because names differ at both ends."""
    if len(text) <= most:
        return text
    tail = (most - 1) // 3
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def _label(axes: Any, r: Rectangle, colour: str) -> None:
    """Write the names into a rectangle that has room for them: across, or upright where they are shortened less."""
    (x0, y0), (x1, y1) = axes.transData.transform([(r.x, r.y), (r.x + r.width, r.y + r.height)])
    points = 72 / axes.figure.dpi
    across, up = (x1 - x0) * points - 3, (y1 - y0) * points - 2
    ways = [(across, up, 0), (up, across, 90)]
    rooms = [(min(int(length / (FONT * CHARACTER)), len(r.names)), -angle) for length, height, angle in ways
             if height >= FONT * 1.25]  # fmt: skip
    room, angle = max(rooms, default=(0, 0))
    if room >= min(LEAST, len(r.names)):
        place = {"x": r.x + r.width / 2, "y": r.y + r.height / 2, "ha": "center", "va": "center", "rotation": -angle}
        axes.text(s=shortened(r.names, room), fontsize=FONT, color=colour, clip_on=True, **place)


def _alive(axes: Any, report: BufferReport, theme: Theme) -> None:
    changes: dict[float, float] = {0.0: 0.0}
    for r in rectangles(report):
        changes[r.x] = changes.get(r.x, 0.0) + r.height
        changes[r.x + r.width] = changes.get(r.x + r.width, 0.0) - r.height
    times, live, total = sorted(changes), [], 0.0
    for t in times:
        total += changes[t]
        live.append(total)
    axes.fill_between(times, live, step="post", alpha=0.6, color=theme.call, linewidth=0)
    axes.set_ylim(0, max([*live, 1.0]) * 1.15)
    axes.set_ylabel("bytes alive")
    axes.set_xlabel("position in the schedule")
