"""Ctrl-C ends a command within half a second, with one line and status 130, also while native code runs.

Python handles a signal when the main thread returns to its interpreter, and a kernel, LLVM or NumPy may take long. So a
thread watches: what the main thread has not ended GRACE seconds after the signal ends then. docs/adr/0026-ctrl-c.md.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

GRACE = 0.15
"""Seconds from Ctrl-C in which the main thread may clean up."""

LINE = "testbed: interrupted"
STATUS = 130

_said = threading.Lock()
_watching = _seen = False
_grace = GRACE


def watch() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt and ends the process soon after. Call it in the main thread."""
    global _watching
    _watching = True
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_wait, args=(read,), name="interrupt", daemon=True).start()
    signal.signal(signal.SIGINT, _raise)
    usual = sys.unraisablehook
    sys.unraisablehook = lambda failed: None if isinstance(failed.exc_value, KeyboardInterrupt) else usual(failed)


def _raise(number: int, frame: object) -> None:
    global _seen
    _seen = True
    raise KeyboardInterrupt


def seen() -> bool:
    """Whether a KeyboardInterrupt was raised since `watch`."""
    return _seen


def say() -> None:
    """Print the line, unless the watching thread has done so."""
    if not _watching or _said.acquire(blocking=False):
        print(LINE, file=sys.stderr, flush=True)


@contextmanager
def patience(seconds: float) -> Iterator[None]:
    """A grace of `seconds` within. For code that answers at once but has much to clean up."""
    global _grace
    _grace = seconds
    try:
        yield
    finally:
        _grace = GRACE


def _wait(descriptor: int) -> None:
    while os.read(descriptor, 1) != bytes([signal.SIGINT]):
        continue  # another signal that has a handler
    pressed = time.monotonic()
    while time.monotonic() - pressed < _grace:
        time.sleep(0.02)
    _end()


def _end() -> None:
    """End the process now: remove files that are being written, and processes that were started."""
    from ..formats.whole_files import remove_unfinished

    remove_unfinished()
    for child in _children():
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)
    if _said.acquire(blocking=False):
        cursor = "\x1b[?25h" if os.isatty(2) else ""  # a progress bar hides it
        os.write(2, f"{cursor}{LINE}\n".encode())
    os._exit(STATUS)


def _children() -> list[int]:
    """The processes that this one started, where the system says so; else those of multiprocessing.

    Without its resource tracker, which ends with this process, and removes what the others leave behind.
    """
    from multiprocessing import active_children, resource_tracker

    spared = getattr(resource_tracker._resource_tracker, "_pid", None)
    lists = [*Path("/proc/self/task").glob("*/children")]
    if not lists:
        return [child.pid for child in active_children() if child.pid is not None]
    found: list[int] = []
    for path in lists:
        with suppress(OSError):
            found += [int(number) for number in path.read_text().split()]
    return [child for child in found if child != spared]
