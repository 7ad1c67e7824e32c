"""Row kernels of devices: a group of items computes a row, or several short ones, one for each second number of items.
An item takes every n-th element; reductions end in a tree.

The walks over a row are those of rows.py. An item reads and writes elements of its own only, so results may lie on
operands; what the items know of each other goes through the group's memory.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir

from ...codegen.options import GroupShape
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Value
from ..core.elements import ROUNDED, SMALL_INTEGERS, Scalar, flatten, gathered, parts, unflatten
from ..core.graph import STEPWISE, WIDENED, Buffer, Node
from ..core.slots import Slots
from ..loops.elemental import Elemental
from ..loops.form import Answer, Fits, fewer, more
from ..loops.ranges import Steps, positions_of
from ..loops.reduced import initials_of, only_op, operands_of
from ..loops.row_graph import Role, RowGraph
from ..loops.view import Subject, View
from ..reductions.reduce import combine, finished
from ..rows.row_walks import Rows, Walk, is_reduced
from ..rows.rows import RowKernel
from .group import ALIGNMENT_BYTES, Group, types_of

MINIMUM_ROW_ELEMENTS = 32
"""Minimum elements of a row for which a group has work for its items."""

MAXIMUM_ROWS, MAXIMUM_ELEMENTS, MINIMUM_GROUPS = 8, 1024, 8
"""Of a group, its rows and the elements of these; and the groups that are left then."""

FLOATS = {Op.ADD: -0.0, Op.MULTIPLY: 1.0, Op.MAXIMUM: -math.inf, Op.MINIMUM: math.inf}
"""What changes no float that it is combined with."""

INTEGERS = frozenset({*FLOATS, Op.AND, Op.OR, Op.XOR})


@dataclass(frozen=True, slots=True)
class RowsOfGroup:
    """lanes: the items of a group for a row, a power of two; rows: how many a group computes. in_place: arguments that
    also hold an operand.
    """

    plan: Rows
    lanes: int
    rows: int
    in_place: frozenset[int]

    @property
    def steps(self) -> int:
        return self.plan.graph.count // self.rows


def fits(view: View, subject: Subject) -> Answer:
    graph, shape = subject.rows, view.group
    assert shape is not None
    if isinstance(graph, str):
        return graph
    reductions = _reductions(graph)
    if graph.length < MINIMUM_ROW_ELEMENTS:
        return fewer(graph.length, "elements of a row", MINIMUM_ROW_ELEMENTS)
    if not all(operation_of(node, graph.length) for node in reductions):
        return "elements are reduced in order"
    lanes = min(shape.lanes, 1 << (graph.length.bit_length() - 1))
    if (size := taken(len(reductions), lanes)) > shape.memory:
        return more(size, "bytes of parts of reductions", shape.memory)
    rows = rows_of_group(graph, lanes, shape)
    reduced = sum(is_reduced(graph, x) for x in graph.roles)
    room = max(0, shape.memory // rows - taken(reduced, lanes) - ALIGNMENT_BYTES * len(graph.roles))
    return Fits(RowsOfGroup(Rows.of(graph, subject.results, view.in_place, room), lanes, rows, view.in_place))


def emit(e: Elemental, subject: Subject, form: RowsOfGroup, group: Group) -> None:
    GroupRows(e, form, subject.results, group).emit()


def _reductions(graph: RowGraph) -> list[Node]:
    nodes = {x.writer for x, role in graph.roles.items() if role is Role.ROW and x.writer is not None}
    return [node for node in nodes if node.opcode is Op.REDUCE]


def rows_of_group(graph: RowGraph, lanes: int, shape: GroupShape) -> int:
    """How many rows a group computes. The parts of a row follow from each other: one vector of items would wait."""
    if not shape.vectors:
        return 1
    room = shape.memory // 2 // max(1, taken(len(_reductions(graph)), lanes))
    fitting = (
        n
        for n in (MAXIMUM_ROWS, 4, 2)
        if graph.count % n == 0
        and graph.count >= n * MINIMUM_GROUPS
        and n * graph.length <= MAXIMUM_ELEMENTS
        and n <= room
    )
    return next(fitting, 1)


def taken(reductions: int, lanes: int) -> int:
    """At most this many bytes of a group's memory hold the items' parts of reductions."""
    return reductions * 2 * (lanes * 16 + ALIGNMENT_BYTES)


def operation_of(node: Node, length: int) -> Op | None:
    """The operation of a reduction whose items' parts may be combined in any order; None for another."""
    op, dtype = only_op(node), node.outputs[0].dtype
    if dtype.is_complex:
        return op if op is Op.ADD else None
    if dtype.is_float:
        wide = dtype not in ROUNDED or (dtype in WIDENED and length > STEPWISE)
        return op if wide and op in FLOATS else None
    return op if dtype not in SMALL_INTEGERS and op in INTEGERS else None


def neutral(b: Builder, op: Op, dtype: DType) -> list[Value]:
    """The value with which an item's part of a reduction begins."""
    if dtype.is_complex or dtype.is_float:
        type = b.types.f64 if dtype.component is DType.F64 else b.types.f32
        return [b.constant(FLOATS[op], type)] * parts(dtype)
    bits, signed = (1, False) if dtype is DType.PRED else (dtype.bits, dtype.is_signed)
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    values = {Op.MULTIPLY: 1, Op.MAXIMUM: least, Op.MINIMUM: most, Op.AND: -1 if signed else most}
    return [b.constant(values.get(op, 0), b.types.integer(bits))]


