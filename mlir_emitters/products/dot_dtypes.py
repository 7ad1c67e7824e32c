"""Dtypes of tiled matrix products: those that narrow ones are multiplied in, and how their vectors are converted."""

from __future__ import annotations

from collections.abc import Callable

from mlir import ir

from ...hlo.dtypes import DType
from ..core.builder import Builder, Pointer, Value
from ..core.elements import ROUNDED, raw_type
from ..core.graph import Buffer

COMPUTE = {
    **dict.fromkeys(ROUNDED, DType.F32),
    **dict.fromkeys((DType.S2, DType.S4, DType.S8, DType.S16), DType.S32),
    **dict.fromkeys((DType.U2, DType.U4, DType.U8, DType.U16), DType.U32),
}
"""Narrow dtypes → the dtype that they are multiplied in."""

SHORT = frozenset({DType.S16, DType.U16})
"""Integers whose sums wrap at 16 bits, if the result is one: twice as many to a vector."""

TILED = frozenset({DType.F32, DType.F64, DType.S32, DType.S64, DType.U32, DType.U64}) | COMPUTE.keys()


def _from_bf16(b: Builder, raw: Value, vector: ir.Type) -> Value:
    bits = ir.VectorType.get(raw.type.shape, b.types.i32)
    sixteen = b.filled(16, bits)
    return b.bitcast(b.op("arith.shli", b.op("arith.extui", raw, type=bits), sixteen), vector)


def _from_f16(b: Builder, raw: Value, vector: ir.Type) -> Value:
    return b.op("arith.extf", b.bitcast(raw, ir.VectorType.get(raw.type.shape, b.types.f16)), type=vector)


def _signed(b: Builder, raw: Value, vector: ir.Type) -> Value:
    return b.op("arith.extsi", raw, type=vector)


def _unsigned(b: Builder, raw: Value, vector: ir.Type) -> Value:
    return b.op("arith.extui", raw, type=vector)


IN_VECTORS: dict[DType, Callable[[Builder, Value, ir.Type], Value]] = {
    DType.BF16: _from_bf16,
    DType.F16: _from_f16,
    **dict.fromkeys((DType.S8, DType.S16), _signed),
    **dict.fromkeys((DType.U8, DType.U16), _unsigned),
}
"""Dtypes whose vectors are converted as they are read, to their row of COMPUTE: (builder, raw, type) → vector."""


def read_vector(b: Builder, place: Pointer, dtype: DType, wide: DType, lanes: int, mask: Value | None = None) -> Value:
    """Neighbours in memory, of one dtype, converted to another. mask: the lanes that are there; others are 0."""
    type = b.vector(lanes, raw_type(b.types, dtype))
    if mask is None:
        found = b.load(place, type, dtype.bytes)
    else:
        found = b.load_masked(place, mask, b.filled(0, type), dtype.bytes)
    return found if dtype is wide else IN_VECTORS[dtype](b, found, b.vector(lanes, raw_type(b.types, wide)))


def is_read_in_vectors(buffer: Buffer, wide: DType) -> bool:
    """Whether an operand is in memory, as numbers of `wide`, or of a dtype whose vectors are converted to it."""
    converts = buffer.dtype in IN_VECTORS and COMPUTE.get(buffer.dtype) is wide
    return buffer.writer is None and (buffer.dtype is wide or converts)


def dtype_of_sums(accumulator: DType) -> DType:
    """The dtype that products are added up in; of complex numbers, that of their parts."""
    return accumulator if accumulator in SHORT else COMPUTE.get(accumulator, accumulator.component)


def converts_in_vectors(source: DType, wide: DType) -> bool:
    """Whether vectors of a narrow operand are converted to `wide` as they are read."""
    widens = wide in SHORT and source.bits == 8 and source.is_unsigned is wide.is_unsigned
    return source in IN_VECTORS and (widens or COMPUTE[source] is wide)
