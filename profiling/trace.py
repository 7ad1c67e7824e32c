"""Events of runs → a trace in the trace-event format, for Perfetto and chrome://tracing. Threads are its rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from .recorder import Recording
from .report import Report, Step

MOST_EVENTS = 200_000
"""Events of a trace; beyond some hundred thousand, viewers become slow."""

PROCESS = 1


def trace_of(report: Report, recordings: Sequence[Recording]) -> dict[str, Any]:
    """The trace of some runs: a complete event for each interval. ts, dur: microseconds from the first event on.

    Times are as noted, with the cost of marks in them. Intervals that do not fit into MOST_EVENTS are left out from the
    end on, and `otherData` says how many.
    """
    origin = min((int(r.times[0]) for r in recordings if len(r.times)), default=0)
    rows: list[dict[str, Any]] = [_named("process_name", 0, f"{report.program}, {report.emitters}")]
    left_out = 0
    for thread in dict.fromkeys(r.thread for r in recordings):
        rows.append(_named("thread_name", thread, f"thread {thread}"))
    for recording in recordings:
        found = _intervals(recording)
        shown = found[: max(MOST_EVENTS - len(rows), 0)]
        rows += [_event(report, recording, origin, *interval) for interval in shown]
        left_out += len(found) - len(shown)
    other = {
        "program": report.program,
        "emitters": report.emitters,
        "cost of a mark, ns": report.marginal,
        "intervals left out": left_out,
    }
    return {"traceEvents": rows, "displayTimeUnit": "ns", "otherData": other}


def trace_text(report: Report, recordings: Sequence[Recording]) -> str:
    return json.dumps(trace_of(report, recordings), allow_nan=False) + "\n"


def _named(what: str, thread: int, name: str) -> dict[str, Any]:
    return {"name": what, "ph": "M", "pid": PROCESS, "tid": thread, "args": {"name": name}}


def _intervals(recording: Recording) -> list[tuple[int, int]]:
    """(place of the begin, place of the end), in the order of their beginnings; outer ones first."""
    opened: list[tuple[int, int]] = []  # (id, place)
    found: list[tuple[int, int]] = []
    for place, mark in enumerate(recording.marks.tolist()):
        if mark % 2 == 0:
            opened.append((mark // 2, place))
        elif opened and opened[-1][0] == mark // 2:
            found.append((opened.pop()[1], place))
    return sorted(found)


def _event(report: Report, recording: Recording, origin: int, begin: int, end: int) -> dict[str, Any]:
    number, start = int(recording.marks[begin]) // 2, int(recording.times[begin])
    return {
        "ph": "X",
        "pid": PROCESS,
        "tid": recording.thread,
        "ts": (start - origin) / 1e3,
        "dur": (int(recording.times[end]) - start) / 1e3,
        **(_of_run(report) if number == 0 else _of_step(report.steps[number - 1])),
    }


def _of_run(report: Report) -> dict[str, Any]:
    return {"name": report.program, "cat": "run", "args": {"emitters": report.emitters}}


def _of_step(step: Step) -> dict[str, Any]:
    known = {
        "hlo": step.name,
        "opcode": step.opcode,
        "shape": step.shape,
        "op_name": step.op_name,
        "source": step.source,
        "stack": step.stack,
        "form": step.form,
    }
    arguments: dict[str, Any] = {key: value for key, value in known.items() if value}
    if step.kind in ("kernel", "copy"):
        arguments |= {"bytes": step.bytes, "FLOPs": step.flops, "transcendentals": step.transcendentals}
    return {"name": step.name, "cat": step.kind, "args": arguments}
