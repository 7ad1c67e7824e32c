"""log, log1p, pow, asinh, acosh, atanh: x = 2ᵉ·m with m near 1, and a polynomial (f32) or a series in f/(2+f) (f64)."""

from __future__ import annotations

import math

from .builder import Builder, Value
from .math_support import (
    DOUBLE,
    SINGLE,
    Precision,
    as_integer,
    float_type,
    horner,
    offset,
    precision_of,
    scale,
    select_if,
    through_f64,
)

LN2 = 0.6931471805599453
SQRT_HALF_BITS = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}
# (log(1+f) − f + f²/2)/f³ on [√½ − 1, √2 − 1]; error 2^-30.3 after multiplication by f².
SINGLE_POLY = (
    0.3333331048488617,
    -0.24999986588954926,
    0.20002241432666779,
    -0.16669270396232605,
    0.1421833336353302,
    -0.12383796274662018,
    0.11875025182962418,
    -0.11794096976518631,
    0.06915707886219025,
)
# (2·atanh(s) − 2s)/s³ in s² on |s| ≤ 0.1716; error 2^-58.4 after multiplication by s².
DOUBLE_POLY = (
    0.666666666666674,
    0.3999999999937799,
    0.2857142875130137,
    0.22222197587465328,
    0.1818361898475558,
    0.15312569889625016,
    0.14811540879513124,
)

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


def split(b: Builder, p: Precision, x: Value) -> tuple[Value, Value]:
    """(e as a float, f) with x = 2ᵉ·(1+f), √½ ≤ 1+f < √2. x must be positive and normal."""
    bits = as_integer(b, x)
    exponent = b.binary("shrsi", b.binary("subi", bits, SQRT_HALF_BITS[p.bits]), p.mantissa)
    fraction = b.bitcast(b.binary("subi", bits, b.binary("shli", exponent, p.mantissa)), float_type(b, p))
    narrow = exponent if p is SINGLE else b.trunci(exponent, b.types.i32)
    return b.op("arith.sitofp", narrow, type=float_type(b, p)), offset(b, fraction, -1.0)


def assemble(b: Builder, p: Precision, e: Value, f: Value, correction: Value | None) -> Value:
    """e·ln2 + log(1+f) + correction; small terms are added first."""
    square = b.mulf(f, f)
    low = scale(b, e, p.ln2_low)
    if correction is not None:
        low = b.addf(low, correction)
    if p is SINGLE:
        tail = b.fma(b.mulf(square, f), horner(b, f, SINGLE_POLY), low)
        tail = b.fma(square, b.like(-0.5, f), tail)
        return b.fma(e, b.like(p.ln2_high, e), b.addf(f, tail))
    half_square = scale(b, square, 0.5)
    s = b.divf(f, offset(b, f, 2.0))
    z = b.mulf(s, s)
    series = b.mulf(z, horner(b, z, DOUBLE_POLY))
    tail = b.fma(s, b.addf(half_square, series), low)
    return b.fma(e, b.like(p.ln2_high, e), b.subf(f, b.subf(half_square, tail)))


def log(b: Builder, x: Value) -> Value:
    """Natural logarithm. Subnormals count as zero, as in XLA:CPU, except in strict mode."""
    p = precision_of(b, x)
    if b.strict:
        lift = 2.0 ** (p.mantissa + 2)
        tiny = b.compare("olt", b.absf(x), b.like(p.least_normal, x))
        lifted = b.select(tiny, scale(b, x, lift), x)
        e, f = split(b, p, lifted)
        e = b.select(tiny, offset(b, e, -(p.mantissa + 2.0)), e)
        zero = b.compare("oeq", x, b.like(0.0, x))
        negative = b.compare("olt", x, b.like(0.0, x))
    else:
        e, f = split(b, p, x)
        zero = b.compare("olt", x, b.like(p.least_normal, x))
        negative = b.compare("ole", x, b.like(-p.least_normal, x))
    value = assemble(b, p, e, f, None)
    value = b.select(zero, b.like(float("-inf"), x), value)
    value = b.select(negative, b.like(float("nan"), x), value)
    finite = b.compare("olt", x, b.like(float("inf"), x))
    # NaN and infinity are returned unchanged.
    return b.select(finite, value, x)


def log1p(b: Builder, x: Value) -> Value:
    p = precision_of(b, x)
    u = offset(b, x, 1.0)
    e, f = split(b, p, u)
    lost = b.select(
        b.compare("ogt", e, b.like(0.0, e)), b.subf(b.like(1.0, x), b.subf(u, x)), b.subf(x, offset(b, u, -1.0))
    )
    value = assemble(b, p, e, f, b.divf(lost, u))
    value = select_if(b, "oeq", x, -1.0, float("-inf"), value)
    value = select_if(b, "olt", x, -1.0, float("nan"), value)
    value = select_if(b, "olt", b.absf(x), p.least_normal, x, value)
    return b.select(b.compare("olt", x, b.like(float("inf"), x)), value, x)


