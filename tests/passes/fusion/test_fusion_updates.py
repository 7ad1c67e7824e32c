"""Updates in place: what reads the updated array at other places is stored, so that nothing copies the whole array."""

import numpy as np
import pytest

from ....formats.text.parser import parse_module
from ....planning.plan import KernelStep
from ....planning.planner import plan
from ...support.check import check
from .test_fusion import kernels

REGION = "add { p = f32[] parameter(0)\n  q = f32[] parameter(1)\n  ROOT s = f32[] add(p, q) }\n"
ROWS = "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"
TAKEN = "offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}"

ELSEWHERE = {
    "update": ("o = f32[4] dynamic-slice(x, j), dynamic_slice_sizes={4}", "dynamic-update-slice(x, n, k)"),
    "slice": ("o = f32[4] slice(x), slice={[3:7]}", "dynamic-update-slice(x, n, k)"),
    "view": (
        "v = f32[8,8] reshape(x)\n w = f32[1,4] slice(v), slice={[1:2], [2:6]}\n o = f32[4] reshape(w)",
        "dynamic-update-slice(x, n, k)",
    ),
    "scatter": (f"o = f32[4] gather(x, i), {TAKEN}", f"scatter(x, i, n), {ROWS}, to_apply=add"),
}


def looped(read: str, update: str) -> str:
    return f"""HloModule m
{REGION}
body {{ p = (s32[], f32[64], s32[4]) parameter(0)
  k = s32[] get-tuple-element(p), index=0
  x = f32[64] get-tuple-element(p), index=1
  i = s32[4] get-tuple-element(p), index=2
  c = s32[] constant(7)
  one = s32[] constant(1)
  j = s32[] subtract(c, k)
  {read}
  n = f32[4] negate(o)
  u = f32[64] {update}
  k1 = s32[] add(k, one)
  ROOT r = (s32[], f32[64], s32[4]) tuple(k1, u, i) }}
below {{ p = (s32[], f32[64], s32[4]) parameter(0)
  k = s32[] get-tuple-element(p), index=0
  c = s32[] constant(9)
  ROOT r = pred[] compare(k, c), direction=LT }}
ENTRY e {{ x = f32[64] parameter(0)
  i = s32[4] parameter(1)
  k = s32[] constant(0)
  t = (s32[], f32[64], s32[4]) tuple(k, x, i)
  w = (s32[], f32[64], s32[4]) while(t), condition=below, body=body
  ROOT r = f32[64] get-tuple-element(w), index=1 }}
"""


@pytest.mark.parametrize("form", ELSEWHERE)
def test_a_loop_updates_in_place_what_it_reads_elsewhere(form):
    text = looped(*ELSEWHERE[form])
    steps = [s for s in plan(parse_module(text)).walk() if isinstance(s, KernelStep)]
    (update,) = (s.kernel for s in steps if "update" in s.kernel.name or "scatter" in s.kernel.name)
    assert set(update.results) <= set(update.operands)
    check(text, [np.arange(64, dtype=np.float32), np.array([3, 1, 63, 1], np.int32)])


def test_what_is_read_where_it_is_written_stays_in_the_kernel():
    assert kernels("""x = f32[64] parameter(0)
      k = s32[] parameter(1)
      o = f32[4] dynamic-slice(x, k), dynamic_slice_sizes={4}
      n = f32[4] negate(o)
      ROOT u = f32[64] dynamic-update-slice(x, n, k)""") == ["dynamic-slice negate dynamic-update-slice"]


def test_a_copy_is_no_worse_than_storing_most_of_the_array():
    assert kernels("""x = f32[64] parameter(0)
      k = s32[] parameter(1)
      o = f32[40] slice(x), slice={[3:43]}
      n = f32[40] negate(o)
      ROOT u = f32[64] dynamic-update-slice(x, n, k)""") == ["slice negate dynamic-update-slice"]
