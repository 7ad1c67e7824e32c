"""How values are written in C: the type of a register and of an element in memory, constants, and bits.

A narrow float is kept as its storage bits; pred and integers of less than 8 bits are in a byte, with the values that
they have as numbers. A complex number is a struct of two parts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...hlo.dtypes import FLOAT8, DType
from ...hlo.ir import Literal

NARROW = frozenset({DType.F16, DType.BF16, DType.F4E2M1FN}) | FLOAT8
"""Floats that are computed in float."""

_NAMES = {
    DType.PRED: "uint8_t",
    DType.F16: "uint16_t",
    DType.BF16: "uint16_t",
    DType.F32: "float",
    DType.F64: "double",
    DType.C64: "tb_c64",
    DType.C128: "tb_c128",
}


def c_type(dtype: DType) -> str:
    """The type of a register and of an element in memory."""
    if dtype in _NAMES:
        return _NAMES[dtype]
    if dtype.is_integer:
        return f"{'' if dtype.is_signed else 'u'}int{max(dtype.bits, 8)}_t"
    return "uint8_t"


def working(dtype: DType) -> DType:
    """The type in which a float is computed: f32 for narrow ones."""
    return DType.F32 if dtype in NARROW else dtype


def integer(value: int, dtype: DType = DType.S64) -> str:
    """An integer constant. The least number of a signed type has no literal of its own."""
    if dtype.is_unsigned:
        return f"UINT64_C({value})" if dtype.bits == 64 else f"{value}u"
    if value == -(1 << 63):
        return "(-INT64_C(9223372036854775807) - 1)"
    if dtype.bits == 64:
        return f"INT64_C({value})" if value >= 0 else f"(-INT64_C({-value}))"
    return f"({value})" if value < 0 and value != -(1 << 31) else "(-2147483647 - 1)" if value < 0 else str(value)


def real(value: float, single: bool) -> str:
    """A float constant, exact, as hexadecimal digits. NaN must be written by its bits."""
    if math.isinf(value):
        return "INFINITY" if value > 0 else "(-INFINITY)"
    text = float(value).hex() + ("f" if single else "")
    return f"({text})" if text.startswith("-") else text


def constant(literal: Literal, index: int = 0) -> str:
    """The element of a literal at a place in logical order, as an expression."""
    dtype = literal.shape.dtype
    flat = np.ascontiguousarray(literal.array).reshape(-1)
    return element(dtype, flat[index])


def element(dtype: DType, value: Any) -> str:
    if dtype is DType.PRED:
        return str(int(value))
    if dtype.is_integer:
        return integer(int(value), dtype)
    if dtype in NARROW:
        bits = int(np.asarray(value).view(f"u{dtype.bytes}"))
        return f"0x{bits & ((1 << dtype.bits) - 1):x}u"
    if dtype.is_complex:
        name, part = c_type(dtype), dtype.component
        return f"({name}){{{_part(part, value.real)}, {_part(part, value.imag)}}}"
    return _part(dtype, value)


def _part(dtype: DType, value: Any) -> str:
    single = dtype is DType.F32
    if math.isnan(value):
        bits = int(np.asarray(value, dtype.numpy).view("u4" if single else "u8"))
        return f"tb_bits_f32(0x{bits:x}u)" if single else f"tb_bits_f64(UINT64_C(0x{bits:x}))"
    return real(float(value), single)
