"""Complex arithmetic on zero, subnormal, extreme, infinite and NaN parts: evaluator, both stacks and XLA agree on NaN,
infinities and signs of zero, part by part, and on magnitudes within a bound.

The reference is XLA where it has the opcode, and C99's Annex G otherwise (docs/adr/0010-parity-before-accuracy.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from ...backends.xla import XlaExecutable, installed
from ...codegen.options import LEVELS
from ...formats.program import parameter_leaves
from ...hlo.dtypes import COMPLEX
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ..support.check import STACKS, parsed, run_stack
from ..support.processors import code_for

Array = np.ndarray


@dataclass(frozen=True)
class Closeness:
    """How an opcode is compared. eps: the largest distance in units of the type's epsilon. planar: compare both parts
    together, relative to the result's size (to 1 if that is smaller and `absolute`), since one part may cancel.
    keep: operands → elements whose result does not depend on rounding. xla: whether XLA has the opcode.
    """

    eps: float = 30
    planar: bool = False
    absolute: bool = False
    keep: Callable[..., Array] | None = None
    xla: bool = True


def normal(*operands: Array) -> Array:
    """No part is subnormal: XLA's angle of f32 flushes subnormals in only some of its steps."""
    parts = [p for x in operands for p in (x.real, x.imag)]
    if parts[0].dtype == np.float64:
        return np.ones(parts[0].shape, bool)
    tiny = np.finfo(parts[0].dtype).tiny
    return np.logical_and.reduce([(p == 0) | ~(np.abs(p) < tiny) for p in parts])


def no_cancellation(x: Array) -> Array:
    """Exclude large x with |1 + x| within rounding of 1: different implementations of the logarithm disagree there."""
    wide = x.astype(np.clongdouble)
    excess = wide.real * (wide.real + 2) + wide.imag * wide.imag
    return normal(x) & ~((np.abs(excess) < 1e-15) & (np.abs(wide) > 0.1))


def turns_little(x: Array, y: Array) -> Array:
    """x^y whose angle c·arg x + d·log |x| is at most a few times 2π, or not finite."""
    wide = x.astype(np.clongdouble)
    size, angle = np.abs(wide), np.angle(wide)
    turn = np.abs(y.real * angle) + np.abs(y.imag * np.log(size))
    growth = np.abs(y.real * np.log(size)) + np.abs(y.imag * angle)
    endless = ~np.isfinite(x) | ~np.isfinite(y)
    return normal(x, y) & (endless | (x == 0) | (turn < 30) & (growth < 60))


def off_the_cut(y: Array, x: Array) -> Array:
    """(x + iy) / sqrt(x² + y²) is farther from the negative axis than rounding errors."""
    wide_x, wide_y = x.astype(np.clongdouble), y.astype(np.clongdouble)
    quotient = (wide_x + 1j * wide_y) / np.sqrt(wide_x * wide_x + wide_y * wide_y)
    endless = ~np.isfinite(x) | ~np.isfinite(y)
    return normal(x, y) & (endless | (np.abs(quotient.imag) > 1e-3) & (np.abs(quotient) > 1e-3))


RULES: dict[str, Closeness] = {
    **dict.fromkeys(
        ["abs", "add", "convert", "cosine", "divide", "exponential", "imag", "multiply", "negate"], Closeness()
    ),
    **dict.fromkeys(["real", "rsqrt", "sign", "sine", "sqrt", "subtract", "tan", "tanh"], Closeness()),
    "log": Closeness(keep=normal),
    "log-plus-one": Closeness(keep=no_cancellation),
    "exponential-minus-one": Closeness(planar=True, absolute=True),
    "logistic": Closeness(300, planar=True, absolute=True),
    "power": Closeness(1e4, planar=True, keep=turns_little),
    "atan2": Closeness(1e4, planar=True, absolute=True, keep=off_the_cut),
    "cbrt": Closeness(100, planar=True, xla=False),
    **dict.fromkeys(["acos", "acosh", "asin", "asinh", "atanh", "cosh", "sinh"], Closeness(xla=False)),
}

NO_ARITHMETIC = {Op.BITCAST_CONVERT, Op.CLAMP, Op.COMPARE, Op.COPY, Op.MAXIMUM, Op.MINIMUM, Op.SELECT}
REAL = {"c64": "f32", "c128": "f64"}


