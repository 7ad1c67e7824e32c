"""Rng and its state: both stacks give the evaluator's numbers, also in loops and branches."""

import numpy as np
import pytest

from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.errors import UnsupportedError
from ....planning.planner import plan
from ...support.check import check
from ...support.passes import opcodes, same


def entry(*lines: str, regions: str = "") -> str:
    return "HloModule m\n" + regions + "ENTRY e {\n" + "\n".join(lines) + "\n}\n"


def two(kind: str, dims: str, distribution: str, low: str = "-3", high: str = "5") -> str:
    low = {"u": "2", "p": "false"}.get(kind[0], low)
    high = "true" if kind == "pred" else high
    return entry(
        f"a = {kind}[] constant({low})", f"b = {kind}[] constant({high})",
        f"x = {kind}[{dims}] rng(a, b), distribution={distribution}",
        f"y = {kind}[{dims}] rng(a, b), distribution={distribution}",
        f"ROOT t = ({kind}[{dims}], {kind}[{dims}]) tuple(x, y)",
    )  # fmt: skip


@pytest.mark.parametrize("dims", ["", "7", "3,5", "0"])
@pytest.mark.parametrize("kind", ["f32", "f64", "bf16", "f16", "s32", "u8", "s64", "pred"])
def test_uniform(kind, dims):
    text = two(kind, dims, "rng_uniform")
    after = same(text, [], "flatten", "expand-rng-state")
    assert not any(o.value.startswith("rng") for o in opcodes(after))
    x, y = check(text, [])
    assert dims in ("", "0") or kind == "pred" or (np.asarray(x) != y).any()  # the state advances


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16"])
def test_normal(kind):
    text = two(kind, "3,5", "rng_normal", "1", "2")
    same(text, [], "flatten", "expand-rng-state")
    check(text, [])


def test_an_empty_range_gives_its_start():
    text = two("s32", "9", "rng_uniform", "4", "4")
    assert {v for r in check(text, []) for v in r.tolist()} == {4}


def test_the_state_is_128_bits():
    most = 2**64 - 1
    text = entry(
        f"a = u64[2] rng-get-and-update-state(), delta={most}", "b = u64[2] rng-get-and-update-state(), delta=1",
        "c = u64[2] rng-get-and-update-state(), delta=1", "ROOT t = (u64[2], u64[2], u64[2]) tuple(a, b, c)",
    )  # fmt: skip
    first, second, third = check(text, [])
    assert (int(second[0]) | int(second[1]) << 64) - (int(first[0]) | int(first[1]) << 64) == most
    assert third[1] == second[1] and third[0] == second[0] + 1


LOOP = """more { t = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT }
draw { x = f32[3] parameter(0)
  a = f32[] constant(0)
  b = f32[] constant(1)
  r = f32[3] rng(a, b), distribution=rng_uniform
  ROOT s = f32[3] add(x, r) }
keep { ROOT x = f32[3] parameter(0) }
turn { t = (s32[], f32[3]) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = f32[3] get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  two = s32[] constant(2)
  odd = s32[] remainder(i, two)
  p = pred[] compare(odd, one), direction=EQ
  y = f32[3] conditional(p, x, x), true_computation=draw, false_computation=keep
  ROOT n = (s32[], f32[3]) tuple(j, y) }
"""


def test_loops_and_branches_carry_the_state():
    text = entry(
        "i = s32[] constant(0)", "x = f32[3] parameter(0)", "t = (s32[], f32[3]) tuple(i, x)",
        "w = (s32[], f32[3]) while(t), condition=more, body=turn", "y = f32[3] get-tuple-element(w), index=1",
        "a = f32[] constant(0)", "b = f32[] constant(1)", "z = f32[3] rng(a, b), distribution=rng_uniform",
        "ROOT r = (f32[3], f32[3]) tuple(y, z)", regions=LOOP,
    )  # fmt: skip
    inputs = [np.zeros(3, np.float32)]
    same(text, inputs, "flatten", "expand-rng-state")
    drawn, after = check(text, inputs)
    assert (drawn > 0).all() and (drawn != after).all()


def test_a_draw_that_nobody_uses_moves_the_state_too():
    lines = ["a = f32[] constant(0)", "b = f32[] constant(1)", "d = f32[3] rng(a, b), distribution=rng_uniform",
             "ROOT r = f32[3] rng(a, b), distribution=rng_uniform"]  # fmt: skip
    (second,) = check(entry(*lines), [])
    (first,) = evaluate(parse_module(entry(*lines[:2], lines[3])), [])
    assert (first != second).any()


def test_a_condition_that_draws_is_refused():
    regions = """more { x = f32[] parameter(0)
  b = f32[] constant(1)
  r = f32[] rng(x, b), distribution=rng_uniform
  ROOT c = pred[] compare(r, b), direction=GT }
turn { ROOT x = f32[] parameter(0) }
"""
    text = entry("x = f32[] parameter(0)", "ROOT w = f32[] while(x), condition=more, body=turn", regions=regions)
    with pytest.raises(UnsupportedError, match="rng in the condition"):
        plan(parse_module(text))
