"""Loops whose state stops changing end, as in XLA and the evaluator; other loops are unchanged."""

import numpy as np
import pytest

from ....hlo.opcodes import Op
from ...support.check import check
from ...support.passes import opcodes, same


def loop(
    state: str, body: str, condition: str = "ROOT c = pred[] constant(true)", shape: str = "(s32[], f32[2])"
) -> str:
    return f"""HloModule m
condition {{ t = {shape} parameter(0)
  {condition} }}
body {{ t = {shape} parameter(0)
  {body} }}
ENTRY e {{
  n = s32[] parameter(0)
  x = f32[2] parameter(1)
  s = {shape} {state}
  ROOT w = {shape} while(s), condition=condition, body=body
}}
"""


STATE = "tuple(n, x)"
INPUTS = [np.array(3, np.int32), np.array([1, 2], np.float32)]
CHAIN = """k = s32[] constant(5)
  f = f32[] convert(n)
  y = f32[2] broadcast(f), dimensions={}
  ROOT p = (s32[], f32[2]) tuple(k, y)"""
ENDLESS = {
    "hands on": ("ROOT p = (s32[], f32[2]) tuple(n, x)", 0),
    "constants": ("k = s32[] constant(5)\n  z = f32[2] constant({7,8})\n  ROOT p = (s32[], f32[2]) tuple(k, z)", 1),
    "chain": (CHAIN, 2),
}
BELOW = """n = s32[] get-tuple-element(t), index=0
  k = s32[] constant(%d)
  ROOT c = pred[] compare(n, k), direction=LT"""
READ = "n = s32[] get-tuple-element(t), index=0\n  x = f32[2] get-tuple-element(t), index=1\n  "


@pytest.mark.parametrize("name", ENDLESS)
def test_a_settled_state_ends_the_loop(name):
    body, turns = ENDLESS[name]
    text = loop(STATE, READ + body)
    after = same(text, INPUTS, "flatten", "finite-loops", exact=True)
    assert (Op.WHILE in opcodes(after)) == (turns > 1)
    check(text, INPUTS)


@pytest.mark.parametrize("limit", [2, 4, 9])
def test_the_loops_own_end_comes_first(limit):
    """n is 3, then 5. Below 4, one iteration runs; below 9, as many as the state needs to settle."""
    condition = BELOW % limit
    text = loop(STATE, READ + ENDLESS["chain"][0], condition)
    same(text, INPUTS, "flatten", "finite-loops", exact=True)
    check(text, INPUTS)


BY_VALUE = {
    "a mask": "k = s32[] constant(6)\n  m = s32[] and(n, k)\n  ROOT p = (s32[], f32[2]) tuple(m, x)",
    "a limit": "h = f32[2] constant({0.5, 1e30})\n  y = f32[2] multiply(x, h)\n  ROOT p = (s32[], f32[2]) tuple(n, y)",
    "NaN": "y = f32[2] subtract(x, x)\n  z = f32[2] divide(y, y)\n  m = f32[2] add(x, z)\n"
    "  ROOT p = (s32[], f32[2]) tuple(n, m)",
}


@pytest.mark.parametrize("name", BY_VALUE)
def test_a_state_that_settles_by_its_values_ends_the_loop(name):
    text = loop(STATE, READ + BY_VALUE[name])
    same(text, INPUTS, "flatten", "finite-loops", exact=True)
    check(text, INPUTS)


def test_complex_numbers_and_empty_arrays_that_settle():
    body = """z = c64[2] get-tuple-element(t), index=0
  e = s8[0] get-tuple-element(t), index=1
  k = c64[2] constant({(0,0), (1,0)})
  y = c64[2] multiply(z, k)
  f = s8[0] negate(e)
  ROOT p = (c64[2], s8[0]) tuple(y, f)"""
    text = loop("tuple(z, e)", body, shape="(c64[2], s8[0])").replace(
        "n = s32[] parameter(0)", "e = s8[0] parameter(0)"
    )
    text = text.replace("x = f32[2] parameter(1)", "z = c64[2] parameter(1)")
    check(text, [np.zeros(0, np.int8), np.array([1 + 2j, 3 - 1j], np.complex64)])


def test_a_state_that_is_no_tuple():
    text = loop("negate(x)", "ROOT z = f32[2] constant({7,8})", shape="f32[2]")
    check(text, INPUTS)


def test_an_empty_state():
    check(loop("tuple()", "ROOT z = () tuple()", shape="()"), INPUTS)


def test_a_counter_is_left_alone():
    body = READ + "o = s32[] constant(1)\n  m = s32[] add(n, o)\n  ROOT p = (s32[], f32[2]) tuple(m, x)"
    condition = BELOW % 8
    text = loop(STATE, body, condition)
    assert Op.WHILE in opcodes(same(text, INPUTS, "flatten", "finite-loops", exact=True))


@pytest.mark.parametrize("name", BY_VALUE)
def test_a_condition_that_stays_true_does_not_keep_a_settled_loop_going(name):
    """n stays 3 or becomes 2, so that n < 8 for ever; nobody can tell before the loop runs."""
    check(loop(STATE, READ + BY_VALUE[name], BELOW % 8), INPUTS)


def test_a_settled_loop_within_a_loop():
    """The inner loop settles in each of three iterations of the outer one, and at another state each time."""
    text = """HloModule m
less { t = (s32[], f32[2]) parameter(0)
  n = s32[] get-tuple-element(t), index=0
  k = s32[] constant(8)
  ROOT c = pred[] compare(n, k), direction=LT }
halve { t = (s32[], f32[2]) parameter(0)
  n = s32[] get-tuple-element(t), index=0
  m = s32[] maximum(n, n)
  x = f32[2] get-tuple-element(t), index=1
  h = f32[2] constant({0.5, 0.25})
  y = f32[2] multiply(x, h)
  ROOT p = (s32[], f32[2]) tuple(m, y) }
some { t = (s32[], s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  k = s32[] constant(3)
  ROOT c = pred[] compare(i, k), direction=LT }
step { t = (s32[], s32[], f32[2]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] get-tuple-element(t), index=1
  x = f32[2] get-tuple-element(t), index=2
  o = f32[2] constant({3, 5})
  f = f32[] convert(i)
  g = f32[2] broadcast(f), dimensions={}
  y = f32[2] add(o, g)
  s = (s32[], f32[2]) tuple(n, y)
  w = (s32[], f32[2]) while(s), condition=less, body=halve
  z = f32[2] get-tuple-element(w), index=1
  a = f32[2] add(x, z)
  u = f32[2] add(a, y)
  q = s32[] constant(1)
  j = s32[] add(i, q)
  ROOT p = (s32[], s32[], f32[2]) tuple(j, n, u) }
ENTRY e {
  n = s32[] parameter(0)
  x = f32[2] parameter(1)
  z = s32[] constant(0)
  s = (s32[], s32[], f32[2]) tuple(z, n, x)
  ROOT w = (s32[], s32[], f32[2]) while(s), condition=some, body=step
}
"""
    check(text, INPUTS)
