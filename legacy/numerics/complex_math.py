"""Complex arithmetic on pairs (re, im), by XLA:CPU's expansions, which determine overflow, NaN and infinity.

Functions take a Real and pairs. If XLA's formula is almost exact, c64 is evaluated in doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import TypeAlias

from ..core.registers import Register, V
from . import angles_f64, math_f32, math_f64
from .real import Real

Pair: TypeAlias = tuple[V, V]


def lib(r: Real) -> ModuleType:
    """The module with the elementary functions of this width."""
    return math_f64 if r.bits == 64 else math_f32


def in_double(function: Callable[..., Pair]) -> Callable[..., Pair]:
    """For c64, evaluate the function in doubles and round. Doubles avoid cancellation and overflow of intermediates."""

    def emit(r: Real, *pairs: Pair) -> Pair:
        if r.bits == 64:
            return function(r, *pairs)
        d = Real(r.code, 64)
        re, im = function(d, *((r.wider(a), r.wider(b)) for a, b in pairs))
        return r.code.b.fptrunc(re, r.type), r.code.b.fptrunc(im, r.type)

    emit.__doc__ = function.__doc__
    return emit


def _in_double(r: Real, function: Callable[[Real, Pair], V], x: Pair) -> V:
    """As `in_double`, for a function with a real result."""
    return function(r, x) if r.bits == 64 else r.in_double(lambda d, re, im: function(d, (re, im)), *x)


def precise(r: Real, name: str, *arguments: V) -> V:
    """An (almost always) correctly rounded function: floats are evaluated in doubles, doubles by libm."""
    return r.libm(name, *arguments) if r.bits == 64 else r.in_double(getattr(math_f64, name), *arguments)


def pair(value: Register) -> Pair:
    """The registers (re, im) of a complex value."""
    re, im = value
    return re, im


def choose(r: Real, condition: V, a: Pair, b: Pair) -> Pair:
    return r.select(condition, a[0], b[0]), r.select(condition, a[1], b[1])


def add(r: Real, x: Pair, y: Pair) -> Pair:
    return r.add(x[0], y[0]), r.add(x[1], y[1])


def subtract(r: Real, x: Pair, y: Pair) -> Pair:
    return r.sub(x[0], y[0]), r.sub(x[1], y[1])


def negate(r: Real, x: Pair) -> Pair:
    return r.neg(x[0]), r.neg(x[1])


def multiply(r: Real, x: Pair, y: Pair) -> Pair:
    """(a·c - b·d, b·c + a·d). The product with c is fused, as in XLA, because that determines what overflows."""
    (a, b), (c, d) = x, y
    return r.fused(a, c, r.neg(r.mul(b, d))), r.fused(b, c, r.mul(a, d))


def multiply_for_sum(r: Real, x: Pair, y: Pair) -> Pair:
    """As `multiply`, for one of many terms of a sum: fused only where the target has an instruction for it."""
    (a, b), (c, d) = x, y
    return r.fused_if_fast(a, c, r.neg(r.mul(b, d))), r.fused_if_fast(b, c, r.mul(a, d))


def divide(r: Real, x: Pair, y: Pair) -> Pair:
    """Smith's algorithm: divide by the larger part of the divisor first. Annex G rules apply if both parts are NaN."""
    (a, b), (c, d) = x, y
    steep = r.compare("<", r.abs(c), r.abs(d))
    large, small = r.select(steep, d, c), r.select(steep, c, d)
    ratio = r.div(small, large)
    denominator = r.fused(ratio, small, large)
    p, q = r.select(steep, b, a), r.select(steep, a, b)
    re = r.div(r.fused(q, ratio, p), denominator)
    minus_a = r.neg(a)  # b·ratio - a or b - a·ratio: any other order gives zeros of another sign
    im = r.div(r.fused(r.select(steep, b, minus_a), ratio, r.select(steep, minus_a, b)), denominator)
    return _divide_corners(r, x, y, (re, im))


