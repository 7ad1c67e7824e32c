"""The child process of dump.py: lets XLA compile modules and write what it makes, on one processor."""

from __future__ import annotations

import os
from typing import Any

from . import worker
from .dump import ONCE


def serve(descriptor: int) -> None:
    """Answer requests until the other side is closed."""
    os.environ["XLA_FLAGS"] = ONCE
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # XLA cuts kernels into parts for several
    worker.serve(descriptor, _answer)


def _answer(_: Any, kind: str, text: str, flags: Any) -> None:
    from .executable import XlaExecutable

    assert kind == "dump"
    XlaExecutable(text, flags)
