"""Start indices of gather and scatter in one form: a row of s32 or s64 numbers a slice."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..dtypes import DType
from ..ir import Instruction
from ..opcodes import Op
from .building import Builder


def index_rows(
    b: Builder,
    indices: Instruction,
    vector_dim: int,
    index_map: Sequence[int],
    batching: Sequence[int],
    indices_batching: Sequence[int],
) -> tuple[Instruction, list[int], tuple[int, ...]]:
    """(rows [slices, columns], the operand's dimension of each column, batch dimensions of the indices)."""
    indices = _signed(b, b.plain(indices))
    if vector_dim == indices.shape.rank:
        indices = b.reshape(indices, (*indices.shape.dims, 1))
    order = [d for d in range(indices.shape.rank) if d != vector_dim] + [vector_dim]
    indices = b.transpose(indices, order)
    batch = indices.shape.dims[:-1]
    count = math.prod(batch)
    parts = [b.reshape(indices, (count, indices.shape.dims[-1]))] if indices.shape.dims[-1] else []
    for dim in indices_batching:
        axis = dim - (dim > vector_dim)
        parts.append(b.reshape(b.iota(indices.shape.dtype, batch, axis), (count, 1)))
    columns = [*index_map, *batching]
    rows = b.concatenate(parts, 1) if parts else b.constant(0, DType.S32, (count, 0))
    return rows, columns, batch


def _signed(b: Builder, indices: Instruction) -> Instruction:
    """Indices as s32 or s64; unsigned ones that do not fit stay too large for any array."""
    dtype = indices.shape.dtype
    target = DType.S64 if dtype.bits == 64 else DType.S32
    if dtype.is_unsigned and dtype.bits == target.bits:
        indices = b.binary(Op.MINIMUM, indices, 2 ** (target.bits - 1) - 1)
    return b.convert(indices, target)


def row_at(b: Builder, rows: Instruction, k: Instruction) -> list[Instruction]:
    """The numbers of row k, as scalars."""
    columns = rows.shape.dims[1]
    if not columns:
        return []
    row = b.dynamic_slice(rows, [k, b.constant(0, k.shape.dtype)], (1, columns))
    return [b.reshape(b.slice_in(row, 1, c, c + 1), ()) for c in range(columns)]


def starts_of(b: Builder, numbers: Sequence[Instruction], columns: Sequence[int], rank: int) -> list[Instruction]:
    """One start a dimension of the operand: its column's number, or 0."""
    dtype = numbers[0].shape.dtype if numbers else DType.S32
    by_dim = dict(zip(columns, numbers, strict=True))
    return [by_dim[d] if d in by_dim else b.constant(0, dtype) for d in range(rank)]
