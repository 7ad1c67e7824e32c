"""The evaluator's semantics: special cases of numbers, and data movement compared with NumPy formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ..support.evaluated import REGIONS, elementwise, run

# --- integers --------------------------------------------------------------------------------------------------------

INT32 = st.one_of(st.sampled_from([0, 1, -1, 2, -2, 31, 32, 33, 2**31 - 1, -(2**31)]), st.integers(-(2**31), 2**31 - 1))


@given(INT32, INT32)
def test_integer_division_and_remainder(x: int, y: int):
    a, b = np.array([x], np.int32), np.array([y], np.int32)
    quotient, rest = int(elementwise("s32", "divide", a, b)[0]), int(elementwise("s32", "remainder", a, b)[0])
    if y == 0:
        assert (quotient, rest) == (-1, x)
    elif (x, y) == (-(2**31), -1):
        assert (quotient, rest) == (x, 0)
    else:
        assert quotient == int(abs(x) // abs(y)) * (1 if (x < 0) == (y < 0) else -1)
        assert x == quotient * y + rest


@given(INT32, INT32)
def test_shifts_beyond_the_width(x: int, y: int):
    a, b = np.array([x], np.int32), np.array([y], np.int32)
    inside = 0 <= y < 32
    left, right, arithmetic = (
        int(elementwise("s32", op, a, b)[0]) for op in ("shift-left", "shift-right-logical", "shift-right-arithmetic")
    )
    assert left % 2**32 == (x << y) % 2**32 if inside else left == 0
    assert right % 2**32 == (x % 2**32) >> y if inside else right == 0
    assert arithmetic == (x >> y if inside else (-1 if x < 0 else 0))


@given(INT32, INT32)
def test_mulhi(x: int, y: int):
    a, b = np.array([x], np.int32), np.array([y], np.int32)
    assert int(elementwise("s32", "mulhi", a, b)[0]) == x * y >> 32
    wide = elementwise("s64", "mulhi", a.astype(np.int64) << 32, b.astype(np.int64) << 32)
    assert int(wide[0]) == x * y


@pytest.mark.parametrize("dtype", ["s2", "u2", "s4", "u4"])
def test_mulhi_of_types_narrower_than_a_byte(dtype):
    """Every pair: the upper half is that of the type's own width, not of a byte's."""
    kind = DType(dtype)
    least = -(1 << kind.bits - 1) if kind.is_signed else 0
    numbers = range(least, least + (1 << kind.bits))
    x, y = np.array([(a, b) for a in numbers for b in numbers], np.int8).T
    found = elementwise(dtype, "mulhi", x.astype(kind.numpy), y.astype(kind.numpy))
    assert found.astype(int).tolist() == [int(a) * int(b) >> kind.bits for a, b in zip(x, y)]


def test_unsigned_division_by_zero_and_integer_powers():
    zero = np.zeros(2, np.uint8)
    assert elementwise("u8", "divide", np.array([0, 7], np.uint8), zero).tolist() == [255, 255]
    assert elementwise(
        "s32", "power", np.array([2, -1, 1, 3], np.int32), np.array([-1, -3, -5, 4], np.int32)
    ).tolist() == [0, -1, 1, 81]
    assert elementwise("s8", "abs", np.array([-128, 5, -5], np.int8)).tolist() == [-128, 5, 5]


@pytest.mark.parametrize("dtype", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("dims", ["", "1", "3"])
def test_a_power_of_one_half_is_no_square_root(dtype, dims):
    """NumPy takes the root for a scalar exponent; IEEE's pow, and XLA's, is 0 of -0 and infinite of -inf."""
    text = f"""HloModule m
ENTRY e {{ x = {dtype}[{dims}] parameter(0)
  h = {dtype}[] constant(0.5)
  y = {dtype}[{dims}] broadcast(h), dimensions={{}}
  ROOT r = {dtype}[{dims}] power(x, y) }}
