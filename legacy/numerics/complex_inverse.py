"""Inverse functions of complex numbers. asin, acos, acosh, asinh and atanh follow W. Kahan, "Branch Cuts for Complex
Elementary Functions" (1987); atan2 follows XLA's expansion.
"""

from __future__ import annotations

import math

from ..core.registers import V
from . import math_f64
from .complex_math import Pair, add, any_nan, choose, divide, in_double, precise, principal_root
from .real import Real


@in_double
def asin(r: Real, x: Pair) -> Pair:
    """Kahan's form: it uses the square roots of 1 ± z and no squares of sums. Infinities have the angles of C's casin.

    The other functions of this file use the same form.
    """
    a, b = x
    near = _Near(r, x)
    below, above = near.roots()
    sine = r.sub(r.mul(below[0], above[0]), r.mul(below[1], above[1]))
    re = math_f64.atan2(r, near.re, r.select(near.endless, r.abs(b), sine))
    im = near.asinh(r.sub(r.mul(below[0], above[1]), r.mul(below[1], above[0])), b)
    return r.select(r.eq(a, 0.0), a, re), im


@in_double
def acos(r: Real, x: Pair) -> Pair:
    a, b = x
    near = _Near(r, x)
    below, above = near.roots()
    im = near.asinh(r.sub(r.mul(above[0], below[1]), r.mul(above[1], below[0])), r.neg(b))
    return r.select(r.eq(a, 0.0), r.c(math.pi / 2), near.twice_angle(below[0], above[0], r.abs(b))), im


@in_double
def acosh(r: Real, x: Pair) -> Pair:
    a, b = x
    near = _Near(r, x)
    less = principal_root(r, (r.sub(near.re, r.c(1.0)), near.im))
    more = principal_root(r, (r.add(near.re, r.c(1.0)), near.im))
    re = near.asinh(r.add(r.mul(less[0], more[0]), r.mul(less[1], more[1])), r.c(1.0))
    return re, r.select(r.eq(a, 0.0), r.copysign(r.c(math.pi / 2), b), near.twice_angle(less[1], more[0], b))


class _Near:
    """The operand z = a + ib, multiplied by 1/16 if it is so large that products of its roots would overflow.

    The 1 in 1 ± z is negligible then.
    """

    def __init__(self, r: Real, x: Pair):
        self.r, self.x = r, x
        a, b = x
        self.endless = r.either(r.is_infinite(a), r.is_infinite(b))
        self.far = r.either(r.gt(r.abs(a), 2.0**1000), r.gt(r.abs(b), 2.0**1000))
        factor = r.select(self.far, r.c(1 / 16), r.c(1.0))
        self.re, self.im = r.mul(a, factor), r.mul(b, factor)

    def roots(self) -> tuple[Pair, Pair]:
        """sqrt(1 - z) and sqrt(1 + z)."""
        r, one = self.r, self.r.c(1.0)
        return (
            principal_root(r, (r.sub(one, self.re), r.neg(self.im))),
            principal_root(r, (r.add(one, self.re), self.im)),
        )

    def asinh(self, t: V, sign: V) -> V:
        """asinh(t), or asinh(16·t) if the operand was scaled; infinite with the sign of `sign` if the operand is
        infinite.
        """
        r = self.r
        value = math_f64.asinh(r, t)
        value = r.select(self.far, r.add(value, r.copysign(r.c(4 * math.log(2)), value)), value)
        return r.select(self.endless, r.copysign(r.c(math.inf), sign), value)

    def twice_angle(self, p: V, q: V, at_infinity: V) -> V:
        """2·atan2(p, q). If a part of the operand is infinite: the angle of (a, at_infinity)."""
        r = self.r
        angle = math_f64.atan2(r, r.select(self.endless, at_infinity, p), r.select(self.endless, self.x[0], q))
        return r.mul(r.select(self.endless, r.c(1.0), r.c(2.0)), angle)


def asinh(r: Real, x: Pair) -> Pair:
    u, v = asin(r, (r.neg(x[1]), x[0]))
    return v, r.neg(u)


