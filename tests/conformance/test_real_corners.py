"""Signs of zero, NaN and limits of the narrowest types: evaluator, both stacks and XLA agree bit for bit."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ...backends.xla import XlaExecutable, installed
from ...hlo.dtypes import DType
from ..support.check import STACKS, parsed, run_stack

Array = np.ndarray
FLOATS = ["f16", "bf16", "f32", "f64"]


def on_all_stacks(text: str, inputs: list[Array], xla: bool = True) -> dict[str, Array]:
    results = {stack: run_stack(text, stack, inputs)[0] for stack in STACKS}
    if xla and installed():
        results["xla"] = XlaExecutable(text).execute(inputs)[0]
    return results


def bits(x: Array) -> Array:
    """The bits of floats as f64, with one bit pattern for all NaNs."""
    wide = (x.astype(np.float32) if x.dtype.itemsize == 1 else x).astype(np.float64)
    return np.where(np.isnan(wide), np.nan, wide).view(np.uint64)


def agree(results: dict[str, Array]) -> None:
    """Check that all stacks agree bit for bit with the evaluator."""
    expected = bits(results["evaluator"])
    for stack, actual in results.items():
        wrong = np.flatnonzero(bits(actual) != expected)
        assert not len(wrong), (stack, wrong[:5], actual[wrong[:5]], results["evaluator"][wrong[:5]])


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("opcode", ["maximum", "minimum", "clamp"])
def test_zeros_are_ordered(opcode: str, dtype: str):
    arity = 3 if opcode == "clamp" else 2
    few = np.array([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan]).astype(DType(dtype).numpy)
    inputs = [x.reshape(-1) for x in np.meshgrid(*[few] * arity)]
    count = len(inputs[0])
    lines = [f"  p{i} = {dtype}[{count}] parameter({i})" for i in range(arity)]
    names = ", ".join(f"p{i}" for i in range(arity))
    text = "\n".join(["HloModule m", "ENTRY e {", *lines, f"  ROOT r = {dtype}[{count}] {opcode}({names})", "}", ""])
    agree(on_all_stacks(text, inputs))


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_power_flushes_its_operands(dtype: str):
    """XLA:CPU calls a library's pow, which flushes neither: a declared divergence, at subnormal operands only."""
    kind = DType(dtype)
    info = ml_dtypes.finfo(kind.numpy)
    small = float(info.smallest_normal) / 4
    few = np.array([0.0, -0.0, 1, -1, 2, -2, 0.5, -0.5, 3, -3, np.inf, -np.inf, np.nan, small, -small])
    x, y = (v.reshape(-1).astype(kind.numpy) for v in np.meshgrid(few, few))
    shape = f"{dtype}[{len(x)}]"
    text = f"HloModule m\nENTRY e {{\n  x = {shape} parameter(0)\n  y = {shape} parameter(1)\n"
    results = on_all_stacks(text + f"  ROOT r = {shape} power(x, y)\n}}\n", [x, y])
    xla = results.pop("xla", None)
    agree(results)
    if xla is not None:
        differ = bits(xla) != bits(results["evaluator"])
        subnormal = [(v != 0) & (np.abs(v) < float(info.smallest_normal)) for v in (few, few)]
        a, b = (v.reshape(-1) for v in np.meshgrid(*subnormal))
        assert differ.any() == (dtype != "f16")  # those of f16 are normal in f32
        assert not (differ & ~(a | b)).any()


@pytest.mark.parametrize("dtype", FLOATS)
def test_a_power_that_underflows_keeps_its_sign(dtype: str):
    x, y = np.meshgrid([-0.66357421875, -0.001, -2.0, -1e4], [1739.0, 1740.0, -1739.0, 1003.0, 77.0])
    inputs = [v.reshape(-1).astype(DType(dtype).numpy) for v in (x, y)]
    shape = f"{dtype}[{x.size}]"
    text = f"HloModule m\nENTRY e {{\n  x = {shape} parameter(0)\n  y = {shape} parameter(1)\n"
    results = on_all_stacks(text + f"  ROOT r = {shape} power(x, y)\n}}\n", inputs)
    zeros = {stack: r.astype(np.float64) for stack, r in results.items()}
    for found in zeros.values():
        np.testing.assert_array_equal(np.signbit(found), np.signbit(zeros["evaluator"]))
    assert (np.signbit(zeros["evaluator"]) & (zeros["evaluator"] == 0)).any()


