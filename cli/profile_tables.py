"""The tables that `testbed profile` prints: steps, groups of them, counters, changes between two profiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from .output import say, table, wrapped

if TYPE_CHECKING:
    from ..profiling.compare import Change
    from ..profiling.report import Report, Step

MOST_PARTS = 5
"""Instructions of a fusion that the table shows, those with the largest shares; --json has all."""


def print_report(report: Report, way: str) -> None:
    """The end-to-end times, the table, and notes."""
    for line in summary(report):
        say(wrapped(line))
    say()
    if way == "instruction":
        _print_steps(report)
    else:
        _print_groups(report, way)
    if report.counters is not None:
        _print_counters(report)
    for note in _notes(report, way):
        say(wrapped(note))


def summary(report: Report) -> Iterator[str]:
    """Lines about the whole call. Their parts add up to what the profile accounts for."""
    threads = f"{report.threads} thread{'s' * (report.threads > 1)}"
    yield (
        f"{report.program}, {report.emitters}, {report.host_program} host program, {threads}: "
        f"{us(report.wall)} us a call (lower quartile of {report.runs:,} runs in bursts; {us(report.least)} at best)"
    )
    steps = sum(step.own for step in report.steps)
    parts = f"entry {us(report.entry)}, steps {us(steps)}, between steps {us(report.between)}"
    share = f", {100 * report.sum / report.wall:.1f}% of it" if report.wall else ""
    yield f"accounted for: {us(report.sum)} us{share}: {parts}"
    if not report.event:
        more = f"with an event for each a call takes {report.overhead:.3f} times as long"
        yield f"steps are timed by the device's queue; {more}"
        return
    yield (
        f"a mark costs {report.marginal:.0f} ns here ({report.event:.0f} in a row of marks), subtracted; with all "
        f"marks a call takes {report.overhead:.3f} times as long"
    )


def us(nanoseconds: float) -> str:
    """Microseconds, to the nanosecond."""
    return f"{nanoseconds / 1e3:,.3f}"


def _print_steps(report: Report) -> None:
    from ..benchmarks.tables import left, right

    whole = report.sum or 1.0
    rows: list[tuple[str, ...]] = []
    for step in report.steps:
        rows += _step_rows(step, whole)
    rows.append(("between steps", "", "", "", us(report.between), _percent(report.between, whole), ""))
    rows.append(("entry", "", "", "", us(report.entry), _percent(report.entry, whole), ""))
    heads = (left("step"), left("opcode"), left("by"), *map(right, ("calls", "total us", "share", "mean us")))
    say(table(heads, rows))


def _step_rows(step: Step, whole: float) -> Iterator[tuple[str, ...]]:
    indent = "  " * step.depth
    opcode = step.opcode if step.kind != "copy" else "copy"
    total, share = us(step.total), _percent(step.total, whole)
    by = " ".join(filter(None, (step.stack, step.form)))
    yield indent + step.name, opcode or step.kind, by, f"{step.calls:g}", total, share, us(step.mean)
    if step.iterations:
        each = step.total / step.iterations
        yield f"{indent}  an iteration", "", "", f"{step.iterations:g}", "", "", us(each)
    parts = sorted(step.parts, key=lambda part: -part.share) if len(step.parts) > 1 else []
    for part in parts[:MOST_PARTS]:
        own = step.own * part.share
        yield f"{indent}  ~ {part.facts.name}", part.facts.opcode, "", "", f"~{us(own)}", f"~{_percent(own, whole)}", ""
    if len(parts) > MOST_PARTS:
        own = sum(step.own * part.share for part in parts[MOST_PARTS:])
        name = f"{indent}  ~ {len(parts) - MOST_PARTS} others"
        yield name, "", "", "", f"~{us(own)}", f"~{_percent(own, whole)}", ""


def _percent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f}%"


def _print_groups(report: Report, way: str) -> None:
    from ..benchmarks.tables import left, right
    from ..profiling.groups import groups

    whole = report.sum or 1.0
    rows = [
        (g.name, f"{g.calls:g}", us(g.own), _percent(g.own, whole), us(g.estimated) if g.estimated else "")
        for g in groups(report, way)
    ]
    say(table([left(way), *map(right, ("calls", "us", "share", "estimated us"))], rows))


def _print_counters(report: Report) -> None:
    from ..benchmarks.tables import left, right

    assert report.counters is not None
    names = list(report.counters)
    rows = [("a call of the program", *_counts(report.counters, names))]
    for step in report.steps:
        if step.counters is not None:
            rows.append(("  " * step.depth + step.name, *_counts(step.counters, names)))
    say("\n" + table([left("counters of a call"), *map(right, names)], rows))


def _counts(counters: Mapping[str, float], names: Sequence[str]) -> list[str]:
    return [f"{counters.get(name, 0.0):,.1f}" for name in names]


def _notes(report: Report, way: str) -> Iterator[str]:
    if any(len(step.parts) > 1 for step in report.steps) and way != "stack":
        yield "~ and estimated: a fusion's time, shared by the cost of its instructions"
    if way == "source" and not any(step.source or step.op_name for step in report.steps):
        yield "no metadata: the module does not say what lines of source it is from"
    if any(not step.opcode for step in report.steps):
        yield "unknown: a compiled program has names and buffers of its steps, but not their HLO"
    if report.lost:
        yield f"{report.lost:,} marks of a run did not fit: steps are those of its beginning, scaled to the run"
    yield from report.notes


def print_changes(old: Report, new: Report, changes: Sequence[Change]) -> None:
    """Both totals, and a row for each step that changed."""
    from ..benchmarks.tables import left, right

    for name, report in (("A", old), ("B", new)):
        say(wrapped(f"{name}: {report.program}, {report.emitters}: {us(report.wall)} us a call"))
    ratio = f", B / A = {new.wall / old.wall:.3f}" if old.wall else ""
    whole = new.sum - old.sum
    say(wrapped(f"difference: {us(new.wall - old.wall)} us a call by the host's timer, {us(whole)} by steps{ratio}"))
    rows = [
        (
            change.before if change.before == change.after else f"{change.before or '-'} → {change.after or '-'}",
            change.opcode,
            us(change.old) if change.before else "-",
            us(change.new) if change.after else "-",
            "" if change.ratio is None else f"{change.ratio:.3f}",
            f"{change.difference / 1e3:+,.3f}",
            _percent(change.difference, whole) if abs(whole) > 0 else "",
        )
        for change in changes
    ]
    heads = (left("step"), left("opcode"), *map(right, ("A us", "B us", "B / A", "change us", "of change")))
    say("\n" + table(heads, rows))
