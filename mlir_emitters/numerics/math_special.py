"""erf, cbrt, rsqrt."""

from __future__ import annotations

from ..core.builder import Builder, Value
from .math_exp import scaled_exp
from .math_support import horner, offset, scale, select_if, through_f64

# 4(1 − ∜(1 − erf(x)))/x − 1 on [0, 4.04], where erf has become 1; two terms a row.
ROOT_SINGLE = (
    (0.12837913632392883, 0.4774666130542755),
    (-0.061869774013757706, -0.07441279292106628),
    (0.004692604299634695, 0.00798920076340437),
    (-0.0009590838453732431, -0.0004919585771858692),
    (0.00013841809413861483, -1.0538396054471377e-05),
)
# erf(x)/x − 1 in x² on |x| ≤ 1, and −log(erfc(x)) in (x − 3.5)/2.5 on [1, 6].
ERF_DOUBLE = (
    0.1283791670955126,
    -0.3761263890318375,
    0.11283791670954885,
    -0.026866170645077823,
    0.005223977624827903,
    -0.0008548326981394159,
    0.00012055331131771492,
    -1.4925595742775592e-05,
    1.6461007991116316e-06,
    -1.6350390906998064e-07,
    1.4660291936205562e-08,
    -1.1374809642581203e-09,
    5.960431762754995e-11,
)
ERFC_DOUBLE = (
    14.112437402148174,
    18.16524897091298,
    6.04220659213859,
    0.08165090971588206,
    -0.03412841106810302,
    0.014384548419935026,
    -0.005953704518773465,
    0.0023739959407708083,
    -0.0008935782145879138,
    0.000307827800917961,
    -9.088137245511478e-05,
    1.845610148169135e-05,
    1.386883027837526e-06,
    -4.587231660497284e-06,
    3.625665586234313e-06,
    -1.734458161317407e-06,
    7.084639832098307e-07,
    -7.353045271704446e-07,
    1.53922653494023e-07,
    2.591700861837628e-07,
    1.1309148431282613e-07,
    -7.95228559220082e-08,
    -6.566148271349073e-08,
)


def erf_f32(b: Builder, x: Value) -> Value:
    """1 − (1 − v/4)⁴ with v = |x|·(1 + P(|x|)): a polynomial near one number, whatever |x|, and two squares.

    1 − (1 − v/4)² = v/2 − (v/4)². Written with v and v/2 instead of v/4, the least normal x keeps its bits.
    """
    magnitude = b.absf(x)
    a = select_if(b, "ogt", magnitude, 4.04, 4.04, magnitude)
    square = b.mulf(a, a)
    first, second, third, fourth, fifth = (b.fma(a, b.like(odd, x), b.like(even, x)) for even, odd in ROOT_SINGLE)
    fourth_power = b.mulf(square, square)
    high = b.fma(fifth, fourth_power, b.fma(fourth, square, third))
    v = _plus_product(b, a, b.fma(high, fourth_power, b.fma(second, square, first)))
    for part in (-0.125, -0.25):
        v = b.fma(b.mulf(v, v), b.like(part, x), v)
    return b.copysign(v, x)


def erf_f64(b: Builder, x: Value) -> Value:
    """x·(1 + P(x²)) for |x| ≤ 1, then 1 − exp(−Q(|x|)), which is 1 from 6 on."""
    magnitude = b.absf(x)
    small = _plus_product(b, x, horner(b, b.mulf(x, x), ERF_DOUBLE))
    bounded = select_if(b, "ogt", magnitude, 6.0, 6.0, magnitude)
    u = scale(b, offset(b, bounded, -3.5), 0.4)
    tail = scaled_exp(b, b.negf(horner(b, u, ERFC_DOUBLE)), 0)
    large = b.copysign(b.subf(b.like(1.0, x), tail), x)
    return select_if(b, "ole", magnitude, 1.0, small, large)


def _plus_product(b: Builder, x: Value, factor: Value) -> Value:
    """x + x·factor for |x| ≤ 4.04. Without a fused operation both are scaled: a subnormal product would be flushed."""
    if b.fma_hardware:
        return b.fma(x, factor, x)
    scaled = scale(b, x, 2.0**64)
    return scale(b, b.addf(scaled, b.mulf(scaled, factor)), 2.0**-64)


@through_f64
def cbrt(b: Builder, x: Value) -> Value:
    """An initial guess from a third of the exponent, then three steps of Halley's method."""
    t = b.types
    magnitude = b.absf(x)
    tiny = b.compare("olt", magnitude, b.f64(2.0**-800))
    huge = b.compare("ogt", magnitude, b.f64(2.0**900))
    one = b.f64(1.0)
    a = b.mulf(magnitude, b.select(tiny, b.f64(2.0**162), b.select(huge, b.f64(2.0**-162), one)))
    high = b.trunci(b.binary("shrui", b.bitcast(a, t.i64), 32), t.i32)
    guess = b.binary("addi", b.binary("divui", high, 3), 715094163)
    y = b.bitcast(b.binary("shli", b.extui(guess, t.i64), 32), t.f64)
    for _ in range(3):
        cube = b.mulf(b.mulf(y, y), y)
        excess = b.subf(cube, a)
        y = b.subf(y, b.mulf(y, b.divf(excess, b.fma(cube, b.f64(2.0), a))))
    y = b.mulf(y, b.select(tiny, b.f64(2.0**-54), b.select(huge, b.f64(2.0**54), one)))
    # A subnormal that counts as zero is zero in `a`, where it was multiplied; not every device compares it as zero.
    ordinary = b.binary("andi", b.compare("one", a, b.f64(0.0)), b.compare("olt", magnitude, b.f64(float("inf"))))
    return b.select(ordinary, b.copysign(y, x), x)


def rsqrt(b: Builder, x: Value) -> Value:
    """1/√x. The processor's estimate of it, which XLA refines, has other bits on other processors."""
    return b.divf(b.like(1.0, x), b.op("math.sqrt", x))