REGION = "f {\n  x = T[] parameter(0)\n  y = T[] parameter(1)\n  ROOT z = T[] OP(x, y)\n}\n"
FOLDS = {
    "reduce": "  p = T[150,7] parameter(0)\n  i = T[] constant(INIT)\n"
    "  ROOT r = T[150] reduce(p, i), dimensions={1}, to_apply=f\n",
    "window": "  p = T[150,7] parameter(0)\n  i = T[] constant(INIT)\n"
    "  ROOT r = T[150,5] reduce-window(p, i), window={size=1x3}, to_apply=f\n",
    "scatter": "  p = T[40] parameter(0)\n  i = s32[150,1] parameter(1)\n  u = T[150] parameter(2)\n"
    "  ROOT r = T[40] scatter(p, i, u), update_window_dims={}, inserted_window_dims={0}, "
    "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f\n",
    "long": "  p = T[60,90] parameter(0)\n  i = T[] constant(INIT)\n"
    "  ROOT r = T[60] reduce(p, i), dimensions={1}, to_apply=f\n",
}


def fold_module(kind: str, opcode: str, dtype: str) -> str:
    text = f"HloModule m\n{REGION}ENTRY e {{\n{FOLDS[kind]}}}\n"
    return (
        text.replace("T[", dtype + "[").replace("OP", opcode).replace("INIT", "-inf" if opcode == "maximum" else "inf")
    )


def fold_inputs(kind: str, opcode: str, dtype: str) -> list[Array]:
    """Mostly zeros, which no other value exceeds; some rows have only -0."""
    rng, kind_ = np.random.default_rng(9), DType(dtype).numpy
    values = np.array([0.0, -0.0, -1 if opcode == "maximum" else 1, np.nan])
    x = rng.choice(values, {"long": (60, 90)}.get(kind, (150, 7)), p=[0.1, 0.6, 0.29, 0.01]).astype(kind_)
    x[:4] = -0.0
    if kind != "scatter":
        return [x]
    places = rng.integers(0, 40, (150, 1)).astype(np.int32)
    return [rng.choice(values[:2], 40).astype(kind_), places, x[:, 0].copy()]


@pytest.mark.parametrize("dtype", ["bf16", "f32"])
@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
@pytest.mark.parametrize("kind", ["reduce", "window", "scatter"])
def test_a_fold_of_zeros(kind: str, opcode: str, dtype: str):
    agree(on_all_stacks(fold_module(kind, opcode, dtype), fold_inputs(kind, opcode, dtype)))


@pytest.mark.parametrize("opcode", ["maximum", "minimum"])
def test_a_long_fold_keeps_nan(opcode: str):
    """XLA delegates long reductions to a library that drops NaN and does not distinguish zeros."""
    text, inputs = fold_module("long", opcode, "f32"), fold_inputs("long", opcode, "f32")
    agree(on_all_stacks(text, inputs, xla=False))
    expected = run_stack(text, "evaluator", inputs)[0]
    assert (np.isnan(expected) == np.isnan(inputs[0]).any(axis=1)).all()
    if installed():
        assert (np.isnan(expected) & ~np.isnan(XlaExecutable(text).execute(inputs)[0])).any()


@pytest.mark.parametrize(
    ("source", "target"), [("f64", "f8e8m0fnu"), ("f32", "f8e8m0fnu"), ("f32", "f4e2m1fn"), ("bf16", "f4e2m1fn")]
)
def test_converts_to_the_narrowest(source: str, target: str):
    near = [2.0**-127 * x for x in (0.5, 0.99, 1, 1.01, 1.9, 2, 2.9, 3.1)] + [2.0**127 * x for x in (1, 1.4, 1.6)]
    with np.errstate(over="ignore"):
        x = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 0.25, 5, -7, 1e-300, *near]).astype(
            DType(source).numpy
        )
    x = np.resize(x, 64)
    text = f"HloModule m\nENTRY e {{\n  p = {source}[64] parameter(0)\n  ROOT r = {target}[64] convert(p)\n}}\n"
    agree(on_all_stacks(text, [x]))


