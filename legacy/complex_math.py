"""Complex arithmetic on pairs (re, im). Functions take a Real and pairs; c64 is evaluated in doubles where that helps."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType

from llvmlite import ir

from . import math_f32, math_f64
from .real import Real

V = ir.Value
Pair = tuple[V, V]


def lib(r: Real) -> ModuleType:
    """The elementary functions of this width."""
    return math_f64 if r.bits == 64 else math_f32


def in_double(function: Callable[..., Pair]) -> Callable[..., Pair]:
    """For c64, evaluate in doubles and round: no cancellation to care for, no overflow on the way."""

    def emit(r: Real, *pairs: Pair) -> Pair:
        if r.bits == 64:
            return function(r, *pairs)
        d = Real(r.code, 64)
        re, im = function(d, *((r.wider(a), r.wider(b)) for a, b in pairs))
        return r.code.b.fptrunc(re, r.type), r.code.b.fptrunc(im, r.type)

    emit.__doc__ = function.__doc__
    return emit


def add(r: Real, x: Pair, y: Pair) -> Pair:
    return r.add(x[0], y[0]), r.add(x[1], y[1])


def subtract(r: Real, x: Pair, y: Pair) -> Pair:
    return r.sub(x[0], y[0]), r.sub(x[1], y[1])


def negate(r: Real, x: Pair) -> Pair:
    return r.neg(x[0]), r.neg(x[1])


def multiply(r: Real, x: Pair, y: Pair) -> Pair:
    (a, b), (c, d) = x, y
    return r.sub(r.mul(a, c), r.mul(b, d)), r.add(r.mul(a, d), r.mul(b, c))


def divide(r: Real, x: Pair, y: Pair) -> Pair:
    """By the larger part of the divisor, so that nothing overflows too early."""
    (a, b), (c, d) = x, y
    by_real = r.compare(">=", r.abs(c), r.abs(d))
    large, small = r.select(by_real, c, d), r.select(by_real, d, c)
    ratio = r.div(small, large)
    ratio = r.select(r.both(r.is_infinite(c), r.is_infinite(d)), _signed_one(r, small, large), ratio)
    denominator = r.mad(small, ratio, large)
    p, q = r.select(by_real, a, b), r.select(by_real, b, a)
    re = r.div(r.mad(q, ratio, p), denominator)
    im = r.div(r.sub(q, r.mul(p, ratio)), denominator)
    im = r.select(by_real, im, r.neg(im))
    return _divide_corners(r, x, y, (re, im))


def _signed_one(r: Real, small: V, large: V) -> V:
    return r.copysign(r.copysign(r.c(1.0), small), large)


def _divide_corners(r: Real, x: Pair, y: Pair, result: Pair) -> Pair:
    """Zero divisors give infinities, infinite over finite is infinite, finite over infinite is zero."""
    (a, b), (c, d) = x, y
    zero = r.both(r.eq(c, 0.0), r.eq(d, 0.0))
    infinity = r.copysign(r.c(math.inf), c)
    return tuple(r.select(zero, r.mul(infinity, part), value) for part, value in ((a, result[0]), (b, result[1])))


def compare(r: Real, operator: str, x: Pair, y: Pair) -> V:
    b = r.code.b
    if operator == "==":
        return b.and_(b.fcmp_ordered("==", x[0], y[0]), b.fcmp_ordered("==", x[1], y[1]))
    return b.or_(b.fcmp_unordered("!=", x[0], y[0]), b.fcmp_unordered("!=", x[1], y[1]))


def absolute(r: Real, x: Pair) -> V:
    """hypot: infinite if a part is, whatever the other."""
    a, b = r.abs(x[0]), r.abs(x[1])
    a_larger = r.compare(">", a, b)
    large, small = r.select(a_larger, a, b), r.select(a_larger, b, a)
    ratio = r.div(small, large)
    length = r.mul(large, r.sqrt(r.mad(ratio, ratio, r.c(1.0))))
    length = r.select(r.both(r.eq(large, 0.0), r.eq(small, 0.0)), r.c(0.0), length)
    return r.select(r.either(r.is_infinite(x[0]), r.is_infinite(x[1])), r.c(math.inf), length)


def _log_absolute(r: Real, x: Pair) -> V:
    a, b = r.abs(x[0]), r.abs(x[1])
    a_larger = r.compare(">", a, b)
    large, small = r.select(a_larger, a, b), r.select(a_larger, b, a)
    near_one = r.both(r.gt(large, 0.5), r.lt(large, 2.0))
    ratio = r.div(small, large)
    far = r.mul(ratio, ratio)
    close = r.mad(small, small, r.mul(r.sub(large, r.c(1.0)), r.add(large, r.c(1.0))))
    half_log1p = r.mul(r.c(0.5), math_f64.log1p(r, r.select(near_one, close, far)))
    base = math_f64.log(r, r.select(near_one, r.c(1.0), large))
    total = r.select(r.eq(large, 0.0), base, r.add(base, half_log1p))
    return r.select(r.either(r.is_infinite(x[0]), r.is_infinite(x[1])), r.c(math.inf), total)


@in_double
def log(r: Real, x: Pair) -> Pair:
    return _log_absolute(r, x), math_f64.atan2(r, x[1], x[0])


@in_double
def log1p(r: Real, x: Pair) -> Pair:
    a, b = x
    shifted = (r.add(a, r.c(1.0)), b)
    small = r.both(r.lt(r.abs(a), 0.5), r.lt(r.abs(b), 0.5))
    inner = r.mad(b, b, r.mul(a, r.add(a, r.c(2.0))))
    near = r.mul(r.c(0.5), math_f64.log1p(r, r.select(small, inner, r.c(0.0))))
    return r.select(small, near, _log_absolute(r, shifted)), math_f64.atan2(r, b, shifted[0])


@in_double
def exp(r: Real, x: Pair) -> Pair:
    a, b = x
    size = math_f64.exp(r, a)
    return _polar(r, size, b)


def _polar(r: Real, size: V, angle: V) -> Pair:
    """size · (cos angle, sin angle); an angle of zero gives an imaginary zero even where the size is infinite."""
    flat = r.eq(angle, 0.0)
    re, im = r.mul(size, math_f64.cos(r, angle)), r.mul(size, math_f64.sin(r, angle))
    return r.select(flat, size, re), r.select(flat, angle, im)


@in_double
def expm1(r: Real, x: Pair) -> Pair:
    a, b = x
    half_sine = math_f64.sin(r, r.mul(b, r.c(0.5)))
    lost = r.mul(r.c(2.0), r.mul(half_sine, half_sine))
    e = math_f64.expm1(r, a)
    re = r.sub(r.mul(e, math_f64.cos(r, b)), lost)
    im = r.mul(math_f64.exp(r, a), math_f64.sin(r, b))
    flat = r.eq(b, 0.0)
    return r.select(flat, e, re), r.select(flat, b, im)


@in_double
def sqrt(r: Real, x: Pair) -> Pair:
    a, b = x
    root = _half_root(r, x)
    other = r.div(r.abs(b), r.add(root, root))
    left = r.lt(a, 0.0)
    re, im = r.select(left, other, root), r.copysign(r.select(left, root, other), b)
    zero = r.both(r.eq(a, 0.0), r.eq(b, 0.0))
    re, im = r.select(zero, r.c(0.0), re), r.select(zero, b, im)
    return _sqrt_corners(r, x, (re, im))


def _half_root(r: Real, x: Pair) -> V:
    """sqrt((|a| + |z|) / 2), scaled away from overflow."""
    a = r.abs(x[0])
    big = r.either(r.gt(a, 2.0**1000), r.gt(r.abs(x[1]), 2.0**1000))
    small = r.both(r.lt(a, 2.0**-1000), r.lt(r.abs(x[1]), 2.0**-1000))
    factor = r.select(big, r.c(2.0**-4), r.select(small, r.c(2.0**100), r.c(1.0)))
    back = r.select(big, r.c(4.0), r.select(small, r.c(2.0**-50), r.c(1.0)))
    length = absolute(r, (r.mul(x[0], factor), r.mul(x[1], factor)))
    return r.mul(r.sqrt(r.mul(r.c(0.5), r.add(r.mul(a, factor), length))), back)


def _sqrt_corners(r: Real, x: Pair, result: Pair) -> Pair:
    """Infinite parts, as C's csqrt."""
    a, b = x
    infinity, zero = r.c(math.inf), r.c(0.0)
    re, im = result
    right, left = r.eq(a, math.inf), r.eq(a, -math.inf)
    finite_b = r.lt(r.abs(b), math.inf)
    re, im = r.select(right, infinity, re), r.select(r.both(right, finite_b), r.copysign(zero, b), im)
    re = r.select(left, r.select(finite_b, zero, b), re)
    im = r.select(left, r.copysign(infinity, b), im)
    tall = r.is_infinite(b)
    return r.select(tall, infinity, re), r.select(tall, b, im)