"""
    module, size = parse_module(text), [int(n) for n in dims.split()]
    for x, expected in ((-0.0, 0.0), (-np.inf, np.inf), (4.0, 2.0)):
        (found,) = evaluate(module, [np.full(size, x, DType(dtype).numpy)])
        assert np.all(found == expected) and not np.signbit(found).any()


def test_counts_of_bits_in_narrow_types():
    x = parse_module(
        "HloModule m\nENTRY e {\n p = s4[4] constant({-1, 0, 1, 7})\n a = s4[4] popcnt(p)\n"
        " b = s4[4] count-leading-zeros(p)\n ROOT t = (s4[4], s4[4]) tuple(a, b)\n}"
    )
    assert [v.astype(int).tolist() for v in evaluate(x, [])] == [[4, 0, 1, 3], [0, 4, 3, 1]]


# --- floats ----------------------------------------------------------------------------------------------------------


def test_maximum_minimum_and_clamp_propagate_nan():
    nan, one = np.array([np.nan, 1], np.float32), np.array([1, np.nan], np.float32)
    for op in ("maximum", "minimum"):
        assert np.isnan(elementwise("f32", op, nan, one)).all()
    assert np.isnan(elementwise("f32", "clamp", np.zeros(2, np.float32), nan, one)).all()


@pytest.mark.parametrize(
    ("target", "expected"),
    [("s8", [-128, 127, 0, 2, -2]), ("u8", [0, 255, 0, 2, 0]), ("s64", [-(2**63), 2**63 - 1, 0, 2, -2])],
)
def test_float_to_integer_truncates_and_saturates(target: str, expected: list[int]):
    x = np.array([-np.inf, 1e30, np.nan, 2.9, -2.9], np.float32)
    assert run(f"  p = f32[5] parameter(0)\n  ROOT r = {target}[5] convert(p)", x)[0].tolist() == expected


def test_subnormals_flush_unless_told_otherwise():
    tiny = np.array([1e-40, -1e-40], np.float32)
    body = "  p = f32[2] parameter(0)\n  z = f32[2] constant({1e20, 1e20})\n  ROOT r = f32[2] multiply(p, z)"
    assert run(body, tiny, flush_subnormals=False)[0].tolist() == (tiny * np.float32(1e20)).tolist()
    assert run(body, tiny)[0].tolist() in ([0.0, -0.0], (tiny * np.float32(1e20)).tolist())
    assert (tiny * np.float32(1e20) != 0).all()  # the floating-point environment is restored


def test_total_order_puts_negative_nan_first():
    order = np.array([-np.nan, -np.inf, -1, -1e-40, -0.0, 0.0, 1e-40, 1, np.inf, np.nan], np.float32)
    order[0] = np.copysign(order[0], -1)
    text = (
        "  p = f32[9] parameter(0)\n  q = f32[9] parameter(1)\n"
        "  ROOT r = pred[9] compare(p, q), direction=LT, type=TOTALORDER"
    )
    assert run(text, order[:-1], order[1:])[0].all()
    assert not run(text, order[1:], order[:-1])[0].any()


@given(st.floats(width=32), st.sampled_from([(8, 7), (5, 10), (5, 2), (4, 3), (8, 23), (11, 52)]))
def test_reduce_precision_is_idempotent_and_matches_numpy(x: float, kind: tuple[int, int]):
    body = (
        f"  p = f32[1] parameter(0)\n  ROOT r = f32[1] reduce-precision(p), exponent_bits={kind[0]}, "
        f"mantissa_bits={kind[1]}"
    )
    once = run(body, np.array([x], np.float32), flush_subnormals=False)[0]
    again = run(body, once, flush_subnormals=False)[0]
    assert once.tobytes() == again.tobytes()
    half = np.array([x], np.float32).astype(np.float16)
    if kind == (5, 10) and not 0 < abs(float(half[0])) < 2.0**-14 and abs(x) >= 2.0**-14:
        assert np.array_equal(once, half.astype(np.float32), equal_nan=True)


@given(st.binary(min_size=8, max_size=8))
def test_bitcast_convert_there_and_back(raw: bytes):
    for narrow in ("s4", "u8", "s16", "f32", "u2"):
        bits = {"s4": 4, "u8": 8, "s16": 16, "f32": 32, "u2": 2}[narrow]
        body = (
            f"  p = u64[1] parameter(0)\n  n = {narrow}[1,{64 // bits}] bitcast-convert(p)\n"
            "  ROOT r = u64[1] bitcast-convert(n)"
        )
        assert run(body, np.frombuffer(raw, np.uint64))[0].tobytes() == raw


# --- data movement ---------------------------------------------------------------------------------------------------


def test_bitcast_reads_memory_in_layout_order():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert run("  p = f32[2,3]{0,1} parameter(0)\n  ROOT r = f32[3,2]{1,0} bitcast(p)", x)[0].tolist() == x.T.tolist()
    assert run("  p = f32[2,3]{1,0} parameter(0)\n  ROOT r = f32[6]{0} bitcast(p)", x)[0].tolist() == list(range(6))
    assert run("  p = f32[2,3]{0,1} parameter(0)\n  ROOT r = f32[6]{0} bitcast(p)", x)[0].tolist() == [0, 3, 1, 4, 2, 5]


@given(st.integers(0, 5), st.integers(-7, 4), st.integers(-7, 4), st.integers(0, 3))
def test_pad(length: int, low: int, high: int, interior: int):
    size = length + max(length - 1, 0) * interior + low + high
    if size < 0:
        return
    spread = [v for i in range(length) for v in [i, *[-1] * interior]][: length + max(length - 1, 0) * interior]
    padded = [-1] * max(low, 0) + spread + [-1] * max(high, 0)
    expected = padded[max(-low, 0) : len(padded) - max(-high, 0)]
    body = (
        f"  p = s32[{length}] parameter(0)\n  v = s32[] parameter(1)\n"
        f"  ROOT r = s32[{size}] pad(p, v), padding={low}_{high}_{interior}"
    )
    assert run(body, np.arange(length, dtype=np.int32), -1)[0].tolist() == expected


def test_dynamic_slices_clamp():
    x = np.arange(5, dtype=np.int32)
    for start, expected in [(-3, [0, 1]), (1, [1, 2]), (9, [3, 4])]:
        assert (
            run(
                "  p = s32[5] parameter(0)\n  i = s32[] parameter(1)\n"
                "  ROOT r = s32[2] dynamic-slice(p, i), dynamic_slice_sizes={2}",
                x,
                start,
            )[0].tolist()
            == expected
        )
    out = run(
        "  p = s32[5] parameter(0)\n  u = s32[2] parameter(1)\n  i = s32[] parameter(2)\n"
        "  ROOT r = s32[5] dynamic-update-slice(p, u, i)",
        x,
        [8, 9],
        4,
    )[0]
    assert out.tolist() == [0, 1, 2, 8, 9]
    assert x.tolist() == [0, 1, 2, 3, 4]  # operands stay as they were


GATHER = "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,2}"
SCATTER = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1"


def test_gather_clamps_and_scatter_drops_what_lies_outside():
    x = np.arange(6, dtype=np.int32).reshape(3, 2)
    indices = np.array([[-5], [1], [7]], np.int32)
    got = run(
        f"  p = s32[3,2] parameter(0)\n  i = s32[3,1] parameter(1)\n  ROOT r = s32[3,2] gather(p, i), {GATHER}",
        x,
        indices,
    )[0]
    assert got.tolist() == [[0, 1], [2, 3], [4, 5]]
    updates = np.full((3, 2), 10, np.int32)
    body = (
        "  p = s32[3,2] parameter(0)\n  i = s32[3,1] parameter(1)\n  u = s32[3,2] parameter(2)\n"
        f"  ROOT r = s32[3,2] scatter(p, i, u), {SCATTER}, to_apply=addi"
    )
    assert run(body, x, indices, updates, computations=REGIONS)[0].tolist() == [[0, 1], [12, 13], [4, 5]]
    far = np.array([[2**63 - 1], [1], [-(2**63)]])
    wide = body.replace("i = s32", "i = s64")
    assert run(wide, x, far, updates, computations=REGIONS)[0].tolist() == [[0, 1], [12, 13], [4, 5]]


def test_scatter_applies_equal_indices_in_order():
    body = (
        "  p = s32[1,2] parameter(0)\n  i = s32[3,1] parameter(1)\n  u = s32[3,2] parameter(2)\n"
        f"  ROOT r = s32[1,2] scatter(p, i, u), {SCATTER}, to_apply="
    )
    inputs = np.zeros((1, 2), np.int32), np.zeros((3, 1), np.int32), np.array([[1, 2], [3, 4], [5, 6]], np.int32)
    assert run(body + "second", *inputs, computations=REGIONS)[0].tolist() == [[5, 6]]
    assert run(body + "addi", *inputs, computations=REGIONS)[0].tolist() == [[9, 12]]
    digits = """digits { x = s32[] parameter(0)
  y = s32[] parameter(1)
  ten = s32[] constant(10)
  m = s32[] multiply(x, ten)
  ROOT z = s32[] add(m, y) }
"""
    assert run(body + "digits", *inputs, computations=digits)[0].tolist() == [[135, 246]]
