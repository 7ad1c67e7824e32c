"""The address of an array, read from numpy's object. Only this file depends on numpy's layout of an array.

`array.__array_interface__` creates a dict on every call and takes six times as long. The C ABI of numpy 1 and 2 has
`char *data` as the first field after the object header (PyArrayObject_fields in ndarraytypes.h). For other versions, or
if a probe finds another value there, `__array_interface__` is used.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable

from ...hlo.later import np

KNOWN_MAJORS = ("1", "2")
"""Major versions of numpy whose C ABI has this layout."""

_HEAD = object.__basicsize__
_POINTER_AT = ctypes.c_size_t.from_address


def by_layout(array: np.ndarray) -> int:
    return _POINTER_AT(id(array) + _HEAD).value


def by_interface(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def layout_is_known(implementation: str, numpy_version: str) -> bool:
    """Whether the id of an array is its address (CPython) and its data pointer follows the object header."""
    if implementation != "cpython" or numpy_version.split(".")[0] not in KNOWN_MAJORS:
        return False
    probe = np.arange(6, dtype=np.uint16)
    return all(by_layout(a) == by_interface(a) for a in (probe, probe[1:], probe[::-1], probe.reshape(2, 3).T[1:]))


def address_of(array: np.ndarray) -> int:
    """The address of an array's first element."""
    return reader()(array)


@functools.cache
def reader() -> Callable[[np.ndarray], int]:
    """What reads addresses of this NumPy's arrays."""
    return by_layout if layout_is_known(sys.implementation.name, np.__version__) else by_interface


def view(address: int, size: int) -> np.ndarray:
    """An array on bytes at an address. The caller keeps the memory alive."""
    if not size:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))
