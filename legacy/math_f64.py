"""Elementary functions of doubles as straight-line arithmetic that LLVM vectorises, accurate to a few ulp.

Polynomials are minimax fits made for this file (weighted by the error of the final result). Functions that nobody
calls in hot loops (erf, pow, remainders) go to libm.
"""

from __future__ import annotations

import math
from typing import TypeAlias

from llvmlite import ir

from .real import Real
from .tables import DOUBLE_TABLE, angle_row

V: TypeAlias = ir.Value

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238  # 21 trailing zero bits, so that n · LN2_HIGH is exact
LN2_LOW = 1.9082149292705877e-10
LN2 = 0.6931471805599453
EXPM1 = (
    0.5,
    0.16666666666666666,
    0.04166666666666669,
    0.008333333333333338,
    0.0013888888888871941,
    0.00019841269841245495,
    2.4801587350052643e-05,
    2.7557319277700343e-06,
    2.7557251924412554e-07,
    2.5052047492765533e-08,
    2.0921581007553956e-09,
    1.6093404690326934e-10,
)
LOG = (
    0.6666666666666666,
    0.4000000000000628,
    0.285714285690746,
    0.22222222648547743,
    0.18181775522356494,
    0.15387097122616528,
    0.13249972616101194,
    0.13252668046924826,
)
SIN = (
    -0.16666666666666666,
    0.008333333333333323,
    -0.0001984126984125499,
    2.7557319214148867e-06,
    -2.5052104900539157e-08,
    1.6058365192683126e-10,
    -7.578625447476902e-13,
)
COS = (
    0.041666666666666664,
    -0.0013888888888888874,
    2.4801587301571384e-05,
    -2.7557319215326316e-07,
    2.0876754354788197e-09,
    -1.1470291952618328e-11,
    4.7380487814020724e-14,
)
ATAN = (
    -0.33333333333333326,
    0.19999999999997736,
    -0.14285714285395226,
    0.11111111088575272,
    -0.09090908157558254,
    0.07692283031526125,
    -0.06666230541178722,
    0.05877056953759871,
    -0.05218620829531617,
    0.045043964848086614,
    -0.0334935336825027,
    0.015213973727334577,
)
PI_HIGH, PI_LOW = math.pi, 1.2246467991473532e-16
HALF_PI_PARTS = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
HUGE = 2.0**45
"""From here on the quadrant of an angle is read from a table: a product with 2/π no longer tells it."""


def exp(r: Real, x: V) -> V:
    x = r.clip(x, -760.0, 710.0)
    n, k = r.round_to_integer(r.mul(x, r.c(LOG2_E)))
    t = r.sub(r.sub(x, r.mul(n, r.c(LN2_HIGH))), r.mul(n, r.c(LN2_LOW)))
    p = r.add(r.mad(r.mul(t, t), r.poly(t, EXPM1[:-1]), t), r.c(1.0))
    return r.scale(p, k)


def expm1(r: Real, x: V) -> V:
    y = r.clip(x, -40.0, 710.0)
    n, k = r.round_to_integer(r.mul(y, r.c(LOG2_E)))
    t = r.sub(r.sub(y, r.mul(n, r.c(LN2_HIGH))), r.mul(n, r.c(LN2_LOW)))
    p = r.mad(r.mul(t, t), r.poly(t, EXPM1), t)
    one_less = r.sub(r.c(1.0), r.power_of_two(r.code.b.neg(_at_most(r, k, r.bias - 1))))  # 1 - 2^-k
    return r.select(r.eq(x, 0.0), x, r.scale(r.add(p, one_less), k))


def _at_most(r: Real, k: V, limit: int) -> V:
    b = r.code.b
    return b.select(b.icmp_signed(">", k, r.i(limit)), r.i(limit), k)


