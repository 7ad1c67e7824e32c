"""The events that profile thunks note while a program runs: marks with their times, in a buffer of the frame.

The buffer is a sequence of 64-bit words: the number of events so far, how many of them it can keep, and for each of
those its mark and its time. A mark is twice the id, plus one at the end of the interval. Events beyond the buffer are
counted only, so that what is kept is the beginning of a run without gaps.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from ..hlo.later import np
from ..hlo.records import dataclass
from .kinds import ProfileThunk, SequentialThunk, Thunk, children, kind_of

MOST_EVENTS = 1 << 17
"""Events that a frame keeps: 2 MiB."""


@dataclass(frozen=True, eq=False, slots=True)
class Events:
    """Events in their order. marks, times: uint64; times are nanoseconds of one clock. lost: how many did not fit."""

    marks: np.ndarray
    times: np.ndarray
    lost: int


class EventBuffer:
    """The memory that a frame's events are written to."""

    def __init__(self, most: int):
        self._words = np.zeros(2 + 2 * most, np.uint64)
        self._words[1] = most
        self.address: int = self._words.ctypes.data

    def clear(self) -> None:
        self._words[0] = 0

    def taken(self) -> Events:
        """A copy of the events; the buffer is empty afterwards."""
        count, most = int(self._words[0]), int(self._words[1])
        kept = min(count, most)
        rows = self._words[2 : 2 + 2 * kept].reshape(kept, 2)
        events = Events(rows[:, 0].copy(), rows[:, 1].copy(), count - kept)
        self.clear()
        return events


@dataclass(frozen=True, slots=True)
class Interval:
    """What a pair of profile thunks stands for. depth: how many intervals are around it. what: the kind of the thunk
    inside (kernel, copy, while, conditional); "" if it is not one thunk.
    """

    id: int
    name: str
    depth: int
    what: str


def intervals(root: SequentialThunk, depth: int = 0) -> Iterator[Interval]:
    """The intervals of a program, in the order of its text."""
    for number, thunk in enumerate(root.thunks):
        match thunk:
            case ProfileThunk(begin=True):
                yield Interval(thunk.id, thunk.name, depth, _what(root.thunks[number + 1 : number + 3], thunk))
                depth += 1
            case ProfileThunk():
                depth -= 1
            case SequentialThunk():
                yield from intervals(thunk, depth)
            case _:
                for inner in children(thunk):
                    yield from intervals(SequentialThunk((inner,)), depth)


def _what(behind: Sequence[Thunk], begin: ProfileThunk) -> str:
    """behind: the two thunks behind a begin."""
    if len(behind) < 2 or behind[1] != ProfileThunk(begin.name, begin.id, False):
        return ""
    return kind_of(behind[0])


def mark_of(id: int, begin: bool) -> int:
    return 2 * id + (not begin)


SAMPLE = 256
"""Events in a row whose distance tells what one event costs."""

TRIES = 5
"""Samples, of which the fastest counts: the others were interrupted."""


def event_cost(run: Callable[[int], int], profile: int) -> float:
    """Nanoseconds that an event adds to what is measured around it: the mean distance of events in a row.

    run, profile: those of a Runner.
    """
    buffer = EventBuffer(SAMPLE)
    words = np.zeros(4 + 4 * SAMPLE, np.uint64)  # a descriptor, a word that stays 0, records
    begin: int = words.ctypes.data
    words[:3] = begin + 32, begin + words.nbytes, begin + 24
    words[4:] = np.tile(np.array([profile, 2, buffer.address, 0], np.uint64), SAMPLE)
    means = []
    for _ in range(TRIES):
        run(begin)
        times = buffer.taken().times
        means.append(float(times[-1] - times[0]) / (SAMPLE - 1))
    return min(means)


PROFILE_IR = f"""
declare i32 @clock_gettime(i32, ptr)

define void @testbed_profile(ptr %buffer, ptr %mark) {{
  %time = alloca [2 x i64] ; seconds, nanoseconds
  %ignored = call i32 @clock_gettime(i32 {time.CLOCK_MONOTONIC}, ptr %time)
  %seconds = load i64, ptr %time
  %t1 = getelementptr i64, ptr %time, i64 1
  %rest = load i64, ptr %t1
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  %count = load i64, ptr %buffer
  %b1 = getelementptr i64, ptr %buffer, i64 1
  %most = load i64, ptr %b1
  %more = add i64 %count, 1
  store i64 %more, ptr %buffer
  %fits = icmp ult i64 %count, %most
  br i1 %fits, label %keep, label %done

keep:
  %twice = mul i64 %count, 2
  %first = add i64 %twice, 2
  %at = getelementptr i64, ptr %buffer, i64 %first
  %number = ptrtoint ptr %mark to i64
  store i64 %number, ptr %at
  %behind = getelementptr i64, ptr %at, i64 1
  store i64 %now, ptr %behind
  br label %done

done:
  ret void
}}
"""
"""The function that notes an event. clock_gettime is a call without a system call on Linux, some 20 to 30 ns."""
