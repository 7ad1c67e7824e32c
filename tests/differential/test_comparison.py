"""The comparison rule, and distances in ulp."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...differential.bounds import Bound, bounds_of, op_ulp
from ...differential.comparison import bounds, compare, compare_within, disagreeing, ulp_distance
from ...formats.text.parser import parse_module
from ...hlo.dtypes import FLOAT, DType
from ...hlo.opcodes import Op

F32 = DType.F32
SIGNED_FLOATS = sorted(FLOAT - {DType.F8E8M0FNU}, key=lambda d: d.value)


def floats(*values: float, dtype: DType = F32) -> np.ndarray:
    return np.array(values).astype(dtype.numpy)


def test_nan_agrees_with_nan_only():
    assert compare(floats(np.nan), floats(np.nan), F32).agrees
    assert not compare(floats(np.nan), floats(1), F32).agrees
    assert not compare(floats(1), floats(np.nan), F32).agrees


def test_infinities_agree_by_sign():
    assert compare(floats(np.inf, -np.inf), floats(np.inf, -np.inf), F32).agrees
    difference = compare(floats(1, np.inf), floats(1, -np.inf), F32)
    assert not difference.agrees
    assert difference.first_bad_index == (1,)
    assert not compare(floats(np.inf), floats(3e38), F32, atol=1e30, rtol=10.0).agrees


def test_a_subnormal_agrees_with_zero_but_not_with_another_number():
    assert compare(floats(1e-45), floats(0), F32, one_op="add").agrees
    assert compare(floats(-0.0), floats(1e-40), F32, one_op="add").agrees
    assert not compare(floats(1e-40), floats(2e-40), F32, one_op="add").agrees
    assert not compare(floats(0), floats(1.2e-38), F32, one_op="add").agrees


def test_an_element_fails_only_beyond_both_bounds():
    assert compare(floats(1.05), floats(1), F32, atol=0.1, rtol=1e-9).agrees
    assert compare(floats(105), floats(100), F32, atol=1e-9, rtol=0.1).agrees
    assert not compare(floats(1.05), floats(1), F32, atol=1e-3, rtol=1e-3).agrees


def test_integers_and_pred_are_exact():
    big = np.array([2**63 - 1, -(2**63)])
    assert compare(big, big.copy(), DType.S64).agrees
    difference = compare(big, np.array([2**63 - 2, -(2**63)]), DType.S64, atol=5.0, rtol=5.0)
    assert (difference.agrees, difference.max_abs, difference.first_bad_index) == (False, 1.0, (0,))
    assert not compare(np.array([True]), np.array([False]), DType.PRED).agrees


def test_complex_compares_by_part():
    value = np.array([complex(1, 1e-3)], np.complex64)
    assert not compare(value, np.array([complex(1, 2e-3)], np.complex64), DType.C64, one_op="add").agrees
    nan = np.array([complex(np.nan, 1)], np.complex64)
    assert compare(nan, nan.copy(), DType.C64).agrees


def test_within_a_bound_steps_are_counted():
    one, next_, third = floats(1), floats(1 + 2.0**-23), floats(1 + 2.0**-22)
    assert compare_within(next_, one, F32, Bound(1)).agrees and not compare_within(next_, one, F32, Bound()).agrees
    assert not compare_within(third, one, F32, Bound(1)).agrees
    assert compare_within(floats(np.inf), floats(np.finfo(np.float32).max), F32, Bound(1)).agrees
    assert not compare_within(floats(-np.inf), floats(np.inf), F32, Bound(1000, 1000)).agrees
    assert not compare_within(floats(np.nan), one, F32, Bound(1000, 1000)).agrees


def test_a_scaled_bound_is_of_the_largest_finite_magnitude():
    expected = floats(1024, np.inf, 1)
    near, far = floats(1024, np.inf, 1 + 2.0**-13), floats(1024, np.inf, 1 + 2.0**-12)
    assert compare_within(near, expected, F32, Bound(0, 1)).agrees
    assert not compare_within(near, expected, F32, Bound(1)).agrees
    assert compare_within(far, expected, F32, Bound(0, 1)).first_bad_index == (2,)


def test_a_bound_of_numbers_near_the_largest_one_is_finite():
    half, whole = np.array([7.5e307]), np.array([1.5e308])
    assert not compare_within(half, whole, DType.F64, Bound(4, 4)).agrees
    assert compare_within(np.nextafter(whole, 0), whole, DType.F64, Bound(4, 4)).agrees


def test_exactly_means_signs_of_zeros_and_subnormals_too():
    assert not compare_within(floats(-0.0), floats(0), F32, Bound()).agrees
    assert not compare_within(floats(1e-40), floats(0), F32, Bound()).agrees
    assert compare_within(floats(1e-40), floats(0), F32, Bound(flush=True)).agrees
    assert not compare_within(floats(-1e-40), floats(0), F32, Bound(flush=True)).agrees
    assert compare_within(floats(-0.0), floats(0), F32, Bound(1, 1)).agrees
    payload = np.array([0xFFC12345], np.uint32).view(np.float32)
    assert compare_within(payload, floats(np.nan), F32, Bound()).agrees


def test_what_was_rounded_out_of_a_narrower_range():
    bound = Bound(1, overflow=65000, underflow=1e-4)
    for inside, outside in ((65504, np.inf), (-65504, -np.inf), (1e-4, 0.0), (-6e-5, -0.0)):
        assert compare_within(floats(inside), floats(outside), F32, bound).agrees
        assert compare_within(floats(outside), floats(inside), F32, bound).agrees
        assert not compare_within(floats(inside), floats(outside), F32, Bound(1)).agrees
    for inside, outside in ((64000, np.inf), (65504, -np.inf), (65504, np.nan), (2e-4, 0.0), (1e-4, -0.0)):
        assert not compare_within(floats(inside), floats(outside), F32, bound).agrees
    largest, nan = (np.array([v], DType.F8E4M3FN.numpy) for v in (448, np.nan))
    assert compare_within(nan, largest, DType.F8E4M3FN, Bound(1, overflow=400)).agrees
    assert not compare_within(nan, largest, DType.F8E4M3FN, Bound(1)).agrees


def test_complex_numbers_lie_apart_in_the_plane():
    value, near = np.array([1 + 1e-7j], np.complex64), np.array([1 + 2e-7j], np.complex64)
    assert compare_within(near, value, DType.C64, Bound(1)).agrees
    assert not compare_within(near, value, DType.C64, Bound()).agrees
    assert not compare_within(near * 1000j, value * 1000j, DType.C64, Bound(0.5)).agrees


def test_shape_and_dtype_must_match():
    assert not compare(floats(1), floats(1, 1), F32).agrees
    assert "float64[1]" in compare(np.ones(1), floats(1), F32).message


@pytest.mark.parametrize(
    ("dtype", "op", "ulp"),
    [
        (F32, "add", 20),
        (DType.F64, "tanh", 20),
        (DType.F16, "add", 5),
        (DType.BF16, "add", 2),
        (F32, "cbrt", 70),
        (DType.BF16, "tan", 16),
    ],
)
def test_bounds_of_one_op_cases(dtype: DType, op: str, ulp: int):
    assert bounds(dtype, one_op=op) == (0.0, ulp * float(ml_dtypes.finfo(dtype.numpy).eps))


def test_bounds_of_modules():
    assert bounds(F32) == (1e-4, 1e-4)
    assert bounds(DType.F8E4M3FN) == (1e-1, 1e-1)
    assert bounds(F32, atol=0.5) == (0.5, 0.0)


@pytest.mark.parametrize("dtype", SIGNED_FLOATS, ids=repr)
def test_neighbours_are_one_ulp_apart(dtype: DType):
    width = min(dtype.bits, 16)
    shift = dtype.bits - width  # wide types: the numbers whose low bits are zero are 2**shift apart
    bits = (np.arange(2 ** (width - 1), dtype=np.uint64) << np.uint64(shift)).astype(f"u{dtype.bytes}")
    values = bits.view(dtype.numpy)
    values = values[np.isfinite(values.astype(np.float64))]
    assert (ulp_distance(values[1:], values[:-1]) == 2.0**shift).all()
    assert (ulp_distance(-values, values) == 2 * ulp_distance(np.zeros_like(values), values)).all()


@given(st.floats(width=64, allow_nan=False, allow_infinity=False), st.integers(0, 100))
def test_ulp_distance_counts_steps(start: float, steps: int):
    value = np.array([start])
    for _ in range(steps):
        value = np.nextafter(value, np.inf)
    if np.isfinite(value).all():
        assert ulp_distance(value, np.array([start]))[0] == steps


def test_an_overflowed_power_has_no_direction():
    one, other = np.array([complex(np.inf, -np.inf)], np.complex64), np.array([complex(np.nan, np.inf)], np.complex64)
    power = Bound(ulp=op_ulp(Op.POWER, DType.C64))
    assert compare_within(one, other, DType.C64, power).agrees
    assert not compare_within(one, other, DType.C64, Bound(ulp=op_ulp(Op.EXPONENTIAL, DType.C64))).agrees
    finite = np.array([3e38 + 3e38j], np.complex64)
    assert not compare_within(one, finite, DType.C64, power).agrees
    nothing = np.array([complex(np.nan, np.nan)], np.complex64)  # exp(2·log x) of x = -inf, whose x·x is infinite
    assert compare_within(one, nothing, DType.C64, power).agrees
    assert not compare_within(nothing, finite, DType.C64, power).agrees
    assert not compare_within(one, nothing, DType.C64, Bound(ulp=op_ulp(Op.EXPONENTIAL, DType.C64))).agrees


def test_powers_are_allowed_what_a_rounded_logarithm_turns():
    """(-0.41 + 0.17i)¹⁰⁷ by exp(107·log x) is 180 ulp from the product."""
    assert 32 + 180 < op_ulp(Op.POWER, DType.C128) < 1500
    assert 200 < op_ulp(Op.POWER, DType.C64) < 256


def test_a_complex_atan2_near_the_unit_circle_has_an_absolute_bound():
    """atan2(0, 1 - 2i) is a rounding error and nothing else; behind a copy it is one, too."""
    text = """HloModule m
ENTRY e {
  y = c128[2] parameter(0)
  x = c128[2] parameter(1)
  a = c128[2] atan2(y, x)
  ROOT r = c128[2] copy(a)
}
"""
    (bound,) = bounds_of(parse_module(text))
    zeros, errors = np.array([-8.9e-17, -8.9e-17 + 1e-9]), np.array([-8.9e-17 + 2.2e-16j, -8.9e-17])
    assert list(disagreeing(zeros.astype(complex), errors, DType.C128, bound)) == [False, True]


def test_a_result_of_a_scan_has_the_errors_of_its_carry():
    """The carry of the step before, a subnormal less 0, may have been flushed to zero."""
    text = """HloModule m
body {
  x = f32[2] parameter(0)
  c = f32[2] parameter(1)
  s = f32[2] subtract(c, x)
  ROOT t = (f32[2], f32[2]) tuple(c, s)
}
ENTRY e {
  x = f32[3,2] parameter(0)
  c = f32[2] parameter(1)
  ROOT s = (f32[3,2], f32[2]) scan(x, c), dimensions={0}, num_carries=1, is_reverse=false, to_apply=body
}
"""
    given, last = bounds_of(parse_module(text))
    assert given.flush
    assert given == last
