"""reduce as an elemental rule: one loop nest per element. reduce_columns.py has it as a root over columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from ..hlo.dtypes import DType
from ..hlo.ir import Computation, Instruction
from ..hlo.opcodes import Op
from ..hlo.shapes import array
from .along import Along
from .builder import Code, Unroll
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
from .linear import is_linear
from .narrow import NARROW, decode, encode
from .overlapping import piece_of, reduce_overlapping
from .partial import TERMS, UNBOUNDED, PartialSums, nothing
from .registers import Register
from .short_rows import sum_of_row
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
    if reducer.simple is not None and reducer.simple.opcode is Op.ADD:
        row = sum_of_row(e, reducer.operands[0], along)
        if row is not None:
            return reducer.result(reducer.join(values, [row]))
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


RULES: dict[Op, ElementRule] = {Op.REDUCE: reduce}
