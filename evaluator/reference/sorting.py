"""sort and topk."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...hlo.dtypes import FROM_NUMPY
from ...hlo.ir import Computation, Instruction
from .context import Context, Value
from .elementwise import total_order_key
from .shape import crop

Array = np.ndarray


def sort(instruction: Instruction, operands: Sequence[Array], context: Context) -> Value:
    """A stable merge sort by any comparator; the comparisons of one step run at once, on whole arrays."""
    axis, operands = instruction.dimensions[0], crop(operands)
    if not operands[0].size:
        return tuple(operands) if instruction.shape.is_tuple else operands[0]
    rows = [np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis]) for x in operands]
    order = merge_order(rows, instruction.attributes["to_apply"], context)
    out = []
    for x, row in zip(operands, rows, strict=True):
        moved = np.moveaxis(x, axis, -1).shape
        out.append(np.moveaxis(np.take_along_axis(row, order, axis=1).reshape(moved), -1, axis))
    return tuple(out) if instruction.shape.is_tuple else out[0]


def merge_order(rows: Sequence[Array], comparator: Computation, context: Context) -> Array:
    """The permutation [rows, length] that sorts each row stably.

    rows: the operands as [rows, length] arrays, which the comparator compares together.
    """
    batch, length = rows[0].shape
    order = np.broadcast_to(np.arange(length), (batch, length)).copy()

    def less(i: Array, j: Array) -> Array:
        """Whether element i of each row comes before element j by the comparator."""
        arguments = []
        for row in rows:
            arguments += [np.take_along_axis(row, i, axis=1), np.take_along_axis(row, j, axis=1)]
        return np.broadcast_to(context.vectorise(comparator, arguments), i.shape)

    run = 1
    while run < length:
        order = _merge_runs(order, run, length, less)
        run *= 2
    return order


def _merge_runs(order: Array, run: int, length: int, less) -> Array:
    """Merge neighbouring sorted runs: an element's new place is its rank in its own run plus that in the other run."""
    place = np.arange(length)
    start = place // run * run
    left = start // run % 2 == 0
    other = np.where(left, np.minimum(start + run, length), start - run)
    other_end = np.where(left, np.minimum(start + 2 * run, length), start)
    low, high = (np.broadcast_to(v, order.shape).copy() for v in (other, other_end))
    left_row = np.broadcast_to(left, order.shape)
    while (low < high).any():
        middle = np.minimum((low + high) // 2, length - 1)
        theirs = np.take_along_axis(order, middle, axis=1)
        # left elements go before equal right ones
        before = np.where(left_row, less(theirs, order), ~less(order, theirs))
        active = low < high
        low, high = np.where(active & before, middle + 1, low), np.where(active & ~before, middle, high)
    pair = place // (2 * run) * (2 * run)
    target = pair + (place - start) + (low - other)
    if (np.sort(target, axis=1) != place).any():  # the comparator is no strict order: make it a permutation at least
        target = np.argsort(np.argsort(target, axis=1, kind="stable"), axis=1)
    merged = np.empty_like(order)
    np.put_along_axis(merged, target, order, axis=1)
    return merged


def topk(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Value:
    """(values, s32 indices) along the last dimension. Equal values keep their order; floats are in total order."""
    return top(operands[0], instruction.attributes["k"], largest=instruction.attributes.get("largest", True))


def topk_call(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Value:
    """The custom call TopK, which the optimiser of XLA:CPU creates: k is the size of the result's last dimension."""
    return top(operands[0], instruction.shape.elements[0].dims[-1], largest=True)


def top(x: Array, k: int, *, largest: bool) -> Value:
    """The k largest or smallest elements along the last dimension, and their s32 indices."""
    dtype = FROM_NUMPY[x.dtype]
    key = total_order_key(x) if dtype.is_float else x.astype(np.int8) if dtype.bits < 8 else x
    order = np.argsort(~key if largest else key, axis=-1, kind="stable")[..., :k]  # ~ reverses the order of integers
    return np.take_along_axis(x, order, axis=-1), order.astype(np.int32)
