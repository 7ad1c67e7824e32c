"""Scatter → a loop that combines one window a turn: in bounds or left out whole, updates in their order."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir import Instruction, Module
from ..opcodes import Op
from .building import Builder, apply_pointwise, is_pointwise
from .expansion import expand_ops
from .indices import index_rows, row_at, starts_of


def expand_scatter(module: Module) -> Module:
    """Replace every scatter outside kernels whose region is pointwise."""
    return expand_ops(module, {Op.SCATTER: scatter_loop})


def scatter_loop(i: Instruction, b: Builder) -> Instruction | None:
    """The scatter as a loop over its windows; one window needs no loop."""
    a, region = i.attributes, i.attributes["to_apply"]
    many = len(i.operands) // 2
    arrays, updates = i.operands[:many], i.operands[many + 1 :]
    if not is_pointwise(region):
        return None
    if not updates[0].shape.size or not arrays[0].shape.size:
        return b.tuple(arrays) if i.shape.is_tuple else arrays[0]
    batching, rank = a.get("input_batching_dims", ()), arrays[0].shape.rank
    rows, columns, batch = index_rows(
        b, i.operands[many], a["index_vector_dim"], a.get("scatter_dims_to_operand_dims", ()), batching,
        a.get("scatter_indices_batching_dims", ()),
    )  # fmt: skip
    inserted = {*a.get("inserted_window_dims", ()), *batching}
    moved = [_windows_last(b, b.plain(u), a.get("update_window_dims", ()), math.prod(batch)) for u in updates]
    window = iter(moved[0].shape.dims[1:])
    extent = [1 if d in inserted else next(window) for d in range(rank)]
    limits = [arrays[0].shape.dims[d] - extent[d] for d in columns]
    if any(n < 0 for n in limits):  # no window fits
        return b.tuple(arrays) if i.shape.is_tuple else arrays[0]

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        rows, updates, arrays = values[0], values[1 : 1 + many], values[1 + many :]
        numbers = row_at(b, rows, k)
        starts = starts_of(b, numbers, columns, rank)
        inside = _inside(b, numbers, limits)
        old = [b.dynamic_slice(x, starts, extent) for x in arrays]
        new = apply_pointwise(b, region, [*old, *(_update_at(b, u, k, extent) for u in updates)])
        chosen = [b.select(inside, n, o) if inside is not None else n for n, o in zip(new, old)]
        return [rows, *updates, *(b.dynamic_update_slice(x, c, starts) for x, c in zip(arrays, chosen))]

    results = b.counted(math.prod(batch), [rows, *moved, *map(b.plain, arrays)], step)[1 + many :]
    return b.tuple(results) if i.shape.is_tuple else results[0]


def _windows_last(b: Builder, updates: Instruction, window_dims: Sequence[int], count: int) -> Instruction:
    """Updates as [slices, window…]."""
    batch = [d for d in range(updates.shape.rank) if d not in window_dims]
    sizes = [updates.shape.dims[d] for d in window_dims]
    return b.reshape(b.transpose(updates, [*batch, *window_dims]), (count, *sizes))


def _update_at(b: Builder, updates: Instruction, k: Instruction, extent: Sequence[int]) -> Instruction:
    zero = b.constant(0, k.shape.dtype)
    sizes = (1, *updates.shape.dims[1:])
    return b.reshape(b.dynamic_slice(updates, [k, *[zero] * (len(sizes) - 1)], sizes), extent)


def _inside(b: Builder, numbers: Sequence[Instruction], limits: Sequence[int]) -> Instruction | None:
    """Whether 0 ≤ number ≤ limit for all; None where there are none to check."""
    tests = []
    for number, limit in zip(numbers, limits, strict=True):
        tests += [b.compare(number, "GE", 0), b.compare(number, "LE", limit)]
    whole = None
    for test in tests:
        whole = test if whole is None else b.binary(Op.AND, whole, test)
    return whole
