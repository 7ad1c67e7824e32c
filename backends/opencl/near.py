"""Launches on the thread that asks for them: of kernels so short that another thread costs more than it saves.

Intel's CPU runtime hands a command to threads of its own, which takes some microseconds for each kernel, and twice that
where caches are far apart. A queue with the extension cl_intel_exec_by_local_thread runs it within the call, as one
loop over all groups.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..accelerator.launches import Launch

HANDOVER = 8000
"""Nanoseconds that a launch takes longer on threads of the runtime: 3 to 10, measured with two processors."""


def are_near(rows: Sequence[Launch], processors: int) -> bool:
    """Whether several processors would save less than it takes to hand the launches over."""
    saved = 0.0
    for row in rows:
        if not row.nanoseconds:
            return False
        saved += row.nanoseconds * (1 - 1 / min(processors, math.prod(row.dimensions.blocks)))
    return saved < HANDOVER * len(rows)
