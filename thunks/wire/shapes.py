"""Shapes ↔ messages."""

from __future__ import annotations

from typing import Any

from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...hlo.shapes import Layout, Shape

MOST_RANK = 64
"""Dimensions that numpy's arrays can have."""

_TYPES = {dtype.value: dtype for dtype in DType}


def shape_values(shape: Shape) -> dict[str, Any]:
    """Without tiles and memory spaces, which the host does not use."""
    return {
        "type": shape.dtype.value,
        "dims": list(shape.dims),
        "minor_to_major": list(shape.layout.minor_to_major) if shape.layout is not None else [],
        "has_layout": shape.layout is not None,
        "dynamic": list(shape.dynamic),
        "elements": [shape_values(element) for element in shape.elements],
    }


def shape_of(values: dict[str, Any] | None) -> Shape:
    """Raises InputError for what is no shape."""
    if values is None:
        raise InputError("a shape is missing")
    dtype, dims, dynamic = _TYPES.get(values["type"]), tuple(values["dims"]), tuple(values["dynamic"])
    if dtype is None:
        raise InputError(f"unknown type {values['type']!r} of an array", remedy="read it with a newer testbed")
    order = tuple(values["minor_to_major"])
    if len(dims) > MOST_RANK or (values["has_layout"] and sorted(order) != list(range(len(dims)))):
        raise InputError(f"a shape of {len(dims)} dimensions with the layout {{{','.join(map(str, order))}}}")
    elements = tuple(shape_of(element) for element in values["elements"])
    layout = Layout(order) if values["has_layout"] else None
    shape = Shape(dtype, dims, layout, dynamic, elements)
    wrong = (not shape.is_array and dims) or (elements and not shape.is_tuple) or len(dynamic) not in (0, len(dims))
    if wrong or not shape.is_addressable:
        raise InputError(f"no shape: {dtype.value} with {len(dims)} dimensions and {len(elements)} elements")
    return shape
