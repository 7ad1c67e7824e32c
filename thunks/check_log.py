"""What the checks of a run found, by the thunks that made them."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from ..hlo.later import np
from ..hlo.records import dataclass
from .kinds import Noting, SequentialThunk


@dataclass(frozen=True, slots=True)
class Found:
    """thunk: the check. number, second: what it noted (checks.py): a checksum; or the first element, in the order of
    memory, and its bits, or how many differ.
    """

    thunk: Noting
    number: int
    second: int = 0


@dataclass(frozen=True, slots=True)
class Findings:
    """Of the last run. checks: how many thunks note something. lost: notes that did not fit into the buffer."""

    found: tuple[Found, ...]
    checks: int
    lost: int


class CheckLog:
    """Takes the notes of runs and keeps those of the last one. Threads may add to it at once."""

    def __init__(self, thunks: dict[int, Noting]):
        self._thunks = thunks
        self._lock = threading.Lock()
        self._last: tuple[np.ndarray, np.ndarray, int] | None = None

    def add(self, marks: np.ndarray, numbers: np.ndarray, lost: int = 0) -> None:
        with self._lock:
            self._last = marks, numbers, lost

    def findings(self) -> Findings:
        """Of the last run."""
        with self._lock:
            last = self._last
        if last is None:
            return Findings((), len(self._thunks), 0)
        return Findings(tuple(self._found(last[0].tolist(), last[1].tolist())), len(self._thunks), last[2])

    def _found(self, marks: list[int], numbers: list[int]) -> Iterator[Found]:
        place = 0
        while place < len(marks):
            mark, number = marks[place], numbers[place]
            place += 1
            second = 0
            if place < len(marks) and marks[place] == mark + 1:
                second = numbers[place]
                place += 1
            yield Found(self._thunks[mark // 2], number, second)


def log_of(root: SequentialThunk) -> CheckLog | None:
    """The log of a program; None if nothing in it checks."""
    found = {thunk.id: thunk for thunk in root.walk() if isinstance(thunk, Noting)}
    return CheckLog(found) if found else None