def rsqrt(r: Real, x: Pair) -> Pair:
    return divide(r, (r.c(1.0), r.c(0.0)), sqrt(r, x))


@in_double
def cbrt(r: Real, x: Pair) -> Pair:
    size = math_f64.cbrt(r, absolute(r, x))
    return _polar(r, size, r.mul(math_f64.atan2(r, x[1], x[0]), r.c(1.0 / 3.0)))


@in_double
def sin(r: Real, x: Pair) -> Pair:
    a, b = x
    return (_times(r, math_f64.sin(r, a), math_f64.cosh(r, b)), _times(r, math_f64.cos(r, a), math_f64.sinh(r, b)))


@in_double
def cos(r: Real, x: Pair) -> Pair:
    a, b = x
    return (_times(r, math_f64.cos(r, a), math_f64.cosh(r, b)),
            r.neg(_times(r, math_f64.sin(r, a), math_f64.sinh(r, b))))


@in_double
def sinh(r: Real, x: Pair) -> Pair:
    a, b = x
    return (_times(r, math_f64.sinh(r, a), math_f64.cos(r, b)), _times(r, math_f64.cosh(r, a), math_f64.sin(r, b)))


@in_double
def cosh(r: Real, x: Pair) -> Pair:
    a, b = x
    return (_times(r, math_f64.cosh(r, a), math_f64.cos(r, b)), _times(r, math_f64.sinh(r, a), math_f64.sin(r, b)))


