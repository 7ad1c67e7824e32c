"""Expand ragged-all-to-all: find the input row of each output row, then gather once."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder

NOWHERE = -1


def ragged_rows(i: Instruction, b: Builder) -> Instruction:
    """That of one device."""
    return moved_rows(b, i.operands[0], i.operands[1], i.operands[2:5])


def moved_rows(b: Builder, x: Instruction, out: Instruction, table: Sequence[Instruction]) -> Instruction:
    """Copy rows x[start : start + size] to out[to : to + size] for each group; a later group wins.

    table: starts, sizes and targets of the groups.
    """
    x, out, *table = map(b.plain, (x, out, *table))
    count, rows = table[0].shape.size, out.shape.dims[0]
    if not count or not x.shape.size or not out.shape.size:
        return out
    starts, sizes, targets = (b.reshape(b.convert(t, DType.S64), (count,)) for t in table)
    source = b.constant(NOWHERE, DType.S64, (rows,))

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        *table, source = values
        start, size, to = (b.reshape(b.dynamic_slice(t, [k], [1]), ()) for t in table)
        place = b.binary(Op.SUBTRACT, b.iota(DType.S64, (rows,), 0), to)
        met = b.binary(Op.AND, b.compare(place, "GE", 0), b.compare(place, "LT", size))
        return [*table, b.select(met, b.binary(Op.ADD, place, start), source)]

    source = b.counted(count, [starts, sizes, targets, source], step)[3]
    row = x.shape.dims[1:]
    taken = b.op(
        Op.GATHER, array(x.shape.dtype, rows, *row), x, b.reshape(source, (rows, 1)),
        offset_dims=tuple(range(1, len(row) + 1)), collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1,
        slice_sizes=(1, *row),
    )  # fmt: skip
    come = b.broadcast(b.compare(source, "GE", 0), out.shape.dims, (0,))
    return b.select(come, taken, out)