def _divide_corners(r: Real, x: Pair, y: Pair, quotient: Pair) -> Pair:
    """Annex G recovery when both parts are NaN: x/0 and ∞/finite are infinite, finite/∞ is zero.

    Later cases override earlier ones.
    """
    (a, b), (c, d) = x, y
    lost = r.both(r.is_nan(quotient[0]), r.is_nan(quotient[1]))
    infinity, zero = r.c(math.inf), r.c(0.0)
    p, q = _unit(r, c), _unit(r, d)
    gone = (r.mul(zero, r.mad(a, p, r.mul(b, q))), r.mul(zero, r.sub(r.mul(b, p), r.mul(a, q))))
    result = choose(r, r.both(_all_finite(r, x), _any_infinite(r, y)), gone, quotient)
    p, q = _unit(r, a), _unit(r, b)
    grown = (r.mul(infinity, r.mad(p, c, r.mul(q, d))), r.mul(infinity, r.sub(r.mul(q, c), r.mul(p, d))))
    result = choose(r, r.both(_any_infinite(r, x), _all_finite(r, y)), grown, result)
    by_zero = r.both(r.both(r.eq(c, 0.0), r.eq(d, 0.0)), r.negated(r.both(r.is_nan(a), r.is_nan(b))))
    signed = r.copysign(infinity, c)
    result = choose(r, by_zero, (r.mul(signed, a), r.mul(signed, b)), result)
    return choose(r, lost, result, quotient)


def _any_infinite(r: Real, x: Pair) -> V:
    return r.either(r.is_infinite(x[0]), r.is_infinite(x[1]))


def _all_finite(r: Real, x: Pair) -> V:
    return r.both(r.lt(r.abs(x[0]), math.inf), r.lt(r.abs(x[1]), math.inf))


def _unit(r: Real, a: V) -> V:
    """±1 for an infinity, ±0 for other numbers."""
    return r.copysign(r.select(r.is_infinite(a), r.c(1.0), r.c(0.0)), a)


def any_nan(r: Real, x: Pair) -> V:
    return r.code.b.fcmp_unordered("uno", x[0], x[1])


def compare(r: Real, operator: str, x: Pair, y: Pair) -> V:
    """Equality of both parts, or the lexicographic order: by the real parts, and where they are equal by the others."""
    b = r.code.b
    if operator == "!=":
        return b.or_(b.fcmp_unordered("!=", x[0], y[0]), b.fcmp_unordered("!=", x[1], y[1]))
    tied = b.and_(b.fcmp_ordered("==", x[0], y[0]), b.fcmp_ordered(operator, x[1], y[1]))
    return tied if operator == "==" else b.or_(b.fcmp_ordered(operator[0], x[0], y[0]), tied)


def maximum(r: Real, x: Pair, y: Pair) -> Pair:
    """x if x >= y, otherwise y: also where they are unordered."""
    return choose(r, compare(r, ">=", x, y), x, y)


def minimum(r: Real, x: Pair, y: Pair) -> Pair:
    """x if x <= y, otherwise y: also where they are unordered."""
    return choose(r, compare(r, "<=", x, y), x, y)


def clamp(r: Real, low: Pair, x: Pair, high: Pair) -> Pair:
    return minimum(r, maximum(r, low, x), high)


def _sorted(r: Real, x: Pair) -> Pair:
    """(larger, smaller) of |re| and |im|."""
    a, b = r.abs(x[0]), r.abs(x[1])
    a_larger = r.compare(">", a, b)
    return r.select(a_larger, a, b), r.select(a_larger, b, a)


def absolute(r: Real, x: Pair) -> V:
    """|x| = max·sqrt(1 + (min / max)²). Infinite if a part is infinite, otherwise NaN if a part is NaN."""
    large, small = _sorted(r, x)
    ratio = r.div(small, large)
    length = r.mul(large, r.sqrt(r.mad(ratio, ratio, r.c(1.0))))
    length = r.select(r.eq(large, 0.0), large, length)
    length = r.select(_any_infinite(r, x), r.c(math.inf), length)
    return r.select(any_nan(r, x), r.c(math.nan), length)


def _log_absolute(r: Real, x: Pair) -> V:
    large, small = _sorted(r, x)
    near_one = r.both(r.gt(large, 0.5), r.lt(large, 2.0))
    ratio = r.div(small, large)
    far = r.mul(ratio, ratio)
    close = r.mad(small, small, r.mul(r.sub(large, r.c(1.0)), r.add(large, r.c(1.0))))
    half_log1p = r.mul(r.c(0.5), math_f64.log1p(r, r.select(near_one, close, far)))
    base = math_f64.log(r, r.select(near_one, r.c(1.0), large))
    total = r.select(r.eq(large, 0.0), base, r.add(base, half_log1p))
    total = r.select(_any_infinite(r, x), r.c(math.inf), total)
    return r.select(any_nan(r, x), r.c(math.nan), total)


def _angle(r: Real, x: Pair) -> V:
    """The angle of x. For doubles it is libm's, as in XLA:CPU: the sign of a flushed imaginary part determines its
    sign.
    """
    return precise(r, "atan2", x[1], x[0])


