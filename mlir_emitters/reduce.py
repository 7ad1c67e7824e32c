"""reduce: as a value inside a fusion, and as a kernel whose loops follow memory order.

If the innermost dimension of the operand is reduced, a long sum of floats is in blocks (long_sums.py); any other
result is one chain, which LLVM splits over vector lanes by reassociation. If the innermost dimension is kept, a block
of results is accumulated row by row, so that no loop has a stride; long chains of floats are added to totals.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import compress

from ..hlo.dtypes import DType
from ..hlo.opclasses import EXPENSIVE
from ..hlo.opcodes import Op
from ..planning.partition import Partition
from .builder import Builder, Index, Loop, Unroll, Value
from .complex_sums import Factor, sums_of_runs
from .elemental import Elemental, ElementRule, Indices, Reads
from .elements import ROUNDED, Scalar, decode, encode, flatten, parts, raw_type, round_to, unflatten, working_type
from .extremum import advance_column, advance_three, close_column, close_three, extremum_of, open_three, takes_three
from .graph import Buffer, Node, reachable
from .long_sums import (
    SHORT,
    SPLIT,
    STRIDED,
    TURNS,
    Blocks,
    Carried,
    LongSums,
    Totals,
    are_float_sums,
    component_type,
    is_long,
    long_sum,
)
from .ranges import Steps, grouped, open_steps, width_of

BLOCK = 512  # results accumulated together
ROWS = 4  # rows of a block combined per write of an accumulator: a fifth of the register traffic
SUMMED_ROWS = 8  # the same for sums of floats that are cheap to make
UNROLLABLE = 64  # elements up to which LLVM would unroll such loops before it makes vectors, and join scalars instead
LEAST_VECTOR = 8  # columns from which on a loop over them is for vectors
WIDE = 16  # elements along a dimension from which on loops of three accumulators are unrolled at will
FEW = 8  # chains whose sum in f32 is as exact as they are


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

    def unroll(self, size: int) -> Unroll:
        """Of a loop over `size` elements. Where it may unroll, LLVM works on several vectors of a maximum a turn."""
        if not self.extremum or size < WIDE:
            return Unroll.SHORT
        return Unroll.ANY if size > UNROLLABLE else Unroll.VECTORIZED

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
    """One result: a sum in blocks, or loops over the reduced dimensions that carry the accumulators."""
    b = e.b
    accumulators: list[Scalar] = []
    for initial in initials_of(node):
        accumulators.append((yield initial, (), False))
    order = [d for d in _by_memory(node.inputs[0], reduced_dimensions(node)) if node.inputs[0].dims[d] != 1]
    reduced: dict[int, Index] = dict.fromkeys(reduced_dimensions(node), 0)
    runs = _sums_of_runs(e, node, index, order) if len(node.outputs) == 1 and are_float_sums(node) else None
    if runs is not None:
        values = finished(e, node, runs.results(_spread(accumulators)))
    elif is_long_sum(e, node):
        values = _long_sums(e, node, index, order, _spread(accumulators))
    else:
        loops: list[Loop] = []
        running = Running(e, node)
        carried = running.open(_spread(accumulators))
        for d in order:
            loops.append(
                b.open_loop(0, node.inputs[0].dims[d], 1, carried, unroll=running.unroll(node.inputs[0].dims[d]))
            )
            reduced[d], carried = loops[-1].index, loops[-1].carried
        elements: list[Scalar] = []
        for operand in operands_of(node):
            elements.append((yield operand, _full_index(node, index, reduced), False))
        results = running.advance(carried, elements)
        for loop in reversed(loops):
            loop.next = results
            b.close_loop(loop)
            results = loop.values
        values = running.close(results)
    for k, value in enumerate(values):
        b.remember((node.outputs[k], index, False), value)
    return encode(b, node.outputs[number].dtype, values[number]) if raw else values[number]


def is_long_sum(e: Elemental, node: Node) -> bool:
    """Whether a reduction is a sum of floats that is long enough for blocks."""
    sizes = [node.inputs[0].dims[d] for d in reduced_dimensions(node)]
    return is_long(e.b, sizes) and are_float_sums(node)


def long_sums(b: Builder, sizes: Sequence[int], nodes: Sequence[Node], others: Sequence[Node] = ()) -> LongSums:
    """Sums in blocks for all results of some reductions. others: reductions in the same loops, in chains.

    LLVM splits a chain only if those beside it are one operation each.
    """
    types = [component_type(b, x.dtype) for node in nodes for x in node.outputs for _ in range(parts(x.dtype))]
    chain = (SPLIT if all(map(_is_one_operation, others)) else STRIDED) if others else None
    return long_sum(b, sizes, types, _turns([x for node in nodes for x in operands_of(node)]), chain)


def _turns(operands: Sequence[Buffer]) -> int:
    """Elements of each partial sum in a loop's body: with more loads than 16 of whole vectors, LLVM takes as long for
    their addresses as for all else.
    """
    if are_dear(operands):
        return 1
    read = {x for x in operands if x.writer is None}
    read |= {x for node in reachable(operands) for x in node.inputs if x.writer is None and x.dims}
    return TURNS if sum(x.dtype.bytes for x in read) <= 4 else TURNS // 2


def _is_one_operation(node: Node) -> bool:
    """Whether a reduction has one result and its body one operation on both parameters."""
    body = node.bodies[0]
    writer = body.outputs[0].writer if len(body.outputs) == 1 else None
    return writer is not None and {*writer.inputs} == {*body.parameters}


def are_dear(operands: Iterable[Buffer]) -> bool:
    """Whether elements take so much code that it should be emitted only once."""
    nodes = list(reachable(operands))
    return len(nodes) > DEAR or any(node.opcode in EXPENSIVE for node in nodes)


DEAR = 16
"""Nodes under a reduction's operands whose code is as long as that of an expensive op."""


