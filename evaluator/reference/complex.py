"""Complex arithmetic and functions by the formulas of XLA:CPU, which determine overflow, NaN and infinity.

Each function takes and returns complex arrays of one type and computes in the component type.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .float_environment import is_flushing
from .libm import libm
from .rounding import rounded

Array = np.ndarray


def make_complex(real: Array, imag: Array) -> Array:
    """real + i·imag without arithmetic, so that a NaN or infinity does not spread to the other part."""
    real, imag = np.broadcast_arrays(real, imag)
    out = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    out.real, out.imag = real, imag
    return out


def widen(x: Array) -> Array:
    """x as c128. The product with 1 flushes subnormals if flushing is on; the C library's c128 functions would not."""
    one = np.float64(1)
    return make_complex(x.real * one, x.imag * one)


def _wide(x: Array) -> Array:
    """x in a wider type, whose products neither overflow nor underflow. Subnormals are flushed if flushing is on."""
    return x.astype(np.float64) if x.dtype == np.float32 else (x * x.dtype.type(1)).astype(np.longdouble)


def _narrow(x: Array, dtype: np.dtype) -> Array:
    """The inverse of `_wide`; flushes what would be subnormal in the narrower type if its exponent had no limit.

    As processors do. The largest subnormal is rounded to the least normal number where half a unit is missing to it;
    with the bits of a normal number, that result is still too small.
    """
    if is_flushing():
        info, one = np.finfo(dtype), x.dtype.type(1)
        too_small = np.abs(x) < (one - one * info.epsneg / 2) * info.smallest_normal
        x = np.where(too_small, np.copysign(0 * one, x), x)
    return x.astype(dtype) * dtype.type(1)


def _fma(a: Array, b: Array, c: Array) -> Array:
    """a·b + c rounded once: XLA:CPU lets LLVM contract the product and the sum."""
    total = np.asarray(_wide(a) * _wide(b) + _wide(c))
    if a.dtype == np.float64:
        cancelled = np.isfinite(total) & (np.abs(total) < np.abs(c) * 2.0**-8)
        if cancelled.any():
            total[cancelled] = _exact_sum(*[x[cancelled] for x in np.broadcast_arrays(a, b, c)])
    return _narrow(total, a.dtype)


LOWER_BITS = np.uint64((1 << 21) - 1)


def _exact_sum(a: Array, b: Array, c: Array) -> Array:
    """a·b + c of f64, with each factor split in two halves whose products are exact in the wider type.

    So the few digits that remain after a cancellation are correct.
    """
    high_a, high_b = ((np.array(x).view(np.uint64) & ~LOWER_BITS).view(np.float64) for x in (a, b))
    (ah, al), (bh, bl) = ((_wide(high), _wide(x) - _wide(high)) for high, x in ((high_a, a), (high_b, b)))
    total, crossed, lowest = ah * bh + _wide(c), ah * bl + al * bh, al * bl
    total = np.where(crossed == 0, total, total + crossed)  # a zero must not change the sign of another one
    return np.where(lowest == 0, total, total + lowest)


def magnitude(x: Array) -> Array:
    """|x|; NaN if either part is NaN, whereas C's hypot returns infinity if the other part is infinite."""
    return np.where(np.isnan(x.real) | np.isnan(x.imag), np.nan, rounded(np.hypot, x.real, x.imag)).astype(x.real.dtype)


def multiply(x: Array, y: Array) -> Array:
    """x·y. In each part the first product is contracted with the sum, so it cannot overflow before the sum."""
    x, y = np.broadcast_arrays(x, y)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    return make_complex(_fma(a, c, -(b * d)), _fma(b, c, a * d))


