"""The float environment of XLA:CPU: subnormal operands and results of f32 and f64 arithmetic count as zero.

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

# machine -> (index of the 32-bit word in fenv_t, bits that flush operands and results)
_CONTROL = {"x86_64": (7, 0x8040), "aarch64": (0, 1 << 24)}

_STATE = threading.local()


def is_flushing() -> bool:
    """Whether this thread is inside `flushing_subnormals`."""
    return getattr(_STATE, "flushing", False)


@cache
def _libm() -> ctypes.CDLL:
    return ctypes.CDLL("libm.so.6")


@contextmanager
def flushing_subnormals(enabled: bool = True) -> Iterator[None]:
    """Flush subnormals to zero in this thread inside the block, or keep them there, whatever holds around it."""
    before = is_flushing()
    _STATE.flushing = enabled
    try:
        with _control_register(enabled, before):
            yield
    finally:
        _STATE.flushing = before


@contextmanager
def _control_register(enabled: bool, before_it: bool) -> Iterator[None]:
    word_and_bits = _CONTROL.get(platform.machine())
    if enabled is before_it or word_and_bits is None or not sys.platform.startswith("linux"):
        yield
        return
    libm = _libm()
    word, bits = word_and_bits
    before, inside = (ctypes.c_uint32 * 16)(), (ctypes.c_uint32 * 16)()
    libm.fegetenv(before)
    ctypes.memmove(inside, before, ctypes.sizeof(before))
    inside[word] = inside[word] | bits if enabled else inside[word] & ~bits
    libm.fesetenv(inside)
    try:
        yield
    finally:
        libm.fesetenv(before)
