"""pow: 2^(y·log2|x|) in f64 for f32; for f64 a table and sums of two numbers. Then C's rules, which both share."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache
from typing import TypeAlias

import numpy as np

from ..core.builder import Builder, Value
from .math_log import split
from .math_support import DOUBLE, SINGLE, as_integer, horner, offset, precision_of, scale, select_if

Pair: TypeAlias = tuple[Value, Value]

# log2(1+f)/f on [√½ − 1, √2 − 1] (error 2^-38.5), and (2ˣ − 1)/x on ±½ (2^-28.9 in 2ˣ), in f64 for f32.
LOG2_POLY = (
    1.4426950408865638,
    -0.721347520327053,
    0.48089834880972665,
    -0.36067379325593907,
    0.28853879508279134,
    -0.2404464255154535,
    0.20610714100545663,
    -0.18043697775137787,
    0.1602165670062645,
    -0.14249581356756086,
    0.13027369833116328,
    -0.13464206015603222,
    0.13253029083634119,
    -0.06974002264383486,
)
EXP2_POLY = (
    0.693147202928338,
    0.2402264790478558,
    0.05550332297407153,
    0.009618437971257245,
    0.0013398947212980936,
    0.00015353332176936798,
)

LEAST = 0x3FE6900000000000
"""The bits of the least fraction. The fractions up to twice of it have ROWS intervals; one is in the middle of one."""

ROW_BITS, ROWS = 7, 128
ROW_SHIFT = DOUBLE.mantissa - ROW_BITS
UNIT = 2.0**-42
"""What the larger parts of logarithms are multiples of, so that a multiple of LN2_HIGH and one of them add exactly."""

LN2_HIGH, LN2_LOW = 0.6931471805598903, 5.497923018708371e-14
# (log(1+r) − r + r²/2)/r³ on ±0.0052 (error 2^-70.7 after multiplication by r²), and (eˢ − 1 − s − s²/2)/s³ on ±ln2/2
# (2^-59.8 in eˢ).
LOG_POLY = (
    0.3333333333333333,
    -0.2500000000000002,
    0.2000000000000002,
    -0.1666666666026877,
    0.14285714279898012,
    -0.12500473213328805,
    0.1111154130523281,
)
EXP_POLY = (
    0.16666666666666669,
    0.041666666666666664,
    0.008333333333330062,
    0.0013888888888886552,
    0.00019841269863053618,
    2.4801587317144498e-05,
    2.7557268459997064e-06,
    2.755728296954995e-07,
    2.510038549551032e-08,
    2.0911236630261545e-09,
)


@cache
def reciprocals() -> np.ndarray:
    """[row, 4]: 1/c of ten bits for a number c in the row's interval, and log(c) in two parts."""
    bits = LEAST + (2 * np.arange(ROWS, dtype=np.int64) + 1 << ROW_SHIFT - 1)
    rows = np.zeros((ROWS, 4))
    with localcontext() as context:
        context.prec = 60
        for row, centre in zip(rows, bits.view(np.float64), strict=True):
            inverse = round(512 / centre) / 512
            logarithm = -Decimal(inverse).ln()
            high = round(logarithm / Decimal(UNIT)) * UNIT
            row[:3] = inverse, high, float(logarithm - Decimal(high))
    return rows.reshape(-1)


def pow_f32(b: Builder, x: Value, y: Value) -> Value:
    product = b.mulf(b.extend(y), _log2(b, b.absf(x)))
    return _with_rules(b, x, y, b.truncate(_power_of_two(b, product), b.types.f32))


