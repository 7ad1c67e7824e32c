"""What compiling costs, as sections of the report: time and memory as multiples of XLA's, the stages of our stacks, and
the arenas of runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..tables import left, right, text_table
from .figures import digits, geomean, wrap
from .results import Figures, Report, Row
from .rivals import OURS

LIMIT = 2.0
"""Workloads above this multiple of the base are counted."""

SMALL = 1 << 20
"""Bytes that are added to both sides of a ratio of memory: a page or two more are no difference."""

Cost = Callable[[Figures], "float | None"]

COSTS: dict[str, Cost] = {
    "compile time": lambda f: f.compile_median,
    "compile memory": lambda f: None if f.compile_bytes is None else f.compile_bytes + SMALL,
    "temporary memory": lambda f: None if f.temporary_bytes is None else f.temporary_bytes + SMALL,
}
"""Title → the cost of a contestant."""


def costs_text(report: Report, rows: Sequence[Row], base: str) -> str:
    """Both sections; empty where nothing was compiled."""
    return "\n\n".join(part for part in (_ratios(rows, base), _stages(rows)) if part)


def ratios_of(rows: Sequence[Row], column: str, base: str, cost: Cost) -> dict[str, float]:
    """Workload → a contestant's cost as a multiple of the base's, where both are known."""
    found: dict[str, float] = {}
    for row in rows:
        if column in row.columns and base in row.columns:
            mine, other = cost(row.columns[column]), cost(row.columns[base])
            if mine and other:
                found[row.name] = mine / other
    return found


def _ratios(rows: Sequence[Row], base: str) -> str:
    lines = []
    for title, cost in COSTS.items():
        for column in OURS:
            ratios = ratios_of(rows, column, base, cost)
            if column != base and ratios:
                worst = max(ratios, key=ratios.__getitem__)
                above = [sum(r > limit for r in ratios.values()) for limit in (1.0, LIMIT)]
                mean = digits(geomean(ratios.values()))
                lines.append([title, column, mean, *map(str, above), digits(ratios[worst]), worst])
    if not lines:
        return ""
    headings = [left("cost"), left("stack"), right("mean"), right("> 1"), right("> 2"), right("worst"), left("of")]
    title = f"Costs as multiples of {base}'s: geometric mean, workloads above 1 and 2. Memory: 1 MiB added to both."
    return f"{wrap(title)}\n\n{text_table(headings, lines)}"


def _stages(rows: Sequence[Row]) -> str:
    """Seconds and shares of the stages, over all workloads."""
    totals = {c: _totals([row.columns[c] for row in rows if c in row.columns]) for c in OURS}
    totals = {c: t for c, t in totals.items() if t}
    if not totals:
        return ""
    names = list(dict.fromkeys(stage for t in totals.values() for stage in t))
    headings = [left("stage"), *(h for c in totals for h in (right(f"{c} ms"), right("share")))]
    lines = []
    for name in names:
        cells = [name]
        for t in totals.values():
            seconds = t.get(name, 0.0)
            cells += [digits(seconds * 1e3), f"{seconds / sum(t.values()):.0%}"]
        lines.append(cells)
    title = "Stages of a compilation: sums over all workloads; the times of parallel threads add up."
    return f"{wrap(title)}\n\n{text_table(headings, lines)}"


def _totals(figures: Sequence[Figures]) -> dict[str, float]:
    found: dict[str, float] = {}
    for f in figures:
        for stage, seconds in f.stages.items():
            found[stage] = found.get(stage, 0.0) + seconds
    return found
