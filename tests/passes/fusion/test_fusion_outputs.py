"""Multi-output fusion: which kernels share their loops, and correct results on both stacks."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ....formats.text.parser import parse_module
from ....hlo.ir import Instruction
from ....hlo.opcodes import Op
from ....planning.inplace import reuses
from ....planning.planner import plan
from ...support.check import check, make_inputs
from ...support.passes import agree
from ...support.plan_interpreter import run_plan

ADD = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
max { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q) }
"""

ADAM = """ENTRY e { p = f32[40,50] parameter(0)
  m = f32[40,50] parameter(1)
  v = f32[40,50] parameter(2)
  g = f32[40,50] parameter(3)
  b = f32[] constant(0.9)
  bb = f32[40,50] broadcast(b), dimensions={}
  m1 = f32[40,50] multiply(m, bb)
  m2 = f32[40,50] add(m1, g)
  gg = f32[40,50] multiply(g, g)
  v1 = f32[40,50] multiply(v, bb)
  v2 = f32[40,50] add(v1, gg)
  sv = f32[40,50] sqrt(v2)
  u = f32[40,50] divide(m2, sv)
  p2 = f32[40,50] subtract(p, u)
  ROOT t = (f32[40,50], f32[40,50], f32[40,50]) tuple(p2, m2, v2) }
"""


def kernels(text: str) -> list[Instruction]:
    return [step.instruction for step in plan(parse_module(text)).walk()]


def positive() -> list[np.ndarray]:
    """Moments whose roots and quotients are no larger than they are."""
    rng = np.random.default_rng(0)
    return [rng.uniform(0.1, 1, (40, 50)).astype(np.float32) for _ in range(4)]


def test_an_optimizer_step_reads_each_array_once_and_may_run_in_place():
    (kernel,) = kernels(ADD + ADAM)
    assert len(kernel.operands) == 4
    assert {leaf for operand, leaf in reuses(kernel)} == {0, 1, 2}
    check(ADD + ADAM, positive())


def test_an_optimizer_step_in_donated_memory():
    aliases = ", ".join(f"{{{n}}}: ({n}, {{}}, must-alias)" for n in range(3))
    head = f"HloModule m, input_output_alias={{ {aliases} }}"
    text = (ADD + ADAM).replace("HloModule m", head)
    made = plan(parse_module(text))
    assert len(list(made.walk())) == 1  # and no copy
    inputs = positive()
    agree(parse_module(text), check(text, inputs), run_plan(made, inputs))


COLUMNS = """ENTRY e {{ x = f32[{n},4,{c}]{layout} parameter(0)
  y = f32[{n},4,{c}]{layout} parameter(1)
  w = f32[{c}] parameter(2)
  z = f32[] constant(0)
  low = f32[] constant(-inf)
  xy = f32[{n},4,{c}]{layout} multiply(x, y)
  a = f32[{c}] reduce(xy, z), dimensions={{0,1}}, to_apply=add
  b = f32[{c}] reduce(x, z), dimensions={{0,1}}, to_apply=add
  k = f32[{c}] reduce(y, low), dimensions={{0,1}}, to_apply=max
  aw = f32[{c}] multiply(a, w)
  s = f32[{c}] tanh(b)
  ROOT t = (f32[{c}], f32[{c}], f32[{c}], f32[{c}]) tuple(aw, b, s, k) }}
"""


@pytest.mark.parametrize("n, c", [(3, 8), (5, 300), (1, 16), (7, 1030)])
def test_reductions_over_the_same_columns_and_their_ends_are_one_kernel(n, c):
    text = ADD + COLUMNS.format(n=n, c=c, layout="{2,1,0}")
    assert len(kernels(text)) == 1
    check(text)


def test_columns_of_other_layouts_and_widths():
    check(ADD + COLUMNS.format(n=6, c=24, layout="{2,0,1}"))
    check(ADD + COLUMNS.format(n=6, c=24, layout="{0,2,1}"))
    check(ADD + COLUMNS.format(n=6, c=3, layout="{2,1,0}"))
    check(ADD + COLUMNS.format(n=1, c=1, layout="{2,1,0}"))


@pytest.mark.parametrize("dimensions, result", [("{0,2}", "f32[7]"), ("{1}", "f32[5,3]"), ("{0,1,2}", "f32[]")])
def test_the_end_of_any_reduction_is_in_its_kernel(dimensions, result):
    text = (
        ADD
        + f"""ENTRY e {{ x = f32[5,7,3] parameter(0)
      z = f32[] constant(0)
      y = {result} parameter(1)
      s = {result} reduce(x, z), dimensions={dimensions}, to_apply=add
      a = {result} multiply(s, y)
      b = {result} tanh(a)
      ROOT t = ({result}, {result}, {result}) tuple(b, s, a) }}"""
    )
    assert len(kernels(text)) == 1
    check(text)