def _with_rules(b: Builder, x: Value, y: Value, value: Value) -> Value:
    """x^y from |x|^y by C's rules for signs, ones, infinities and NaN. A subnormal y is no integer."""
    one, zero, infinity = b.like(1.0, x), b.like(0.0, x), b.like(float("inf"), x)
    magnitude = b.absf(x)
    floor = b.op("math.floor", y)
    fractional = b.compare("une", floor, y)
    half = scale(b, y, 0.5)
    is_odd = b.compare("une", b.op("math.floor", half), half)
    odd_sign = b.select(b.binary("andi", is_odd, b.compare("oeq", floor, y)), x, one)
    value = b.copysign(value, odd_sign)
    least = b.like(-precision_of(b, x).least_normal, x)
    negative = b.compare("olt", x, zero) if b.strict else b.compare("ole", x, least)
    below = b.binary("andi", negative, b.compare("ogt", x, b.like(float("-inf"), x)))
    none = b.binary("ori", b.binary("andi", below, fractional), _no_power(b, x, y))
    unit = b.binary("andi", b.compare("oeq", magnitude, one), b.compare("oeq", b.absf(y), infinity))
    always = b.binary("ori", b.compare("oeq", x, one), b.compare("oeq", y, zero))
    value = b.select(b.binary("ori", unit, always), one, value)
    return b.select(none, b.like(float("nan"), x), value)


def _log2(b: Builder, x: Value) -> Value:
    """log2 x in f64, for x ≥ 0 of f32 or NaN. Subnormals count as zero unless strict."""
    wide = b.extend(x)
    if b.strict:
        e, f = split(b, DOUBLE, wide)
        zero = b.compare("oeq", x, b.f32(0.0))
        e = b.select(zero, b.f64(float("-inf")), e)
        e = b.select(b.compare("olt", x, b.f32(float("inf"))), e, wide)
    else:
        exponent, fraction = split(b, SINGLE, x)
        exponent = select_if(b, "olt", x, SINGLE.least_normal, float("-inf"), exponent)
        e, f = b.extend(b.select(b.compare("olt", x, b.f32(float("inf"))), exponent, x)), b.extend(fraction)
    return b.fma(f, horner(b, f, LOG2_POLY), e)


def _power_of_two(b: Builder, x: Value) -> Value:
    """2ˣ in f64 to 29 bits, limited to what exceeds every number of f32."""
    bounded = select_if(b, "ogt", x, 300.0, 300.0, select_if(b, "olt", x, -300.0, -300.0, x))
    rounding = DOUBLE.magic + DOUBLE.bias  # the exponent in the low bits
    shifted = offset(b, bounded, rounding)
    part = b.subf(bounded, offset(b, shifted, -rounding))
    power = b.bitcast(b.binary("shli", as_integer(b, shifted), DOUBLE.mantissa), b.types.f64)
    return b.fma(b.mulf(power, part), horner(b, part, EXP2_POLY), power)


def pow_f64(b: Builder, x: Value, y: Value) -> Value:
    """|x|^y with an error of 0.6 ulp, and C's rules. Subnormals count as zero.

    It is the C library's where they do not, and where a fused operation is none: those are not vectors.
    """
    if b.strict or not b.fma_hardware:
        if not b.strict:
            y = b.select(_no_power(b, x, y), b.f64(float("nan")), _flushed(b, y))  # so that nothing outlives the call
            x = _flushed(b, x)
        return b.call(b.external("pow", [x.type, y.type], x.type, pure=True), x.type, [x, y])
    magnitude = b.absf(x)
    high, low = _log_pair(b, magnitude)
    high = select_if(b, "olt", magnitude, DOUBLE.least_normal, float("-inf"), high)
    high = b.select(b.compare("olt", magnitude, b.f64(float("inf"))), high, magnitude)
    product = b.mulf(y, high)
    error = b.fma(y, high, b.negf(product))
    error = b.fma(y, low, error)
    error = select_if(b, "olt", b.absf(product), 800.0, error, b.f64(0.0))
    bounded = select_if(b, "ogt", product, 800.0, 800.0, select_if(b, "olt", product, -800.0, -800.0, product))
    return _with_rules(b, x, y, _exp_pair(b, bounded, error))


