"""Dimensions that are reduced, in the order of memory: the place of each element, and what is fetched ahead of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from .builder import IndexValue
from .elemental import Elemental, Index
from .fetch import LONG_RUN, fetch, streams_of
from .linear import is_linear


class Along:
    """The last dimensions are one if they are adjacent in memory and all operands are read in the order of memory.

    order: the reduced dimensions, the slowest in memory first; kept: the place along the others. sizes: of the loops.
    """

    def __init__(self, e: Elemental, operands: Sequence[Instruction], order: Sequence[int], kept: Index):
        self.e, self.operands, self.order, self.source = e, operands, order, operands[0].shape
        self.positions: list[IndexValue] = [0] * self.source.rank
        others = [d for d in range(self.source.rank) if d not in order]
        for d, position in zip(others, kept.multi, strict=True):
            self.positions[d] = position
        dims, strides = ([x[d] for d in order] for x in (self.source.dims, self.source.strides))
        self.dense, apart = strides[-1:] == [1], max(len(order) - 1, 0)
        while apart and strides[apart - 1] == dims[apart] * strides[apart]:
            apart -= 1
        self.joins = self.dense and apart < len(order) - 1 and all(is_linear(o, e.leaves) for o in operands)
        self.apart = apart if self.joins else len(order)
        self.sizes = [*dims[: self.apart], *([prod(dims[self.apart :])] if self.joins else [])]

    def place(self, at: Sequence[IndexValue]) -> Index:
        """The index of the elements at these positions of the loops."""
        code = self.e.code
        for d, position in zip(self.order, at[: self.apart], strict=False):
            self.positions[d] = position
        if not self.joins:
            return Index.at(code, self.source, self.positions)
        return Index.flat(code, self.source, code.add(code.weighted_sum(self.positions, self.source.strides), at[-1]))

    def ahead(self, count: int) -> Callable[[Sequence[IndexValue]], None] | None:
        """What fetches ahead of `count` elements along memory, from their place; None if nothing is."""
        long = len(self.sizes) == 1 or self.sizes[-1] * self.source.dtype.bytes >= LONG_RUN
        streams = streams_of(self.e, self.operands, self.source) if self.dense and long else []

        def fetched(at: Sequence[IndexValue]) -> None:
            fetch(self.e, streams, self.place(at).offset(self.source), count, along=True)

        return fetched if streams else None


def stored_of(e: Elemental, operand: Instruction) -> Instruction | None:
    """The array in memory that has the elements of an operand, and of its dtype, at the same offsets."""
    while operand not in e.leaves:
        if operand.opcode not in (Op.RESHAPE, Op.BITCAST):
            return None
        (before,) = operand.operands
        if not (operand.shape.is_row_major and before.shape.is_row_major and before.shape.dtype is operand.shape.dtype):
            return None
        operand = before
    return operand
