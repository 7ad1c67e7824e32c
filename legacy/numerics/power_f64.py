"""x^y of doubles on targets with FMA: the logarithm and its product with y are sums of two doubles, so that the power
has an error of 0.58 ulp. Nothing here may be contracted but what is written as a fused operation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from ..core.registers import V
from .real import Real

Pair: TypeAlias = tuple[V, V]

LOG2_E = 1.4426950408889634
LN2_HIGH, LN2_LOW = 0.693147180559663, 2.8235290563031577e-13
"""ln2 in two parts; the first has 12 trailing zero bits, so that its product with an exponent is exact."""

TWO_THIRDS = 0.6666666666666666, 3.700743415417188e-17
TWO_FIFTHS = 0.4, -2.2204460492503132e-17
ATANH = (
    0.2857142857142857, 0.22222222222222948, 0.18181818181300669, 0.15384615524948372, 0.13333314672574045,
    0.11766050284922107, 0.10472895414354771, 0.10617144341172342,
)  # fmt: skip
"""2·atanh(s) = 2s + s³·(2/3 + s²·(2/5 + s²·ATANH(s²))) for |s| ≤ (√2 - 1)/(√2 + 1); relative error 2^-72."""

EXP = (
    0.1666666666666667, 0.04166666666666667, 0.008333333333326136, 0.0013888888888883748, 0.00019841269874820627,
    2.4801587325547743e-05, 2.7557255400206422e-06, 2.75572736431103e-07, 2.5105217004720745e-08,
    2.0914686968086876e-09,
)  # fmt: skip
"""e^t = 1 + t + t²/2 + t³·EXP(t) for |t| ≤ ln2/2; error 2^-61."""

FAR = 800.0
"""e^FAR and e^-FAR are beyond all doubles."""


class Power:
    """The steps of one power. Values are doubles; a pair is an unrounded sum, its larger part first."""

    def __init__(self, r: Real):
        self.r, self.b = r, r.code.b

    def of(self, x: V, y: V) -> V:
        """|x|^y, where x is normal, zero, infinite or NaN."""
        r, b = self.r, self.b
        a = r.abs(x)
        high, low = self.log(a)
        high = r.select(r.eq(a, 0.0), r.c(-math.inf), high)
        high = r.select(r.lt(a, math.inf), high, a)  # the logarithm of an infinity or a NaN is itself
        product = b.fmul(y, high)
        error = r.fma(y, low, r.fma(y, high, b.fneg(product)))
        error = r.select(r.lt(r.abs(product), FAR), error, r.c(0.0))
        return self.exp(r.clip(product, -FAR, FAR), error)

    def log(self, a: V) -> Pair:
        """log(2^n · m) = n·ln2 + 2·atanh((m - 1)/(m + 1)) with m from √½ to √2."""
        r, b = self.r, self.b
        shifted = b.add(r.to_bits(a), r.i(0x3FF0000000000000 - 0x3FE6A09E667F3BCD))
        fraction = b.and_(shifted, r.i((1 << 52) - 1))
        m = r.from_bits(b.add(fraction, r.i(0x3FE6A09E667F3BCD)))
        biased = r.from_bits(b.or_(b.lshr(shifted, r.i(52)), r.i(0x4330000000000000)))  # 2^52 + n + 1023
        n = b.fsub(biased, r.c(2.0**52 + 1023))
        high, low = self.logarithm_near_one(m)
        whole = b.fmul(n, r.c(LN2_HIGH))
        return self.sum(whole, high, r.fma(n, r.c(LN2_LOW), low))

    def logarithm_near_one(self, m: V) -> Pair:
        r, b = self.r, self.b
        one, two = r.c(1.0), r.c(2.0)
        numerator, denominator = b.fsub(m, one), b.fadd(m, one)
        lost = b.fsub(m, b.fsub(denominator, one))
        inverse = b.fdiv(one, denominator)
        s = b.fmul(numerator, inverse)
        rest = r.fma(b.fneg(s), lost, r.fma(b.fneg(s), denominator, numerator))
        s_low = b.fmul(rest, inverse)
        square = self.product((s, s_low), (s, s_low))
        tail = b.fmul(square[0], self.poly(square[0], ATANH))
        tail = self.product(square, self.sum(r.c(TWO_FIFTHS[0]), tail, r.c(TWO_FIFTHS[1])))
        factor = self.sum(r.c(TWO_THIRDS[0]), tail[0], b.fadd(tail[1], r.c(TWO_THIRDS[1])))
        high, low = self.product(self.product((s, s_low), square), factor)
        return self.sum(b.fmul(s, two), high, r.fma(s_low, two, low))

    def exp(self, x: V, low: V) -> V:
        """e^(x + low) for |x| ≤ FAR; n is rounded with the biases of two powers in its low bits."""
        r, b = self.r, self.b
        rounding = r.c(1.5 * 2.0**r.mantissa + 2 * r.bias)
        shifted = r.fma(x, r.c(LOG2_E), rounding)
        n = b.fneg(b.fsub(shifted, rounding))
        exact = r.fma(n, r.c(LN2_HIGH), x)
        low = r.fma(n, r.c(LN2_LOW), low)
        t = b.fadd(exact, low)
        low = b.fadd(b.fsub(exact, t), low)
        halved = b.fmul(t, r.c(0.5))
        square = b.fmul(halved, t)
        lost = r.fma(halved, t, b.fneg(square))
        tail = r.fma(b.fmul(t, b.fmul(t, t)), self.poly(t, EXP), b.fadd(lost, low))
        high, low = self.sum(r.c(1.0), t, tail)
        high, low = self.sum(high, square, low)
        both = r.to_bits(shifted)
        half = b.lshr(both, r.i(1))
        first, second = (r.from_bits(b.shl(e, r.i(r.mantissa))) for e in (half, b.sub(both, half)))
        return b.fmul(b.fmul(b.fadd(high, low), first), second)

    def sum(self, x: V, y: V, low: V) -> Pair:
        """x + y + low, where |x| ≥ |y| or x = 0."""
        b = self.b
        high = b.fadd(x, y)
        return high, b.fadd(b.fsub(y, b.fsub(high, x)), low)

    def product(self, x: Pair, y: Pair) -> Pair:
        r, b = self.r, self.b
        high = b.fmul(x[0], y[0])
        low = r.fma(x[0], y[0], b.fneg(high))
        return high, r.fma(x[0], y[1], r.fma(x[1], y[0], low))

    def poly(self, x: V, coefficients: Sequence[float]) -> V:
        r = self.r
        total = r.c(coefficients[-1])
        for c in coefficients[-2::-1]:
            total = r.fma(total, x, r.c(c))
        return total


def power(r: Real, x: V, y: V) -> V:
    """pow of IEEE 754. Subnormal operands count as zeros, but a subnormal y is no integer."""
    b = r.code.b
    magnitude = Power(r).of(r.select(r.lt(r.abs(x), r.tiny), r.c(0.0), x), y)
    half = r.mul(y, r.c(0.5))
    is_integer = r.compare("==", r.call("floor", y), y)
    is_odd = r.both(is_integer, b.fcmp_ordered("!=", r.call("floor", half), half))
    result = r.select(is_odd, r.copysign(magnitude, x), magnitude)
    one = r.either(r.eq(x, 1.0), r.both(r.eq(x, -1.0), r.is_infinite(y)))
    result = r.select(r.either(r.lt(r.abs(y), r.tiny), one), r.c(1.0), result)
    below = r.both(r.compare("<=", x, r.c(-r.tiny)), r.gt(x, -math.inf))
    exponent = b.and_(r.to_bits(y), r.i((1 << 63) - 1))
    subnormal = b.icmp_unsigned("<", b.sub(exponent, r.i(1)), r.i((1 << 52) - 1))
    # negative, but not -0 and not NaN
    negative = b.icmp_unsigned("<", b.sub(r.to_bits(x), r.i((1 << 63) + 1)), r.i(0x7FF << 52))
    none = r.either(r.both(subnormal, negative), r.both(below, r.negated(is_integer)))
    return r.select(none, r.c(math.nan), result)
