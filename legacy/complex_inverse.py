"""Inverse functions of complex numbers: asin, acos, acosh, asinh, atanh by Kahan's forms, atan2 by XLA's expansion."""

from __future__ import annotations

import math
from typing import TypeAlias

from llvmlite import ir

from . import math_f64
from .complex_math import Pair, add, choose, divide, in_double, precise, principal_root
from .real import Real

V: TypeAlias = ir.Value


@in_double
def asin(r: Real, x: Pair) -> Pair:
    """Kahan's forms, here and below: square roots of 1 ± z, no squares of their sums."""
    below, above = _roots(r, x)
    sine = r.sub(r.mul(below[0], above[0]), r.mul(below[1], above[1]))
    return math_f64.atan2(r, x[0], sine), math_f64.asinh(r, r.sub(r.mul(below[0], above[1]), r.mul(below[1], above[0])))


@in_double
def acos(r: Real, x: Pair) -> Pair:
    below, above = _roots(r, x)
    re = r.mul(r.c(2.0), math_f64.atan2(r, below[0], above[0]))
    return re, math_f64.asinh(r, r.sub(r.mul(above[0], below[1]), r.mul(above[1], below[0])))


def _roots(r: Real, x: Pair) -> tuple[Pair, Pair]:
    """sqrt(1 - z) and sqrt(1 + z)."""
    one = r.c(1.0)
    return principal_root(r, (r.sub(one, x[0]), r.neg(x[1]))), principal_root(r, (r.add(one, x[0]), x[1]))


@in_double
def acosh(r: Real, x: Pair) -> Pair:
    one = r.c(1.0)
    less, more = principal_root(r, (r.sub(x[0], one), x[1])), principal_root(r, (r.add(x[0], one), x[1]))
    re = math_f64.asinh(r, r.add(r.mul(less[0], more[0]), r.mul(less[1], more[1])))
    return re, r.mul(r.c(2.0), math_f64.atan2(r, less[1], more[0]))


def asinh(r: Real, x: Pair) -> Pair:
    u, v = asin(r, (r.neg(x[1]), x[0]))
    return v, r.neg(u)


@in_double
def atanh(r: Real, x: Pair) -> Pair:
    a, b = x
    one = r.c(1.0)
    left = r.sub(one, a)
    distance = r.mad(left, left, r.mul(b, b))
    re = r.mul(r.c(0.25), math_f64.log1p(r, r.div(r.mul(r.c(4.0), a), distance)))
    across = r.sub(r.mul(left, r.add(one, a)), r.mul(b, b))
    return re, r.mul(r.c(0.5), math_f64.atan2(r, r.add(b, b), across))


def atan2(r: Real, y: Pair, x: Pair) -> Pair:
    """-i·log((x + iy) / sqrt(x² + y²)) in the component type, where squares overflow and, near the unit circle, little
    of the imaginary part survives. That is what XLA:CPU gives.
    """
    square = add(r, _square(r, x), _square(r, y))
    zero = r.c(0.0)
    numerator = (r.add(x[0], r.sub(r.mul(zero, y[0]), y[1])), r.add(x[1], r.add(y[0], r.mul(y[1], zero))))
    quotient = divide(r, numerator, _polar_sqrt(r, square))
    size, angle = precise(r, "log", _plain_absolute(r, quotient)), precise(r, "atan2", quotient[1], quotient[0])
    return r.add(r.mul(zero, size), angle), r.sub(r.mul(zero, angle), size)


def _square(r: Real, x: Pair) -> Pair:
    """x², with the contraction that XLA:CPU's multiplication gets."""
    product = r.mul(x[0], x[1])  # is used twice, hence not contracted
    return r.fma(x[0], x[0], r.neg(r.mul(x[1], x[1]))), r.add(product, product)


def _plain_absolute(r: Real, x: Pair) -> V:
    """max·sqrt(1 + (min / max)²), the smaller part where that is NaN."""
    large, small = _nan_sorted(r, x)
    ratio = r.div(small, large)
    length = r.mul(large, r.sqrt(r.mad(ratio, ratio, r.c(1.0))))
    return r.select(r.is_nan(length), small, length)


def _nan_sorted(r: Real, x: Pair) -> Pair:
    a, b = r.abs(x[0]), r.abs(x[1])
    return r.call("maximum", a, b), r.call("minimum", a, b)


def _polar_sqrt(r: Real, x: Pair) -> Pair:
    """sqrt|x|·(cos, sin)(arg x / 2), infinite where a part is (but 0 + i·inf at -inf)."""
    a, b = x
    large, small = _nan_sorted(r, x)
    ratio = r.div(small, large)
    size = r.mul(r.sqrt(large), _fourth_root(r, r.mad(ratio, ratio, r.c(1.0))))
    size = r.select(r.is_nan(size), small, size)
    half = r.mul(precise(r, "atan2", b, a), r.c(0.5))
    cosine, sine = precise(r, "cos", half), precise(r, "sin", half)
    infinity, zero = r.c(math.inf), r.c(0.0)
    re = r.select(r.eq(a, -math.inf), zero, r.mul(size, cosine))
    re = r.select(r.either(r.is_infinite(b), r.eq(a, math.inf)), infinity, re)
    im = r.select(r.eq(sine, 0.0), zero, r.mul(size, sine))
    im = r.select(r.is_nan(size), r.c(math.nan), im)
    im = r.select(r.either(r.is_infinite(b), r.eq(a, -math.inf)), r.copysign(infinity, b), im)
    return choose(r, r.eq(size, 0.0), (zero, zero), (re, im))


def _fourth_root(r: Real, x: V) -> V:
    if r.bits == 64:
        return r.libm("pow", x, r.c(0.25))
    return r.in_double(lambda d, wide: d.sqrt(d.sqrt(wide)), x)
