"""Accuracy of the legacy stack's inline functions in ulp, and their values at NaN, infinities and zeros."""

import math

import numpy as np
import pytest

from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module

REFERENCE = {
    "exponential": (np.exp, -80, 80, 2),
    "exponential-minus-one": (np.expm1, -80, 80, 3),
    "log": (np.log, 1e-30, 1e30, 2),
    "log-plus-one": (np.log1p, -0.999, 1e6, 3),
    "tanh": (np.tanh, -30, 30, 4),
    "sine": (np.sin, -1e5, 1e5, 3),
    "cosine": (np.cos, -1e5, 1e5, 3),
    "tan": (np.tan, -1e4, 1e4, 4),
    "sqrt": (np.sqrt, 0, 1e30, 1),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-30, 1e30, 2),
    "cbrt": (np.cbrt, -1e30, 1e30, 2),
    "asin": (np.arcsin, -1, 1, 4),
    "acos": (np.arccos, -1, 1, 4),
    "asinh": (np.arcsinh, -1e9, 1e9, 4),
    "acosh": (np.arccosh, 1, 1e9, 4),
    "atanh": (np.arctanh, -1, 1, 4),
    "sinh": (np.sinh, -80, 80, 4),
    "cosh": (np.cosh, -80, 80, 4),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), -80, 80, 4),
    "erf": (np.vectorize(math.erf), -5, 5, 4),
}
"""opcode → (reference, lowest operand, highest operand, limit of the error in ulp)."""

AS_XLA = {("log-plus-one", "f64"): 130}
"""Error limits in ulp where equality with XLA:CPU takes precedence over accuracy."""

CLOSER = {("erf", "f32"): 2.8, ("erf", "f64"): 3, ("exponential", "f64"): 1.2}
"""Error limits in ulp of functions whose own polynomials are better than the limit of both types."""

TYPES = {"f32": (np.float32, np.float64), "f64": (np.float64, np.longdouble)}


def call(op: str, dtype: str, *operands: np.ndarray) -> np.ndarray:
    names = [f"p{i}" for i in range(len(operands))]
    shape = f"{dtype}[{len(operands[0])}]"
    lines = [f"  {n} = {shape} parameter({i})" for i, n in enumerate(names)]
    text = "\n".join(["HloModule m", "ENTRY e {", *lines, f"  ROOT r = {shape} {op}({', '.join(names)})", "}"])
    return compile_module(parse_module(text), Flags.parse("legacy")).execute(list(operands))[0]


def operands(low: float, high: float, type_: type) -> np.ndarray:
    """Operands spread over the interval, over its magnitudes, and around 0 and ±1."""
    rng = np.random.default_rng(0)
    sizes = np.exp(rng.uniform(-25, math.log(max(abs(low), abs(high))), 3000))
    signed = sizes * rng.choice([-1, 1], 3000)
    near = np.concatenate([c + rng.uniform(-1e-3, 1e-3, 500) for c in (-1, 0, 1)])
    x = np.concatenate([rng.uniform(low, high, 2000), signed, near]).astype(type_)
    return x[(x > low) & (x < high)]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", REFERENCE)
def test_accuracy(op: str, dtype: str):
    type_, wide = TYPES[dtype]
    reference, low, high, budget = REFERENCE[op]
    budget = {**AS_XLA, **CLOSER}.get((op, dtype), budget)
    x = operands(low, high, type_)
    expected = reference(x if op == "erf" and dtype == "f64" else x.astype(wide))
    error = np.abs(call(op, dtype, x).astype(wide) - expected) / np.spacing(np.abs(expected.astype(type_)))
    worst = int(np.argmax(error))
    assert error[worst] <= budget, f"{op}({x[worst]!r}) is off by {error[worst]:.2f} ulp"


@pytest.mark.parametrize("op", ["sine", "cosine", "tan"])
def test_angles_of_any_size(op: str):
    rng = np.random.default_rng(1)
    x = (np.exp(rng.uniform(0, 88, 4000)) * rng.choice([-1, 1], 4000)).astype(np.float32)
    reference = getattr(math, {"sine": "sin", "cosine": "cos", "tan": "tan"}[op])
    expected = np.array([reference(float(v)) for v in x])
    np.testing.assert_allclose(call(op, "f32", x), expected, rtol=6e-7)
    wide = np.exp(rng.uniform(0, 700, 1000))
    np.testing.assert_allclose(call(op, "f64", wide), [reference(v) for v in wide], rtol=1e-15)


