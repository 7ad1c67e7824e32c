"""A plot of the arena over time: one rectangle per live range of a slice, and below it the number of live bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..formats.whole_files import write_whole

if TYPE_CHECKING:
    from ..planning.buffer_report import BufferReport

MOST_LABELS = 60
"""The number of slices, largest first, that get a label."""


def draw(report: BufferReport, target: Path) -> None:
    """Write the plot. The file appears complete or not at all. Raises InputError if it cannot be written."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7), layout="constrained")
    FigureCanvasAgg(figure)
    arena, alive = figure.subplots(2, 1, sharex=True, height_ratios=(4, 1))
    _arena(arena, report)
    _alive(alive, report)
    kind = target.suffix.lower().removeprefix(".")
    metadata = {"Date": None} if kind == "svg" else None
    write_whole(target, lambda file: figure.savefig(file, format=kind, metadata=metadata))


def rectangles(report: BufferReport) -> list[tuple[float, float, float, float, str]]:
    """(position, offset, positions, bytes, names) of every live range in the arena. Positions are schedule steps."""
    from ..planning.plan import AllocationKind

    found: list[tuple[float, float, float, float, str]] = []
    for a in report.plan.assignment.allocations:
        if a.kind is AllocationKind.TEMPORARY:
            for r in report.ranges_of(a.index):
                label = ", ".join(report.names[r][:2])
                found += [
                    (start / 2, r.slice.offset, (stop - start) / 2, r.slice.size, label) for start, stop in r.segments
                ]
    return found


def _arena(axes, report: BufferReport) -> None:
    from matplotlib import color_sequences
    from matplotlib.patches import Rectangle

    found = sorted(rectangles(report), key=lambda r: -r[2] * r[3])
    colours = color_sequences["tab20"]
    for n, (x, y, width, height, label) in enumerate(found):
        axes.add_patch(Rectangle((x, y), width, height, facecolor=colours[n % 20], edgecolor="black", linewidth=0.3))
        if n < MOST_LABELS:
            axes.text(x + width / 2, y + height / 2, label, fontsize=5, ha="center", va="center", clip_on=True)
    axes.axhline(report.bound, color="red", linewidth=0.8, linestyle="--", label=f"lower bound {report.bound}")
    axes.axhline(report.arena, color="black", linewidth=0.8, label=f"arena {report.arena}")
    axes.set_ylim(0, max(report.arena, 1) * 1.03)
    axes.set_ylabel("byte of the arena")
    axes.set_title(f"{report.plan.module.name}: {report.excess:.1%} above the bound")
    axes.legend(loc="upper right", fontsize=7)


def _alive(axes, report: BufferReport) -> None:
    changes: dict[float, float] = {0.0: 0.0}
    for x, _, width, height, _ in rectangles(report):
        changes[x] = changes.get(x, 0.0) + height
        changes[x + width] = changes.get(x + width, 0.0) - height
    times, live, total = sorted(changes), [], 0.0
    for t in times:
        total += changes[t]
        live.append(total)
    axes.fill_between(times, live, step="post", alpha=0.5)
    axes.set_ylabel("bytes alive")
    axes.set_xlabel("position in the schedule")
    axes.set_xlim(0, report.buffers.timeline.length + 1)
