"""Rows of several dimensions whose loops are split: each dimension within a step has a loop of its own."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ... import legacy, mlir_emitters
from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...planning.planner import plan
from ..support.check import check

STACKS = {"legacy": legacy, "mlir": mlir_emitters}

DISTANCES = """HloModule m

f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b)
}}

ENTRY e {{
  x = f32[{dims},3] parameter(0)
  y = f32[{others},3] parameter(1)
  a = f32[{dims},{others},3] broadcast(x), dimensions={{{first},{last}}}
  b = f32[{dims},{others},3] broadcast(y), dimensions={{{second},{last}}}
  d = f32[{dims},{others},3] subtract(a, b)
  s = f32[{dims},{others},3] multiply(d, d)
  zero = f32[] constant(0)
  r = f32[{dims},{others}] reduce(s, zero), dimensions={{{last}}}, to_apply=f
  ROOT e = f32[{dims},{others}] exponential(r)
}}
"""


def distances(dims: list[int], others: list[int]) -> str:
    def joined(numbers) -> str:
        return ",".join(map(str, numbers))

    count = len(dims) + len(others)
    return DISTANCES.format(
        dims=joined(dims),
        others=joined(others),
        first=joined(range(len(dims))),
        second=joined(range(len(dims), count)),
        last=count,
    )


@pytest.mark.parametrize("stack", STACKS)
def test_no_loop_divides(stack: str):
    """LLVM makes no vectors of one that does: exp of a distance took six times the time."""
    kernels = plan(parse_module(distances([512], [512]))).kernels
    assert kernels[0].partition is not None
    options = EmitOptions(Target.level("x86-64-v4"), ranges=True)
    text = optimize(STACKS[stack].emit(kernels, options).llvm_ir, options)
    assert re.search(r"fmul[^\n]* <\d+ x float>", text)
    assert not re.search(r" (lshr|and|[us]div|[us]rem) [^\n]*i64 [^\n]*, (9|511|512)\b", text)


@pytest.mark.parametrize(
    ("dims", "others"),
    [([512], [300]), ([7, 40], [301]), ([300], [5, 1, 41]), ([2, 1, 70], [3, 5, 17]), ([1], [70_000])],
)
def test_values_are_right(dims: list[int], others: list[int]):
    rng = np.random.default_rng(len(dims))
    check(distances(dims, others), [rng.normal(size=(*n, 3), scale=0.3).astype("f4") for n in (dims, others)])
