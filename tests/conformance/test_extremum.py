"""Long maxima and minima: NaN, infinities and the sign of zero, alone and in a row kernel; sums that stay in a loop."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

from testbed.backends.base import CompileOptions
from testbed.codegen.optimize import optimize
from testbed.codegen.options import EmitOptions
from testbed.formats.text.parser import parse_module
from testbed.migration import Flags, compile_module

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "bf16": ml_dtypes.bfloat16}

ROWS = """HloModule rows
combine {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] {op}(a, b) }}
ENTRY main {{
  x = {t}[{r},{c}] parameter(0)
  init = {t}[] constant({init})
  m = {t}[{r}] reduce(x, init), dimensions={{1}}, to_apply=combine
  n = {t}[{r},{c}] broadcast(m), dimensions={{0}}
  d = {t}[{r},{c}] subtract(x, n)
  ROOT all = ({t}[{r}], {t}[{r},{c}]) tuple(m, d)
}}"""

ALONE = """HloModule alone
combine {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] {op}(a, b) }}
ENTRY main {{
  x = {t}[{r},{c}] parameter(0)
  init = {t}[] constant({init})
  ROOT m = {t}[{r}] reduce(x, init), dimensions={{1}}, to_apply=combine
}}"""


def corner_rows(length: int, dtype, sign: float) -> np.ndarray:
    """Rows whose maximum (of sign · row) is a special value, at the end and in the middle."""
    generator = np.random.default_rng(length)
    below = -sign * generator.uniform(1, 2, length)
    rows = []
    for place in (0, length // 2, length - 1):
        for special in ([0.0], [-0.0], [0.0, -0.0], [np.nan], [np.inf], [-np.inf], [np.nan, np.inf], [-np.nan]):
            row = below.copy()
            for k, value in enumerate(special):
                row[(place + 3 * k) % length] = value
            rows.append(row)
    rows += [np.full(length, v) for v in (0.0, -0.0, np.inf, -np.inf)]
    return np.array(rows).astype(dtype)


def expected(rows: np.ndarray, op: str) -> np.ndarray:
    """IEEE 754's maximum or minimum: NaN if there is one; −0 is less than +0."""
    wide = rows.astype(np.float64)
    found = wide.max(1) if op == "maximum" else wide.min(1)
    zero = (wide == 0.0) & (found == 0.0)[:, None]
    negative = np.signbit(wide) & zero
    is_negative = ~(zero & ~negative).any(1) if op == "maximum" else negative.any(1)
    return np.where(found == 0.0, np.where(is_negative, -0.0, 0.0), found)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("op", ["maximum", "minimum"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_corners(dtype, op, stack, strict):
    init = "-inf" if op == "maximum" else "inf"
    for text, length in ((ROWS, 37), (ROWS, 16), (ALONE, 200), (ALONE, 15)):
        rows = corner_rows(length, DTYPES[dtype], 1.0 if op == "maximum" else -1.0)
        module = parse_module(text.format(t=dtype, op=op, r=len(rows), c=length, init=init))
        options = CompileOptions(EmitOptions.host(strict=strict), cache=None)
        results = compile_module(module, Flags.parse(stack), options).execute([rows])
        found = np.asarray(results[0]).astype(np.float64)
        wanted = expected(rows, op)
        np.testing.assert_array_equal(found, wanted)
        known = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(wanted[known]))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("init", ["nan", "-0", "0"])
def test_initial_values_take_part(init, stack):
    rows = np.full((2, 40), -0.0, np.float32)
    rows[1] = -3.0
    module = parse_module(ALONE.format(t="f32", op="maximum", r=2, c=40, init=init))
    (found,) = compile_module(module, Flags.parse(stack), CompileOptions(cache=None)).execute([rows])
    wanted = np.full(2, float(init), np.float32)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted) if init != "nan" else np.signbit(found))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_long_sums_keep_several_accumulators(stack):
    """Full unrolling would make one chain of 64 dependent vector additions for 1,024 elements."""
    text = ROWS.format(t="f32", op="add", r=64, c=1024, init=0)
    options = CompileOptions(cache=None, keep_stages=True)
    stages = compile_module(parse_module(text), Flags.parse(stack), options).stages
    (function,) = [optimize(t, EmitOptions.host()) for name, t in stages if name.endswith("helper1.ll")]
    assert 2 <= len(re.findall(r"fadd [^\n]*<\d+ x float>", function)) <= 80
