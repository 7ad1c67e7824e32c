"""reduce-window: one element as loops over the elements in its window; cumulative ones as one running combination."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.analysis.windows import Running, result_dims, running, single_op, window_of
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ...planning.partition import Partition
from ..core.builder import Code, IndexValue, Loop, Once, Range
from ..core.registers import DOUBLE, FLOAT, Register
from ..core.stack import StackArray
from ..loops.access import live_dimensions
from ..loops.elemental import Elemental, ElementRule, Index, Reads
from ..loops.form import Results
from ..loops.memory import Pointer, store
from ..loops.ranges import Steps, column_blocks, columns_fit, loops_over
from .reduce import reassociation
from .windows import Axis


def axes_of(instruction: Instruction) -> list[Axis]:
    sizes = zip(window_of(instruction), instruction.operands[0].shape.dims, result_dims(instruction), strict=True)
    return [Axis(n, w.size, count, w.stride, w.pad_low, w.lhs_dilate, w.rhs_dilate, w.reverse) for w, n, count in sizes]


def reduce_window(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    code, axes = e.code, axes_of(instruction)
    many = len(instruction.operands) // 2
    values = yield from e.read(instruction.operands[many:])
    if all(axis.window and axis.size for axis in axes):
        loops, places = [], []
        for axis, position in zip(axes, index.multi, strict=True):
            start, end, step = axis.taps(code, position)
            loops.append(code.range(start, end, step, carried=values))
            values, tap = loops[-1].carried, loops[-1].index
            if axis.reverse:
                tap = code.subtract(code.add(start, _last(code, start, end, step)), tap)
            places.append(axis.place(code, position, tap))
        met = []
        for operand in instruction.operands[:many]:
            met.append((yield operand, Index.at(code, operand.shape, places)))
        values = combine(e, instruction, values, met)
        for loop in reversed(loops):
            values = loop.close(values)
    return tuple(values) if instruction.shape.is_tuple else values[0]


def open_rows(
    code: Code, axes: Sequence[Axis], column: int, positions: Sequence[IndexValue]
) -> tuple[list[Loop | Once | Range], list[IndexValue]]:
    """Open loops over the rows of the input under a block of windows along `column`: the loops, and the positions."""
    loops: list[Loop | Once | Range] = []
    places: list[IndexValue] = [0] * len(axes)
    for d, axis in enumerate(axes):
        if d != column:
            loops.append(code.range(*axis.taps(code, positions[d])))
            places[d] = axis.place(code, positions[d], loops[-1].index)
    return loops, places


RULES: dict[Op, ElementRule] = {Op.REDUCE_WINDOW: reduce_window}


def _last(code: Code, start: IndexValue, end: IndexValue, step: int) -> IndexValue:
    """The last of start, start + step, … < end."""
    turns = code.divide(code.subtract(code.subtract(end, 1), start), step)
    return code.add(start, code.multiply(turns, step))


def combine(
    e: Elemental, instruction: Instruction, accumulators: Sequence[Register], values: Sequence[Register]
) -> list[Register]:
    """Combine one more element of each operand. Sums and products may be reassociated, unless in strict mode."""
    if single_op(instruction) is None:
        result = e.apply(instruction.called()[0], [*accumulators, *values])
    else:
        with reassociation(e.code):
            result = e.apply(instruction.called()[0], [*accumulators, *values])
    return list(result) if isinstance(result, tuple) and instruction.shape.is_tuple else [result]


ROWS = 4
"""Runs along memory that advance together: each waits for its last sum, and a processor has several adders."""

BLOCK = 64
"""Columns whose running values are on the stack together. LLVM unrolls loops over half as many, and then does
not vectorise them.
"""


@dataclass(frozen=True, slots=True)
class Runs:
    """dimension: of the runs. column: that whose elements run side by side; None if the runs are along memory. outer:
    the others, the slowest first. together: whether several runs along memory advance together.
    """

    dimension: int
    column: int | None
    outer: tuple[int, ...]
    together: bool

    @staticmethod
    def of(run: Running, shape: Shape, partition: Partition | None) -> Runs:
        order = live_dimensions(shape)[::-1]
        column = order[-1] if order and order[-1] != run.dimension else None
        outer = tuple(d for d in order if d not in (run.dimension, column))
        if column is not None or not outer:
            return Runs(run.dimension, column, outer, False)
        inside, last = () if partition is None else partition.dimensions, outer[-1]
        return Runs(run.dimension, None, outer, columns_fit(partition, inside, last, shape.dims[last], ROWS))


def emit_running(e: Elemental, results: Results, given: Runs, steps: Steps | None = None) -> None:
    """Emit a cumulative reduction row by row, the fastest dimension innermost, with one running value per column."""
    arrays = [(leaf.pointer(e), leaf.shape) for leaf in results.leaves]
    _Runner(e, results.root, arrays, given).emit(steps)


class _Runner:
    def __init__(
        self,
        e: Elemental,
        instruction: Instruction,
        results: Sequence[tuple[Pointer, Shape]],
        given: Runs,
    ):
        self.e, self.code, self.instruction, self.results, self.given = e, e.code, instruction, results, given
        self.column = given.column
        run = running(instruction)
        assert run is not None
        self.run, self.shape = run, results[0][1]
        self.size = instruction.operands[0].shape.dims[run.dimension]
        self.count = self.shape.dims[run.dimension]
        self.positions: list[IndexValue] = [0] * self.shape.rank
        self.wide = single_op(instruction) is Op.ADD and self.shape.dtype is DType.F32 and not self.code.view.strict

    def emit(self, steps: Steps | None) -> None:
        code, many, dims, outer = self.code, len(self.results), self.shape.dims, self.given.outer
        inits = [self.e.number(init) for init in self.instruction.operands[many:]]
        inits = [self.widened(v) for v in inits]
        if self.column is None:
            if self.given.together:
                for positions, start, width in column_blocks(code, steps, dims, outer[:-1], outer[-1], ROWS):
                    self.positions = positions
                    self.along(inits, [(outer[-1], code.add(start, k)) for k in range(width)])
                return
            with loops_over(code, steps, dims, outer) as positions:
                self.positions = positions
                self.along(inits, [(self.run.dimension, 0)])
            return
        for positions, start, width in column_blocks(code, steps, dims, outer, self.column, BLOCK):
            self.positions = positions
            self.block(inits, start, width)

    def widened(self, value: Register) -> Register:
        """Sums of f32 use f64, because the rounding errors of a long chain would be visible."""
        return self.code.b.fpext(value, DOUBLE) if self.wide else value

    def narrowed(self, value: Register) -> Register:
        return self.code.b.fptrunc(value, FLOAT) if self.wide else value

    def along(self, inits: Sequence[Register], rows: Sequence[tuple[int, IndexValue]]) -> None:
        """Runs along memory, side by side. rows: the dimension and the position of each. If backward, elements before
        the first result come first; they may outnumber the results.
        """
        skipped = self.size - self.count if self.run.backward else 0
        values = [*inits] * len(rows)
        for start, count in ((0, skipped), (skipped, self.count)):
            if not count:
                continue
            loop = self.code.loop(count, carried=values)
            turn, values = self.code.add(loop.index, start), []
            for n, (dimension, place) in enumerate(rows):
                self.positions[dimension] = place
                mine = self.advance(loop.carried[n * len(inits) : (n + 1) * len(inits)], turn)
                if start == skipped:
                    self.write(mine, turn)
                values += mine
            values = loop.close(values)

    def block(self, inits: Sequence[Register], start: IndexValue, width: int) -> None:
        """The same for `width` columns from `start` on."""
        code = self.code
        stacks = [StackArray(code, init, width) for init in inits]
        for stack, init in zip(stacks, inits, strict=True):
            stack.fill(width, init)
        skipped = self.size - self.count if self.run.backward else 0
        for first, last in ((0, skipped), (skipped, skipped + self.count)):
            if first == last:
                continue
            with code.loop(last - first, start=first) as row, code.loop(width) as column:
                self.positions[self.column or 0] = code.add(start, column)
                values = self.advance([stack.read(column) for stack in stacks], row)
                if first == skipped:
                    self.write(values, row)
                for stack, value in zip(stacks, values, strict=True):
                    stack.write(column, value)

    def place(self, turn: IndexValue) -> IndexValue:
        """The position along the run at an iteration."""
        return self.code.subtract(self.size - 1, turn) if self.run.backward else turn

    def advance(self, values: Sequence[Register], turn: IndexValue) -> list[Register]:
        code, many = self.code, len(self.results)
        self.positions[self.run.dimension] = self.place(turn)
        operands = self.instruction.operands[:many]
        met = [self.e.value(o, Index.at(code, o.shape, self.positions)) for o in operands]
        if self.wide:
            return [code.b.fadd(values[0], code.b.fpext(met[0], DOUBLE))]
        return combine(self.e, self.instruction, values, met)

    def write(self, values: Sequence[Register], turn: IndexValue) -> None:
        self.positions[self.run.dimension] = self.place(turn)
        for value, (pointer, shape) in zip(values, self.results, strict=True):
            offset = Index.at(self.code, shape, self.positions).offset(shape)
            store(self.code, pointer, shape.dtype, offset, self.narrowed(value))