def parts(dtype: str) -> Array:
    """Values of both signs: zero, subnormals, the smallest normals, numbers around 1, limits of exp and squares, …"""
    kind = np.float32 if dtype == "c64" else np.float64
    info = np.finfo(kind)
    small, log_max, root = (1e-20, 88.5, 3e19) if dtype == "c64" else (1e-160, 709.5, 1e160)
    sizes = [0, info.smallest_subnormal, info.tiny / 2, info.tiny, small, info.eps, 0.1, 0.5, 1 - info.epsneg, 1]
    sizes += [1 + info.eps, 1.5, 2, np.pi / 2, 25, log_max, log_max * 1.2, 1e10, root, info.max / 2, info.max, np.inf]
    values = np.array(sizes, kind)
    return np.concatenate([values, -values, np.array([np.nan], kind)])


def grid(dtype: str) -> tuple[Array]:
    values = parts(dtype)
    return (pair(np.repeat(values, len(values)), np.tile(values, len(values))),)


def pair(real: Array, imag: Array) -> Array:
    out = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    out.real, out.imag = real, imag
    return out


def pairs(dtype: str) -> tuple[Array, Array]:
    """All of {±0, ±1, 2, ±inf, NaN, max}⁴, and a random sample of all parts."""
    values = parts(dtype)
    few = np.array([0.0, -0.0, 1, -1, 2, np.inf, -np.inf, np.nan, values[20]], values.dtype)
    corners = np.stack(np.meshgrid(*[few] * 4)).reshape(4, -1)
    sample = np.random.default_rng(11).choice(values, (4, 6000))
    a, b, c, d = np.concatenate([corners, sample], axis=1)
    return pair(a, b), pair(c, d)


def module(opcode: str, dtype: str, arity: int, count: int) -> str:
    result = REAL[dtype] if opcode in ("abs", "real", "imag") else dtype
    if opcode == "convert":
        result = "c128" if dtype == "c64" else "c64"
    lines = [f"  p{i} = {dtype}[{count}] parameter({i})" for i in range(arity)]
    names = ", ".join(f"p{i}" for i in range(arity))
    return "\n".join(["HloModule m", "ENTRY e {", *lines, f"  ROOT r = {result}[{count}] {opcode}({names})", "}", ""])


def size(x: Array) -> Array:
    """|x|, with parts that are not finite counted as 0."""
    return np.hypot(*[np.where(np.isfinite(p), p, 0).astype(np.longdouble) for p in (x.real, x.imag)])


def differences(actual: Array, expected: Array, rule: Closeness) -> Array:
    """For each element '' or the first difference found: NaN, infinity, zero (its sign), size."""
    halves = [(actual, expected)]
    if actual.dtype.kind == "c":
        halves = [(actual.real, expected.real), (actual.imag, expected.imag)]
    found = np.full(actual.shape, "", object)
    for a, e in halves:
        info = np.finfo(a.dtype)
        ordinary = np.isfinite(a) & np.isfinite(e)
        distance = np.abs(np.where(ordinary, a, 0).astype(np.longdouble) - np.where(ordinary, e, 0))
        scale = np.abs(np.where(ordinary, e, 0))
        if rule.planar:
            distance, scale = size(actual.astype(np.clongdouble) - expected), size(expected)
        if rule.absolute:
            scale = np.maximum(scale, 1)
        found[ordinary & (distance > rule.eps * info.eps * scale) & (distance > 2 * info.tiny)] = "size"
        found[(a == 0) & (e == 0) & (np.signbit(a) != np.signbit(e))] = "zero"
        found[(np.isinf(a) | np.isinf(e)) & (a != e)] = "infinity"
        found[np.isnan(a) != np.isnan(e)] = "NaN"
    return found


def complaints(opcode: str, inputs: tuple[Array, ...], results: dict[str, Array]) -> list[str]:
    """A line for each stack and kind of difference from the evaluator."""
    rule, expected = RULES[opcode], results["evaluator"]
    kept = np.ones(expected.shape, bool) if rule.keep is None else rule.keep(*inputs)
    assert kept.mean() > 0.2
    lines = []
    for stack, actual in results.items():
        found = np.where(kept, differences(actual, expected, rule), "")
        for what in sorted(set(found) - {""}):
            at = np.flatnonzero(found == what)
            where = [complex(x[at[0]]) for x in inputs]
            values = f"{actual[at[0]]} on {stack}, {expected[at[0]]} on the evaluator"
            lines.append(f"{what}: {opcode}{where} is {values} ({len(at)} such)")
    return lines


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("opcode", RULES)
def test_corners(opcode: str, dtype: str):
    arity = next(row.low for op, row in OPSET.items() if op.value == opcode)
    inputs: tuple[Array, ...] = grid(dtype) if arity == 1 else pairs(dtype)
    text = module(opcode, dtype, arity, len(inputs[0]))
    results = {stack: run_stack(text, stack, inputs)[0] for stack in STACKS}
    assert complaints(opcode, inputs, results) == []
    if installed() and RULES[opcode].xla:
        assert complaints_of_xla(opcode, text, inputs, XlaExecutable(text).execute(inputs)[0]) == []


