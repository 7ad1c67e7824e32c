"""One array of a call: values of all kinds that are taken for it, and the error for those that are not."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any

from ..hlo.dtypes import DType, from_numpy
from ..hlo.errors import InputError
from ..hlo.later import np
from ..hlo.records import dataclass
from ..hlo.shapes import Shape
from .dlpack import from_buffer, from_dlpack


@dataclass(frozen=True, slots=True)
class Argument:
    """One array that a caller passes. path: what it is called in messages, `params['w']`."""

    path: str
    shape: Shape

    @property
    def name(self) -> str:
        return re.split(r"[\[.]", self.path, maxsplit=1)[0]


def array_of(value: Any, argument: Argument) -> np.ndarray:
    """The value as an array of the argument's type and shape, without a copy where there is one. Raises InputError."""
    shape = argument.shape
    array = value if type(value) is np.ndarray else _converted(value, argument)
    if array.dtype == shape.dtype.numpy and array.shape == shape.dims:
        return array
    given = from_numpy().get(array.dtype.newbyteorder("="))
    if given is shape.dtype and shape.holds(array.shape):
        return array.astype(shape.dtype.numpy, copy=False)  # of the other byte order, or a dynamic size
    sizes = ",".join(map(str, array.shape))
    raise InputError(
        f"argument {argument.path}: expected {shape.without_layout()}, "
        f"given {given.value if given else array.dtype}[{sizes}]",
        remedy=_remedy(array, given is not shape.dtype, shape),
    )


def _remedy(array: np.ndarray, wrong_type: bool, shape: Shape) -> str:
    steps = [f".astype({shape.dtype.numpy.name!r})"] if wrong_type else []
    if not shape.holds(array.shape):
        if array.size != shape.size or shape.is_dynamic:
            return f"give an array of shape {list(shape.dims)}"
        steps.append(f".reshape({list(shape.dims)})")
    return f"convert it with {''.join(steps)}"


def _converted(value: Any, argument: Argument) -> np.ndarray:
    kind = type(value)
    if kind in NUMBERS:
        return _number(value, argument)
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    refused = InputError(
        f"argument {argument.path}: expected {argument.shape.without_layout()}, given {kind.__name__}",
        remedy="give a numpy array, a number, a buffer or an object with __dlpack__",
    )
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        try:
            return from_dlpack(value, f"argument {argument.path}")
        except InputError as error:
            refused = error
    buffer = from_buffer(value)
    if buffer is not None:
        return buffer
    if hasattr(value, "__array__"):  # after DLPack: it may copy
        with suppress(Exception):  # each library has errors of its own, and the first one says more
            return np.asarray(value)
    raise refused


NUMBERS = (bool, int, float, complex)


def _number(value: bool | int | float | complex, argument: Argument) -> np.ndarray:
    """A Python number as a scalar of the argument's type, as JAX takes it: an int for any number, a float for floats
    and complex numbers, a bool for any type.
    """
    shape, kind = argument.shape, type(value)
    dtype = shape.dtype
    if not shape.rank and _takes(dtype, kind):
        if dtype.is_integer:
            info = (-(1 << (dtype.bits - 1)), 1 << (dtype.bits - 1)) if dtype.is_signed else (0, 1 << dtype.bits)
            if not info[0] <= int(value.real) < info[1]:
                raise InputError(
                    f"argument {argument.path}: {value} is outside {dtype.value}", remedy=f"{info[0]} to {info[1] - 1}"
                )
        return np.asarray(value).astype(dtype.numpy)
    raise InputError(
        f"argument {argument.path}: expected {shape.without_layout()}, given the {kind.__name__} {value!r}",
        remedy=f"give an array of shape {list(shape.dims)}" if shape.rank else f"give a number that is {dtype.value}",
    )


def _takes(dtype: DType, kind: type) -> bool:
    if kind is bool:
        return True
    if kind is int:
        return dtype is not DType.PRED
    return dtype.is_complex or (kind is float and dtype.is_float)
