"""Gather → a loop that copies one slice a turn: dynamic-slice (which clamps as gather does), dynamic-update-slice."""

from __future__ import annotations

import math

from ..ir import Instruction, Module
from ..opcodes import Op
from .building import Builder
from .expansion import expand_ops
from .indices import index_rows, row_at, starts_of


def expand_gather(module: Module) -> Module:
    """Replace every gather outside kernels."""
    return expand_ops(module, {Op.GATHER: gather_loop})


def gather_loop(i: Instruction, b: Builder) -> Instruction | None:
    """The gather as a loop over its slices; one slice needs no loop."""
    source, a = i.operands[0], i.attributes
    if not i.shape.size or not source.shape.size:
        return b.constant(0, i.shape.dtype, i.shape.dims)
    sizes, rank = a.get("slice_sizes", ()), source.shape.rank
    batching = a.get("operand_batching_dims", ())
    rows, columns, batch = index_rows(
        b, i.operands[1], a["index_vector_dim"], a.get("start_index_map", ()), batching,
        a.get("start_indices_batching_dims", ()),
    )  # fmt: skip
    dropped = {*a.get("collapsed_slice_dims", ()), *batching}
    offsets = [n for d, n in enumerate(sizes) if d not in dropped]
    count = math.prod(batch)

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        rows, source, result = values
        starts = starts_of(b, row_at(b, rows, k), columns, rank)
        piece = b.reshape(b.dynamic_slice(source, starts, sizes), (1, *offsets))
        zero = b.constant(0, k.shape.dtype)
        return [rows, source, b.dynamic_update_slice(result, piece, [k, *[zero] * len(offsets)])]

    blank = b.constant(0, i.shape.dtype, (count, *offsets))
    result = b.counted(count, [rows, b.plain(source), blank], step)[2]
    return b.transpose(b.reshape(result, (*batch, *offsets)), _order(i, len(batch)))


def _order(i: Instruction, batch: int) -> list[int]:
    """For each dimension of the gather's result, its place in [batch…, offset…]."""
    offset_dims = i.attributes.get("offset_dims", ())
    rest = iter(range(batch))
    return [batch + offset_dims.index(d) if d in offset_dims else next(rest) for d in range(i.shape.rank)]
