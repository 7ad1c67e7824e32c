"""Shapes, layouts and literals ↔ ShapeProto, LayoutProto, LiteralProto."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...hlo.ir import Literal
from ...hlo.shapes import UNBOUNDED, Layout, Shape
from .schema import enum_name, enum_values

TYPES: dict[DType, int] = {}
"""The PrimitiveType of a dtype. Its label is the dtype's name in capitals, except for `opaque`."""

for _label, _number in enum_values("PrimitiveType").items():
    _name = "opaque" if _label == "OPAQUE_TYPE" else _label.lower()
    if _name in {d.value for d in DType}:
        TYPES[DType(_name)] = _number
DTYPES = {number: dtype for dtype, number in TYPES.items()}
BUFFER = 34
MAX_BYTES = 1 << 31
"""Size in bytes of the largest literal that is read from a proto."""
MAX_DEPTH = 64


# -- shapes -----------------------------------------------------------------------------------------------------------
def read_shape(proto: Any, where: str, depth: int = 0) -> Shape:
    """The Shape of a ShapeProto. where: the field's path, for errors. Raises InputError if it is not a valid shape."""
    if depth > MAX_DEPTH:
        raise InputError(f"{where}: tuples nested deeper than {MAX_DEPTH}", remedy="is the proto damaged?")
    if proto.element_type == BUFFER and len(proto.tuple_shapes) == 1:
        inner = read_shape(proto.tuple_shapes[0], f"{where}.tuple_shapes[0]", depth + 1)
        return Shape(inner.dtype, inner.dims, inner.layout, inner.dynamic, inner.elements, "b")
    dtype = DTYPES.get(proto.element_type)
    if dtype is None:
        label = enum_name("PrimitiveType", proto.element_type) or str(proto.element_type)
        raise InputError(f"{where}.element_type: {label} is not supported", remedy="is the proto damaged?")
    if dtype is DType.TUPLE:
        elements = (read_shape(e, f"{where}.tuple_shapes[{i}]", depth + 1) for i, e in enumerate(proto.tuple_shapes))
        return Shape(dtype, elements=tuple(elements))
    if not dtype.is_array:
        return Shape(dtype)
    dims = tuple(UNBOUNDED if d == -(2**63) else d for d in proto.dimensions)
    if any(d < 0 and d != UNBOUNDED for d in dims):
        raise InputError(f"{where}.dimensions: {min(dims)} is no size", remedy="is the proto damaged?")
    flags = tuple(proto.is_dynamic_dimension)
    if flags and len(flags) != len(dims):
        raise InputError(
            f"{where}.is_dynamic_dimension: {len(flags)} flags for {len(dims)} dimensions", remedy="is it damaged?"
        )
    layout = read_layout(proto.layout, len(dims), where) if proto.HasField("layout") else None
    shape = Shape(dtype, dims, layout, flags if any(flags) else ())
    if not shape.is_addressable:
        raise InputError(
            f"{where}.dimensions: {shape.without_layout()} has more than 2^63 - 1 bytes", remedy="is the proto damaged?"
        )
    return shape


def read_layout(proto: Any, rank: int, where: str) -> Layout | None:
    order = tuple(proto.minor_to_major)
    if sorted(order) != list(range(rank)):
        raise InputError(
            f"{where}.layout.minor_to_major: {list(order)} is no order of {rank} dimensions",
            remedy="is the proto damaged?",
        )
    tiles = tuple(tuple(-1 if d == -(2**63) else d for d in t.dimensions) for t in proto.tiles)
    extras = []
    if proto.tail_padding_alignment_in_elements not in (0, 1):
        extras.append(f"L({proto.tail_padding_alignment_in_elements})")
    for mark, field in (("#", "index_primitive_type"), ("*", "pointer_primitive_type")):
        number = getattr(proto, field)
        if number in DTYPES:
            extras.append(f"{mark}({DTYPES[number].value})")
    if proto.element_size_in_bits:
        extras.append(f"E({proto.element_size_in_bits})")
    if proto.split_configs:
        splits = (f"({s.dimension}:{','.join(map(str, s.split_indices))})" for s in proto.split_configs)
        extras.append("SC" + "".join(splits))
    if proto.dynamic_shape_metadata_prefix_bytes:
        extras.append(f"M({proto.dynamic_shape_metadata_prefix_bytes})")
    layout = Layout(order, tiles, proto.memory_space, "".join(extras))
    return None if layout == Layout(()) else layout


_EXTRA = re.compile(r"(SC|[DL#*EM])((?:\([^()]*\))+)")


def write_shape(shape: Shape, proto: Any, *, layouts: bool = True) -> Any:
    """Fill a ShapeProto. Arrays without a layout get the row-major one, as XLA's parser does."""
    if shape.wrapper:
        proto.element_type = BUFFER
        inner = Shape(shape.dtype, shape.dims, shape.layout, shape.dynamic, shape.elements)
        write_shape(inner, proto.tuple_shapes.add(), layouts=layouts)
        return proto
    proto.element_type = TYPES[shape.dtype]
    for element in shape.elements:
        write_shape(element, proto.tuple_shapes.add(), layouts=layouts)
    if shape.is_array:
        proto.dimensions.extend(-(2**63) if d == UNBOUNDED else d for d in shape.dims)
        proto.is_dynamic_dimension.extend(shape.dynamic or (False,) * shape.rank)
        if layouts:
            _write_layout(shape, proto.layout)
    return proto


