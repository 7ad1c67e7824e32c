"""sin, cos, tan for all finite arguments: x·2/π mod 4 from tables of 2/π, then polynomials on ±1.25·π/4.

f32: one table row per exponent, in two f64 parts. f64: 25-bit pieces of 2/π, of which an argument needs six (the method
of Payne and Hanek).
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ..core.builder import Builder, Value
from .math_support import SINGLE, horner, offset, precision_of, scale, select_if

HALF_PI = 1.5707963267948966
# (sin r/r − 1)/r² and (cos r − 1 + r²/2)/r⁴ in r², |r| ≤ 1.3·π/4.
SIN_SINGLE = (-0.1666666716337204, 0.008333314210176468, -0.00019835776765830815, 2.692775069590425e-06)
COS_SINGLE = (0.0416666679084301, -0.0013888864777982235, 2.4795715944492258e-05, -2.697319132494158e-07)
SIN_DOUBLE = (
    -0.16666666666666666,
    0.00833333333333309,
    -0.00019841269841068144,
    2.755731914476122e-06,
    -2.5052091739524466e-08,
    1.605712091010709e-10,
    -7.531906172874585e-13,
)
COS_DOUBLE = (
    0.041666666666666664,
    -0.001388888888888855,
    2.480158730137106e-05,
    -2.755731915422841e-07,
    2.087674440838458e-09,
    -1.1469460005039448e-11,
    4.7098014547922395e-14,
)
PIECE = 25  # bits of 2/π per table entry
PIECES = 6  # entries that one f64 argument needs
FRACTION_BITS = 1400


@cache
def two_over_pi() -> int:
    """⌊2/π · 2^FRACTION_BITS⌋, with π by Machin's formula."""
    guard = FRACTION_BITS + 64

    def arctan_inverse(n: int) -> int:
        term = (1 << guard) // n
        total, k, sign = term, 1, 1
        while term:
            term //= n * n
            k, sign = k + 2, -sign
            total += sign * (term // k)
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    return ((2 << (2 * guard)) // pi) >> 64


@cache
def single_table() -> np.ndarray:
    """[exponent field, 2]: 2^(field−150)·2/π mod 4 as a multiple of 2^-26 and a rest. Zeros for field 0, NaN for
    infinity.
    """
    rows = np.zeros((256, 2))
    for field in range(1, 255):
        shift = field - 150
        point = FRACTION_BITS + max(-shift, 0)  # the position of the binary point
        value = (two_over_pi() << max(shift, 0)) % (4 << point)
        unit = point - 26
        high = (value + (1 << (unit - 1))) >> unit
        rows[field] = high / 2**26, (value - (high << unit)) / (1 << point)
    rows[255] = math.nan
    return rows.reshape(-1)


@cache
def double_table() -> np.ndarray:
    """2/π in pieces of 25 bits, as integers in f64."""
    count = FRACTION_BITS // PIECE
    return np.array(
        [float((two_over_pi() >> (FRACTION_BITS - PIECE * (k + 1))) & (2**PIECE - 1)) for k in range(count)]
    )


def reduce_single(b: Builder, x: Value) -> tuple[Value, Value]:
    """(quadrant, r) of |x|, as i32 and f32."""
    t = b.types
    bits = b.bitcast(x, t.i32)
    field = b.extui(b.binary("andi", b.binary("shrui", bits, 23), 255), t.i64)
    table = b.table("two_over_pi_f32", single_table())
    row = b.binary("shli", field, 1)
    high = b.load(b.pointer(table, row, t.f64), t.f64, 8)
    low = b.load(b.pointer(table, b.binary("ori", row, 1), t.f64), t.f64, 8)
    mantissa = b.binary("ori", b.binary("andi", bits, 0x7FFFFF), 0x4B000000)
    m = b.extend(b.bitcast(mantissa, t.f32))
    turns = b.mulf(m, high)
    shifted = offset(b, turns, 1.5 * 2.0**52)
    rest = b.subf(turns, offset(b, shifted, -1.5 * 2.0**52))
    r = scale(b, b.fma(m, low, rest), HALF_PI)
    return b.trunci(b.bitcast(shifted, t.i64), t.i32), b.truncate(r, t.f32)


def two_sum(b: Builder, x: Value, y: Value) -> tuple[Value, Value]:
    """Knuth's TwoSum: the rounded sum x + y, and its exact error."""
    total = b.addf(x, y)
    part = b.subf(total, x)
    return total, b.addf(b.subf(x, b.subf(total, part)), b.subf(y, part))


def reduce_double(b: Builder, x: Value) -> tuple[Value, Value]:
    """(quadrant, r) of |x|, as i32 and f64. Each product of a 27-bit half and a 25-bit piece is exact."""
    t = b.types
    bits = b.bitcast(x, t.i64)
    field = b.binary("andi", b.binary("shrui", bits, 52), 2047)
    exponent = b.trunci(field, t.i32)
    # The first piece that matters; earlier pieces contribute multiples of 4.
    first = b.binary("divui", b.binary("maxsi", b.binary("addi", exponent, -1077), 0), PIECE)
    power = b.binary("subi", b.binary("addi", exponent, -1075 - PIECE), b.binary("muli", first, PIECE))
    unit = b.bitcast(
        b.binary("shli", b.extsi(b.binary("addi", b.binary("maxsi", power, -1000), 1023), t.i64), 52), t.f64
    )
    integer = b.binary("ori", b.binary("andi", bits, (1 << 52) - 1), 0x4330000000000000)
    upper = b.bitcast(b.binary("andi", integer, -(1 << 26)), t.f64)
    lower = b.subf(b.bitcast(integer, t.f64), upper)
    upper, lower = b.mulf(upper, unit), b.mulf(lower, unit)
    table = b.table("two_over_pi_f64", double_table())
    start = b.extui(first, t.i64)
    terms: list[Value] = []
    for i in range(PIECES):
        place = b.pointer(table, b.binary("addi", start, i), t.f64)
        piece = scale(b, b.load(place, t.f64, 8), 2.0 ** (-PIECE * i))
        for half, whole_from in ((upper, 3), (lower, 2)):
            term = b.mulf(half, piece)
            terms.append(_mod4(b, term) if i < whole_from else term)
    total, error = terms[0], b.f64(0.0)
    for term in terms[1:]:
        total, lost = two_sum(b, total, term)
        error = b.addf(error, lost)
    shifted = offset(b, total, 1.5 * 2.0**52)
    rest = b.subf(total, offset(b, shifted, -1.5 * 2.0**52))
    r = scale(b, b.addf(rest, error), HALF_PI)
    return b.trunci(b.bitcast(shifted, t.i64), t.i32), r


def _mod4(b: Builder, x: Value) -> Value:
    return b.fma(b.op("math.roundeven", scale(b, x, 0.25)), b.f64(-4.0), x)


def sin_cos(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """(quadrant, sin r, cos r) of |x|."""
    single = precision_of(b, x) is SINGLE
    quadrant, r = (reduce_single if single else reduce_double)(b, x)
    z = b.mulf(r, r)
    sine = b.fma(b.mulf(r, z), horner(b, z, SIN_SINGLE if single else SIN_DOUBLE), r)
    cosine = offset(b, b.fma(b.mulf(z, z), horner(b, z, COS_SINGLE if single else COS_DOUBLE), scale(b, z, -0.5)), 1.0)
    return quadrant, sine, cosine


def _bit(b: Builder, quadrant: Value, mask: int) -> Value:
    return b.compare_integers("ne", b.binary("andi", quadrant, mask), b.constant(0, b.types.i32))


def _odd_result(b: Builder, x: Value, value: Value) -> Value:
    """Apply the sign of x; tiny arguments are returned unchanged, and infinities give NaN."""
    signed = b.select(b.compare("olt", x, b.like(0.0, x)), b.negf(value), value)
    signed = select_if(b, "olt", b.absf(x), 2.0**-14 if precision_of(b, x) is SINGLE else 2.0**-28, x, signed)
    return _finite_only(b, x, signed)


def _finite_only(b: Builder, x: Value, value: Value) -> Value:
    return b.select(b.compare("olt", b.absf(x), b.like(float("inf"), x)), value, b.like(float("nan"), x))


def sin(b: Builder, x: Value) -> Value:
    quadrant, sine, cosine = sin_cos(b, x)
    value = b.select(_bit(b, quadrant, 1), cosine, sine)
    return _odd_result(b, x, b.select(_bit(b, quadrant, 2), b.negf(value), value))


def cos(b: Builder, x: Value) -> Value:
    quadrant, sine, cosine = sin_cos(b, x)
    value = b.select(_bit(b, quadrant, 1), sine, cosine)
    negative = _bit(b, b.binary("addi", quadrant, 1), 2)
    return _finite_only(b, x, b.select(negative, b.negf(value), value))


def tan(b: Builder, x: Value) -> Value:
    quadrant, sine, cosine = sin_cos(b, x)
    swap = _bit(b, quadrant, 1)
    value = b.divf(b.select(swap, cosine, sine), b.select(swap, b.negf(sine), cosine))
    return _odd_result(b, x, value)
