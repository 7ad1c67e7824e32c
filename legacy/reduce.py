"""reduce: as an elemental rule (one loop nest per element), and as a root over columns, in blocks on the stack."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from ..hlo.dtypes import DType
from ..hlo.ir import Computation, Instruction
from ..hlo.opcodes import Op
from ..hlo.shapes import array
from ..planning.partition import Partition
from .along import Along
from .builder import Code, IndexValue, Unroll, over_columns
from .column_run import emit_columns_of_run
from .elemental import Elemental, ElementRule, Index, Reads
from .elementwise import EMIT
from .extremum import (
    close_chains,
    close_pair,
    combine_chains,
    combine_rows,
    is_long,
    join_chains,
    open_chains,
    open_pair,
)
from .extremum_run import Run, first_of_run
from .fetch import fetch, streams_of
from .linear import is_linear
from .memory import LINE
from .narrow import NARROW, decode, encode
from .overlapping import piece_of, reduce_overlapping
from .partial import OUTSIDE, TERMS, UNBOUNDED, PartialArrays, PartialSums, levels_of, nothing
from .ranges import Steps, column_blocks, columns_fit
from .registers import Register
from .stack import StackArray
from .sum_run import SHORTEST, sum_along

ASSOCIATIVE = frozenset({Op.ADD, Op.MULTIPLY, Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR, Op.XOR})


class Reducer:
    """How one reduce instruction combines values.

    Short sums of narrow floats are rounded at each step, as their region says and XLA:CPU does; long ones are rounded
    once, at the end. apart: whether a long maximum or minimum of floats may use the chains of extremum.py.
    """

    def __init__(self, e: Elemental, instruction: Instruction, apart: bool = True):
        self.e, self.code, self.instruction = e, e.code, instruction
        self.region: Computation = instruction.called()[0]
        self.count = len(instruction.operands) // 2
        self.operands, self.inits = instruction.operands[: self.count], instruction.operands[self.count :]
        self.dtypes = [o.shape.dtype for o in self.operands]
        self.simple = simple_op(self.region)
        self.length = math.prod(self.operands[0].shape.dims[d] for d in instruction.dimensions)
        self.in_single = self.simple is not None and self.dtypes[0] in NARROW and self._in_single(self.simple.opcode)
        self.in_parts = self._in_parts()
        self.in_chains = apart and self._is_float_extremum() and is_long(self.code, self.dtypes[0].bits, self.length)

    def unroll(self, size: int) -> Unroll:
        """Of a loop over so many elements: LLVM interleaves the chains of a maximum only where it may unroll."""
        if not self.in_chains or size < FEWEST_VECTORS:
            return Unroll.SHORT
        return Unroll.FREELY if size > UNROLLABLE else Unroll.VECTORS

    def _in_single(self, op: Op) -> bool:
        """Whether narrow floats are combined in f32 and rounded once: if no step rounds, or for many elements."""
        return op in (Op.MAXIMUM, Op.MINIMUM) or (op in SINGLE and self.length > SHORT)

    def _in_parts(self) -> bool:
        """Whether this is a long sum of floats, which is made of partial sums. Products gain no accuracy by that."""
        if self.simple is None or self.simple.opcode is not Op.ADD or self.length <= TERMS or self.code.strict:
            return False
        return self.in_single or self.dtypes[0] in (DType.F32, DType.F64) or self.dtypes[0].is_complex

    @property
    def is_sum(self) -> bool:
        """Whether it adds up floats as they are."""
        return self.simple is not None and self.simple.opcode is Op.ADD and self.dtypes[0] in (DType.F32, DType.F64)

    def _is_float_extremum(self) -> bool:
        wide = self.in_single or self.dtypes[0] in (DType.F32, DType.F64)
        return wide and self.simple is not None and self.simple.opcode in (Op.MAXIMUM, Op.MINIMUM)

    def open(self, values: Sequence[Register]) -> list[Register]:
        """The accumulators for initial values."""
        opened = self.widened(values)
        return list(open_chains(self.code, opened[0])) if self.in_chains else opened

    def widened(self, values: Sequence[Register]) -> list[Register]:
        return [decode(self.code, self.dtypes[0], values[0])] if self.in_single else list(values)

    def close(self, values: Sequence[Register]) -> list[Register]:
        """The results of accumulators."""
        if self.in_chains:
            values = [close_chains(self.code, list(values))]
        return [encode(self.code, self.dtypes[0], values[0])] if self.in_single else list(values)

    def combine(self, accumulators: Sequence[Register], values: Sequence[Register]) -> list[Register]:
        if self.simple is None:
            result = self.e.apply(self.region, [*accumulators, *values])
            return list(result) if self.instruction.shape.is_tuple else [result]
        if self.in_chains:
            return self.combine_chains(accumulators, self.widened(values)[0])
        value = self.widened(values)[0]
        if self.in_parts:
            return self.join(accumulators, [value])
        with reassociation(self.code):
            return self.join(accumulators, [value])

    def combine_chains(self, chains: Sequence[Register], value: Register) -> list[Register]:
        """The accumulators of a long maximum or minimum after a widened value."""
        assert self.simple is not None
        return list(combine_chains(self.code, self.simple.opcode, list(chains), value))

    def run(self, first: ir.Value, count: int, ahead: bool = False) -> ir.Value:
        """The extremum of `count` elements in memory, by the function that kernels share. ahead: what follows is
        fetched.
        """
        assert self.simple is not None
        self.code.shares = True
        return Run(self.simple.opcode, self.dtypes[0], ahead).call(self.code, first, count)

    def join(self, first: Sequence[Register], second: Sequence[Register]) -> list[Register]:
        """Combine accumulators of a simple reduction, in this order."""
        assert self.simple is not None
        root = SINGLE[self.simple.opcode] if self.in_single else self.simple
        return [EMIT[root.opcode](self.code, root, first[0], second[0])]

    def merge(self, first: Sequence[Register], second: Sequence[Register]) -> list[Register]:
        """The accumulators of a simple reduction of the values of both."""
        assert self.simple is not None
        if self.in_chains:
            return join_chains(self.code, self.simple.opcode, list(first), list(second))
        return self.join(first, second)

    def result(self, values: list[Register]) -> Register:
        return tuple(values) if self.instruction.shape.is_tuple else values[0]


def _single_op(op: Op) -> Instruction:
    scalar = array(DType.F32)
    a, b = (Instruction(Op.PARAMETER, name, scalar, attributes={"parameter_number": i}) for i, name in enumerate("ab"))
    return Instruction(op, "op", scalar, (a, b))


SINGLE = {op: _single_op(op) for op in (Op.ADD, Op.MULTIPLY, Op.MAXIMUM, Op.MINIMUM)}
"""The operations of regions on narrow floats, on f32."""

PAIRED = 12
"""Elements of a column from which on its maximum has two accumulators, whose closing costs some instructions."""

FEWEST_VECTORS, UNROLLABLE = 16, 64
"""Elements along a dimension from which on loops over chains may be unrolled: 0.6 to 0.7 times the time for 1024. Up to
the second, LLVM would unroll them before it makes vectors, and then join scalars by hundreds of moves.
"""

LANED = 128
"""Elements along memory from which on a maximum is in the lanes of lines, which are combined once at the end."""

SHORT = 32
"""Reductions of at most SHORT narrow floats keep the order and the rounding of their region."""


def simple_op(region: Computation) -> Instruction | None:
    """The associative operation on both parameters that is the whole region; None for other regions."""
    root = region.root
    if root.opcode not in ASSOCIATIVE or len(region.parameters) != 2:
        return None
    return root if set(root.operands) == set(region.parameters) else None


@contextmanager
def reassociation(code: Code) -> Iterator[None]:
    """Allow reassociation of the sums and products emitted within, unless in strict mode."""
    before = code.flags
    code.flags = before if code.strict else (*before, "reassoc")
    try:
        yield
    finally:
        code.flags = before


def reduced_order(instruction: Instruction) -> list[int]:
    """The reduced dimensions from the slowest to the fastest in memory."""
    reduced = set(instruction.dimensions)
    return [d for d in reversed(instruction.operands[0].shape.minor_to_major) if d in reduced]


def reduce(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    code, reducer = e.code, Reducer(e, instruction)
    source = reducer.operands[0].shape
    values = []
    for init in reducer.inits:
        values.append((yield init, e.scalar(init.shape)))
    if any(source.dims[d] == 0 for d in instruction.dimensions):
        return reducer.result(values)
    along = Along(e, reducer.operands, reduced_order(instruction), index)
    if reducer.in_parts:
        return (yield from _reduce_in_parts(reducer, values, along))
    run = _run_of(reducer, along) if reducer.in_chains else None
    if run is not None:
        return reducer.result(reducer.close(reducer.combine_chains(reducer.open(values), run)))
    if reducer.in_chains and along.sizes[-1] >= LANED and along.ahead(1) is not None:
        return (yield from _reduce_in_lanes(reducer, values, along))
    code.walks = code.walks or reducer.length >= SHORTEST
    accumulators = reducer.open(values)
    piece = piece_of(e, reducer.operands[0], reducer.simple.opcode, along) if reducer.simple else None
    if piece is not None:
        reduced = yield from reduce_overlapping(reducer, accumulators, along, piece)
        return reducer.result(reducer.close(reduced))
    if len(instruction.dimensions) == source.rank and all(is_linear(o, e.leaves) for o in reducer.operands):
        return (yield from _reduce_flat(e, reducer, accumulators))
    loops = []
    for size in along.sizes:
        loops.append(code.loop(size, carried=accumulators, unroll=reducer.unroll(size)))
        accumulators = loops[-1].carried
    place = along.place([loop.index for loop in loops])
    values = []
    for operand in reducer.operands:
        values.append((yield operand, place))
    accumulators = reducer.combine(accumulators, values)
    for loop in reversed(loops):
        accumulators = loop.close(accumulators)
    return reducer.result(reducer.close(accumulators))


def _reduce_in_parts(reducer: Reducer, inits: list[Register], along: Along) -> Reads:
    """Reduce in partial sums."""
    opened = reducer.widened(inits)
    run = _sum_of(reducer, along)
    if run is not None:
        return reducer.result(reducer.close(reducer.join(opened, [run])))
    reducer.code.walks = True
    sums = PartialSums(reducer.code, [nothing(opened[0])], along.sizes)
    for accumulators in sums.steps(along.ahead(sums.width)):
        value = yield reducer.operands[0], along.place(sums.positions)
        sums.put(reducer.combine(accumulators, [value]))
    return reducer.result(reducer.close(reducer.join(opened, sums.totals())))


def _sum_of(reducer: Reducer, along: Along) -> ir.Value | None:
    """The sum of all elements, if a function of sum_run.py computes it."""
    return None if reducer.in_single else sum_along(reducer.e, reducer.operands[0], along)


def _run_of(reducer: Reducer, along: Along) -> ir.Value | None:
    """The extremum of all elements, if the function of extremum_run.py computes it."""
    first = None if reducer.in_single else first_of_run(reducer.e, reducer.operands[0], along)
    return None if first is None else reducer.run(first, along.sizes[0], along.ahead(1) is not None)


def _reduce_in_lanes(reducer: Reducer, inits: list[Register], along: Along) -> Reads:
    """A maximum or minimum along the memory of large arrays, which are fetched ahead, in the lanes of lines."""
    code, simple = reducer.code, reducer.simple
    code.walks, (first,) = True, reducer.widened(inits)
    assert simple is not None
    lanes = PartialSums(code, open_pair(code, first), along.sizes, UNBOUNDED)
    for pair in lanes.steps(along.ahead(lanes.width)):
        value = yield reducer.operands[0], along.place(lanes.positions)
        lanes.put(combine_rows(code, simple.opcode, list(pair), reducer.widened([value])))
    loop = code.loop(lanes.width, carried=reducer.open(inits), unroll=Unroll.VECTORS)
    best = close_pair(code, lanes.read(loop.index))
    return reducer.result(reducer.close(loop.close(reducer.combine_chains(loop.carried, best))))


def _reduce_flat(e: Elemental, reducer: Reducer, accumulators: list[Register]) -> Reads:
    """Reduce all elements in memory order in one loop."""
    size = reducer.operands[0].shape.size
    loop = e.code.loop(size, carried=accumulators, unroll=reducer.unroll(size))
    values = []
    for operand in reducer.operands:
        values.append((yield operand, Index.flat(e.code, operand.shape, loop.index)))
    accumulators = loop.close(reducer.combine(loop.carried, values))
    return reducer.result(reducer.close(accumulators))


BLOCK = 256
"""Columns of a convolution whose accumulators are on the stack together."""

COLUMNS = 1024
"""The same of a reduction: the longer the pieces of rows, the faster they come from memory."""

ROWS = 4
"""Rows that one pass over a block of columns reduces: a number of streams that hardware prefetchers can follow."""

PAIRED_ROWS = 2 * ROWS
"""The same for a maximum: each pass reads and writes two accumulators."""

LONG_ROW, SMALL = 512, 1 << 16
"""Columns from which on LLVM has the loops that it needs to make vectors, and no others. Elements of which few columns
may take a third longer, as that is nothing.
"""

VECTOR = 16
"""Columns whose next rows are fetched at once, if they are a line of the cache: a loop over them is one vector."""

PASSES = 16
"""Passes whose rows are in a partial sum. The rows of a pass are added up first, so that this is the longest chain."""

UNROLLED_PASSES = 4
"""Passes over sums that LLVM may unroll. Of more, it moves the loads of all rows together and spills."""


class ColumnReducer(Reducer):
    """A reduction whose accumulators for one block of columns are on the stack, except for partial sums."""

    def __init__(self, e: Elemental, instruction: Instruction, width: int):
        super().__init__(e, instruction, apart=False)
        self.reorders = not self.code.strict and (self.in_single or self.dtypes[0] not in NARROW)
        self.in_pairs = self._is_float_extremum() and self.length >= PAIRED
        self.initial = self.open([e.value(init, e.scalar(init.shape)) for init in self.inits])
        arrays = [] if self.in_parts else self.initial
        self.stacks = [StackArray(self.code, init, min(COLUMNS, width)) for init in arrays]

    def open(self, values: Sequence[Register]) -> list[Register]:
        opened = super().open(values)
        return list(open_pair(self.code, opened[0])) if self.in_pairs else opened

    def close(self, values: Sequence[Register]) -> list[Register]:
        return super().close([close_pair(self.code, list(values))] if self.in_pairs else values)

    def combine_all(self, accumulators: list[Register], rows: Sequence[Sequence[Register]]) -> list[Register]:
        """The accumulators after several rows, which are not in partial sums."""
        if self.in_pairs:
            assert self.simple is not None
            values = [self.widened(row)[0] for row in rows]
            return list(combine_rows(self.code, self.simple.opcode, accumulators, values))
        if self.simple is not None and self.simple.opcode is Op.MULTIPLY and self.reorders:
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
                stack.fill(count, init)

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


def takes_steps(instruction: Instruction, partition: Partition) -> bool:
    """Whether `emit_column_reduce` can compute some of the steps: whole blocks of columns."""
    source = instruction.operands[0].shape
    kept = [d for d in range(source.rank) if d not in instruction.dimensions]
    fastest = next(d for d in source.minor_to_major if source.dims[d] != 1)
    inside = [kept[d] for d in partition.dimensions]
    return columns_fit(partition, inside, fastest, source.dims[fastest], COLUMNS)


def emit_column_reduce(
    e: Elemental,
    instructions: Sequence[Instruction],
    finish: Callable[[Index], None],
    steps: Steps | None = None,
) -> None:
    """Emit reductions with the same columns. For each block of columns: reduce all rows on the stack, then call
    `finish(index)` for each element of the result, with the values of the reductions bound to that index.
    """
    code, first = e.code, instructions[0]
    if len(instructions) == 1 and simple_op(first.called()[0]) and emit_columns_of_run(e, first, finish, steps):
        return
    code.walks = True
    source = first.operands[0].shape
    result = first.shape.elements[0] if first.shape.is_tuple else first.shape
    kept = [d for d in range(source.rank) if d not in first.dimensions]
    fastest = next(d for d in source.minor_to_major if source.dims[d] != 1)
    reducers = ColumnReducers(e, instructions, source.dims[fastest])
    few = source.dims[fastest] < LONG_ROW and source.size > SMALL
    small = source.size <= SMALL
    code.lean = not few and all(r.in_parts or r.in_pairs or (small and r.is_sum) for r in reducers.all)
    order = [d for d in reversed(source.minor_to_major) if d in kept and d != fastest]
    inside = [] if steps is None else [kept[d] for d in steps.dimensions]
    for positions, start, block in column_blocks(code, steps, inside, source.dims, order, fastest, COLUMNS):
        reducers.fill(block)
        _accumulate(e, reducers, positions, fastest, start, block)
        column = code.loop(block, unroll=_over_many(code, block))
        positions[fastest] = code.add(start, column.index)
        index = Index.at(code, result, [positions[d] for d in kept])
        reducers.bind(column.index, index)
        finish(index)
        column.close()


def _accumulate(
    e: Elemental,
    reducers: ColumnReducers,
    positions: list[IndexValue],
    fastest: int,
    block_start: IndexValue,
    block: int,
) -> None:
    """Reduce all rows into the accumulators. The fastest reduced dimension advances ROWS elements at a time."""
    code, first = e.code, reducers.all[0]
    source, order = first.operands[0].shape, reduced_order(first.instruction)
    most = PASSES if any(reducer.in_parts for reducer in reducers.all) else UNBOUNDED
    # LLVM unrolls few columns before it makes vectors: they become scalars, joined again one by one, or, where it may
    # reorder what rows give, vectors of rows, with gathers.
    whole = not all(reducer.in_parts for reducer in reducers.all)
    unroll = _over_many(code, block) if block > UNROLLABLE else Unroll.VECTORS if whole else over_columns(block)
    ahead = streams_of(e, [o for r in reducers.all for o in r.operands], source) if block < source.dims[fastest] else []
    columns = max(VECTOR, *(LINE // dtype.bytes for _, dtype in ahead)) if ahead else block
    columns = columns if block % columns == 0 else block
    together = PAIRED_ROWS if all(reducer.in_pairs for reducer in reducers.all) and columns == block else ROWS
    for rows, places in row_passes(reducers.sums, [source.dims[d] for d in order], 1, most, OUTSIDE, together):
        for d, place in zip(order, places, strict=True):
            positions[d] = place
        piece = columns if rows == together else block
        line = code.loop(block, step=piece, unroll=Unroll.NEVER)
        if piece < block:
            positions[fastest] = code.add(block_start, line.index)
            for k in range(rows):
                positions[order[-1]] = code.add(places[-1], rows + k)
                fetch(e, ahead, code.weighted_sum(positions, source.strides), piece)
        column = code.loop(piece, unroll=Unroll.VECTORS if piece < block else unroll)
        at = code.add(line.index, column.index)
        positions[fastest] = code.add(block_start, at)
        accumulators = reducers.read(at)
        passes: list[list[Register]] = [[] for _ in accumulators]
        read: list[list[list[Register]]] = [[] for _ in accumulators]
        for k in range(rows):
            positions[order[-1]] = code.add(places[-1], k)
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
        column.close()
        line.close()


def _over_many(code: Code, block: int) -> Unroll:
    """The mode of a loop over columns. What they add up is in memory after few passes, so copies would gain nothing."""
    return Unroll.NEVER if code.lean and block > UNROLLABLE else Unroll.FREELY


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


RULES: dict[Op, ElementRule] = {Op.REDUCE: reduce}
