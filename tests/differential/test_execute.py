"""Runs of a case on a stack: what reads memory that nothing has written gives the same each time."""

from __future__ import annotations

import numpy as np

from ...backends.host.memory import POOL
from ...differential.execute import SPOILED_TEMPORARY, execute
from ...differential.setting import Setting
from ...differential.shared import Shared
from ...formats.text.parser import parse_module
from ...planning.allocation import AllocationKind

MODULE = parse_module("""HloModule m
ENTRY e {
  p = f32[50,7] parameter(0)
  d = f32[50,50] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT r = f32[50,50] dot(d, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
""")


def test_temporary_memory_has_the_same_contents_before_each_run():
    setting = Setting(cache=False)
    shared = Shared(MODULE, setting, ["legacy"])
    sizes = [a.size for a in shared.plan.assignment.allocations if a.kind is AllocationKind.TEMPORARY]
    seen: list[np.ndarray] = []
    for number in (1, 2):
        for block in [POOL.allocate(size) for size in sizes]:
            block.fill(number)
        del block
        execute(
            *(MODULE, [np.ones((50, 7), np.float32)], "legacy", setting, shared),
            on_run=lambda: seen.extend(POOL.allocate(size).copy() for size in sizes),
        )
    assert sizes and len(seen) == 2 * len(sizes) and all((block == SPOILED_TEMPORARY).all() for block in seen)
