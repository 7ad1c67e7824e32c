"""Elementary functions of floats as straight-line arithmetic that LLVM vectorises, accurate to 1–4 ulp.

Frequent functions have polynomials of their own (minimax fits made for this file); others are evaluated in doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..core.registers import V
from ..core.tables import SINGLE, angle_row, index_type
from . import angles_f64, math_f64
from .real import Real

LOG2_E = 1.4426950408889634
LN2_HIGH = 0.693359375  # 9 significant bits, so that n · LN2_HIGH is exact
LN2_LOW = -2.12194440054690583e-4
EXP = (
    1.0, 1.0, 0.4999999403953552, 0.1666651964187622, 0.041668400168418884, 0.008368856273591518, 0.0013814335688948631,
)  # fmt: skip
EXPM1 = (
    0.49999999751990587, 0.16666666245981557, 0.041666556496126245, 0.008333441580949315, 0.0013928610621098819,
    0.0001980847127322012,
)  # fmt: skip
LOG = (
    0.3333333161328126, -0.2500081964361615, 0.2000123088592809, -0.16623401670098645, 0.14201720696739326,
    -0.1315976993933997, 0.12761599057610043, -0.07635485088080428,
)  # fmt: skip
LOG2 = (2.8853900817901152, 0.9617966733038534, 0.5770835922605464, 0.4116722712871472, 0.34073863713848523)
"""log2((1 + s)/(1 - s))/s as a polynomial of s², in doubles; error 2^-37.8."""

EXP2 = (
    1.0000000005565761, 0.6931472058209365, 0.24022646878452708, 0.05550328594151171, 0.009618489683829114,
    0.0013400005397637665, 0.00015345773261578975,
)  # fmt: skip
"""2^x on ±½, in doubles; error 2^-29."""

SIN = (-0.16666666641428166, 0.008333329362414063, -0.00019839327166128396, 2.7182374681825255e-06)
COS = (0.04166666662247539, -0.0013888883722508701, 2.4799511735079297e-05, -2.720954537982901e-07)
TANH_P = (
    0.9999999934380772, 0.13084009834046648, 0.0031039553601470114, 1.1154284987490055e-05, -2.0225055585315038e-08,
    5.2778316696186224e-11, -8.488337160931291e-14,
)  # fmt: skip
TANH_Q = (1.0, 0.46417336958506705, 0.024495176514843595, 0.00025461431051138647)
ERF_ROOT = (
    0.12837913632392883, 0.4774664342403412, -0.061868321150541306, -0.07441869378089905, 0.004706166684627533,
    0.007971721701323986, -0.0009461739682592452, -0.0004973140894435346, 0.00013955180475022644,
    -1.0629629286995623e-05,
)  # fmt: skip
"""4·(1 - erfc(x)^¼)/x - 1 on [0, ERF_ONE]. From ERF_ONE on, erf rounds to 1."""

ERF_ONE = 4.0

FIRST_EXPONENT = 172
"""The biased exponent of HUGE."""

HUGE = 2.0 ** (FIRST_EXPONENT - 127)
"""From this |x| on, the quadrant of an angle comes from a table of 2^e · 2/π."""


def exp(r: Real, x: V) -> V:
    """2^n · e^t in two steps. n is rounded with both biases of the two powers in its low bits."""
    b = r.code.b
    x = r.clip(x, -105.0, 89.0)
    rounding = r.c(1.5 * 2.0**r.mantissa + 2 * r.bias)
    shifted = r.add(r.mul(x, r.c(LOG2_E)), rounding)
    n = r.sub(shifted, rounding)
    t = r.sub(r.sub(x, r.mul(n, r.c(LN2_HIGH))), r.mul(n, r.c(LN2_LOW)))
    both = r.to_bits(shifted)
    half = b.lshr(both, r.i(1))
    first, second = (r.from_bits(b.shl(e, r.i(r.mantissa))) for e in (half, b.sub(both, half)))
    return r.mul(r.mul(r.poly(t, EXP), first), second)


def expm1(r: Real, x: V) -> V:
    y = r.clip(x, -20.0, 89.0)
    n, k = r.round_to_integer(r.mul(y, r.c(LOG2_E)))
    t = r.sub(r.sub(y, r.mul(n, r.c(LN2_HIGH))), r.mul(n, r.c(LN2_LOW)))
    p = r.mad(r.mul(t, t), r.poly(t, EXPM1), t)
    b = r.code.b
    limited = b.select(b.icmp_signed(">", k, r.i(126)), r.i(126), k)
    one_less = r.sub(r.c(1.0), r.power_of_two(b.neg(limited)))
    return r.select(r.eq(x, 0.0), x, r.scale(r.add(p, one_less), k))


def log(r: Real, x: V) -> V:
    n, f = _split(r, x)
    square = r.mul(f, f)
    tail = r.mad(r.mul(f, square), r.quads(f, LOG), r.mad(square, r.c(-0.5), r.mul(n, r.c(LN2_LOW))))
    return math_f64.log_corners(r, x, r.mad(n, r.c(LN2_HIGH), r.add(f, tail)))


def _split(r: Real, x: V) -> tuple[V, V]:
    """(n, f) with x = 2^n · (1 + f) and 1 + f from √½ to √2, for positive finite x; subnormals in strict mode only."""
    b = r.code.b
    normal, more = x, None
    if r.code.view.strict:
        small = r.lt(x, r.tiny)
        normal = r.select(small, r.mul(x, r.c(2.0**24)), x)
        more = r.select(small, r.i(-24), r.i(0))
    bits = r.to_bits(normal)
    e = b.ashr(b.sub(bits, r.i(0x3F3504F3)), r.i(23))
    f = r.sub(r.from_bits(b.sub(bits, b.shl(e, r.i(23)))), r.c(1.0))
    return b.sitofp(b.add(e, more) if more is not None else e, r.type), f


def log_plus_one(r: Real, x: V) -> V:
    return math_f64.log1p_by(r, x, log(r, r.add(x, r.c(1.0))))


def tanh(r: Real, x: V) -> V:
    y = r.clip(x, -9.0, 9.0)
    z = r.mul(y, y)
    inner = r.clip(r.div(r.mul(y, r.poly(z, TANH_P)), r.poly(z, TANH_Q)), -1.0, 1.0)
    return r.select(r.gt(r.abs(x), 9.0), r.copysign(r.c(1.0), x), inner)


def logistic(r: Real, x: V) -> V:
    return r.div(r.c(1.0), r.add(r.c(1.0), exp(r, r.neg(x))))


def erf(r: Real, x: V) -> V:
    """1 - (1 - u)⁴ as two steps of u ← u·(2 - u), with u·4 = x + x·P(x), which has the relative error of erf near zero
    and needs no other polynomial far from it. The steps are scaled, so that no u of a normal number is subnormal.
    """
    a = r.abs(x)
    a = r.select(r.gt(a, ERF_ONE), r.c(ERF_ONE), a)
    v = r.fma(a, r.quads(a, ERF_ROOT), a)
    v = r.mad(r.mul(v, v), r.c(-1 / 8), v)
    v = r.mad(r.mul(v, v), r.c(-1 / 4), v)
    return r.copysign(v, x)


def _reduce(r: Real, x: V) -> tuple[V, V]:
    """(remainder in [-π/4, π/4], quadrant), computed in doubles."""
    d = Real(r.code, 64)
    b = r.code.b
    wide = r.wider(x)
    n = d.call("rint", d.mul(wide, d.c(2.0 / math.pi)))
    first, second, _ = (d.c(p) for p in angles_f64.HALF_PI_PARTS)
    near = d.fma(d.neg(n), second, d.fma(d.neg(n), first, wide))
    is_huge = d.code.b.fcmp_unordered(">=", d.abs(wide), d.c(HUGE))
    n = d.select(is_huge, d.c(0.0), n)
    far, far_quadrant = _reduce_huge(r, d, x, is_huge)
    remainder = b.fptrunc(d.select(is_huge, far, near), r.type)
    near_quadrant = b.trunc(b.fptosi(n, d.int_type), r.int_type)
    return remainder, b.select(is_huge, far_quadrant, near_quadrant)


def _reduce_huge(r: Real, d: Real, x: V, is_huge: V) -> tuple[V, V]:
    """As `_reduce`, for |x| ≥ HUGE: x = m · 2^e, and a table holds 2^e · 2/π modulo 4 in two doubles."""
    b = r.code.b
    bits = r.to_bits(x)
    exponent = b.and_(b.lshr(bits, r.i(23)), r.i(255))
    row = b.select(is_huge, b.sub(exponent, r.i(FIRST_EXPONENT)), r.i(SINGLE.rows))
    mantissa = b.or_(b.and_(bits, r.i(0x7FFFFF)), r.i(0x800000))
    m = d.copysign(b.sitofp(mantissa, d.type), r.wider(x))
    high, low = angle_row(r.code, SINGLE, index_type(r.code, row))
    product = d.product(m, high)
    error = d.fma(m, high, d.neg(product))
    turns = d.call("rint", product)
    fraction = d.add(d.sub(product, turns), d.mad(m, low, error))
    quadrant = b.trunc(b.fptosi(turns, d.int_type), r.int_type)
    return d.mul(fraction, d.c(math.pi / 2)), quadrant


def _sine_cosine(r: Real, x: V) -> tuple[V, V]:
    t, quadrant = _reduce(r, x)
    z = r.mul(t, t)
    sine = r.mad(r.mul(t, z), r.poly(z, SIN), t)
    cosine = r.add(r.mad(r.mul(z, z), r.poly(z, COS), r.mul(z, r.c(-0.5))), r.c(1.0))
    return angles_f64.by_quadrant(r, sine, cosine, quadrant)


sin, cos, tan = angles_f64.functions_of(_sine_cosine)


def power(r: Real, x: V, y: V) -> V:
    """x^y. The logarithm, the product and its power of two are doubles of few terms; cases are decided in floats.

    A subnormal y counts as zero but not as an integer, so a negative x, subnormal too, gives NaN.
    """
    b = r.code.b
    a = r.abs(x)
    n, f = _split(r, a)
    n = r.select(r.eq(a, 0.0) if r.code.view.strict else r.lt(a, r.tiny), r.c(-math.inf), n)
    n = r.select(r.lt(a, math.inf), n, a)  # the logarithm of an infinity or a NaN is itself
    magnitude = b.fptrunc(_power_of_two(Real(r.code, 64), r.wider(n), r.wider(f), r.wider(y)), r.type)
    half = r.mul(y, r.c(0.5))
    is_integer = r.compare("==", r.call("floor", y), y)
    is_odd = r.both(is_integer, b.fcmp_ordered("!=", r.call("floor", half), half))
    result = r.select(is_odd, r.copysign(magnitude, x), magnitude)
    one = r.either(r.eq(y, 0.0), r.either(r.eq(x, 1.0), r.both(r.eq(x, -1.0), r.is_infinite(y))))
    result = r.select(one, r.c(1.0), result)
    below = r.both(r.lt(x, 0.0) if r.code.view.strict else r.compare("<=", x, r.c(-r.tiny)), r.gt(x, -math.inf))
    exponent = b.and_(r.to_bits(y), r.i(0x7FFFFFFF))
    subnormal = b.icmp_unsigned("<", b.sub(exponent, r.i(1)), r.i(0x7FFFFF))
    negative = b.icmp_unsigned("<", b.sub(r.to_bits(x), r.i(0x80000001)), r.i(0x7F800000))  # but not -0 and not NaN
    none = r.either(r.both(subnormal, negative), r.both(below, r.negated(is_integer)))
    return r.select(none, r.c(math.nan), result)


def _power_of_two(d: Real, n: V, f: V, y: V) -> V:
    """2^(y·log2(2^n·(1 + f))), limited to what exceeds every float; log2(1 + f) = 2·atanh(s)/ln2, s = f/(2 + f)."""
    s = d.div(f, d.add(f, d.c(2.0)))
    exponent = d.clip(d.mul(y, d.mad(s, d.poly(d.mul(s, s), LOG2), n)), -200.0, 200.0)
    whole, k = d.round_to_integer(exponent)
    return d.mul(d.poly(d.sub(exponent, whole), EXP2), d.power_of_two(k))


def _through_double(function: Callable[..., V]) -> Callable[..., V]:
    def narrow(r: Real, *arguments: V) -> V:
        return r.in_double(function, *arguments)

    narrow.__doc__ = f"{function.__name__} evaluated in doubles."
    return narrow


acos = _through_double(math_f64.acos)
acosh = _through_double(math_f64.acosh)
asin = _through_double(math_f64.asin)
asinh = _through_double(math_f64.asinh)
atan2 = _through_double(math_f64.atan2)
atanh = _through_double(math_f64.atanh)
cbrt = _through_double(math_f64.cbrt)
cosh = _through_double(math_f64.cosh)
sinh = _through_double(math_f64.sinh)
sqrt = math_f64.sqrt
rsqrt = math_f64.rsqrt
