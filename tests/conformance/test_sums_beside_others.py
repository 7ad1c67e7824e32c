"""Long sums in a reduction of several operands are as exact as those of one, on both stacks; the rest is right, too."""

from __future__ import annotations

import numpy as np
import pytest

from ...benchmarks.long.numerics import measure
from ...benchmarks.long.pairs import PROGRAMS
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ..support.check import check


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_sum_beside_another_result_is_right_to_a_few_units(name):
    """One chain of 2¹⁸ numbers is off by 1e-5."""
    line = measure(PROGRAMS[name], 18, ["legacy", "mlir"], 0)
    assert not line.failures and max(line.errors.values()) < 1e-6, line.errors


def test_a_chain_beside_an_arg_max_is_short():
    """Vectors do not divide it: one of 2048 numbers is off by 2e-6."""
    line = measure(PROGRAMS["sum of x and arg max of x², rows"], 22, ["legacy", "mlir"], 0)
    assert not line.failures and max(line.errors.values()) < 1e-6, line.errors


REGION = """region {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  i = s32[] parameter(2)
  c = {t}[] parameter(3)
  d = {t}[] parameter(4)
  j = s32[] parameter(5)
  x = {t}[] add(a, c)
  {other}
  ROOT t = ({t}[], {t}[], s32[]) tuple(x, y, k)
}}
"""
ARG = """p = pred[] compare(b, d), direction=GE
  y = {t}[] select(p, b, d)
  k = s32[] select(p, i, j)"""
SUMS = """y = {t}[] add(d, b)
  k = s32[] add(i, j)"""


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize("dims, result, dimension", [("40", "", 0), ("3,700", "3", 1), ("700,9", "9", 0)])
@pytest.mark.parametrize("other", [ARG, SUMS], ids=["arg max", "sums"])
def test_all_results_of_a_reduction_of_three_operands(other, dims, result, dimension, dtype):
    region = REGION.format(t=dtype, other=other.format(t=dtype))
    check(f"""HloModule m
{region}
ENTRY e {{ x = {dtype}[{dims}] parameter(0)
  v = {dtype}[{dims}] multiply(x, x)
  i = s32[{dims}] iota(), iota_dimension={dimension}
  z = {dtype}[] constant(0)
  n = s32[] constant(0)
  ROOT t = ({dtype}[{result}], {dtype}[{result}], s32[{result}]) reduce(x, v, i, z, z, n), dimensions={{{dimension}}},
      to_apply=region }}
""")


def test_mlir_divides_two_sums_that_a_schedule_keeps_together():
    """No pass takes such a reduction apart."""
    text = """HloModule m, is_scheduled=true
region { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  x = f32[] add(a, c)
  y = f32[] add(b, d)
  ROOT t = (f32[], f32[]) tuple(x, y) }
ENTRY e { x = f32[262144] parameter(0)
  z = f32[] constant(0)
  ROOT t = (f32[], f32[]) reduce(x, x, z, z), dimensions={0}, to_apply=region }
"""
    x = np.random.default_rng(3).random(1 << 18, np.float32)
    for found in compile_module(parse_module(text), Flags.parse("mlir")).execute([x]):
        assert abs(float(found) / x.astype(np.float64).sum() - 1) < 2e-7