INF, NAN = math.inf, math.nan
CORNERS = {
    "exponential": [(INF, INF), (-INF, 0), (NAN, NAN), (1000, INF), (-1000, 0)],
    "exponential-minus-one": [(INF, INF), (-INF, -1), (NAN, NAN), (-0.0, -0.0), (-1000, -1)],
    "log": [(0, -INF), (-0.0, -INF), (-1, NAN), (INF, INF), (NAN, NAN), (1, 0)],
    "log-plus-one": [(-1, -INF), (-2, NAN), (INF, INF), (NAN, NAN), (-0.0, -0.0)],
    "tanh": [(INF, 1), (-INF, -1), (NAN, NAN), (-0.0, -0.0)],
    "logistic": [(INF, 1), (-INF, 0), (NAN, NAN)],
    "sine": [(INF, NAN), (-INF, NAN), (NAN, NAN), (-0.0, -0.0)],
    "cosine": [(INF, NAN), (NAN, NAN), (0, 1)],
    "tan": [(INF, NAN), (NAN, NAN), (-0.0, -0.0)],
    "cbrt": [(INF, INF), (-INF, -INF), (NAN, NAN), (-0.0, -0.0), (-27, -3)],
    "rsqrt": [(0, INF), (-0.0, -INF), (-1, NAN), (INF, 0), (NAN, NAN)],
    "asin": [(2, NAN), (NAN, NAN), (-0.0, -0.0), (INF, NAN)],
    "acos": [(1, 0), (2, NAN), (NAN, NAN)],
    "asinh": [(INF, INF), (-INF, -INF), (NAN, NAN), (-0.0, -0.0)],
    "acosh": [(1, 0), (0, NAN), (-INF, NAN), (INF, INF), (NAN, NAN)],
    "atanh": [(1, INF), (-1, -INF), (2, NAN), (NAN, NAN), (-0.0, -0.0)],
    "sinh": [(INF, INF), (-INF, -INF), (NAN, NAN), (-0.0, -0.0)],
    "cosh": [(INF, INF), (-INF, INF), (NAN, NAN), (0, 1)],
    "erf": [(INF, 1), (-INF, -1), (NAN, NAN), (-0.0, -0.0)],
    "sign": [(INF, 1), (-INF, -1), (NAN, NAN), (-0.0, -0.0)],
    "round-nearest-afz": [(0.5, 1), (-0.5, -1), (2.5, 3), (INF, INF), (NAN, NAN)],
    "round-nearest-even": [(0.5, 0), (1.5, 2), (2.5, 2), (INF, INF), (NAN, NAN)],
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", CORNERS)
def test_corners(op: str, dtype: str):
    x, expected = (np.array(v, TYPES[dtype][0]) for v in zip(*CORNERS[op], strict=True))
    result = call(op, dtype, x)
    np.testing.assert_array_equal(result, expected)
    np.testing.assert_array_equal(np.signbit(result[~np.isnan(result)]), np.signbit(expected[~np.isnan(expected)]))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("op", "reference"), [("power", np.power), ("atan2", np.arctan2)])
def test_two_operands(op: str, reference: np.ufunc, dtype: str):
    rng = np.random.default_rng(2)
    special = np.array([0.0, -0.0, 1, -1, 2, -2, 3, -3, 0.5, -0.5, INF, -INF, NAN, 1e30, -1e30, 1e-30])
    a, b = (v.reshape(-1) for v in np.meshgrid(special, special))
    x = np.concatenate([a, rng.uniform(-5, 5, 2000), np.exp(rng.uniform(-20, 20, 2000))]).astype(TYPES[dtype][0])
    y = np.concatenate([b, rng.uniform(-5, 5, 2000), rng.uniform(-3, 3, 2000)]).astype(TYPES[dtype][0])
    with np.errstate(all="ignore"):
        expected = reference(x.astype(np.float64), y.astype(np.float64)).astype(x.dtype)
    np.testing.assert_allclose(call(op, dtype, x, y), expected, rtol={"f32": 1.2e-7, "f64": 2e-15}[dtype])


@pytest.mark.parametrize("size", [1e-3, 1.0, 300.0])
def test_a_power_of_doubles_is_rounded_well(size: float):
    """Also where the exponent magnifies the error of the logarithm, up to the largest powers."""
    rng = np.random.default_rng(3)
    x = np.concatenate([np.exp(rng.uniform(-size, size, 4000)), 1 + rng.uniform(-0.3, 0.4, 4000)])
    y = rng.uniform(-700, 700, len(x)) / np.log(x)
    exact = x.astype(np.longdouble) ** y.astype(np.longdouble)
    error = np.abs(call("power", "f64", x, y) - exact) / np.spacing(exact.astype(np.float64))
    assert error.max() < 0.6
