"""What a queue does while it is watched: commands with their times, and marks between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class Command(Protocol):
    """A launch, a copy or a fill that was enqueued."""

    def span(self) -> tuple[int, int]:
        """(begin, end) in nanoseconds of the device's clock, when it is done."""


def events_of(notes: Sequence[int | Command]) -> tuple[np.ndarray, np.ndarray]:
    """(marks, times) of a recorder (profiling/recorder.py): a mark that begins is at the beginning of the next command,
    one that ends at the end of the last. An interval without commands has no length.
    """
    marks: list[int] = []
    times: list[int] = []
    waiting: list[int] = []  # places of marks that begin, before any command of theirs
    now = 0
    for note in notes:
        if not isinstance(note, int):
            begin, end = note.span()
            for place in waiting:
                times[place] = max(begin, now)
            waiting.clear()
            now = max(end, now)
            continue
        ends = note % 2 == 1
        if ends and waiting:
            waiting = [place for place in waiting if marks[place] != note - 1]
        marks.append(note)
        times.append(now)
        if not ends:
            waiting.append(len(times) - 1)
    return np.array(marks, np.uint64), np.array(times, np.uint64)
