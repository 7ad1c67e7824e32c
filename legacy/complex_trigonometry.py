"""Trigonometric and hyperbolic functions of complex numbers: sin, cos, tan, tanh with XLA's corners; sinh and cosh,
which XLA has not, with C's.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from llvmlite import ir

from . import math_f64
from .complex_math import Pair, choose, in_double, lib, precise
from .real import Real

V: TypeAlias = ir.Value


def _half_exponentials(r: Real, b: V) -> Pair:
    """e^b / 2 and e^-b / 2, the second by division: it overflows where the first vanishes."""
    e = precise(r, "exp", b)  # its last bit counts twice where the two are subtracted
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
"""Beyond FAR e^a overflows before its product with a small number does."""


@in_double
def sinh(r: Real, x: Pair) -> Pair:
    """C's csinh; where b has no angle and a is infinite, the real part is +inf."""
    a, b = x
    s, c, scale = _shifted(r, a)
    re, im = _times(r, s, math_f64.cos(r, b)), _times(r, c, math_f64.sin(r, b))
    no_angle = _not_finite(r, b)
    re = r.select(r.both(no_angle, r.is_infinite(a)), r.c(math.inf), r.mul(re, scale))
    return r.select(r.both(no_angle, r.eq(a, 0.0)), a, re), r.mul(im, scale)


@in_double
def cosh(r: Real, x: Pair) -> Pair:
    """C's ccosh; where b has no angle, the real part of an infinite a is +inf, the imaginary one of a zero +0."""
    a, b = x
    s, c, scale = _shifted(r, a)
    re, im = _times(r, c, math_f64.cos(r, b)), _times(r, s, math_f64.sin(r, b))
    no_angle = _not_finite(r, b)
    re = r.select(r.both(no_angle, r.is_infinite(a)), r.c(math.inf), r.mul(re, scale))
    return re, r.select(r.both(no_angle, r.eq(a, 0.0)), r.c(0.0), r.mul(im, scale))


def _shifted(r: Real, a: V) -> tuple[V, V, V]:
    """(sinh, cosh, scale): the functions of a are the first two times the third, which may be finite in a product."""
    far = r.gt(r.abs(a), FAR)
    near = r.select(far, r.sub(a, r.copysign(r.c(SHIFT), a)), a)
    return math_f64.sinh(r, near), math_f64.cosh(r, near), r.select(far, r.c(math.exp(SHIFT)), r.c(1.0))


def _times(r: Real, a: V, b: V) -> V:
    """a · b, where a zero b wins over an infinite a. (A zero a has a finite b, or one without an angle.)"""
    flat = r.mul(b, r.copysign(r.c(1.0), a))
    return r.select(r.eq(b, 0.0), flat, r.mul(a, b))


def _not_finite(r: Real, b: V) -> V:
    return r.negated(r.lt(r.abs(b), math.inf))


@in_double
def tanh(r: Real, x: Pair) -> Pair:
    """Kahan's form, through tan b and sinh a; an imaginary part of +0 on the real axis."""
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
    """No angle: NaN beside a finite real part, a zero beside an infinite one. Angle 0: a zero, beside NaN too."""
    a, b = x
    no_angle, endless = _not_finite(r, b), r.is_infinite(a)
    re = r.select(r.both(no_angle, r.negated(endless)), r.c(math.nan), result[0])
    return re, r.select(r.either(r.eq(b, 0.0), r.both(no_angle, endless)), r.c(0.0), result[1])


def tan(r: Real, x: Pair) -> Pair:
    u, v = tanh(r, (r.neg(x[1]), x[0]))
    return v, r.neg(u)
