"""A limit on the memory of a command: what does not fit is an error that names the array, not a killed process.

Linux grants memory that it does not have, and kills the process that then uses it. With a limit the allocation fails.
"""

from __future__ import annotations

import sys
from pathlib import Path

_MEMINFO = Path("/proc/meminfo")
_STATUS = Path("/proc/self/status")
_GROUP = Path("/sys/fs/cgroup")


def limit_memory() -> None:
    """Let allocations fail beyond what this process has and the machine, or its control group, has available.

    Child processes inherit the limit. A lower limit that the process was started with stays. Linux only.
    """
    if sys.platform != "linux":
        return
    import resource

    available = available_bytes()
    if available is None:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = available + _kibibytes(_STATUS, "VmData")
    known = [limit for limit in (soft, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min([wanted, *known]), hard))


def available_bytes() -> int | None:
    """Bytes that can be allocated without swapping, as the kernel estimates; None if it does not say."""
    available = _kibibytes(_MEMINFO, "MemAvailable") + _kibibytes(_MEMINFO, "SwapFree")
    left = [available] if available else []
    limit, used = _number(_read(_GROUP / "memory.max")), _number(_read(_GROUP / "memory.current"))
    if limit is not None and used is not None:
        left.append(max(0, limit - used + _page_cache()))
    return min(left, default=None)


def _page_cache() -> int:
    """Bytes of files that the control group holds in memory, which the kernel drops when memory is short."""
    fields = dict(line.split() for line in _read(_GROUP / "memory.stat").splitlines())
    return sum(_number(fields.get(name, "")) or 0 for name in ("active_file", "inactive_file"))


def _kibibytes(file: Path, field: str) -> int:
    """The bytes of a field of a file in /proc, whose unit is kB; 0 if there is none."""
    for line in _read(file).splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * 1024
    return 0


def _number(text: str) -> int | None:
    return int(text) if text.strip().isdecimal() else None  # "max": no limit


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
