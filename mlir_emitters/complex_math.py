"""Complex arithmetic and functions on (real, imaginary) pairs.

c64 functions compute in f64 and round once, unless XLA's own overflow behaviour shows (division, atan2).
"""

from __future__ import annotations

from collections.abc import Callable

from .builder import Builder, Value
from .reader import Node

Pair = tuple[Value, Value]
INF, NAN = float("inf"), float("nan")


def in_f64(function: Callable[..., Pair]) -> Callable[..., Pair]:
    """Run on f64 pairs, whatever the operands are."""
    def wrapped(b: Builder, *operands: Pair) -> Pair:
        if operands[0][0].type != b.types.f32:
            return function(b, *operands)
        real, imaginary = function(b, *((b.extend(re), b.extend(im)) for re, im in operands))
        return b.truncate(real, b.types.f32), b.truncate(imaginary, b.types.f32)
    return wrapped


def _times(b: Builder, x: Value, factor: float) -> Value:
    return b.mulf(x, b.like(factor, x))


def _plus(b: Builder, x: Value, amount: float) -> Value:
    return b.addf(x, b.like(amount, x))


def _infinite(b: Builder, x: Value) -> Value:
    return b.compare("oeq", b.absf(x), b.like(INF, x))


def _finite(b: Builder, x: Value) -> Value:
    return b.compare("olt", b.absf(x), b.like(INF, x))


def _and(b: Builder, x: Value, y: Value) -> Value:
    return b.binary("andi", x, y)


def _or(b: Builder, x: Value, y: Value) -> Value:
    return b.binary("ori", x, y)


def _choose(b: Builder, condition: Value, x: Pair, y: Pair) -> Pair:
    return b.select(condition, x[0], y[0]), b.select(condition, x[1], y[1])


def _nan_if(b: Builder, condition: Value, x: Pair) -> Pair:
    nan = b.like(NAN, x[0])
    return _choose(b, condition, (nan, nan), x)


# Arithmetic ------------------------------------------------------------------------------------------------------------------

def add(b: Builder, x: Pair, y: Pair) -> Pair:
    return b.addf(x[0], y[0]), b.addf(x[1], y[1])


def subtract(b: Builder, x: Pair, y: Pair) -> Pair:
    return b.subf(x[0], y[0]), b.subf(x[1], y[1])


def negate(b: Builder, x: Pair) -> Pair:
    return b.negf(x[0]), b.negf(x[1])


def multiply(b: Builder, x: Pair, y: Pair) -> Pair:
    real = b.subf(b.mulf(x[0], y[0]), b.mulf(x[1], y[1]))
    return real, b.addf(b.mulf(x[0], y[1]), b.mulf(x[1], y[0]))


def divide(b: Builder, x: Pair, y: Pair) -> Pair:
    """Smith's method, then C's rules for zero and infinite operands where both parts came out NaN."""
    (p, q), (c, d) = x, y
    wide = b.compare("oge", b.absf(c), b.absf(d))
    large, small = b.select(wide, c, d), b.select(wide, d, c)
    ratio = b.divf(small, large)
    if not b.strict:  # XLA:CPU flushes it, which shows beside infinities
        least = b.like(2.0**-126 if ratio.type == b.types.f32 else 2.0**-1022, ratio)
        ratio = b.select(b.compare("olt", b.absf(ratio), least), b.copysign(b.like(0.0, ratio), ratio), ratio)
    scale = b.fma(small, ratio, large)
    first, second = b.select(wide, p, q), b.select(wide, q, p)
    real = b.divf(b.fma(second, ratio, first), scale)
    crossed = b.fma(b.negf(first), ratio, second)
    imaginary = b.divf(b.select(wide, crossed, b.negf(crossed)), scale)
    return _recover(b, x, y, (real, imaginary))


