"""Plots in the colours of a theme, as files: equal plots are equal files, and appear complete or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..formats.whole_files import write_whole
from .graph_theme import Theme


def draw(figure_of: Callable[[], Any], target: Path) -> None:
    """Write a figure, which `figure_of` makes. Raises InputError if it cannot be written."""
    kind = target.suffix.lower().removeprefix(".")
    write_whole(target, lambda file: draw_to(figure_of, file, kind))


def draw_to(figure_of: Callable[[], Any], file: Any, kind: str) -> None:
    """Write it to an open file. kind: svg or png."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "testbed", "svg.fonttype": "none"}):
        figure_of().savefig(file, format=kind, metadata={"Date": None} if kind == "svg" else None)


def new_figure(theme: Theme) -> Any:
    """An empty figure of matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 7), facecolor=theme.page)
    FigureCanvasAgg(figure)
    return figure


def colour(axes: Any, theme: Theme) -> None:
    axes.set_facecolor(theme.page)
    axes.tick_params(which="both", colors=theme.text, labelsize=8)
    for spine in axes.spines.values():
        spine.set_color(theme.line)
    for label in (axes.xaxis.label, axes.yaxis.label):
        label.set_color(theme.text)
