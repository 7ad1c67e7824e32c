"""reduce as a root over columns: in blocks, whose sums are on the stack."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import IndexValue, Unroll, over_columns
from ..core.registers import Register
from ..core.stack import StackArray
from ..core.view import View
from ..loops.access import live_dimensions
from ..loops.elemental import Elemental, Index
from ..loops.fetch import fetch, streams_of
from ..loops.form import Fit, Results, Task, form
from ..loops.leaf import write_all
from ..loops.ranges import Steps, column_blocks, columns_fit
from ..numerics import half
from ..numerics.narrow import NARROW
from . import column_run
from .column_run import run
from .extremum import close_pair, combine_rows, open_pair
from .long_sums import OUTSIDE, UNBOUNDED, PartialArrays, levels_of, nothing
from .reduce import PAIRED, UNROLLABLE, Reducer, Reduction, reduced_order

BLOCK = 256
"""Columns of a convolution whose accumulators are on the stack together."""

COLUMNS = 1024
"""As above, for a reduction: the longer the pieces of rows, the faster they come from memory."""

ROWS = 4
"""Rows that one pass over a block of columns reduces: a number of streams that hardware prefetchers can follow."""

PAIRED_ROWS = 2 * ROWS
"""The same for a maximum: each pass reads and writes two accumulators."""

LONG_ROW, SMALL = 512, 1 << 16
"""Minimum columns for which LLVM has just the loops that it needs to make vectors. Elements of which few columns may
take a third longer, as that is nothing.
"""

VECTOR = 16
"""Columns whose next rows are fetched at once, if they are a line of the cache: a loop over them is one vector."""

ODD, WIDE = range(3, 16), 4
"""Columns that fill no vector, and bytes of their elements, with which LLVM gathers where processors can."""

UNROLLED = 64
"""Elements of a block of all rows that LLVM has side by side, and makes vectors of."""

PARTED = range(5, 32)
"""Columns that are split if they are no power of two."""

WHOLE = 4
"""Minimum columns of a part for which it is a vector; two are scalars, which LLVM joins if it pays."""

PASSES = 16
"""Passes whose rows are in a partial sum. The rows of a pass are added up first, so that this is the longest chain."""

UNROLLED_PASSES = 4
"""Passes over sums that LLVM may unroll. Of more, it moves the loads of all rows together and spills."""


class ColumnReducer(Reducer):
    """A reduction whose accumulators for one block of columns are on the stack, except for partial sums."""

    def __init__(self, e: Elemental, instruction: Instruction, width: int):
        super().__init__(e, instruction, apart=False)
        self.reorders = not self.code.view.strict and (self.in_single or self.dtypes[0] not in NARROW)
        best = self.reduction.is_float_extremum
        self.by_key = best and self.dtypes[0] is DType.F16  # half of the bytes of f32, and no conversion
        self.in_pairs = has_pairs(self.reduction)
        self.initial = self.open([e.number(init) for init in self.inits])
        arrays = [] if self.in_parts else self.initial
        self.stacks = [StackArray(self.code, init, min(COLUMNS, width)) for init in arrays]

    def open(self, values: Sequence[Register]) -> list[Register]:
        if self.by_key:
            return [self._key(values[0])]
        opened = super().open(values)
        return list(open_pair(self.code, opened[0])) if self.in_pairs else opened

    def _key(self, value: Register) -> ir.Value:
        return half.key_of(self.code, self.op, value)

    def close(self, values: Sequence[Register]) -> list[Register]:
        if self.by_key:
            return [half.of_key(self.code, values[0])]
        return super().close([close_pair(self.code, list(values))] if self.in_pairs else values)

    def combine_all(self, accumulators: list[Register], rows: Sequence[Sequence[Register]]) -> list[Register]:
        """The accumulators after several rows, which are not in partial sums."""
        if self.by_key:
            best = accumulators[0]
            for row in rows:
                best = half.best_key(self.code, self.op, best, self._key(row[0]))
            return [best]
        if self.in_pairs:
            values = [self.widened(row)[0] for row in rows]
            return list(combine_rows(self.code, self.op, accumulators, values))
        if self.simple is not None and self.op is Op.MULTIPLY and self.reorders:
            first, *others = [self.widened(row) for row in rows]
            return self.join(accumulators, functools.reduce(self.join, others, first))
        for row in rows:
            accumulators = self.combine(accumulators, row)
        return accumulators


class ColumnReducers:
    """Reductions over the same columns; those in partial sums have them together."""

    def __init__(self, e: Elemental, instructions: Sequence[Instruction], width: int):
        self.e, self.all = e, [ColumnReducer(e, instruction, width) for instruction in instructions]
        parts = [reducer for reducer in self.all if reducer.in_parts]
        self.sums = PartialArrays(e.code, [nothing(reducer.initial[0]) for reducer in parts], min(COLUMNS, width))

    def fill(self, count: int) -> None:
        self.sums.start(count)
        for reducer in self.all:
            for stack, init in zip(reducer.stacks, reducer.initial, strict=False):
                for start, width in parts_of(count):
                    stack.fill(width, init, start)

    def read(self, column: IndexValue) -> list[list[Register]]:
        sums = iter(self.sums.read(column))
        return [[next(sums)] if r.in_parts else [stack.read(column) for stack in r.stacks] for r in self.all]

    def write(self, column: IndexValue, values: Sequence[Sequence[Register]]) -> None:
        self.sums.write(column, [v[0] for reducer, v in zip(self.all, values, strict=True) if reducer.in_parts])
        for reducer, registers in zip(self.all, values, strict=True):
            for stack, register in zip(reducer.stacks, registers, strict=False):
                stack.write(column, register)

    def bind(self, column: IndexValue, index: Index) -> None:
        """Bind the results at a column."""
        for reducer, values in zip(self.all, self.read(column), strict=True):
            total = reducer.join(reducer.initial, values) if reducer.in_parts else values
            self.e.bind(reducer.instruction, index, reducer.result(reducer.close(total)))


@dataclass(frozen=True, slots=True)
class Blocks:
    """fastest: the dimension of the operands that columns are along. kept: those that are not reduced. inside: those
    that the steps number. around: the mode of loops around all columns. lean: whether few passes are enough.
    """

    fastest: int
    kept: tuple[int, ...]
    inside: tuple[int, ...]
    around: Unroll
    lean: bool


def has_pairs(reduction: Reduction) -> bool:
    """Whether a column has two accumulators: for maxima of many floats that have no keys."""
    return reduction.is_float_extremum and reduction.dtype is not DType.F16 and reduction.length >= PAIRED


def emit_column_reduce(e: Elemental, results: Results, blocks: Blocks, steps: Steps | None = None) -> None:
    """Emit reductions with the same columns. For each block of columns: reduce all rows on the stack, then compute each
    element of the results, with the values of the reductions bound to its index.
    """
    code, first, kept, fastest = e.code, results.products[0], blocks.kept, blocks.fastest
    source = first.operands[0].shape
    result = first.shape.elements[0] if first.shape.is_tuple else first.shape
    reducers = ColumnReducers(e, results.products, source.dims[fastest])
    order = [d for d in reversed(source.minor_to_major) if d in kept and d != fastest]
    loops = column_blocks(code, steps, source.dims, order, fastest, COLUMNS, blocks.around, blocks.inside)
    for positions, start, block in loops:
        reducers.fill(block)
        _accumulate(e, reducers, positions, blocks, start, block)
        for first_column, width in parts_of(block):
            with code.loop(width, unroll=_over_many(blocks, block)) as column:
                at = code.add(column, first_column)
                positions[fastest] = code.add(start, at)
                index = Index.at(code, result, [positions[d] for d in kept])
                reducers.bind(at, index)
                write_all(e, results.leaves, index)


def _accumulate(
    e: Elemental,
    reducers: ColumnReducers,
    positions: list[IndexValue],
    blocks: Blocks,
    block_start: IndexValue,
    block: int,
) -> None:
    """Reduce all rows into the accumulators. The fastest reduced dimension advances ROWS elements at a time."""
    code, first, fastest = e.code, reducers.all[0], blocks.fastest
    source, order = first.operands[0].shape, reduced_order(first.instruction)
    most = PASSES if any(reducer.in_parts for reducer in reducers.all) else UNBOUNDED
    unroll = _unroll_of(e.view, reducers, blocks, block)
    ahead = (
        streams_of(e.view, [o for r in reducers.all for o in r.operands], source)
        if block < source.dims[fastest]
        else []
    )
    line_bytes = e.view.processor.line_bytes
    columns = max(VECTOR, *(line_bytes // stream.shape.dtype.bytes for stream in ahead)) if ahead else block
    columns = columns if block % columns == 0 else block
    together = PAIRED_ROWS if all(reducer.in_pairs for reducer in reducers.all) and columns == block else ROWS
    for rows, places in row_passes(reducers.sums, [source.dims[d] for d in order], 1, most, OUTSIDE, together):
        for d, place in zip(order, places, strict=True):
            positions[d] = place
        piece = columns if rows == together else block
        with code.loop(block, step=piece, unroll=Unroll.NEVER) as line:
            if piece < block:
                positions[fastest] = code.add(block_start, line)
                for k in range(rows):
                    positions[order[-1]] = code.add(places[-1], rows + k)
                    fetch(e, ahead, code.weighted_sum(positions, source.strides), piece)
            for start, width in parts_of(piece):
                kind = (
                    unroll if width == block else Unroll.VECTORS if piece < block or width >= WHOLE else Unroll.FREELY
                )
                with code.loop(width, unroll=kind) as column:
                    at = code.add(line, code.add(column, start))
                    positions[fastest] = code.add(block_start, at)
                    _combine(e, reducers, positions, order[-1], [code.add(places[-1], k) for k in range(rows)], at)


def _unroll_of(view: View, reducers: ColumnReducers, blocks: Blocks, block: int) -> Unroll:
    """The mode of a loop over columns that adds up.

    LLVM unrolls few columns before it makes vectors: they become scalars, joined again one by one, or, where it may
    reorder what rows give, vectors of rows, with gathers.
    """
    if block > UNROLLABLE:
        return _over_many(blocks, block)
    whole = not all(reducer.in_parts for reducer in reducers.all)
    gathered = _are_gathered(view, reducers.all[0].instruction, block)
    return Unroll.VECTORS if whole and not gathered else over_columns(block)


def _combine(
    e: Elemental,
    reducers: ColumnReducers,
    positions: list[IndexValue],
    dimension: int,
    rows: Sequence[IndexValue],
    at: IndexValue,
) -> None:
    """Combine the accumulators of a column with its elements of some rows: places in a dimension."""
    code, accumulators = e.code, reducers.read(at)
    passes: list[list[Register]] = [[] for _ in accumulators]
    read: list[list[list[Register]]] = [[] for _ in accumulators]
    for place in rows:
        positions[dimension] = place
        for n, reducer in enumerate(reducers.all):
            values = [e.value(o, Index.at(code, o.shape, positions)) for o in reducer.operands]
            if not reducer.in_parts:
                read[n].append(values)
            else:
                passes[n] = reducer.combine(passes[n], values) if passes[n] else reducer.widened(values)
    for n, reducer in enumerate(reducers.all):
        if reducer.in_parts:
            accumulators[n] = reducer.join(accumulators[n], passes[n])
        else:
            accumulators[n] = reducer.combine_all(accumulators[n], read[n])
    reducers.write(at, accumulators)


def parts_of(block: int) -> list[tuple[int, int]]:
    """(The first, the number) of columns that have a loop of their own: if all are few, a power of two each. LLVM takes
    vectors of one length for all of a loop, with a mask or scalars behind them, and another length for the next loop,
    which then waits for what it reads to arrive in memory.
    """
    if block not in PARTED:
        return [(0, block)]
    widths = [1 << k for k in reversed(range(block.bit_length())) if block & 1 << k]
    return [(sum(widths[:n]), width) for n, width in enumerate(widths)]


def _are_gathered(view: View, instruction: Instruction, width: int) -> bool:
    """Whether so few columns are unrolled, and what is around them is not for vectors. Where processors can, LLVM
    would gather elements of several rows, or write and read accumulators on the stack as parts of vectors.
    """
    wide = all(operand.shape.dtype.bytes >= WIDE for operand in instruction.operands)
    count = math.prod(instruction.operands[0].shape.dims[d] for d in instruction.dimensions)
    return wide and view.processor.gathers and width in ODD and count * width <= UNROLLED


def _over_many(blocks: Blocks, block: int) -> Unroll:
    """The mode of a loop over columns. What they add up is in memory after few passes, so copies would gain nothing."""
    return Unroll.NEVER if blocks.lean and block > UNROLLABLE else Unroll.FREELY


def row_passes(
    sums: PartialArrays, sizes: Sequence[int], each: int, most: int, outside: int | None = None, together: int = ROWS
) -> Iterator[tuple[int, list[IndexValue]]]:
    """Loops over dimensions, the slowest first, with (the number of rows that a pass reduces, the place of the first).

    A pass takes `together` positions of the fastest dimension, or the rest, and adds `each` terms to a partial sum (one
    if its rows are added up first), which has about `most`, or `outside` if it is made of others.
    """
    positions: list[IndexValue] = [0] * len(sizes)
    whole, rest = divmod(sizes[-1], together)
    inner, terms = levels_of([whole], each, most, outside)
    inside = max(1, (terms if whole else 0) + min(rest, each))
    divided = any(level.apart for level in inner)
    outer, _ = levels_of(sizes[:-1], inside, (outside if divided else None) or most, outside)
    divided = divided or any(level.apart for level in outer)
    many = together > each and whole > UNROLLED_PASSES
    unroll = Unroll.NEVER if divided or many else Unroll.FREELY
    with sums.loops(outer, sizes[:-1], positions, unroll=unroll):
        if whole:
            row: list[IndexValue] = [0]
            with sums.loops(inner, [whole], row, together, unroll):
                positions[-1] = row[0]
                yield together, positions
        if rest:
            positions[-1] = whole * together
            yield rest, positions


@form(
    "reduce/columns",
    emit_column_reduce,
    column_run,
    MINIMUM_COLUMNS="columns",
    MINIMUM_WIDE_COLUMNS="columns of numbers of 32 bits and more",
)
def columns(task: Task) -> Fit:
    """Reductions that keep the fastest dimension: blocks of columns, whose accumulators are on the stack."""
    view, first, products = task.view, task.product(Op.REDUCE), task.results.products
    source = first.operands[0].shape
    kept = tuple(d for d in range(source.rank) if d not in first.dimensions)
    fastest = live_dimensions(source)[0]
    count, inside = source.dims[fastest], tuple(kept[d] for d in task.numbered)
    around = Unroll.SCALAR if _are_gathered(view, first, count) else Unroll.FREELY
    few, small = count < LONG_ROW and source.size > SMALL, source.size <= SMALL
    all_ = [Reduction.of(view, i, apart=False) for i in products]
    lean = not few and all(r.in_parts or has_pairs(r) or (small and r.is_sum) for r in all_)
    in_steps = columns_fit(task.partition, inside, fastest, count, COLUMNS)
    return Fit(Blocks(fastest, kept, inside, around, lean), in_steps, products, walks=True, lean=lean)


FORMS = (run, columns)