def _log_pair(b: Builder, x: Value) -> Pair:
    """log x = n·ln2 + log c + log(1 + r) with x = 2ⁿ·m and r = m/c − 1, which is a sum of two numbers."""
    t = b.types
    shifted = b.binary("addi", as_integer(b, x), 0x3FF0000000000000 - LEAST)
    fraction = b.binary("andi", shifted, (1 << DOUBLE.mantissa) - 1)
    m = b.bitcast(b.binary("addi", fraction, LEAST), t.f64)
    exponent = b.binary("ori", b.binary("shrui", shifted, DOUBLE.mantissa), 0x4330000000000000)
    n = offset(b, b.bitcast(exponent, t.f64), -(2.0**52 + 1023))
    table, row = b.table("reciprocals_f64", reciprocals()), b.binary("shli", b.binary("shrui", fraction, ROW_SHIFT), 2)
    inverse, log_high, log_low = (
        b.load(b.pointer(table, b.binary("ori", row, k) if k else row, t.f64), t.f64, 8) for k in range(3)
    )
    scaled = b.mulf(m, inverse)
    rest = b.fma(m, inverse, b.negf(scaled))
    r = offset(b, scaled, -1.0)
    whole = b.fma(n, b.f64(LN2_HIGH), log_high)
    low = b.addf(b.fma(n, b.f64(LN2_LOW), log_low), rest)
    high, low = _sum(b, whole, r, low)
    half = scale(b, r, -0.5)
    square = b.mulf(half, r)
    lost = b.fma(half, r, b.negf(square))
    lost = b.fma(b.fma(r, r, b.negf(r)), rest, lost)  # rest/(1 + r) − rest
    cube = b.fma(b.mulf(b.mulf(r, r), r), horner(b, r, LOG_POLY), lost)
    return _sum(b, high, square, b.addf(low, cube))


def _exp_pair(b: Builder, x: Value, low: Value) -> Value:
    """e^(x + low) for |x| ≤ 800. The power of two is applied in two halves, as in `scaled_exp`."""
    rounding = DOUBLE.magic + 2 * DOUBLE.bias
    shifted = b.fma(x, b.f64(1.4426950408889634), b.f64(rounding))
    n = offset(b, shifted, -rounding)
    exact = b.fma(n, b.f64(-LN2_HIGH), x)
    low = b.fma(n, b.f64(-LN2_LOW), low)
    s = b.addf(exact, low)
    low = b.addf(b.subf(exact, s), low)
    square = b.mulf(s, s)
    lost = scale(b, b.fma(s, s, b.negf(square)), 0.5)
    tail = b.fma(b.mulf(square, s), horner(b, s, EXP_POLY), b.addf(lost, low))
    high, tail = _sum(b, b.f64(1.0), s, tail)
    high, tail = _sum(b, high, scale(b, square, 0.5), tail)
    both = as_integer(b, shifted)
    half = b.binary("shrui", both, 1)
    first, second = (
        b.bitcast(b.binary("shli", e, DOUBLE.mantissa), b.types.f64) for e in (half, b.binary("subi", both, half))
    )
    return b.mulf(b.mulf(b.addf(high, tail), first), second)


def _sum(b: Builder, x: Value, y: Value, low: Value) -> Pair:
    """x + y + low as two numbers, where |x| ≥ |y| or x is zero."""
    high = b.addf(x, y)
    return high, b.addf(b.subf(y, b.subf(high, x)), low)


def _flushed(b: Builder, x: Value) -> Value:
    return select_if(b, "olt", b.absf(x), precision_of(b, x).least_normal, b.copysign(b.like(0.0, x), x), x)


def _no_power(b: Builder, x: Value, y: Value) -> Value:
    """Whether the base is negative and the exponent subnormal. It may count as zero, but is no integer."""
    p = precision_of(b, x)
    sign = 1 << (p.bits - 1)
    base, exponent = as_integer(b, x), b.binary("andi", as_integer(b, y), sign - 1)
    infinity = (2 * p.bias + 1) << p.mantissa
    beyond = b.binary("subi", base, sign + 1)  # of the negative numbers from the least one to the infinity
    negative = b.compare_integers("ult", beyond, b.like(infinity, base))
    subnormal = b.compare_integers("ult", b.binary("subi", exponent, 1), b.like((1 << p.mantissa) - 1, exponent))
    return b.binary("andi", negative, subnormal)
