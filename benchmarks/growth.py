"""The memory of this process, as the system and malloc see it, and what a piece of work takes at its peak."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def growth(run: Callable[[], T]) -> tuple[int | None, T]:
    """Bytes by which the resident memory peaks above its level before, during a run; None where it is not known."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
        before = status_bytes("VmRSS")
    except (OSError, AttributeError, KeyError):
        return None, run()
    result = run()
    return max(0, status_bytes("VmHWM") - before), result


def status_bytes(key: str) -> int:
    """A size from /proc/self/status: VmRSS is resident memory, VmHWM its peak. Raises OSError or KeyError."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)[key].split()[0]) * 1024


class _MallInfo(ctypes.Structure):
    """struct mallinfo2 of glibc."""

    _fields_ = [(name, ctypes.c_size_t) for name in ["arena", "ordblks", "smblks", "hblks", "hblkhd"]]
    _fields_ += [(name, ctypes.c_size_t) for name in ["usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"]]


def heap_bytes() -> int:
    """Bytes that malloc has handed out. Raises AttributeError where the C library does not say; glibc does."""
    info = ctypes.CDLL(None).mallinfo2
    info.restype = _MallInfo
    found = info()
    return int(found.uordblks + found.hblkhd)
