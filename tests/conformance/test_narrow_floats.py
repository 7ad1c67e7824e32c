"""The narrowest floats on the evaluator and both stacks, where they lack a sign, NaN or zero."""

import numpy as np
import pytest

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.dtypes import BY_NAME
from ..support.check import check

VALUES = np.array([0, -0.0, 1, -1, 1.25, 1.5, 2.5, 3, 5, -7, 1e30, np.inf, -np.inf, np.nan, 2**-9, 2**-126, 1e-20])
TINY = np.array([2.0**-127, 1.25 * 2.0**-127, 1.5 * 2.0**-127, 1.75 * 2.0**-127], np.float32)
NARROW = [
    "f8e5m2",
    "f8e4m3",
    "f8e4m3fn",
    "f8e4m3b11fnuz",
    "f8e5m2fnuz",
    "f8e4m3fnuz",
    "f8e3m4",
    "f8e8m0fnu",
    "f4e2m1fn",
]


def module(source: str, target: str, op: str, n: int) -> str:
    return f"""HloModule m
ENTRY e {{ p = {source}[{n}] parameter(0)
  ROOT r = {target}[{n}] {op} }}
"""


@pytest.mark.parametrize("target", ["f8e8m0fnu", "f4e2m1fn", "pred"])
@pytest.mark.parametrize("source", [*NARROW, "bf16", "f32", "f64", "s8"])
def test_convert(source, target):
    x = np.nan_to_num(VALUES, posinf=100, neginf=-100).clip(-100, 100) if source == "s8" else VALUES
    check(module(source, target, "convert(p)", x.size), [x.astype(np.float32).astype(BY_NAME[source].numpy)])


@pytest.mark.parametrize("stack", ["evaluator", "legacy", "mlir"])
@pytest.mark.parametrize("source", ["s32", "u32", "s64", "u64"])
def test_wide_integers_become_bf16_by_way_of_f32(source, stack):
    """As XLA's do. One more than halfway between two bf16 is a tie in f32."""
    x = np.array([0, 1, 255, 257, 2**24 + 2**16 + 1, 2**30 + 2**22 + 1, 2**30 + 2**22 + 2**7], BY_NAME[source].numpy)
    (out,) = check(module(source, "bf16", "convert(p)", x.size), [x], (stack,))
    np.testing.assert_array_equal(out.astype(np.float32), [0, 1, 255, 256, 2**24, 2**30, 2**30 + 2**23])


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("f8e8m0fnu", [255, 255, 127, 255, 127, 128, 128, 129, 129, 255, 227, 255, 255, 255, 118, 1, 60]),
        ("f4e2m1fn", [0, 8, 2, 10, 2, 3, 4, 5, 6, 15, 7, 7, 15, 8, 0, 0, 0]),
    ],
)
def test_codes_of_f32(target, expected):
    (out,) = check(module("f32", target, "convert(p)", VALUES.size), [VALUES.astype(np.float32)])
    np.testing.assert_array_equal(out.view(np.uint8), expected)


def test_the_least_power_has_code_0():
    (out,) = check(module("f32", "f8e8m0fnu", "convert(p)", 4), [TINY])
    np.testing.assert_array_equal(out.view(np.uint8), [0, 1, 1, 1])
    for stack in ("legacy", "mlir"):
        (again,) = check(module("f32", "f8e8m0fnu", "convert(p)", 4), [TINY], (stack,))
        np.testing.assert_array_equal(again.view(np.uint8), [0, 1, 1, 1])


@pytest.mark.parametrize("bits", [(5, 2), (4, 3), (2, 0), (3, 3), (8, 23)])
@pytest.mark.parametrize("kind", NARROW)
def test_reduce_precision(kind, bits):
    """As in XLA, the value is reduced in f16 (f8e8m0fnu in f32), so the exponent bits are those of an f16."""
    op = f"reduce-precision(p), exponent_bits={bits[0]}, mantissa_bits={bits[1]}"
    check(module(kind, kind, op, VALUES.size), [VALUES.astype(np.float32).astype(BY_NAME[kind].numpy)])


@pytest.mark.parametrize("kind", NARROW)
def test_total_order(kind):
    x = VALUES.astype(np.float32).astype(BY_NAME[kind].numpy)
    text = f"""HloModule m
ENTRY e {{ p = {kind}[289] parameter(0)
  q = {kind}[289] parameter(1)
  ROOT r = pred[289] compare(p, q), direction=LT, type=TOTALORDER }}
"""
    check(text, [np.repeat(x, 17), np.tile(x, 17)])


