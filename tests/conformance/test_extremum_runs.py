"""Maxima and minima of neighbours in memory, which a function computes that kernels share."""

from __future__ import annotations

import numpy as np
import pytest

from ... import legacy, mlir_emitters
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...planning.planner import plan
from ..support.check import check

STACKS = {"legacy": legacy, "mlir": mlir_emitters}

ROWS = """HloModule m

f {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT c = {t}[] {op}(a, b)
}}

ENTRY e {{
  x = {t}[3,{n}] parameter(0)
  start = {t}[] constant({start})
  {result}
}}
"""
REDUCED = "ROOT r = {t}[3] reduce(x, start), dimensions={{1}}, to_apply=f"
CENTRED = """r = {t}[3] reduce(x, start), dimensions={{1}}, to_apply=f
  w = {t}[3,{n}] broadcast(r), dimensions={{0}}
  ROOT d = {t}[3,{n}] subtract(x, w)"""


def rows(n: int, op: str = "maximum", t: str = "f32", start: str = "-inf", result: str = REDUCED) -> str:
    return ROWS.format(t=t, op=op, n=n, start=start, result=result.format(t=t, n=n))


def helpers(text: str, stack: str, level: str = "x86-64-v4") -> list[str]:
    emitted = STACKS[stack].emit(plan(parse_module(text)).kernels, EmitOptions(Target.level(level)))
    return [helper for helper in emitted.helpers if "imum" in helper]


@pytest.mark.parametrize("stack", STACKS)
def test_long_rows_in_memory_have_one_function_whatever_their_length(stack):
    found = {text for n in (256, 1000, 4096) for text in helpers(rows(n), stack)}
    assert len(found) == 1
    assert stack == "legacy" or helpers(rows(1000, result=CENTRED), stack) == list(found)
    assert not helpers(rows(255), stack) and not helpers(rows(1000, t="bf16"), stack)
    computed = rows(1000).replace("reduce(x,", "reduce(y,").replace("start =", "y = f32[3,1000] negate(x)\n  start =")
    assert not helpers(computed, stack)


@pytest.mark.parametrize("result", [REDUCED, CENTRED], ids=["reduced", "centred"])
@pytest.mark.parametrize("n", [255, 256, 257, 511, 1000])
@pytest.mark.parametrize(("op", "t", "start"), [("maximum", "f32", "-inf"), ("minimum", "f64", "inf")])
def test_every_element_counts(op, t, start, n, result):
    x = np.random.default_rng(n).standard_normal((3, n)).astype(np.float32 if t == "f32" else np.float64)
    sign = 1 if op == "maximum" else -1
    for row, place in enumerate((0, n // 2, n - 1)):
        x[row, place] = sign * 9
    check(rows(n, op, t, start, result), [x])


@pytest.mark.parametrize("op", ["maximum", "minimum"])
@pytest.mark.parametrize("place", [0, 100, 299])
def test_nan_wins_and_zeros_have_signs(op, place):
    x = np.zeros((3, 300), np.float32) * (1 if op == "minimum" else -1)
    x[0, place] *= -1
    x[2] = np.random.default_rng(0).standard_normal(300)
    x[2, place] = np.nan
    start = "-inf" if op == "maximum" else "inf"
    (found,) = check(rows(300, op, "f32", start), [x])
    assert (
        np.isnan(found[2]) and np.signbit(found[0]) == (op == "minimum") and np.signbit(found[1]) == (op != "minimum")
    )


def test_the_first_value_counts():
    x = np.full((3, 256), -4, np.float32)
    check(rows(256, start="-3"), [x])
    check(rows(256, "minimum", start="nan"), [x])
