"""Reductions whose results lie across memory, as a kernel: a block of results is accumulated row by row, so that no
loop has a stride; long chains of floats are added to totals.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import compress

from ..hlo.dtypes import DType
from ..hlo.opcodes import Op
from ..planning.partition import Partition
from . import half
from .ahead import LINE, fetch, streams
from .builder import Builder, Index, Loop, Unroll, Value
from .column_run import emit_columns_of_run
from .elemental import Elemental, Indices
from .elements import ROUNDED, Scalar, decode, encode, flatten, parts, raw_type, unflatten, working_type
from .extremum import advance_column, close_column, extremum_of, takes_three
from .graph import Node
from .long_sums import (
    SHORT,
    Blocks,
    Carried,
    Totals,
    are_float_sums,
    component_type,
)
from .ranges import Steps, grouped, open_steps, width_of
from .reduce import (
    UNROLLABLE,
    are_dear,
    by_memory,
    combine,
    initials_of,
    is_one_operation,
    operands_of,
    reduced_dimensions,
    rounded,
)

BLOCK = 1024  # results accumulated together: a page of f32 of each row
ROWS = 4  # rows of a block combined per write of an accumulator: a fifth of the register traffic
SUMMED_ROWS = 8  # the same for sums of floats that are cheap to make
VECTOR = 16  # columns whose next rows are fetched at once, if they are a line of the cache
NARROW = 2 * UNROLLABLE  # columns up to which ROWS of sums are read together: more took twice the time from memory
LEAST_PIECES = 512  # columns from which on blocks may be pieces of rows
SMALL = 1 << 16  # elements: it does not matter how long those of few columns take
LEAST_VECTOR = 8  # columns from which on a loop over them is for vectors
WHOLE_VECTOR = 16  # columns of sums from which on vectors are worth a rest
LEAST_ROW, MOST_ROW = 3, 15  # columns that LLVM would gather, though they are vectors as well: of two, it parts them
LEAST_BEST = 4  # the same of floats that are compared
MOST_COPIED = 64  # elements of all rows of them, which LLVM has side by side
LEAST_APART, MOST_APART = 5, 32  # columns whose vectors have loops of their own
LEAST_ROUNDED = 9  # the same of compared bf16, of which fewer are as fast as scalars that LLVM joins
LEAST_BYTES, GATHERING = 4, 512  # of their elements; bits of vectors of processors that gather soon enough for that
FEW = 8  # chains whose errors do not cancel out yet


def _over_columns(size: int, rows: bool) -> Unroll:
    """Of a loop over columns. LLVM unrolls few before it makes vectors: sums become scalars that it joins one by one,
    which takes long, and what rows give in any order becomes vectors of rows, with gathers.

    rows: whether the columns of a row, unrolled, are made vectors of.
    """
    odd = rows and size < WHOLE_VECTOR and size.bit_count() > 1
    return Unroll.ANY if size > UNROLLABLE or size < LEAST_VECTOR or odd else Unroll.VECTORIZED


def _vectors(size: int) -> list[tuple[int, int]]:
    """(First, number) of the columns that are a loop: whole vectors of fewer and fewer. What is no whole vector would
    be one with a mask, or scalars, in one loop, and something else in the next one, where it has to be fetched from
    memory that it has not reached yet.
    """
    found, start, count = [], 0, MOST_APART
    while start < size:
        if size - start >= count:
            found.append((start, count))
            start += count
        count //= 2
    return found


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
    is_one = is_one_operation(node) and writer is not None and writer.opcode is Op.MULTIPLY
    return is_one and node.outputs[0].dtype in (DType.F32, DType.F64)


def _is_best(node: Node) -> bool:
    return node.opcode is Op.REDUCE and extremum_of(node) is not None


class Accumulators:
    """The accumulators of one reduction for a block of columns, on the stack; of complex numbers, real parts first."""

    def __init__(self, b: Builder, node: Node, block: int):
        self.b, self.node, self.block = b, node, block
        self.slots: list[tuple[Value, DType]] = []
        self.totals: list[Totals] = []
        best = extremum_of(node) if node.opcode is Op.REDUCE else None
        self.by_key = best if best and node.output.dtype is DType.F16 else None  # the accumulator, a better one
        self.extremum = best if best and not self.by_key and takes_three(node) else None
        for buffer in node.outputs:
            self._add_slots(DType.S16 if self.by_key else buffer.dtype)
        self.is_product = node.opcode is Op.REDUCE and _is_product(node)  # its rows are multiplied first
        if self.extremum:  # signs beside the best value
            self._add_slots(DType.S64 if node.output.dtype is DType.F64 else DType.S32)

    def _add_slots(self, dtype: DType) -> None:
        self.slots.append((self.b.alloca(self._slot_type(dtype), parts(dtype) * self.block, 64), dtype))

    def opened(self, initials: Sequence[Scalar]) -> list[Scalar]:
        """The accumulators of a column before its rows."""
        if self.by_key:
            return [half.key(self.b, self.by_key, flatten(initials[0])[0])]
        if not self.extremum:
            return list(initials)
        first = flatten(initials[0])[0]
        return [first, self.b.bitcast(first, self._slot_type(self.slots[1][1]))]

    def advanced(self, e: Elemental, values: list[Scalar], rows: Sequence[list[Scalar]]) -> list[Scalar]:
        """The accumulators of a column after more rows, one after the other."""
        if self.extremum:
            found = (flatten(value)[0] for value in values)
            return list(advance_column(self.b, self.extremum, list(found), [flatten(row[0])[0] for row in rows]))
        if self.by_key:
            best = flatten(values[0])[0]
            for row in rows:
                best = half.best_key(self.b, self.by_key, best, half.key(self.b, self.by_key, flatten(row[0])[0]))
            return [best]
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
        if self.by_key:
            return [half.of_key(self.b, flatten(values[0])[0])]
        return [close_column(self.b, [flatten(value)[0] for value in values])] if self.extremum else values

    def open_totals(self, size: int) -> None:
        """Keep totals in f64 of the accumulators of `size` columns, which are float sums."""
        if not self.totals:
            self.totals = [
                Totals(self.b, self.block, component_type(self.b, dtype), True, parts(dtype), UNROLLABLE)
                for _, dtype in self.slots
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
            for d in by_memory(operand, range(len(operand.dims)))
            if d not in reduced_dimensions(self.node) and operand.dims[d] != 1
        ]
        self.outer, self.column = kept[:-1], kept[-1]
        self.rows = [d for d in by_memory(operand, reduced_dimensions(self.node)) if operand.dims[d] != 1]
        self.width = operand.dims[self.column]
        self.block = min(BLOCK, self.width)
        self.accumulators = [Accumulators(self.b, node, self.block) for node in nodes]
        self.sums = [not self.b.strict and are_float_sums(node) for node in nodes]
        cheap = all(self.sums) and not are_dear(x for node in nodes for x in operands_of(node))
        best = all(slots.extremum for slots in self.accumulators)
        read = [x for node in nodes for x in operands_of(node)]
        self.ahead = streams(read, operand) if self.width >= LEAST_PIECES and not cheap else []
        rounded_best = any(x.dtype is DType.BF16 for node in nodes if _is_best(node) for x in node.inputs)
        self.apart = range(LEAST_ROUNDED if rounded_best else LEAST_APART, MOST_APART)
        self.narrow = cheap and UNROLLABLE < self.width <= NARROW
        self.together = SUMMED_ROWS if (cheap or (best and not self.ahead)) and not self.narrow else ROWS
        self.count = count = math.prod(operand.dims[d] for d in self.rows)
        many = count > FEW * SHORT * self.together  # chains: their errors cancel out
        self.limit = (SHORT if many else SHORT // 2) * self.together
        self.spills = [is_sum and count > self.limit for is_sum in self.sums]

    def emit(self, steps: Steps | None = None) -> None:
        b, dims = self.b, self.node.inputs[0].dims
        within = [] if steps is None else dimensions_inside(self.node, steps.partition)
        if len(self.nodes) == 1 and emit_columns_of_run(self.e, self.node, self.finish, within, steps):
            return
        known = all(is_sum or held.extremum for is_sum, held in zip(self.sums, self.accumulators, strict=True))
        b.lean = known and (self.width >= LEAST_PIECES or self.narrow or self.node.inputs[0].shape.size <= SMALL)
        b.walks = True
        index: dict[int, Index] = dict.fromkeys(range(len(dims)), 0)
        loops: list[Loop] = []
        inside = [] if steps is None else dimensions_inside(self.node, steps.partition)
        if steps is not None and self.column in inside:
            self._emit_steps(steps, inside, index)
            return
        if steps is not None:
            around, places = open_steps(b, steps, [dims[d] for d in inside], self._around())
            loops.append(around)
            index |= zip(inside, places, strict=True)
        for d in (d for d in self.outer if d not in inside):
            loops.append(b.open_loop(0, dims[d], unroll=self._around()))
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

    def _around(self) -> Unroll:
        """Of a loop around short rows, which LLVM unrolls: where processors can gather, it would make vectors of
        several of them, element by element. Each row by itself is a vector or two, except where elements are narrow.
        """
        wide = all(x.dtype.bytes >= LEAST_BYTES for node in self.nodes for x in operands_of(node))
        sums = zip(self.sums, self.nodes, strict=True)
        plain = all(is_sum or not node.inputs[0].dtype.is_float for is_sum, node in sums)
        least = LEAST_ROW if plain else LEAST_BEST
        short = least <= self.width <= MOST_ROW and self.width * self.count <= MOST_COPIED
        return Unroll.SCALAR if wide and short and self.b.vector_bits == GATHERING else Unroll.ANY

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
        for column in self._over_all(0, size):
            for slots, values in zip(self.accumulators, initials, strict=True):
                slots.write(column, slots.opened(values))
        spilled = list(compress(self.accumulators, self.spills))
        for slots in spilled:
            slots.open_totals(size)

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
        around = Unroll.NONE if all(self.sums) or self.ahead else Unroll.ANY
        Blocks(b, sizes, self.together, limit, spill, around).emit(whole, rest)
        for column in self._over_all(0, size):
            place = dict(index)
            place[self.column] = b.add(start, column)
            kept = tuple(place[d] for d in range(len(place)) if d not in reduced_dimensions(self.node))
            for slots, spills in zip(self.accumulators, self.spills, strict=True):
                found = slots.read_totals(column) if spills else slots.closed(slots.read(column))
                for value, buffer in zip(found, slots.node.outputs, strict=True):
                    b.remember((buffer, kept, False), rounded(self.e, buffer, value))
            self.finish(kept)

    def _over_all(self, first: Index, size: int, otherwise: Unroll = Unroll.ANY) -> Iterator[Index]:
        """The columns of a block from the first one on, in loops of whole vectors if they are few."""
        for start, count in _vectors(size) if size in self.apart else [(0, size)]:
            unroll = self._over(size, otherwise) if count == size else _over_columns(count * 2, False)
            with self.b.loop(0, count, unroll=unroll) as loop:
                yield self.b.add(first, self.b.add(loop.index, start))

    def _over(self, size: int, otherwise: Unroll = Unroll.ANY) -> Unroll:
        """Of a loop over columns. After few passes accumulators are in memory anyway, and copies are only code;
        but pairs of lines, which LLVM reads together where it may unroll, come faster from memory.
        """
        return Unroll.NONE if self.b.lean and not self.narrow and size > UNROLLABLE else otherwise

    def _rows(self, index: dict[int, Index], row: int, at: Sequence[Index], start: Index, size: int) -> None:
        """Combine a few rows of one block into the accumulators."""
        fetches = self.ahead and len(at) == self.together
        piece = max(VECTOR, *(LINE // x.dtype.bytes for x in self.ahead)) if fetches else size
        if piece >= size or size % piece or size == self.width:
            self._columns(index, row, at, start, 0, size)
            return
        b = self.b
        with b.loop(0, size, piece, unroll=Unroll.NONE) as line:
            for r in at:
                place = index | {row: b.add(r, len(at)), self.column: b.add(start, line.index)}
                offset = self.e.offset(self.node.inputs[0], tuple(place[d] for d in range(len(place))))
                fetch(self.e, self.ahead, offset, piece)
            self._columns(index, row, at, start, line.index, piece)

    def _columns(
        self, index: dict[int, Index], row: int, at: Sequence[Index], start: Index, first: Index, size: int
    ) -> None:
        """Combine a few rows of neighbouring columns, from the `first` of a block on."""
        b = self.b
        unroll = _over_columns(size, all(self.sums) or self._around() is Unroll.SCALAR)
        for column in self._over_all(first, size, unroll):
            values = [slots.read(column) for slots in self.accumulators]
            elements: list[list[list[Scalar]]] = [[] for _ in self.nodes]  # by reduction and row
            for r in at:
                place = dict(index)
                place[row], place[self.column] = r, b.add(start, column)
                full = tuple(place[d] for d in range(len(place)))
                for n, node in enumerate(self.nodes):
                    elements[n].append([self.e.value(x, full) for x in operands_of(node)])
            for n, node in enumerate(self.nodes):
                if self.sums[n]:
                    values[n] = self.e.apply(node.bodies[0], [*values[n], *self._sum(node, elements[n])])
                    continue
                values[n] = self.accumulators[n].advanced(self.e, values[n], elements[n])
            for slots, combined in zip(self.accumulators, values, strict=True):
                slots.write(column, combined)

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