def _recover(b: Builder, x: Pair, y: Pair, quotient: Pair) -> Pair:
    (p, q), (c, d) = x, y
    lost = _and(b, b.is_nan(quotient[0]), b.is_nan(quotient[1]))
    infinity, zero = b.like(INF, p), b.like(0.0, p)
    # something / 0
    by_zero = _and(b, b.compare("oeq", c, zero), b.compare("oeq", d, zero))
    some = _or(b, b.compare("ord", p, p), b.compare("ord", q, q))
    signed = b.copysign(infinity, c)
    result = _choose(b, _and(b, by_zero, some), (b.mulf(signed, p), b.mulf(signed, q)), quotient)
    # infinity / finite
    grows = _and(b, _or(b, _infinite(b, p), _infinite(b, q)), _and(b, _finite(b, c), _finite(b, d)))
    p1, q1 = _unit_of_infinity(b, p), _unit_of_infinity(b, q)
    grown = (b.mulf(infinity, b.addf(b.mulf(p1, c), b.mulf(q1, d))), b.mulf(infinity, b.subf(b.mulf(q1, c), b.mulf(p1, d))))
    result = _choose(b, grows, grown, result)
    # finite / infinity
    fades = _and(b, _or(b, _infinite(b, c), _infinite(b, d)), _and(b, _finite(b, p), _finite(b, q)))
    c1, d1 = _unit_of_infinity(b, c), _unit_of_infinity(b, d)
    faded = (b.mulf(zero, b.addf(b.mulf(p, c1), b.mulf(q, d1))), b.mulf(zero, b.subf(b.mulf(q, c1), b.mulf(p, d1))))
    result = _choose(b, fades, faded, result)
    return _choose(b, lost, result, quotient)


def _unit_of_infinity(b: Builder, x: Value) -> Value:
    """±1 for an infinity, ±0 otherwise."""
    return b.copysign(b.select(_infinite(b, x), b.like(1.0, x), b.like(0.0, x)), x)


def compare(b: Builder, node: Node, x: Pair, y: Pair) -> Value:
    if node.attributes["direction"] == "EQ":
        return _and(b, b.compare("oeq", x[0], y[0]), b.compare("oeq", x[1], y[1]))
    return _or(b, b.compare("une", x[0], y[0]), b.compare("une", x[1], y[1]))


# Magnitude -------------------------------------------------------------------------------------------------------------------

def _ordered(b: Builder, x: Pair) -> tuple[Value, Value]:
    """(larger, smaller) of the parts' magnitudes."""
    p, q = b.absf(x[0]), b.absf(x[1])
    swap = b.compare("ogt", q, p)
    return b.select(swap, q, p), b.select(swap, p, q)


def _hypotenuse(b: Builder, x: Pair) -> Value:
    """|x| without overflow on the way; NaN if a part is NaN."""
    large, small = _ordered(b, x)
    degenerate = _or(b, b.compare("oeq", large, b.like(0.0, large)), _infinite(b, large))
    ratio = b.divf(small, b.select(degenerate, b.like(1.0, large), large))
    value = b.mulf(large, b.op("math.sqrt", _plus(b, b.mulf(ratio, ratio), 1.0)))
    value = b.select(degenerate, large, value)
    return b.select(b.compare("uno", x[0], x[1]), b.like(NAN, value), value)


def absolute(b: Builder, x: Pair) -> Value:
    if x[0].type == b.types.f32:
        return b.truncate(_hypotenuse(b, (b.extend(x[0]), b.extend(x[1]))), b.types.f32)
    return _hypotenuse(b, x)


def sign(b: Builder, x: Pair) -> Pair:
    """x/|x|, and 0 for 0."""
    size = absolute(b, x)
    return _choose(b, b.compare("oeq", size, b.like(0.0, size)), x, (b.divf(x[0], size), b.divf(x[1], size)))


