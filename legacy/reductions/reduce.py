"""reduce as an elemental rule: one loop nest per element. reduce_columns.py has it as a root over columns."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, replace
from ...hlo.shapes import array
from ..core.builder import Code, Unroll
from ..core.registers import Register
from ..core.view import View
from ..loops.along import Along, Reduced
from ..loops.elemental import Elemental, ElementRule, Index, Reads, Request
from ..loops.linear import is_linear
from ..loops.memory import address
from ..movement.overlapping import piece_of, reduce_overlapping
from ..numerics.elementwise import EMIT
from ..numerics.narrow import NARROW, decode, encode
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
from .extremum_run import Run, source_of_run
from .long_sums import TERMS, UNBOUNDED, PartialSums, nothing
from .short_rows import source_of_row, sum_of_row
from .sum_run import MINIMUM_LENGTH, Made, run_along, sum_along

ASSOCIATIVE = frozenset({Op.ADD, Op.MULTIPLY, Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR, Op.XOR})


@dataclass(frozen=True, slots=True)
class Reduction:
    """How one reduce instruction combines `length` elements. simple: as simple_op.

    in_single: narrow floats are combined in f32 and rounded once, at the end; the steps of short sums are rounded each,
    as their region says and XLA:CPU does. in_parts: partial sums. in_chains: a long maximum or minimum of floats in the
    chains of extremum.py.
    """

    instruction: Instruction
    length: int
    simple: Instruction | None
    in_single: bool
    in_parts: bool
    in_chains: bool

    @staticmethod
    def of(view: View, instruction: Instruction, apart: bool = True) -> Reduction:
        """apart: whether chains may be used."""
        source, simple = instruction.operands[0].shape, simple_op(instruction.called()[0])
        length, op = math.prod(source.dims[d] for d in instruction.dimensions), simple.opcode if simple else None
        # Narrow floats are rounded once if no step rounds, or for many elements.
        single = op in (Op.MAXIMUM, Op.MINIMUM) or (op in SINGLE and length > SHORT)
        found = Reduction(instruction, length, simple, source.dtype in NARROW and single, False, False)
        wide = found.in_single or source.dtype in (DType.F32, DType.F64)
        # Products gain no accuracy by partial results.
        parts = op is Op.ADD and length > TERMS and not view.strict and (wide or source.dtype.is_complex)
        chains = apart and found.is_float_extremum and is_long(view, source.dtype.bits, length)
        return replace(found, in_parts=parts, in_chains=chains)

    @property
    def dtype(self) -> DType:
        return self.instruction.operands[0].shape.dtype

    @property
    def is_float_extremum(self) -> bool:
        wide = self.in_single or self.dtype in (DType.F32, DType.F64)
        return wide and self.simple is not None and self.simple.opcode in (Op.MAXIMUM, Op.MINIMUM)

    @property
    def is_sum(self) -> bool:
        """Whether it adds up floats as they are."""
        return self.simple is not None and self.simple.opcode is Op.ADD and self.dtype in (DType.F32, DType.F64)


class Reducer:
    """Combines the values of a reduction. apart: as of Reduction.of."""

    def __init__(self, e: Elemental, instruction: Instruction, apart: bool = True):
        self.e, self.code, self.instruction = e, e.code, instruction
        self.region: Computation = instruction.called()[0]
        self.count = len(instruction.operands) // 2
        self.operands, self.inits = instruction.operands[: self.count], instruction.operands[self.count :]
        self.dtypes = [o.shape.dtype for o in self.operands]
        self.reduction = reduction = Reduction.of(e.view, instruction, apart)
        self.simple, self.length, self.in_single = reduction.simple, reduction.length, reduction.in_single
        self.in_parts, self.in_chains = reduction.in_parts, reduction.in_chains

    @property
    def op(self) -> Op:
        """The operation that is the whole region."""
        assert self.simple is not None
        return self.simple.opcode

    def unroll(self, size: int) -> Unroll:
        """Of a loop over a number of elements: LLVM interleaves the chains of a maximum only where it may unroll."""
        if not self.in_chains or size < FEWEST_VECTORS:
            return Unroll.SHORT
        return Unroll.FREELY if size > UNROLLABLE else Unroll.VECTORS

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
        return combine_chains(self.code, self.op, [*chains], value)

    def run(self, first: ir.Value, count: int, ahead: bool = False) -> ir.Value:
        """The extremum of `count` elements in memory, by the function that kernels share. ahead: what follows is
        fetched.
        """
        return Run(self.op, self.dtypes[0], ahead).call(self.code, first, count)

    def join(self, first: Sequence[Register], second: Sequence[Register]) -> list[Register]:
        """Combine accumulators of a simple reduction, in this order."""
        assert self.simple is not None
        root = SINGLE[self.simple.opcode] if self.in_single else self.simple
        return [EMIT[root.opcode](self.code, root, first[0], second[0])]

    def merge(self, first: Sequence[Register], second: Sequence[Register]) -> list[Register]:
        """The accumulators of a simple reduction of the values of both."""
        if self.in_chains:
            return join_chains(self.code, self.op, [*first], [*second])
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
"""Minimum elements of a column for which its maximum has two accumulators, whose closing costs some instructions."""

FEWEST_VECTORS, UNROLLABLE = 16, 64
"""Minimum elements along a dimension for which loops over chains may be unrolled: 0.6 to 0.7 of the time for 1024. Up
to the second, LLVM would unroll them before it makes vectors, and then join scalars by hundreds of moves.
"""

LANED = 128
"""Minimum elements along memory for which a maximum is in the lanes of lines, which are combined once at the end."""

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
    code.flags = before if code.view.strict else (*before, "reassoc")
    try:
        yield
    finally:
        code.flags = before


def reduced_order(instruction: Instruction) -> list[int]:
    """The reduced dimensions from the slowest to the fastest in memory."""
    reduced = set(instruction.dimensions)
    return [d for d in reversed(instruction.operands[0].shape.minor_to_major) if d in reduced]


Values: TypeAlias = Generator[Request, Register, list[Register]]
"""A generator that yields the elements that it reads, receives their values, and returns the reduced ones."""

Emit: TypeAlias = Callable[[Reducer, list[Register], Along, Any], Values]
"""(reducer, initial values, places, what Way.given has) → the values of an element."""


def _sum_run(reducer: Reducer, inits: list[Register], along: Along, made: Made) -> Values:
    """By a function that kernels share."""
    opened = reducer.widened(inits)
    total = sum_along(reducer.e, reducer.operands[0], made, along)
    return reducer.close(reducer.join(opened, [total]))
    yield


def _in_parts(reducer: Reducer, inits: list[Register], along: Along, given: None) -> Values:
    """Partial sums."""
    opened = reducer.widened(inits)
    sums = PartialSums(reducer.code, [nothing(opened[0])], along.sizes)
    for accumulators in sums.steps(along.ahead(sums.width)):
        value = yield reducer.operands[0], along.place(sums.positions)
        sums.put(reducer.combine(accumulators, [value]))
    return reducer.close(reducer.join(opened, sums.totals()))


def _short_row(reducer: Reducer, inits: list[Register], along: Along, source: Instruction) -> Values:
    """Vectors of a row, and the sum of their lanes."""
    return reducer.join(inits, [sum_of_row(reducer.e, reducer.operands[0], source, along)])
    yield


def _extremum_run(reducer: Reducer, inits: list[Register], along: Along, source: Instruction) -> Values:
    """By a function that kernels share."""
    offset = along.place([0]).offset(reducer.operands[0].shape)
    first = address(reducer.code, reducer.e.leaves[source], source.shape.dtype, offset)
    run = reducer.run(first, along.sizes[0], bool(along.reduced.streams))
    return reducer.close(reducer.combine_chains(reducer.open(inits), run))
    yield


def _in_lanes(reducer: Reducer, inits: list[Register], along: Along, given: None) -> Values:
    """A maximum or minimum along the memory of large arrays."""
    code, (first,) = reducer.code, reducer.widened(inits)
    lanes = PartialSums(code, open_pair(code, first), along.sizes, UNBOUNDED)
    for pair in lanes.steps(along.ahead(lanes.width)):
        value = yield reducer.operands[0], along.place(lanes.positions)
        lanes.put(combine_rows(code, reducer.op, list(pair), reducer.widened([value])))
    loop = code.loop(lanes.width, carried=reducer.open(inits), unroll=Unroll.VECTORS)
    best = close_pair(code, lanes.read(loop.index))
    return reducer.close(loop.close(reducer.combine_chains(loop.carried, best)))


def _overlapping(reducer: Reducer, inits: list[Register], along: Along, piece: int) -> Values:
    """Pieces of a row, the last one over others."""
    return reducer.close((yield from reduce_overlapping(reducer, reducer.open(inits), along, piece)))


def _in_loops(reducer: Reducer, inits: list[Register], along: Along, given: None) -> Values:
    """A loop for each dimension."""
    accumulators, loops = reducer.open(inits), []
    for size in along.sizes:
        loops.append(reducer.code.loop(size, carried=accumulators, unroll=reducer.unroll(size)))
        accumulators = loops[-1].carried
    place = along.place([loop.index for loop in loops])
    values = []
    for operand in reducer.operands:
        values.append((yield operand, place))
    accumulators = reducer.combine(accumulators, values)
    for loop in reversed(loops):
        accumulators = loop.close(accumulators)
    return reducer.close(accumulators)


def _flat(reducer: Reducer, inits: list[Register], along: Along, given: None) -> Values:
    """One loop in memory order."""
    code, size, accumulators = reducer.code, reducer.operands[0].shape.size, reducer.open(inits)
    loop = code.loop(size, carried=accumulators, unroll=reducer.unroll(size))
    values = []
    for operand in reducer.operands:
        values.append((yield operand, Index.flat(code, operand.shape, loop.index)))
    return reducer.close(loop.close(reducer.combine(loop.carried, values)))


@dataclass(frozen=True, slots=True)
class Way:
    """How one element of a reduction is computed. emit: in which loops; given: what these need. shares, walks: as of
    Fit.
    """

    emit: Emit
    reduced: Reduced
    given: Any = None
    shares: bool = False
    walks: bool = False


def way_of(view: View, instruction: Instruction) -> Way:
    """How an element of a reduction is computed, wherever it is needed by itself."""
    found, operands = Reduction.of(view, instruction), instruction.operands[: len(instruction.operands) // 2]
    reduced, operand = Reduced.of(view, operands, reduced_order(instruction)), operands[0]
    if found.in_parts:
        made = None if found.in_single else run_along(view, operand, reduced)
        return Way(_in_parts, reduced, walks=True) if made is None else Way(_sum_run, reduced, made, shares=True)
    source = source_of_row(view, operand, reduced) if found.simple and found.simple.opcode is Op.ADD else None
    if source is not None:
        return Way(_short_row, reduced, source)
    if found.in_chains:
        source = source_of_run(view, operand, reduced.sizes[0]) if reduced.is_row and not found.in_single else None
        if source is not None:
            return Way(_extremum_run, reduced, source, shares=True)
        if reduced.sizes[-1] >= LANED and reduced.streams:
            return Way(_in_lanes, reduced, walks=True)
    walks = found.length >= MINIMUM_LENGTH
    piece = piece_of(view, operand, found.simple.opcode, reduced) if found.simple else None
    if piece is not None:
        return Way(_overlapping, reduced, piece, walks=walks)
    flat = len(instruction.dimensions) == operand.shape.rank and all(is_linear(o, view.leaves) for o in operands)
    return Way(_flat if flat else _in_loops, reduced, walks=walks)


def reduce(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    way, reducer = way_of(e.view, instruction), Reducer(e, instruction)
    values = yield from e.read(reducer.inits)
    if not reducer.length:
        return reducer.result(values)
    along = Along(e, reducer.operands, way.reduced, index)
    return reducer.result((yield from way.emit(reducer, values, along, way.given)))


RULES: dict[Op, ElementRule] = {Op.REDUCE: reduce}