def _times(r: Real, a: V, b: V) -> V:
    """a · b, where zero times anything is zero."""
    zero = r.either(r.eq(a, 0.0), r.eq(b, 0.0))
    return r.select(zero, r.c(0.0), r.mul(a, b))


@in_double
def tanh(r: Real, x: Pair) -> Pair:
    """Kahan's form, through tan b and sinh a."""
    a, b = x
    large = r.gt(r.abs(a), 20.0)
    calm = r.select(large, r.c(1.0), a)
    t, s = math_f64.tan(r, b), math_f64.sinh(r, calm)
    beta = r.mad(t, t, r.c(1.0))
    rho = r.sqrt(r.mad(s, s, r.c(1.0)))
    denominator = r.mad(beta, r.mul(s, s), r.c(1.0))
    re, im = r.div(r.mul(beta, r.mul(rho, s)), denominator), r.div(t, denominator)
    decay = math_f64.exp(r, r.mul(r.c(-2.0), r.abs(a)))
    far = r.mul(r.mul(r.c(4.0), r.mul(math_f64.sin(r, b), math_f64.cos(r, b))), decay)
    infinite = r.is_infinite(a)
    far = r.select(r.both(infinite, r.negated(r.lt(r.abs(b), math.inf))), r.c(0.0), far)
    return r.select(large, r.copysign(r.c(1.0), a), re), r.select(large, far, im)


def tan(r: Real, x: Pair) -> Pair:
    u, v = tanh(r, (r.neg(x[1]), x[0]))
    return v, r.neg(u)


@in_double
def logistic(r: Real, x: Pair) -> Pair:
    one = r.c(1.0)
    e = exp(r, negate(r, x))
    return divide(r, (one, r.c(0.0)), (r.add(one, e[0]), e[1]))


def sign(r: Real, x: Pair) -> Pair:
    length = absolute(r, x)
    zero = r.eq(length, 0.0)
    return tuple(r.select(zero, r.c(0.0), r.div(part, length)) for part in x)


@in_double
def power(r: Real, x: Pair, y: Pair) -> Pair:
    """exp(y log x); 0^0 is 1 and 0 to a power with a positive real part 0."""
    base_zero = r.both(r.eq(x[0], 0.0), r.eq(x[1], 0.0))
    power_zero = r.both(r.eq(y[0], 0.0), r.eq(y[1], 0.0))
    re, im = exp(r, multiply(r, y, log(r, x)))
    vanishes = r.both(base_zero, r.gt(y[0], 0.0))
    re, im = r.select(vanishes, r.c(0.0), re), r.select(vanishes, r.c(0.0), im)
    return r.select(power_zero, r.c(1.0), re), r.select(power_zero, r.c(0.0), im)


def atan2(r: Real, y: Pair, x: Pair) -> Pair:
    """-i · log((x + iy) / sqrt(x² + y²))."""
    root = sqrt(r, add(r, multiply(r, x, x), multiply(r, y, y)))
    direction = divide(r, (r.sub(x[0], y[1]), r.add(x[1], y[0])), root)
    re, im = log(r, direction)
    return im, r.neg(re)