@in_f64
def sqrt(b: Builder, x: Pair) -> Pair:
    """t = √((|x| + |re|)/2) is one part, im/2t the other."""
    real, imaginary = x
    quarter = (_times(b, real, 0.25), _times(b, imaginary, 0.25))  # so that |x| + |re| stays finite
    total = b.addf(_hypotenuse(b, quarter), b.absf(quarter[0]))
    t = b.op("math.sqrt", _times(b, total, 2.0))
    is_zero = b.compare("oeq", t, b.like(0.0, t))
    other = b.divf(imaginary, _times(b, b.select(is_zero, b.like(1.0, t), t), 2.0))
    forward, backward = (t, other), (b.absf(other), b.copysign(t, imaginary))
    result = _choose(b, b.compare("oge", real, b.like(0.0, real)), forward, backward)
    both = _and(b, _infinite(b, imaginary), b.compare("ord", real, real))
    result = _choose(b, both, (b.like(INF, t), imaginary), result)
    return _nan_if(b, b.compare("uno", real, imaginary), result)


@in_f64
def rsqrt(b: Builder, x: Pair) -> Pair:
    """1/√|x|, turned by half the angle backwards; infinity and NaN at 0, a zero for infinities."""
    real, imaginary = x
    zero = b.like(0.0, real)
    size = b.divf(b.like(1.0, real), b.op("math.sqrt", _hypotenuse(b, x)))
    angle = _times(b, b.math("math.atan2", imaginary, real), -0.5)
    result = (b.mulf(size, b.math("math.cos", angle)), b.mulf(size, b.math("math.sin", angle)))
    endless = _or(b, _infinite(b, real), _and(b, _infinite(b, imaginary), b.is_nan(real)))
    result = _choose(b, endless, (b.copysign(zero, real), b.negf(b.copysign(zero, imaginary))), result)
    is_zero = _and(b, b.compare("oeq", real, zero), b.compare("oeq", imaginary, zero))
    return _choose(b, is_zero, (b.like(INF, real), b.like(NAN, real)), result)


# Exponentials and logarithms ---------------------------------------------------------------------------------------------------

def _scaled(b: Builder, exponent: Value, factor: Value) -> Value:
    """e^exponent · factor, in two halves; a zero factor stays zero."""
    half = b.math("math.exp", _times(b, exponent, 0.5))
    value = b.mulf(b.mulf(half, factor), half)
    return b.select(b.compare("oeq", factor, b.like(0.0, factor)), factor, value)


@in_f64
def exponential(b: Builder, x: Pair) -> Pair:
    real, imaginary = x
    result = (_scaled(b, real, b.math("math.cos", imaginary)), _scaled(b, real, b.math("math.sin", imaginary)))
    vanishes = _and(b, b.compare("oeq", real, b.like(-INF, real)), b.compare("ueq", imaginary, imaginary))
    vanishes = _and(b, vanishes, b.compare("uno", result[0], result[1]))
    zero = b.like(0.0, real)
    return _choose(b, vanishes, (zero, zero), result)


@in_f64
def exponential_minus_one(b: Builder, x: Pair) -> Pair:
    """expm1(a)·cos b + (cos b − 1), and (expm1(a) + 1)·sin b, which vanishes where eᵃ does against 1."""
    real, imaginary = x
    less = b.math("math.expm1", real)
    half = b.math("math.sin", _times(b, imaginary, 0.5))
    cosine_less = _times(b, b.mulf(half, half), -2.0)
    turned = b.mulf(_plus(b, less, 1.0), b.math("math.sin", imaginary))
    zero = b.like(0.0, real)
    turned = b.select(b.compare("oeq", imaginary, zero), zero, turned)
    return b.addf(b.mulf(less, _plus(b, cosine_less, 1.0)), cosine_less), turned


@in_f64
def log(b: Builder, x: Pair) -> Pair:
    large, small = _ordered(b, x)
    degenerate = _or(b, b.compare("oeq", large, b.like(0.0, large)), _infinite(b, large))
    ratio = b.select(degenerate, b.like(0.0, small), b.divf(small, large))
    far = b.addf(b.math("math.log", large), _times(b, b.math("math.log1p", b.mulf(ratio, ratio)), 0.5))
    square = b.fma(small, small, b.mulf(_plus(b, large, -1.0), _plus(b, large, 1.0)))
    near = _times(b, b.math("math.log1p", square), 0.5)
    is_near = _and(b, b.compare("ogt", large, b.like(0.5, large)), b.compare("olt", large, b.like(2.0, large)))
    result = (b.select(is_near, near, far), b.math("math.atan2", x[1], x[0]))
    return _nan_if(b, b.compare("uno", x[0], x[1]), result)