@pytest.mark.parametrize("kind", ["u2", "u4"])
def test_arithmetic_shift_of_narrow_unsigned_integers_keeps_the_upper_bit(kind):
    n = 1 << BY_NAME[kind].bits
    text = f"""HloModule m
ENTRY e {{ p = {kind}[{n}] parameter(0)
  q = {kind}[{n}] constant({{{",".join(["1"] * n)}}})
  ROOT r = {kind}[{n}] shift-right-arithmetic(p, q) }}
"""
    x = np.arange(n).astype(BY_NAME[kind].numpy)
    check(text, [x])
    (out,) = evaluate(parse_module(text), [x])
    assert out.astype(np.uint8)[-1] == n - 1


@pytest.mark.parametrize("narrow", ["bf16", "f16"])
@pytest.mark.parametrize("step", ["maximum", "multiply"])
def test_a_long_reduction_that_rounds_in_its_computation_rounds_at_each_step(narrow: str, step: str):
    check(f"""HloModule m
round {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] {step}(a, b)
  d = {narrow}[] convert(c)
  ROOT e = f32[] convert(d)
}}
ENTRY e {{
  x = f32[3,62] parameter(0)
  one = f32[] constant(1)
  ROOT r = f32[3] reduce(x, one), dimensions={{1}}, to_apply=round
}}""")


@pytest.mark.parametrize("kind", ["f8e4m3fnuz", "f8e5m2fnuz", "f8e4m3b11fnuz"])
def test_types_without_a_negative_zero_have_none_inside_a_kernel(kind):
    """Memory has no code for it; atan2 tells the zeros apart."""
    ops = ("abs", "ceil", "floor", "negate", "round-nearest-afz", "round-nearest-even", "sign", "sqrt", "tanh", "cbrt")
    values = np.arange(256).astype(np.uint8).view(BY_NAME[kind].numpy)
    lines = [f"  r{n} = {kind}[256] {op}(p)\n  t{n} = {kind}[256] atan2(r{n}, m)" for n, op in enumerate(ops)]
    lines += [f"  r{len(ops)} = {kind}[256] multiply(p, z)\n  t{len(ops)} = {kind}[256] atan2(r{len(ops)}, m)"]
    lines += [
        f"  r{len(ops) + 1} = {kind}[256] maximum(n, z)\n  t{len(ops) + 1} = {kind}[256] atan2(r{len(ops) + 1}, m)"
    ]
    count = len(lines)
    check(
        f"""HloModule m
ENTRY e {{
  p = {kind}[256] parameter(0)
  one = {kind}[] constant(-1)
  m = {kind}[256] broadcast(one), dimensions={{}}
  zero = {kind}[] constant(0)
  z = {kind}[256] broadcast(zero), dimensions={{}}
  n = {kind}[256] negate(z)
{chr(10).join(lines)}
  ROOT t = ({", ".join([f"{kind}[256]"] * count)}) tuple({", ".join(f"t{n}" for n in range(count))})
}}
""",
        [values],
    )


EXACT = ("abs", "negate", "ceil", "floor", "round-nearest-afz", "round-nearest-even", "sign")


@pytest.mark.parametrize("kind", NARROW)
def test_what_is_exact_in_wider_floats_is_rounded_where_the_type_lacks_it(kind):
    """Every number. f8e3m4 ends at 15.5, so ceil of that is infinite, and f8e8m0fnu has no zero and no signs: nothing
    else may be seen behind the op in the same kernel.
    """
    dtype = BY_NAME[kind]
    x = np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy)
    lines = [f"  v{n} = {kind}[{x.size}] {op}(p)" for n, op in enumerate(EXACT)]
    lines += [f"  w{n} = f32[{x.size}] convert(v{n})" for n in range(len(EXACT))]
    shape = ", ".join([f"f32[{x.size}]"] * len(EXACT))
    names = ", ".join(f"w{n}" for n in range(len(EXACT)))
    text = "\n".join([
        "HloModule m",
        "ENTRY e {",
        f"  p = {kind}[{x.size}] parameter(0)",
        *lines,
        f"  ROOT t = ({shape}) tuple({names})",
        "}",
        "",
    ])  # fmt: skip
    check(text, [x])
