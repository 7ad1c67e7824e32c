"""Where arithmetic may take subnormals for themselves or for 0, both results are granted, and no other besides them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ...differential.bounds import bounds_of
from ...differential.permitted import Permitted
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...migration.platforms import keeps_subnormals
from ..support.permits import permits

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize(("op", "kept"), [("sign(x)", 1.0), ("ceil(x)", 1.0), ("sqrt(x)", 2.2227587e-162)])
def test_a_platform_that_keeps_subnormals_may_have_what_it_makes_of_them(op, kept):
    module = parse_module(f"HloModule m\nENTRY e {{ x = f64[1] parameter(0)\n  ROOT r = f64[1] {op} }}\n")
    given, (bound,) = [np.array([5e-324])], bounds_of(module)
    (flushed,) = evaluate(module, given)
    assert flushed[0] != kept
    for subnormals in (False, True):
        permitted = Permitted(module, given, subnormals=subnormals)
        assert permitted.forbids(0, np.array([kept]), bound)[0] != subnormals
        assert permitted.forbids(0, np.array([2 * kept]), bound)[0]
        assert not permitted.forbids(0, flushed, bound)[0]


@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_products_and_partial_sums_may_be_flushed(dtype):
    """A multiply-add flushes each of 64 partial sums; products alone, or the sum of all, may be normal."""
    text = f"""HloModule m
    ENTRY e {{ x = {dtype}[1,64] parameter(0)
      y = {dtype}[64,1] parameter(1)
      ROOT d = f32[1,1] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}} }}
    """
    given = np.float32 if dtype == "f32" else ml_dtypes.bfloat16
    for product, sums in ((1e-39, (0.0, 64e-39)), (1e-37, (64e-37,))):
        inputs = [np.full((1, 64), 1e-20, given), np.full((64, 1), product / 1e-20, given)]
        assert all(permits(text, inputs, x) for x in sums)
        assert not permits(text, inputs, 1e-34)
    assert not permits(text, inputs, 0.0)


def test_gpus_keep_subnormals():
    names = ["legacy@cuda", "mlir@rocm", "cuda", "legacy@opencl", "host", "legacy", "evaluator", "xla", "c"]
    assert [name for name in names if keeps_subnormals(name)] == ["legacy@cuda", "mlir@rocm", "cuda"]


@pytest.mark.parametrize("made", [
    "ROOT m = f32[2] minimum(x, w)",
    "ROOT m = f32[2] clamp(x, x, w)",
    "ROOT m = f32[2] reduce-window(x, inf), window={size=1}, to_apply=least",
    "ROOT m = f32[2] reduce(x1, inf), dimensions={1}, to_apply=least",
])  # fmt: skip
def test_an_extremum_passes_a_subnormal_on_or_zero(made):
    """XLA and both stacks return what meets a constant infinity as it is; the power is NaN of it, and 1 of zero."""
    text = f"""HloModule m
    least {{ a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT m = f32[] minimum(a, b) }}
    ENTRY e {{ x = f32[2] parameter(0)
      x1 = f32[2,1] reshape(x)
      inf = f32[] constant(inf)
      w = f32[2] broadcast(inf), dimensions={{}}
      {made.removeprefix("ROOT ")}
      ROOT p = f32[2] power(m, x) }}
    """
    inputs = [np.array([-1e-40, -2e-40], np.float32)]
    assert permits(text, inputs, 1.0) and permits(text, inputs, NAN)
    assert not permits(text, inputs, 0.0) and not permits(text, inputs, INF)


@pytest.mark.parametrize("kind, tiny", [("bf16", 1e-40), ("f32", 1e-45), ("f64", 5e-324)])
def test_a_remainder_by_a_subnormal_is_nan_or_exact(kind, tiny):
    """glibc's fmod took such a divisor for 0 where subnormals are flushed; from version 2.38 on it reads its bits."""
    text = f"""HloModule m
    ENTRY e {{ x = {kind}[2] parameter(0)
      y = {kind}[2] parameter(1)
      ROOT r = {kind}[2] remainder(x, y) }}
    """
    dtype = {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}[kind]
    inputs = [np.array([0.5, 3.0], dtype), np.array([tiny, tiny], dtype)]
    assert permits(text, inputs, NAN) and permits(text, inputs, 0.0)
    assert not permits(text, inputs, 0.5) and not permits(text, inputs, INF)