LOG1P_P = (
    20.039553499201281, 57.112963590585539, 60.949667980987788, 29.911919328553074, 6.5787325942061045,
    0.49854102823193376, 4.5270000862445200e-5,
)  # fmt: skip
LOG1P_Q = (
    60.118660497603844, 216.42788614495948, 309.09872225312060, 221.76239823732857, 83.047565967967210,
    15.062909083469192, 1.0,
)  # fmt: skip
"""From Cephes's log1p.c: log(1 + x) = x − x²/2 + x³ P(x)/Q(x)."""


def log1p_as_xla(b: Builder, x: Value) -> Value:
    """The f64 function of XLA:CPU: Cephes's form for |x| < √2 − 1, otherwise log(1 + x).

    Between −0.414 and −0.29, outside the form's interval, the error reaches 120 ulp. It is kept for equality with XLA.
    """
    squared = b.mulf(x, x)
    quotient = b.divf(horner(b, x, LOG1P_P), horner(b, x, LOG1P_Q))
    inside = b.addf(b.subf(x, scale(b, squared, 0.5)), b.mulf(b.mulf(x, squared), quotient))
    value = select_if(b, "olt", b.absf(x), math.sqrt(2.0) - 1.0, inside, log(b, offset(b, x, 1.0)))
    return select_if(b, "olt", b.absf(x), precision_of(b, x).least_normal, x, value)


def pow_f32(b: Builder, x: Value, y: Value) -> Value:
    """2^(y·log2|x|) in f64, then C's rules for signs, zeros, infinities and NaN, in f32."""
    one, zero, infinity = b.f32(1.0), b.f32(0.0), b.f32(float("inf"))
    magnitude = b.absf(x)
    value = b.truncate(_power_of_two(b, b.mulf(b.extend(y), _log2(b, magnitude))), b.types.f32)
    floor = b.op("math.floor", y)
    fractional = b.compare("une", floor, y)
    half = scale(b, y, 0.5)
    is_odd = b.compare("une", b.op("math.floor", half), half)
    odd_sign = b.select(b.binary("andi", is_odd, b.compare("oeq", floor, y)), x, one)
    value = b.copysign(value, odd_sign)
    below = b.binary("andi", b.compare("olt", x, zero), b.compare("ogt", x, b.f32(float("-inf"))))
    none = b.binary("ori", b.binary("andi", below, fractional), _no_power(b, x, y))
    unit = b.binary("andi", b.compare("oeq", magnitude, one), b.compare("oeq", b.absf(y), infinity))
    always = b.binary("ori", b.compare("oeq", x, one), b.compare("oeq", y, zero))
    value = b.select(b.binary("ori", unit, always), one, value)
    return b.select(none, b.f32(float("nan")), value)


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
    """The C library's pow: a correct power needs more precision than f64. Subnormals count as zero unless strict.

    Where there is no power, the exponent is NaN instead of the result: nothing needs to be kept during the call.
    """
    if not b.strict:
        y = b.select(_no_power(b, x, y), b.f64(float("nan")), _flushed(b, y))
        x = _flushed(b, x)
    return b.call(b.external("pow", [x.type, y.type], x.type, pure=True), x.type, [x, y])


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


@through_f64
def asinh(b: Builder, x: Value) -> Value:
    """log1p(a + a²/(1 + √(a²+1))); log a + ln2 if a² is too large."""
    a = b.absf(x)
    huge = b.compare("ogt", a, b.like(2.0**40, a))
    bounded = b.select(huge, b.like(1.0, a), a)
    square = b.mulf(bounded, bounded)
    root = b.op("math.sqrt", offset(b, square, 1.0))
    small = log1p(b, b.addf(bounded, b.divf(square, offset(b, root, 1.0))))
    large = offset(b, log(b, a), LN2)
    return b.copysign(b.select(huge, large, small), x)


@through_f64
def acosh(b: Builder, x: Value) -> Value:
    """log1p(t + √(2t + t²)) with t = x − 1; NaN below 1."""
    huge = b.compare("ogt", x, b.like(2.0**40, x))
    t = offset(b, b.select(huge, b.like(2.0, x), x), -1.0)
    root = b.op("math.sqrt", b.fma(t, t, scale(b, t, 2.0)))
    small = select_if(b, "olt", t, 0.0, float("nan"), log1p(b, b.addf(t, root)))
    return b.select(huge, offset(b, log(b, x), LN2), small)


@through_f64
def atanh(b: Builder, x: Value) -> Value:
    """log1p(2a/(1 − a))/2."""
    a = b.absf(x)
    value = scale(b, log1p(b, b.divf(scale(b, a, 2.0), b.subf(b.like(1.0, a), a))), 0.5)
    return b.copysign(select_if(b, "ogt", a, 1.0, float("nan"), value), x)
