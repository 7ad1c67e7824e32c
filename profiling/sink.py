"""Sink: takes the events of runs, makes intervals of them, and adds up the times of each step."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from .profile import Profile, Row
from .totals import intervals

MOST_WAITING = 1 << 18
"""Events that wait, 4 MiB; adding them up after each run would cost more than noting them."""


class Sink:
    """The times of a program's steps. Threads may add to it at once."""

    def __init__(self, rows: Sequence[Row], event: float):
        """rows: the steps, without times. event: nanoseconds that an event costs."""
        self._rows, self._event = tuple(rows), event
        self._order = sorted(range(len(self._rows)), key=lambda n: self._rows[n].id)
        self._ids = np.array([self._rows[n].id for n in self._order], np.int64)  # ids may be far apart
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        count = len(self._rows)  # in the order of _ids
        self._calls, self._totals = np.zeros(count, np.int64), np.zeros(count)
        self._least = np.full(count, np.inf)
        self._runs = self._lost = self._events = 0
        self._waiting: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, marks: np.ndarray, times: np.ndarray, lost: int = 0) -> None:
        """Add the events of one run, in their order. marks: twice the step's id, plus one where it ends. times: ns."""
        with self._lock:
            self._waiting.append((marks, times))
            self._events += len(marks)
            self._runs += 1
            self._lost += lost
            if self._events >= MOST_WAITING:
                self._settle()

    def _settle(self) -> None:
        """Add up the runs that wait."""
        for marks, times in self._waiting:
            ids, lengths = spans(marks, times, self._event)
            places = np.searchsorted(self._ids, ids)
            self._calls += np.bincount(places, minlength=len(self._calls))
            self._totals += np.bincount(places, lengths, minlength=len(self._calls))
            np.minimum.at(self._least, places, lengths)
        self._waiting.clear()
        self._events = 0

    def profile(self, clear: bool = False) -> Profile:
        """The times so far. clear: forget them."""
        with self._lock:
            self._settle()
            rows = list(self._rows)
            for place, n in enumerate(self._order):
                calls = int(self._calls[place])
                least = float(self._least[place]) if calls else 0.0
                rows[n] = replace(rows[n], calls=calls, total=float(self._totals[place]), least=least)
            made = Profile(tuple(rows), self._runs, self._lost, self._event)
            if clear:
                self._clear()
        return made


def spans(marks: np.ndarray, times: np.ndarray, event: float) -> tuple[np.ndarray, np.ndarray]:
    """(ids, nanoseconds) of the intervals in a run's events, without what the events from begin to end cost."""
    ids, begin, end = intervals(marks)
    lengths = (times[end] - times[begin]).astype(np.float64) - event * (end - begin)
    return ids, np.maximum(lengths, 0.0)
