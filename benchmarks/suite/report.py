"""The report as text: tables at most 80 columns wide for the usual contestants, plain ASCII, and what is missing."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence

from ..tables import left, right, text_table
from .costs import costs_text
from .figures import WIDTH, digits, geomean, wrap
from .results import Figures, Report, Row
from .rivals import COMPILING, OURS

MEASURED = ("xla", *OURS)
"""The contestants whose compile time, memory and error have a column; JSON has those of all."""


def scientific(value: float | None) -> str:
    return "-" if value is None else "0" if value == 0 else f"{value:.1e}"


def mebibytes(size: int | None) -> str:
    """A size in MiB."""
    return "-" if size is None else "<.01" if 0 < size < 0.005 * 2**20 else digits(size / 2**20)


def base_of(report: Report) -> str:
    """The contestant that the others are compared with: the first that ran anything."""
    return next((c for c in report.columns if any(r.time(c) for r in report.rows)), report.columns[0])


def ratio_of(row: Row, column: str, base: str, minimum: bool = False) -> float | None:
    """Of the medians, or of the minima."""
    time, other = row.time(column, minimum), row.time(base, minimum)
    return time / other if time is not None and other is not None else None


def as_text(report: Report) -> str:
    """The whole report."""
    parts = [_header(report)]
    for threads in sorted({row.threads for row in report.rows}):
        rows = [row for row in report.rows if row.threads == threads]
        parts.append(_limits(report, threads))
        if not any(row.time(c) is not None for row in rows for c in row.columns):
            continue
        parts.append(_runs(report, rows, threads))
        if threads == min(row.threads for row in report.rows):
            parts += [_costs(report, rows), costs_text(report, rows, base_of(report)), _errors(report, rows)]
        parts.append(_groups(report, rows, threads))
    parts.append(_missing(report))
    return "\n\n".join(part for part in parts if part)


def _header(report: Report) -> str:
    machine = report.machine
    level = machine.get("level", "host")
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    lines = [
        f"{report.when}  commit {report.commit or 'unknown'}{'  (interrupted)' if report.interrupted else ''}",
        f"{machine['processor']}, {machine['cpus']} CPUs, {machine['memory_bytes'] / 2**30:.0f} GiB"
        + (f", as {level}" if level != "host" else ""),
        versions,
    ]
    return "\n".join(map(wrap, lines))


def _threads(number: int) -> str:
    return "1 thread" if number == 1 else f"{number} threads"


def _limits(report: Report, threads: int) -> str:
    limits = report.limits.get(threads)
    if limits is None:
        return ""
    small, large = limits.bandwidth[0], limits.bandwidth[-1]
    calls = ", ".join(f"{name} {seconds * 1e6:.1f}" for name, seconds in limits.launch.items())
    triads = f"{small[1] / 1e9:.0f} GB/s in {small[0] >> 10} KiB, {large[1] / 1e9:.0f} in {large[0] >> 20} MiB"
    lines = [
        f"Limits of the machine, {_threads(threads)}:",
        f"  triad {triads}; memcpy {limits.copy / 1e9:.0f} GB/s",
        f"  multiply-add f32 {limits.flops['f32'] / 1e9:.0f}, f64 {limits.flops['f64'] / 1e9:.0f} GFLOP/s",
    ]
    return "\n".join(lines + ([f"  a call of a small kernel, us: {calls}"] if calls else []))


def _runs(report: Report, rows: Sequence[Row], threads: int) -> str:
    base = base_of(report)
    others = [c for c in report.columns if c != base and any(r.time(c) is not None for r in report.rows)]
    columns = [left("workload"), right(f"{base} ms"), right("min"), *map(right, others), right("limit")]
    limits = report.limits.get(threads)

    def cells(row: Row) -> list[str]:
        time = row.time(base)
        return [
            row.name,
            *(digits(t * 1e3) if t is not None else "-" for t in (time, row.time(base, minimum=True))),
            *(_ratio_cell(row, c, base) for c in others),
            _limit_cell(row, limits, time),
        ]

    table = text_table(columns, [cells(row) for row in rows if any(row.time(c) for c in report.columns)])
    title = (
        f"Run time, {_threads(threads)}: medians; the others as a multiple of {base}'s. "
        "limit: the least time that memory and arithmetic allow, likewise."
    )
    return f"{wrap(title)}\n\n{table}"


def _ratio_cell(row: Row, column: str, base: str) -> str:
    """The ratio; without a time of the base, the time itself."""
    ratio, time = ratio_of(row, column, base), row.time(column)
    if ratio is not None:
        return digits(ratio)
    return f"{digits(time * 1e3)}ms" if time is not None else "-"


def _limit_cell(row: Row, limits: object, time: float | None) -> str:
    from .limits import Limits

    if not isinstance(limits, Limits) or time is None or row.bytes_touched is None or row.flops is None:
        return "-"
    share = limits.seconds(row.bytes_touched, row.flops, row.double) / time
    return f"{share:.2f}" if share >= 0.01 else "<.01"


def _costs(report: Report, rows: Sequence[Row]) -> str:
    measured = _present(report, MEASURED)
    compiling = _present(report, COMPILING)
    table = _per_column(
        rows,
        [
            (compiling, lambda f: digits(f.compile_median * 1e3) if f.compile_median else "-"),
            (measured, lambda f: mebibytes(f.growth_bytes)),
        ],
    )
    title = "Compile time, ms (caches off), then growth of memory in the first run, fresh results included, MiB."
    return f"{wrap(title)}\n\n{table}"


def _errors(report: Report, rows: Sequence[Row]) -> str:
    measured = _present(report, MEASURED)
    table = _per_column(
        rows, [(measured, lambda f: scientific(f.error)), (measured, lambda f: mebibytes(f.temporary_bytes))]
    )
    title = "Relative error against f64 or c128 (2-norm, the worst result), then temporary memory of a run, MiB."
    return f"{wrap(title)}\n\n{table}"


def _present(report: Report, columns: Sequence[str]) -> list[str]:
    """Those columns that measured anything."""
    return [c for c in columns if any(row.time(c) is not None for row in report.rows)]


def _per_column(rows: Sequence[Row], parts: Sequence[tuple[Sequence[str], Callable[[Figures], str]]]) -> str:
    headings = [left("workload"), *(right(c) for columns, _ in parts for c in columns)]
    lines = [
        [row.name, *(_cell(row, c, show) for columns, show in parts for c in columns)]
        for row in rows
        if any(f.status == "ok" for f in row.columns.values())
    ]
    return text_table(headings, lines)


def _cell(row: Row, column: str, show: Callable[[Figures], str]) -> str:
    figures = row.columns.get(column)
    return show(figures) if figures is not None else "-"


def group_means(rows: Sequence[Row], column: str, base: str) -> dict[str, float | None]:
    """Geometric means of a contestant's ratios to the base, by group, and of all workloads."""
    groups = dict.fromkeys(row.group for row in rows)
    means = {g: geomean(ratio_of(r, column, base) for r in rows if r.group == g) for g in groups}
    return means | {"all": geomean(ratio_of(r, column, base) for r in rows)}


