"""Addresses of numpy's FFT loops, read from its ufunc objects and checked on a transform with a known result.

A loop has numpy's signature `void (char **args, const npy_intp *dims, const npy_intp *steps, void *data)`. It accepts
any strides and needs no GIL. Each call makes its plan anew, which takes about the time of one row.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
from importlib import import_module

from ...hlo.later import np
from ..errors import CodegenError

PREFIX = "numpy_pocketfft_"
LOOPS = ("fft", "ifft", "rfft_n_even", "rfft_n_odd", "irfft")
TYPES = {"f": "complex64", "d": "complex128"}
"""Letter of a real type in a symbol → the name of the complex type."""

DATA = "_data"

WITH_DATA = ("fft", "ifft")
"""Loops that read their direction from the last argument. The others get null."""


def symbol(loop: str, letter: str) -> str:
    """The symbol of a loop. With the suffix DATA it is the symbol of the loop's last argument."""
    return f"{PREFIX}{loop}_{letter}"


@functools.cache
def addresses() -> dict[str, int]:
    """All symbols with their addresses. Raises CodegenError if this numpy's loops are not as expected."""
    found: dict[str, int] = {}
    for loop, letter in itertools.product(LOOPS, TYPES):
        name = symbol(loop, letter)
        try:
            function, data = _read(loop, letter)
        except (ImportError, AttributeError, ValueError) as error:
            raise _refused(str(error)) from error
        _check(loop, letter, function, data)
        found |= {name: function, name + DATA: data} if data else {name: function}
    return found


def _refused(why: str) -> CodegenError:
    return CodegenError(
        f"the FFT loops of numpy {np.__version__} cannot be called by address: {why}",
        remedy="run ./testbed setup, or install the numpy that locks/requirements.txt pins",
    )


class _Head(ctypes.Structure):
    """The first fields of numpy's PyUFuncObject, after the common head of Python objects."""

    _fields_ = (
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
    )


def _read(loop: str, letter: str) -> tuple[int, int]:
    """(function, data) of one loop. Raises ValueError if the struct does not have the expected contents."""
    ufunc = getattr(import_module("numpy.fft._pocketfft_umath"), loop)
    if not isinstance(ufunc, np.ufunc):
        raise ValueError(f"{loop} is no ufunc")
    rows = [row.partition("->")[0] for row in ufunc.types]
    kind = letter if loop.startswith("rfft") else letter.upper()
    head = _Head.from_address(id(ufunc) + object.__basicsize__)
    counts = (head.nin, head.nout, head.nargs, head.ntypes)
    if counts != (2, 1, 3, len(rows)):  # checked before any pointer of the struct is followed
        raise ValueError(f"{loop} has another struct")
    if head.name != loop.encode():
        raise ValueError(f"{loop} is named {head.name!r}")
    row = rows.index(kind + letter)
    function, data = head.functions[row], (head.data[row] if head.data else None) or 0
    if not function or (loop in WITH_DATA) is not bool(data):
        raise ValueError(f"{loop} has no function")
    return function, data


_LOOP = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def _check(loop: str, letter: str, function: int, data: int) -> None:
    """Compare the loop with the definition of the transform on 5 points (6 for the even-length transform)."""
    wide = np.dtype(TYPES[letter])
    real = np.dtype(letter)
    points = 6 if loop == "rfft_n_even" else 5
    half = points // 2 + 1
    sources = {"irfft": (half, wide)}
    count, kind = sources.get(loop, (points, real if loop.startswith("rfft") else wide))
    source = np.arange(1, count + 1).astype(kind)
    target = np.zeros(half if loop.startswith("rfft") else points, real if loop == "irfft" else wide)
    factor = np.array(0.5, real)
    arguments = (ctypes.c_void_p * 3)(source.ctypes.data, factor.ctypes.data, target.ctypes.data)
    dims = (ctypes.c_ssize_t * 3)(1, len(source), len(target))
    steps = (ctypes.c_ssize_t * 5)(0, 0, 0, source.itemsize, target.itemsize)
    _LOOP(function)(ctypes.addressof(arguments), ctypes.addressof(dims), ctypes.addressof(steps), data)
    if not np.allclose(target, 0.5 * _definition(loop, source, points), rtol=1e-4):
        raise _refused(f"{loop} gives a wrong result")


def _definition(loop: str, x: np.ndarray, points: int) -> np.ndarray:
    if loop == "irfft":
        x = np.concatenate([x, np.conj(x[1 : (points + 1) // 2][::-1])])
    sign = 2j if loop in ("ifft", "irfft") else -2j
    turns = np.outer(np.arange(points), np.arange(points)) % points
    whole = np.exp(sign * np.pi * turns / points) @ x
    return whole.real if loop == "irfft" else whole[: points // 2 + 1] if loop.startswith("rfft") else whole
