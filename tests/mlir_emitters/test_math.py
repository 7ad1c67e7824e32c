"""The inline math functions of the MLIR stack: accuracy over wide ranges, special values, and that loops vectorise."""

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ...mlir_emitters import emit
from ...planning.planner import plan

COUNT = 4096
SPECIAL = [0.0, -0.0, 1, -1, 0.5, 1.5, 2.5, 3, np.inf, -np.inf, np.nan, np.pi, 88, -88, 1e10, 1e-7, 1 - 2**-23]

# Opcode → (reference in extended precision, largest error in ulp).
UNARY = {
    "acos": (np.arccos, 4),
    "acosh": (np.arccosh, 4),
    "asin": (np.arcsin, 4),
    "asinh": (np.arcsinh, 4),
    "atanh": (np.arctanh, 4),
    "cbrt": (np.cbrt, 2),
    "cosine": (np.cos, 3),
    "cosh": (np.cosh, 2),
    "exponential": (np.exp, 2),
    "exponential-minus-one": (np.expm1, 2),
    "log": (np.log, 2),
    "log-plus-one": (np.log1p, 3),
    "logistic": (lambda x: 1 / (1 + np.exp(-x)), 3),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 2),
    "sine": (np.sin, 3),
    "sinh": (np.sinh, 3),
    "tan": (np.tan, 4),
    "tanh": (np.tanh, 3),
}


AS_XLA = {("log-plus-one", "f64"): 130}
"""Equality with XLA:CPU takes precedence over accuracy: its rational function has this error from -0.41 to -0.29."""


def program(opcode: str, dtype: str, operands: int = 1) -> str:
    parameters = "".join(f"  p{i} = {dtype}[{COUNT}] parameter({i})\n" for i in range(operands))
    names = ", ".join(f"p{i}" for i in range(operands))
    return f"HloModule m\nENTRY e {{\n{parameters}  ROOT r = {dtype}[{COUNT}] {opcode}({names})\n}}\n"


def run(opcode: str, dtype: str, *inputs: np.ndarray) -> np.ndarray:
    return compile_module(parse_module(program(opcode, dtype, len(inputs))), Flags.parse("mlir")).execute(inputs)[0]


def arguments(dtype: np.dtype, seed: int = 0) -> np.ndarray:
    """Special values, moderate ones, and all magnitudes of f32 except the smallest."""
    rng = np.random.default_rng(seed)
    wide = np.exp(rng.uniform(-80, 80, COUNT // 4)) * rng.choice([-1, 1], COUNT // 4)
    parts = [SPECIAL, rng.uniform(-1, 1, COUNT // 4), wide, rng.uniform(-100, 100, COUNT // 4)]
    values = np.concatenate(parts).astype(dtype)
    return np.concatenate([values, rng.uniform(-10, 10, COUNT - len(values)).astype(dtype)])


def worst_ulp(actual: np.ndarray, exact: np.ndarray) -> float:
    """The largest error in units of the last place; results of another class (NaN, infinite) count as infinite."""
    with np.errstate(over="ignore"):
        expected = exact.astype(actual.dtype)
    tiny = np.finfo(actual.dtype).tiny
    same = (
        (np.isnan(actual) & np.isnan(expected))
        | (actual == expected)
        | ((np.abs(actual) <= tiny) & (np.abs(expected) <= tiny))
    )
    spacing = np.spacing(np.maximum(np.abs(expected), tiny)).astype(np.longdouble)
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0, np.abs(actual.astype(np.longdouble) - exact) / spacing)
    return float(np.max(np.where(np.isnan(error), np.inf, error)))


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("opcode", UNARY)
def test_accuracy(opcode, dtype):
    reference, bound = UNARY[opcode]
    bound = AS_XLA.get((opcode, dtype), bound)
    x = arguments(np.dtype({"f32": np.float32, "f64": np.float64}[dtype]))
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.longdouble))
    assert worst_ulp(run(opcode, dtype, x), exact) <= bound


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 2.8), (np.float64, 4)])
def test_erf(dtype, bound):
    import math

    x = arguments(np.dtype(dtype))
    exact = np.array([math.erf(v) for v in x.astype(np.float64)]).astype(np.longdouble)
    results = run("erf", "f32" if dtype is np.float32 else "f64", x)
    assert worst_ulp(results, exact) <= bound
    np.testing.assert_array_equal(results[np.abs(x) > 6], np.sign(x[np.abs(x) > 6]))


@pytest.mark.parametrize(("opcode", "reference"), [("atan2", np.arctan2), ("power", np.power)])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_two_operands(opcode, reference, dtype):
    kind = np.dtype({"f32": np.float32, "f64": np.float64}[dtype])
    x, y = arguments(kind, 1), arguments(kind, 2)
    grid = [(a, b) for a in SPECIAL for b in SPECIAL]
    x[: len(grid)], y[: len(grid)] = np.array(grid, kind).T
    if opcode == "power":
        x[len(grid) :] = np.abs(x[len(grid) :])
        y[len(grid) :] /= 8
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.longdouble), y.astype(np.longdouble))
    assert worst_ulp(run(opcode, dtype, x, y), exact) <= (0.54 if dtype == "f32" else 3)


@pytest.mark.parametrize("size", [0.01, 1.0, 300.0])
def test_a_power_of_doubles_is_rounded_well(size):
    """Also where the exponent magnifies the error of the logarithm, and beside one, where a table has its smallest."""
    rng = np.random.default_rng(6)
    x = np.exp(rng.uniform(-size, size, COUNT))
    y = rng.uniform(-700, 700, COUNT) / np.log(x)
    assert worst_ulp(run("power", "f64", x, y), x.astype(np.longdouble) ** y.astype(np.longdouble)) <= 0.6


@pytest.mark.parametrize("magnitude", [2.0**20, 2.0**60, 2.0**100, 1e38])
def test_large_angles(magnitude):
    x = (np.random.default_rng(5).uniform(0.5, 1, COUNT) * magnitude).astype(np.float32)
    wide = x.astype(np.longdouble)
    assert worst_ulp(run("sine", "f32", x), np.sin(wide)) <= 3
    assert worst_ulp(run("cosine", "f64", x.astype(np.float64)), np.cos(wide)) <= 3


VECTORISED = [*UNARY, "erf"]


@pytest.mark.parametrize("opcode", VECTORISED)
def test_loops_vectorise(opcode):
    options = EmitOptions.host()
    if options.target.vector_bits < 256:
        pytest.skip(f"vectors of {options.target.vector_bits} bits")
    requests = plan(parse_module(program(opcode, "f32"))).kernels
    lanes = options.target.vector_bits // 32
    text = optimize(emit(requests, options).llvm_ir, options)
    assert f"<{lanes} x float>" in text or f"<{lanes // 2} x double>" in text


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("opcode", ["sinh", "cosh"])
def test_a_zero_part_stays_zero_beside_an_infinite_factor(opcode, dtype):
    kind = {"c64": np.complex64, "c128": np.complex128}[dtype]
    x = np.resize(np.array([complex(a, b) for a in (np.inf, -np.inf) for b in (0.0, -0.0)], kind), COUNT)
    actual, exact = run(opcode, dtype, x), getattr(np, opcode)(x)
    np.testing.assert_array_equal(actual.real, exact.real)
    np.testing.assert_array_equal(actual.imag, np.zeros(COUNT))
    np.testing.assert_array_equal(np.signbit(actual.imag), np.signbit(exact.imag))
