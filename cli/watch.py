"""Says on standard error what a command is at when it takes long, and ends what takes longer than a limit.

A thread looks at the frames of the others: neither the evaluator nor compiled code knows of it, or pays for it.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from .output import say, wrapped

FIRST_SECONDS, MOST_SECONDS = 5.0, 60.0
"""When the first line comes, and the longest time between two; it doubles in between."""


class OverLimit(BaseException):
    """The limit is over."""


@contextmanager
def limited(seconds: float | None) -> Iterator[None]:
    """Raise OverLimit in the block after this many seconds by the clock. Only in the main thread, where Python handles
    signals; compiled loops return to it every few milliseconds.
    """
    if seconds is None or not hasattr(signal, "setitimer"):
        yield
        return

    def end(number: int, frame: FrameType | None) -> None:
        raise OverLimit

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Watch:
    """What is being done: set `doing` before each step. Use it in `with`."""

    def __init__(self, tell: Callable[[str], None] | None = None) -> None:
        self._tell = tell or (lambda line: say(wrapped(line), err=True))
        self._doing, self._since = "", time.monotonic()
        self._over = threading.Event()

    def doing(self, what: str) -> None:
        self._doing, self._since = what, time.monotonic()

    def __enter__(self) -> Watch:
        threading.Thread(target=self._watch, name="watch", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _watch(self) -> None:
        told, pause = self._doing, FIRST_SECONDS
        since = self._since
        while not self._over.wait(min(0.25, pause / 4)):
            if (self._doing, self._since) != (told, since):
                told, since, pause = self._doing, self._since, FIRST_SECONDS
            if told and time.monotonic() - since >= pause:
                self._tell(f"{told}, for {time.monotonic() - since:.0f} s now{_where()}")
                pause += min(pause, MOST_SECONDS)


def _where() -> str:
    """What the frames of this process are at: an instruction of the evaluator's, iterations of loops."""
    found: dict[str, str] = {}
    for frame in sys._current_frames().values():
        inner: FrameType | None = frame
        while inner is not None:
            place = inner.f_code.co_filename.replace("\\", "/")
            for (file, name), describe in _TELLING.items():
                if inner.f_code.co_name == name and place.endswith(file) and name not in found:
                    found[name] = describe(inner.f_locals)
            inner = inner.f_back
    words = [text for text in found.values() if text]
    return f": {'; '.join(words)}" if words else ""


def _instruction(values: dict[str, Any]) -> str:
    computation, slot = values.get("computation"), values.get("result", -1)
    if computation is None or not 0 <= slot < len(computation.instructions):
        return ""
    i = computation.instructions[slot]
    return f"{i.opcode.value} '{i.name}' of {computation.name}"


def _loop(values: dict[str, Any]) -> str:
    return f"{values.get('iterations', 0):,} iterations of '{values['instruction'].name}'"


def _rounds(values: dict[str, Any]) -> str:
    pauses, limits = values.get("pauses"), values.get("limits")
    count = sum(p * n for p, n in zip(pauses, limits, strict=True)) if pauses and limits else 0
    return f"some {count:,} iterations of its loops" if count else ""


_TELLING: dict[tuple[str, str], Callable[[dict[str, Any]], str]] = {
    ("evaluator/reference/control.py", "while_"): _loop,
    ("evaluator/evaluator.py", "call"): _instruction,
    ("thunks/rounds.py", "looping"): _rounds,
}
"""(File, function) whose innermost frame says where a run is → how."""
