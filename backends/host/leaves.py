"""Converts between numpy arrays in logical order and buffers in the layout of their shape."""

from __future__ import annotations

from typing import Any

from ...hlo.dtypes import from_numpy
from ...hlo.errors import InputError, OutOfMemoryError
from ...hlo.later import np
from ...hlo.records import dataclass, field
from ...hlo.shapes import Shape
from .addresses import address_of
from .memory import POOL, size_class


@dataclass(frozen=True, slots=True)
class Leaf:
    """One array of a program's signature. number: its position among the array leaves.

    alignment: the alignment in bytes that kernels assume.
    """

    role: str  # 'input' or 'output', for messages
    number: int
    shape: Shape
    alignment: int
    dtype: np.dtype = field(init=False)
    dims: tuple[int, ...] = field(init=False)
    order: tuple[int, ...] | None = field(init=False)  # dimensions from major to minor; None: row-major
    physical: tuple[int, ...] = field(init=False)  # dimension sizes in that order
    bytes: int = field(init=False)
    capacity: int = field(init=False)  # bytes of the pool's block

    def __post_init__(self) -> None:
        order = tuple(reversed(self.shape.minor_to_major))
        object.__setattr__(self, "dtype", self.shape.dtype.numpy)
        object.__setattr__(self, "dims", self.shape.dims)
        object.__setattr__(self, "bytes", self.shape.bytes)
        object.__setattr__(self, "capacity", size_class(self.shape.bytes))
        object.__setattr__(self, "order", None if self.shape.is_row_major else order)
        object.__setattr__(
            self, "physical", self.shape.dims if self.shape.is_row_major else tuple(self.shape.dims[d] for d in order)
        )

    def address(self, value: Any) -> tuple[int, np.ndarray]:
        """The address of an input in the form that the program needs, and the array that must stay alive.

        The array is `value` itself, or a copy if its layout, byte order or alignment does not fit. Raises InputError.
        """
        array = value if type(value) is np.ndarray else np.asarray(value)
        if array.dtype != self.dtype or array.shape != self.dims:
            self._check(array)
        elif self.order is None and array.flags.c_contiguous:
            address = address_of(array)
            if not address % self.alignment:
                return address, array
        physical = array if self.order is None else array.transpose(self.order)
        if not (physical.flags.c_contiguous and physical.dtype == self.dtype) or address_of(physical) % self.alignment:
            copied = self.allocate_physical()
            np.copyto(copied, physical)
            physical = copied
        return address_of(physical), physical

    def _check(self, array: np.ndarray) -> None:
        """Raise InputError unless shape and dtype match; the byte order may differ."""
        given = from_numpy().get(array.dtype.newbyteorder("="))
        if given is not self.shape.dtype or array.shape != self.shape.dims:
            name = given.value if given else str(array.dtype)
            sizes = ",".join(map(str, array.shape))
            raise InputError(
                f"{self.role} {self.number}: expected {self.shape.without_layout()}, given {name}[{sizes}]",
                remedy=_remedy(given is not self.shape.dtype, array.shape != self.shape.dims, self.dtype),
            )

    def allocate_physical(self) -> np.ndarray:
        """A new block of the pool as an array in memory order."""
        return np.ndarray(self.physical, self.dtype, self._take()[0])

    def allocate_result(self) -> tuple[np.ndarray, int]:
        """A new array in logical order, and its address."""
        buffer, address = self._take()
        return self.logical(np.ndarray(self.physical, self.dtype, buffer)), address

    def _take(self) -> tuple[Any, int]:
        """A block of the pool and its address. Raises OutOfMemoryError."""
        try:
            return POOL.take(self.capacity)
        except MemoryError as error:
            what = f"{self.role} {self.number}, {self.shape.without_layout()},"
            raise OutOfMemoryError(what, self.bytes) from error

    def logical(self, physical: np.ndarray) -> np.ndarray:
        """A view in logical order of an array in memory order."""
        return physical if self.order is None else physical.transpose(np.argsort(self.order))

    def result_address(self, value: np.ndarray) -> int:
        """The address of a caller's array for this result. Raises InputError if it does not fit."""
        if not isinstance(value, np.ndarray) or value.dtype != self.dtype or value.shape != self.dims:
            self._check(np.asarray(value))
        else:
            address, flags = address_of(value), value.flags
            contiguous = (flags if self.order is None else value.transpose(self.order).flags).c_contiguous
            if contiguous and flags.writeable and not address % self.alignment:
                return address
        raise InputError(
            f"{self.role} {self.number}: not a writeable contiguous array at a {self.alignment}-byte boundary",
            remedy="give arrays that an earlier execution returned",
        )


def _remedy(wrong_dtype: bool, wrong_shape: bool, dtype: np.dtype) -> str:
    if wrong_shape:
        return "give an array of that shape"
    return f"convert it with .astype({dtype.name!r})" if wrong_dtype else ""
