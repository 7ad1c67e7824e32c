"""The float environment of XLA:CPU: subnormal operands and results of f32 and f64 arithmetic count as zero.

glibc's fenv_t carries the vector unit's control register, so fesetenv reaches what NumPy computes with. Where the
layout is not known, nothing is flushed: a subnormal result then stands where XLA shows a zero, which parity allows.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

# machine -> (index of the 32-bit word in fenv_t, bits that flush operands and results)
_CONTROL = {"x86_64": (7, 0x8040), "aarch64": (0, 1 << 24)}


@cache
def _libm() -> ctypes.CDLL:
    return ctypes.CDLL("libm.so.6")


@contextmanager
def flushing_subnormals(enabled: bool = True) -> Iterator[None]:
    """Flush subnormals to zero in this thread inside the block."""
    word_and_bits = _CONTROL.get(platform.machine())
    if not enabled or word_and_bits is None or not sys.platform.startswith("linux"):
        yield
        return
    libm = _libm()
    word, bits = word_and_bits
    before, flushed = (ctypes.c_uint32 * 16)(), (ctypes.c_uint32 * 16)()
    libm.fegetenv(before)
    ctypes.memmove(flushed, before, ctypes.sizeof(before))
    flushed[word] |= bits
    libm.fesetenv(flushed)
    try:
        yield
    finally:
        libm.fesetenv(before)
