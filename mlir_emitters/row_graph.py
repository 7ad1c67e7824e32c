"""Decides which kernels this stack emits row by row, on LHLO's buffers, and gives each value of one a role.

A value is read at the current element of a row, at the current row, at the current column, or elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum

from ..hlo.opclasses import ELEMENTWISE
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape
from .graph import Buffer, Node, reachable
from .reduce import initials_of, operands_of, reduced_dimensions


class Role(Enum):
    FULL, ROW, COLUMN = range(3)


PASSED = frozenset({Op.BROADCAST, Op.RESHAPE, Op.BITCAST, Op.COPY})
"""Ops whose element at a row and column may be their operand's element there."""


APART = frozenset({Op.CONVOLUTION, Op.DOT, Op.DYNAMIC_UPDATE_SLICE, Op.REDUCE_WINDOW, Op.SCATTER, Op.SORT})
"""Ops whose outputs have their own loops (ROOTS of roots.py, products), while a row kernel computes single elements.
"""


class RowGraph:
    """The roles of a row kernel's buffers, operands before users. plain: only single values are read elsewhere.

    shared: buffers without a role because users read them in several, as those of a square matrix read a vector that is
    added to its rows and its columns. They are read elsewhere.
    """

    def __init__(self, count: int, length: int):
        self.count, self.length, self.plain = count, length, True
        self.roles: dict[Buffer, Role] = {}
        self.shared: set[Buffer] = set()

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
        return [(x, r if r is not None and self._takes(x, r) else None) for x, r in zip(node.inputs, wanted)]

    def _takes(self, x: Buffer, role: Role) -> bool:
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

    def mark(self, results: Sequence[Buffer]) -> bool:
        """Assign roles, starting at the results. False if this is no row kernel."""
        while (found := self._assign(results)) is not None:
            if found.writer and found.writer.opcode is Op.REDUCE:
                return False
            self.shared.add(found)
        return bool(self.roles)

    def _assign(self, results: Sequence[Buffer]) -> Buffer | None:
        """Assign roles. A buffer that has two of them; no role is assigned if this is no row kernel."""
        order: list[Buffer] = []
        outside: list[Buffer] = []
        stack: list[tuple[Buffer, Role | None]] = []
        self.roles = {}
        for result in results:
            role = next((r for r in (Role.FULL, Role.ROW) if self._takes(result, r)), None)
            if role is None:
                self.roles = {}
                return None
            stack.append((result, role))
        while stack:
            buffer, role = stack.pop()
            if role is None:
                order.append(buffer)
            elif buffer not in self.roles:
                node = buffer.writer
                refused = node and node.opcode is Op.REDUCE and not self.reduces(node, role)
                if buffer in self.shared or refused:
                    self.roles = {}
                    return None
                self.roles[buffer] = role
                stack.append((buffer, None))
                for source, wanted in self.sources(buffer):
                    if wanted is None:
                        outside.append(source)
                    else:
                        stack.append((source, wanted))
            elif self.roles[buffer] is not role:
                return buffer
        self.roles = {buffer: self.roles[buffer] for buffer in order}
        self.plain = all(x.shape.size == 1 for x in outside) and all(map(self._is_plain, order))
        if not self._apart(outside):
            self.roles = {}
        return None

    def _is_plain(self, buffer: Buffer) -> bool:
        opcode = buffer.writer.opcode if buffer.writer else Op.PARAMETER
        return opcode in ELEMENTWISE or opcode in PASSED or opcode in (Op.PARAMETER, Op.CONSTANT, Op.REDUCE)

    def _apart(self, outside: Sequence[Buffer]) -> bool:
        """Whether values read elsewhere depend on no reduction and on no value that has a role."""
        for node in reachable(outside):
            mixed = any(x in self.roles for x in node.outputs) and node.inputs
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


def row_graph(results: Sequence[Buffer], single: bool = False) -> RowGraph | None:
    """The roles for emitting these results row by row; None for other kernels, and for a single reduction, unless
    `single` asks for its rows, too.
    """
    ends = {first_of(result) for result in results}
    nodes = list(reachable(results))
    reductions = [node for node in nodes if node.opcode is Op.REDUCE]
    if not reductions or (not single and len(reductions) == 1 and {x.writer for x in ends} == {reductions[0]}):
        return None
    if any(node.opcode in APART for node in nodes):
        return None
    for form in dict.fromkeys(map(row_form, reductions)):
        graph = RowGraph(*form) if form else None
        if graph and all(row_form(node) == form or graph.makes_element(node) for node in reductions):
            return graph if graph.mark(results) else None
    return None


def first_of(buffer: Buffer) -> Buffer:
    """The buffer that a tuple element copies."""
    while buffer.writer is not None and buffer.writer.opcode is Op.COPY:
        buffer = buffer.writer.inputs[0]
    return buffer