def log(r: Real, x: V) -> V:
    normal, k = _split_normal(r, x)
    b = r.code.b
    bits = r.to_bits(normal)
    from_root_half = b.sub(bits, r.i(0x3FE6A09E667F3BCD))
    e = b.ashr(from_root_half, r.i(r.mantissa))
    f = r.sub(r.from_bits(b.sub(bits, b.shl(e, r.i(r.mantissa)))), r.c(1.0))  # within [sqrt(1/2) - 1, sqrt(2) - 1]
    n = b.sitofp(b.add(e, k) if k is not None else e, r.type)
    s = r.div(f, r.add(f, r.c(2.0)))
    z = r.mul(s, s)
    half_square = r.mul(r.mul(f, r.c(0.5)), f)
    tail = r.mad(s, r.mad(z, r.poly(z, LOG), half_square), r.mul(n, r.c(LN2_LOW)))
    result = r.mad(n, r.c(LN2_HIGH), r.sub(f, r.sub(half_square, tail)))
    return log_corners(r, x, result)


def _split_normal(r: Real, x: V) -> tuple[V, V | None]:
    """x and no exponent; in strict mode subnormals are made normal and their extra exponent given."""
    if not r.code.strict:
        return x, None
    small = r.lt(x, r.tiny)
    shift = r.mantissa + 1
    return (r.select(small, r.mul(x, r.c(2.0**shift)), x), r.select(small, r.i(-shift), r.i(0)))


def log_corners(r: Real, x: V, result: V) -> V:
    """log at NaN, negative numbers, zero (and what counts as zero) and infinity."""
    result = r.select(r.eq(x, math.inf), x, result)
    result = r.select(r.not_ge(x, 0.0), r.c(math.nan), result)
    zero = r.eq(x, 0.0) if r.code.strict else r.lt(r.abs(x), r.tiny)
    return r.select(zero, r.c(-math.inf), result)


def log1p(r: Real, x: V) -> V:
    return log1p_by(r, x, log(r, r.add(x, r.c(1.0))))


def log1p_by(r: Real, x: V, log_of_sum: V) -> V:
    """log(1 + x) from the log of the rounded sum, with what the rounding lost."""
    total = r.add(x, r.c(1.0))
    lost = r.div(r.sub(x, r.sub(total, r.c(1.0))), total)
    lost = r.select(r.is_nan(lost), r.c(0.0), lost)
    result = r.add(log_of_sum, lost)
    return r.select(r.lt(r.abs(x), r.tiny), x, result)


def tanh(r: Real, x: V) -> V:
    a = r.abs(x)
    a = r.select(r.gt(a, 22.0), r.c(22.0), a)
    e = expm1(r, r.add(a, a))
    return r.copysign(r.div(e, r.add(e, r.c(2.0))), x)


def logistic(r: Real, x: V) -> V:
    return r.div(r.c(1.0), r.add(r.c(1.0), exp(r, r.neg(x))))


def reduce_quadrant(r: Real, x: V) -> tuple[V, V, V]:
    """(high, low, quadrant): x = quadrant · π/2 + high + low."""
    huge = r.code.b.fcmp_unordered(">=", r.abs(x), r.c(HUGE))
    n = r.call("rint", r.mul(r.select(huge, r.c(0.0), x), r.c(2.0 / math.pi)))
    first, second, third = (r.c(p) for p in HALF_PI_PARTS)
    a = r.fma(r.neg(n), first, x)  # exact
    product = r.product(n, second)
    error = r.fma(n, second, r.neg(product))
    high, low = two_sum(r, a, r.neg(product))
    high, low = two_sum(r, high, r.sub(r.sub(low, error), r.mul(n, third)))
    far_high, far_low, far_n = _reduce_huge(r, x, huge)
    n = r.select(huge, far_n, n)
    return r.select(huge, far_high, high), r.select(huge, far_low, low), r.code.b.fptosi(n, r.int_type)


def two_sum(r: Real, a: V, b: V) -> tuple[V, V]:
    """a + b, and what its rounding lost."""
    total = r.add(a, b)
    back = r.sub(total, a)
    return total, r.add(r.sub(a, r.sub(total, back)), r.sub(b, back))


