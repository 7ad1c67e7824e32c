"""The number of threads that may work at one kernel. It is the process's, and changes no result of compiled code."""

from __future__ import annotations

import os
from collections.abc import Callable

from ..hlo.errors import InputError

DEFAULT = 1
"""The number of threads until `set_threads` is called."""

_wanted = DEFAULT
_listeners: list[Callable[[int], None]] = []


def processors() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def threads() -> int:
    """How many threads may work at one kernel. With 1, programs are compiled for one thread, which is faster."""
    return _wanted


def set_threads(count: int | None) -> None:
    """Let up to `count` threads work at one kernel; None: one a processor. It holds from the next kernel on.

    What was compiled for one thread stays so. Compiled code gives the same bits on any number; code for one thread and
    code for several may differ in the last bit of short sums (ADR 33). Raises InputError below 1.
    """
    global _wanted
    wanted = processors() if count is None else count
    if wanted < 1:
        raise InputError(f"{count} threads cannot run a kernel", remedy="give 1 or more, or None for one a processor")
    _wanted = wanted
    for listener in _listeners:
        listener(wanted)


def listen(listener: Callable[[int], None]) -> None:
    """Call `listener` with the number now and whenever it changes."""
    _listeners.append(listener)
    listener(_wanted)
