"""Reductions whose results lie across memory, as a kernel: a block of results is accumulated row by row, so that no
loop has a stride; long chains of floats are added to totals.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from itertools import compress

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ..core.builder import Builder, Index, Unroll, Value
from ..core.elements import ROUNDED, Scalar, decode, encode, flatten, parts, raw_type, unflatten, working_type
from ..core.graph import Node
from ..loops.elemental import Elemental, Indices
from ..loops.fetch import fetch
from ..loops.form import Answer, Fits
from ..loops.ranges import Steps, chunks, grouped, outer_loops, width_of
from ..loops.reduced import initials_of, only_op, operands_of, reduced_dimensions
from ..loops.view import Subject, View
from ..numerics import half
from .column_blocks import BLOCK_COLUMNS, MAXIMUM_APART, Columns, are_compared, columns_of
from .extremum import advance_column, close_column, extremum_of
from .long_sums import Blocks, Carried, Totals, component_type
from .reduce import UNROLLABLE_ELEMENTS, combine, rounded
from .results import dimensions_inside, write_together

FETCHED_COLUMNS = 16
"""Columns whose next rows are fetched at once, if they are a line of the cache."""

MINIMUM_VECTOR_COLUMNS = 8
"""Minimum columns for which a loop over them is for vectors."""

MINIMUM_SUM_COLUMNS = 16
"""Minimum columns of sums for which vectors are worth a rest."""


def _over_columns(size: int, rows: bool) -> Unroll:
    """Of a loop over columns. LLVM unrolls few before it makes vectors: sums become scalars that it joins one by one,
    which takes long, and what rows give in any order becomes vectors of rows, with gathers.

    rows: whether the columns of a row, unrolled, are made vectors of.
    """
    odd = rows and size < MINIMUM_SUM_COLUMNS and size.bit_count() > 1
    return Unroll.ANY if size > UNROLLABLE_ELEMENTS or size < MINIMUM_VECTOR_COLUMNS or odd else Unroll.VECTORIZED


def _vectors(size: int) -> list[tuple[int, int]]:
    """(First, number) of the columns that are a loop: whole vectors of fewer and fewer. What is no whole vector would
    be one with a mask, or scalars, in one loop, and something else in the next one, where it has to be fetched from
    memory that it has not reached yet.
    """
    found, start, count = [], 0, MAXIMUM_APART
    while start < size:
        if size - start >= count:
            found.append((start, count))
            start += count
        count //= 2
    return found


def _is_product(node: Node) -> bool:
    """Whether a reduction multiplies floats that no step rounds to a narrower type."""
    return only_op(node) is Op.MULTIPLY and node.outputs[0].dtype in (DType.F32, DType.F64)


class Accumulators:
    """The accumulators of one reduction for a block of columns, on the stack; of complex numbers, real parts first."""

    def __init__(self, b: Builder, node: Node, block: int):
        self.b, self.node, self.block = b, node, block
        self.slots: list[tuple[Value, DType]] = []
        self.totals: list[Totals] = []
        best = extremum_of(node) if node.opcode is Op.REDUCE else None
        self.by_key = best if best and node.output.dtype is DType.F16 else None  # the accumulator, a better one
        self.extremum = best if are_compared(node) else None
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
                Totals(self.b, self.block, component_type(self.b, dtype), True, parts(dtype), UNROLLABLE_ELEMENTS)
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

    def __init__(self, e: Elemental, nodes: Sequence[Node], form: Columns, finish: Callable[[Indices], None]):
        self.e, self.b, self.nodes, self.form, self.finish = e, e.b, nodes, form, finish
        self.node, self.column, self.width, self.block = nodes[0], form.column, form.width, form.block
        self.accumulators = [Accumulators(self.b, node, self.block) for node in nodes]

    def emit(self, steps: Steps | None = None) -> None:
        b, dims = self.b, self.node.inputs[0].dims
        index: dict[int, Index] = dict.fromkeys(range(len(dims)), 0)
        inside = [] if steps is None else dimensions_inside(self.node, steps.dimensions)
        if steps is not None and self.column in inside:
            self._emit_steps(steps, inside, index)
            return
        around = self.form.around
        with outer_loops(b, steps, inside, dims, self.form.outer, around, around) as places:
            index |= places
            for start, size in chunks(b, 0, self.width, self.block):
                self._block(index, start, size)

    def _emit_steps(self, steps: Steps, inside: Sequence[int], index: dict[int, Index]) -> None:
        """The steps number the columns, after some of the outer dimensions."""
        b, dims = self.b, self.node.inputs[0].dims
        width = width_of(steps.partition, self.width, self.block)
        assert width is not None
        for places, start, size in grouped(b, steps, [dims[d] for d in inside], width):
            index |= zip(inside, places, strict=False)
            with outer_loops(b, None, (), dims, [d for d in self.form.outer if d not in inside]) as found:
                self._block(index | found, start, size)

    def _block(self, index: dict[int, Index], start: Index, size: int) -> None:
        b = self.b
        initials = [[self.e.value(x, ()) for x in initials_of(node)] for node in self.nodes]
        for column in self._over_all(0, size):
            for slots, values in zip(self.accumulators, initials, strict=True):
                slots.write(column, slots.opened(values))
        spilled = list(compress(self.accumulators, self.form.spills))
        for slots in spilled:
            slots.open_totals(size)

        def at(prefix: Sequence[Index]) -> dict[int, Index]:
            return index | dict(zip(self.form.rows, prefix, strict=False))

        last = self.form.rows[-1]

        def whole(prefix: Sequence[Index], first: Index, given: Carried) -> Carried:
            self._rows(at(prefix), last, [b.add(first, k) for k in range(self.form.together)], start, size)
            return given

        def rest(prefix: Sequence[Index], first: int, given: Carried) -> Carried:
            self._rows(at(prefix), last, list(range(first, sizes[-1])), start, size)
            return given

        def spill(given: Carried) -> Carried:
            for slots in spilled:
                slots.spill(size)
            return given

        sizes = [self.node.inputs[0].dims[d] for d in self.form.rows]
        limit = self.form.limit if spilled else math.prod(sizes)
        around = Unroll.NONE if all(self.form.sums) or self.form.ahead else Unroll.ANY
        Blocks(b, sizes, self.form.together, limit, spill, around).emit(whole, rest)
        for column in self._over_all(0, size):
            place = dict(index)
            place[self.column] = b.add(start, column)
            kept = tuple(place[d] for d in range(len(place)) if d not in reduced_dimensions(self.node))
            for slots, spills in zip(self.accumulators, self.form.spills, strict=True):
                found = slots.read_totals(column) if spills else slots.closed(slots.read(column))
                for value, buffer in zip(found, slots.node.outputs, strict=True):
                    b.remember((buffer, kept, False), rounded(self.e, buffer, value))
            self.finish(kept)

    def _over_all(self, first: Index, size: int, otherwise: Unroll = Unroll.ANY) -> Iterator[Index]:
        """The columns of a block from the first one on, in loops of whole vectors if they are few."""
        for start, count in _vectors(size) if size in self.form.apart else [(0, size)]:
            unroll = self._over(size, otherwise) if count == size else _over_columns(count * 2, False)
            with self.b.loop(0, count, unroll=unroll) as loop:
                yield self.b.add(first, self.b.add(loop.index, start))

    def _over(self, size: int, otherwise: Unroll = Unroll.ANY) -> Unroll:
        """Of a loop over columns. After few passes accumulators are in memory anyway, and copies are only code;
        but pairs of lines, which LLVM reads together where it may unroll, come faster from memory.
        """
        return Unroll.NONE if self.form.lean and not self.form.narrow and size > UNROLLABLE_ELEMENTS else otherwise

    def _rows(self, index: dict[int, Index], row: int, at: Sequence[Index], start: Index, size: int) -> None:
        """Combine a few rows of one block into the accumulators."""
        fetches = self.form.ahead and len(at) == self.form.together
        line_bytes = self.b.processor.line_bytes
        piece = max(FETCHED_COLUMNS, *(line_bytes // x.dtype.bytes for x in self.form.ahead)) if fetches else size
        if piece >= size or size % piece or size == self.width:
            self._columns(index, row, at, start, 0, size)
            return
        b = self.b
        with b.loop(0, size, piece, unroll=Unroll.NONE) as line:
            for r in at:
                place = index | {row: b.add(r, len(at)), self.column: b.add(start, line.index)}
                offset = self.e.offset(self.node.inputs[0], tuple(place[d] for d in range(len(place))))
                fetch(self.e, self.form.ahead, offset, piece)
            self._columns(index, row, at, start, line.index, piece)

    def _columns(
        self, index: dict[int, Index], row: int, at: Sequence[Index], start: Index, first: Index, size: int
    ) -> None:
        """Combine a few rows of neighbouring columns, from the `first` of a block on."""
        b = self.b
        unroll = _over_columns(size, all(self.form.sums) or self.form.around is Unroll.SCALAR)
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
                if self.form.sums[n]:
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


def fits(view: View, subject: Subject) -> Answer:
    """In steps if these are groups of neighbouring columns."""
    form, numbered = columns_of(view.facts, subject.products), dimensions_inside(subject.node, view.numbered)
    if view.partition is None or form.column not in numbered:
        return Fits(form, code=form.code)
    grouped = numbered[-1] == form.column and width_of(view.partition, form.width, BLOCK_COLUMNS) is not None
    return Fits(form, grouped, form.code)


def emit(e: Elemental, subject: Subject, form: Columns, steps: Steps | None) -> None:
    ColumnReduction(e, subject.products, form, lambda index: write_together(e, subject.results, index)).emit(steps)
