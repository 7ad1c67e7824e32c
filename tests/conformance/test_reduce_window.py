"""reduce-window on the evaluator and both stacks: all windows; cumulative and wide ones without repeated reads."""

import numpy as np
import pytest
from hypothesis import given

from ...backends.base import CompileOptions
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.analysis.windows import Running, running, taps
from ...hlo.opcodes import Op
from ...migration import Flags, compile_module
from ...planning.planner import plan
from ..cases.window_cases import pools, windows
from ..support.check import check


@given(windows())
def test_reduce_window(case):
    check(*case)


@given(windows(longest=90, most_dims=2))
def test_wide_windows(case):
    check(*case)


@given(pools())
def test_pools_along_memory(case):
    check(*case)


def cumulative(dims: str, window: str, op: str = "add", before: str = "copy", result: str = "") -> str:
    return f"""HloModule m
by {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] {op}(a, b) }}
ENTRY e {{ x = f32[{dims}] parameter(0)
  y = f32[{dims}] {before}(x)
  z = f32[] constant(0)
  ROOT r = f32[{result or dims}] reduce-window(y, z), window={{{window}}}, to_apply=by }}"""


@pytest.mark.parametrize(
    ("dims", "window", "expected"),
    [
        ("40", "size=40 pad=39_0", Running(0, False)),
        ("40", "size=40 pad=0_39", Running(0, True)),
        ("40", "size=50 pad=49_0", Running(0, False)),
        ("3,40", "size=1x40 pad=0_0x39_0", Running(1, False)),
        ("40,3", "size=40x1 pad=0_39x0_0", Running(0, True)),
        ("40", "size=39 pad=38_0", None),
        ("40", "size=40 pad=39_0 rhs_reversal=1", None),
        ("40,40", "size=40x40 pad=39_0x39_0", None),
        ("40", "size=5 pad=2_2", None),
    ],
)
def test_what_is_cumulative(dims, window, expected):
    assert running(parse_module(cumulative(dims, window)).entry.root) == expected


@pytest.mark.parametrize("window", ["size=1x5000 pad=0_0x4999_0", "size=1x5000 pad=0_0x0_4999"])
@pytest.mark.parametrize("layout", ["{1,0}", "{0,1}"])
def test_a_cumulative_sum_is_one_kernel_with_its_producers_and_as_good_as_f64(window, layout):
    text = cumulative("7,5000", window, before="negate").replace("] reduce-w", f"]{layout} reduce-w")
    module = parse_module(text)
    assert len(plan(module).kernels) == 1
    x = np.random.default_rng(0).random((7, 5000)).astype(np.float32)
    wide = -x.astype(np.float64)
    expected = np.cumsum(wide, axis=1) if "4999_0" in window else np.cumsum(wide[:, ::-1], axis=1)[:, ::-1]
    for stack in ("legacy", "mlir"):
        options = CompileOptions(cache=None, red_zones=True)
        (result,) = compile_module(module, Flags.parse(stack), options).execute([x])
        np.testing.assert_allclose(result, expected, rtol=1e-7)


def test_an_integral_image_runs_along_one_dimension_after_the_other():
    text = cumulative("60,70", "size=60x70 pad=59_0x69_0")
    made = plan(parse_module(text))
    assert len(made.kernels) == 2
    for i in made.module.instructions():
        assert i.opcode is not Op.REDUCE_WINDOW or running(i) is not None
    check(text, [np.random.default_rng(0).random((60, 70)).astype(np.float32)])


def test_a_wide_window_that_slides_takes_few_steps():
    text = cumulative("20000", "size=1000 pad=500_499", "maximum")
    made = plan(parse_module(text))
    assert all(i.opcode is not Op.REDUCE_WINDOW or taps(i) < 40 for i in made.module.instructions())
    x = np.random.default_rng(0).random(20000).astype(np.float32)
    check(text, [x])


def test_a_pool_is_one_kernel():
    text = cumulative("2,8,8", "size=1x3x3 stride=1x2x2 pad=0_0x1_1x1_1", "maximum", "negate", "2,4,4")
    assert len(plan(parse_module(text)).kernels) == 1
    check(text)


def test_empty_windows_and_operands_hold_the_start():
    for dims, window, result in (("0", "size=2 pad=3_3", "5"), ("4", "size=2 pad=-2_0", "1")):
        text = cumulative(dims, window, result=result).replace("constant(0)", "constant(7)")
        expected = evaluate(parse_module(text), [np.ones(int(dims), np.float32)])
        check(text, [np.ones(int(dims), np.float32)])
        assert expected[0].shape == (int(result),)
