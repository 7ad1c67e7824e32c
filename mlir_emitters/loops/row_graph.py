"""Decides which kernels this stack emits row by row, on LHLO's buffers, and gives each value of one a role.

A value is read at the current element of a row, at the current row, at the current column, or elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from enum import Enum

from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, replace
from ...hlo.shapes import Shape
from ...planning.partition import Partition
from ..core.graph import Buffer, Node, reachable
from .reduced import initials_of, operands_of, reduced_dimensions


class Role(Enum):
    FULL, ROW, COLUMN = range(3)


PASSED = frozenset({Op.BROADCAST, Op.RESHAPE, Op.BITCAST, Op.COPY})
"""Ops whose element at a row and column may be their operand's element there."""


APART = frozenset({Op.CONVOLUTION, Op.DOT, Op.DYNAMIC_UPDATE_SLICE, Op.REDUCE_WINDOW, Op.SCATTER, Op.SORT})
"""Ops whose outputs have their own loops (ROOTS of roots.py, products), while a row kernel computes single elements.
"""


@dataclass(frozen=True, slots=True)
class RowGraph:
    """The roles of a row kernel's buffers, operands before users. plain: only single values are read elsewhere.

    shared: buffers without a role because users read them in several, as those of a square matrix read a vector that is
    added to its rows and its columns. They are read elsewhere. single: a reduction is all that the kernel computes.
    """

    count: int
    length: int
    roles: Mapping[Buffer, Role]
    shared: frozenset[Buffer] = frozenset()
    plain: bool = True
    single: bool = False

    def takes(self, partition: Partition | None) -> bool:
        """Whether steps are whole rows."""
        return partition is None or self.count % partition.extent == 0

    def fits(self, shape: Shape, role: Role) -> bool:
        """Whether an array of this shape is stored row by row."""
        if not shape.is_array or not shape.is_row_major:
            return False
        if role is Role.FULL:
            return shape.size == self.count * self.length and self.outer_dims(shape) is not None
        return shape.size == (self.count if role is Role.ROW else self.length)

    def outer_dims(self, shape: Shape) -> int | None:
        """The number of dimensions other than 1 that count rows."""
        live = [d for d in shape.dims if d != 1]
        for k in range(len(live) + 1):
            if math.prod(live[:k]) == self.count:
                return k
        return None

    def sources(self, buffer: Buffer) -> list[tuple[Buffer, Role | None]]:
        """The operands of a buffer with a role, and the role in which each is read; None: elsewhere."""
        node, role = buffer.writer, self.roles[buffer]
        if node is None:
            return []
        wanted: list[Role | None] = [None] * len(node.inputs)
        if node.opcode is Op.REDUCE:
            if role is Role.ROW:
                return [(x, Role.FULL) for x in operands_of(node)] + [(x, None) for x in initials_of(node)]
        elif node.opcode is Op.BROADCAST:
            wanted = [self._broadcast(node, role)]
        elif node.opcode in (Op.RESHAPE, Op.BITCAST):
            source = node.inputs[0]
            wanted = [role if source.dtype is buffer.dtype and source.shape.size == buffer.shape.size else None]
        elif node.opcode in ELEMENTWISE:
            one = Role.ROW if self.count == 1 else None
            wanted = [role if x.dims == buffer.dims else one if x.shape.size == 1 else None for x in node.inputs]
        return [(x, r if r is not None and self.reads(x, r) else None) for x, r in zip(node.inputs, wanted)]

    def reads(self, x: Buffer, role: Role) -> bool:
        """Whether a buffer can be read in a role."""
        return x not in self.shared and self.fits(x.shape, role)

    def reduces(self, node: Node, role: Role) -> bool:
        """Whether a reduction can compute its results in a role: one value per row, or one per row and column."""
        if role is Role.ROW:
            return row_form(node) == (self.count, self.length)
        return role is Role.FULL and self.makes_element(node)

    def makes_element(self, node: Node) -> bool:
        """Whether it has one result of the rows' size. Each element is then a loop, as in a nest over the result."""
        return len(node.outputs) == 1 and node.inputs[0].shape.size > 0 and self.fits(node.output.shape, Role.FULL)

    def _broadcast(self, node: Node, role: Role) -> Role | None:
        source, dims = node.inputs[0], node.output.dims
        live = [d for d, size in enumerate(dims) if size != 1]
        given = [d for d, size in zip(node.attributes.get("dimensions", ()), source.dims, strict=True) if size != 1]
        if given == live:
            return role
        split = self.outer_dims(node.output.shape) if role is Role.FULL else None
        if split is None:
            return None
        return Role.ROW if given == live[:split] else Role.COLUMN if given == live[split:] else None


