"""The address of an array, read from numpy's object: the only file that knows how numpy lays out an array.

`array.__array_interface__` makes a dict on every call and takes six times as long. The C interface of numpy 1 and 2
fixes `char *data` as the first field behind the object's head (PyArrayObject_fields in ndarraytypes.h). With any other
version, or where a probe finds something else there, the interface is asked.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import numpy as np

KNOWN_MAJORS = ("1", "2")
"""Versions of numpy whose C interface has that layout."""

_HEAD = object.__basicsize__
_POINTER_AT = ctypes.c_size_t.from_address


def by_layout(array: np.ndarray) -> int:
    return _POINTER_AT(id(array) + _HEAD).value


def by_interface(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def layout_is_known(implementation: str, numpy_version: str) -> bool:
    """Whether arrays are CPython objects (whose id is their address) with the data pointer behind the head."""
    if implementation != "cpython" or numpy_version.split(".")[0] not in KNOWN_MAJORS:
        return False
    probe = np.arange(6, dtype=np.uint16)
    return all(by_layout(a) == by_interface(a) for a in (probe, probe[1:], probe[::-1], probe.reshape(2, 3).T[1:]))


address_of: Callable[[np.ndarray], int] = (
    by_layout if layout_is_known(sys.implementation.name, np.__version__) else by_interface
)
"""Address of an array's first element."""
