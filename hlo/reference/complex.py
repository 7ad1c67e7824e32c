"""Complex arithmetic and functions by the formulas of XLA:CPU: they decide overflow, NaN and infinity.

Each function takes and gives complex arrays of one type and computes in its component type.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .libm import libm

Array = np.ndarray


def make_complex(real: Array, imag: Array) -> Array:
    """real + i·imag without arithmetic, so that NaN and infinity stay in their part."""
    real, imag = np.broadcast_arrays(real, imag)
    out = np.empty(real.shape, np.complex64 if real.dtype == np.float32 else np.complex128)
    out.real, out.imag = real, imag
    return out


def _fma(a: Array, b: Array, c: Array) -> Array:
    """a·b + c rounded once, as LLVM contracts it (f64 through the widest type there is, nearly so)."""
    wide = np.float64 if a.dtype == np.float32 else np.longdouble
    return (a.astype(wide) * b + c).astype(a.dtype)


def magnitude(x: Array) -> Array:
    """|x|, NaN if either part is NaN (C's hypot gives infinity where the other part is infinite)."""
    return np.where(np.isnan(x.real) | np.isnan(x.imag), np.nan, np.abs(x)).astype(x.real.dtype)


def multiply(x: Array, y: Array) -> Array:
    return make_complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


def divide(x: Array, y: Array) -> Array:
    """Smith's quotient; where both parts come out NaN, the cases of zero and infinite operands."""
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


def sign(x: Array) -> Array:
    """x / |x|, and 0 for 0."""
    size = magnitude(x)
    zero = size == 0
    return make_complex(
        np.where(zero, 0, x.real / size).astype(size.dtype), np.where(zero, 0, x.imag / size).astype(size.dtype)
    )


def _wide_magnitude(x: Array) -> Array:
    """|x| in the widest float type, where nothing overflows; NaN if either part is."""
    real, imag = x.real.astype(np.longdouble), x.imag.astype(np.longdouble)
    return np.where(np.isnan(real) | np.isnan(imag), np.nan, np.hypot(real, imag))


def log(x: Array) -> Array:
    """The angle as the C library has it: of a flushed imaginary part not even the sign stays."""
    angle = libm("atan2", x.imag, x.real).astype(x.real.dtype)
    return make_complex(np.log(_wide_magnitude(x)).astype(x.real.dtype), angle)


def log1p(x: Array) -> Array:
    """Half the log1p of a² + 2a + b², which loses nothing near 0."""
    a, b = x.real.astype(np.longdouble), x.imag.astype(np.longdouble)
    real = np.where(np.isinf(a) & ~np.isnan(b) | np.isinf(b) & ~np.isnan(a), np.inf, np.log1p(a * (a + 2) + b * b) / 2)
    return make_complex(real.astype(x.real.dtype), np.arctan2(x.imag, x.real + x.real.dtype.type(1)))


def _without(x: Array, lost: Array, value: Array) -> Array:
    """`value`, but NaN in both parts where the result is lost."""
    nan = np.full_like(x.real, np.nan)
    return np.where(lost, make_complex(nan, nan), value)


def sqrt(x: Array) -> Array:
    """The imaginary part has the sign of the operand's, where +0 and -0 are no different."""
    root = np.sqrt(x)
    root = make_complex(root.real, np.where(x.imag == 0, np.abs(root.imag), root.imag))
    return _without(x, np.isnan(x.real) | np.isnan(x.imag), root)


def exponential(x: Array) -> Array:
    return _without(x, ~np.isfinite(x.imag), np.exp(x))


def tan(x: Array) -> Array:
    return _without(x, ~np.isfinite(x.real) & np.isfinite(x.imag), np.tan(x))


def tanh(x: Array) -> Array:
    return _without(x, np.isfinite(x.real) & ~np.isfinite(x.imag), np.tanh(x))


def rsqrt(x: Array) -> Array:
    """Infinity (and NaN) at 0; a zero where the operand is infinite."""
    a, b = x.real, x.imag
    size, angle = (1 / np.sqrt(_wide_magnitude(x))).astype(a.dtype), np.arctan2(b, a) * -0.5
    endless = np.isinf(a) | (np.isinf(b) & np.isnan(a))
    zero = (a == 0) & (b == 0)
    real = np.where(endless, np.copysign(0, a), size * np.cos(angle))
    imag = np.where(endless, -np.copysign(0, b), size * np.sin(angle))
    return make_complex(np.where(zero, np.inf, real).astype(a.dtype), np.where(zero, np.nan, imag).astype(a.dtype))


def _half_exponentials(b: Array) -> tuple[Array, Array]:
    """e^b / 2 and e^-b / 2, the second as XLA gets it: by division, so that it overflows where e^b vanishes."""
    half = b.dtype.type(0.5)
    exponential = np.exp(b.astype(np.float64)).astype(b.dtype)
    return half * exponential, half / exponential


def sine(x: Array) -> Array:
    plus, minus = _half_exponentials(x.imag)
    return make_complex(_real(np.sin, x) * (plus + minus), _real(np.cos, x) * (plus - minus))


def cosine(x: Array) -> Array:
    plus, minus = _half_exponentials(x.imag)
    return make_complex(_real(np.cos, x) * (minus + plus), _real(np.sin, x) * (minus - plus))


def _real(function: np.ufunc, x: Array) -> Array:
    return function(x.real.astype(np.float64)).astype(x.real.dtype)


def expm1(x: Array) -> Array:
    """expm1(a)·cos b + (cos b - 1), and (expm1(a) + 1)·sin b, which vanishes where e^a does against 1."""
    a, b = x.real, x.imag
    less = np.expm1(a)
    cosine_less = -2 * np.square(np.sin(b / 2))
    imag = np.where(b == 0, 0, (less + 1) * np.sin(b))
    return make_complex((less * (cosine_less + 1) + cosine_less).astype(a.dtype), imag.astype(a.dtype))


def power(x: Array, y: Array) -> Array:
    """|x|^c·e^(-d·arg x), turned by c·arg x + d·log |x|, for y = c + i·d; 0^0 = 1."""
    x, y = np.broadcast_arrays(x, y)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    size, angle = magnitude(x), np.arctan2(b, a)
    coefficient = np.power(size, c) * np.exp(-d * angle)
    turn = c * angle + d * np.log(size)
    real, imag = coefficient * np.cos(turn), coefficient * np.sin(turn)
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
    """1 / (1 + e^-x), in the form whose exponential does not overflow."""
    shrinking = exponential(np.where(x.real < 0, x, -x))
    return np.where(x.real < 0, divide(shrinking, 1 + shrinking), divide(np.ones_like(x), 1 + shrinking))


def atan2(y: Array, x: Array) -> Array:
    """-i·log((x + iy) / sqrt(x² + y²)), in the component type: where the quotient lies near the unit circle, little of
    the imaginary part survives, and squares overflow. That is what XLA:CPU gives."""
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
    """outer(max)·root(1 + (min / max)²), min where that is NaN: |x| for root = sqrt."""
    a, b = np.abs(x.real), np.abs(x.imag)
    large, small = np.maximum(a, b), np.minimum(a, b)
    ratio = small / large
    out = outer(large) * root(_fma(ratio, ratio, ratio.dtype.type(1)))
    return np.where(np.isnan(out), small, out)


def _polar_sqrt(x: Array) -> Array:
    """sqrt|x|·(cos(arg x / 2) + i·sin(arg x / 2)), infinite where either part is (but for -inf: there 0 + i·inf)."""
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