def _write_layout(shape: Shape, proto: Any) -> None:
    proto.minor_to_major.extend(shape.minor_to_major)
    proto.tail_padding_alignment_in_elements = 1
    layout = shape.layout
    if layout is None:
        return
    for tile in layout.tiles:
        proto.tiles.add(dimensions=[-(2**63) if d < 0 else d for d in tile])
    proto.memory_space = layout.memory_space
    for mark, values in _EXTRA.findall(layout.extras):
        value = values[1:-1]
        if mark == "L":
            proto.tail_padding_alignment_in_elements = int(value)
        elif mark == "E":
            proto.element_size_in_bits = int(value)
        elif mark == "M":
            proto.dynamic_shape_metadata_prefix_bytes = int(value)
        elif mark in "#*":
            kind = TYPES[DType(value)]
            setattr(proto, "index_primitive_type" if mark == "#" else "pointer_primitive_type", kind)
        elif mark == "SC":
            for part in values[1:-1].split(")("):
                dimension, indices = part.split(":")
                proto.split_configs.add(dimension=int(dimension), split_indices=map(int, indices.split(",")))
        else:
            raise InputError(f"the layout property {mark}{values} of {shape} cannot be written to a proto")


# -- literals ---------------------------------------------------------------------------------------------------------
_REPEATED = {DType.PRED: "preds", DType.S32: "s32s", DType.S64: "s64s", DType.U32: "u32s", DType.U64: "u64s"}
_REPEATED |= {DType.F32: "f32s", DType.F64: "f64s", DType.C64: "c64s", DType.C128: "c128s"}
LITERAL_FIELDS: dict[DType, str] = {d: _REPEATED.get(d, f"{d.value}s") for d in DType if d.is_array}
"""The field of LiteralProto with the elements: numbers for types in _REPEATED, little-endian bytes for all others."""


def read_literal(proto: Any, where: str, shape: Shape | None = None, depth: int = 0) -> Literal:
    """The Literal of a LiteralProto, whose elements are in the order of its layout.

    shape: the shape of the constant, if the literal belongs to one. Raises InputError if the elements do not fit.
    """
    own = read_shape(proto.shape, f"{where}.shape", depth) if shape is None or shape.is_tuple else shape
    if own.is_tuple:
        if len(proto.tuple_literals) != len(own.elements):
            raise InputError(f"{where}.tuple_literals: {len(proto.tuple_literals)} for {len(own.elements)} elements")
        rows = enumerate(proto.tuple_literals)
        parts = tuple(read_literal(p, f"{where}.tuple_literals[{i}]", None, depth + 1) for i, p in rows)
        if any(p.shape.dtype is not e.dtype or p.shape.dims != e.dims for p, e in zip(parts, own.elements)):
            raise InputError(f"{where}.tuple_literals: not of shape {own}", remedy="is the proto damaged?")
        return Literal(shape or own, parts)
    if not own.is_array:
        return Literal(own, None)
    if own.bytes > MAX_BYTES or any(d < 0 for d in own.dims):
        raise InputError(f"{where}: a constant of shape {own} is too large to read", remedy="is the proto damaged?")
    stored = read_shape(proto.shape, f"{where}.shape", depth) if proto.HasField("shape") else own
    if stored.dtype is not own.dtype or stored.dims != own.dims:
        raise InputError(f"{where}.shape: {stored} in a constant of shape {own}", remedy="is the proto damaged?")
    return Literal(own, _logical(_elements(proto, own, where), stored))


def _elements(proto: Any, shape: Shape, where: str) -> np.ndarray:
    field, dtype = LITERAL_FIELDS[shape.dtype], shape.dtype
    value = getattr(proto, field)
    if dtype in _REPEATED:
        flat = np.array(value, dtype.component.numpy)
        flat = flat.view(dtype.numpy) if dtype.is_complex and flat.size % 2 == 0 else flat
    else:
        bits = np.frombuffer(value, np.uint8)
        if dtype.bits < 8 and dtype.is_integer:
            flat = _narrow(bits, dtype)
        else:
            flat = bits.view(dtype.numpy) if bits.size % dtype.bytes == 0 else bits
    if flat.size != shape.size or flat.dtype != dtype.numpy:
        raise InputError(f"{where}.{field}: {flat.size} elements for {shape}", remedy="is the proto damaged?")
    return flat


def _narrow(bits: np.ndarray, dtype: DType) -> np.ndarray:
    values = bits.astype(np.int16) & ((1 << dtype.bits) - 1)
    if dtype.is_signed:
        values = np.where(values >> (dtype.bits - 1), values - (1 << dtype.bits), values)
    return values.astype(np.int8).astype(dtype.numpy)


def _logical(flat: np.ndarray, stored: Shape) -> np.ndarray:
    major_first = tuple(reversed(stored.minor_to_major))
    array = flat.reshape([stored.dims[d] for d in major_first])
    array = np.ascontiguousarray(array.transpose(np.argsort(major_first))) if stored.rank else array.reshape(())
    array.flags.writeable = False
    return array


def write_literal(literal: Literal, proto: Any) -> None:
    """Fill a LiteralProto. Raises InputError for an elided constant."""
    shape = literal.shape
    write_shape(shape, proto.shape)
    if isinstance(literal.value, tuple):
        for element in literal.value:
            write_literal(element, proto.tuple_literals.add())
    if not shape.is_array:
        return
    array, dtype = literal.array, shape.dtype
    flat = np.ascontiguousarray(array.transpose(tuple(reversed(shape.minor_to_major)))).reshape(-1)
    if dtype not in _REPEATED:
        if dtype.bits < 8 and dtype.is_integer:
            flat = (flat.astype(np.int8).view(np.uint8)) & np.uint8((1 << dtype.bits) - 1)
        setattr(proto, LITERAL_FIELDS[dtype], flat.tobytes())
        return
    getattr(proto, LITERAL_FIELDS[dtype]).extend(
        (flat.view(dtype.component.numpy) if dtype.is_complex else flat).tolist()
    )