def divide(x: Array, y: Array) -> Array:
    """x / y by Smith's algorithm; if both parts are NaN, zero and infinite operands are special cases (C, Annex G)."""
    x, y = np.broadcast_arrays(x, y)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    steep = np.abs(c) < np.abs(d)
    ratio = np.where(steep, c / d, d / c)
    bottom = np.where(steep, _fma(ratio, c, d), _fma(ratio, d, c))
    real = np.where(steep, _fma(a, ratio, b), _fma(b, ratio, a)) / bottom
    imag = np.where(steep, _fma(b, ratio, -a), _fma(-a, ratio, b)) / bottom
    lost = np.isnan(real) & np.isnan(imag)
    if not lost.any():
        return make_complex(real, imag)
    infinity = a.dtype.type(np.inf)
    unit = [np.copysign(np.isinf(v).astype(a.dtype), v) for v in (a, b, c, d)]
    finite_below, finite_above = np.isfinite(c) & np.isfinite(d), np.isfinite(a) & np.isfinite(b)
    cases = [
        (
            lost & (c == 0) & (d == 0) & ~(np.isnan(a) & np.isnan(b)),
            np.copysign(infinity, c) * a,
            np.copysign(infinity, c) * b,
        ),
        (
            lost & (np.isinf(a) | np.isinf(b)) & finite_below,
            infinity * (unit[0] * c + unit[1] * d),
            infinity * (unit[1] * c - unit[0] * d),
        ),
        (
            lost & finite_above & (np.isinf(c) | np.isinf(d)),
            0 * (a * unit[2] + b * unit[3]),
            0 * (b * unit[2] - a * unit[3]),
        ),
    ]
    return make_complex(
        np.select([k for k, _, _ in cases], [r for _, r, _ in cases], real).astype(a.dtype),
        np.select([k for k, _, _ in cases], [i for _, _, i in cases], imag).astype(a.dtype),
    )


def ordered(operation: Callable[[Array, Array], Array], x: Array, y: Array) -> Array:
    """np.less, np.less_equal, np.greater or np.greater_equal in lexicographic order: real parts, then imaginary parts.

    Real parts that are NaN compare false; NaN in an imaginary part matters only where the real parts are equal.
    """
    strict = np.less if operation in (np.less, np.less_equal) else np.greater
    return strict(x.real, y.real) | (x.real == y.real) & operation(x.imag, y.imag)


def sign(x: Array) -> Array:
    """x / |x|; a zero is returned unchanged."""
    size = magnitude(x)
    zero = (x.real == 0) & (x.imag == 0)
    return np.where(zero, x, make_complex(x.real / size, x.imag / size))


def _log_magnitude(x: Array) -> Array:
    """log |x| in the type of `_wide`; by log1p where |x| is near 1; NaN if either part is NaN."""
    a, b = np.abs(_wide(x.real)), np.abs(_wide(x.imag))
    large, small = np.maximum(a, b), np.minimum(a, b)
    near = rounded(np.log1p, (large - 1) * (large + 1) + small * small) / 2
    far = rounded(np.log, np.where(np.isnan(large), np.nan, np.hypot(a, b)))
    return np.where((large > 0.5) & (large < 2), near, far)


def log(x: Array) -> Array:
    """log |x| + i·arg x. The angle is the C library's atan2; if the imaginary part is flushed, its sign is lost too."""
    return make_complex(_log_magnitude(x).astype(x.real.dtype), _rounded("atan2", x.imag, x.real))


def log1p(x: Array) -> Array:
    """log(1 + x) for x = a + i·b; the real part depends on the range.

    In general it is log1p(a² + 2a + b²) / 2, which is accurate near 0. Near -1 it is log((a + 1)² + b²) / 2 with the
    rounding of the component type, so it is infinite where the squares underflow. For large x it is log |x|.
    """
    a, b, one = x.real, x.imag, x.real.dtype.type(1)
    wide_a, wide_b = _wide(a), _wide(b)
    half_log1p = _narrow(rounded(np.log1p, wide_a * (wide_a + 2) + wide_b * wide_b) / 2, a.dtype)
    vanishing = rounded(np.log, _fma(a + one, a + one, b * b)) / 2
    real = np.where(np.abs(a + one) + np.abs(b) < a.dtype.type(0.2), vanishing, half_log1p)
    real = np.where(np.maximum(np.abs(a), np.abs(b)) > 2.0**55, _log_magnitude(x), real)
    return make_complex(real.astype(a.dtype), _rounded("atan2", b, a + one))


def _without(x: Array, lost: Array, value: Array) -> Array:
    """`value`, with NaN in both parts where `lost` is true."""
    nan = np.full_like(x.real, np.nan)
    return np.where(lost, make_complex(nan, nan), value)


