"""Special functions in the precision that they are given (the table asks for f64 where the type is narrower).

Complex functions follow the formulas of XLA's expansion where infinities and NaN make a difference.
"""

from __future__ import annotations

import numpy as np

from .elementwise import Array, is_integer, make_complex


def rsqrt(x: Array) -> Array:
    if x.dtype.kind == "c":
        return np.divide(1, np.sqrt(x))
    return np.divide(x.dtype.type(1), np.sqrt(x))


def cbrt(x: Array) -> Array:
    return np.power(x, 1 / 3) if x.dtype.kind == "c" else np.cbrt(x)


def logistic(x: Array) -> Array:
    if x.dtype.kind == "c":
        return 0.5 + 0.5 * np.tanh(0.5 * x)
    from scipy.special import expit

    return expit(x)


def erf(x: Array) -> Array:
    from scipy.special import erf as scipy_erf

    return scipy_erf(x)


def expm1(x: Array) -> Array:
    if x.dtype.kind != "c":
        return np.expm1(x)
    a, b = x.real, x.imag
    half = np.sin(b / 2)
    return make_complex(np.expm1(a) * np.cos(b) - 2 * half * half, np.exp(a) * np.sin(b))


def atan2(y: Array, x: Array) -> Array:
    """Complex: -i·log((x + iy) / sqrt(x² + y²))."""
    if y.dtype.kind != "c":
        return np.arctan2(y, x)
    quotient = (x + y * 1j) / np.sqrt(x * x + y * y)
    logarithm = np.log(quotient)
    return make_complex(logarithm.imag, -logarithm.real)


def power(x: Array, y: Array) -> Array:
    if is_integer(x):
        return _integer_power(x, y)
    if x.dtype.kind == "c":
        return _complex_power(x, y)
    return np.power(x, y)


def _integer_power(x: Array, y: Array) -> Array:
    """By squaring, wrapping; a negative exponent gives 0 unless the base is 1 or -1."""
    x, y = np.broadcast_arrays(x, y)
    result, square, exponent = np.ones_like(x), x.copy(), y.view(np.dtype(f"u{y.dtype.itemsize}")).copy()
    while exponent.any():
        result = np.where(exponent & 1, result * square, result)
        square = square * square
        exponent >>= exponent.dtype.type(1)
    if y.dtype.kind == "i":
        odd = np.where(y & 1, x, np.ones_like(x))
        result = np.where(y < 0, np.where(x == 1, 1, np.where(x == -1, odd, 0)), result)
    return result.astype(x.dtype)


def _complex_power(x: Array, y: Array) -> Array:
    """x = 0: 1 for y = 0, else 0 (XLA's rule); otherwise exp(y·log x)."""
    out = np.exp(y * np.log(x))
    out = np.where(x == 0, np.where(y == 0, 1, 0), out)
    return np.where(y == 0, 1, out).astype(x.dtype)


def exponential(x: Array) -> Array:
    return np.exp(x)


def log(x: Array) -> Array:
    return np.log(x)


def log1p(x: Array) -> Array:
    return np.log1p(x)


def sqrt(x: Array) -> Array:
    return np.sqrt(x)


def sine(x: Array) -> Array:
    return np.sin(x)


def cosine(x: Array) -> Array:
    return np.cos(x)