def test_special_values_in_columns():
    text = ADD + COLUMNS.format(n=2, c=9, layout="{2,1,0}")
    x = np.ones((2, 4, 9), np.float32)
    x[..., 1], x[..., 2], x[..., 3], x[..., 4] = np.nan, np.inf, -np.inf, -0.0
    x[0, 0, 5], x[1, 1, 5], x[0, 1, 6], x[1, 2, 7] = np.inf, -np.inf, np.nan, -0.0
    check(text, [x, x[::-1].copy(), np.full(9, -0.5, np.float32)])


def test_variadic_reductions_over_columns_stay_right_beside_others():
    check("""HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
arg { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE
  v = f32[] select(g, a, b)
  n = s32[] select(g, i, j)
  ROOT r = (f32[], s32[]) tuple(v, n) }
ENTRY e { x = f32[20,64] parameter(0)
  i = s32[20,64] iota(), iota_dimension=0
  low = f32[] constant(-inf)
  z = f32[] constant(0)
  o = s32[] constant(0)
  r = (f32[64], s32[64]) reduce(x, i, low, o), dimensions={0}, to_apply=arg
  v = f32[64] get-tuple-element(r), index=0
  n = s32[64] get-tuple-element(r), index=1
  s = f32[64] reduce(x, z), dimensions={0}, to_apply=add
  d = f32[64] subtract(s, v)
  ROOT t = (f32[64], s32[64]) tuple(d, n) }""")


def test_a_third_kernel_between_two_readers_keeps_them_apart():
    text = """HloModule m
ENTRY e { x = f32[40,40] parameter(0)
  a = f32[40,40] tanh(x)
  d = f32[40,40] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[40,40] reverse(d), dimensions={0}
  c = f32[40,40] add(x, b)
  ROOT t = (f32[40,40], f32[40,40]) tuple(a, c) }"""
    assert any(i.opcode is Op.DOT for i in kernels(text))
    check(text)


def test_results_of_other_layouts_do_not_share_a_loop():
    text = """HloModule m
ENTRY e { x = f32[40,60] parameter(0)
  y = f32[40,60] parameter(1)
  a = f32[40,60] add(x, y)
  b = f32[40,60]{0,1} multiply(x, y)
  ROOT t = (f32[40,60], f32[40,60]{0,1}) tuple(a, b) }"""
    assert len(kernels(text)) == 2
    check(text)


@st.composite
def programs(draw) -> str:
    """Elementwise ops on arrays of one shape, reductions over their columns, and several results of both kinds."""
    lines, full, columns = [], ["x", "y", "z"], []
    for n in range(draw(st.integers(4, 14))):
        f, g = draw(st.sampled_from(full)), draw(st.sampled_from(full))
        kind = draw(st.sampled_from(["full", "full", "reduce", "end"]))
        if kind == "reduce":
            init, region = draw(st.sampled_from([("zero", "add"), ("low", "max")]))
            lines.append(f"c{n} = f32[20] reduce({f}, {init}), dimensions={{0}}, to_apply={region}")
            columns.append(f"c{n}")
        elif kind == "end" and columns:
            c, d = draw(st.sampled_from(columns)), draw(st.sampled_from(columns))
            lines.append(f"c{n} = f32[20] {draw(st.sampled_from(['add', 'subtract', 'maximum']))}({c}, {d})")
            columns.append(f"c{n}")
        else:
            op = draw(st.sampled_from(["tanh({f})", "add({f}, {g})", "multiply({f}, {g})", "cosine({g})"]))
            lines.append(f"f{n} = f32[40,20] {op.format(f=f, g=g)}")
            full.append(f"f{n}")
    names = full + columns
    results = draw(st.lists(st.sampled_from(names), min_size=2, max_size=5, unique=True))
    shapes = ["f32[40,20]" if r in full else "f32[20]" for r in results]
    head = "\n  ".join(f"{name} = f32[40,20] parameter({n})" for n, name in enumerate("xyz"))
    constants = "zero = f32[] constant(0)\n  low = f32[] constant(-inf)"
    root = f"ROOT t = ({', '.join(shapes)}) tuple({', '.join(results)})"
    return ADD + "ENTRY e { " + "\n  ".join([head, constants, *lines, root]) + " }"


@settings(max_examples=settings().max_examples * 2 // 3)
@given(programs())
def test_programs_with_several_results(text):
    check(text)
    made, inputs = plan(parse_module(text)), make_inputs(parse_module(text))
    run_plan(made, inputs)  # checks in-place results