def sqrt(x: Array) -> Array:
    """The square root. Its imaginary part has the sign of the operand's, where -0 counts as +0."""
    root = np.sqrt(x)
    root = make_complex(root.real, np.where(x.imag == 0, np.abs(root.imag), root.imag))
    return _without(x, np.isnan(x.real) | np.isnan(x.imag), root)


def exponential(x: Array) -> Array:
    """e^a·cos b + i·e^a·sin b for x = a + i·b; the imaginary part is +0 at b = 0.

    Where e^a overflows, it is multiplied as e^(a/2) twice, and the product may be finite.
    """
    a, b = x.real, x.imag
    whole, half = rounded(np.exp, a), rounded(np.exp, a * a.dtype.type(0.5))
    parts = [rounded(function, b) for function in (np.cos, np.sin)]
    real, imag = [np.where(np.isinf(whole), half * part * half, whole * part) for part in parts]
    return make_complex(real, np.where(b == 0, b.dtype.type(0), imag))


def tan(x: Array) -> Array:
    """-i·tanh(i·x), so that zeros have the signs that `tanh` gives them."""
    turned = tanh(make_complex(-x.imag, x.real))
    return make_complex(turned.imag, -turned.real)


def tanh(x: Array) -> Array:
    """tanh x. NaN if the imaginary part is not finite and the real part is; imaginary part +0 on the real axis."""
    lost = _without(x, np.isfinite(x.real) & ~np.isfinite(x.imag), np.tanh(x))
    flat = (x.imag == 0) | np.isinf(x.real) & ~np.isfinite(x.imag)
    return make_complex(lost.real, np.where(flat, x.real.dtype.type(0), lost.imag))


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x) in polar form: (infinity, NaN) at 0, and a zero where the operand is infinite."""
    a, b = x.real, x.imag
    size = _inverse_root_of_magnitude(x)
    angle = _rounded("atan2", b, a) * a.dtype.type(-0.5)
    endless = np.isinf(a) | (np.isinf(b) & np.isnan(a))
    zero = (a == 0) & (b == 0)
    real = np.where(endless, np.copysign(0, a), size * rounded(np.cos, angle))
    imag = np.where(endless, -np.copysign(0, b), size * rounded(np.sin, angle))
    return make_complex(np.where(zero, np.inf, real).astype(a.dtype), np.where(zero, np.nan, imag).astype(a.dtype))


def _inverse_root_of_magnitude(x: Array) -> Array:
    """|x|^(-1/2); NaN if either part is NaN."""
    a, b = _wide(x.real), _wide(x.imag)
    size = 1 / np.sqrt(np.where(np.isnan(a) | np.isnan(b), np.nan, np.hypot(a, b)))
    return size.astype(x.real.dtype)


def _half_exponentials(b: Array) -> tuple[Array, Array]:
    """e^b / 2 and e^-b / 2. As in XLA, the second is 0.5 / e^b, so it is infinite where e^b underflows."""
    half = b.dtype.type(0.5)
    exponential = rounded(np.exp, b)
    return half * exponential, half / exponential


def sine(x: Array) -> Array:
    plus, minus = _half_exponentials(x.imag)
    return make_complex(rounded(np.sin, x.real) * (plus + minus), rounded(np.cos, x.real) * (plus - minus))


def cosine(x: Array) -> Array:
    plus, minus = _half_exponentials(x.imag)
    return make_complex(rounded(np.cos, x.real) * (minus + plus), rounded(np.sin, x.real) * (minus - plus))


def expm1(x: Array) -> Array:
    """expm1(a)·cos b + (cos b - 1) + i·(expm1(a) + 1)·sin b for x = a + i·b.

    As in XLA, expm1(a) + 1 stands for e^a, so the imaginary part is 0 where e^a is below the rounding error of 1.
    """
    a, b = x.real, x.imag
    one, zero = a.dtype.type(1), a.dtype.type(0)
    less, square = rounded(np.expm1, a), b * b
    near = rounded(lambda v: -2 * np.square(np.sin(v / 2)), b)
    cosine_less = np.where(square >= 0.61685, rounded(np.cos, b) - one, np.where(square == 0, zero, near))
    return make_complex(
        _fma(less, cosine_less + one, cosine_less), np.where(b == 0, zero, (less + one) * rounded(np.sin, b))
    )


def power(x: Array, y: Array) -> Array:
    """x^y for y = c + i·d: magnitude |x|^c·e^(-d·arg x), angle c·arg x + d·log |x|; 0^0 = 1."""
    x, y = np.broadcast_arrays(x, y)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    size, angle = magnitude(x), _rounded("atan2", b, a)
    coefficient = rounded(np.power, size, c) * rounded(np.exp, -d * angle)
    turn = _fma(c, angle, d * rounded(np.log, size))
    real, imag = coefficient * rounded(np.cos, turn), coefficient * rounded(np.sin, turn)
    one = (c == 0) & (d == 0) | (a == 1) & (b == 0)
    zero = (size == 0) & (d == 0) & (c > 0) | (a == np.inf) & (b == 0) & (d == 0) & (c < 0)
    endless = (a == np.inf) & (b == 0) & (d == 0) & (c > 0)
    conditions = [one, zero, endless]
    return make_complex(
        np.select(conditions, [1, 0, np.inf], real).astype(a.dtype),
        np.select(conditions, [0, 0, 0], imag).astype(a.dtype),
    )


def cbrt(x: Array) -> Array:
    return power(x, np.full((), 1 / 3, x.dtype))


def logistic(x: Array) -> Array:
    """1 / (1 + e^-x)"""
    power_of_e = exponential(-x)
    return divide(np.ones_like(x), make_complex(power_of_e.real + x.real.dtype.type(1), power_of_e.imag))


def atan2(y: Array, x: Array) -> Array:
    """-i·log((x + iy) / sqrt(x² + y²)), in the component type, as XLA:CPU computes it.

    The formula is inaccurate: squares overflow, and near the unit circle the imaginary part loses most of its digits.
    """
    square = make_complex(*[p + q for p, q in zip(_square(x), _square(y), strict=True)])
    i_y = y.real.dtype.type(0) * y.real - y.imag, y.real + y.imag * y.real.dtype.type(0)
    quotient = divide(make_complex(x.real + i_y[0], x.imag + i_y[1]), _polar_sqrt(square))
    size = _scaled_magnitude(quotient, np.sqrt)
    zero, log_size = size.dtype.type(0), _rounded("log", size)
    angle = _rounded("atan2", quotient.imag, quotient.real)
    return make_complex(zero * log_size + angle, zero * angle - log_size)


def _square(x: Array) -> tuple[Array, Array]:
    return _fma(x.real, x.real, -(x.imag * x.imag)), x.imag * x.real + x.imag * x.real


def _rounded(name: str, *arrays: Array) -> Array:
    """A function of the C library, rounded to the arrays' type."""
    return libm(name, *[a.astype(np.float64) for a in arrays]).astype(arrays[0].dtype)


