"""Functions of doubles as the C library computes them, element by element. XLA:CPU calls these for some functions.

NumPy's own vectorised functions differ from them in the last bits and when subnormals are flushed.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import math
from collections.abc import Callable
from functools import cache

import numpy as np

ARITY = {"atan2": 2, "cos": 1, "log": 1, "pow": 2, "sin": 1}


@cache
def _function(name: str) -> np.ufunc:
    """The C library's function; Python's own if the library is not found."""
    path = ctypes.util.find_library("m")
    call: Callable[..., float] = getattr(math, name)
    if path is not None:
        call = getattr(ctypes.CDLL(path), name)
        call.restype, call.argtypes = ctypes.c_double, [ctypes.c_double] * ARITY[name]  # type: ignore[attr-defined]
    return np.frompyfunc(call, ARITY[name], 1)


def libm(name: str, *arrays: np.ndarray | float) -> np.ndarray:
    """The function `name` of f64 arrays, which broadcast against each other."""
    return np.asarray(_function(name)(*arrays)).astype(np.float64)
