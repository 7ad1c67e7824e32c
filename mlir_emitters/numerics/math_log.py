"""log, log1p, asinh, acosh, atanh: x = 2ᵉ·m with m near 1, and a polynomial (f32) or a series in f/(2+f) (f64)."""

from __future__ import annotations

import math

from ..core.builder import Builder, Value
from .math_support import (
    SINGLE,
    Precision,
    as_integer,
    float_type,
    horner,
    in_pairs,
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
        tail = b.fma(b.mulf(square, f), in_pairs(b, f, square, SINGLE_POLY), low)
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
