"""Pause the cyclic garbage collector while a program is planned, or many files are imported.

Modules, plans and intermediate objects have no reference cycles, and what an import makes stays: so the collector would
find nothing. But it would start each time that the number of objects has grown by a quarter, and visit all of them: a
quarter of the planning time for a module of 40,000 instructions, a tenth of the time of the first compilation.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_LOCK = threading.Lock()
_resting = 0  # number of threads within collector_at_rest
_was_enabled = False


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Within the block no cyclic collection starts, in any thread; the last thread to leave restores the state."""
    global _resting, _was_enabled
    with _LOCK:
        if not _resting:
            _was_enabled = gc.isenabled()
            gc.disable()
        _resting += 1
    try:
        yield
    finally:
        with _LOCK:
            _resting -= 1
            if not _resting and _was_enabled:
                gc.enable()
