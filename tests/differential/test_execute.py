"""Runs of a case on a stack: what reads memory that nothing has written gives the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from ...backends.host.contexts import Context
from ...differential.execute import SPOILED_TEMPORARY, execute
from ...differential.setting import Setting
from ...formats.text.parser import parse_module

MODULE = parse_module("""HloModule m
ENTRY e {
  p = f32[50,7] parameter(0)
  d = f32[50,50] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}
  ROOT r = f32[50,50] dot(d, d), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
""")


@pytest.mark.parametrize("red_zones", [False, True])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_temporary_memory_has_the_same_contents_before_each_run(stack, red_zones, monkeypatch):
    run, seen = Context.run, []

    def noted(self, *arguments):
        seen.extend(block.copy() for block in self._arena)
        return run(self, *arguments)

    monkeypatch.setattr(Context, "run", noted)
    execute(MODULE, [np.ones((50, 7), np.float32)], stack, Setting(cache=False, red_zones=red_zones))
    assert sum(block.size for block in seen) > 10000 and all((block == SPOILED_TEMPORARY).all() for block in seen)