def log(r: Real, x: Pair) -> Pair:
    return _in_double(r, _log_absolute, x), _angle(r, x)


def log1p(r: Real, x: Pair) -> Pair:
    """log(1 + z). The real part is -inf if (a + 1)² + b² underflows."""
    near_minus_one = (r.add(x[0], r.c(1.0)), x[1])
    square = r.fma(near_minus_one[0], near_minus_one[0], r.mul(x[1], x[1]))
    re = r.select(r.eq(square, 0.0), r.c(-math.inf), _in_double(r, _half_log1p, x))
    return re, _angle(r, near_minus_one)


def _half_log1p(r: Real, x: Pair) -> V:
    a, b = x
    small = r.both(r.lt(r.abs(a), 0.5), r.lt(r.abs(b), 0.5))
    near = r.mul(r.c(0.5), math_f64.log1p(r, r.select(small, _norm_less_one(r, x), r.c(0.0))))
    return r.select(small, near, _log_absolute(r, (r.add(a, r.c(1.0)), b)))


def _norm_less_one(r: Real, x: Pair) -> V:
    """|1 + z|² - 1 = 2a + a² + b², including the rounding errors of the terms."""
    a, b = x
    a2, b2 = r.product(a, a), r.product(b, b)
    low = r.add(r.fma(a, a, r.neg(a2)), r.fma(b, b, r.neg(b2)))
    twice = r.add(a, a)
    first, lost = angles_f64.two_sum(r, twice, b2)
    total, more = angles_f64.two_sum(r, first, a2)
    return r.add(total, r.add(r.add(lost, more), low))


NEAR_OVERFLOW = 700.0
"""From about 709.8 on, e^a is no f64."""


@in_double
def exp(r: Real, x: Pair) -> Pair:
    """Where e^a is near overflow, e^(a/2) is multiplied in twice: the product may be finite. The imaginary part is +0
    if b is ±0.
    """
    a, b = x
    large = r.gt(a, NEAR_OVERFLOW)
    first = math_f64.exp(r, r.select(large, r.mul(r.c(0.5), a), a))
    second = r.select(large, first, r.c(1.0))
    re, im = (r.mul(r.mul(first, part), second) for part in (math_f64.cos(r, b), math_f64.sin(r, b)))
    return re, r.select(r.eq(b, 0.0), r.c(0.0), im)


def expm1(r: Real, x: Pair) -> Pair:
    """(expm1(a)·cos b + (cos b - 1), (expm1(a) + 1)·sin b)."""
    a, b = x
    less, one = precise(r, "expm1", a), r.c(1.0)
    cosine_less = _cosine_less_one(r, b)
    im = r.mul(r.add(less, one), precise(r, "sin", b))
    return r.fma(less, r.add(cosine_less, one), cosine_less), r.select(r.eq(b, 0.0), r.c(0.0), im)