@pytest.mark.parametrize("target", ["f32", "f64"])
def test_every_power_of_two(target: str):
    """The least power is subnormal in f32 but not in f64."""
    codes = np.arange(256).astype(np.uint8).view(DType.F8E8M0FNU.numpy)
    text = f"HloModule m\nENTRY e {{\n  p = f8e8m0fnu[256] parameter(0)\n  ROOT r = {target}[256] convert(p)\n}}\n"
    results = on_all_stacks(text, [codes])
    agree(results)
    assert (results["evaluator"][:255].astype(np.float64) == np.ldexp(1.0, np.arange(255) - 127)).all()


PREDS = [
    "u8[4] pred[4]",
    "pred[4] u8[4]",
    "u32[4] pred[4,4]",
    "pred[4,4] u32[4]",
    "pred[4] s4[4,2]",
    "pred[3,8] f64[3]",
]


@pytest.mark.parametrize("form", PREDS)
def test_a_pred_is_a_byte(form: str):
    """Any byte but 0 is true; true is 1."""
    source, target = form.split()
    lines = [f"p = {source} parameter(0)", f"b = {target} bitcast-convert(p)", f"ROOT r = {source} bitcast-convert(b)"]
    text = "\n".join(["HloModule m", "ENTRY e {", *lines, "}", ""])
    shape = parsed(text).entry.parameters[0].shape
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, (*shape.dims, shape.dtype.bytes)).astype(np.uint8)
    given = (x != 0)[..., 0] if shape.dtype is DType.PRED else x.view(shape.dtype.numpy)[..., 0]
    results = [run_stack(text, stack, [given])[0] for stack in STACKS]
    expected = given.view(np.uint8) if shape.dtype is DType.PRED else (x != 0).astype(np.uint8).reshape(-1)
    for result in results:
        np.testing.assert_array_equal(np.ascontiguousarray(result).view(np.uint8).reshape(-1), expected.reshape(-1))


@pytest.mark.parametrize("bits_", [(5, 10), (5, 2), (4, 3)])
@pytest.mark.parametrize("kind", ["f8e5m2", "f8e5m2fnuz", "f8e4m3fn", "f8e8m0fnu"])
def test_reduce_precision_of_a_byte(kind: str, bits_: tuple[int, int]):
    """Computed in f16, which keeps the subnormals of five exponent bits."""
    codes = np.arange(256).astype(np.uint8).view(DType(kind).numpy)
    op = f"reduce-precision(p), exponent_bits={bits_[0]}, mantissa_bits={bits_[1]}"
    text = f"HloModule m\nENTRY e {{\n  p = {kind}[256] parameter(0)\n  ROOT r = {kind}[256] {op}\n}}\n"
    agree(on_all_stacks(text, [codes]))


@pytest.mark.parametrize("scheduled", [False, True])
@pytest.mark.parametrize("rows", [1, 40])
@pytest.mark.parametrize("kind", ["bf16", "f32", "c64", "c128", "f8e5m2", "f8e3m4"])
def test_a_dot_of_one_product_keeps_the_sign_of_a_zero(kind: str, rows: int, scheduled: bool):
    """0 · -1 is -0. Where there are several products, the sum may start at +0."""
    text = f"""HloModule m{", is_scheduled=true" if scheduled else ""}
ENTRY e {{
  p = {kind}[{rows},1] parameter(0)
  q = {kind}[1,70] parameter(1)
  ROOT r = {kind}[{rows},70] dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}
"""
    dtype = DType(kind).numpy
    results = on_all_stacks(text, [np.zeros((rows, 1), dtype), np.full((1, 70), -1.0).astype(dtype)])
    for stack, result in results.items():
        assert np.signbit(result.real.astype(np.float32)).all(), stack
        assert kind[0] != "c" or not np.signbit(result.imag).any(), stack
