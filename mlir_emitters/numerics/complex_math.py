"""Complex arithmetic and functions on (real, imaginary) pairs.

c64 functions are computed in f64 and rounded once, except where XLA's own overflow behaviour is visible (division,
atan2).
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial

from ..core.builder import Builder, Value
from ..core.graph import Node

Pair = tuple[Value, Value]
INF, NAN = float("inf"), float("nan")


def in_f64(function: Callable[..., Pair]) -> Callable[..., Pair]:
    """Evaluate a function on f64 pairs and round its result to the type of the operands."""

    def wrapped(b: Builder, *operands: Pair) -> Pair:
        if operands[0][0].type != b.types.f32:
            return function(b, *operands)
        real, imaginary = function(b, *((b.extend(re), b.extend(im)) for re, im in operands))
        return b.truncate(real, b.types.f32), b.truncate(imaginary, b.types.f32)

    return wrapped


def times(b: Builder, x: Value, factor: float) -> Value:
    return b.mulf(x, b.like(factor, x))


def plus(b: Builder, x: Value, amount: float) -> Value:
    return b.addf(x, b.like(amount, x))


def infinite(b: Builder, x: Value) -> Value:
    return b.compare("oeq", b.absf(x), b.like(INF, x))


def finite(b: Builder, x: Value) -> Value:
    return b.compare("olt", b.absf(x), b.like(INF, x))


def both(b: Builder, x: Value, y: Value) -> Value:
    return b.binary("andi", x, y)


def either(b: Builder, x: Value, y: Value) -> Value:
    return b.binary("ori", x, y)


def choose(b: Builder, condition: Value, x: Pair, y: Pair) -> Pair:
    return b.select(condition, x[0], y[0]), b.select(condition, x[1], y[1])


def _nan_if(b: Builder, condition: Value, x: Pair) -> Pair:
    nan = b.like(NAN, x[0])
    return choose(b, condition, (nan, nan), x)


# Arithmetic ---------------------------------------------------------------------------------------------------------


def add(b: Builder, x: Pair, y: Pair) -> Pair:
    return b.addf(x[0], y[0]), b.addf(x[1], y[1])


def subtract(b: Builder, x: Pair, y: Pair) -> Pair:
    return b.subf(x[0], y[0]), b.subf(x[1], y[1])


def negate(b: Builder, x: Pair) -> Pair:
    return b.negf(x[0]), b.negf(x[1])


def multiply(b: Builder, x: Pair, y: Pair) -> Pair:
    """(p + iq)(c + id). The products with c are fused into the sums, as in XLA: they overflow only in the sums."""
    return _product(b, x, y, b.fused)


def product_in_sum(b: Builder, x: Pair, y: Pair) -> Pair:
    """As `multiply`, for one of many terms of a sum: fused only where the target has an instruction for it."""
    return _product(b, x, y, b.fma)


def _product(b: Builder, x: Pair, y: Pair, fma: Callable[[Value, Value, Value], Value]) -> Pair:
    (p, q), (c, d) = x, y
    if b.strict:
        return b.subf(b.mulf(p, c), b.mulf(q, d)), b.addf(b.mulf(q, c), b.mulf(p, d))
    return fma(p, c, b.negf(b.mulf(q, d))), fma(q, c, b.mulf(p, d))


def divide(b: Builder, x: Pair, y: Pair) -> Pair:
    """Smith's algorithm, then Annex G's rules for zero and infinite operands if both parts are NaN."""
    (p, q), (c, d) = x, y
    wide = b.compare("oge", b.absf(c), b.absf(d))
    large, small = b.select(wide, c, d), b.select(wide, d, c)
    ratio = b.divf(small, large)
    scale = b.fused(small, ratio, large)
    first, second = b.select(wide, p, q), b.select(wide, q, p)
    real = b.divf(b.fused(second, ratio, first), scale)
    minus = b.negf(p)  # q − p·ratio or q·ratio − p: negating either would change the sign of zeros
    factor, term = b.select(wide, minus, q), b.select(wide, q, minus)
    imaginary = b.divf(b.fused(factor, ratio, term), scale)
    return _recover(b, x, y, (real, imaginary))


def _recover(b: Builder, x: Pair, y: Pair, quotient: Pair) -> Pair:
    """Annex G recovery when both parts are NaN. Later cases override earlier ones."""
    (p, q), (c, d) = x, y
    lost = both(b, b.is_nan(quotient[0]), b.is_nan(quotient[1]))
    infinity, zero = b.like(INF, p), b.like(0.0, p)
    # finite / infinity
    fades = both(b, either(b, infinite(b, c), infinite(b, d)), both(b, finite(b, p), finite(b, q)))
    c1, d1 = _unit_of_infinity(b, c), _unit_of_infinity(b, d)
    faded = (b.mulf(zero, b.addf(b.mulf(p, c1), b.mulf(q, d1))), b.mulf(zero, b.subf(b.mulf(q, c1), b.mulf(p, d1))))
    result = choose(b, fades, faded, quotient)
    # infinity / finite
    grows = both(b, either(b, infinite(b, p), infinite(b, q)), both(b, finite(b, c), finite(b, d)))
    p1, q1 = _unit_of_infinity(b, p), _unit_of_infinity(b, q)
    grown = (
        b.mulf(infinity, b.addf(b.mulf(p1, c), b.mulf(q1, d))),
        b.mulf(infinity, b.subf(b.mulf(q1, c), b.mulf(p1, d))),
    )
    result = choose(b, grows, grown, result)
    # something / 0
    by_zero = both(b, b.compare("oeq", c, zero), b.compare("oeq", d, zero))
    some = either(b, b.compare("ord", p, p), b.compare("ord", q, q))
    signed = b.copysign(infinity, c)
    result = choose(b, both(b, by_zero, some), (b.mulf(signed, p), b.mulf(signed, q)), result)
    return choose(b, lost, result, quotient)


def _unit_of_infinity(b: Builder, x: Value) -> Value:
    """±1 for an infinity, ±0 for other numbers."""
    return b.copysign(b.select(infinite(b, x), b.like(1.0, x), b.like(0.0, x)), x)


ORDERS = {"LT": ("olt", "olt"), "LE": ("olt", "ole"), "GT": ("ogt", "ogt"), "GE": ("ogt", "oge")}
"""Direction → how the real parts must compare, and the imaginary parts where the real parts are equal."""


def compare(b: Builder, node: Node, x: Pair, y: Pair) -> Value:
    return compare_in(b, node.attributes["direction"], x, y)


def compare_in(b: Builder, direction: str, x: Pair, y: Pair) -> Value:
    """Equality of both parts, or the lexicographic order of (real, imaginary)."""
    if direction == "EQ":
        return both(b, b.compare("oeq", x[0], y[0]), b.compare("oeq", x[1], y[1]))
    if direction == "NE":
        return either(b, b.compare("une", x[0], y[0]), b.compare("une", x[1], y[1]))
    first, second = ORDERS[direction]
    tie = both(b, b.compare("oeq", x[0], y[0]), b.compare(second, x[1], y[1]))
    return either(b, b.compare(first, x[0], y[0]), tie)


def maximum(b: Builder, x: Pair, y: Pair) -> Pair:
    """y unless x >= y; so y where they are unordered."""
    return choose(b, compare_in(b, "GE", x, y), x, y)


def minimum(b: Builder, x: Pair, y: Pair) -> Pair:
    """y unless x <= y; so y where they are unordered."""
    return choose(b, compare_in(b, "LE", x, y), x, y)


def clamp(b: Builder, low: Pair, x: Pair, high: Pair) -> Pair:
    return minimum(b, maximum(b, low, x), high)


# Magnitude ----------------------------------------------------------------------------------------------------------


def _ordered(b: Builder, x: Pair) -> tuple[Value, Value]:
    """(larger, smaller) of |re| and |im|."""
    p, q = b.absf(x[0]), b.absf(x[1])
    swap = b.compare("ogt", q, p)
    return b.select(swap, q, p), b.select(swap, p, q)


def _hypotenuse(b: Builder, x: Pair) -> Value:
    """|x| without overflow of intermediates; NaN if a part is NaN."""
    large, small = _ordered(b, x)
    degenerate = either(b, b.compare("oeq", large, b.like(0.0, large)), infinite(b, large))
    ratio = b.divf(small, b.select(degenerate, b.like(1.0, large), large))
    value = b.mulf(large, b.op("math.sqrt", plus(b, b.mulf(ratio, ratio), 1.0)))
    value = b.select(degenerate, large, value)
    return b.select(b.compare("uno", x[0], x[1]), b.like(NAN, value), value)


def absolute(b: Builder, x: Pair) -> Value:
    """|x|; NaN if a part is NaN. For c64 it is computed in f64, where squares of f32 are exact and cannot overflow."""
    if x[0].type != b.types.f32:
        return _hypotenuse(b, x)
    squares = [b.mulf(wide, wide) for wide in map(b.extend, x)]
    return b.truncate(b.op("math.sqrt", b.addf(*squares)), b.types.f32)


def sign(b: Builder, x: Pair) -> Pair:
    """x/|x|; zeros are returned unchanged."""
    size = absolute(b, x)
    return choose(b, b.compare("oeq", size, b.like(0.0, size)), x, (b.divf(x[0], size), b.divf(x[1], size)))


def sqrt(b: Builder, x: Pair) -> Pair:
    """The principal root. An imaginary part of −0 counts as +0, so the cut belongs to the upper half plane."""
    real, imaginary = principal_root(b, x)
    flat = b.compare("oeq", x[1], b.like(0.0, x[1]))
    return real, b.select(flat, b.absf(imaginary), imaginary)


@in_f64
def principal_root(b: Builder, x: Pair) -> Pair:
    """t = √((|x| + |re|)/2) is one part, im/2t the other. On the cut the sign of a zero im decides."""
    real, imaginary = x
    size = b.maxf(b.absf(real), b.absf(imaginary))
    tiny, huge = b.compare("olt", size, b.like(2.0**-900, size)), b.compare("ogt", size, b.like(2.0**900, size))
    scale = _chosen(b, tiny, 2.0**200, huge, 2.0**-200)  # prevents overflow and underflow
    root_of_scale = _chosen(b, tiny, 2.0**-100, huge, 2.0**100)
    scaled = b.mulf(real, scale), b.mulf(imaginary, scale)
    total = times(b, b.addf(_hypotenuse(b, scaled), b.absf(scaled[0])), 0.5)
    t = b.mulf(b.op("math.sqrt", total), root_of_scale)
    is_zero = b.compare("oeq", t, b.like(0.0, t))
    other = b.divf(imaginary, times(b, b.select(is_zero, b.like(1.0, t), t), 2.0))
    forward, backward = (t, other), (b.absf(other), b.copysign(t, imaginary))
    result = choose(b, b.compare("oge", real, b.like(0.0, real)), forward, backward)
    endless = both(b, infinite(b, imaginary), b.compare("ord", real, real))
    result = choose(b, endless, (b.like(INF, t), imaginary), result)
    return _nan_if(b, b.compare("uno", real, imaginary), result)


def _chosen(b: Builder, first: Value, one: float, second: Value, other: float) -> Value:
    """`one` if `first`, `other` if `second`, 1 if neither, as f64."""
    return b.select(first, b.f64(one), b.select(second, b.f64(other), b.f64(1.0)))


def rsqrt(b: Builder, x: Pair) -> Pair:
    """1/√|x| with minus half the angle of x. (∞, NaN) at 0; zeros for infinities."""
    real, imaginary = x
    zero, one = b.like(0.0, real), b.like(1.0, real)
    large, small = _ordered(b, x)
    ratio = b.divf(small, large)
    scale = b.op("math.sqrt", b.op("math.sqrt", plus(b, b.mulf(ratio, ratio), 1.0)))
    size = b.divf(one, b.mulf(b.op("math.sqrt", large), scale))  # |x| may overflow
    angle = times(b, angle_of(b, x), -0.5)
    result = (b.mulf(size, b.math("math.cos", angle)), b.mulf(size, b.math("math.sin", angle)))
    endless = either(b, infinite(b, real), both(b, infinite(b, imaginary), b.is_nan(real)))
    result = choose(b, endless, (b.copysign(zero, real), b.negf(b.copysign(zero, imaginary))), result)
    is_zero = both(b, b.compare("oeq", real, zero), b.compare("oeq", imaginary, zero))
    return choose(b, is_zero, (b.like(INF, real), b.like(NAN, real)), result)


# Exponentials and logarithms ----------------------------------------------------------------------------------------


LARGEST_EXPONENT = 705.0
"""e to this power is a finite f64, with room to spare (the limit is 709.78)."""


@in_f64
def exponential(b: Builder, x: Pair) -> Pair:
    """e^a once, or e^(a/2) twice where e^a alone might overflow. b = ±0 gives an imaginary +0."""
    real, imaginary = x
    in_halves = b.compare("ogt", real, b.like(LARGEST_EXPONENT, real))
    power = b.math("math.exp", b.select(in_halves, times(b, real, 0.5), real))
    again = b.select(in_halves, power, b.like(1.0, real))
    first, second = (b.mulf(b.mulf(power, b.math(f"math.{name}", imaginary)), again) for name in ("cos", "sin"))
    zero = b.like(0.0, real)
    return first, b.select(b.compare("oeq", imaginary, zero), zero, second)


def exponential_minus_one(b: Builder, x: Pair) -> Pair:
    """(expm1(a)·cos b + (cos b − 1), (expm1(a) + 1)·sin b). The imaginary part is 0 if eᵃ vanishes beside 1."""
    real, imaginary = x
    less = widened(b, "math.expm1", real)
    cosine_less = _cosine_less_one(b, imaginary)
    turned = b.mulf(plus(b, less, 1.0), widened(b, "math.sin", imaginary))
    zero = b.like(0.0, real)
    turned = b.select(b.compare("oeq", imaginary, zero), zero, turned)
    return b.fused(less, plus(b, cosine_less, 1.0), cosine_less), turned


def _cosine_less_one(b: Builder, x: Value) -> Value:
    """cos x − 1: the series Σ (−x²)ᵏ/(2k)! for |x| < π/4, a difference beyond, which may be exactly −1."""
    square = b.mulf(x, x)
    last = 9 if x.type == b.types.f64 else 6
    series = b.like(0.0, x)
    for k in range(last, 1, -1):
        series = b.fma(series, square, b.like((-1.0) ** k / factorial(2 * k), x))
    near = b.fma(b.mulf(square, square), series, times(b, square, -0.5))
    far = plus(b, widened(b, "math.cos", x), -1.0)
    return b.select(b.compare("oge", square, b.like(0.61685, x)), far, near)


def libm(b: Builder, name: str, *operands: Value) -> Value:
    """A function of the C library on f64."""
    types = [value.type for value in operands]
    return b.call(b.external(name, types, types[0]), types[0], list(operands))


def widened(b: Builder, name: str, *operands: Value) -> Value:
    """A math function, almost always correctly rounded: f32 is evaluated in f64, f64 by the C library."""
    if operands[0].type != b.types.f32:
        return libm(b, name.removeprefix("math."), *operands)
    return b.truncate(b.math(name, *map(b.extend, operands)), b.types.f32)


def angle_of(b: Builder, x: Pair) -> Value:
    """The angle of x. For c128 it is the C library's, as in XLA:CPU: on the cut, a flushed imaginary part decides its
    sign.
    """
    return widened(b, "math.atan2", x[1], x[0])


def in_f64_real(function: Callable[[Builder, Pair], Value]) -> Callable[[Builder, Pair], Value]:
    """`in_f64` for a function with a real result."""

    def wrapped(b: Builder, x: Pair) -> Value:
        if x[0].type != b.types.f32:
            return function(b, x)
        return b.truncate(function(b, (b.extend(x[0]), b.extend(x[1]))), b.types.f32)

    return wrapped


def log(b: Builder, x: Pair) -> Pair:
    return _log_magnitude(b, x), angle_of(b, x)


@in_f64_real
def _log_magnitude(b: Builder, x: Pair) -> Value:
    large, small = _ordered(b, x)
    degenerate = either(b, b.compare("oeq", large, b.like(0.0, large)), infinite(b, large))
    ratio = b.select(degenerate, b.like(0.0, small), b.divf(small, large))
    far = b.addf(b.math("math.log", large), times(b, b.math("math.log1p", b.mulf(ratio, ratio)), 0.5))
    square = b.fma(small, small, b.mulf(plus(b, large, -1.0), plus(b, large, 1.0)))
    near = times(b, b.math("math.log1p", square), 0.5)
    is_near = both(b, b.compare("ogt", large, b.like(0.5, large)), b.compare("olt", large, b.like(2.0, large)))
    result = b.select(is_near, near, far)
    return b.select(b.compare("uno", x[0], x[1]), b.like(NAN, result), result)


def log_plus_one(b: Builder, x: Pair) -> Pair:
    """log(1 + x). The real part is −∞ if |1 + x|² underflows."""
    shifted = plus(b, x[0], 1.0), x[1]
    square = b.fused(shifted[0], shifted[0], b.mulf(x[1], x[1]))
    vanishes = b.compare("oeq", square, b.like(0.0, square))
    return b.select(vanishes, b.like(-INF, square), _half_log_plus_one(b, x)), angle_of(b, shifted)


@in_f64_real
def _half_log_plus_one(b: Builder, x: Pair) -> Value:
    """½·log1p(a(2 + a) + b²) for small arguments, log |1 + x| for large ones."""
    real, imaginary = x
    far = _log_magnitude(b, (plus(b, real, 1.0), imaginary))
    square = b.fma(imaginary, imaginary, b.mulf(real, plus(b, real, 2.0)))
    near = times(b, b.math("math.log1p", square), 0.5)
    limit = b.like(0.5, real)
    small = both(b, b.compare("olt", b.absf(real), limit), b.compare("olt", b.absf(imaginary), limit))
    return b.select(small, near, far)


def power(b: Builder, x: Pair, y: Pair) -> Pair:
    """For y = c + i·d: absolute value |x|^c·e^(−d·arg x), angle c·arg x + d·log |x|. 0 to the 0 is 1."""
    (p, q), (c, d) = x, y
    zero, one, infinity = b.like(0.0, p), b.like(1.0, p), b.like(INF, p)
    size, angle = absolute(b, x), angle_of(b, x)
    grown = b.mulf(b.math("math.powf", size, c), b.math("math.exp", b.negf(b.mulf(d, angle))))
    turn = b.fused(c, angle, b.mulf(d, b.math("math.log", size)))  # the second product would overflow first
    result = (b.mulf(grown, b.math("math.cos", turn)), b.mulf(grown, b.math("math.sin", turn)))
    real_base, real_exponent = b.compare("oeq", q, zero), b.compare("oeq", d, zero)
    endless = both(b, both(b, b.compare("oeq", p, infinity), real_base), real_exponent)
    rises, falls = b.compare("ogt", c, zero), b.compare("olt", c, zero)
    result = choose(b, both(b, endless, rises), (infinity, zero), result)
    nothing = both(b, both(b, b.compare("oeq", size, zero), real_exponent), rises)
    result = choose(b, either(b, nothing, both(b, endless, falls)), (zero, zero), result)
    unit = both(b, b.compare("oeq", p, one), real_base)
    return choose(b, either(b, unit, both(b, b.compare("oeq", c, zero), real_exponent)), (one, zero), result)


def cbrt(b: Builder, x: Pair) -> Pair:
    third = (b.like(1.0 / 3.0, x[0]), b.like(0.0, x[0]))
    return power(b, x, third)


def logistic(b: Builder, x: Pair) -> Pair:
    """1/(1 + e⁻ˣ)."""
    real, imaginary = exponential(b, negate(b, x))
    return divide(b, (b.like(1.0, real), b.like(0.0, real)), (plus(b, real, 1.0), imaginary))
