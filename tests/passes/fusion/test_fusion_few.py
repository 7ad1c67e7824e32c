"""Reductions of few elements inside row kernels, and arrays that are stored before they are broadcast."""

from __future__ import annotations

import math

import numpy as np
import pytest

from .... import legacy
from ....codegen.options import EmitOptions, Target
from ....formats.text.parser import parse_module
from ....hlo.analysis.kernel_forms import ELEMENT_REDUCTION as FEW
from ....hlo.analysis.rows import Role, rows_of_body
from ....hlo.opcodes import Op
from ....lhlo import from_kernels, parse_text, to_kernels
from ....planning.plan import WhileStep
from ....planning.planner import plan
from ...support.check import check

HEAD = """HloModule m
add {{ p = {t}[] parameter(0)
  q = {t}[] parameter(1)
  ROOT s = {t}[] add(p, q) }}
min {{ p = {t}[] parameter(0)
  q = {t}[] parameter(1)
  ROOT s = {t}[] minimum(p, q) }}
argmin {{ p = {t}[] parameter(0)
  n = s32[] parameter(1)
  q = {t}[] parameter(2)
  m = s32[] parameter(3)
  le = pred[] compare(p, q), direction=LE
  v = {t}[] select(le, p, q)
  k = s32[] select(le, n, m)
  ROOT r = ({t}[], s32[]) tuple(v, k) }}
ENTRY e {{
  x = {t}[{a},{c}] parameter(0)
  y = {t}[{b},{c}] parameter(1)
  zero = {t}[] constant(0)
  most = {t}[] constant(1000)
  none = s32[] constant(0)
  xb = {t}[{a},{b},{c}] broadcast(x), dimensions={{0,2}}
  yb = {t}[{a},{b},{c}] broadcast(y), dimensions={{1,2}}
  d = {t}[{a},{b},{c}] subtract(xb, yb)
  dd = {t}[{a},{b},{c}] multiply(d, d)
  square = {t}[{a},{b}] reduce(dd, zero), dimensions={{2}}, to_apply=add
  {rest}
}}
"""

NEAREST = """number = s32[{a},{b}] iota(), iota_dimension=1
  both = ({t}[{a}], s32[{a}]) reduce(square, number, most, none), dimensions={{1}}, to_apply=argmin
  k = s32[{a}] get-tuple-element(both), index=1
  v = {t}[{a}] reduce(square, most), dimensions={{1}}, to_apply=min
  ROOT t = (s32[{a}], {t}[{a}]) tuple(k, v)"""

PATTERNS = {
    "nearest": NEAREST,
    "all": """fourth = {t}[{a},{b}] multiply(square, square)
  ROOT all = {t}[] reduce(fourth, zero), dimensions={{0,1}}, to_apply=add""",
    "two levels": """v = {t}[{a}] reduce(square, most), dimensions={{1}}, to_apply=min
  vb = {t}[{a},{b}] broadcast(v), dimensions={{0}}
  over = {t}[{a},{b}] subtract(square, vb)
  ROOT s = {t}[{a}] reduce(over, zero), dimensions={{1}}, to_apply=add""",
    "kept": """over = {t}[{a},{b}] add(square, square)
  v = {t}[{a}] reduce(over, most), dimensions={{1}}, to_apply=min
  vb = {t}[{a},{b}] broadcast(v), dimensions={{0}}
  rest = {t}[{a},{b}] subtract(over, vb)
  ROOT t = ({t}[{a}], {t}[{a},{b}]) tuple(v, rest)""",
}