EITHER_FIRST = ("multiply",)
"""Opcodes with products of which XLA may fuse one or the other: of a + bi times c + di it rounds ad with jaxlib 0.10,
bc with 0.12, and adds the other product unrounded. 2·max + 1·(-inf) is NaN one way and -inf the other. Exchanging the
operands exchanges the two.
"""


def complaints_of_xla(opcode: str, text: str, inputs: tuple[Array, ...], given: Array) -> list[str]:
    """As `complaints`. Of the orders that XLA may choose, all elements must follow the same one."""
    orders = (inputs, inputs[::-1]) if opcode in EITHER_FIRST else (inputs,)
    wanted = [run_stack(text, "evaluator", order)[0] for order in orders]
    return min((complaints(opcode, inputs, {"evaluator": w, "xla": given}) for w in wanted), key=len)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_xla_may_fuse_either_product_but_the_same_one_everywhere(dtype: str):
    inputs = pairs(dtype)
    text = module("multiply", dtype, 2, len(inputs[0]))
    one, other = (run_stack(text, "evaluator", order)[0] for order in (inputs, inputs[::-1]))
    assert complaints_of_xla("multiply", text, inputs, one) == complaints_of_xla("multiply", text, inputs, other) == []
    mixed = np.where(np.arange(len(one)) % 2, one, other)
    assert any(line.startswith("NaN") for line in complaints_of_xla("multiply", text, inputs, mixed))
    wrong = pair(one.real, np.where(np.isnan(one.imag), one.dtype.type(1).real, one.imag))
    assert complaints_of_xla("multiply", text, inputs, wrong) != []


FUSED = ("multiply", "divide", "power", "atan2")
"""Opcodes of two operands with products whose rounding or overflow decides the result, as XLA fuses them."""


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("level", LEVELS)
def test_corners_on_every_processor(level: str, dtype: str):
    """x86-64-v2 has no fused multiply-add."""
    inputs = pairs(dtype)
    shape = f"{dtype}[{len(inputs[0])}]"
    lines = [f"  p{i} = {shape} parameter({i})" for i in range(2)]
    lines += [f"  r{i} = {shape} {opcode}(p0, p1)" for i, opcode in enumerate(FUSED)]
    shapes, names = ", ".join([shape] * len(FUSED)), ", ".join(f"r{i}" for i in range(len(FUSED)))
    root = f"  ROOT r = ({shapes}) tuple({names})"
    text = "\n".join([f"HloModule for.{level}", "ENTRY e {", *lines, root, "}", ""])
    with code_for(level):
        results = {stack: run_stack(text, stack, inputs) for stack in STACKS}
    for i, opcode in enumerate(FUSED):
        assert complaints(opcode, inputs, {stack: values[i] for stack, values in results.items()}) == []


def test_every_complex_function_has_a_rule():
    functions = {op for op in ELEMENTWISE if OPSET[op].dtypes >= COMPLEX} - NO_ARITHMETIC
    assert set(RULES) == {op.value for op in functions}


@pytest.mark.skipif(not installed(), reason="jaxlib is not installed (./testbed setup --xla)")
def test_what_is_left_out_still_differs():
    """XLA returns NaN as the angle of two subnormal f32 parts, because it divides them without flushing."""
    x = np.full(64, pair(np.array([1e-45], np.float32), np.array([1e-45], np.float32))[0])
    text = module("log", "c64", 1, len(x))
    assert np.isnan(XlaExecutable(text).execute([x])[0].imag).all()
    assert all((run_stack(text, stack, [x])[0].imag == 0).all() for stack in STACKS)


# Sums of products ---------------------------------------------------------------------------------------------------

