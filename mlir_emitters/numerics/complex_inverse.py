"""Inverse trigonometric and hyperbolic functions of complex numbers, in the forms of W. Kahan, "Branch Cuts for Complex
Elementary Functions" (1987), which are accurate near branch points.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log, pi

from ..core.builder import Builder, Value
from .complex_math import (
    INF,
    NAN,
    Pair,
    add,
    both,
    choose,
    divide,
    either,
    in_f64,
    infinite,
    libm,
    principal_root,
    times,
    widened,
)


def atan2(b: Builder, y: Pair, x: Pair) -> Pair:
    """−i·log((x + iy)/√(x² + y²)), evaluated in the component type, because XLA:CPU does so.

    Squares may overflow, and near the unit circle the imaginary part loses most of its digits.
    """
    zero = b.like(0.0, x[0])
    square = add(b, _square(b, x), _square(b, y))
    turned = b.subf(b.mulf(zero, y[0]), y[1]), b.addf(y[0], b.mulf(y[1], zero))
    quotient = divide(b, add(b, x, turned), _polar_sqrt(b, square))
    size = _scaled_magnitude(b, quotient, lambda v: b.op("math.sqrt", v), lambda v: v)
    log_size = widened(b, "math.log", size)
    angle = widened(b, "math.atan2", quotient[1], quotient[0])
    return b.addf(b.mulf(zero, log_size), angle), b.subf(b.mulf(zero, angle), log_size)


def _square(b: Builder, x: Pair) -> Pair:
    product = b.mulf(x[1], x[0])  # used twice, so LLVM does not contract it into the sum
    return b.fused(x[0], x[0], b.negf(b.mulf(x[1], x[1]))), b.addf(product, product)


def _scaled_magnitude(b: Builder, x: Pair, root: Callable[[Value], Value], outer: Callable[[Value], Value]) -> Value:
    """outer(max)·root(1 + (min/max)²) of |re| and |im|; min if that is NaN."""
    first, second = b.absf(x[0]), b.absf(x[1])
    large, small = b.maxf(first, second), b.minf(first, second)
    ratio = b.divf(small, large)
    value = b.mulf(outer(large), root(b.fused(ratio, ratio, b.like(1.0, ratio))))
    return b.select(b.is_nan(value), small, value)


def _fourth_root(b: Builder, x: Value) -> Value:
    """x^¼, correctly rounded for f32. f64 uses the C library's pow, which two square roots miss by one bit."""
    if x.type != b.types.f32:
        return libm(b, "pow", x, b.like(0.25, x))
    return b.truncate(b.op("math.sqrt", b.op("math.sqrt", b.extend(x))), b.types.f32)


def _polar_sqrt(b: Builder, x: Pair) -> Pair:
    """√|x|·(cos + i·sin)(arg x/2). Infinite if a part of x is infinite, but 0 + i·inf for −inf."""
    real, imaginary = x
    zero, infinity = b.like(0.0, real), b.like(INF, real)

    size = _scaled_magnitude(b, x, lambda v: _fourth_root(b, v), lambda v: b.op("math.sqrt", v))
    half = times(b, widened(b, "math.atan2", imaginary, real), 0.5)
    sine_half = widened(b, "math.sin", half)
    first, second = b.mulf(size, widened(b, "math.cos", half)), b.mulf(size, sine_half)
    second = b.select(b.compare("oeq", sine_half, zero), zero, second)
    second = b.select(b.is_nan(size), b.like(NAN, real), second)
    minus = b.compare("oeq", real, b.negf(infinity))
    endless = infinite(b, imaginary)
    first = b.select(minus, zero, first)
    first = b.select(either(b, endless, b.compare("oeq", real, infinity)), infinity, first)
    second = b.select(either(b, endless, minus), b.copysign(infinity, imaginary), second)
    return choose(b, b.compare("oeq", size, zero), (zero, zero), (first, second))


class _Moderate:
    """An operand, scaled by 1/16 if products of its roots would overflow, and the corrections of results for it.

    x: the operand after scaling; the 1 in 1 ± x is negligible then. endless: whether a part of the operand is infinite.
    """

    def __init__(self, b: Builder, x: Pair):
        self.b, self.given = b, x
        limit = b.f64(2.0**1000)
        self.large = either(b, *(b.compare("ogt", b.absf(part), limit) for part in x))
        self.endless = either(b, *(infinite(b, part) for part in x))
        factor = b.select(self.large, b.f64(1 / 16), b.f64(1.0))
        self.x = b.mulf(x[0], factor), b.mulf(x[1], factor)

    def roots(self, sign: float) -> tuple[Pair, Pair]:
        """sign = −1: (√(1 − x), √(1 + x)). sign = 1: (√(x − 1), √(x + 1))."""
        b, (real, imaginary) = self.b, self.x
        one = b.f64(1.0)
        first = (b.subf(real, one), imaginary) if sign > 0 else (b.subf(one, real), b.negf(imaginary))
        return principal_root(b, first), principal_root(b, (b.addf(one, real), imaginary))

    def area(self, t: Value, sign: Value) -> Value:
        """asinh(t), or asinh(16·t) if the operand was scaled; ±∞ if the operand is infinite."""
        b = self.b
        value = b.math("math.asinh", t)
        more = b.addf(value, b.copysign(b.f64(4 * log(2)), value))
        return b.select(self.endless, b.copysign(b.f64(INF), sign), b.select(self.large, more, value))

    def angle(self, y: Value, x: Value, of_endless: Pair, factor: float = 1.0) -> Value:
        """factor·atan2(y, x). For an infinite operand: atan2 of the pair of_endless."""
        b = self.b
        angle = b.math("math.atan2", b.select(self.endless, of_endless[0], y), b.select(self.endless, of_endless[1], x))
        return angle if factor == 1 else b.mulf(angle, b.select(self.endless, b.f64(1.0), b.f64(factor)))


