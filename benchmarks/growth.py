"""The memory that a piece of work takes at its peak, as the system sees it."""

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
        before = _status("VmRSS")
    except (OSError, AttributeError, KeyError):
        return None, run()
    result = run()
    return max(0, _status("VmHWM") - before), result


def _status(key: str) -> int:
    """A size in bytes from /proc/self/status."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(dict(line.split(":", 1) for line in lines)[key].split()[0]) * 1024
