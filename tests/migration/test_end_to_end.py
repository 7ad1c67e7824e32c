"""Whole programs through the public API: every thunk kind, mixed stacks, layouts, results that are parameters."""

import numpy as np
import pytest

from ...migration import Flags, compile_module
from ..support.check import check, compiled, make_inputs, parsed
from ..support.passes import agree

MIXED = ("evaluator", "legacy", "mlir", "mlir,reduce=legacy", "legacy,elementwise=mlir")

SUM = """
add_f32 {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b)
}
"""

PROGRAMS = {
    "while": """HloModule m
condition {
  c = (s32[], f32[16]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(25)
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  c = (s32[], f32[16]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[16] get-tuple-element(c), index=1
  t = f32[16] tanh(x)
  y = f32[16] add(x, t)
  ROOT r = (s32[], f32[16]) tuple(next, y)
}
ENTRY e {
  i = s32[] parameter(0)
  x = f32[16] parameter(1)
  start = (s32[], f32[16]) tuple(i, x)
  ROOT w = (s32[], f32[16]) while(start), condition=condition, body=body
}
""",
    "swap in a loop": """HloModule m
condition {
  c = (s32[], f32[3], f32[3]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(7)
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  c = (s32[], f32[3], f32[3]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[3] get-tuple-element(c), index=1
  y = f32[3] get-tuple-element(c), index=2
  ROOT r = (s32[], f32[3], f32[3]) tuple(next, y, x)
}
ENTRY e {
  i = s32[] constant(0)
  x = f32[3] parameter(0)
  y = f32[3] parameter(1)
  start = (s32[], f32[3], f32[3]) tuple(i, x, y)
  ROOT w = (s32[], f32[3], f32[3]) while(start), condition=condition, body=body
}
""",
    "loop in a loop": """HloModule m
inner_condition {
  c = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(3)
  ROOT less = pred[] compare(i, n), direction=LT
}
inner_body {
  c = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[] get-tuple-element(c), index=1
  half = f32[] constant(0.5)
  y = f32[] multiply(x, half)
  ROOT r = (s32[], f32[]) tuple(next, y)
}
condition {
  c = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(4)
  ROOT less = pred[] compare(i, n), direction=LT
}
body {
  c = (s32[], f32[]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  one = s32[] constant(1)
  next = s32[] add(i, one)
  x = f32[] get-tuple-element(c), index=1
  zero = s32[] constant(0)
  start = (s32[], f32[]) tuple(zero, x)
  w = (s32[], f32[]) while(start), condition=inner_condition, body=inner_body
  y = f32[] get-tuple-element(w), index=1
  seven = f32[] constant(7)
  z = f32[] add(y, seven)
  ROOT r = (s32[], f32[]) tuple(next, z)
}
ENTRY e {
  i = s32[] constant(0)
  x = f32[] parameter(0)
  start = (s32[], f32[]) tuple(i, x)
  ROOT w = (s32[], f32[]) while(start), condition=condition, body=body
}
""",
    "reduce and broadcast": "HloModule m\n" + SUM + """
ENTRY e {
  x = f32[9,33] parameter(0)
  zero = f32[] constant(0)
  s = f32[9] reduce(x, zero), dimensions={1}, to_apply=add_f32
  b = f32[9,33] broadcast(s), dimensions={0}
  d = f32[9,33] divide(x, b)
  ROOT t = f32[33,9] transpose(d), dimensions={1,0}
}
""",
    "layouts": """HloModule m
ENTRY e {
  x = f32[5,7]{0,1} parameter(0)
  y = f32[5,7]{1,0} parameter(1)
  c = f32[5,7]{0,1} copy(y)
  s = f32[5,7]{0,1} add(x, c)
  ROOT r = (f32[5,7]{0,1}, f32[5,7]{0,1}) tuple(s, x)
}
""",
    "tuple parameters, results that are parameters or constants": """HloModule m
ENTRY e {
  p = (f32[4], (s32[2], pred[3])) parameter(0)
  a = f32[4] get-tuple-element(p), index=0
  q = (s32[2], pred[3]) get-tuple-element(p), index=1
  b = s32[2] get-tuple-element(q), index=0
  k = s32[2] constant({5, -6})
  n = f32[4] negate(a)
  ab = (f32[4], s32[2]) tuple(a, b)
  ROOT r = (f32[4], (f32[4], s32[2]), s32[2], f32[4], (s32[2], pred[3])) tuple(n, ab, k, n, q)
}
""",
    "update in place": """HloModule m
ENTRY e {
  x = f32[6,4] parameter(0)
  u = f32[1,4] parameter(1)
  i = s32[] parameter(2)
  zero = s32[] constant(0)
  d = f32[6,4] dynamic-update-slice(x, u, i, zero)
  s = f32[2,4] dynamic-slice(d, i, zero), dynamic_slice_sizes={2,4}
  ROOT r = (f32[6,4], f32[2,4]) tuple(d, s)
}
""",
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_stacks_and_mixtures_agree(name):
    check(PROGRAMS[name], stacks=MIXED)


SWITCH = """HloModule m
negated {
  x = f32[5] parameter(0)
  ROOT y = f32[5] negate(x)
}
doubled {
  x = f32[5] parameter(0)
  ROOT y = f32[5] add(x, x)
}
kept {
  ROOT x = f32[5] parameter(0)
}
ENTRY e {
  which = s32[] parameter(0)
  x = f32[5] parameter(1)
  ROOT r = f32[5] conditional(which, x, x, x), branch_computations={negated, doubled, kept}
}
"""


@pytest.mark.parametrize("which", [-1, 0, 1, 2, 3])
def test_a_switch_takes_the_right_branch(which):
    x = np.arange(5, dtype=np.float32)
    result = check(SWITCH, [np.int32(which), x], stacks=MIXED)[0]
    expected = {0: -x, 1: x + x}.get(which, x)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("value", [True, False])
def test_an_if_takes_the_right_branch(value):
    text = SWITCH.replace("which = s32[]", "which = pred[]").replace(", x, x, x), branch", ", x, x), branch")
    text = text.replace(
        "branch_computations={negated, doubled, kept}", "true_computation=negated, false_computation=kept"
    )
    x = np.arange(5, dtype=np.float32)
    np.testing.assert_array_equal(check(text, [np.bool_(value), x], stacks=MIXED)[0], -x if value else x)


def test_flags_move_single_kernels_and_leave_the_skeleton_alone():
    text = PROGRAMS["reduce and broadcast"]
    by_flags = {flags: compiled(text, flags) for flags in MIXED[1:]}
    stacks = {flags: {stack for _, stack in e.kernels} for flags, e in by_flags.items()}
    assert stacks["legacy"] == {"legacy"} and stacks["mlir"] == {"mlir"}
    assert stacks["mlir,reduce=legacy"] == {"legacy", "mlir"}
    assert len({str(e.thunks) for e in by_flags.values()}) == 1


def test_one_program_runs_for_many_inputs_and_recycles_its_results():
    text = PROGRAMS["while"]
    executable = compile_module(parsed(text), Flags.parse("legacy"))
    outputs = None
    for seed in range(5):
        inputs = make_inputs(parsed(text), seed)
        outputs = executable.execute(inputs, outputs=outputs)
        agree(parsed(text), check(text, inputs, stacks=("evaluator",)), outputs)
