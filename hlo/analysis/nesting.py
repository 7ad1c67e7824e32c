"""How deep computations call each other, and room for walks that recurse as deep."""

from __future__ import annotations

import sys

from ..ir import Computation, Module

FRAMES = 8
"""Python frames that a walk may use for one level of computations."""

MOST = 5_000
"""Levels beyond which a walk is refused rather than let it use up the C stack."""

SPARE = 1_000
"""Frames for everything else."""


def depth(module: Module) -> int:
    """The largest number of computations that are active at once; callees come before their callers in a module."""
    found: dict[Computation, int] = {}
    for computation in module.computations:
        called = (found.get(c, 0) for i in computation.instructions for c in i.called())
        found[computation] = 1 + max(called, default=0)
    return max(found.values(), default=0)


def make_room(module: Module) -> None:
    """Raise Python's recursion limit so that a walk may follow the module's calls. It is never lowered: threads."""
    wanted = SPARE + FRAMES * min(depth(module), MOST)
    if wanted > sys.getrecursionlimit():
        sys.setrecursionlimit(wanted)
