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
