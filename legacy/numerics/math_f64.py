"""Elementary functions of doubles as straight-line arithmetic that LLVM vectorises, accurate to a few ulp.

Polynomials are minimax fits made for this file, weighted by the error of the final result. Functions that are rare in
hot loops (remainders) call libm.
"""

from __future__ import annotations

import math

from ..core.registers import V
from . import power_f64
from .angles_f64 import cos as cos
from .angles_f64 import sin as sin
from .angles_f64 import tan as tan
from .real import Real

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.6931471803691238  # 21 trailing zero bits, so that n · LN2_HIGH is exact
LN2_LOW = 1.9082149292705877e-10
LN2 = 0.6931471805599453
EXPM1 = (
    0.5000000000000006, 0.16666666666666588, 0.04166666666657677, 0.00833333333338955, 0.001388888893155872,
    0.00019841269719002454, 2.480150528160892e-05, 2.755740755402787e-06, 2.7626034630926115e-07,
    2.5053768675031922e-08,
)  # fmt: skip
LOG = (
    0.6666666666666666, 0.4000000000000628, 0.285714285690746, 0.22222222648547743, 0.18181775522356494,
    0.15387097122616528, 0.13249972616101194, 0.13252668046924826,
)  # fmt: skip
ATAN = (
    -0.33333333333333326, 0.19999999999997736, -0.14285714285395226, 0.11111111088575272, -0.09090908157558254,
    0.07692283031526125, -0.06666230541178722, 0.05877056953759871, -0.05218620829531617, 0.045043964848086614,
    -0.0334935336825027, 0.015213973727334577,
)  # fmt: skip
ERF_NEAR = (
    0.12837916709551256, -0.3761263890318366, 0.11283791670952172, -0.026866170644752534, 0.005223977622888488,
    -0.0008548326919336726, 0.0001205533020066868, -1.4925599215911496e-05, 1.6461446880532527e-06,
    -1.6359555135165485e-07, 1.4764143722403754e-08, -1.207748202786188e-09, 8.672555995190375e-11,
    -4.8913525798002454e-12, 1.5771388520791316e-13,
)  # fmt: skip
"""erf(x)/x - 1 as a polynomial of x² up to ERF_LIMIT; error 2^-57.7."""

ERF_FAR = (
    0.13551365854592454, -0.1312857011944859, 0.04715759059504482, -0.004687655031353701, -0.0016580138670721925,
    0.0005217203498733934, -1.1220994609236689e-05, -1.7166278910525563e-05, 2.4097133834940154e-06,
    2.1153132332514868e-07, -7.836285370209372e-08, 1.8398194672369976e-09, 1.478898211857674e-09,
    -1.3919402230518477e-10, -1.828355143936095e-11, 3.32231730874063e-12, 1.0631525771248885e-13,
    -2.67199094123015e-14,
)  # fmt: skip
"""The eighth root of erfc(ERF_CENTRE + u), from ERF_LIMIT to ERF_ONE, where erf has become one; error 2^-57.8."""

ERF_LIMIT, ERF_CENTRE, ERF_ONE = 1.5, 3.75, 5.96875

PI_HIGH, PI_LOW = math.pi, 1.2246467991473532e-16


def exp(r: Real, x: V) -> V:
    x = r.clip(x, -760.0, 710.0)
    n, k = r.round_to_integer(r.mul(x, r.c(LOG2_E)))
    t = r.sub(r.sub(x, r.mul(n, r.c(LN2_HIGH))), r.mul(n, r.c(LN2_LOW)))
    p = r.add(r.mad(r.mul(t, t), r.poly(t, EXPM1), t), r.c(1.0))
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
    f = r.sub(r.from_bits(b.sub(bits, b.shl(e, r.i(r.mantissa)))), r.c(1.0))  # in [sqrt(1/2) - 1, sqrt(2) - 1]
    n = b.sitofp(b.add(e, k) if k is not None else e, r.type)
    s = r.div(f, r.add(f, r.c(2.0)))
    z = r.mul(s, s)
    half_square = r.mul(r.mul(f, r.c(0.5)), f)
    tail = r.mad(s, r.mad(z, r.poly(z, LOG), half_square), r.mul(n, r.c(LN2_LOW)))
    result = r.mad(n, r.c(LN2_HIGH), r.sub(f, r.sub(half_square, tail)))
    return log_corners(r, x, result)


def _split_normal(r: Real, x: V) -> tuple[V, V | None]:
    """x and no exponent. In strict mode: x with subnormals scaled to normal numbers, and the extra exponent."""
    if not r.code.view.strict:
        return x, None
    small = r.lt(x, r.tiny)
    shift = r.mantissa + 1
    return (r.select(small, r.mul(x, r.c(2.0**shift)), x), r.select(small, r.i(-shift), r.i(0)))


def log_corners(r: Real, x: V, result: V) -> V:
    """log at NaN, negative numbers, infinity and zero; unless strict, subnormals count as zero."""
    result = r.select(r.eq(x, math.inf), x, result)
    result = r.select(r.not_ge(x, 0.0), r.c(math.nan), result)
    zero = r.eq(x, 0.0) if r.code.view.strict else r.lt(r.abs(x), r.tiny)
    return r.select(zero, r.c(-math.inf), result)


def log1p(r: Real, x: V) -> V:
    return log1p_by(r, x, log(r, r.add(x, r.c(1.0))))


