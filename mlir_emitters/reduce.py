"""reduce: as a value inside a fusion, and as a kernel whose loops follow memory order.

If the innermost dimension of the operand is reduced, each result is one chain, which LLVM splits over vector lanes by
reassociation. If it is kept, a block of results is accumulated row by row, so that no loop has a stride.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..hlo.dtypes import DType
from ..hlo.opcodes import Op
from .builder import Builder, Index, Loop, Unroll, Value
from .elemental import Elemental, ElementRule, Indices, Reads
from .elements import ROUNDED, Scalar, decode, encode, flatten, parts, raw_type, round_to, unflatten, working_type
from .extremum import advance_three, close_three, extremum_of, open_three, takes_three
from .graph import Buffer, Node

BLOCK = 512  # results accumulated together
ROWS = 4  # rows of a block combined per write of an accumulator: a fifth of the register traffic


def reduced_dimensions(node: Node) -> tuple[int, ...]:
    return tuple(node.attributes["dimensions"])


def operands_of(node: Node) -> Sequence[Buffer]:
    return node.inputs[: len(node.inputs) // 2]


def initials_of(node: Node) -> Sequence[Buffer]:
    return node.inputs[len(node.inputs) // 2 :]


def _full_index(node: Node, kept: Indices, reduced: dict[int, Index]) -> Indices:
    remaining = iter(kept)
    rank = len(node.inputs[0].dims)
    return tuple(reduced[d] if d in reduced else next(remaining) for d in range(rank))


def _by_memory(buffer: Buffer, dimensions: Sequence[int]) -> list[int]:
    """Dimensions in the memory order of a buffer, slowest first."""
    return [d for d in reversed(buffer.shape.minor_to_major) if d in dimensions]


def combine(e: Elemental, node: Node, accumulators: Sequence[Scalar], elements: Sequence[Scalar]) -> list[Scalar]:
    with e.b.reassociating():
        return e.apply(node.bodies[0], [*accumulators, *elements])


def rounded(e: Elemental, buffer: Buffer, value: Scalar) -> Scalar:
    """An accumulator, which may be wider, as a working value of the result's type."""
    return round_to(e.b, buffer.dtype, flatten(value)[0]) if buffer.dtype in ROUNDED else value


class Running:
    """The loop-carried state of one reduction: the parts of its results, or the accumulators of extremum.py."""

    def __init__(self, e: Elemental, node: Node):
        self.e, self.node = e, node
        self.extremum = extremum_of(node) if takes_three(node) else None
        self.count = 3 if self.extremum else sum(parts(x.dtype) for x in node.outputs)

    def open(self, values: Sequence[Value]) -> list[Value]:
        """The values to carry into the loops, from the flattened initial values."""
        return open_three(self.e.b, values[0]) if self.extremum else list(values)

    def advance(self, carried: Sequence[Value], elements: Sequence[Scalar]) -> list[Value]:
        """The carried values after one more element."""
        if self.extremum:
            return advance_three(self.e.b, self.extremum, carried, flatten(elements[0])[0])
        return _spread(combine(self.e, self.node, _gather(carried, self.node.outputs), elements))

    def close(self, carried: Sequence[Value]) -> list[Scalar]:
        """The results, rounded to their types."""
        values = [close_three(self.e.b, carried)] if self.extremum else carried
        scalars = _gather(values, self.node.outputs)
        return [rounded(self.e, x, value) for x, value in zip(self.node.outputs, scalars, strict=True)]


def _spread(scalars: Sequence[Scalar]) -> list[Value]:
    return [v for s in scalars for v in flatten(s)]


def _gather(values: Sequence[Value], buffers: Sequence[Buffer]) -> list[Scalar]:
    remaining: Iterator[Value] = iter(values)
    return [unflatten([next(remaining) for _ in range(parts(x.dtype))], x.dtype) for x in buffers]