LINEAR = {
    "dot of batches": (
        "p0 = {c}[400,3] parameter(0)\n  p1 = {c}[400,3] parameter(1)",
        "{c}[400] dot(p0, p1), BATCH, lhs_contracting_dims={1}, rhs_contracting_dims={1}".replace(
            "BATCH", "lhs_batch_dims={0}, rhs_batch_dims={0}"
        ),
    ),
    "convolution": (
        "p0 = {c}[400,3,2] parameter(0)\n  p1 = {c}[2,2,2] parameter(1)",
        "{c}[400,2,2] convolution(p0, p1), window={size=2}, dim_labels=b0f_0io->b0f",
    ),
    "sum of columns": (
        "p0 = {c}[3,400] parameter(0)\n  zero = {c}[] constant((0,0))",
        "{c}[400] reduce(p0, zero), dimensions={0}, to_apply=add",
    ),
    "sum of windows": (
        "p0 = {c}[80,6] parameter(0)\n  zero = {c}[] constant((0,0))",
        "{c}[80,5] reduce-window(p0, zero), window={size=1x2}, to_apply=add",
    ),
    "product of rows": (
        "p0 = {c}[400,3] parameter(0)\n  one = {c}[] constant((1,0))",
        "{c}[400] reduce(p0, one), dimensions={1}, to_apply=multiply",
    ),
}
MATRIX = (
    "p0 = {c}[64,3] parameter(0)\n  p1 = {c}[3,16] parameter(1)",
    "{c}[64,16] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
)


def linear_module(lines: tuple[str, str], dtype: str) -> str:
    regions = [
        f"{f} {{\n  x = {{c}}[] parameter(0)\n  y = {{c}}[] parameter(1)\n  ROOT z = {{c}}[] {f}(x, y)\n}}"
        for f in ("add", "multiply")
        if f"to_apply={f}" in lines[1]
    ]
    text = "\n".join(["HloModule m", *regions, "ENTRY e {", f"  {lines[0]}", f"  ROOT r = {lines[1]}", "}", ""])
    return text.replace("{c}", dtype)


def mostly_finite(text: str, dtype: str) -> list[Array]:
    """Operands with small numbers and zeros as parts, a few of them infinite or NaN. Weights are finite."""
    kind, rng = np.float32 if dtype == "c64" else np.float64, np.random.default_rng(5)
    values = np.array([0.0, -0.0, 1, -1, 2, -0.5, 1.5, np.inf, -np.inf, np.nan], kind)
    chances = np.array([4, 4, 4, 4, 4, 4, 4, 1, 1, 0.5]) / 30.5
    shapes = [leaf.dims for leaf in parameter_leaves(parsed(text))]
    first, *weights = shapes
    return [
        pair(*(rng.choice(values, first, p=chances) for _ in range(2))),
        *(pair(*(rng.choice(values[2:7], d) for _ in range(2))) for d in weights),
    ]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("name", LINEAR)
def test_sums_of_products(name: str, dtype: str):
    text = linear_module(LINEAR[name], dtype)
    inputs = mostly_finite(text, dtype)
    results = {stack: run_stack(text, stack, inputs)[0] for stack in STACKS}
    if installed():
        results["xla"] = XlaExecutable(text).execute(inputs)[0]
    for stack, actual in results.items():
        assert set(differences(actual, results["evaluator"], Closeness()).reshape(-1)) == {""}, stack


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_a_matrix_product_keeps_its_infinities(dtype: str):
    """XLA's library scales each sum by 1 + 0i, which turns an infinite sum into NaN; its own loops (batches) do not."""
    text = linear_module(MATRIX, dtype)
    inputs = mostly_finite(text, dtype)
    results = {stack: run_stack(text, stack, inputs)[0] for stack in STACKS}
    expected = results["evaluator"]
    assert np.isinf(expected.real).any()
    assert all(set(differences(actual, expected, Closeness()).reshape(-1)) == {""} for actual in results.values())
    if installed():
        found = differences(XlaExecutable(text).execute(inputs)[0], expected, Closeness())
        assert set(found.reshape(-1)) == {"", "NaN"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_rounding_lifts_to_the_least_normal_number_is_flushed():
    """The quotient has an imaginary part of that number times 1 − 2⁻⁵²: too small, with the bits of a normal number."""
    text = "HloModule m\nENTRY e { y = c128[1] parameter(0)\n x = c128[1] parameter(1)\n ROOT r = c128[1] atan2(y, x) }"
    inputs = [np.array([complex(2, np.finfo(np.float64).smallest_normal)]), np.array([-2j])]
    results = {stack: run_stack(text, stack, inputs)[0] for stack in STACKS}
    if installed():
        results["xla"] = XlaExecutable(text).execute(inputs)[0]
    for stack, actual in results.items():
        assert np.allclose(actual, np.pi + 355.2379300369378j, rtol=1e-14), stack
