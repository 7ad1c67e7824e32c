"""Rows of benchmarks/xla_migration.py → docs/xla-migration.md: tables of counts, parity, time, size and metadata."""

from __future__ import annotations

import math
import platform
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence

from ..backends.xla.dump import version
from ..codegen.options import Target
from .xla_kernels import METADATA, OURS, KernelRow, ProgramRow

LEAST = 1e-6
"""Seconds of a kernel from which its loops count, not its entry."""


def report(kernels: Sequence[KernelRow], programs: Sequence[ProgramRow], sample: str) -> str:
    """The page as Markdown."""
    parts = [
        _head(kernels, programs, sample),
        _figures(kernels, programs),
        _counts(programs),
        _parity(kernels),
        _same(kernels),
        _ours(kernels),
    ]
    return "\n\n".join([*parts, _whole(programs), _metadata(kernels)]) + "\n"


def geomean(values: Iterable[float]) -> float:
    logs = [math.log(v) for v in values if v > 0]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def markdown(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table; numbers with two digits behind the point."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return "\n".join([*lines, *(f"| {' | '.join(map(_cell, row))} |" for row in rows)])


def _cell(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    return "–" if math.isnan(value) else f"{value:.2f}" if value < 100 else f"{value:.3g}"


def _head(kernels: Sequence[KernelRow], programs: Sequence[ProgramRow], sample: str) -> str:
    machine = f"{Target.machine().cpu} on {platform.system()}, one processor"
    lines = (
        "# XLA:CPU's migration from its old to its new emitters, measured",
        "",
        f"Made by `python -m testbed.benchmarks.xla_migration`: {len(programs)} programs and {len(kernels)} of their",
        f"kernels ({sample}), jaxlib {version()}, {machine}.",
        "Times are ratios of the fastest of interleaved rounds in one process, kernels in a native loop; below 1, the",
        "first is faster. This machine did other work meanwhile: single figures are hints.",
        "",
        "`old` are the elemental emitters (`--xla_cpu_use_fusion_emitters=false`), `new` the MLIR fusion emitters.",
        "Kernels of XLA's run from XLA's objects, or (`-ir`) from its LLVM IR before LLVM's passes, by our LLVM;",
        "legacy and mlir are this package's stacks on the same fusions. The library YNN is off: with it, XLA gives",
        "reductions and dots to a library, and there is no kernel.",
    )
    return "\n".join(lines)


def figures(kernels: Sequence[KernelRow], programs: Sequence[ProgramRow]) -> list[tuple[str, float, str, float]]:
    """(What, the figure, '≥' or '≤', its goal)."""
    total, matched = (sum(n[k] for row in programs for n in row.kernels.values()) for k in (0, 1))
    new = [row for row in kernels if row.generation == "new" and _own(row)]
    rows = [("kernels matched with an instruction, of all", matched / max(total, 1), "≥", 0.99)]
    for generation in ("old", "new"):
        whole = [row for row in programs if f"xla-{generation}" in row.seconds]
        share = len(whole) / max(len(programs), 1)
        rows.append((f"whole programs on XLA's {generation} kernels, of all", share, "≥", 0.9))
        ratios = (row.seconds[f"xla-{generation}"] / row.seconds[f"jaxlib-{generation}"] for row in whole)
        rows.append(
            (f"XLA's {generation} kernels in our runtime, time as a multiple of jaxlib's", geomean(ratios), "≤", 1.05)
        )
    for stack in OURS:
        ratios = (row.seconds[stack] / row.seconds[_own(row)] for row in new if stack in row.seconds)
        rows.append(
            (f"{stack}, time as a multiple of XLA's new kernels on the same fusions", geomean(ratios), "≤", 0.8)
        )
    return rows


def _figures(kernels: Sequence[KernelRow], programs: Sequence[ProgramRow]) -> str:
    rows = [
        (what, value, f"{sign} {goal}", "yes" if (value >= goal if sign == "≥" else value <= goal) else "no")
        for what, value, sign, goal in figures(kernels, programs)
    ]
    return f"## Figures\n\n{markdown(('what', 'figure', 'goal', 'reached'), rows)}\n\nTimes are geometric means."


def _counts(programs: Sequence[ProgramRow]) -> str:
    rows = []
    for generation in ("old", "new"):
        pairs = [row.kernels[generation] for row in programs]
        whole = sum(f"xla-{generation}" in row.seconds for row in programs)
        same = sum(row.ulps.get(f"xla-{generation}") == row.ulps.get(f"jaxlib-{generation}") for row in programs)
        total, matched = sum(p[0] for p in pairs), sum(p[1] for p in pairs)
        rows.append((generation, total, matched, f"{whole} of {len(programs)}", f"{same} of {len(programs)}"))
    heads = (
        "emitters",
        "kernels",
        "matched with an instruction",
        "whole programs run",
        "as far from jaxlib's new as jaxlib",
    )
    refused = [f"- {row.program}: {stack}: {why}" for row in programs for stack, why in row.refused.items()]
    return "\n\n".join(["## Kernels\n\n" + markdown(heads, rows), *(["\n".join(refused)] if refused else [])])


def _by(rows: Iterable[KernelRow], name: str) -> dict[str, list[KernelRow]]:
    groups: dict[str, list[KernelRow]] = defaultdict(list)
    for row in rows:
        groups[f"{row.generation} {getattr(row, name)}"].append(row)
    return dict(sorted(groups.items()))


def _own(row: KernelRow) -> str:
    return next((s for s in row.seconds if s.startswith("xla-") and not s.endswith("-ir")), "")


def _parity(kernels: Sequence[KernelRow]) -> str:
    rows = []
    for name, group in _by(kernels, "emitter").items():
        ulps = [row.ulps[_own(row)] for row in group if _own(row)]
        ir = [row.ulps[f"{_own(row)}-ir"] for row in group if f"{_own(row)}-ir" in row.ulps]
        ours = [max((row.ulps[s] for s in OURS if s in row.ulps), default=math.nan) for row in group]
        middle = [_middle(values) for values in (ulps, ir, ours)]
        rows.append((name, len(group), sum(u == 0 for u in ulps), *middle, _most(ulps), _most(ours)))
    heads = (
        "emitter",
        "kernels",
        "bits of the evaluator",
        "ulp",
        "ulp, -ir",
        "ulp, ours",
        "most ulp",
        "most ulp, ours",
    )
    note = (
        "Distances from the evaluator in representable values, on drawn inputs: the worst element of a kernel, "
        "as the median and the largest over all kernels. Sums and sines near 0 make single ones large."
    )
    return f"## Parity by emitter\n\n{note}\n\n{markdown(heads, rows)}"


def _middle(values: Sequence[float]) -> str:
    return f"{sorted(values)[len(values) // 2]:.4g}" if values else "–"


def _most(values: Sequence[float]) -> str:
    return f"{max(values):.4g}" if values else "–"


def _same(kernels: Sequence[KernelRow]) -> str:
    """Old against new where both compiled the same computation."""
    pairs: dict[tuple[str, Hashable], dict[str, KernelRow]] = defaultdict(dict)
    for row in kernels:
        pairs[row.program, row.key][row.generation] = row
    both = [
        (p["old"], p["new"]) for p in pairs.values() if {"old", "new"} <= p.keys() and _own(p["old"]) and _own(p["new"])
    ]
    rows = []
    for opcode in sorted({old.opcode for old, _ in both}):
        chosen = [(old, new) for old, new in both if old.opcode == opcode]
        rows.append(_pair_row(opcode, chosen))
    rows.append(_pair_row("all", both))
    heads = ("kernel", "pairs", "time new/old", "slowest", "fastest", "IR lines new/old", "equal bits")
    note = (
        "The same computation on the same shapes, once by each generation; objects as XLA compiled them. *equal bits*: "
        "both are equally far from the evaluator."
    )
    return f"## Old against new\n\n{note}\n\n{markdown(heads, rows)}"


def _pair_row(name: str, pairs: Sequence[tuple[KernelRow, KernelRow]]) -> tuple[object, ...]:
    times = [new.seconds[_own(new)] / old.seconds[_own(old)] for old, new in pairs]
    lines = geomean(new.lines / old.lines for old, new in pairs if old.lines)
    equal = sum(old.ulps[_own(old)] == new.ulps[_own(new)] for old, new in pairs)
    return name, len(pairs), geomean(times), max(times, default=math.nan), min(times, default=math.nan), lines, equal


def _ours(kernels: Sequence[KernelRow]) -> str:
    rows = []
    for name, group in [*_by(kernels, "opcode").items(), ("all", list(kernels))]:
        long = [row for row in group if _own(row) and row.seconds[_own(row)] >= LEAST]
        cells = [
            geomean(row.seconds[stack] / row.seconds[_own(row)] for row in chosen if stack in row.seconds and _own(row))
            for chosen in (group, long)
            for stack in OURS
        ]
        ir = geomean(
            row.seconds[f"{_own(row)}-ir"] / row.seconds[_own(row)] for row in group if f"{_own(row)}-ir" in row.seconds
        )
        rows.append((name, len(group), *cells[:2], len(long), *cells[2:], ir))
    heads = (
        "kernel",
        "kernels",
        "legacy",
        "mlir",
        f"of {LEAST * 1e6:g} µs or more",
        "legacy",
        "mlir",
        "XLA's IR by our LLVM",
    )
    note = "Time as a multiple of XLA's object for the same fusion, geometric means."
    return f"## Ours against XLA's kernels\n\n{note}\n\n{markdown(heads, rows)}"


def _whole(programs: Sequence[ProgramRow]) -> str:
    rows: list[tuple[object, ...]] = []
    for row in programs:
        base = row.seconds["jaxlib-new"]
        cells = [row.seconds.get(s, math.nan) / base for s in ("jaxlib-old", "xla-old", "xla-new", *OURS)]
        compiles = row.compile_seconds["new"] / row.compile_seconds["old"]
        rows.append((row.program, f"{base * 1e6:.1f}", *cells, compiles))
    mean = [geomean(v for r in rows if not math.isnan(v := float(str(r[n])))) for n in range(2, 8)]
    heads = ("program", "jaxlib new, µs", "jaxlib old", "xla-old", "xla-new", *OURS, "XLA compiles new/old")
    note = (
        "A run, relative to jaxlib with its new emitters. `xla-old` and `xla-new` are XLA's kernels in this package's "
        "runtime."
    )
    return f"## Whole programs\n\n{note}\n\n{markdown(heads, [*rows, ('geometric mean', '', *mean)])}"


def _metadata(kernels: Sequence[KernelRow]) -> str:
    rows = []
    for name, group in _by(kernels, "emitter").items():
        lines = sum(row.lines for row in group)
        counts: Mapping[str, int] = {m: sum(row.metadata[m] for row in group) for m in METADATA}
        rows.append(
            (
                name,
                len(group),
                f"{lines / len(group):.0f}",
                *(f"{100 * n / max(lines, 1):.1f}" for n in counts.values()),
            )
        )
    heads = ("emitter", "kernels", "lines a kernel", *METADATA)
    note = "What the emitters tell LLVM, per 100 lines of IR before its passes."
    return f"## IR: size and metadata\n\n{note}\n\n{markdown(heads, rows)}"
