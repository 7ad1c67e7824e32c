"""Prints constants so that the parser reads back the same bits."""

from __future__ import annotations

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Literal
from .parse_literals import nan_payload

LONG = 1000
"""An array of more elements than this that are zero, except the first, is printed as its first element.

The parser reads one number for an array in this way (parse_literals.py).
"""


def literal_to_text(literal: Literal) -> str:
    """The text between the parentheses of `constant(…)`."""
    shape, value = literal.shape, literal.value
    if shape.is_tuple:
        assert isinstance(value, tuple)
        return "( " + ", ".join(map(literal_to_text, value)) + " )" if value else "()"
    if not shape.is_array:
        return ""
    if value is None:
        return "{...}"
    assert isinstance(value, np.ndarray)
    if literal.is_splat:
        return _numbers(value[(0,) * value.ndim].reshape(1), shape.dtype)[0]
    flat = value.reshape(-1)
    if flat.size > LONG and not any(flat[1:LONG].tobytes()) and not np.frombuffer(flat[1:].tobytes(), np.uint8).any():
        return _numbers(flat[:1], shape.dtype)[0]
    numbers = _numbers(flat, shape.dtype)
    if shape.rank == 0:
        return {"0": "false", "1": "true"}[numbers[0]] if shape.dtype is DType.PRED else numbers[0]
    return _nest(numbers, shape.dims)


def _nest(numbers: list[str], dims: tuple[int, ...]) -> str:
    """Join elements in braces, innermost dimension first."""
    parts = numbers
    for depth, size in enumerate(reversed(dims)):
        count = 1
        for d in dims[: len(dims) - 1 - depth]:
            count *= d
        space = " " if depth and size else ""
        parts = ["{" + space + ", ".join(parts[i * size : (i + 1) * size]) + space + "}" for i in range(count)]
    return parts[0] if parts else "{}"


def _numbers(flat: np.ndarray, dtype: DType) -> list[str]:
    if dtype is DType.PRED or dtype.is_integer:
        return [str(int(v)) for v in flat.tolist()] if flat.dtype.kind in "biu" else [str(int(v)) for v in flat]
    if dtype.is_complex:
        parts = _reals(np.ascontiguousarray(flat).view(dtype.component.numpy), dtype.component)
        return [f"({a}, {b})" for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return _reals(flat, dtype)


def _reals(flat: np.ndarray, dtype: DType) -> list[str]:
    """The shortest decimal of each number that the parser reads back as the same value."""
    if dtype in (DType.F64, DType.F32, DType.F16):
        wide = flat
    else:  # f8e8m0fnu has powers of two below the normal range of f32
        wide = flat.astype(np.float64 if dtype is DType.F8E8M0FNU else np.float32)
    out = [_short(str(v)) for v in wide]
    for i in np.flatnonzero(np.isnan(wide)):
        out[i] = _nan(flat[i : i + 1], dtype)
    return out


def _short(text: str) -> str:
    return text[:-2] if text.endswith(".0") and text != "-0.0" else text  # XLA reads "-0" as the integer 0


def _nan(value: np.ndarray, dtype: DType) -> str:
    negative, payload = nan_payload(value, dtype)
    return ("-nan" if negative else "nan") + (f"(0x{payload:x})" if payload is not None else "")
