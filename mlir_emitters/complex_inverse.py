"""Inverse trigonometric and hyperbolic functions of complex numbers; Kahan's forms lose nothing near branch points."""

from __future__ import annotations

from collections.abc import Callable

from .builder import Builder, Value
from .complex_math import (
    INF,
    NAN,
    Pair,
    add,
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
    """−i·log((x + iy)/√(x² + y²)) in the component type: squares overflow, and near the unit circle little of the
    imaginary part survives. That is what XLA:CPU gives."""
    zero = b.like(0.0, x[0])
    square = add(b, _square(b, x), _square(b, y))
    turned = b.subf(b.mulf(zero, y[0]), y[1]), b.addf(y[0], b.mulf(y[1], zero))
    quotient = divide(b, add(b, x, turned), _polar_sqrt(b, square))
    size = _scaled_magnitude(b, quotient, lambda v: b.op("math.sqrt", v), lambda v: v)
    log_size = widened(b, "math.log", size)
    angle = widened(b, "math.atan2", quotient[1], quotient[0])
    return b.addf(b.mulf(zero, log_size), angle), b.subf(b.mulf(zero, angle), log_size)


def _square(b: Builder, x: Pair) -> Pair:
    product = b.mulf(x[1], x[0])  # has two uses and is not contracted into the sum
    return b.fma(x[0], x[0], b.negf(b.mulf(x[1], x[1]))), b.addf(product, product)


def _scaled_magnitude(b: Builder, x: Pair, root: Callable[[Value], Value], outer: Callable[[Value], Value]) -> Value:
    """outer(max)·root(1 + (min/max)²), min where that is NaN."""
    first, second = b.absf(x[0]), b.absf(x[1])
    large, small = b.maxf(first, second), b.minf(first, second)
    ratio = b.divf(small, large)
    value = b.mulf(outer(large), root(b.fma(ratio, ratio, b.like(1.0, ratio))))
    return b.select(b.is_nan(value), small, value)


def _fourth_root(b: Builder, x: Value) -> Value:
    """Rightly rounded for f32; of f64 the C library's power, which two square roots miss by a bit."""
    if x.type != b.types.f32:
        return libm(b, "pow", x, b.like(0.25, x))
    return b.truncate(b.op("math.sqrt", b.op("math.sqrt", b.extend(x))), b.types.f32)


def _polar_sqrt(b: Builder, x: Pair) -> Pair:
    """√|x|·(cos + i·sin)(arg x/2), infinite where a part is; but 0 + i·inf for −inf."""
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


def _roots(b: Builder, x: Pair) -> tuple[Pair, Pair]:
    """(√(1 − x), √(1 + x))."""
    one = b.like(1.0, x[0])
    return principal_root(b, (b.subf(one, x[0]), b.negf(x[1]))), principal_root(b, (b.addf(one, x[0]), x[1]))


def _cross(b: Builder, x: Pair, y: Pair) -> Value:
    """The imaginary part of conj(x)·y."""
    return b.subf(b.mulf(x[0], y[1]), b.mulf(x[1], y[0]))


@in_f64
def acos(b: Builder, x: Pair) -> Pair:
    minus, plus = _roots(b, x)
    return times(b, b.math("math.atan2", minus[0], plus[0]), 2.0), b.math("math.asinh", _cross(b, plus, minus))


@in_f64
def asin(b: Builder, x: Pair) -> Pair:
    minus, plus = _roots(b, x)
    product = b.subf(b.mulf(minus[0], plus[0]), b.mulf(minus[1], plus[1]))
    return b.math("math.atan2", x[0], product), b.math("math.asinh", _cross(b, minus, plus))


@in_f64
def acosh(b: Builder, x: Pair) -> Pair:
    one = b.like(1.0, x[0])
    below, above = principal_root(b, (b.subf(x[0], one), x[1])), principal_root(b, (b.addf(x[0], one), x[1]))
    product = b.addf(b.mulf(below[0], above[0]), b.mulf(below[1], above[1]))
    return b.math("math.asinh", product), times(b, b.math("math.atan2", below[1], above[0]), 2.0)


def asinh(b: Builder, x: Pair) -> Pair:
    real, imaginary = asin(b, (b.negf(x[1]), x[0]))
    return imaginary, b.negf(real)


@in_f64
def atanh(b: Builder, x: Pair) -> Pair:
    """¼·log1p(4|a|/((1 − |a|)² + b²)) with the sign of a, and half the angle of (1 − a)(1 + a) − b² + 2ib."""
    real, imaginary = x
    size, one = b.absf(real), b.like(1.0, real)
    gap = b.subf(one, size)
    distance = b.fma(gap, gap, b.mulf(imaginary, imaginary))
    ratio = b.divf(times(b, size, 4.0), distance)
    far = either(b, infinite(b, distance), infinite(b, size))
    ratio = b.select(far, b.like(0.0, ratio), ratio)
    first = b.copysign(times(b, b.math("math.log1p", ratio), 0.25), real)
    width = b.subf(b.mulf(gap, b.addf(one, size)), b.mulf(imaginary, imaginary))
    angle = times(b, b.math("math.atan2", times(b, imaginary, 2.0), b.select(far, b.like(-INF, width), width)), 0.5)
    return first, angle