def _reduce_huge(r: Real, x: V, huge: V) -> tuple[V, V, V]:
    """The same, with the quadrant as a float, for |x| ≥ HUGE: x = m · 2^e, and a table holds 2^e · 2/π modulo 4."""
    b = r.code.b
    bits = r.to_bits(x)
    exponent = b.sub(b.and_(b.lshr(bits, r.i(52)), r.i(0x7FF)), r.i(1075 + DOUBLE_TABLE.first))
    row = b.select(huge, b.lshr(exponent, r.i(4)), r.i(DOUBLE_TABLE.rows))
    extra = b.and_(exponent, r.i(DOUBLE_TABLE.step - 1))
    kept = b.and_(bits, r.i(0x800FFFFFFFFFFFFF))
    m = r.from_bits(b.or_(kept, b.shl(b.add(extra, r.i(1075)), r.i(52))))
    terms: list[V] = []
    for part in angle_row(r.code, DOUBLE_TABLE, row):
        product = r.product(m, part)
        terms += [product, r.fma(m, part, r.neg(product))]
    total, lost = _modulo_4(r, terms[0]), r.c(0.0)
    for k, term in enumerate(terms[1:-1]):
        total, error = two_sum(r, total, _modulo_4(r, term) if k < 2 else term)
        lost = r.add(lost, error)
    n = r.call("rint", total)
    high, low = two_sum(r, r.sub(total, n), lost)
    first, second, _ = (r.c(p) for p in HALF_PI_PARTS)
    angle = r.product(high, first)
    rest = r.add(r.fma(high, first, r.neg(angle)), r.mad(high, second, r.mul(low, first)))
    return angle, rest, n


def _modulo_4(r: Real, x: V) -> V:
    """x less a multiple of 4, exactly; within [-2, 2]."""
    turns = r.call("rint", r.mul(x, r.c(0.25)))
    return r.fma(turns, r.c(-4.0), x)


def sine_of(r: Real, x: V, low: V) -> V:
    """sin(x + low) for |x| ≤ π/4 and a tiny low."""
    z = r.mul(x, x)
    inner = r.poly(z, SIN)
    return r.add(x, r.mad(r.mul(x, z), inner, r.mad(r.mul(z, r.c(-0.5)), low, low)))


def cosine_of(r: Real, x: V, low: V) -> V:
    """cos(x + low) for |x| ≤ π/4 and a tiny low."""
    z = r.mul(x, x)
    half = r.mul(z, r.c(0.5))
    head = r.sub(r.c(1.0), half)
    lost = r.sub(r.sub(r.c(1.0), head), half)
    tail = r.sub(r.mul(r.mul(z, z), r.poly(z, COS)), r.mul(x, low))
    return r.add(head, r.add(lost, tail))


def _sine_cosine(r: Real, x: V) -> tuple[V, V]:
    high, low, quadrant = reduce_quadrant(r, x)
    return by_quadrant(r, sine_of(r, high, low), cosine_of(r, high, low), quadrant)


def by_quadrant(r: Real, sine: V, cosine: V, quadrant: V) -> tuple[V, V]:
    """(sin, cos) of the whole angle from those of the remainder."""
    b = r.code.b
    odd = b.trunc(quadrant, ir.IntType(1))
    sign_sin = b.shl(b.lshr(quadrant, quadrant.type(1)), quadrant.type(quadrant.type.width - 1))
    next_quadrant = b.add(quadrant, quadrant.type(1))
    sign_cos = b.shl(b.lshr(next_quadrant, quadrant.type(1)), quadrant.type(quadrant.type.width - 1))
    s, c = r.select(odd, cosine, sine), r.select(odd, sine, cosine)
    return (r.from_bits(b.xor(r.to_bits(s), sign_sin)), r.from_bits(b.xor(r.to_bits(c), sign_cos)))


def sin(r: Real, x: V) -> V:
    return _finite_angle(r, x, r.select(r.eq(x, 0.0), x, _sine_cosine(r, x)[0]))


