"""Symbols of libraries → addresses in this process. A library is loaded when its first symbol is requested."""

from __future__ import annotations

import ctypes
import functools
import os

from ..errors import CodegenError
from . import pocketfft

OPENBLAS = "scipy_"
"""The prefix of all symbols in the wheel scipy-openblas32."""


def library_address(symbol: str) -> int | None:
    """The address of a library symbol; None if no library has its prefix. Raises CodegenError if it is missing."""
    if symbol.startswith(pocketfft.PREFIX):
        return pocketfft.addresses().get(symbol)
    if not symbol.startswith(OPENBLAS):
        return None
    try:
        function = _openblas()[symbol]
    except AttributeError:
        raise CodegenError(
            f"OpenBLAS has no {symbol!r}", remedy="install the scipy-openblas32 that locks/requirements.txt pins"
        ) from None
    return ctypes.cast(function, ctypes.c_void_p).value


@functools.cache
def _openblas() -> ctypes.CDLL:
    """BLAS and LAPACK with 32-bit integers, on the calling thread only, because our own pool divides the work.

    A child of fork() may call it: OpenBLAS stops its idle threads before the fork and does not restart them.
    """
    try:
        import scipy_openblas32
    except ImportError:
        raise CodegenError(
            "linear algebra needs OpenBLAS: the package scipy-openblas32 is not installed",
            remedy="run ./testbed setup, or install what locks/requirements.txt pins",
        ) from None
    path = os.path.join(scipy_openblas32.get_lib_dir(), scipy_openblas32.get_library(fullname=True))
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise CodegenError(
            f"OpenBLAS does not load: {error}", remedy="reinstall the scipy-openblas32 that locks/requirements.txt pins"
        ) from error
    library.scipy_openblas_set_num_threads(1)
    return library
