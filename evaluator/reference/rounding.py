"""Special functions of real numbers with the same bits whichever loops NumPy picks for the processor.

NumPy chooses its loops by processor. The loops differ in the last bits, and those that call the C library ignore the
control register that flushes subnormals. Here a function is therefore computed in a wider type and rounded once, and
operands and results are flushed by comparison.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .float_environment import is_flushing

Array = np.ndarray

SLACK = 2.0**-49
"""Upper bound on the relative error of NumPy's f64 loops: 4 ulp are documented, this allows 16."""


BLOCK = 1 << 16
"""Elements that are computed at once, so that the wider numbers of a large array do not need memory for all of it."""


def flushed(x: Array) -> Array:
    """x with subnormals replaced by zeros of their sign, inside `flushing_subnormals`; elsewhere x."""
    if not is_flushing():
        return x
    subnormal_or_zero = np.abs(x) < np.finfo(x.dtype).smallest_normal
    return np.where(subnormal_or_zero, np.copysign(x.dtype.type(0), x), x)


def rounded(function: Callable[..., Array], *arrays: Array) -> Array:
    """function(*arrays) for arrays of one type (f32, f64 or long double), rounded to that type.

    f64 and long double are computed in NumPy's long double: 80 bits on x86-64, 128 on aarch64. f32 is computed in f64,
    and again in long double where the f64 result is so close to the middle between two f32 numbers that its error
    could change the rounding.
    """
    shape = np.broadcast_shapes(*[a.shape for a in arrays])
    out = np.empty(shape, arrays[0].dtype)
    if out.size <= BLOCK:
        return _rounded(function, *arrays)
    flat = [np.broadcast_to(a, shape).reshape(-1) for a in arrays]
    for begin in range(0, out.size, BLOCK):
        part = slice(begin, begin + BLOCK)
        out.reshape(-1)[part] = _rounded(function, *[a[part] for a in flat])
    return out


def _rounded(function: Callable[..., Array], *arrays: Array) -> Array:
    dtype = arrays[0].dtype
    arrays = tuple(flushed(a) for a in arrays)
    if dtype != np.float32:
        return flushed(_wide(function, *arrays).astype(dtype))
    wide = np.asarray(function(*[a.astype(np.float64) for a in arrays]), np.float64)
    out, other = (np.asarray(wide * (1 + slack)).astype(dtype) for slack in (-SLACK, SLACK))
    unsure = (out != other) & ~np.isnan(wide)
    if unsure.any():
        chosen = [np.broadcast_to(a, wide.shape)[unsure] for a in arrays]
        out[unsure] = _wide(function, *chosen).astype(dtype)
    return flushed(out)


def _wide(function: Callable[..., Array], *arrays: Array) -> Array:
    return np.asarray(function(*[a.astype(np.longdouble) for a in arrays]))
