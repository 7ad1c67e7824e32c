"""dot of complex numbers over columns: sums of a block of columns are on the stack, so that neighbours are vectorised.

Loops: the result's dimensions except the column's, blocks of columns, contracting dimensions, one block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..core.builder import Index, Unroll
from ..core.elements import encode
from ..core.graph import Buffer, Node
from ..loops.elemental import Elemental
from ..loops.form import Answer, Fits
from ..loops.ranges import Steps, chunks, outer_loops
from ..loops.view import Subject, View
from ..reductions.column_blocks import BLOCK_COLUMNS, ROWS_TOGETHER
from ..reductions.columns import Accumulators
from ..reductions.long_sums import Blocks, Carried
from .dot import dimension_numbers, multiply_add, one_product, operand_indices

MINIMUM_COLUMNS = 8
"""Columns of a result."""

CHAIN_PRODUCTS = 256
"""Products in a chain."""


def fits(view: View, subject: Subject) -> Answer:
    """Of a product of arrays in memory, whose columns are neighbours. Never in steps."""
    node, result = subject.node, subject.first
    if not result.dtype.is_complex:
        return f"numbers are not complex, but {result.dtype.value}"
    if not all(x.dtype is result.dtype and x.writer is None for x in node.inputs):
        return "an operand is not in memory"
    contracted, column = dimension_numbers(node)[2], _column(node, result)
    if not contracted or not all(node.inputs[0].dims[d] for d in contracted):
        return "nothing is added up"
    if column is None:
        return f"there are no {MINIMUM_COLUMNS} columns that are neighbours in the result and in an operand"
    return Fits(column, view.partition is None)


def emit(e: Elemental, subject: Subject, column: int, steps: Steps | None) -> None:
    _ColumnProduct(e, subject.node, subject.first, column).emit()


def _column(node: Node, result: Buffer) -> int | None:
    """The result dimension whose elements are adjacent in the result and in one operand."""
    inner = result.fastest
    if inner is None or result.dims[inner] < MINIMUM_COLUMNS:
        return None
    marked = operand_indices(node, tuple(int(d == inner) for d in range(len(result.dims))))
    strides = [sum(i * s for i, s in zip(place, x.strides) if i == 1) for place, x in zip(marked, node.inputs)]
    return inner if 1 in strides else None


class _ColumnProduct:
    def __init__(self, e: Elemental, node: Node, result: Buffer, column: int):
        self.e, self.b, self.node, self.result, self.column = e, e.b, node, result, column
        self.width = result.dims[column]
        self.block = min(BLOCK_COLUMNS, self.width)
        self.sums = Accumulators(self.b, node, self.block)
        _, _, self.of_left, self.of_right = dimension_numbers(node)

    def emit(self) -> None:
        b, dims = self.b, self.result.dims
        with outer_loops(b, None, (), dims, [d for d in self.result.order if d != self.column]) as places:
            index = [places.get(d, 0) for d in range(len(dims))]
            for start, size in chunks(b, 0, self.width, self.block, bare=False):
                self._block(index, start, size)

    def _block(self, index: Sequence[Index], start: Index, size: int) -> None:
        b = self.b
        zero = b.constant(-0.0 if one_product(self.node) else 0.0, self._part)
        with b.loop(0, size) as loop:
            self.sums.write(loop.index, [(zero, zero)])
        sizes = [self.node.inputs[0].dims[d] for d in self.of_left]
        long = not b.strict and math.prod(sizes) > CHAIN_PRODUCTS
        if long:
            self.sums.open_totals(size)

        def whole(prefix: Sequence[Index], first: Index, given: Carried) -> Carried:
            self._rows(index, prefix, [b.add(first, k) for k in range(ROWS_TOGETHER)], start, size)
            return given

        def rest(prefix: Sequence[Index], first: int, given: Carried) -> Carried:
            self._rows(index, prefix, list(range(first, sizes[-1])), start, size)
            return given

        def spill(given: Carried) -> Carried:
            self.sums.spill(size)
            return given

        Blocks(b, sizes, ROWS_TOGETHER, CHAIN_PRODUCTS if long else math.prod(sizes), spill, Unroll.NONE).emit(
            whole, rest
        )
        with b.loop(0, size) as loop:
            place = self._at(index, start, loop.index)
            (value,) = (self.sums.read_totals if long else self.sums.read)(loop.index)
            self.e.store(self.result, place, encode(b, self.result.dtype, value))

    @property
    def _part(self):
        return self.b.types.f64 if self.result.dtype.bits == 128 else self.b.types.f32

    def _at(self, index: Sequence[Index], start: Index, column: Index) -> tuple[Index, ...]:
        place = list(index)
        place[self.column] = self.b.add(start, column)
        return tuple(place)

    def _rows(
        self, index: Sequence[Index], inner: Sequence[Index], last: Sequence[Index], start: Index, size: int
    ) -> None:
        """Add a few products to each sum of one block."""
        b, (lhs, rhs) = self.b, self.node.inputs
        with b.loop(0, size) as loop:
            left, right = operand_indices(self.node, self._at(index, start, loop.index))
            (total,) = self.sums.read(loop.index)
            for k in last:
                for ld, rd, at in zip(self.of_left, self.of_right, (*inner, k), strict=True):
                    left[ld] = right[rd] = at
                x, y = self.e.value(lhs, tuple(left)), self.e.value(rhs, tuple(right))
                total = multiply_add(b, self.result.dtype, x, y, total)
            self.sums.write(loop.index, [total])
