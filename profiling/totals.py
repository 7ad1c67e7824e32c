"""Events → times of steps a run, without what the events cost, so that all steps add up to the run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

MOST_COST = 8.0
"""The most that an event may cost in a program, relative to a row of events."""

QUARTILE = 25


def undisturbed(values: Iterable[Any], axis: int | None = None) -> Any:
    """The lower quartile: on a busy machine, much of what is measured is too long, and nothing too short."""
    return np.percentile(list(values), QUARTILE, axis=axis)


@dataclass(frozen=True, eq=False, slots=True)
class Totals:
    """Sums over some runs, by id; id 0 is the whole run. calls: intervals. times: nanoseconds, with the events' cost.

    events: events within the intervals and one for their ends. least: the shortest interval; inf where there is none.
    """

    runs: int
    calls: np.ndarray
    times: np.ndarray
    events: np.ndarray
    least: np.ndarray


def intervals(marks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(ids, places where they begin, places where they end) of the intervals in a thread's events, by id.

    An interval without its end is left out. Intervals of one id do not overlap, so in order they begin, end, begin, ….
    """
    ids = marks >> np.uint64(1)
    order = np.argsort(ids, kind="stable")
    ends = np.flatnonzero(marks[order] & np.uint64(1))
    begin, end = order[ends - 1], order[ends]  # in a group of one id, a begin stands before each end
    return ids[end].astype(np.intp), begin, end


def totals(marks: np.ndarray, times: np.ndarray, count: int) -> Totals:
    """The sums of the events of one thread, of one run or several. count: of ids.

    Intervals without an end are left out; a run without its end counts as one.
    """
    places, begin, end = intervals(marks)
    lengths = (times[end] - times[begin]).astype(np.float64)
    least = np.full(count, np.inf)
    np.minimum.at(least, places, lengths)
    calls = np.bincount(places, minlength=count)
    within = np.bincount(places, end - begin, minlength=count)
    runs = int(calls[0]) or int(len(marks) > 0)  # of a run whose end is lost, the beginning counts
    return Totals(runs, calls, np.bincount(places, lengths, minlength=count), within, least)


@dataclass(frozen=True, eq=False, slots=True)
class Times:
    """Nanoseconds a run, by step, without the cost of events. calls: a run. total: with the steps inside. own: without.

    run: the whole run. between: of the run outside of steps. event: what an event costs in the program. scale: the
    factor that makes all steps and `between` the run.
    """

    calls: np.ndarray
    total: np.ndarray
    own: np.ndarray
    least: np.ndarray
    run: float
    between: float
    event: float
    scale: float


def times_of(bursts: Sequence[Totals], parents: Sequence[int], run: float, event: float) -> Times:
    """The times of a program's steps from bursts of runs; of each the lower quartile counts.

    parents: by step, the step that it is inside of, or -1. run: nanoseconds of the run with nothing but its own two
    events, an event's cost off. event: what one costs in a row of events; between other code it may cost more, and less
    code is inlined across it, so what it costs here is found from the whole run with and without steps.
    """
    counted = [burst for burst in bursts if burst.runs]
    if not counted:
        nothing = np.zeros(len(parents))
        return Times(nothing, nothing, nothing, nothing, run, run, event, 1.0)
    calls = np.median([b.calls / b.runs for b in counted], axis=0)
    raw = undisturbed((b.times / b.runs for b in counted), axis=0)
    events = np.median([b.events / b.runs for b in counted], axis=0)
    least = np.min([b.least for b in counted], axis=0)
    cost = float(np.clip((raw[0] - run) / max(events[0], 1.0), event, MOST_COST * event))
    whole = np.maximum(raw - cost * events, 0.0)
    own = whole.copy()
    for step, parent in enumerate(parents):
        own[parent + 1] -= whole[step + 1]
    own = np.maximum(own, 0.0)
    scale = run / float(own.sum()) if own.sum() > 0 else 1.0
    own *= scale
    total = own.copy()
    for step in reversed(range(len(parents))):
        total[parents[step] + 1] += total[step + 1]
    shortest = np.where(np.isfinite(least), np.maximum(least - cost, 0.0), 0.0)  # of a loop, with the events inside
    return Times(calls[1:], total[1:], own[1:], shortest[1:], run, float(own[0]), cost, scale)


def parents_of(depths: Sequence[int]) -> list[int]:
    """By step, the step that it is inside of, or -1. depths: by step, in the order of the text."""
    around: list[int] = []
    found = []
    for number, depth in enumerate(depths):
        del around[depth:]
        found.append(around[-1] if around else -1)
        around.append(number)
    return found
