"""Complex numbers are ordered by real part, then by imaginary part: compare, maximum, minimum, clamp, folds, sort."""

import numpy as np
import pytest

from ...backends.xla import XlaExecutable, installed
from ..support.check import STACKS, check, run_stack

PARTS = np.array([0.0, -0.0, 1, -2, np.inf, -np.inf, np.nan])
ALL = np.array([complex(a, b) for a in PARTS for b in PARTS])
X, Y = np.repeat(ALL, len(ALL)), np.tile(ALL, len(ALL))
STRICT = {"LT": np.less, "LE": np.less, "GT": np.greater, "GE": np.greater}
LAST = {"LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal}


def ordered(direction: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return STRICT[direction](x.real, y.real) | (x.real == y.real) & LAST[direction](x.imag, y.imag)


def binary(result: str, expression: str, dtype: str = "c64") -> str:
    n = len(X)
    lines = f" x = {dtype}[{n}] parameter(0)\n y = {dtype}[{n}] parameter(1)\n ROOT r = {result}[{n}] {expression}"
    return f"HloModule m\nENTRY e {{\n{lines}\n}}"


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether all parts are equal with their signs; any NaN equals any other."""
    halves = [(getattr(a, part), getattr(b, part)) for part in ("real", "imag")]
    return all((np.isnan(p) & np.isnan(q) | (p == q) & (np.signbit(p) == np.signbit(q))).all() for p, q in halves)


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("direction", LAST)
def test_compare(direction, dtype):
    text = binary("pred", f"compare(x, y), direction={direction}", dtype)
    inputs = [v.astype({"c64": np.complex64, "c128": np.complex128}[dtype]) for v in (X, Y)]
    wanted = ordered(direction, X, Y)
    for stack in STACKS:
        np.testing.assert_array_equal(run_stack(text, stack, inputs)[0], wanted, stack)


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("opcode, direction", [("maximum", "GE"), ("minimum", "LE")])
def test_an_extreme_is_the_first_operand_if_it_is_ordered_so_and_else_the_second(opcode, direction, dtype):
    text = binary(dtype, f"{opcode}(x, y)", dtype)
    inputs = [v.astype({"c64": np.complex64, "c128": np.complex128}[dtype]) for v in (X, Y)]
    wanted = np.where(ordered(direction, X, Y), *inputs)
    for stack in STACKS:
        assert same_bits(run_stack(text, stack, inputs)[0], wanted), stack


@pytest.mark.skipif(not installed(), reason="jaxlib is not installed (./testbed setup --xla)")
def test_xla_agrees_where_real_parts_differ():
    apart = ~(X.real == Y.real)
    inputs = [X.astype(np.complex64), Y.astype(np.complex64)]
    for expression in ("maximum(x, y)", "minimum(x, y)", "clamp(x, y, x)"):
        text = binary("c64", expression)
        given, wanted = XlaExecutable(text).execute(inputs)[0], run_stack(text, "evaluator", inputs)[0]
        assert same_bits(given[apart], wanted[apart]), expression


REGIONS = """HloModule m
least { x = c64[] parameter(0)
  y = c64[] parameter(1)
  ROOT r = c64[] minimum(x, y) }
most { x = c64[] parameter(0)
  y = c64[] parameter(1)
  ROOT r = c64[] maximum(x, y) }
less { x = c64[] parameter(0)
  y = c64[] parameter(1)
  ROOT r = pred[] compare(x, y), direction=LT }
ENTRY e {
  p = c64[6,40] parameter(0)
  z = c64[] constant((-1,0))
"""
FOLDS = {
    "rows": "c64[6] reduce(p, z), dimensions={1}, to_apply=most",
    "columns": "c64[40] reduce(p, z), dimensions={0}, to_apply=least",
    "all": "c64[] reduce(p, z), dimensions={0,1}, to_apply=most",
    "windows": "c64[6,38] reduce-window(p, z), window={size=1x3}, to_apply=most",
    "sort": "c64[6,40] sort(p), dimensions={1}, to_apply=less",
    "bounds": "c64[6,40] clamp(z, p, z)",
}


@pytest.mark.parametrize("name", FOLDS)
def test_regions(name):
    draw = np.random.default_rng(3)
    p = (draw.integers(-2, 3, (6, 40)) + 1j * draw.integers(-2, 3, (6, 40))).astype(np.complex64)
    (result,) = check(f"{REGIONS}  ROOT r = {FOLDS[name]}\n}}", [p])
    wanted = {"rows": np.maximum(p.max(1), -1), "all": np.maximum(p.max(), -1), "sort": np.sort(p, axis=1)}
    if name in wanted:
        np.testing.assert_array_equal(result, wanted[name].astype(np.complex64))
