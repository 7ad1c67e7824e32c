"""Drawn kernels whose results take over operands: both stacks give what they give where every value has memory of its
own, and the evaluator's values.
"""

from random import Random

import numpy as np
import pytest

from ...differential.execute import execute
from ...differential.setting import Setting, plan_of_setting
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.ir import Module
from ...hlo.verify.verifier import verify
from ...planning.assignment_checker import check_assignment
from ..generators.in_place_kernels import InPlaceKernels
from ..support.check import check

SETTING = Setting(cache=False, optimized=False)
PROGRAMS = 40
"""Of each test."""


def whole_numbers(module: Module, seed: int) -> list[np.ndarray]:
    """Small integers of each parameter's type: sums of them are exact."""
    numbers = np.random.default_rng(seed)
    found = []
    for parameter in module.entry.parameters:
        shape = parameter.shape
        values = numbers.integers(-3, 4, shape.dims)
        if shape.dtype.is_complex:
            values = values + 1j * numbers.integers(-3, 4, shape.dims)
        found.append(values.astype(shape.dtype.numpy))
    return found


def takes_over(module: Module) -> bool:
    """Whether some result of a kernel lies where an operand was."""
    made = plan_of_setting(module, SETTING)
    check_assignment(made)
    return any(set(k.operands) & set(k.results) for k in made.kernels)


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("start", range(0, 4 * PROGRAMS, PROGRAMS))
def test_results_in_place_are_those_of_the_evaluator(start, fused):
    in_place = 0
    for seed in range(start, start + PROGRAMS):
        text = InPlaceKernels(Random(seed)).text(fused=fused)
        module = parse_module(text)
        verify(module)
        in_place += takes_over(module)
        inputs = whole_numbers(module, seed)
        wanted = evaluate(module, inputs)
        for stack in ("legacy", "mlir"):
            given = execute(module, inputs, stack, SETTING)
            assert all(map(np.array_equal, wanted, given)), f"{stack}, seed {seed}:\n{text}"
    assert in_place >= PROGRAMS // (4 if fused else 10)


COMPLEX_CHAIN = """HloModule m
ENTRY e {
  a = f32[1,1,2] parameter(0)
  b = f32[1,1,2] parameter(1)
  c = f32[1,1,1] parameter(2)
  d = f32[1,1,1] parameter(3)
  shared = f32[1,1,2] convolution(a, c), window={size=1}, dim_labels=bf0_oi0->bf0
  left = f32[1,1,2] convolution(b, c), window={size=1}, dim_labels=bf0_oi0->bf0
  right = f32[1,1,2] convolution(a, d), window={size=1}, dim_labels=bf0_oi0->bf0
  real = f32[1,1,2] subtract(shared, left)
  imag = f32[1,1,2] add(shared, right)
  first = f32[1,1,2] convolution(imag, c), window={size=1}, dim_labels=bf0_oi0->bf0
  second = f32[1,1,2] convolution(real, c), window={size=1}, dim_labels=bf0_oi0->bf0
  ROOT r = c64[1,1,2] complex(first, second)
}
"""


def test_two_convolutions_that_read_one_operand_behind_them():
    """As of a polynomial with complex roots: the second result read what the first had overwritten."""
    ones = [np.full(shape, n + 2, np.float32) for n, shape in enumerate([(1, 1, 2), (1, 1, 2), (1, 1, 1), (1, 1, 1)])]
    (result,) = check(COMPLEX_CHAIN, ones)
    assert result.tolist() == [[[72 - 16j, 72 - 16j]]]


CROSSED = """HloModule m, is_scheduled=true
plus {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }}
f {{ p = f32[8,16] parameter(0)
  q = f32[8,16] parameter(1)
  x = f32[9,8,16] parameter(2)
  y = f32[8,16,9] parameter(3)
  zero = f32[] constant(0)
  s = f32[8,16] reduce(x, zero), dimensions={{0}}, to_apply=plus
  t = f32[8,16] reduce(y, zero), dimensions={{2}}, to_apply=plus
  pq = f32[8,16] multiply(p, q)
  a = f32[8,16] add(pq, s)
  b = f32[8,16] subtract(t, pq)
  ROOT r = (f32[8,16], f32[8,16]) tuple({ends}) }}
ENTRY e {{ p = f32[8,16] parameter(0)
  q = f32[8,16] parameter(1)
  x = f32[9,8,16] parameter(2)
  y = f32[8,16,9] parameter(3)
  pp = f32[8,16] add(p, p)
  qq = f32[8,16] add(q, q)
  ROOT r = (f32[8,16], f32[8,16]) fusion(pp, qq, x, y), kind=kLoop, calls=f }}
"""


@pytest.mark.parametrize("ends", ["a, b", "b, a"])
def test_two_results_each_over_an_operand_of_both(ends):
    """One is behind sums of columns, which have loops of their own; the other is not."""
    module = parse_module(CROSSED.format(ends=ends))
    assert takes_over(module)
    check(CROSSED.format(ends=ends), whole_numbers(module, 0))


TWICE = """HloModule m, is_scheduled=true
plus { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  g = f32[] parameter(4)
  h = f32[] parameter(5)
  ROOT r = pred[] compare(a, b), direction=LT }
f { p = f32[1,8,4] parameter(0)
  q = f32[1,8,4] parameter(1)
  zero = f32[] constant(0)
  a = f32[1,8,4] negate(p)
  s = f32[1,8] reduce(q, zero), dimensions={2}, to_apply=plus
  b = f32[1,8,4] broadcast(s), dimensions={0,1}
  ROOT r = (f32[1,8,4], f32[1,8,4], f32[1,8,4]) sort(a, a, b), dimensions={0}, to_apply=less }
ENTRY e { p = f32[1,8,4] parameter(0)
  q = f32[1,8,4] parameter(1)
  pp = f32[1,8,4] add(p, p)
  qq = f32[1,8,4] add(q, q)
  ROOT r = (f32[1,8,4], f32[1,8,4], f32[1,8,4]) fusion(pp, qq), kind=kLoop, calls=f }
"""


def test_one_value_twice_among_the_results_of_a_row_kernel():
    """In place it is written last: until then it is read where it was written first. A sort along one element becomes
    such results after other passes would have made them one.
    """
    module = parse_module(TWICE)
    assert takes_over(module)
    check(TWICE, whole_numbers(module, 0))
