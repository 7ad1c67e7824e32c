"""The float environment of XLA:CPU: arithmetic rounds to nearest, whatever the caller's mode is, and subnormal operands
and results of f32 and f64 count as zero.

glibc's fenv_t contains the control register of the vector unit, so fesetenv changes the mode of NumPy's arithmetic.
Some special functions ignore the mode; they flush by comparison (rounding.py). On a machine whose fenv_t is not in
_CONTROL, arithmetic flushes nothing: a result may be subnormal where XLA returns zero, which the comparison tolerates.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

# machine -> (the 32-bit word of fenv_t that is the control register, its value, bits that flush operands and results)
_CONTROL = {"x86_64": (7, 0x1F80, 0x8040), "aarch64": (0, 0, 1 << 24)}

_STATE = threading.local()


def is_flushing() -> bool:
    """Whether this thread is inside `flushing_subnormals`."""
    return getattr(_STATE, "flushing", None) is True


@cache
def _libm() -> ctypes.CDLL:
    return ctypes.CDLL("libm.so.6")


@contextmanager
def flushing_subnormals(enabled: bool = True) -> Iterator[None]:
    """Flush subnormals to zero in this thread inside the block, or keep them there, whatever holds around it."""
    before = getattr(_STATE, "flushing", None)
    _STATE.flushing = enabled
    try:
        with _control_register(enabled, before):
            yield
    finally:
        _STATE.flushing = before


@contextmanager
def _control_register(enabled: bool, before_it: bool | None) -> Iterator[None]:
    known = _CONTROL.get(platform.machine())
    if enabled is before_it or known is None or not sys.platform.startswith("linux"):
        yield
        return
    libm = _libm()
    word, usual, bits = known
    before, inside = (ctypes.c_uint32 * 16)(), (ctypes.c_uint32 * 16)()
    libm.fegetenv(before)
    ctypes.memmove(inside, before, ctypes.sizeof(before))
    inside[word] = usual | bits if enabled else usual
    libm.fesetenv(inside)
    try:
        yield
    finally:
        libm.fesetenv(before)