class GroupRows(RowKernel):
    """Emits one row kernel, for the `rows` rows that are the group's step."""

    def __init__(self, e: Elemental, form: RowsOfGroup, results: Sequence[Buffer], group: Group):
        super().__init__(e, form.plan, results)
        self.group, self.lanes, self.rows, self.in_place = group, form.lanes, form.rows, form.in_place
        self.totals: dict[Node, list[Scalar]] = {}

    def emit(self, steps: Steps | None = None) -> None:
        b, group = self.b, self.group
        self._at_row()
        for step in self.plan.walks:
            self._walk(step)
        numbers = [r for r in self.results if self.graph.roles[r] is Role.ROW]
        if any(r.argument in self.in_place for r in numbers):
            group.barrier()  # others may still read what is overwritten
            self._at_row()
        if numbers:
            with group.only(b.compare_integers("eq", group.across, b.constant(0, b.types.i64))):
                self.write_numbers()

    def _at_row(self) -> None:
        """Be at the group's row, by the number that is known since the last barrier; reductions have their results."""
        b, step = self.b, self.group.step
        self.row_number = step if self.rows == 1 else b.add(b.mul(step, self.rows), self.group.down)
        self.row = positions_of(b, self.row_number, self.outer)
        for node, values in self.totals.items():
            self.bind(node, values)

    def row_array(self, type: ir.Type, count: int) -> Value:
        return self.group.take(type, count * self.rows)

    def kept_at(self) -> Index:
        return self._of_row(self.column_number, self.graph.length)

    def _of_row(self, place: Index, count: int) -> Index:
        """A place among `count` ones of the item's row, in memory for all rows of the group."""
        return place if self.rows == 1 else self.b.add(self.b.mul(self.group.down, count), place)

    def _walk(self, step: Walk) -> None:
        """A loop over an item's elements of the row, then the trees of its reductions."""
        b, group, nodes, length, lanes = self.b, self.group, step.reductions, self.graph.length, self.lanes
        for number in step.numbers:
            self.value(number, self.place(number))
        begin = [neutral(b, self._operation(node), node.output.dtype) for node in nodes]
        carried = [value for values in begin for value in values]
        even, across = length % lanes == 0, group.across
        bounds: tuple[Index, Index, int] = (0, length // lanes, 1) if even else (across, length, lanes)
        with b.loop(*bounds, carried) as loop:
            self.column_number = b.add(b.mul(loop.index, lanes), across) if even else loop.index
            self.column = positions_of(b, self.column_number, self.inner)
            self.recall_held(step)
            found = []
            for node, part in zip(nodes, self._parts(nodes, loop.carried), strict=True):
                (operand,) = operands_of(node)
                found += flatten(combine(self, node, [part], [self.value(operand, self.place(operand))])[0])
            self.keep_and_write(step)
            loop.next = found
        for node, total in zip(nodes, self._totals(nodes, loop.values), strict=True):
            (initial,) = initials_of(node)
            (value,) = combine(self, node, [self.value(initial, ())], [total])
            self.totals[node] = finished(self, node, flatten(value))
        self._at_row()

    def _operation(self, node: Node) -> Op:
        found = operation_of(node, self.graph.length)
        assert found is not None
        return found

    @staticmethod
    def _parts(nodes: Sequence[Node], values: Sequence[Value]) -> list[Scalar]:
        return gathered(values, [n.output.dtype for n in nodes])

    def _totals(self, nodes: Sequence[Node], values: Sequence[Value]) -> list[Scalar]:
        """The items' parts of reductions, combined: √n items combine √n parts each, then all items combine these, in
        the same order, so that they have the same bits.
        """
        if not nodes:
            return []
        b, group, lanes = self.b, self.group, self.lanes
        few, own = 1 << ((lanes.bit_length() - 1) // 2), self._parts(nodes, values)
        every = [group.slots(types_of(part), lanes * self.rows) for part in own]
        some = [group.slots(types_of(part), few * self.rows) for part in own]
        for array, part in zip(every, own, strict=True):
            array.write(self._of_row(group.across, lanes), flatten(part))
        group.barrier()
        with group.only(b.compare_integers("ult", group.across, b.constant(few, b.types.i64))):
            places = [self._of_row(b.add(group.across, few * k), lanes) for k in range(lanes // few)]
            for node, array, target in zip(nodes, every, some, strict=True):
                target.write(self._of_row(group.across, few), flatten(self._combined(node, array, places)))
        group.barrier()
        places = [self._of_row(k, few) for k in range(few)]
        return [self._combined(node, array, places) for node, array in zip(nodes, some, strict=True)]

    def _combined(self, node: Node, array: Slots, places: Sequence[Index]) -> Scalar:
        """Values in the group's memory, combined in this order."""
        dtype = node.output.dtype
        total = unflatten(array.read(places[0]), dtype)
        for place in places[1:]:
            (total,) = combine(self, node, [total], [unflatten(array.read(place), dtype)])
        return total
