"""Trigonometric and hyperbolic functions of complex numbers. sin, cos, tan and tanh have XLA's special cases; sinh and
cosh, which XLA lacks, have C's.
"""

from __future__ import annotations

from math import exp

from ..core.builder import Builder, Value
from .complex_math import INF, NAN, Pair, both, either, finite, in_f64, infinite, times

FAR, SHIFT = 700.0, 600.0
"""For |x| > FAR, eˣ may overflow although its product with a small number does not. SHIFT is subtracted from |x| first.
"""


@in_f64
def sinh(b: Builder, x: Pair) -> Pair:
    """As C's csinh. b infinite or NaN: the real part is +∞ for an infinite a; for a zero a it is a."""
    real, imaginary = x
    s, c, scale = _hyperbolic(b, real)
    first = b.mulf(_product(b, s, b.math("math.cos", imaginary)), scale)
    second = b.mulf(_product(b, c, b.math("math.sin", imaginary)), scale)
    corner = b.select(b.compare("oeq", real, b.like(0.0, real)), real, first)
    corner = b.select(infinite(b, real), b.like(INF, real), corner)
    return b.select(finite(b, imaginary), first, corner), second


@in_f64
def cosh(b: Builder, x: Pair) -> Pair:
    """As C's ccosh. b infinite or NaN: the real part is +∞ for an infinite a; the imaginary part is +0 for a zero a."""
    real, imaginary = x
    s, c, scale = _hyperbolic(b, real)
    first = b.mulf(_product(b, c, b.math("math.cos", imaginary)), scale)
    second = b.mulf(_product(b, s, b.math("math.sin", imaginary)), scale)
    known, zero = finite(b, imaginary), b.like(0.0, real)
    no_first = b.select(infinite(b, real), b.like(INF, real), first)
    no_second = b.select(b.compare("oeq", real, zero), zero, second)
    return b.select(known, first, no_first), b.select(known, second, no_second)


def _hyperbolic(b: Builder, x: Value) -> tuple[Value, Value, Value]:
    """(sinh', cosh', scale) with sinh x = sinh'·scale and cosh x = cosh'·scale.

    Multiply by the sine or cosine of the angle first, then by scale.
    """
    far = b.compare("ogt", b.absf(x), b.like(FAR, x))
    near = b.select(far, b.subf(x, b.copysign(b.like(SHIFT, x), x)), x)
    scale = b.select(far, b.like(exp(SHIFT), x), b.like(1.0, x))
    return b.math("math.sinh", near), b.math("math.cosh", near), scale


def _product(b: Builder, x: Value, y: Value) -> Value:
    """x·y with the sign of the product; a zero y gives zero even if x is infinite."""
    flat = b.mulf(y, b.copysign(b.like(1.0, x), x))
    return b.select(b.compare("oeq", y, b.like(0.0, y)), flat, b.mulf(x, y))


def _half_exponentials(b: Builder, x: Value) -> Pair:
    """eˣ/2 and e⁻ˣ/2. The second is a quotient, so that it overflows if eˣ underflows, as in XLA:CPU."""
    exponential_ = b.math("math.exp", x)
    return times(b, exponential_, 0.5), b.divf(b.like(0.5, x), exponential_)


def sine(b: Builder, x: Pair) -> Pair:
    plus, minus = _half_exponentials(b, x[1])
    return b.mulf(b.math("math.sin", x[0]), b.addf(plus, minus)), b.mulf(b.math("math.cos", x[0]), b.subf(plus, minus))


def cosine(b: Builder, x: Pair) -> Pair:
    plus, minus = _half_exponentials(b, x[1])
    return b.mulf(b.math("math.cos", x[0]), b.addf(minus, plus)), b.mulf(b.math("math.sin", x[0]), b.subf(minus, plus))


@in_f64
def tanh(b: Builder, x: Pair) -> Pair:
    """(±m·(2 + m), 4·e·sin b·cos b)/(m² + 4·e·cos²b) with e = exp(−2|a|) and m = e − 1: sinh a·cosh a and so on, times
    4·e, so that nothing overflows.
    """
    real, imaginary = x
    magnitude = b.absf(real)
    twice = times(b, magnitude, -2.0)
    e, m = b.math("math.exp", twice), b.math("math.expm1", twice)
    sine_, cosine_ = b.math("math.sin", imaginary), b.math("math.cos", imaginary)
    fading, product = times(b, e, 4.0), b.mulf(sine_, cosine_)
    scale = b.fma(m, m, b.mulf(fading, b.mulf(cosine_, cosine_)))
    size = b.absf(b.divf(b.fma(m, m, times(b, m, 2.0)), scale))
    size = b.select(b.compare("ogt", magnitude, b.like(20.0, real)), b.like(1.0, real), size)
    result = b.copysign(size, real), b.divf(b.mulf(fading, product), scale)
    return _tanh_corners(b, x, product, result)


def _tanh_corners(b: Builder, x: Pair, product: Value, result: Pair) -> Pair:
    """b infinite or NaN (`product` is NaN): the real part is NaN for a finite a; the imaginary part is 0 for an
    infinite a.

    On the real axis the imaginary part is 0.
    """
    zero, lost, endless = b.like(0.0, product), b.is_nan(product), infinite(b, x[0])
    unsure = both(b, lost, b.compare("une", b.absf(x[0]), b.like(INF, product)))
    flat = either(b, b.compare("oeq", x[1], zero), both(b, lost, endless))
    return b.select(unsure, b.like(NAN, product), result[0]), b.select(flat, zero, result[1])


def tan(b: Builder, x: Pair) -> Pair:
    real, imaginary = tanh(b, (b.negf(x[1]), x[0]))
    return imaginary, b.negf(real)
