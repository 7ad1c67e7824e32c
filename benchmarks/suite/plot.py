"""The ratios of a run as a picture: for each contestant, all workloads sorted by their ratio to the base."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from ...formats.whole_files import write_whole
from ...hlo.errors import InputError
from .figures import geomean
from .report import base_of, ratio_of
from .results import Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FORMATS = (".svg", ".png", ".pdf")

COLORS = {
    "recycled": "#8c8c8c",
    "legacy": "#c44e52",
    "mlir": "#2f6db3",
    "numpy": "#937860",
    "torch": "#dd8452",
    "iree": "#55a868",
    "xla": "#222222",
}

NAMED = 4
"""How many workloads are named at either end of a curve."""


def check_name(path: Path) -> None:
    """Raises InputError if the name does not end in a known format."""
    if path.suffix.lower() not in FORMATS:
        raise InputError(f"{path}: not a format for plots", remedy=f"let the name end in {', '.join(FORMATS)}")


def plot(report: Report, path: Path) -> None:
    """Write the picture of the smallest number of threads. Raises InputError if there are no ratios to show."""
    check_name(path)
    threads = min((row.threads for row in report.rows), default=1)
    rows, base = [r for r in report.rows if r.threads == threads], base_of(report)
    curves: dict[str, list[tuple[float, str]]] = {}
    for column in report.columns:
        pairs = [(ratio, r.name) for r in rows if column != base and (ratio := ratio_of(r, column, base)) is not None]
        if pairs:
            curves[column] = sorted(pairs)
    if not curves:
        raise InputError(
            "nothing to plot: no workload ran on two contestants", remedy="leave out --plot, or add --columns"
        )
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.6 * len(curves) + 0.6), facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    for axes, (column, pairs) in zip(figure.subplots(len(curves), 1, squeeze=False)[:, 0], curves.items(), strict=True):
        _curve(axes, column, pairs, base)
    figure.suptitle(f"Run time as a multiple of {base}'s, {threads} thread{'s' * (threads > 1)}", fontsize=12)
    content = io.BytesIO()
    figure.savefig(content, format=path.suffix[1:].lower(), dpi=130)
    write_whole(path, lambda file: file.write(content.getvalue()))


def _curve(axes: Axes, column: str, pairs: list[tuple[float, str]], base: str) -> None:
    from matplotlib.ticker import FuncFormatter

    values = [ratio for ratio, _ in pairs]
    color = COLORS.get(column, "#444444")
    axes.set_facecolor("white")
    axes.bar(range(len(values)), [v - 1 for v in values], bottom=1, width=0.85, color=color, alpha=0.85)
    axes.axhline(1, color="#222222", linewidth=1)
    mean = geomean(values)
    assert mean is not None
    axes.axhline(mean, color=color, linewidth=1, linestyle="--")
    axes.set_yscale("log")
    low, high = min([*values, 0.5]) / 1.6, max([*values, 2.0]) * 1.6
    axes.set_ylim(low, high)
    ticks = [t for t in (0.001, 0.01, 0.03, 0.1, 0.25, 0.5, 1, 2, 4, 10, 30, 100, 1000) if low <= t <= high]
    axes.set_yticks(ticks)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.minorticks_off()
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlim(-1, len(values))
    axes.set_xticks([])
    faster = sum(v < 1 for v in values)
    axes.set_title(
        f"{column} / {base}: geometric mean {mean:.2f} (dashed), {faster} of {len(values)} workloads faster",
        fontsize=10,
        loc="left",
    )
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    named = min(NAMED, len(pairs) // 2)
    best = "\n".join(f"{name}  {ratio:.2f}" for ratio, name in pairs[:named])
    worst = "\n".join(f"{name}  {ratio:.2f}" for ratio, name in reversed(pairs[-named:] if named else []))
    axes.text(0.01, 0.95, f"fastest\n{best}", transform=axes.transAxes, va="top", fontsize=8, color="#333333")
    axes.text(0.99, 0.05, f"slowest\n{worst}", transform=axes.transAxes, ha="right", fontsize=8, color="#333333")
