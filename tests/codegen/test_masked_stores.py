"""A masked store of one lane writes that lane only: LLVM 22.1 writes more where it truncates."""

import ml_dtypes
import numpy as np
import pytest

from ...codegen.masked_stores import with_plain_stores
from ...codegen.optimize import assembly
from ...codegen.options import EmitOptions, Target
from ...differential.outcome import outcome
from ...differential.setting import Setting
from ...formats.text.parser import parse_module

WIDE = EmitOptions(Target.level("x86-64-v4"))
MOVES = {8: "movb", 16: "movw", 32: "movl"}


def mask(*lanes: int) -> str:
    return ", ".join(f"i1 {str(n in lanes).lower()}" for n in range(8))


def narrowing(wide: int, narrow: int, *lanes: int) -> str:
    store = f"@llvm.masked.store.v8i{narrow}.p0"
    return f"""
define void @f(<8 x i{wide}> %x, ptr %p) {{
  %t = trunc <8 x i{wide}> %x to <8 x i{narrow}>
  tail call void {store}(<8 x i{narrow}> %t, ptr align 16 %p, <8 x i1> <{mask(*lanes)}>)
  ret void
}}
declare void {store}(<8 x i{narrow}>, ptr, <8 x i1>)
"""


@pytest.mark.parametrize("lane", [0, 3, 7])
@pytest.mark.parametrize(("wide", "narrow"), [(32, 16), (32, 8), (64, 32), (64, 16), (64, 8)])
def test_one_lane_is_written_as_wide_as_it_is(wide, narrow, lane):
    (write,) = [line.split() for line in assembly(narrowing(wide, narrow, lane), WIDE).splitlines() if "(%rdi)" in line]
    at = lane * narrow // 8
    assert write[0] == MOVES[narrow] and write[-1] == f"{at or ''}(%rdi)"


def test_the_alignment_is_that_of_the_lane():
    assert "store i16 %only.lane.1, ptr %only.place.1, align 2" in with_plain_stores(narrowing(32, 16, 7))
    assert "store i16 %only.lane.1, ptr %only.place.1, align 16" in with_plain_stores(narrowing(32, 16, 0))
    unaligned = narrowing(32, 16, 4).replace("ptr align 16 %p", "ptr %p")
    assert "store i16 %only.lane.1, ptr %only.place.1, align 1" in with_plain_stores(unaligned)


def test_stores_of_several_lanes_stay():
    for lanes in ((0, 1), (2, 5, 7), ()):
        text = narrowing(32, 16, *lanes)
        assert with_plain_stores(text) == text


def test_the_ninth_element_is_no_wider_than_the_others():
    """Of MLIR's loop LLVM makes a vector of 8 and a masked one, where the processor has AVX-512."""
    module = parse_module("""HloModule m
ENTRY e {
  x = bf16[9] parameter(0)
  y = bf16[9] acos(x)
  z = bf16[9] asin(x)
  ROOT r = bf16[9] add(y, z)
}
""")
    x = np.linspace(-1, 1, 9).astype(ml_dtypes.bfloat16)
    found = outcome(module, [x], ("evaluator", "legacy", "mlir"), Setting(cache=False, red_zones=True))
    assert not found.is_finding, found.sentence
