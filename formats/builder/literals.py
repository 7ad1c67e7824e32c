"""Literals from numbers and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...hlo.dtypes import FROM_NUMPY, DType
from ...hlo.errors import InputError
from ...hlo.ir import Literal
from ...hlo.shapes import Shape, tuple_shape

DEFAULTS = {bool: DType.PRED, int: DType.S32, float: DType.F32, complex: DType.C64}
"""The element type of a Python number where nothing says another, as in JAX."""


def literal_of(value: Any, dtype: DType | None = None) -> Literal:
    """A literal: itself, an array or number, or a tuple of them. Raises InputError for a value that does not fit."""
    if isinstance(value, Literal):
        return value
    if isinstance(value, tuple):
        parts = tuple(literal_of(part, dtype) for part in value)
        return Literal(tuple_shape(*(p.shape for p in parts)), parts)
    array = constant_array(value, dtype)
    return Literal(Shape(FROM_NUMPY[array.dtype], array.shape), array)


def constant_array(value: Any, dtype: DType | None = None) -> np.ndarray:
    """A read-only array of the value. An array is converted to `dtype`; a Python number must be one of its values, up
    to rounding. Raises InputError.
    """
    wanted = dtype or DEFAULTS.get(type(value))
    if isinstance(value, (bool, int, float, complex)) and wanted is not None:
        _check_number(value, wanted)
    try:
        array = np.array(value) if wanted is None or isinstance(value, np.ndarray) else _array(value, wanted)
    except (ValueError, TypeError, OverflowError) as error:
        raise InputError(
            f"{type(value).__name__} is no constant: {error}", remedy="give a number or an array"
        ) from None
    if dtype is None and wanted is None and isinstance(value, (list, tuple)):
        wanted = DEFAULTS.get(type(array.reshape(-1)[0].item())) if array.size else DType.F32
    if wanted is not None and array.dtype != wanted.numpy:
        array = array.astype(wanted.numpy)
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.newbyteorder("=") not in FROM_NUMPY:
        raise InputError(f"a constant of numpy type {array.dtype}", remedy="give numbers of an element type of HLO")
    array = array.astype(array.dtype.newbyteorder("="), copy=array is value)
    array.setflags(write=False)
    return array


def _array(value: Any, dtype: DType) -> np.ndarray:
    return np.array(value).astype(dtype.numpy)


def _check_number(value: bool | int | float | complex, dtype: DType) -> None:
    """Refuse a number that the type cannot hold: a fraction as an integer, 300 as s8, an imaginary part as a float."""
    wrong = ""
    if isinstance(value, complex) and not dtype.is_complex:
        wrong = "complex"
    elif isinstance(value, float) and not (dtype.is_float or dtype.is_complex):
        wrong = "a float"
    elif dtype.is_integer:
        low, high = (-(1 << (dtype.bits - 1)), 1 << (dtype.bits - 1)) if dtype.is_signed else (0, 1 << dtype.bits)
        wrong = "" if low <= int(value.real) < high else "out of range"
    elif dtype is DType.PRED and not isinstance(value, bool):
        wrong = "a number"
    if wrong:
        raise InputError(
            f"{value!r} is {wrong}, and the element type is {dtype.value}",
            remedy="give it a type: ops.constant(b, value, dtype)",
        )
