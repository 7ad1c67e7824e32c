"""The number of threads that may work at one kernel. It is the process's, and changes no result and no code."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ..hlo.errors import InputError

MOST = 64
"""The most threads without a call of `set_threads`: a kernel has no more chunks (thunks/kinds.py)."""

_GROUPS = "/sys/fs/cgroup"
_OWN_GROUPS = "/proc/self/cgroup"

Place = str | os.PathLike[str]

_wanted: int | None = None
_listeners: list[Callable[[int], None]] = []


def processors() -> int:
    """The number of processors that this process may use: its affinity, and on Linux its control group's quota."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min([known, *quotas()]))


def quotas(groups: Place = _GROUPS, own: Place = _OWN_GROUPS) -> list[int]:
    """The processors' time that each control group around this process allows, in processors, rounded up.

    groups: where they are mounted; own: the names of this process's. Version 2 has one hierarchy, version 1 one for
    processors.
    """
    found: list[int] = []
    for line in _read(own).splitlines():
        controllers, _, name = line.partition(":")[2].partition(":")
        if controllers and "cpu" not in controllers.split(","):
            continue
        for folder in _folders(os.path.join(groups, "cpu") if controllers else groups, name):
            files = ("cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us")
            words = "".join(_read(os.path.join(folder, file)) for file in files)
            quota, period = [*words.split(), "", ""][:2]
            if quota.isdecimal() and period.isdecimal():  # not "max", not -1
                found.append(-(-int(quota) // max(1, int(period))))
    return found


def _folders(top: Place, name: str) -> Iterator[str]:
    """The folder of a control group, then those of the groups around it."""
    parts = [part for part in name.split("/") if part]
    for count in range(len(parts), -1, -1):
        yield os.path.join(top, *parts[:count])


def _read(file: Place) -> str:
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as text:
            return text.read()
    except OSError:
        return ""


def threads() -> int:
    """How many threads may work at one kernel: by default one a processor, MOST at most."""
    global _wanted
    if _wanted is None:
        _wanted = min(processors(), MOST)
    return _wanted


def set_threads(count: int | None) -> None:
    """Let up to `count` threads work at one kernel; None: the default. It holds from the next kernel on, for programs
    that are compiled already, too. Raises InputError below 1.
    """
    global _wanted
    if count is not None and count < 1:
        raise InputError(f"{count} threads cannot run a kernel", remedy="give 1 or more, or None for one a processor")
    _wanted = count
    for listener in _listeners:
        listener(threads())


@contextmanager
def on_threads(count: int | None) -> Iterator[None]:
    """Let up to `count` threads work at one kernel until the block ends."""
    before = threads()
    set_threads(count)
    try:
        yield
    finally:
        set_threads(before)


def listen(listener: Callable[[int], None]) -> None:
    """Call `listener` with the number now and whenever it changes."""
    _listeners.append(listener)
    listener(threads())