def _groups(report: Report, rows: Sequence[Row], threads: int) -> str:
    base = base_of(report)
    others = [c for c in report.columns if c != base and any(ratio_of(r, c, base) for r in rows)]
    if not others:
        return ""
    means: Mapping[str, Mapping[str, float | None]] = {c: group_means(rows, c, base) for c in others}
    counts = {g: sum(r.group == g for r in rows) for g in means[others[0]]} | {"all": len(rows)}
    lines = [[g, str(n), *(digits(means[c][g]) for c in others)] for g, n in counts.items()]
    minima = [geomean(ratio_of(r, c, base, minimum=True) for r in rows) for c in others]
    lines.append(["all, of minima", str(len(rows)), *map(digits, minima)])
    table = text_table([left("group"), right("workloads"), *map(right, others)], lines)
    title = f"Geometric means of run times as a multiple of {base}'s, {_threads(threads)}."
    return f"{wrap(title)}\n\n{table}"


def _missing(report: Report) -> str:
    """What could not be measured: a line per contestant that is absent everywhere, then one per failure."""
    lines: list[str] = []
    for column in report.columns:
        reasons = {f.reason for r in report.rows for c, f in r.columns.items() if c == column and f.status == "absent"}
        everywhere = all(r.columns[column].status == "absent" for r in report.rows if column in r.columns)
        if reasons and everywhere:
            lines.append(f"{column}: {sorted(reasons)[0]}")
    failed: dict[str, list[str]] = {}
    for row in report.rows:
        if row.failure:
            failed.setdefault(row.failure, []).append(row.name)
    for reason, names in failed.items():
        lines.append(f"{', '.join(dict.fromkeys(names))}: {reason}")
    for row in report.rows:
        if row.no_error:
            lines.append(f"{row.name}: no error: {row.no_error}")
        lines += [f"{row.name}: {c}: {f.reason}" for c, f in row.columns.items() if f.status == "failed"]
    if not lines:
        return ""
    wrapped = [w for line in dict.fromkeys(lines) for w in textwrap.wrap(line, WIDTH - 2, subsequent_indent="  ")]
    return "\n".join(["Not measured:", *(f"  {line}" for line in wrapped)])
