"""Row kernels of devices: a group of items computes a row, or several short ones, as an item's second number says.
An item takes every n-th element; reductions end in a tree.

The walks over a row are those of rows.py. An item reads and writes elements of its own only, so results may lie on
operands; what the items know of each other goes through the group's memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...codegen.options import GroupShape
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import IndexValue, Loop, Once, Range
from ..core.registers import Register, flatten, real_constant
from ..loops.elemental import Elemental
from ..loops.form import Fit, Results, Task, at_least, at_most, form, needs
from ..reductions.long_sums import nothing
from ..reductions.reduce import Reducer, Reduction
from ..rows.row_graph import Role, RowGraph
from ..rows.rows import RowElemental, Walk, emit_body, find_rows, is_flat, over_rows, plan_walks, regrouped, with_role
from .group import ALIGNMENT_BYTES, Group, SharedArray

MINIMUM_LENGTH = 32
"""Minimum elements of a row for which a group has work for its items."""

TOGETHER, SHORT, FEWEST_GROUPS = 8, 1024, 8
"""The most rows of a group, the most elements of these, and the fewest groups that there are then."""

FLOATS = {Op.ADD: -0.0, Op.MULTIPLY: 1.0, Op.MAXIMUM: float("-inf"), Op.MINIMUM: float("inf")}
"""What changes no float that it is combined with."""


@dataclass(frozen=True, slots=True)
class Rows:
    """lanes: items that share a row. together: rows of a group."""

    rows: RowGraph
    flat: bool
    lanes: int
    together: int
    walks: tuple[Walk, ...]

    def grouped(self, shape: GroupShape) -> tuple[int, int, int]:
        """Steps, and the items of a group across and down."""
        return self.rows.grid.count // self.together, self.lanes, self.together


def together_of(rows: RowGraph, lanes: int, shape: GroupShape) -> int:
    """The rows of a group. Where items are one vector, a row is a chain of operations that wait for each other, and
    several rows are worked at meanwhile.
    """
    count, found = rows.grid.count, 1
    while shape.vectors and 2 * found <= TOGETHER and count % (2 * found) == 0:
        room = 2 * found * _taken(rows, lanes) <= shape.memory // 2
        if not room or 2 * found * rows.grid.length > SHORT or count // (2 * found) < FEWEST_GROUPS:
            break
        found *= 2
    return found


def can_begin(reduction: Reduction) -> bool:
    """Whether the items' parts may be combined in any order, and begin with what changes nothing."""
    if reduction.simple is None or len(reduction.instruction.operands) != 2:
        return False
    op, dtype = reduction.simple.opcode, reduction.dtype
    if dtype.is_complex:
        return op is Op.ADD
    if dtype.is_float:
        return op in FLOATS and (reduction.in_single or dtype in (DType.F32, DType.F64))
    return dtype is DType.PRED or dtype.bits >= 8


def begin_with(reducer: Reducer, like: Register) -> Register:
    """The value with which an item's part of a reduction begins."""
    op, dtype = reducer.op, reducer.dtypes[0]
    if dtype.is_complex:
        return nothing(like)
    (register,) = flatten(like)
    if dtype.is_float:
        return real_constant(register.type, FLOATS[op])
    bits, signed = register.type.width, dtype.is_signed
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed and bits > 1 else (0, (1 << bits) - 1)
    values = {Op.MULTIPLY: 1, Op.MAXIMUM: least, Op.MINIMUM: most, Op.AND: -1 if signed and bits > 1 else most}
    return register.type(values.get(op, 0))


def emit_group_rows(e: Elemental, results: Results, given: Rows, group: Group) -> None:
    """Emit all results of a row kernel, for the rows that are the group's step."""
    numbers = with_role(results, given.rows, Role.ROW)
    at = GroupRows(e, given, group)
    at.at_row()
    for walk in given.walks:
        _emit_walk(at, walk)
    if not numbers:
        return
    if any(leaf.in_place for leaf in numbers):
        group.barrier()  # others may still read what is overwritten
        at.at_row()
    with at.code.when(at.code.b.icmp_unsigned("==", group.across, group.across.type(0))):
        at.write(numbers)


def _taken(rows: RowGraph, lanes: int) -> int:
    """At most this many bytes of a group's memory hold the items' parts of reductions."""
    return len(over_rows(rows)) * 2 * (lanes * 16 + ALIGNMENT_BYTES)


def _emit_walk(e: GroupRows, walk: Walk) -> None:
    """A loop over an item's elements of the row, then the trees of its reductions."""
    reducers = [Reducer(e, reduce, apart=False) for reduce in walk.reduces]
    opened = [r.widened([e.number(init) for init in r.inits]) for r in reducers]
    begin = [begin_with(r, values[0]) for r, values in zip(reducers, opened, strict=True)]
    loop = e.open_lanes(begin)
    accumulators = regrouped(loop.carried, [[value] for value in begin])
    found = emit_body(e, walk, reducers, accumulators, last=True)
    parts = loop.close([value for values in found for value in values])
    for reducer, start, total in zip(reducers, opened, e.totals(reducers, parts), strict=True):
        values = reducer.close(reducer.join(start, [total]))
        e.results[reducer.instruction] = reducer.result(values)
    e.at_row()