def _scaled_magnitude(x: Array, root: Callable[[Array], Array], outer: Callable[[Array], Array] = lambda v: v) -> Array:
    """outer(max)·root(1 + (min / max)²) of the absolute parts; min where that is NaN. root = sqrt gives |x|."""
    a, b = np.abs(x.real), np.abs(x.imag)
    large, small = np.maximum(a, b), np.minimum(a, b)
    ratio = small / large
    out = outer(large) * root(_fma(ratio, ratio, ratio.dtype.type(1)))
    return np.where(np.isnan(out), small, out)


def _polar_sqrt(x: Array) -> Array:
    """sqrt|x|·(cos(arg x / 2) + i·sin(arg x / 2)); infinite if a part is infinite, with real part 0 for -inf."""
    a, b = x.real, x.imag
    size = _scaled_magnitude(x, lambda v: _rounded("pow", v, np.array(0.25)), np.sqrt)
    half = _rounded("atan2", b, a) * a.dtype.type(0.5)
    sine_half, infinity = _rounded("sin", half), a.dtype.type(np.inf)
    real = np.where(np.isinf(b) | (a == infinity), infinity, np.where(a == -infinity, 0, size * _rounded("cos", half)))
    imag = np.where(
        np.isinf(b) | (a == -infinity),
        np.copysign(infinity, b),
        np.where(np.isnan(size), np.nan, np.where(sine_half == 0, 0, size * sine_half)),
    )
    zero = size == 0
    return make_complex(np.where(zero, 0, real).astype(a.dtype), np.where(zero, 0, imag).astype(a.dtype))
