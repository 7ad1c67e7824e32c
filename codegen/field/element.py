"""Field: which numbers stand for the elements of Z_p, and which element a constant of a program is.

An element stays a float of its own type. The balanced residues m of k·v, 1 ≤ |m| ≤ (p - 1) / 2, are counted through the
normal numbers of the narrowest format of a kernel, upwards from its smallest one; 0 is +0. So every conversion between
float types is exact as it is, and comparisons, extrema, sign changes, sorts and movement need no change.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.records import dataclass

MANTISSA = 23
BIAS = 127
"""Of f32, whose bits are counted; f64 holds the same numbers, and narrower types some of them."""


@dataclass(frozen=True, slots=True)
class Field:
    """Z_p. twist: the k above; it orders the elements. seed: of the functions that are opaque. lowest, mantissa: the
    exponent of the smallest number that stands for an element, and the bits of its mantissa.
    """

    prime: int
    twist: int
    seed: int
    lowest: int = 1 - BIAS
    mantissa: int = MANTISSA

    @property
    def shift(self) -> int:
        """The bits of an f32 below those that are counted."""
        return MANTISSA - self.mantissa

    @property
    def offset(self) -> int:
        """The bits of the f32 that stands for 1 / k."""
        return (self.lowest + BIAS) << MANTISSA

    @property
    def half(self) -> int:
        return (self.prime - 1) // 2

    def bits(self, residue: int) -> int:
        """The bits of the f32 that stands for a residue."""
        stored = residue * self.twist % self.prime
        if not stored:
            return 0
        negative = stored > self.half
        size = self.prime - stored if negative else stored
        return ((size - 1) << self.shift) + self.offset | negative << 31

    def number(self, value: float) -> float:
        """The number that stands for a constant; infinities, NaN and zeros stand for themselves."""
        return _number(self, value) if math.isfinite(value) and value else value


@functools.lru_cache(1 << 14)
def _number(field: Field, value: float) -> float:
    top, bottom = value.as_integer_ratio()
    bits = field.bits(top * pow(bottom, -1, field.prime))
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


_active: ContextVar[Field | None] = ContextVar("field", default=None)


def active() -> Field | None:
    """The field for which kernels are emitted in this thread now; None where floats are floats."""
    return _active.get()


@contextmanager
def emitting(field: Field | None) -> Iterator[None]:
    """Emit for a field within the block (EmitOptions.exact)."""
    token = _active.set(field)
    try:
        yield
    finally:
        _active.reset(token)


@contextmanager
def plain() -> Iterator[bool]:
    """Constants within the block are numbers: of code that looks at bits. Gives whether there is a field."""
    field = _active.get()
    with emitting(None):
        yield field is not None


def constant(value: float) -> float:
    """A constant of a program as it is emitted: the number that stands for it, if there is a field."""
    field = _active.get()
    return value if field is None else field.number(value)


def constants(values: np.ndarray, dtype: DType) -> np.ndarray:
    """The same for an array of a dtype; one of integers as it is."""
    field = _active.get()
    if field is None or not (dtype.is_float or dtype.is_complex):
        return values
    if dtype.is_complex:
        parts = np.ascontiguousarray(values).reshape(-1).view(dtype.component.numpy)
        return constants(parts, dtype.component).view(dtype.numpy).reshape(values.shape)
    with np.errstate(invalid="ignore"):
        wide = values.astype(np.float64)
    usual = np.isfinite(wide) & (wide != 0)  # others stand for themselves: zeros and NaN keep their sign
    different, places = np.unique(np.where(usual, wide, 1.0), return_inverse=True)
    made = np.array([field.number(float(v)) for v in different], np.float64)
    return np.where(usual, made[places].reshape(values.shape).astype(dtype.numpy), values)