def _cross(b: Builder, x: Pair, y: Pair) -> Value:
    """The imaginary part of conj(x)·y."""
    return b.subf(b.mulf(x[0], y[1]), b.mulf(x[1], y[0]))


def _is_zero(b: Builder, x: Value) -> Value:
    return b.compare("oeq", x, b.like(0.0, x))


@in_f64
def acos(b: Builder, x: Pair) -> Pair:
    real, imaginary = x
    moderate = _Moderate(b, x)
    minus, plus = moderate.roots(-1)
    angle = moderate.angle(minus[0], plus[0], (b.absf(imaginary), real), 2.0)
    area = moderate.area(_cross(b, plus, minus), b.negf(imaginary))
    return b.select(_is_zero(b, real), b.f64(pi / 2), angle), area


@in_f64
def asin(b: Builder, x: Pair) -> Pair:
    real, imaginary = x
    moderate = _Moderate(b, x)
    minus, plus = moderate.roots(-1)
    product = b.subf(b.mulf(minus[0], plus[0]), b.mulf(minus[1], plus[1]))
    angle = moderate.angle(moderate.x[0], product, (real, b.absf(imaginary)))
    return b.select(_is_zero(b, real), real, angle), moderate.area(_cross(b, minus, plus), imaginary)


@in_f64
def acosh(b: Builder, x: Pair) -> Pair:
    real, imaginary = x
    moderate = _Moderate(b, x)
    below, above = moderate.roots(1)
    product = b.addf(b.mulf(below[0], above[0]), b.mulf(below[1], above[1]))
    angle = moderate.angle(below[1], above[0], (imaginary, real), 2.0)
    upright = b.copysign(b.f64(pi / 2), imaginary)
    return moderate.area(product, b.f64(1.0)), b.select(_is_zero(b, real), upright, angle)


def asinh(b: Builder, x: Pair) -> Pair:
    real, imaginary = asin(b, (b.negf(x[1]), x[0]))
    return imaginary, b.negf(real)


@in_f64
def atanh(b: Builder, x: Pair) -> Pair:
    """Real part: ¼·log1p(4|a|/((1 − |a|)² + b²)) with the sign of a. Imaginary part: half the angle of (1 − |a|)(1 +
    |a|) − b² + 2ib. The angle is ±π for large operands, and for an infinite b with any a.
    """
    real, imaginary = x
    size, side, one, limit = b.absf(real), b.absf(imaginary), b.f64(1.0), b.f64(2.0**500)
    far = either(b, b.compare("ogt", size, limit), b.compare("ogt", side, limit))
    gap = b.subf(one, size)
    first = b.copysign(_atanh_area(b, size, side, gap, far), real)
    settled = both(b, far, either(b, b.compare("ord", real, imaginary), infinite(b, imaginary)))
    width = b.subf(b.mulf(gap, b.addf(one, size)), b.mulf(imaginary, imaginary))
    y = b.select(settled, b.copysign(b.f64(0.0), imaginary), times(b, imaginary, 2.0))
    angle = b.math("math.atan2", y, b.select(settled, b.f64(-1.0), width))
    return b.select(_is_zero(b, real), real, first), times(b, angle, 0.5)


def _atanh_area(b: Builder, size: Value, side: Value, gap: Value, far: Value) -> Value:
    """¼·log1p(…) of atanh without overflow and underflow: the squares of large operands are scaled.

    Near |a| = 1 with a tiny b it is ½·log(2/|b|).
    """
    scale = b.select(far, b.f64(2.0**-600), b.f64(1.0))
    p, q = b.mulf(gap, scale), b.mulf(side, scale)
    ratio = b.divf(times(b, b.mulf(size, scale), 4.0), b.fma(p, p, b.mulf(q, q)))
    endless = either(b, infinite(b, size), infinite(b, side))
    ratio = b.select(endless, b.f64(0.0), b.mulf(ratio, scale))
    beside = both(b, _is_zero(b, gap), b.compare("olt", side, b.f64(2.0**-100)))
    ratio = b.select(beside, b.divf(b.f64(2.0), side), ratio)
    return b.mulf(b.math("math.log1p", ratio), b.select(beside, b.f64(0.5), b.f64(0.25)))
