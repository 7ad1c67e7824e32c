"""Trigonometric and hyperbolic functions of complex numbers. sin, cos, tan and tanh have XLA's special cases; sinh and
cosh, which XLA lacks, have C's.
"""

from __future__ import annotations

import math

from ..core.registers import V
from . import math_f64
from .complex_math import Pair, choose, in_double, lib, precise
from .real import Real


def _half_exponentials(r: Real, b: V) -> Pair:
    """e^b / 2 and e^-b / 2. The second is a quotient, so that it overflows if the first underflows."""
    e = precise(r, "exp", b)  # precise, because a subtraction doubles its error
    return r.mul(r.c(0.5), e), r.div(r.c(0.5), e)


def sin(r: Real, x: Pair) -> Pair:
    plus, minus = _half_exponentials(r, x[1])
    m = lib(r)
    return r.mul(m.sin(r, x[0]), r.add(plus, minus)), r.mul(m.cos(r, x[0]), r.sub(plus, minus))


def cos(r: Real, x: Pair) -> Pair:
    plus, minus = _half_exponentials(r, x[1])
    m = lib(r)
    return r.mul(m.cos(r, x[0]), r.add(minus, plus)), r.mul(m.sin(r, x[0]), r.sub(minus, plus))


FAR, SHIFT = 700.0, 600.0
"""For |a| > FAR, e^a overflows although its product with a small number may be finite. So the number is multiplied by
e^(a - SHIFT) first, and then by e^SHIFT.
"""


@in_double
def sinh(r: Real, x: Pair) -> Pair:
    """As C's csinh. If b is infinite or NaN and a is infinite, the real part is +inf."""
    a, b = x
    s, c, scale = _shifted(r, a)
    re, im = _times(r, s, math_f64.cos(r, b)), _times(r, c, math_f64.sin(r, b))
    no_angle = _not_finite(r, b)
    re = r.select(r.both(no_angle, r.is_infinite(a)), r.c(math.inf), r.mul(re, scale))
    return r.select(r.both(no_angle, r.eq(a, 0.0)), a, re), r.mul(im, scale)


@in_double
def cosh(r: Real, x: Pair) -> Pair:
    """As C's ccosh. If b is infinite or NaN: real part +inf for an infinite a, imaginary part +0 for a = 0."""
    a, b = x
    s, c, scale = _shifted(r, a)
    re, im = _times(r, c, math_f64.cos(r, b)), _times(r, s, math_f64.sin(r, b))
    no_angle = _not_finite(r, b)
    re = r.select(r.both(no_angle, r.is_infinite(a)), r.c(math.inf), r.mul(re, scale))
    return re, r.select(r.both(no_angle, r.eq(a, 0.0)), r.c(0.0), r.mul(im, scale))


def _shifted(r: Real, a: V) -> tuple[V, V, V]:
    """(sinh', cosh', scale) with sinh a = sinh'·scale and cosh a = cosh'·scale. See FAR for the scale."""
    far = r.gt(r.abs(a), FAR)
    near = r.select(far, r.sub(a, r.copysign(r.c(SHIFT), a)), a)
    return math_f64.sinh(r, near), math_f64.cosh(r, near), r.select(far, r.c(math.exp(SHIFT)), r.c(1.0))


def _times(r: Real, a: V, b: V) -> V:
    """a · b, but zero if b is zero and a infinite. If a is zero, b is finite or NaN."""
    flat = r.mul(b, r.copysign(r.c(1.0), a))
    return r.select(r.eq(b, 0.0), flat, r.mul(a, b))


def _not_finite(r: Real, b: V) -> V:
    return r.negated(r.lt(r.abs(b), math.inf))


@in_double
def tanh(r: Real, x: Pair) -> Pair:
    """Kahan's form (1987) with tan b and sinh a. The imaginary part is +0 on the real axis."""
    a, b = x
    large = r.gt(r.abs(a), 20.0)
    calm = r.select(large, r.c(1.0), a)
    t, s = math_f64.tan(r, b), math_f64.sinh(r, calm)
    beta = r.mad(t, t, r.c(1.0))
    rho = r.sqrt(r.mad(s, s, r.c(1.0)))
    denominator = r.mad(beta, r.mul(s, s), r.c(1.0))
    result = r.div(r.mul(beta, r.mul(rho, s)), denominator), r.div(t, denominator)
    decay = math_f64.exp(r, r.mul(r.c(-2.0), r.abs(a)))
    far = r.mul(r.mul(r.c(4.0), r.mul(math_f64.sin(r, b), math_f64.cos(r, b))), decay)
    return _tanh_corners(r, x, choose(r, large, (r.copysign(r.c(1.0), a), far), result))


def _tanh_corners(r: Real, x: Pair, result: Pair) -> Pair:
    """b infinite or NaN: the real part is NaN for a finite a; the imaginary part is zero for an infinite a. b = 0: the
    imaginary part is zero, even if a is NaN.
    """
    a, b = x
    no_angle, endless = _not_finite(r, b), r.is_infinite(a)
    re = r.select(r.both(no_angle, r.negated(endless)), r.c(math.nan), result[0])
    return re, r.select(r.either(r.eq(b, 0.0), r.both(no_angle, endless)), r.c(0.0), result[1])


def tan(r: Real, x: Pair) -> Pair:
    u, v = tanh(r, (r.neg(x[1]), x[0]))
    return v, r.neg(u)