@in_f64
def log_plus_one(b: Builder, x: Pair) -> Pair:
    """½·log1p(a(2 + a) + b²) for small arguments, log(1 + x) for large ones."""
    real, imaginary = x
    far, angle = log(b, (_plus(b, real, 1.0), imaginary))
    square = b.fma(imaginary, imaginary, b.mulf(real, _plus(b, real, 2.0)))
    near = _times(b, b.math("math.log1p", square), 0.5)
    limit = b.like(0.5, real)
    small = _and(b, b.compare("olt", b.absf(real), limit), b.compare("olt", b.absf(imaginary), limit))
    return b.select(small, near, far), angle


@in_f64
def power(b: Builder, x: Pair, y: Pair) -> Pair:
    """|x|^c·e^(−d·arg x), turned by c·arg x + d·log |x|, for y = c + i·d; 0 to the 0 is 1."""
    (p, q), (c, d) = x, y
    zero, one, infinity = b.like(0.0, p), b.like(1.0, p), b.like(INF, p)
    size, angle = _hypotenuse(b, x), b.math("math.atan2", q, p)
    grown = b.mulf(b.math("math.powf", size, c), b.math("math.exp", b.negf(b.mulf(d, angle))))
    turn = b.addf(b.mulf(c, angle), b.mulf(d, b.math("math.log", size)))
    result = (b.mulf(grown, b.math("math.cos", turn)), b.mulf(grown, b.math("math.sin", turn)))
    real_base, real_exponent = b.compare("oeq", q, zero), b.compare("oeq", d, zero)
    endless = _and(b, _and(b, b.compare("oeq", p, infinity), real_base), real_exponent)
    rises, falls = b.compare("ogt", c, zero), b.compare("olt", c, zero)
    result = _choose(b, _and(b, endless, rises), (infinity, zero), result)
    nothing = _and(b, _and(b, b.compare("oeq", size, zero), real_exponent), rises)
    result = _choose(b, _or(b, nothing, _and(b, endless, falls)), (zero, zero), result)
    unit = _and(b, b.compare("oeq", p, one), real_base)
    return _choose(b, _or(b, unit, _and(b, b.compare("oeq", c, zero), real_exponent)), (one, zero), result)


@in_f64
def cbrt(b: Builder, x: Pair) -> Pair:
    third = (b.like(1.0 / 3.0, x[0]), b.like(0.0, x[0]))
    return power(b, x, third)


# Trigonometric and hyperbolic --------------------------------------------------------------------------------------------------

@in_f64
def sinh(b: Builder, x: Pair) -> Pair:
    real, imaginary = x
    return (b.mulf(b.math("math.sinh", real), b.math("math.cos", imaginary)),
            b.mulf(b.math("math.cosh", real), b.math("math.sin", imaginary)))


@in_f64
def cosh(b: Builder, x: Pair) -> Pair:
    real, imaginary = x
    return (b.mulf(b.math("math.cosh", real), b.math("math.cos", imaginary)),
            b.mulf(b.math("math.sinh", real), b.math("math.sin", imaginary)))


def _half_exponentials(b: Builder, x: Value) -> Pair:
    """eˣ/2 and e⁻ˣ/2, the second by division, so that it overflows where eˣ vanishes, as it does in XLA:CPU."""
    exponential_ = b.math("math.exp", x)
    if not b.strict:
        least = b.like(2.0**-126 if x.type == b.types.f32 else 2.0**-1022, x)
        exponential_ = b.select(b.compare("olt", exponential_, least), b.like(0.0, x), exponential_)
    return _times(b, exponential_, 0.5), b.divf(b.like(0.5, x), exponential_)


