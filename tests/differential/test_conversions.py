"""Conversions to and from narrow floats where a second rounding, or a limit, would show; and what they are made of."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from ...codegen.options import EmitOptions
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check

NARROW = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn,
    "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f4e2m1fn": ml_dtypes.float4_e2m1fn,
}


def converted(source: str, target: str, count: int) -> str:
    return f"HloModule m\nENTRY e {{ p = {source}[{count}] parameter(0)\n ROOT r = {target}[{count}] convert(p) }}"


def emitted(stack: str, source: str, target: str) -> str:
    made = emitter(stack).emit(plan(parse_module(converted(source, target, 64))).kernels, EmitOptions.host())
    return made.llvm_ir


def halfway(kind: type) -> np.ndarray:
    """The finite normal numbers of a type and what lies halfway between two, a little more and less, of both signs."""
    info = ml_dtypes.finfo(kind)
    bits = np.arange(1 << min(info.bits, 16), dtype=np.uint16 if info.bits > 8 else np.uint8)
    with np.errstate(invalid="ignore"):
        numbers = bits.view(kind).astype(np.float64)
    numbers = np.unique(numbers[np.isfinite(numbers) & (numbers >= float(info.smallest_normal))])
    middles = (numbers[1:] + numbers[:-1]) / 2
    beyond = numbers[-1] + (numbers[-1] - numbers[-2]) / 2
    exact = np.concatenate([numbers, middles, [beyond]])
    near = [exact * (1 + sign * step) for sign in (-1, 1) for step in (2.0**-52, 2.0**-40, 2.0**-26, 2.0**-13)]
    # one below the smallest normal number is a subnormal f32, which may be flushed
    found = np.concatenate([exact, *(x[x >= numbers[0]] for x in near), [np.inf, np.nan, 0.0]])
    return np.concatenate([found, -found])


@pytest.mark.parametrize("target", NARROW)
def test_f64_is_rounded_once(target: str):
    x = halfway(NARROW[target])
    check(converted("f64", target, x.size), [x])


@pytest.mark.parametrize(
    ("source", "target"), [*itertools.product(("s32", "u32", "s64", "u64"), ("f16", "f8e5m2", "f8e4m3fn", "f4e2m1fn"))]
)
def test_integers_beyond_the_largest_number(source: str, target: str):
    info = np.iinfo(np.dtype({"s": "i", "u": "u"}[source[0]] + str(int(source[1:]) // 8)))
    near = [
        2**k + d for k in (4, 11, 12, 15, 16, 17, 18, 24, 31, 32, 62) for d in (-33, -17, -16, -15, -1, 0, 1, 16, 17)
    ]
    all_ = [*near, *(-n for n in near), *range(65500, 65540), 440, 464, 465, 61439, 61440, 61441, info.min, info.max]
    x = np.array([n for n in all_ if info.min <= n <= info.max], info.dtype)
    check(converted(source, target, x.size), [x])


@pytest.mark.parametrize(
    ("source", "target"),
    [("f16", "f8e5m2"), *((kind, to) for kind in NARROW if kind.startswith("f8") for to in ("f16", "pred"))],
)
def test_every_number_by_its_bits(source: str, target: str):
    bits = np.arange(1 << 16, dtype=np.uint16) if source == "f16" else np.arange(1 << 8, dtype=np.uint8)
    check(converted(source, target, bits.size), [bits.view(NARROW[source])])


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_no_comparison_rounds_f64_to_f16(stack: str):
    """What was lost was found by comparisons, of which AVX2 makes masks of the width of an f64: twice XLA's time."""
    assert "fptrunc" in (text := emitted(stack, "f64", "f16")) and "fcmp" not in text


@pytest.mark.parametrize(("source", "target"), [("f8e5m2", "f16"), ("f8e4m3fn", "pred"), ("f8e4m3b11fnuz", "pred")])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_bits_suffice(stack: str, source: str, target: str):
    assert "float" not in emitted(stack, source, target)


def test_integers_become_f16_without_f64():
    assert "double" not in emitted("mlir", "s64", "f16")