COSINE_LESS_ONE = [(-1.0) ** (k // 2) / math.factorial(k) for k in range(4, 20, 2)]
"""Taylor coefficients of cos from x⁴ on; enough for |x| < π/4."""


def _cosine_less_one(r: Real, b: V) -> V:
    """cos b - 1: a Taylor series for |b| < π/4, a subtraction beyond. It is +0 if b² underflows."""
    square = r.mul(b, b)
    terms = COSINE_LESS_ONE if r.bits == 64 else COSINE_LESS_ONE[:4]
    near = r.mad(square, r.c(-0.5), r.mul(r.mul(square, square), r.poly(square, terms)))
    return r.select(r.not_ge(square, 0.61685), near, r.sub(precise(r, "cos", b), r.c(1.0)))


def sqrt(r: Real, x: Pair) -> Pair:
    """The principal root as in XLA: an imaginary part of -0 counts as +0."""
    re, im = principal_root(r, x)
    return re, r.select(r.eq(x[1], 0.0), r.abs(im), im)


@in_double
def principal_root(r: Real, x: Pair) -> Pair:
    """The principal root as C's csqrt: the sign of a zero imaginary part selects the side of the branch cut."""
    a, b = x
    root = _half_root(r, x)
    other = r.div(r.abs(b), r.add(root, root))
    left = r.lt(a, 0.0)
    result = r.select(left, other, root), r.copysign(r.select(left, root, other), b)
    zero = r.both(r.eq(a, 0.0), r.eq(b, 0.0))
    result = choose(r, zero, (r.c(0.0), b), result)
    nan = r.c(math.nan)
    return choose(r, any_nan(r, x), (nan, nan), _sqrt_corners(r, x, result))


def _half_root(r: Real, x: Pair) -> V:
    """sqrt((|a| + |z|) / 2), scaled to avoid overflow and underflow."""
    a = r.abs(x[0])
    big = r.either(r.gt(a, 2.0**1000), r.gt(r.abs(x[1]), 2.0**1000))
    small = r.both(r.lt(a, 2.0**-900), r.lt(r.abs(x[1]), 2.0**-900))
    factor = r.select(big, r.c(2.0**-4), r.select(small, r.c(2.0**100), r.c(1.0)))
    back = r.select(big, r.c(4.0), r.select(small, r.c(2.0**-50), r.c(1.0)))
    length = absolute(r, (r.mul(x[0], factor), r.mul(x[1], factor)))
    return r.mul(r.sqrt(r.mul(r.c(0.5), r.add(r.mul(a, factor), length))), back)


def _sqrt_corners(r: Real, x: Pair, result: Pair) -> Pair:
    """Infinite parts, as in C's csqrt."""
    a, b = x
    infinity, zero = r.c(math.inf), r.c(0.0)
    result = choose(r, r.eq(a, math.inf), (infinity, r.copysign(zero, b)), result)
    result = choose(r, r.eq(a, -math.inf), (zero, r.copysign(infinity, b)), result)
    return choose(r, r.is_infinite(b), (infinity, b), result)


def rsqrt(r: Real, x: Pair) -> Pair:
    """|x|^-1/2 in polar form. (inf, NaN) at zero; zeros if x is infinite."""
    a, b = x
    m = lib(r)
    large, small = _sorted(r, x)
    ratio = r.div(small, large)
    scale = r.sqrt(r.sqrt(r.mad(ratio, ratio, r.c(1.0))))
    size = r.div(r.c(1.0), r.mul(r.sqrt(large), scale))  # |x| itself may overflow
    angle = r.mul(_angle(r, x), r.c(-0.5))
    result = r.mul(size, m.cos(r, angle)), r.mul(size, m.sin(r, angle))
    endless = r.either(r.is_infinite(a), r.both(r.is_infinite(b), r.is_nan(a)))
    zero = r.c(0.0)
    result = choose(r, endless, (r.copysign(zero, a), r.neg(r.copysign(zero, b))), result)
    return choose(r, r.both(r.eq(a, 0.0), r.eq(b, 0.0)), (r.c(math.inf), r.c(math.nan)), result)


def logistic(r: Real, x: Pair) -> Pair:
    """1 / (1 + e^-x)."""
    one = r.c(1.0)
    e = exp(r, negate(r, x))
    return divide(r, (one, r.c(0.0)), (r.add(e[0], one), e[1]))


def sign(r: Real, x: Pair) -> Pair:
    """x / |x|; zeros are returned unchanged."""
    length = absolute(r, x)
    return choose(r, r.eq(length, 0.0), x, (r.div(x[0], length), r.div(x[1], length)))


def power(r: Real, x: Pair, y: Pair) -> Pair:
    """For y = c + i·d: absolute value |x|^c·e^(-d·arg x), angle c·arg x + d·log|x|."""
    (a, b), (c, d) = x, y
    m = lib(r)
    size, angle = absolute(r, x), _angle(r, x)
    coefficient = r.mul(m.power(r, size, c), m.exp(r, r.neg(r.mul(d, angle))))
    turn = r.fma(c, angle, r.mul(d, m.log(r, size)))  # the other product would overflow first
    result = r.mul(coefficient, m.cos(r, turn)), r.mul(coefficient, m.sin(r, turn))
    zero, one = r.c(0.0), r.c(1.0)
    real_power, endless = r.eq(d, 0.0), r.both(r.both(r.eq(a, math.inf), r.eq(b, 0.0)), r.eq(d, 0.0))
    result = choose(r, r.both(endless, r.gt(c, 0.0)), (r.c(math.inf), zero), result)
    vanishes = r.either(r.both(r.eq(size, 0.0), r.both(real_power, r.gt(c, 0.0))), r.both(endless, r.lt(c, 0.0)))
    result = choose(r, vanishes, (zero, zero), result)
    unit = r.either(r.both(r.eq(c, 0.0), r.eq(d, 0.0)), r.both(r.eq(a, 1.0), r.eq(b, 0.0)))
    return choose(r, unit, (one, zero), result)


def cbrt(r: Real, x: Pair) -> Pair:
    return power(r, x, (r.c(1.0 / 3.0), r.c(0.0)))
