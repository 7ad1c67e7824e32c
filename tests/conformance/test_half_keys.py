"""Maxima and minima of f16, of columns and of windows, next to NaN, both zeros, infinities and subnormals."""

import re

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, parsed

STARTS = {"maximum": "-inf", "minimum": "inf"}
REDUCTIONS = [("40,33", "33", "0"), ("5,3,70", "5,70", "1"), ("2,30,4", "2,4", "1"), ("3,90", "90", "0")]
WINDOWS = [("6,37", "5,36", "2x2"), ("2,3,12,20", "2,3,10,18", "1x1x3x3"), ("4,300", "4,297", "1x4")]
RUN = ("evaluator", "legacy", "mlir")


def module(op: str, source: str, target: str, rule: str, start: str | None = None) -> str:
    return f"""HloModule m
f {{
  a = f16[] parameter(0)
  b = f16[] parameter(1)
  ROOT c = f16[] {op}(a, b)
}}
ENTRY e {{
  x = f16[{source}] parameter(0)
  z = f16[] constant({start or STARTS[op]})
  ROOT r = f16[{target}] {rule}, to_apply=f
}}
"""


def reduction(op: str, source: str, target: str, dimension: str, start: str | None = None) -> str:
    return module(op, source, target, f"reduce(x, z), dimensions={{{dimension}}}", start)


def window(op: str, source: str, target: str, size: str, start: str | None = None) -> str:
    return module(op, source, target, f"reduce-window(x, z), window={{size={size}}}", start)


def numbers(dims: str) -> np.ndarray:
    x = np.random.default_rng(8).standard_normal([int(n) for n in dims.split(",")]).astype(np.float16)
    flat = x.reshape(-1)
    for k, special in enumerate((-0.0, 0.0, np.inf, -np.inf, np.nan, 6e-8, -6e-8, 65504)):
        flat[k :: 29 + 2 * k] = special
    return x


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"], indirect=True)
@pytest.mark.parametrize("op", STARTS)
@pytest.mark.parametrize("start", [None, "nan", "0", "-0"])
@pytest.mark.parametrize(("make", "dims"), [*((reduction, d) for d in REDUCTIONS), *((window, d) for d in WINDOWS)])
def test_values(make, dims, start, op, cpu):
    results = [check(make(op, *dims, start), [numbers(dims[0])], (stack,))[0] for stack in RUN]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])
        signs = [np.where(np.isnan(x), False, np.signbit(x)) for x in (result, results[0])]
        np.testing.assert_array_equal(*signs)


@pytest.mark.parametrize("op", STARTS)
@pytest.mark.parametrize("count", [9, 40])
def test_zeros_alone(count, op):
    """Of zeros of both signs, a maximum is 0 and a minimum −0, wherever they are."""
    x = np.full((count, 17), -0.0, np.float16)
    x[count // 2] = 0.0
    for stack in RUN:
        (result,) = check(reduction(op, f"{count},17", "17", "0"), [x], (stack,))
        assert (np.signbit(result) == (op == "minimum")).all()


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    "text",
    [reduction("maximum", "64,3,4096", "64,4096", "1"), window("maximum", "8,16,32,64", "8,16,31,63", "1x1x2x2")],
    ids=["reduction", "window"],
)
def test_they_are_integers_from_first_to_last(text, level, stack):
    """In f32, or with conversions to it between two of them, they took two to five times as long."""
    options = EmitOptions(Target.level(level))
    code = optimize(emitter(stack).emit(plan(parsed(text)).emitted, options).llvm_ir, options)
    assert re.search(r"@llvm\.smax\.v\d+i16", code)
    assert not re.search(r"= (fpext|fptrunc|fcmp) ", code)
