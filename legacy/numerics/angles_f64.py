"""sin, cos and tan of doubles: reduce the angle to [-π/4, π/4] in double-double precision, then use a polynomial."""

from __future__ import annotations

import math
from collections.abc import Callable

from llvmlite import ir

from ..core.registers import V
from ..core.tables import DOUBLE_TABLE, angle_row
from .real import Real

SIN = (
    -0.16666666666666666, 0.008333333333333323, -0.0001984126984125499, 2.7557319214148867e-06, -2.5052104900539157e-08,
    1.6058365192683126e-10, -7.578625447476902e-13,
)  # fmt: skip
COS = (
    0.041666666666666664, -0.0013888888888888874, 2.4801587301571384e-05, -2.7557319215326316e-07,
    2.0876754354788197e-09, -1.1470291952618328e-11, 4.7380487814020724e-14,
)  # fmt: skip
HALF_PI_PARTS = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
HUGE = 2.0**45
"""From this |x| on, x · 2/π is too inexact to determine the quadrant, so a table is used."""


def reduce_quadrant(r: Real, x: V) -> tuple[V, V, V]:
    """Reduce an angle: returns (high, low, quadrant) with x = quadrant · π/2 + high + low."""
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
    """Knuth's TwoSum: the rounded sum a + b, and its rounding error."""
    total = r.add(a, b)
    back = r.sub(total, a)
    return total, r.add(r.sub(a, r.sub(total, back)), r.sub(b, back))


def _reduce_huge(r: Real, x: V, huge: V) -> tuple[V, V, V]:
    """As `reduce_quadrant`, for |x| ≥ HUGE; the quadrant is a float. x = m · 2^e; a table holds 2^e · 2/π modulo 4."""
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
    """x minus the nearest multiple of 4, exactly. The result is in [-2, 2]."""
    turns = r.call("rint", r.mul(x, r.c(0.25)))
    return r.fma(turns, r.c(-4.0), x)


def sine_of(r: Real, x: V, low: V) -> V:
    """sin(x + low) for |x| ≤ π/4 and |low| below the last bit of x."""
    z = r.mul(x, x)
    inner = r.poly(z, SIN)
    return r.add(x, r.mad(r.mul(x, z), inner, r.mad(r.mul(z, r.c(-0.5)), low, low)))


def cosine_of(r: Real, x: V, low: V) -> V:
    """cos(x + low) for |x| ≤ π/4 and |low| below the last bit of x."""
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
    """(sin, cos) of the original angle, from sin and cos of the reduced angle."""
    b = r.code.b
    odd = b.trunc(quadrant, ir.IntType(1))
    sign_sin = b.shl(b.lshr(quadrant, quadrant.type(1)), quadrant.type(quadrant.type.width - 1))
    next_quadrant = b.add(quadrant, quadrant.type(1))
    sign_cos = b.shl(b.lshr(next_quadrant, quadrant.type(1)), quadrant.type(quadrant.type.width - 1))
    s, c = r.select(odd, cosine, sine), r.select(odd, sine, cosine)
    return (r.from_bits(b.xor(r.to_bits(s), sign_sin)), r.from_bits(b.xor(r.to_bits(c), sign_cos)))


def functions_of(sine_cosine: Callable[[Real, V], tuple[V, V]]) -> tuple[Callable[[Real, V], V], ...]:
    """sin, cos and tan by what computes sine and cosine of finite angles."""

    def sin(r: Real, x: V) -> V:
        return finite(r, x, r.select(r.eq(x, 0.0), x, sine_cosine(r, x)[0]))

    def cos(r: Real, x: V) -> V:
        return finite(r, x, sine_cosine(r, x)[1])

    def tan(r: Real, x: V) -> V:
        sine, cosine = sine_cosine(r, x)
        return finite(r, x, r.select(r.eq(x, 0.0), x, r.div(sine, cosine)))

    def finite(r: Real, x: V, result: V) -> V:
        return r.select(r.lt(r.abs(x), math.inf), result, r.c(math.nan))

    return sin, cos, tan


sin, cos, tan = functions_of(_sine_cosine)