def cos(r: Real, x: V) -> V:
    return _finite_angle(r, x, _sine_cosine(r, x)[1])


def tan(r: Real, x: V) -> V:
    sine, cosine = _sine_cosine(r, x)
    return _finite_angle(r, x, r.select(r.eq(x, 0.0), x, r.div(sine, cosine)))


def _finite_angle(r: Real, x: V, result: V) -> V:
    return r.select(r.lt(r.abs(x), math.inf), result, r.c(math.nan))


def atan2(r: Real, y: V, x: V) -> V:
    """All corners as C's atan2; the larger of |x| and |y| is scaled away from overflow."""
    ax, ay = r.abs(x), r.abs(y)
    steep = r.compare(">", ay, ax)
    both_infinite = r.both(r.eq(ax, math.inf), r.eq(ay, math.inf))
    small, large = r.select(steep, ax, ay), r.select(steep, ay, ax)
    big = r.gt(large, 2.0 ** (r.bias - 2))
    small, large = (r.select(big, r.mul(v, r.c(0.125)), v) for v in (small, large))
    small = r.select(both_infinite, r.c(1.0), small)
    large = r.select(both_infinite, r.c(1.0), large)
    angle = _atan_of_ratio(r, small, large)
    angle = r.select(r.eq(large, 0.0), r.c(0.0), angle)
    flipped = r.add(r.sub(r.c(PI_HIGH / 2), angle), r.c(PI_LOW / 2))
    angle = r.select(steep, flipped, angle)
    negative = r.code.b.icmp_signed("<", r.to_bits(x), r.i(0))
    angle = r.select(negative, r.sub(r.c(PI_HIGH), r.sub(angle, r.c(PI_LOW))), angle)
    angle = r.copysign(angle, y)
    return r.select(r.code.b.fcmp_unordered("uno", x, y), r.c(math.nan), angle)


def _atan_of_ratio(r: Real, small: V, large: V) -> V:
    """atan(small / large) for 0 ≤ small ≤ large."""
    upper = r.compare(">", small, r.mul(large, r.c(math.sqrt(2.0) - 1.0)))
    numerator = r.select(upper, r.sub(small, large), small)
    denominator = r.select(upper, r.add(small, large), large)
    q = r.div(numerator, denominator)
    z = r.mul(q, q)
    tail = r.mul(r.mul(q, z), r.poly(z, ATAN))
    return r.select(upper, r.add(r.c(math.pi / 4), r.add(q, r.add(tail, r.c(PI_LOW / 4)))), r.add(q, tail))


def asin(r: Real, x: V) -> V:
    return atan2(r, x, _other_leg(r, x))


def acos(r: Real, x: V) -> V:
    return atan2(r, _other_leg(r, x), x)


def _other_leg(r: Real, x: V) -> V:
    one = r.c(1.0)
    return r.sqrt(r.mul(r.sub(one, x), r.add(one, x)))


def _large_log(r: Real, x: V, ordinary_argument: V) -> V:
    """log1p(ordinary_argument), or log(2x) where x is so large that the argument would overflow."""
    large = r.gt(x, 2.0**60)
    result = log1p(r, r.select(large, x, ordinary_argument))
    return r.add(result, r.select(large, r.c(LN2), r.c(0.0)))


def asinh(r: Real, x: V) -> V:
    a = r.abs(x)
    square = r.mul(a, a)
    root = r.sqrt(r.add(square, r.c(1.0)))
    argument = r.add(a, r.div(square, r.add(root, r.c(1.0))))
    return r.copysign(_large_log(r, a, argument), x)


def acosh(r: Real, x: V) -> V:
    t = r.sub(x, r.c(1.0))
    argument = r.add(t, r.sqrt(r.mad(t, t, r.add(t, t))))
    return r.select(r.not_ge(x, 1.0), r.c(math.nan), _large_log(r, x, argument))


