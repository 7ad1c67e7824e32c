"""Kernels of several versions of jaxlib (xla_history.py) → docs/xla-history.md: which emitters made what, time and
distance by version, and a table for each program.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from ..codegen.options import Target
from .xla_history import Cell, History, HistoryRow
from .xla_report import geomean, markdown

COMMAND = "./testbed history PROGRAM… --jaxlib {versions} -o docs/xla-history.md"


def document(histories: Sequence[History], versions: Sequence[str]) -> str:
    """The page as Markdown."""
    rows = [row for history in histories for row in history.rows]
    parts = [_head(histories, versions, rows), _emitters(rows, versions), _changes(rows, versions)]
    parts += [_whole(histories, versions), *(_program(history, versions) for history in histories)]
    return "\n\n".join(parts) + "\n"


def _head(histories: Sequence[History], versions: Sequence[str], rows: Sequence[HistoryRow]) -> str:
    kernels = sum(len(row.cells) for row in rows)
    silent = sum(not cell.emitter for row in rows for cell in row.cells.values())
    lines = [
        "# XLA:CPU's emitters, version by version of jaxlib",
        "",
        f"Made by `{COMMAND.format(versions=','.join(versions))}`: {len(histories)} programs,",
        f"{len(rows)} computations, {kernels} kernels; {Target.machine().cpu}, one processor.",
        "",
        "A row is a computation: kernels that compute the same on arrays of equal shapes. A cell has the emitter that",
        "the metadata of the kernel's LLVM IR names (before 0.7: the module that holds it), the time of XLA's object",
        "in a native loop, and the distance from the evaluator in representable values, on drawn inputs. Versions of",
        "one row are timed in turn in one process. – : this version formed no such kernel. The library YNN is off.",
        "This machine did other work meanwhile: single times are hints.",
    ]
    if silent:
        lines += ["", f"{silent} kernels have no IR in the dump, and show as `?`."]
    return "\n".join(lines)


def _emitters(rows: Sequence[HistoryRow], versions: Sequence[str]) -> str:
    """What is computed × version → emitters and how many kernels each made."""
    counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
    for row in rows:
        for version, cell in row.cells.items():
            counts[row.opcode][version][cell.emitter or "?"] += 1
            counts["all"][version][cell.emitter or "?"] += 1
    names = [*sorted(counts.keys() - {"all"}), *(["all"] if counts else [])]
    table = [(name, *(_counted(counts[name][v]) for v in versions)) for name in names]
    return f"## Who makes what\n\n{markdown(('kernels of', *versions), table)}"


def _counted(counter: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counter.most_common()) or "–"


def _changes(rows: Sequence[HistoryRow], versions: Sequence[str]) -> str:
    """Each version with kernels against the one before it, on the computations that both have."""
    having = [v for v in versions if any(v in row.cells for row in rows)]
    table = []
    for old, new in pairwise(having):
        both = [(row.cells[old], row.cells[new]) for row in rows if {old, new} <= row.cells.keys()]
        timed = [b.seconds / a.seconds for a, b in both if a.seconds and b.seconds]
        moved = sum(a.emitter != b.emitter for a, b in both)
        bits = sum(a.ulp == b.ulp for a, b in both)
        extremes = (max(timed, default=float("nan")), min(timed, default=float("nan")))
        table.append((f"{old} → {new}", len(both), moved, geomean(timed), *extremes, f"{bits} of {len(both)}"))
    heads = ("versions", "computations of both", "emitter changed", "time new/old", "slowest", "fastest", "equal ulp")
    return f"## From version to version\n\n{markdown(heads, table)}"


def _whole(histories: Sequence[History], versions: Sequence[str]) -> str:
    table = []
    for history in histories:
        cells = [history.whole.get(v) for v in versions]
        texts = ["–" if c is None else f"{c.seconds * 1e6:.1f}, {c.compile_seconds:.2f} s" for c in cells]
        table.append((history.program, *texts))
    refused = Counter((v, why) for history in histories for v, why in history.refused.items())
    lines = [f"- {v}: {why} ({count} of {len(histories)} programs)" for (v, why), count in refused.items()]
    note = (
        "Each version's own runtime: µs of its fastest run, in a process of its own (entry from Python included), and "
        "seconds of XLA's compilation."
    )
    return "\n\n".join([f"## Whole programs\n\n{note}\n\n{markdown(('program', *versions), table)}", *_joined(lines)])


def _joined(lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield "\n".join(lines)


def _program(history: History, versions: Sequence[str]) -> str:
    having = [v for v in versions if any(v in row.cells for row in history.rows)]
    table: Iterable[Sequence[str]] = [
        (f"`{row.name}`", row.opcode, *(_cell(row.cells.get(v)) for v in having)) for row in history.rows
    ]
    return f"## {history.program}\n\n{markdown(('kernel', 'of', *having), table)}"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    name = cell.emitter or "?"
    if cell.refused:
        return f"{name}, refused: {cell.refused}"
    time = "" if cell.seconds is None else f", {cell.seconds * 1e6:.3g} µs"
    return f"{name}{time}, {cell.ulp:.3g} ulp"