def finished(e: Elemental, node: Node, values: Sequence[Value]) -> list[Scalar]:
    """Sums as working values of the results' types."""
    scalars = _gather(values, node.outputs)
    return [rounded(e, x, value) for x, value in zip(node.outputs, scalars, strict=True)]


def _long_sums(
    e: Elemental, node: Node, index: Indices, order: Sequence[int], initials: Sequence[Value]
) -> list[Scalar]:
    reduced: dict[int, Index] = dict.fromkeys(reduced_dimensions(node), 0)

    def visit(at: Sequence[Index], carried: Carried) -> tuple[list[Value], Carried]:
        place = _full_index(node, index, reduced | dict(zip(order, at, strict=True)))
        return _spread([e.value(x, place) for x in operands_of(node)]), carried

    sums = long_sums(e.b, [node.inputs[0].dims[d] for d in order], [node])
    sums.add_up(visit)
    return finished(e, node, sums.results(initials))


def _sums_of_runs(e: Elemental, node: Node, index: Indices, order: Sequence[int]) -> LongSums | None:
    reduced: dict[int, Index] = dict.fromkeys(reduced_dimensions(node), 0)

    def place(prefix: Sequence[Index]) -> Indices:
        return _full_index(node, index, reduced | dict(zip(order, prefix, strict=False)))

    return sums_of_runs(e, Factor(node.inputs[0], order, place))


RULES: dict[Op, ElementRule] = {Op.REDUCE: reduce_value}


# A kernel whose root is a reduction that keeps the innermost dimension ----------------------------------------------


def has_columns(node: Node) -> bool:
    """Whether neighbours in the operand's memory belong to different results of several elements each."""
    operand, reduced = node.inputs[0], reduced_dimensions(node)
    if all(operand.dims[d] == 1 for d in reduced):
        return False
    innermost = next((d for d in operand.shape.minor_to_major if operand.dims[d] != 1), None)
    return innermost is not None and innermost not in reduced


def _is_product(node: Node) -> bool:
    """Whether a reduction multiplies floats that no step rounds to a narrower type."""
    writer = node.bodies[0].outputs[0].writer
    is_one = _is_one_operation(node) and writer is not None and writer.opcode is Op.MULTIPLY
    return is_one and node.outputs[0].dtype in (DType.F32, DType.F64)


