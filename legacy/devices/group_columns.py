"""Reductions of devices that keep the fastest dimension: a group of items computes neighbouring columns.

Each item adds up some columns over a part of the rows, so that a group reads whole lines of memory, row after row; the
parts are combined in the group's memory. What reads the reductions follows, element by element.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from llvmlite import ir

from ...codegen.options import GroupShape
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import IndexValue, Loop, Once, Range
from ..core.registers import I64, Register
from ..loops.access import live_dimensions
from ..loops.elemental import Elemental, Index
from ..loops.form import Fit, Task, at_least, at_most, form, needs
from ..reductions.reduce import Reducer, Reduction, reduced_order
from ..reductions.results import finishes, products_of_all
from .group import ALIGNMENT_BYTES, Group, SharedArray
from .group_rows import begin_with, can_begin, combined

MINIMUM_ROWS_OF_ITEM = 2
"""Rows that each item has at least; of fewer, the group's barrier costs more than it saves."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Reductions over the same columns. fastest: the dimension of the operands that these are along; each: columns of
    an item; tile: of a group.
    """

    instructions: tuple[Instruction, ...]
    fastest: int
    each: int
    tile: int

    @property
    def source(self) -> tuple[int, ...]:
        return self.instructions[0].operands[0].shape.dims

    @property
    def rows(self) -> list[int]:
        """The reduced dimensions, the slowest first."""
        return reduced_order(self.instructions[0])

    @property
    def outer(self) -> list[int]:
        """The other dimensions, the slowest first."""
        order = reversed(self.instructions[0].operands[0].shape.minor_to_major)
        return [d for d in order if d != self.fastest and d not in self.instructions[0].dimensions]

    @property
    def counts(self) -> list[int]:
        """Of positions along these, and of groups along the columns."""
        return [*(self.source[d] for d in self.outer), -(-self.source[self.fastest] // self.tile)]

    def grouped(self, shape: GroupShape) -> tuple[int, int, int]:
        return math.prod(self.counts), shape.across, shape.down


class ColumnTile:
    """The columns that are a group's step."""

    def __init__(self, e: Elemental, columns: Columns, group: Group):
        self.e, self.code, self.columns, self.group = e, e.code, columns, group
        self.reducers = [Reducer(e, i, apart=False) for i in columns.instructions]

    def emit(self, finish: Callable[[Index], None]) -> None:
        """Emit `finish(index)` for each element of the results, with the reductions' values bound there."""
        e, code, columns, group = self.e, self.code, self.columns, self.group
        opened = [r.widened([e.number(init) for init in r.inits]) for r in self.reducers]
        begin = [begin_with(r, values[0]) for r, values in zip(self.reducers, opened, strict=True)]
        shared = [SharedArray(group, part, columns.tile * group.shape.down) for part in begin]
        for array, parts in zip(shared, self._parts(begin), strict=True):
            for place, part in zip(self._places(), parts, strict=True):
                array.write(code.add(code.multiply(group.down, columns.tile), place), part)
        group.barrier()
        with code.when(code.b.icmp_unsigned("<", group.down, I64(columns.each))):
            self._end(shared, opened, finish)

    def _end(
        self, shared: Sequence[SharedArray], opened: Sequence[list[Register]], finish: Callable[[Index], None]
    ) -> None:
        """Combine the parts of an item's columns, and give them on."""
        e, code, columns, group = self.e, self.code, self.columns, self.group
        place = code.add(group.across, code.multiply(group.down, group.shape.across))
        positions, first, nominal = self._begin()
        positions[columns.fastest] = code.add(first, place)
        inside = None
        if first is not nominal:  # columns before it are another group's
            column = code.value(positions[columns.fastest])
            inside = code.b.icmp_unsigned(">=", column, code.value(nominal))
        kept = [positions[d] for d in range(len(positions)) if d not in columns.instructions[0].dimensions]
        with code.when(inside):
            for reducer, start, array in zip(self.reducers, opened, shared, strict=True):
                places = [code.add(place, columns.tile * k) for k in range(group.shape.down)]
                values = reducer.close(reducer.join(start, [combined(reducer, array, places)]))
                e.bind(reducer.instruction, Index.at(code, reducer.instruction.shape, kept), reducer.result(values))
            finish(Index.at(code, columns.instructions[0].shape, kept))

    def _begin(self) -> tuple[list[IndexValue], IndexValue, IndexValue]:
        """(Positions in an operand, the first column that the group reads, the first that it writes), by the numbers
        that are known since the last barrier. The last group reads as many columns as others: some are not its own.
        """
        code, columns = self.code, self.columns
        counts, positions = columns.counts, list[IndexValue]([0] * len(columns.source))
        *outer, number = code.split(self.group.step, counts)
        for d, place in zip(columns.outer, outer, strict=True):
            positions[d] = place
        width, nominal = columns.source[columns.fastest], code.multiply(number, columns.tile)
        if width % columns.tile == 0:
            return positions, nominal, nominal
        is_last = code.b.icmp_unsigned("==", code.value(number), I64(counts[-1] - 1))
        first = code.b.select(is_last, I64(width - columns.tile), code.value(nominal))
        code.define(first, code.scope)
        return positions, first, nominal

    def _places(self) -> list[IndexValue]:
        """An item's columns, counted from the group's first. Those of neighbours lie between them."""
        return [self.code.add(self.group.across, self.group.shape.across * n) for n in range(self.columns.each)]

    def _parts(self, begin: Sequence[Register]) -> list[list[Register]]:
        """For each reduction, an item's parts of its columns, over its part of the rows."""
        code, columns, group, each = self.code, self.columns, self.group, self.columns.each
        sizes = [columns.source[d] for d in columns.rows]
        count = math.prod(sizes)
        most = -(-count // group.shape.down)
        positions, first, _ = self._begin()
        places = self._places()
        start = code.multiply(group.down, most)
        carried = [value for value in begin for _ in range(each)]
        loop: Loop | Once | Range
        if count % group.shape.down == 0:  # all items go round as often
            loop = code.loop(most, carried=carried)
        else:
            loop = code.range(0, self._rows_of(count, most), carried=carried)
        row = code.add(start, loop.index)
        for d, place in zip(columns.rows, code.split(row, sizes), strict=True):
            positions[d] = place
        found: list[Register] = []
        remaining = iter(loop.carried)
        for reducer in self.reducers:
            (operand,) = reducer.operands
            for place in places:
                positions[columns.fastest] = code.add(first, place)
                value = self.e.value(operand, Index.at(code, operand.shape, positions))
                found += reducer.combine([next(remaining)], [value])
        parts = loop.close(found)
        return [parts[n * each : (n + 1) * each] for n in range(len(self.reducers))]

    def _rows_of(self, all: int, most: int) -> ir.Value:
        """How many rows an item has: `most`, the rest, or none. No minimum, which SPIR-V has as a function, and of a
        function's result a device's compiler does not know whether neighbours have the same.
        """
        b, down = self.code.b, self.group.down
        whole, rest = divmod(all, most)
        others = b.select(b.icmp_unsigned("==", down, I64(whole)), I64(rest), I64(0))
        count = b.select(b.icmp_unsigned("<", down, I64(whole)), I64(most), others)
        self.code.define(count, self.code.scope)
        return count


@form(
    "groups/columns",
    lambda e, results, given, group: ColumnTile(e, given, group).emit(finishes(e, results)),
    MINIMUM_ROWS_OF_ITEM="rows of an item",
)
def columns(task: Task) -> Fit:
    """Reductions that keep the fastest dimension: a group's items add up neighbouring columns."""
    instructions, shape = products_of_all(task, Op.REDUCE), task.group
    assert shape is not None
    first = instructions[0]
    source = first.operands[0].shape
    fastest = live_dimensions(source)[0]
    width, rows = source.dims[fastest], math.prod(source.dims[d] for d in first.dimensions)
    least = MINIMUM_ROWS_OF_ITEM * shape.down
    at_least(width, shape.across, "columns")
    at_least(rows, least, "rows")
    for i in instructions:
        needs(can_begin(Reduction.of(task.view, i, apart=False)), f"parts of {i.name} have an order")
    each = 1
    while 2 * each <= min(shape.columns, shape.down) and 2 * each * shape.across <= width:
        each *= 2
    tile = each * shape.across
    bytes = sum(16 * tile * shape.down + ALIGNMENT_BYTES for _ in instructions)
    at_most(bytes, shape.memory, "bytes of a group's memory")
    return Fit(Columns(instructions, fastest, each, tile))
