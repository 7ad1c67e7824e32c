"""Hardware counters of this process by perf_event_open: cycles, instructions, misses; and page faults, which it counts
everywhere. What the system does not offer is said in a line.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

HARDWARE, SOFTWARE = 0, 1
EVENTS: Mapping[str, tuple[int, int]] = {
    "cycles": (HARDWARE, 0),
    "instructions": (HARDWARE, 1),
    "cache misses": (HARDWARE, 3),
    "branch misses": (HARDWARE, 5),
    "page faults": (SOFTWARE, 2),
}
"""Name → type and config of perf_event_attr (linux/perf_event.h)."""

NUMBERS = {"x86_64": 298, "aarch64": 241}
"""Architecture → number of the system call."""

ATTRIBUTE_BYTES = 128
USER_ONLY = 1 << 5 | 1 << 6
"""exclude_kernel and exclude_hv: what any user may count of their own process, where that is not forbidden."""

TIMES = 1 << 0 | 1 << 1
"""read_format: also for how long a counter was enabled and running, as some may have to take turns."""

CLOSE_ON_EXEC = 8
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")

Open = Callable[[int, int, int], int]
"""(type, config, thread) → a file descriptor. Raises OSError."""


def open_event(kind: int, config: int, thread: int) -> int:
    """A counter of a thread of this process, in user mode. Raises OSError."""
    number = NUMBERS.get(platform.machine()) if sys.platform == "linux" else None
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    attribute = bytearray(ATTRIBUTE_BYTES)
    struct.pack_into("=IIQ", attribute, 0, kind, ATTRIBUTE_BYTES, config)
    struct.pack_into("=Q", attribute, 32, TIMES)
    struct.pack_into("=Q", attribute, 40, USER_ONLY)
    pointer = (ctypes.c_char * ATTRIBUTE_BYTES).from_buffer(attribute)
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    found = call(
        ctypes.c_long(number), pointer, ctypes.c_int(thread), ctypes.c_int(-1), ctypes.c_int(-1), CLOSE_ON_EXEC
    )
    if found < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return int(found)


@dataclass(frozen=True)
class Counters:
    """Open counters: descriptors by name, one for each thread. notes: which there are not, and why."""

    descriptors: Mapping[str, tuple[int, ...]]
    notes: tuple[str, ...]

    def read(self) -> dict[str, float]:
        """What was counted so far, over all threads that there were when they were opened."""
        return {name: sum(map(_value, each)) for name, each in self.descriptors.items()}

    def close(self) -> None:
        for each in self.descriptors.values():
            for descriptor in each:
                os.close(descriptor)

    def __enter__(self) -> Counters:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_counters(open_one: Open = open_event) -> Counters:
    """The counters of EVENTS that this process may use, on all of its threads."""
    threads = sorted(map(int, os.listdir("/proc/self/task"))) if sys.platform == "linux" else [0]
    found: dict[str, tuple[int, ...]] = {}
    refused: dict[int, list[str]] = {}
    for name, (kind, config) in EVENTS.items():
        made: list[int] = []
        try:
            for thread in threads:
                made.append(open_one(kind, config, thread))
            found[name] = tuple(made)
        except OSError as error:
            for descriptor in made:
                os.close(descriptor)
            refused.setdefault(error.errno or 0, []).append(name)
    return Counters(found, tuple(f"no {', '.join(names)}: {reason(code)}" for code, names in refused.items()))


def reason(code: int) -> str:
    """Why a counter could not be opened, and what to do. code: an error number."""
    if code in (errno.EACCES, errno.EPERM):
        level = PARANOID.read_text().strip() if PARANOID.exists() else "unknown"
        return (
            f"not permitted (kernel.perf_event_paranoid is {level}: sysctl kernel.perf_event_paranoid=2 or lower, or "
            "CAP_PERFMON; in a container also a seccomp profile that allows perf_event_open)"
        )
    if code in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP, errno.EINVAL):
        return "this machine does not offer them (virtual machines often hide the processor's counters)"
    if code == errno.ENOSYS:
        return "perf_event_open is a system call of Linux, on x86-64 and AArch64"
    return os.strerror(code)


def _value(descriptor: int) -> float:
    value, enabled, running = struct.unpack("=QQQ", os.read(descriptor, 24))
    return float(value) * (enabled / running if running else 1.0)
