"""Shapes and element types as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...hlo.dtypes import BY_NAME, FROM_NUMPY, DType
from ...hlo.errors import InputError
from ...hlo.shapes import Shape
from ..text.lexer import Lexer
from ..text.parse_shapes import parse_shape

DTypeLike = DType | str | np.dtype | type
"""An element type: DType.F32, 'f32', 'float32', numpy.float32, ml_dtypes.bfloat16."""

ShapeLike = Shape | DType | str | np.dtype | type | tuple[DTypeLike, Sequence[int]] | Any
"""A shape: a Shape, HLO text ('f32[2,<=3]{1,0}', '(f32[], s32[2])'), (dtype, dims), an element type (a scalar), or
anything with `shape` and `dtype`, like an array.
"""


def dtype_of(value: DTypeLike) -> DType:
    """The element type. Raises InputError if HLO has none such."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str) and value in BY_NAME:
        return BY_NAME[value]
    try:
        found = FROM_NUMPY.get(np.dtype(value))
    except TypeError:
        found = None
    if found is None:
        raise InputError(f"{value!r} is no element type of HLO", remedy="give a name such as 'f32' or a numpy dtype")
    return found


def shape_of(value: ShapeLike) -> Shape:
    """The shape. Raises InputError or ParseError if it is none."""
    if isinstance(value, Shape):
        return value
    if isinstance(value, str):
        return _parsed(value)
    if isinstance(value, (DType, np.dtype, type)):
        return Shape(dtype_of(value))
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], (tuple, list)):
        return _array(value[0], value[1])
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return _array(value.dtype, value.shape)
    raise InputError(f"{value!r} is no shape", remedy="write it as in HLO, 'f32[2,3]', or give (dtype, dims)")


def _array(dtype: Any, dims: Sequence[int]) -> Shape:
    shape = Shape(dtype_of(dtype), tuple(int(n) for n in dims))
    if any(n < 0 for n in shape.dims) or not shape.is_addressable:
        raise InputError(f"{list(dims)} are no sizes of an array of {shape.dtype.value}", remedy="give sizes ≥ 0")
    return shape


def _parsed(text: str) -> Shape:
    lexer = Lexer(text, "<shape>")
    if text.strip() in BY_NAME:
        return Shape(BY_NAME[text.strip()])
    shape = parse_shape(lexer)
    if not lexer.ended:
        lexer.fail(f"unexpected text after the shape: {lexer.found()}")
    return shape
