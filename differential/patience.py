"""How long a stack may take over a case, and what ends it there: a timer of processor time in its own process.

Long loops of compiled programs return to Python every few milliseconds, so that one without end needs no new process.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

TICK = 0.25
"""Processor seconds until it is said again that time is over: a callback in C code may swallow the first time."""


class TooLong(BaseException):
    """A stack has used up its time."""

    def __init__(self, seconds: float) -> None:
        self.reason = no_answer(seconds)
        super().__init__(self.reason)


def no_answer(seconds: float) -> str:
    """What is said of a run that took longer."""
    return f"no answer within {seconds:g} s"


@dataclass(frozen=True)
class Patience:
    """whole: processor seconds that a stack has for a case, compilation included. least, times: its run has `least`,
    and `times` as many as the slowest of the stacks that have ended, as far as one has.
    """

    whole: float
    least: float | None = None
    times: float = 30.0

    def run(self, ended: float | None) -> float:
        """Seconds of a run. ended: those of the slowest stack that has ended; None: none has."""
        if self.least is None or ended is None:
            return self.whole
        return min(self.whole, self.least + self.times * ended)


class Clock:
    """What ends a block; `allow` sets how long it may go on from now. In threads it ends nothing."""

    def __init__(self) -> None:
        self._live = False
        self._seconds = 0.0
        self._works = hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()

    def allow(self, seconds: float) -> None:
        self._seconds = seconds
        if self._works:
            signal.setitimer(signal.ITIMER_PROF, seconds, TICK)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self._live:
            raise TooLong(self._seconds)


@contextmanager
def clock() -> Iterator[Clock]:
    """A clock for a block, in which it raises TooLong."""
    made = Clock()
    if not made._works:
        yield made
        return
    before = signal.signal(signal.SIGPROF, made._end)
    try:
        try:
            made._live = True
            yield made
        finally:
            made._live = False
    finally:  # also if time was over just then
        made._live = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def processor_seconds(pid: int, unknown: float) -> float:
    """The processor time that a process has used, of all its threads; `unknown` where the system does not say."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return unknown