def text_of(pattern: str, t: str = "f32", a: int = 9, b: int = 21, c: int = 3) -> str:
    sizes = {"t": t, "a": a, "b": b, "c": c}
    return HEAD.format(rest=PATTERNS[pattern].format(**sizes), **sizes)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_distances_are_not_stored(pattern):
    made = plan(parse_module(text_of(pattern)))
    (step,) = made.walk()
    rows = rows_of_body(step.instruction.called()[0])
    assert rows is not None
    assert {i.opcode for i, role in rows.roles.items() if role is Role.FULL} >= {Op.REDUCE}
    assert not [a for a in made.assignment.allocations if a.kind.value == "temporary" and a.size]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(
    ("t", "a", "b", "c"),
    [("f32", 9, 21, 3), ("f32", 5, 5, 5), ("f32", 1, 30, 8), ("f64", 40, 6, 1), ("s32", 7, 9, 2), ("bf16", 6, 12, 4)],
)
def test_results(pattern, t, a, b, c):
    """As many rows as columns, one row, sums of one element and of eight; a coordinate that is NaN."""
    rng = np.random.default_rng(0)
    dtype = {"f32": np.float32, "f64": np.float64, "s32": np.int32}.get(t)
    if dtype is None:
        check(text_of(pattern, t, a, b, c))
        return
    inputs = [(rng.integers(-8, 8, (n, c)) / (1 if t == "s32" else 4)).astype(dtype) for n in (a, b)]
    check(text_of(pattern, t, a, b, c), inputs)
    if t == "f32":
        inputs[0][a // 2, 0], inputs[1][0, 0] = np.nan, -np.inf
        check(text_of(pattern, t, a, b, c), inputs)


@pytest.mark.parametrize("c", [FEW, FEW + 1])
def test_longer_reductions_stay_apart(c):
    assert len(list(plan(parse_module(text_of("nearest", c=c))).walk())) == (1 if c <= FEW else 2)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_same_llvm_ir_from_lhlo(pattern):
    kernels = plan(parse_module(text_of(pattern))).kernels
    options = EmitOptions(Target.host())
    read_back = to_kernels(parse_text(from_kernels(kernels).to_text()))
    assert legacy.emit(read_back, options).llvm_ir == legacy.emit(kernels, options).llvm_ir


REPEATED = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
ENTRY e {
  x = f32[60,64] parameter(0)
  y = f32[60,64,7] parameter(1)
  zero = f32[] constant(0)
  costly = f32[60,64] exponential(x)
  repeated = f32[60,64,7] broadcast(costly), dimensions={0,1}
  both = f32[60,64,7] multiply(repeated, y)
  a = f32[64,7] reduce(both, zero), dimensions={0}, to_apply=add
  b = f32[60,7] reduce(both, zero), dimensions={1}, to_apply=add
  ROOT t = (f32[64,7], f32[60,7]) tuple(a, b)
}
"""


def test_what_is_dear_is_stored_before_it_is_repeated():
    """The product, which has seven times as many elements, is recomputed in both of its readers."""
    made = plan(parse_module(REPEATED))
    (arena,) = [a.size for a in made.assignment.allocations if a.kind.value == "temporary"]
    assert arena == 60 * 64 * 4 < math.prod((60, 64, 7)) * 4
    assert len(list(made.walk())) == 3
    check(REPEATED)


LEAPFROG = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
condition { state = (s32[], f32[40,6], f32[40,6]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  most = s32[] constant(9)
  ROOT less = pred[] compare(n, most), direction=LT }
body { state = (s32[], f32[40,6], f32[40,6]) parameter(0)
  n = s32[] get-tuple-element(state), index=0
  x = f32[40,6] get-tuple-element(state), index=1
  v = f32[40,6] get-tuple-element(state), index=2
  one = s32[] constant(1)
  next = s32[] add(n, one)
  zero = f32[] constant(0)
  step = f32[] constant(0.01)
  steps = f32[40,6] broadcast(step), dimensions={}
  a = f32[40,40,6] broadcast(x), dimensions={0,2}
  b = f32[40,40,6] broadcast(x), dimensions={1,2}
  apart = f32[40,40,6] subtract(b, a)
  force = f32[40,6] reduce(apart, zero), dimensions={1}, to_apply=add
  push = f32[40,6] multiply(force, steps)
  faster = f32[40,6] add(v, push)
  moved = f32[40,6] multiply(faster, steps)
  there = f32[40,6] add(x, moved)
  c = f32[40,40,6] broadcast(there), dimensions={0,2}
  d = f32[40,40,6] broadcast(there), dimensions={1,2}
  closer = f32[40,40,6] subtract(d, c)
  pull = f32[40,6] reduce(closer, zero), dimensions={1}, to_apply=add
  slower = f32[40,6] add(faster, pull)
  ROOT t = (s32[], f32[40,6], f32[40,6]) tuple(next, there, slower)
}
ENTRY e {
  x = f32[40,6] parameter(0)
  v = f32[40,6] parameter(1)
  zero = s32[] constant(0)
  state = (s32[], f32[40,6], f32[40,6]) tuple(zero, x, v)
  w = (s32[], f32[40,6], f32[40,6]) while(state), condition=condition, body=body
  xs = f32[40,6] get-tuple-element(w), index=1
  vs = f32[40,6] get-tuple-element(w), index=2
  ROOT t = (f32[40,6], f32[40,6]) tuple(xs, vs)
}
"""


def test_loop_state_that_others_read_elsewhere_is_written_in_place_by_a_kernel_of_its_own():
    """The sum reads all positions: fused with it, the new positions would need a buffer and a copy back."""
    made = plan(parse_module(LEAPFROG))
    arena = sum(a.size for a in made.assignment.allocations if a.kind.value == "temporary")
    assert arena < 40 * 6 * 4
    check(LEAPFROG)


def test_what_is_made_of_a_sum_is_stored_rather_than_the_sum():
    """Two kernels read `faster`, which reuses the velocity's buffer; the sum would need a buffer of its own."""
    body = next(s for s in plan(parse_module(LEAPFROG)).walk() if isinstance(s, WhileStep)).body
    reducing = [
        s.instruction.called()[0].root
        for s in body
        if getattr(s, "instruction", None) is not None
        and s.instruction.opcode is Op.FUSION
        and any(i.opcode is Op.REDUCE for i in s.instruction.called()[0].instructions)
    ]
    assert [root.opcode for root in reducing] == [Op.ADD, Op.ADD]