def _marked(graph: RowGraph, results: Sequence[Buffer]) -> RowGraph | None:
    """The graph with roles, assigned from the results on; None if this is no row kernel."""
    while isinstance(found := _assigned(graph, results), Buffer):
        if found.writer and found.writer.opcode is Op.REDUCE:
            return None
        graph = replace(graph, shared=graph.shared | {found})
    return found


def _assigned(graph: RowGraph, results: Sequence[Buffer]) -> RowGraph | Buffer | None:
    """The graph with roles; a buffer that has two of them; None if this is no row kernel."""
    order: list[Buffer] = []
    outside: list[Buffer] = []
    stack: list[tuple[Buffer, Role | None]] = []
    roles: dict[Buffer, Role] = {}
    graph = replace(graph, roles=roles)
    for result in results:
        role = next((r for r in (Role.FULL, Role.ROW) if graph.reads(result, r)), None)
        if role is None:
            return None
        stack.append((result, role))
    while stack:
        buffer, role = stack.pop()
        if role is None:
            order.append(buffer)
        elif buffer not in roles:
            node = buffer.writer
            refused = node and node.opcode is Op.REDUCE and not graph.reduces(node, role)
            if buffer in graph.shared or refused:
                return None
            roles[buffer] = role
            stack.append((buffer, None))
            for source, wanted in graph.sources(buffer):
                if wanted is None:
                    outside.append(source)
                else:
                    stack.append((source, wanted))
        elif roles[buffer] is not role:
            return buffer
    plain = all(x.shape.size == 1 for x in outside) and all(map(_is_plain, order))
    made = replace(graph, roles={buffer: roles[buffer] for buffer in order}, plain=plain)
    return made if order and _are_apart(made, outside) else None


def _is_plain(buffer: Buffer) -> bool:
    opcode = buffer.writer.opcode if buffer.writer else Op.PARAMETER
    return opcode in ELEMENTWISE or opcode in PASSED or opcode in (Op.PARAMETER, Op.CONSTANT, Op.REDUCE)


def _are_apart(graph: RowGraph, outside: Sequence[Buffer]) -> bool:
    """Whether values read elsewhere depend on no reduction and on no value that has a role."""
    for node in reachable(outside):
        mixed = any(x in graph.roles for x in node.outputs) and node.inputs
        if mixed or node.opcode is Op.REDUCE:
            return False
    return True


def row_form(node: Node) -> tuple[int, int] | None:
    """(number of rows, length of a row) of a reduction over the fastest dimensions of row-major operands."""
    shape = node.inputs[0].shape
    reduced = [d for d in reduced_dimensions(node) if shape.dims[d] != 1]
    kept = [d for d, size in enumerate(shape.dims) if size != 1 and d not in reduced]
    if not shape.size or not reduced or not all(x.shape.is_row_major for x in operands_of(node)):
        return None
    if kept and kept[-1] > min(reduced):
        return None
    return math.prod(shape.dims[d] for d in kept), math.prod(shape.dims[d] for d in reduced)


def rows_of(results: Sequence[Buffer], single: bool = False) -> RowGraph | str:
    """The roles for emitting these results row by row; why there are none. A single reduction has them if `single` asks
    for its rows.
    """
    ends = {first_of(result) for result in results}
    nodes = list(reachable(results))
    reductions = [node for node in nodes if node.opcode is Op.REDUCE]
    if not reductions:
        return "nothing is reduced"
    alone = len(reductions) == 1 and {x.writer for x in ends} == {reductions[0]}
    if alone and not single:
        return "a reduction is all that is computed"
    apart = next((node for node in nodes if node.opcode in APART), None)
    if apart is not None:
        return f"there is a {apart.opcode.value}, which has loops of its own"
    for form in dict.fromkeys(map(row_form, reductions)):
        graph = RowGraph(*form, {}, single=alone) if form else None
        if graph and all(row_form(node) == form or graph.makes_element(node) for node in reductions):
            return _marked(graph, results) or f"not all is in {graph.count:,} rows of {graph.length:,} elements"
    return "the reductions are over other elements than the fastest ones of rows of one length"


def first_of(buffer: Buffer) -> Buffer:
    """The buffer that a tuple element copies."""
    while buffer.writer is not None and buffer.writer.opcode is Op.COPY:
        buffer = buffer.writer.inputs[0]
    return buffer