_NEAR_ONE_NUMERATOR = (
    2.0039553499201281e1, 5.7112963590585539e1, 6.0949667980987788e1, 2.9911919328553074e1, 6.5787325942061045,
    4.9854102823193376e-1, 4.5270000862445200e-5,
)  # fmt: skip
_NEAR_ONE_DENOMINATOR = (
    6.0118660497603844e1, 2.1642788614495948e2, 3.0909872225312060e2, 2.2176239823732857e2, 8.3047565967967210e1,
    1.5062909083469192e1, 1.0,
)  # fmt: skip
"""The rational function of Cephes's log1p.c, lowest power first."""


def log_plus_one(r: Real, x: V) -> V:
    """As XLA:CPU: Cephes's form for |x| < √2 − 1, otherwise the log of the rounded sum.

    Equality with XLA takes precedence over accuracy: below −0.29 the form leaves its interval (120 ulp error at
    −0.413).
    """
    square = r.mul(x, x)
    ratio = r.div(r.poly(x, _NEAR_ONE_NUMERATOR), r.poly(x, _NEAR_ONE_DENOMINATOR))
    near = r.add(r.sub(x, r.mul(r.c(0.5), square)), r.mul(r.mul(x, square), ratio))
    return r.select(r.lt(r.abs(x), math.sqrt(2.0) - 1.0), near, log(r, r.add(x, r.c(1.0))))


def log1p_by(r: Real, x: V, log_of_sum: V) -> V:
    """log(1 + x) from the log of the rounded sum, corrected by the rounding error of the sum."""
    total = r.add(x, r.c(1.0))
    lost = r.div(r.sub(x, r.sub(total, r.c(1.0))), total)
    lost = r.select(r.is_nan(lost), r.c(0.0), lost)
    result = r.add(log_of_sum, lost)
    return r.select(r.lt(r.abs(x), r.tiny), x, result)


def tanh(r: Real, x: V) -> V:
    """e/(e + 2) with e = exp(2|x|) - 1 = 2^k·(p + 1) - 1, for which one power of two suffices up to 44.

    The error of n·LN2 grows with n, but what of it is left in the quotient falls as 2^-n.
    """
    b = r.code.b
    y = r.select(r.gt(r.abs(x), 22.0), r.c(22.0), r.abs(x))
    y = r.add(y, y)
    rounding = r.c(1.5 * 2.0**r.mantissa + r.bias)  # so that the exponent of 2^k is in the low bits
    shifted = r.add(r.mul(y, r.c(LOG2_E)), rounding)
    t = r.sub(y, r.mul(r.sub(shifted, rounding), r.c(LN2)))
    p = r.mad(r.mul(t, t), r.poly(t, EXPM1), t)
    power = r.from_bits(b.shl(r.to_bits(shifted), r.i(r.mantissa)))
    e = r.mad(power, p, r.sub(power, r.c(1.0)))
    sign = b.and_(r.to_bits(x), r.i(1 << (r.bits - 1)))  # of the quotient it is not set
    return r.from_bits(b.or_(r.to_bits(r.div(e, r.add(e, r.c(2.0)))), sign))


def logistic(r: Real, x: V) -> V:
    return r.div(r.c(1.0), r.add(r.c(1.0), exp(r, r.neg(x))))


def atan2(r: Real, y: V, x: V) -> V:
    """atan2 with all special cases of C. The larger of |x| and |y| is scaled to avoid overflow."""
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
    """log1p(ordinary_argument), or log(2x) if x is so large that the argument would overflow."""
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


def power(r: Real, x: V, y: V) -> V:
    """pow, but subnormal operands count as zeros unless strict. A negative base with a subnormal y gives NaN.

    It is libm's where a fused operation would be a call, and where subnormals count.
    """
    if r.code.view.strict:
        return r.libm("pow", x, y)
    if r.code.view.fma:
        return power_f64.power(r, x, y)
    b = r.code.b
    magnitude = b.sub(b.and_(r.to_bits(y), r.i((1 << 63) - 1)), r.i(1))
    small = b.icmp_unsigned("<", magnitude, r.i((1 << 52) - 1))
    # negative, but not -0 and not NaN
    negative = b.icmp_unsigned("<", b.sub(r.to_bits(x), r.i((1 << 63) + 1)), r.i(0x7FF << 52))
    exponent = r.select(r.both(small, negative), r.c(math.nan), _flushed(r, y))  # so that nothing outlives the call
    return r.libm("pow", _flushed(r, x), exponent)


def _flushed(r: Real, x: V) -> V:
    return r.select(r.lt(r.abs(x), r.tiny), r.copysign(r.c(0.0), x), x)


def erf(r: Real, x: V) -> V:
    """x + x·P(x²) near zero, 1 - Q(|x|)⁸ elsewhere. The first is scaled: no product of a normal x may be subnormal."""
    a = r.abs(x)
    scaled = r.mul(x, r.c(2.0**64))
    near = r.mul(r.mad(scaled, r.quads(r.mul(x, x), ERF_NEAR), scaled), r.c(2.0**-64))
    bounded = r.select(r.gt(a, ERF_ONE), r.c(ERF_ONE), a)
    root = r.quads(r.sub(bounded, r.c(ERF_CENTRE)), ERF_FAR)
    square = r.mul(root, root)
    fourth = r.mul(square, square)
    far = r.copysign(r.mad(r.neg(fourth), fourth, r.c(1.0)), x)
    return r.select(r.gt(a, ERF_LIMIT), far, near)


def sqrt(r: Real, x: V) -> V:
    return r.sqrt(x)


def rsqrt(r: Real, x: V) -> V:
    """1/√x by a division. The reciprocal by two steps from a guess of its bits, measured for f32: 0.76 of the time with
    AVX-512, 0.85 with AVX2, but 1.6 times it there for bf16, and it competes with the other operations of a kernel.
    """
    return r.div(r.c(1.0), r.sqrt(x))
