"""Bytes that the C library's allocator has handed out, for tests that nothing is kept."""

import ctypes

FIELDS = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
"""struct mallinfo2 of glibc."""


class _Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in FIELDS]


def bytes_in_use():
    """Bytes that malloc has handed out (glibc)."""
    info = ctypes.CDLL(None).mallinfo2
    info.restype = _Info
    found = info()
    return found.uordblks + found.hblkhd
