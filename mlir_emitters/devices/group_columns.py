"""Reductions of devices whose results lie along the operands' memory: a group of items computes a block of columns.

The items share the rows: each adds up some columns over neighbouring rows, and whole lines of memory are read one after
the other. Then the sums of the same columns are combined in the group's memory, and what reads them is computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext

from ...codegen.options import GroupShape
from ...hlo.records import dataclass
from ..core.builder import Index, Value
from ..core.elements import Scalar, flatten, gathered, unflatten
from ..core.graph import Node
from ..core.slots import Slots
from ..loops.elemental import Elemental, Indices
from ..loops.form import Answer, fewer, fitting, more
from ..loops.ranges import positions_of
from ..loops.reduced import initials_of, operands_of, reduced_dimensions
from ..loops.view import Subject, View
from ..reductions.reduce import combine, finished
from ..reductions.results import write_together
from .group import ALIGNMENT_BYTES, Group, types_of
from .group_rows import neutral, operation_of

MINIMUM_ITEM_ROWS = 2
"""Minimum rows of an item for which sharing them pays for the barrier."""


@dataclass(frozen=True, eq=False, slots=True)
class ColumnBlocks:
    """nodes: reductions of the same rows. column: the dimension that is along memory; rows, others: the reduced and the
    kept ones, the slowest first; each: columns of an item, `items` apart.
    """

    nodes: tuple[Node, ...]
    column: int
    rows: tuple[int, ...]
    others: tuple[int, ...]
    items: int
    each: int

    @property
    def dims(self) -> tuple[int, ...]:
        return tuple(self.nodes[0].inputs[0].dims)

    @property
    def width(self) -> int:
        """Columns of a block."""
        return self.items * self.each

    @property
    def counts(self) -> list[int]:
        """Of positions along the other dimensions, and of blocks along the columns."""
        return [self.dims[d] for d in self.others] + [-(-self.dims[self.column] // self.width)]

    @property
    def steps(self) -> int:
        return math.prod(self.counts)


def fits(view: View, subject: Subject) -> Answer:
    assert view.group is not None
    return fitting(column_blocks_of(subject.products, view.group))


def emit(e: Elemental, subject: Subject, blocks: ColumnBlocks, group: Group) -> None:
    ColumnKernel(e, blocks, group, lambda index: write_together(e, subject.results, index)).emit()


def column_blocks_of(nodes: Sequence[Node], shape: GroupShape) -> ColumnBlocks | str:
    """The blocks of reductions; why an order of their terms may matter, or a group has too little to share."""
    operand, reduced = nodes[0].inputs[0], reduced_dimensions(nodes[0])
    order = operand.order
    rows = tuple(d for d in order if d in reduced)
    length, column = math.prod(operand.dims[d] for d in rows), order[-1]
    if operand.dims[column] < shape.across or length < MINIMUM_ITEM_ROWS * shape.down:
        few = operand.dims[column] < shape.across
        return (
            fewer(operand.dims[column], "columns", shape.across)
            if few
            else fewer(length, "rows", MINIMUM_ITEM_ROWS * shape.down)
        )
    if any(operation_of(node, length) is None for node in nodes):
        return "elements are reduced in order"
    most = min(shape.columns, shape.down, operand.dims[column] // shape.across)
    each = 1 << (most.bit_length() - 1)
    if (size := len(nodes) * (16 * each * shape.across * shape.down + ALIGNMENT_BYTES)) > shape.memory:
        return more(size, "bytes of parts of reductions", shape.memory)
    others = tuple(d for d in order[:-1] if d not in reduced)
    return ColumnBlocks(tuple(nodes), column, rows, others, shape.across, each)


class ColumnKernel:
    """Emits the block that is the group's step; write(index) for each of its results, the reductions known there."""

    def __init__(self, e: Elemental, blocks: ColumnBlocks, group: Group, write: Callable[[Indices], None]):
        self.e, self.b, self.blocks, self.group, self.write = e, e.b, blocks, group, write
        self.length = math.prod(blocks.dims[d] for d in blocks.rows)

    def emit(self) -> None:
        b, blocks, group = self.b, self.blocks, self.group
        arrays = []
        for sums in self._sums():
            arrays.append(group.slots(types_of(sums[0]), blocks.width * group.shape.down))
            line = b.mul(group.down, blocks.width)
            for n, value in enumerate(sums):
                arrays[-1].write(b.add(line, self._column(n)), flatten(value))
        group.barrier()
        with group.only(b.compare_integers("ult", group.down, b.constant(blocks.each, b.types.i64))):
            place = b.add(b.mul(group.down, blocks.items), group.across)
            index, first, own = self._begin()
            index[blocks.column] = column = b.add(first, place)
            alone = None
            if blocks.dims[blocks.column] % blocks.width:
                alone = b.compare_integers("uge", b.materialize(column), b.materialize(own))
            with nullcontext() if alone is None else group.only(alone):
                kept = tuple(i for d, i in enumerate(index) if d not in reduced_dimensions(blocks.nodes[0]))
                for node, array in zip(blocks.nodes, arrays, strict=True):
                    (value,) = finished(self.e, node, flatten(self._total(node, array, place)))
                    b.remember((node.output, kept, False), value)
                self.write(kept)

    def _begin(self) -> tuple[list[Index], Index, Index]:
        """(An index of the operands, the first column that is read, the first that is written), by the numbers that are
        known since the last barrier. The last block lies further back where the width is not a multiple of its own.
        """
        b, blocks = self.b, self.blocks
        index = list[Index]([0] * len(blocks.dims))
        *others, number = positions_of(b, self.group.step, blocks.counts)
        for d, place in zip(blocks.others, others, strict=True):
            index[d] = place
        own, size = b.mul(number, blocks.width), blocks.dims[blocks.column]
        if size % blocks.width == 0:
            return index, own, own
        i64 = b.types.i64
        is_last = b.compare_integers("eq", b.materialize(number), b.constant(blocks.counts[-1] - 1, i64))
        return index, b.select(is_last, b.constant(size - blocks.width, i64), b.materialize(own)), own

    def _column(self, number: int) -> Index:
        """An item's column with this number, counted from the block's first."""
        return self.b.add(self.group.across, self.blocks.items * number)

    def _sums(self) -> list[list[Scalar]]:
        """For each reduction, what an item's rows give for each of its columns."""
        b, e, blocks, each = self.b, self.e, self.blocks, self.blocks.each
        begin = [neutral(b, self._operation(node), node.output.dtype) for node in blocks.nodes]
        index, first, _ = self._begin()
        count, start = self._rows()
        with b.loop(0, count, 1, [value for values in begin for _ in range(each) for value in values]) as loop:
            row = b.add(start, loop.index)
            for d, place in zip(blocks.rows, positions_of(b, row, [blocks.dims[d] for d in blocks.rows]), strict=True):
                index[d] = place
            found: list[Value] = []
            for node, sums in zip(blocks.nodes, self._gathered(loop.carried), strict=True):
                (operand,) = operands_of(node)
                for n, value in enumerate(sums):
                    index[blocks.column] = b.add(first, self._column(n))
                    found += flatten(combine(e, node, [value], [e.value(operand, tuple(index))])[0])
            loop.next = found
        return self._gathered(loop.values)

    def _operation(self, node: Node):
        found = operation_of(node, self.length)
        assert found is not None
        return found

    def _gathered(self, values: Sequence[Value]) -> list[list[Scalar]]:
        each, dtypes = self.blocks.each, [node.output.dtype for node in self.blocks.nodes]
        found = gathered(values, [dtype for dtype in dtypes for _ in range(each)])
        return [found[n : n + each] for n in range(0, len(found), each)]

    def _rows(self) -> tuple[Index, Index]:
        """(The number of an item's rows, the first of them). The number is the same for neighbours across, which a
        device's compiler sees in a select, not in a minimum: SPIR-V has that as a function.
        """
        b, i64 = self.b, self.b.types.i64
        each = -(-self.length // self.group.shape.down)
        start = b.mul(self.group.down, each)
        if self.length % self.group.shape.down == 0:
            return each, start
        whole, rest = divmod(self.length, each)
        counts = [b.constant(n, i64) for n in (each, rest, 0)]
        is_whole, is_rest = (b.compare_integers(how, self.group.down, b.constant(whole, i64)) for how in ("ult", "eq"))
        return b.select(is_whole, counts[0], b.select(is_rest, *counts[1:])), start

    def _total(self, node: Node, array: Slots, place: Index) -> Scalar:
        """The result of a column: its initial value and the sums of all items, in their order."""
        b, e, dtype = self.b, self.e, node.output.dtype
        places = [b.add(place, self.blocks.width * n) for n in range(self.group.shape.down)]
        total = unflatten(array.read(places[0]), dtype)
        for further in places[1:]:
            (total,) = combine(e, node, [total], [unflatten(array.read(further), dtype)])
        (initial,) = initials_of(node)
        return combine(e, node, [e.value(initial, ())], [total])[0]