def reduce_value(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    """One result: loops over the reduced dimensions that carry the accumulators.

    A float sum over several dimensions starts the innermost loop at zero and adds its result to the outer sum, so that
    fewer terms are added to a large sum.
    """
    b = e.b
    accumulators: list[Scalar] = []
    for initial in initials_of(node):
        accumulators.append((yield initial, (), False))
    order = [d for d in _by_memory(node.inputs[0], reduced_dimensions(node)) if node.inputs[0].dims[d] != 1]
    reduced: dict[int, Index] = dict.fromkeys(reduced_dimensions(node), 0)
    loops: list[Loop] = []
    running = Running(e, node)
    carried = running.open(_spread(accumulators))
    by_parts = len(order) > 1 and not b.strict and is_float_sum(node)
    whole: list[Value] = []
    for d in order:
        if by_parts and d == order[-1]:
            whole, carried = carried, [b.like(0.0, v) for v in carried]
        loops.append(b.open_loop(0, node.inputs[0].dims[d], 1, carried, unroll=Unroll.SHORT))
        reduced[d], carried = loops[-1].index, loops[-1].carried
    elements: list[Scalar] = []
    for operand in operands_of(node):
        elements.append((yield operand, _full_index(node, index, reduced), False))
    results = running.advance(carried, elements)
    for loop in reversed(loops):
        loop.next = results
        b.close_loop(loop)
        results = loop.values
        if whole:
            parts_ = [_gather(v, initials_of(node)) for v in (whole, results)]
            results, whole = _spread(combine(e, node, *parts_)), []
    values = running.close(results)
    for k, value in enumerate(values):
        b.remember((node.outputs[k], index, False), value)
    return encode(b, node.outputs[number].dtype, values[number]) if raw else values[number]


def is_float_sum(node: Node) -> bool:
    """Whether the computation is the sum of its two parameters and they are floats."""
    body, root = node.bodies[0], node.bodies[0].outputs[0].writer
    if len(body.outputs) != 1 or root is None or root.opcode is not Op.ADD:
        return False
    return {*root.inputs} == {*body.parameters} and body.outputs[0].dtype.component.is_float


RULES: dict[Op, ElementRule] = {Op.REDUCE: reduce_value}


# A kernel whose root is a reduction that keeps the innermost dimension ----------------------------------------------


def has_columns(node: Node) -> bool:
    """Whether neighbours in the operand's memory belong to different results of several elements each."""
    operand, reduced = node.inputs[0], reduced_dimensions(node)
    if all(operand.dims[d] == 1 for d in reduced):
        return False
    innermost = next((d for d in operand.shape.minor_to_major if operand.dims[d] != 1), None)
    return innermost is not None and innermost not in reduced


class Accumulators:
    """The accumulators of one reduction for a block of columns, on the stack."""

    def __init__(self, b: Builder, node: Node, block: int):
        self.b, self.node = b, node
        self.slots: list[tuple[Value, DType]] = []
        for buffer in node.outputs:
            type = self._slot_type(buffer.dtype)
            self.slots.append((b.alloca(type, parts(buffer.dtype) * block, 64), buffer.dtype))

    def _slot_type(self, dtype: DType):
        return raw_type(self.b.types, dtype) if dtype is DType.PRED else working_type(self.b.types, dtype)

    def _size(self, dtype: DType) -> int:
        """Bytes of one part of an accumulator."""
        return 4 if dtype in ROUNDED else dtype.bytes // parts(dtype)

    def read(self, column: Index) -> list[Scalar]:
        found: list[Scalar] = []
        for pointer, dtype in self.slots:
            values = []
            for k in range(parts(dtype)):
                type = self._slot_type(dtype)
                place = self.b.pointer(pointer, self.b.add(self.b.mul(column, parts(dtype)), k), type)
                values.append(self.b.load(place, type, self._size(dtype)))
            value = unflatten(values, dtype)
            found.append(decode(self.b, dtype, value) if dtype is DType.PRED else value)
        return found

    def write(self, column: Index, values: Sequence[Scalar]) -> None:
        for (pointer, dtype), value in zip(self.slots, values, strict=True):
            stored = encode(self.b, dtype, value) if dtype is DType.PRED else value
            for k, part in enumerate(flatten(stored)):
                place = self.b.pointer(pointer, self.b.add(self.b.mul(column, parts(dtype)), k), part.type)
                self.b.store(part, place, self._size(dtype))


class ColumnReduction:
    """Reductions over the same columns. finish: called with an index at which the values of the reductions are bound.

    Loops: kept dimensions except the innermost, blocks of the innermost, reduced dimensions, one block.
    """

    def __init__(self, e: Elemental, nodes: Sequence[Node], finish: Callable[[Indices], None]):
        self.e, self.b, self.nodes, self.finish = e, e.b, nodes, finish
        self.node, operand = nodes[0], nodes[0].inputs[0]
        kept = [
            d
            for d in _by_memory(operand, range(len(operand.dims)))
            if d not in reduced_dimensions(self.node) and operand.dims[d] != 1
        ]
        self.outer, self.column = kept[:-1], kept[-1]
        self.rows = [d for d in _by_memory(operand, reduced_dimensions(self.node)) if operand.dims[d] != 1]
        self.width = operand.dims[self.column]
        self.block = min(BLOCK, self.width)
        self.accumulators = [Accumulators(self.b, node, self.block) for node in nodes]

    def emit(self) -> None:
        b, dims = self.b, self.node.inputs[0].dims
        index: dict[int, Index] = dict.fromkeys(range(len(dims)), 0)
        loops = []
        for d in self.outer:
            loops.append(b.open_loop(0, dims[d]))
            index[d] = loops[-1].index
        whole = self.width - self.width % self.block
        if whole == self.block:
            self._block(index, 0, self.block)
        else:
            with b.loop(0, whole, self.block) as loop:
                self._block(index, loop.index, self.block)
        if whole < self.width:
            self._block(index, whole, self.width - whole)
        for loop in reversed(loops):
            b.close_loop(loop)

    def _block(self, index: dict[int, Index], start: Index, size: int) -> None:
        b = self.b
        initials = [[self.e.value(x, ()) for x in initials_of(node)] for node in self.nodes]
        with b.loop(0, size) as loop:
            for slots, values in zip(self.accumulators, initials, strict=True):
                slots.write(loop.index, values)
        *outer, last = self.rows
        rows, loops = dict(index), []
        for d in outer:
            loops.append(b.open_loop(0, self.node.inputs[0].dims[d]))
            rows[d] = loops[-1].index
        count = self.node.inputs[0].dims[last]
        whole = count - count % ROWS
        if whole:
            with b.loop(0, whole, ROWS) as loop:
                self._rows(rows, last, [b.add(loop.index, k) for k in range(ROWS)], start, size)
        for r in range(whole, count):
            self._rows(rows, last, [r], start, size)
        for loop in reversed(loops):
            b.close_loop(loop)
        with b.loop(0, size) as loop:
            place = dict(index)
            place[self.column] = b.add(start, loop.index)
            kept = tuple(place[d] for d in range(len(place)) if d not in reduced_dimensions(self.node))
            for slots in self.accumulators:
                for value, buffer in zip(slots.read(loop.index), slots.node.outputs, strict=True):
                    b.remember((buffer, kept, False), rounded(self.e, buffer, value))
            self.finish(kept)

    def _rows(self, index: dict[int, Index], row: int, at: Sequence[Index], start: Index, size: int) -> None:
        """Combine a few rows of one block into the accumulators."""
        b = self.b
        with b.loop(0, size) as loop:
            values = [slots.read(loop.index) for slots in self.accumulators]
            for r in at:
                place = dict(index)
                place[row], place[self.column] = r, b.add(start, loop.index)
                full = tuple(place[d] for d in range(len(place)))
                for n, node in enumerate(self.nodes):
                    elements = [self.e.value(x, full) for x in operands_of(node)]
                    values[n] = combine(self.e, node, values[n], elements)
            for slots, combined in zip(self.accumulators, values, strict=True):
                slots.write(loop.index, combined)


def same_columns(a: Node, b: Node) -> bool:
    """Whether two reductions read buffers of one shape in one order."""
    first, second = a.inputs[0], b.inputs[0]
    same = first.dims == second.dims and first.strides == second.strides
    return same and set(reduced_dimensions(a)) == set(reduced_dimensions(b))