def sine(b: Builder, x: Pair) -> Pair:
    plus, minus = _half_exponentials(b, x[1])
    return b.mulf(b.math("math.sin", x[0]), b.addf(plus, minus)), b.mulf(b.math("math.cos", x[0]), b.subf(plus, minus))


def cosine(b: Builder, x: Pair) -> Pair:
    plus, minus = _half_exponentials(b, x[1])
    return b.mulf(b.math("math.cos", x[0]), b.addf(minus, plus)), b.mulf(b.math("math.sin", x[0]), b.subf(minus, plus))


@in_f64
def tanh(b: Builder, x: Pair) -> Pair:
    """(sinh a·cosh a, sin b·cos b)/(sinh²a + cos²b); for large |a| ±1 and 4·sin b·cos b·e^(−2|a|)."""
    real, imaginary = x
    magnitude = b.absf(real)
    is_large = b.compare("ogt", magnitude, b.like(20.0, real))
    bounded = b.select(is_large, b.copysign(b.like(20.0, real), real), real)
    s, c = b.math("math.sinh", bounded), b.math("math.cosh", bounded)
    sine_, cosine_ = b.math("math.sin", imaginary), b.math("math.cos", imaginary)
    product = b.mulf(sine_, cosine_)
    scale = b.fma(s, s, b.mulf(cosine_, cosine_))
    small = (b.divf(b.mulf(s, c), scale), b.divf(product, scale))
    fading = b.mulf(_times(b, product, 4.0), b.math("math.exp", _times(b, magnitude, -2.0)))
    fading = b.select(_infinite(b, real), b.copysign(b.like(0.0, real), product), fading)
    large = (b.copysign(b.like(1.0, real), real), fading)
    return _choose(b, is_large, large, small)


def tan(b: Builder, x: Pair) -> Pair:
    real, imaginary = tanh(b, (b.negf(x[1]), x[0]))
    return imaginary, b.negf(real)


def logistic(b: Builder, x: Pair) -> Pair:
    real, imaginary = tanh(b, (_times(b, x[0], 0.5), _times(b, x[1], 0.5)))
    return _plus(b, _times(b, real, 0.5), 0.5), _times(b, imaginary, 0.5)


def atan2(b: Builder, y: Pair, x: Pair) -> Pair:
    """−i·log((x + iy)/√(x² + y²)) in the component type: squares overflow, and near the unit circle little of the imaginary
    part survives. That is what XLA:CPU gives."""
    zero = b.like(0.0, x[0])
    square = add(b, _square(b, x), _square(b, y))
    turned = b.subf(b.mulf(zero, y[0]), y[1]), b.addf(y[0], b.mulf(y[1], zero))
    quotient = divide(b, add(b, x, turned), _polar_sqrt(b, square))
    size = _scaled_magnitude(b, quotient, lambda v: b.op("math.sqrt", v), lambda v: v)
    log_size = _widened(b, "math.log", size)
    angle = _widened(b, "math.atan2", quotient[1], quotient[0])
    return b.addf(b.mulf(zero, log_size), angle), b.subf(b.mulf(zero, angle), log_size)


def _square(b: Builder, x: Pair) -> Pair:
    product = b.mulf(x[1], x[0])
    return b.fma(x[0], x[0], b.negf(b.mulf(x[1], x[1]))), b.addf(product, product)


def _scaled_magnitude(b: Builder, x: Pair, root: Callable[[Value], Value], outer: Callable[[Value], Value]) -> Value:
    """outer(max)·root(1 + (min/max)²), min where that is NaN."""
    first, second = b.absf(x[0]), b.absf(x[1])
    large, small = b.maxf(first, second), b.minf(first, second)
    ratio = b.divf(small, large)
    value = b.mulf(outer(large), root(b.fma(ratio, ratio, b.like(1.0, ratio))))
    return b.select(b.is_nan(value), small, value)