def atanh(r: Real, x: V) -> V:
    a = r.abs(x)
    result = r.mul(r.c(0.5), log1p(r, r.div(r.add(a, a), r.sub(r.c(1.0), a))))
    return r.copysign(result, x)


def sinh(r: Real, x: V) -> V:
    a = r.abs(x)
    e = expm1(r, r.select(r.gt(a, 700.0), r.c(1.0), a))
    ordinary = r.mul(r.c(0.5), r.add(e, r.div(e, r.add(e, r.c(1.0)))))
    return r.copysign(r.select(r.gt(a, 700.0), _half_exp_of_large(r, a), ordinary), x)


def cosh(r: Real, x: V) -> V:
    a = r.abs(x)
    e = exp(r, r.select(r.gt(a, 700.0), r.c(1.0), a))
    ordinary = r.mul(r.c(0.5), r.add(e, r.div(r.c(1.0), e)))
    return r.select(r.gt(a, 700.0), _half_exp_of_large(r, a), ordinary)


def _half_exp_of_large(r: Real, a: V) -> V:
    root = exp(r, r.mul(r.c(0.5), a))
    return r.mul(r.mul(r.c(0.5), root), root)


def cbrt(r: Real, x: V) -> V:
    """exp(log|x| / 3) and one Newton step."""
    a = r.abs(x)
    guess = exp(r, r.mul(log(r, a), r.c(1.0 / 3.0)))
    square = r.mul(guess, guess)
    better = r.sub(guess, r.mul(r.c(1.0 / 3.0), r.sub(guess, r.div(a, square))))
    ordinary = r.both(r.gt(a, 0.0), r.negated(r.is_infinite(x)))
    ordinary = r.both(ordinary, r.gt(guess, 0.0))
    return r.copysign(r.select(ordinary, better, r.select(r.gt(a, 0.0), a, r.add(a, a))), x)


def power_by_log(r: Real, x: V, y: V) -> V:
    """x^y with an absolute error of 1e-16 · |y log x| in its logarithm: for floats, evaluated in doubles."""
    b = r.code.b
    magnitude = exp(r, r.mul(y, log(r, r.abs(x))))
    half = r.mul(y, r.c(0.5))
    is_integer = r.compare("==", r.call("floor", y), y)
    is_odd = r.both(is_integer, r.code.b.fcmp_ordered("!=", r.call("floor", half), half))
    negative = b.icmp_signed("<", r.to_bits(x), r.i(0))
    result = r.select(r.both(negative, is_odd), r.neg(magnitude), magnitude)
    finite_negative = r.both(r.lt(x, 0.0), r.negated(r.is_infinite(x)))
    result = r.select(r.both(finite_negative, r.negated(is_integer)), r.c(math.nan), result)
    one = r.either(r.eq(y, 0.0), r.either(r.eq(x, 1.0), r.both(r.eq(x, -1.0), r.is_infinite(y))))
    return r.select(one, r.c(1.0), result)


def power(r: Real, x: V, y: V) -> V:
    """libm's, which does not see that flushed operands are zeros. A negative base has no subnormal power."""
    if r.code.strict:
        return r.libm("pow", x, y)
    b = r.code.b
    magnitude = b.sub(b.and_(r.to_bits(y), r.i((1 << 63) - 1)), r.i(1))
    small = b.icmp_unsigned("<", magnitude, r.i((1 << 52) - 1))
    x = _flushed(r, x)
    result = r.libm("pow", x, _flushed(r, y))
    return r.select(r.both(small, r.lt(x, 0.0)), r.c(math.nan), result)


def _flushed(r: Real, x: V) -> V:
    return r.select(r.lt(r.abs(x), r.tiny), r.copysign(r.c(0.0), x), x)


def erf(r: Real, x: V) -> V:
    return r.libm("erf", x)


def sqrt(r: Real, x: V) -> V:
    return r.sqrt(x)


def rsqrt(r: Real, x: V) -> V:
    return r.div(r.c(1.0), r.sqrt(x))