class GroupRows(RowElemental):
    """Values at the group's row and the item's current column."""

    def __init__(self, e: Elemental, given: Rows, group: Group):
        super().__init__(e, given.rows, given.flat)
        self.group, self.lanes, self.together = group, given.lanes, given.together
        self.results: dict[Instruction, Register] = {}

    def at_row(self) -> None:
        """Be at the group's row, by the number that is known since the last barrier; reductions have their results."""
        code, group = self.code, self.group
        first = code.multiply(group.step, self.together)
        self.row = code.value(code.add(first, group.down if self.together > 1 else 0))
        self.row_positions = [self.row] if self.flat else list(code.split(self.row, self.outer))
        for instruction, value in self.results.items():
            self.bind(instruction, self.place(instruction), value)

    def open_lanes(self, carried: Sequence[Register]) -> Loop | Once | Range:
        """A loop over the item's elements, of which neighbours have the next ones. All items go round as often, where
        that is possible, and count alike: devices that make vectors of items need no masks then.
        """
        code, across, length, lanes = self.code, self.group.across, self.rows.grid.length, self.lanes
        loop: Loop | Once | Range
        if length % lanes == 0:
            loop = code.loop(length // lanes, carried=carried)
            self.column = code.add(code.multiply(loop.index, lanes), across)
        else:
            loop = code.range(across, length, lanes, carried=carried)
            self.column = loop.index
        self.column_positions = [self.column] if self.flat else list(code.split(self.column, self.inner))
        return loop

    def row_array(self, like: Register) -> SharedArray:
        return self._array(like, self.rows.grid.length)

    def _array(self, like: Register, count: int) -> SharedArray:
        """Memory of the items of a row."""
        return (
            ArrayOfEach(self.group, like, count, self.together)
            if self.together > 1
            else SharedArray(self.group, like, count)
        )

    def totals(self, reducers: Sequence[Reducer], parts: Sequence[Register]) -> list[Register]:
        """The items' parts of reductions, combined: √n items combine √n parts each, then all items combine these, in
        the same order, so that they have the same bits.
        """
        if not reducers:
            return []
        group, code, lanes = self.group, self.code, self.lanes
        few = 1 << ((lanes.bit_length() - 1) // 2)
        every = [self._array(part, lanes) for part in parts]
        some = [self._array(part, few) for part in parts]
        for array, part in zip(every, parts, strict=True):
            array.write(group.across, part)
        group.barrier()
        with code.when(code.b.icmp_unsigned("<", group.across, group.across.type(few))):
            for reducer, array, target in zip(reducers, every, some, strict=True):
                places = [code.add(group.across, few * k) for k in range(lanes // few)]
                target.write(group.across, combined(reducer, array, places))
        group.barrier()
        return [combined(reducer, array, range(few)) for reducer, array in zip(reducers, some, strict=True)]


class ArrayOfEach(SharedArray):
    """One for each second number of items."""

    def __init__(self, group: Group, like: Register, count: int, together: int):
        super().__init__(group, like, count * together)
        self._group, self._count = group, count

    def read(self, position: int | ir.Value) -> Register:
        return super().read(self._place(position))

    def write(self, position: int | ir.Value, value: Register) -> None:
        super().write(self._place(position), value)

    def _place(self, position: int | ir.Value) -> ir.Value:
        code = self.code
        return code.value(code.add(code.multiply(self._group.down, self._count), position))


def combined(reducer: Reducer, array: SharedArray, places: Sequence[IndexValue]) -> Register:
    """Values in a group's memory, combined in this order."""
    total = array.read(places[0])
    for place in places[1:]:
        (total,) = reducer.join([total], [array.read(place)])
    return total


@form("groups/rows", emit_group_rows, MINIMUM_LENGTH="elements of a row")
def rows(task: Task) -> Fit:
    """Row kernels: a group's items share a row, or several short ones."""
    view, results, shape = task.view, task.results, task.group
    assert shape is not None
    graph = find_rows(view, results.leaves)
    length = graph.grid.length
    at_least(length, MINIMUM_LENGTH, "elements of a row")
    for i in over_rows(graph):
        needs(can_begin(Reduction.of(view, i, apart=False)), f"parts of {i.name} have an order")
    lanes = min(shape.lanes, 1 << (length.bit_length() - 1))
    taken = _taken(graph, lanes)
    at_most(taken, shape.memory, "bytes of a group's memory")
    together = together_of(graph, lanes, shape)
    room = shape.memory // together - taken - ALIGNMENT_BYTES * len(graph.roles)
    walks = plan_walks(view, with_role(results, graph, Role.FULL), graph, max(0, room))
    return Fit(Rows(graph, is_flat(graph, view), lanes, together, tuple(walks)))