class Accumulators:
    """The accumulators of one reduction for a block of columns, on the stack; of complex numbers, real parts first."""

    def __init__(self, b: Builder, node: Node, block: int):
        self.b, self.node, self.block = b, node, block
        self.slots: list[tuple[Value, DType]] = []
        self.totals: list[Totals] = []
        for buffer in node.outputs:
            self._add_slots(buffer.dtype)
        self.extremum = extremum_of(node) if node.opcode is Op.REDUCE and takes_three(node) else None
        self.is_product = node.opcode is Op.REDUCE and _is_product(node)  # its rows are multiplied first
        if self.extremum:  # signs beside the best value
            self._add_slots(DType.S64 if node.output.dtype is DType.F64 else DType.S32)

    def _add_slots(self, dtype: DType) -> None:
        self.slots.append((self.b.alloca(self._slot_type(dtype), parts(dtype) * self.block, 64), dtype))

    def opened(self, initials: Sequence[Scalar]) -> list[Scalar]:
        """The accumulators of a column before its rows."""
        if not self.extremum:
            return list(initials)
        first = flatten(initials[0])[0]
        return [first, self.b.bitcast(first, self._slot_type(self.slots[1][1]))]

    def advanced(self, e: Elemental, values: list[Scalar], rows: Sequence[list[Scalar]]) -> list[Scalar]:
        """The accumulators of a column after more rows, one after the other."""
        if self.extremum:
            found = (flatten(value)[0] for value in values)
            return list(advance_column(self.b, self.extremum, list(found), [flatten(row[0])[0] for row in rows]))
        first, *others = rows
        if self.is_product and not self.b.strict:
            return combine(
                e, self.node, values, functools.reduce(lambda x, y: combine(e, self.node, x, y), others, first)
            )
        for row in rows:
            values = combine(e, self.node, values, row)
        return values

    def closed(self, values: list[Scalar]) -> list[Scalar]:
        """The results of a column's accumulators."""
        return [close_column(self.b, [flatten(value)[0] for value in values])] if self.extremum else values

    def open_totals(self, size: int, wide: bool) -> None:
        """Keep totals, in f64 if wide, of the accumulators of `size` columns, which are float sums."""
        if not self.totals:
            self.totals = [
                Totals(self.b, self.block, component_type(self.b, dtype), wide, parts(dtype)) for _, dtype in self.slots
            ]
        for totals in self.totals:
            totals.clear(size)

    def spill(self, size: int) -> None:
        """Add the accumulators of `size` columns to their totals, and start them again."""
        for totals, (pointer, _) in zip(self.totals, self.slots, strict=True):
            totals.spill(pointer, size)

    def read_totals(self, column: Index) -> list[Scalar]:
        """The sums of a column: what was spilled and what was not."""
        found = []
        for totals, value, (_, dtype) in zip(self.totals, self.read(column), self.slots, strict=True):
            values = [totals.final(self.b.add(column, k * self.block), part) for k, part in enumerate(flatten(value))]
            found.append(unflatten(values, dtype))
        return found

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
                place = self.b.pointer(pointer, self.b.add(column, k * self.block), type)
                values.append(self.b.load(place, type, self._size(dtype)))
            value = unflatten(values, dtype)
            found.append(decode(self.b, dtype, value) if dtype is DType.PRED else value)
        return found

    def write(self, column: Index, values: Sequence[Scalar]) -> None:
        for (pointer, dtype), value in zip(self.slots, values, strict=True):
            stored = encode(self.b, dtype, value) if dtype is DType.PRED else value
            for k, part in enumerate(flatten(stored)):
                place = self.b.pointer(pointer, self.b.add(column, k * self.block), part.type)
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
        self.sums = [not self.b.strict and are_float_sums(node) for node in nodes]
        cheap = all(self.sums) and not are_dear(x for node in nodes for x in operands_of(node))
        best = all(slots.extremum for slots in self.accumulators)
        self.together = SUMMED_ROWS if cheap or best else ROWS
        count = math.prod(operand.dims[d] for d in self.rows)
        self.many = count > FEW * SHORT * self.together
        self.limit = (2 if self.many else 1) * SHORT * self.together  # the errors of many chains cancel out
        self.spills = [is_sum and count > self.limit for is_sum in self.sums]

    def emit(self, steps: Steps | None = None) -> None:
        b, dims = self.b, self.node.inputs[0].dims
        index: dict[int, Index] = dict.fromkeys(range(len(dims)), 0)
        loops: list[Loop] = []
        inside = [] if steps is None else dimensions_inside(self.node, steps.partition)
        if steps is not None and self.column in inside:
            self._emit_steps(steps, inside, index)
            return
        if steps is not None:
            around, places = open_steps(b, steps, [dims[d] for d in inside])
            loops.append(around)
            index |= zip(inside, places, strict=True)
        for d in (d for d in self.outer if d not in inside):
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

    def _emit_steps(self, steps: Steps, inside: Sequence[int], index: dict[int, Index]) -> None:
        """The steps number the columns, after some of the outer dimensions."""
        b, dims = self.b, self.node.inputs[0].dims
        width = width_of(steps.partition, self.width, self.block)
        assert width is not None
        for places, start, size in grouped(b, steps, [dims[d] for d in inside], width):
            index |= zip(inside, places, strict=False)
            loops = []
            for d in (d for d in self.outer if d not in inside):
                loops.append(b.open_loop(0, dims[d]))
                index[d] = loops[-1].index
            self._block(index, start, size)
            for loop in reversed(loops):
                b.close_loop(loop)

    def _block(self, index: dict[int, Index], start: Index, size: int) -> None:
        b = self.b
        initials = [[self.e.value(x, ()) for x in initials_of(node)] for node in self.nodes]
        with b.loop(0, size) as loop:
            for slots, values in zip(self.accumulators, initials, strict=True):
                slots.write(loop.index, slots.opened(values))
        spilled = list(compress(self.accumulators, self.spills))
        for slots in spilled:
            slots.open_totals(size, self.many)

        def at(prefix: Sequence[Index]) -> dict[int, Index]:
            return index | dict(zip(self.rows, prefix, strict=False))

        last = self.rows[-1]

        def whole(prefix: Sequence[Index], first: Index, given: Carried) -> Carried:
            self._rows(at(prefix), last, [b.add(first, k) for k in range(self.together)], start, size)
            return given

        def rest(prefix: Sequence[Index], first: int, given: Carried) -> Carried:
            self._rows(at(prefix), last, list(range(first, sizes[-1])), start, size)
            return given

        def spill(given: Carried) -> Carried:
            for slots in spilled:
                slots.spill(size)
            return given

        sizes = [self.node.inputs[0].dims[d] for d in self.rows]
        limit = self.limit if spilled else math.prod(sizes)
        Blocks(b, sizes, self.together, limit, spill, Unroll.NONE if all(self.sums) else Unroll.ANY).emit(whole, rest)
        with b.loop(0, size) as loop:
            place = dict(index)
            place[self.column] = b.add(start, loop.index)
            kept = tuple(place[d] for d in range(len(place)) if d not in reduced_dimensions(self.node))
            for slots, spills in zip(self.accumulators, self.spills, strict=True):
                found = slots.read_totals(loop.index) if spills else slots.closed(slots.read(loop.index))
                for value, buffer in zip(found, slots.node.outputs, strict=True):
                    b.remember((buffer, kept, False), rounded(self.e, buffer, value))
            self.finish(kept)

    def _rows(self, index: dict[int, Index], row: int, at: Sequence[Index], start: Index, size: int) -> None:
        """Combine a few rows of one block into the accumulators."""
        b = self.b
        # Where LLVM unrolls few columns first and may reorder what rows give, it makes vectors of rows, with gathers.
        free = size > UNROLLABLE or size < LEAST_VECTOR or all(self.sums)
        with b.loop(0, size, unroll=Unroll.ANY if free else Unroll.VECTORIZED) as loop:
            values = [slots.read(loop.index) for slots in self.accumulators]
            elements: list[list[list[Scalar]]] = [[] for _ in self.nodes]  # by reduction and row
            for r in at:
                place = dict(index)
                place[row], place[self.column] = r, b.add(start, loop.index)
                full = tuple(place[d] for d in range(len(place)))
                for n, node in enumerate(self.nodes):
                    elements[n].append([self.e.value(x, full) for x in operands_of(node)])
            for n, node in enumerate(self.nodes):
                if self.sums[n]:
                    values[n] = self.e.apply(node.bodies[0], [*values[n], *self._sum(node, elements[n])])
                    continue
                values[n] = self.accumulators[n].advanced(self.e, values[n], elements[n])
            for slots, combined in zip(self.accumulators, values, strict=True):
                slots.write(loop.index, combined)

    def _sum(self, node: Node, rows: Sequence[list[Scalar]]) -> list[Scalar]:
        """The sum of some rows, in their order, before it is added to an accumulator: its errors are small."""
        total, *others = rows
        for row in others:
            total = self.e.apply(node.bodies[0], [*total, *row])
        return total


def dimensions_inside(node: Node, partition: Partition) -> list[int]:
    """The dimensions of the operand that the steps number."""
    kept = [d for d in range(len(node.inputs[0].dims)) if d not in reduced_dimensions(node)]
    return [kept[d] for d in partition.dimensions]


def takes_steps(node: Node, partition: Partition) -> bool:
    """Whether a ColumnReduction can compute some of the steps: groups of neighbouring columns."""
    operand, inside = node.inputs[0], dimensions_inside(node, partition)
    column = next(d for d in operand.shape.minor_to_major if operand.dims[d] != 1)
    if column not in inside:
        return True
    return inside[-1] == column and width_of(partition, operand.dims[column], BLOCK) is not None


def same_columns(a: Node, b: Node) -> bool:
    """Whether two reductions read buffers of one shape in one order."""
    first, second = a.inputs[0], b.inputs[0]
    same = first.dims == second.dims and first.strides == second.strides
    return same and set(reduced_dimensions(a)) == set(reduced_dimensions(b))