def _widened(b: Builder, name: str, *operands: Value) -> Value:
    """A math function of f32 computed in f64: the last bit matters here."""
    if operands[0].type != b.types.f32:
        return b.math(name, *operands)
    return b.truncate(b.math(name, *map(b.extend, operands)), b.types.f32)


def _fourth_root(b: Builder, x: Value) -> Value:
    wide = b.extend(x) if x.type == b.types.f32 else x
    root = b.op("math.sqrt", b.op("math.sqrt", wide))
    return b.truncate(root, b.types.f32) if x.type == b.types.f32 else root


def _polar_sqrt(b: Builder, x: Pair) -> Pair:
    """√|x|·(cos + i·sin)(arg x/2), infinite where a part is; but 0 + i·inf for −inf."""
    real, imaginary = x
    zero, infinity = b.like(0.0, real), b.like(INF, real)

    size = _scaled_magnitude(b, x, lambda v: _fourth_root(b, v), lambda v: b.op("math.sqrt", v))
    half = _times(b, _widened(b, "math.atan2", imaginary, real), 0.5)
    sine_half = _widened(b, "math.sin", half)
    first, second = b.mulf(size, _widened(b, "math.cos", half)), b.mulf(size, sine_half)
    second = b.select(b.compare("oeq", sine_half, zero), zero, second)
    second = b.select(b.is_nan(size), b.like(NAN, real), second)
    minus = b.compare("oeq", real, b.negf(infinity))
    endless = _infinite(b, imaginary)
    first = b.select(minus, zero, first)
    first = b.select(_or(b, endless, b.compare("oeq", real, infinity)), infinity, first)
    second = b.select(_or(b, endless, minus), b.copysign(infinity, imaginary), second)
    return _choose(b, b.compare("oeq", size, zero), (zero, zero), (first, second))


# Inverse functions (Kahan's forms, which lose nothing near the branch points) ------------------------------------------------------

def _roots(b: Builder, x: Pair) -> tuple[Pair, Pair]:
    """(√(1 − x), √(1 + x))."""
    one = b.like(1.0, x[0])
    return sqrt(b, (b.subf(one, x[0]), b.negf(x[1]))), sqrt(b, (b.addf(one, x[0]), x[1]))


def _cross(b: Builder, x: Pair, y: Pair) -> Value:
    """The imaginary part of conj(x)·y."""
    return b.subf(b.mulf(x[0], y[1]), b.mulf(x[1], y[0]))


@in_f64
def acos(b: Builder, x: Pair) -> Pair:
    minus, plus = _roots(b, x)
    return _times(b, b.math("math.atan2", minus[0], plus[0]), 2.0), b.math("math.asinh", _cross(b, plus, minus))


@in_f64
def asin(b: Builder, x: Pair) -> Pair:
    minus, plus = _roots(b, x)
    product = b.subf(b.mulf(minus[0], plus[0]), b.mulf(minus[1], plus[1]))
    return b.math("math.atan2", x[0], product), b.math("math.asinh", _cross(b, minus, plus))


@in_f64
def acosh(b: Builder, x: Pair) -> Pair:
    one = b.like(1.0, x[0])
    below, above = sqrt(b, (b.subf(x[0], one), x[1])), sqrt(b, (b.addf(x[0], one), x[1]))
    product = b.addf(b.mulf(below[0], above[0]), b.mulf(below[1], above[1]))
    return b.math("math.asinh", product), _times(b, b.math("math.atan2", below[1], above[0]), 2.0)


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
    ratio = b.divf(_times(b, size, 4.0), distance)
    far = _or(b, _infinite(b, distance), _infinite(b, size))
    ratio = b.select(far, b.like(0.0, ratio), ratio)
    first = b.copysign(_times(b, b.math("math.log1p", ratio), 0.25), real)
    width = b.subf(b.mulf(gap, b.addf(one, size)), b.mulf(imaginary, imaginary))
    angle = _times(b, b.math("math.atan2", _times(b, imaginary, 2.0), b.select(far, b.like(-INF, width), width)), 0.5)
    return first, angle
