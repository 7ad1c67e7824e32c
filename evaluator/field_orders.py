"""Rules that refuse a sort whose comparator is no order of its elements, such as a + 1 < b: any result is right."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..hlo.errors import TestbedError
from ..hlo.ir import Computation, Instruction
from ..hlo.opcodes import Op
from .reference.context import Context, Value
from .reference.sorting import sort
from .rules import Rules, rule

MAXIMUM_PAIRS = 1 << 22
"""Pairs of elements that a sort's comparator is asked about."""


class NoOrderError(TestbedError):
    """A sort compares by what is no strict weak order of its elements."""


def with_orders(rules: Rules) -> Rules:
    """The rules, with a sort that raises NoOrderError."""
    return {**rules, Op.SORT: rule(_sort)}


def _sort(instruction: Instruction, operands: Sequence[np.ndarray], context: Context) -> Value:
    axis, length = instruction.dimensions[0], operands[0].shape[instruction.dimensions[0]]
    length = min(length, int(MAXIMUM_PAIRS**0.5))
    count = MAXIMUM_PAIRS // max(length * length, 1)
    rows = [np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])[:count, :length] for x in operands]
    if not is_order(instruction.attributes["to_apply"], rows, context):
        raise NoOrderError("a sort's comparator is no order of these elements", remedy="compare other ones")
    return sort(instruction, operands, context)


def is_order(comparator: Computation, rows: Sequence[np.ndarray], context: Context) -> bool:
    """Whether a comparator is a strict weak order of the elements of each row: whether it only compares how many come
    before each. rows: the operands, [rows, length].
    """
    arguments = [x for row in rows for x in (row[:, :, None], row[:, None, :])]
    shape = (*rows[0].shape, rows[0].shape[1])
    less = np.broadcast_to(np.asarray(context.vectorise(comparator, arguments), bool), shape)
    before = less.sum(axis=1)
    return bool((less == (before[:, :, None] < before[:, None, :])).all())
