"""Recorder: keeps the events of runs as they are noted, for who adds them up later."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, eq=False, slots=True)
class Recording:
    """Events in their order, of one run or several. marks, times: uint64; times are nanoseconds of CLOCK_MONOTONIC.

    A mark is twice the id of an interval, plus one at its end. lost: events that did not fit. thread: the system's
    number of the thread that took them.
    """

    marks: np.ndarray
    times: np.ndarray
    lost: int
    thread: int


class Recorder:
    """Threads may add to it at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: list[Recording] = []

    def add(self, marks: np.ndarray, times: np.ndarray, lost: int = 0) -> None:
        with self._lock:
            self._kept.append(Recording(marks, times, lost, threading.get_native_id()))

    def take(self) -> list[Recording]:
        """What was added since the last call."""
        with self._lock:
            kept, self._kept = self._kept, []
        return kept
