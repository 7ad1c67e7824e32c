"""atan2 by one division and a polynomial on ±tan(π/8); asin and acos use it."""

from __future__ import annotations

from ..core.builder import Builder, Value
from .math_support import horner, offset, scale, select_if, through_f64

TAN_PI_8 = 0.41421356237309503
PI, PI_LOW = 3.141592653589793, 1.2246467991473532e-16
# (atan t/t − 1)/t² as a polynomial of t², |t| ≤ tan(π/8); error 2^-59.3 after multiplication by t².
ATAN_POLY = (
    -0.33333333333333187,
    0.19999999999949722,
    -0.14285714279788264,
    0.11111110762214332,
    -0.09090897125541092,
    0.07692048629475495,
    -0.06662968845005696,
    0.058468821392160295,
    -0.05034669710094025,
    0.037944530237847066,
    -0.017773465535125398,
)


def _from_constant(b: Builder, high: float, low: float, x: Value) -> Value:
    """(high + low) − x."""
    return offset(b, b.subf(b.like(high, x), x), low)


@through_f64
def atan2(b: Builder, y: Value, x: Value) -> Value:
    ax, ay = b.absf(x), b.absf(y)
    steep = b.compare("ogt", ay, ax)
    large, small = b.select(steep, ay, ax), b.select(steep, ax, ay)
    # Scale, so that the sum cannot overflow and the quotient cannot underflow. Two zeros and two infinities are handled
    # separately.
    one = b.like(1.0, x)
    tiny, huge = b.compare("olt", large, b.like(2.0**-900, x)), b.compare("ogt", large, b.like(2.0**1000, x))
    factor = b.select(tiny, b.like(2.0**100, x), b.select(huge, b.like(0.5, x), one))
    both_infinite = b.compare("oeq", small, b.like(float("inf"), x))
    large = b.select(both_infinite, b.like(1.0, x), b.mulf(large, factor))
    small = b.select(both_infinite, b.like(1.0, x), b.mulf(small, factor))
    diagonal = b.compare("ogt", small, scale(b, large, TAN_PI_8))
    numerator = b.select(diagonal, b.subf(small, large), small)
    denominator = b.select(diagonal, b.addf(small, large), large)
    t = b.divf(numerator, select_if(b, "oeq", denominator, 0.0, 1.0, denominator))
    z = b.mulf(t, t)
    angle = b.fma(b.mulf(t, z), horner(b, z, ATAN_POLY), t)
    angle = b.select(diagonal, b.addf(b.like(PI / 4, x), offset(b, angle, PI_LOW / 4)), angle)
    angle = b.select(steep, _from_constant(b, PI / 2, PI_LOW / 2, angle), angle)
    negative = b.compare("olt", b.copysign(b.like(1.0, x), x), b.like(0.0, x))
    angle = b.select(negative, _from_constant(b, PI, PI_LOW, angle), angle)
    return b.select(b.compare("uno", x, y), b.like(float("nan"), x), b.copysign(angle, y))


def _cofactor(b: Builder, x: Value) -> Value:
    """√(1 − x²)."""
    one = b.like(1.0, x)
    return b.op("math.sqrt", b.mulf(b.subf(one, x), b.addf(one, x)))


@through_f64
def asin(b: Builder, x: Value) -> Value:
    return atan2(b, x, _cofactor(b, x))


@through_f64
def acos(b: Builder, x: Value) -> Value:
    return atan2(b, _cofactor(b, x), x)
