"""Special functions, computed in the type of the arrays: it is wider than the operand's where rounding.py calls them.

Complex arrays are computed by complex.py.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...hlo.dtypes import FROM_NUMPY
from . import complex as cx
from .convert import nonzero_bits
from .elementwise import Array, is_integer
from .rounding import rounded


def _either(real: Callable[..., Array], of_complex: Callable[..., Array], *, wide: bool = True) -> Callable[..., Array]:
    """A function that calls `real` for real arrays and `of_complex` for complex ones. wide: the latter gets c128."""

    def function(*arrays: Array) -> Array:
        if arrays[0].dtype.kind != "c":
            return real(*arrays)
        return of_complex(*[cx.widen(x) for x in arrays] if wide else arrays)

    return function


def _rsqrt(x: Array) -> Array:
    return np.divide(x.dtype.type(1), np.sqrt(x))


LOG1P_NUMERATOR = (
    4.5270000862445199635215e-5,
    4.9854102823193375972212e-1,
    6.5787325942061044846969,
    2.9911919328553073277375e1,
    6.0949667980987787057556e1,
    5.7112963590585538103336e1,
    2.0039553499201281259648e1,
)
LOG1P_DENOMINATOR = (
    1.0,
    1.5062909083469192043167e1,
    8.3047565967967209469434e1,
    2.2176239823732856465394e2,
    3.0909872225312059774938e2,
    2.1642788614495947685003e2,
    6.0118660497603843919306e1,
)
"""Coefficients of the rational function in log1p.c of Cephes, highest power first."""


def _log1p(x: Array) -> Array:
    """log(1 + x) as in XLA:CPU, which uses Cephes's rational function for |x| < √2 − 1.

    That function is meant for x > −0.29 only; below, the error grows to 120 ulp at −0.413.
    """
    square = x * x
    near = x - 0.5 * square + x * square * np.polyval(LOG1P_NUMERATOR, x) / np.polyval(LOG1P_DENOMINATOR, x)
    return np.where(np.abs(x) < np.sqrt(2) - 1, near, np.log(1 + x))


def _logistic(x: Array) -> Array:
    from scipy.special import expit

    return expit(x)  # has a loop for long double


def erf(x: Array) -> Array:
    from scipy.special import erf as scipy_erf

    return scipy_erf(x.astype(np.float64))  # SciPy's own scalar code, which gives the same bits on every processor


def _power(x: Array, y: Array) -> Array:
    if is_integer(x):
        return _integer_power(x, y)
    # For a scalar exponent of 1/2 NumPy takes the square root, which is -0 of -0 and NaN of -inf: pow is 0 and inf.
    out = rounded(np.power, *np.atleast_1d(x, y)).reshape(np.broadcast_shapes(x.shape, y.shape))
    # The C library loses the sign of a result that it flushes.
    odd = (np.abs(np.fmod(y, y.dtype.type(2))) == 1) & np.signbit(x)
    out = np.where(odd & (out == 0), y.dtype.type(-0.0), out)
    # A subnormal exponent compares equal to zero but is not an integer, so the power of a negative base is NaN, even of
    # a subnormal base.
    dtype = FROM_NUMPY[y.dtype]
    negative = np.signbit(x) & nonzero_bits(x, dtype) & ~np.isnan(x)
    return np.where(negative & (y == 0) & nonzero_bits(y, dtype), np.nan, out).astype(x.dtype)


def _integer_power(x: Array, y: Array) -> Array:
    """Powers by repeated squaring; integers wrap.

    As in XLA, only six bits of the exponent count. A negative exponent gives 0, unless the base is 1 or -1.
    """
    x, y = np.broadcast_arrays(x, y)
    exponent = y.view(np.dtype(f"u{y.dtype.itemsize}")) & np.array(63, f"u{y.dtype.itemsize}")
    result, square = np.ones_like(x), x.copy()
    for _ in range(6):
        result = np.where(exponent & 1, result * square, result)
        square = square * square
        exponent = exponent >> exponent.dtype.type(1)
    minus_one = np.array(-1).astype(x.dtype)
    odd = np.where(y & 1, x, np.ones_like(x))
    negative = y.view(np.dtype(f"i{y.dtype.itemsize}")) < 0  # XLA reads unsigned exponents as signed too
    result = np.where(negative, np.where(x == 1, 1, np.where(x == minus_one, odd, 0)), result)
    return result.astype(x.dtype)


acos = _either(np.arccos, np.arccos)
acosh = _either(np.arccosh, np.arccosh)
asin = _either(np.arcsin, np.arcsin)
asinh = _either(np.arcsinh, np.arcsinh)
atan2 = _either(np.arctan2, cx.atan2, wide=False)
atanh = _either(np.arctanh, np.arctanh)
cbrt = _either(np.cbrt, cx.cbrt, wide=False)
cosh = _either(np.cosh, np.cosh)
cosine = _either(np.cos, cx.cosine, wide=False)
expm1 = _either(np.expm1, cx.expm1, wide=False)
exponential = _either(np.exp, cx.exponential, wide=False)
log = _either(np.log, cx.log, wide=False)
log1p = _either(_log1p, cx.log1p, wide=False)
logistic = _either(_logistic, cx.logistic, wide=False)
power = _either(_power, cx.power, wide=False)
rsqrt = _either(_rsqrt, cx.rsqrt, wide=False)
sine = _either(np.sin, cx.sine, wide=False)
sinh = _either(np.sinh, np.sinh)
sqrt = _either(np.sqrt, cx.sqrt)
tan = _either(np.tan, cx.tan)
tanh = _either(np.tanh, cx.tanh)