@in_double
def atanh(r: Real, x: Pair) -> Pair:
    """Real part: log1p(4|a| / ((1 - |a|)² + b²)) / 4 with the sign of a.
    Imaginary part: half the angle of (1 - |a|)(1 + |a|) - b² + 2ib.
    """
    a, b = x
    size, width, one = r.abs(a), r.abs(b), r.c(1.0)
    far = r.either(r.gt(size, 2.0**500), r.gt(width, 2.0**500))
    gap = r.sub(one, size)
    re = r.copysign(_quarter_log1p(r, size, width, gap, far), a)
    known = r.both(far, r.either(r.eq(width, math.inf), r.negated(any_nan(r, x))))  # the angle is ±π in this case
    across = r.select(known, r.c(-1.0), r.sub(r.mul(gap, r.add(one, size)), r.mul(b, b)))
    rise = r.select(known, r.copysign(r.c(0.0), b), r.add(b, b))
    return r.select(r.eq(a, 0.0), a, re), r.mul(r.c(0.5), math_f64.atan2(r, rise, across))


def _quarter_log1p(r: Real, size: V, width: V, gap: V, far: V) -> V:
    """log1p(4·size / (gap² + width²)) / 4.

    If the squares underflow it is log1p(2 / width) / 2; if size or width is infinite it is 0.
    """
    scale = r.select(far, r.c(2.0**-600), r.c(1.0))
    p, q = r.mul(gap, scale), r.mul(width, scale)
    numerator = r.mul(r.c(4.0), r.mul(size, scale))
    ratio = r.mul(r.div(numerator, r.mad(p, p, r.mul(q, q))), scale)
    touching = r.both(r.eq(gap, 0.0), r.lt(width, 2.0**-100))
    ratio = r.select(touching, r.div(r.c(2.0), width), ratio)
    ratio = r.select(r.either(r.eq(size, math.inf), r.eq(width, math.inf)), r.c(0.0), ratio)
    return r.mul(r.select(touching, r.c(0.5), r.c(0.25)), math_f64.log1p(r, ratio))


def atan2(r: Real, y: Pair, x: Pair) -> Pair:
    """-i·log((x + iy) / sqrt(x² + y²)), evaluated in the component type, because XLA:CPU does so.

    Squares may overflow, and near the unit circle the imaginary part loses most of its digits.
    """
    square = add(r, _square(r, x), _square(r, y))
    zero = r.c(0.0)
    numerator = (r.add(x[0], r.sub(r.mul(zero, y[0]), y[1])), r.add(x[1], r.add(y[0], r.mul(y[1], zero))))
    quotient = divide(r, numerator, _polar_sqrt(r, square))
    size, angle = precise(r, "log", _plain_absolute(r, quotient)), precise(r, "atan2", quotient[1], quotient[0])
    return r.add(r.mul(zero, size), angle), r.sub(r.mul(zero, angle), size)


def _square(r: Real, x: Pair) -> Pair:
    """x², contracted in the same way as XLA:CPU's multiplication."""
    product = r.mul(x[0], x[1])  # used twice, so LLVM does not contract it
    return r.fma(x[0], x[0], r.neg(r.mul(x[1], x[1]))), r.add(product, product)


def _plain_absolute(r: Real, x: Pair) -> V:
    """max·sqrt(1 + (min / max)²) of |re| and |im|; the smaller part if that is NaN."""
    large, small = _nan_sorted(r, x)
    ratio = r.div(small, large)
    length = r.mul(large, r.sqrt(r.fused(ratio, ratio, r.c(1.0))))
    return r.select(r.is_nan(length), small, length)


def _nan_sorted(r: Real, x: Pair) -> Pair:
    a, b = r.abs(x[0]), r.abs(x[1])
    return r.call("maximum", a, b), r.call("minimum", a, b)


def _polar_sqrt(r: Real, x: Pair) -> Pair:
    """sqrt|x|·(cos, sin)(arg x / 2). Infinite if a part of x is infinite, but 0 + i·inf at -inf."""
    a, b = x
    large, small = _nan_sorted(r, x)
    ratio = r.div(small, large)
    size = r.mul(r.sqrt(large), _fourth_root(r, r.fused(ratio, ratio, r.c(1.0))))
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
