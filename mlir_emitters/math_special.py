"""erf, cbrt, rsqrt."""

from __future__ import annotations

from .builder import Builder, Value
from .math_exp import scaled_exp
from .math_support import SINGLE, horner, offset, precision_of, scale, select_if, through_f64

# erf(x)/x − 1 in x² on |x| ≤ 1, and −log(erfc(x)) in (x − middle)/half on [1, 4] or [1, 6].
ERF_SINGLE = (
    0.12837916612625122,
    -0.3761262595653534,
    0.11283600330352783,
    -0.026854440569877625,
    0.005189525429159403,
    -0.0008020744426175952,
    7.888768595876172e-05,
)
ERFC_SINGLE = (
    7.806815147399902,
    8.029021263122559,
    2.1237566471099854,
    0.03663055598735809,
    -0.010968043468892574,
    0.0032722288742661476,
    -0.0007041526259854436,
    0.00037053361302241683,
)
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


def erf(b: Builder, x: Value) -> Value:
    """x·(1 + P(x²)) for |x| ≤ 1, then 1 − exp(−Q(|x|)), which is 1 from 4 (f64: 6) on."""
    single = precision_of(b, x) is SINGLE
    end = 4.0 if single else 6.0
    magnitude = b.absf(x)
    small = _plus_product(b, x, horner(b, b.mulf(x, x), ERF_SINGLE if single else ERF_DOUBLE))
    bounded = select_if(b, "ogt", magnitude, end, end, magnitude)
    u = scale(b, offset(b, bounded, -(1.0 + end) / 2.0), 2.0 / (end - 1.0))
    tail = scaled_exp(b, b.negf(horner(b, u, ERFC_SINGLE if single else ERFC_DOUBLE)), 0)
    large = b.copysign(b.subf(b.like(1.0, x), tail), x)
    return select_if(b, "ole", magnitude, 1.0, small, large)


def _plus_product(b: Builder, x: Value, factor: Value) -> Value:
    """x + x·factor for |x| ≤ 1. Without a fused operation both are scaled: a subnormal product would be flushed."""
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
    ordinary = b.binary(
        "andi", b.compare("one", magnitude, b.f64(0.0)), b.compare("olt", magnitude, b.f64(float("inf")))
    )
    return b.select(ordinary, b.copysign(y, x), x)


def rsqrt(b: Builder, x: Value) -> Value:
    return b.divf(b.like(1.0, x), b.op("math.sqrt", x))
