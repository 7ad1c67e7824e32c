"""exp, expm1, tanh, sinh, cosh: x = n·ln2 + r, a polynomial in r, and 2ⁿ constructed from bits."""

from __future__ import annotations

from ..core.builder import Builder, Value
from .math_support import Precision, as_integer, float_type, horner, in_pairs, offset, precision_of, scale, select_if

LOG2_E = 1.4426950408889634
LN2 = 0.6931471805599453


def reduce_exponent(b: Builder, p: Precision, x: Value, bias: int = 0) -> tuple[Value, Value]:
    """(n as an integer, r) with x = n·ln2 + r and |r| ≤ ln2/2. For NaN n is arbitrary and r NaN.

    bias: what the caller adds to n before it shifts n into an exponent. The rounded number has it in its low bits, so
    that LLVM leaves out the addition.
    """
    rounding = p.magic + bias
    shifted = b.fma(x, b.like(LOG2_E, x), b.like(rounding, x))
    n = offset(b, shifted, -rounding)
    r = b.fma(n, b.like(-p.ln2_high, x), x)
    r = b.fma(n, b.like(-p.ln2_low, x), r)
    return b.binary("subi", as_integer(b, shifted), as_integer(b, b.like(rounding, x))), r


def power_of_two(b: Builder, p: Precision, n: Value) -> Value:
    """2ⁿ for n in the range of normal exponents."""
    return b.bitcast(b.binary("shli", b.binary("addi", n, p.bias), p.mantissa), float_type(b, p))


def scaled_exp(b: Builder, x: Value, shift: int) -> Value:
    """eˣ·2^shift. The power of two is applied in two halves, so that neither overflows before the result does. The
    rounded exponent has the biases of both in its low bits.
    """
    p = precision_of(b, x)
    rounding = p.magic + 2 * p.bias
    shifted = b.fma(x, b.like(LOG2_E, x), b.like(rounding, x))
    n = offset(b, shifted, -rounding)
    r = b.fma(n, b.like(-p.ln2_low, x), b.fma(n, b.like(-p.ln2_high, x), x))
    value = horner(b, r, (1.0, 1.0, *p.exp_poly))
    both = as_integer(b, shifted)
    if shift:
        both = b.binary("addi", both, shift)
    half = b.binary("shrui", both, 1)
    first, second = (
        b.bitcast(b.binary("shli", e, p.mantissa), float_type(b, p)) for e in (half, b.binary("subi", both, half))
    )
    return b.mulf(b.mulf(value, first), second)


def exp(b: Builder, x: Value) -> Value:
    p = precision_of(b, x)
    bounded = select_if(b, "ogt", x, p.exp_overflow, p.exp_overflow, x)
    return scaled_exp(b, select_if(b, "olt", bounded, p.exp_underflow, p.exp_underflow, bounded), 0)


def expm1_core(b: Builder, x: Value) -> Value:
    """eˣ − 1 where it neither overflows nor rounds to −1. It is halved on the way: n may exceed the largest exponent by
    one.
    """
    p = precision_of(b, x)
    n, r = reduce_exponent(b, p, x, p.bias - 1)
    value = b.fma(b.mulf(r, r), horner(b, r, p.expm1_poly), r)
    half_power = power_of_two(b, p, b.binary("addi", n, -1))
    return scale(b, b.fma(half_power, value, offset(b, half_power, -0.5)), 2.0)


def expm1(b: Builder, x: Value) -> Value:
    p = precision_of(b, x)
    value = expm1_core(b, x)
    value = select_if(b, "ogt", x, p.exp_overflow, float("inf"), value)
    value = select_if(b, "olt", x, p.expm1_floor, -1.0, value)
    return b.copysign(_itself_if_tiny(b, x, value), x)


def _itself_if_tiny(b: Builder, x: Value, value: Value) -> Value:
    """x if the function equals x to the last bit, because halving the smallest normals would lose bits."""
    return select_if(b, "olt", b.absf(x), 2.0**-60, x, value)


def tanh(b: Builder, x: Value) -> Value:
    """t/(1 − t) with t = ½(1 − e^(−2|x|)), and −2|x| = n·ln2 − s. t is not negative: the sign of x is a bit to set.

    ln2 is one number: the error of s, |n|·2⁻²⁹ in f32 and |n|·2⁻⁵⁵ in f64, does not matter beside 2⁻ⁿ.
    """
    p = precision_of(b, x)
    magnitude = b.absf(x)
    bounded = select_if(b, "ogt", magnitude, p.tanh_one, p.tanh_one, magnitude)
    doubled = b.addf(bounded, bounded)
    rounding = p.magic + p.bias - 1
    shifted = b.fma(bounded, b.like(-2 * LOG2_E, x), b.like(rounding, x))
    s = b.fma(offset(b, shifted, -rounding), b.like(LN2, x), doubled)
    square = b.mulf(s, s)
    value = b.fma(square, in_pairs(b, s, square, p.decay_poly), s)
    half_power = b.bitcast(b.binary("shli", as_integer(b, shifted), p.mantissa), float_type(b, p))  # 2ⁿ⁻¹
    t = b.fma(half_power, value, b.subf(b.like(0.5, x), half_power))
    quotient = b.divf(t, b.subf(b.like(1.0, x), t))
    sign = b.binary("andi", as_integer(b, x), -1 << (p.bits - 1))
    return b.bitcast(b.binary("ori", as_integer(b, quotient), sign), float_type(b, p))


def sinh(b: Builder, x: Value) -> Value:
    """Below 1 by expm1, above by e^|x|/2, which overflows only if the result does."""
    magnitude = b.absf(x)
    half = _half_exp(b, magnitude)
    large = b.subf(half, b.divf(b.like(0.25, x), half))
    t = expm1_core(b, select_if(b, "ogt", magnitude, 1.0, 1.0, magnitude))
    small = scale(b, b.addf(t, b.divf(t, offset(b, t, 1.0))), 0.5)
    return b.copysign(_itself_if_tiny(b, x, select_if(b, "olt", magnitude, 1.0, small, large)), x)


def cosh(b: Builder, x: Value) -> Value:
    half = _half_exp(b, b.absf(x))
    return b.addf(half, b.divf(b.like(0.25, x), half))


def _half_exp(b: Builder, x: Value) -> Value:
    p = precision_of(b, x)
    return select_if(b, "ogt", x, p.exp_overflow + 1.0, float("inf"), scaled_exp(b, x, -1))
