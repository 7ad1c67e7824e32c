"""Pools whose windows overlap or are strides apart along memory: first over the other dimensions, then along memory.

Elements of the input are combined over all dimensions but the fastest one by whole vectors: once each, where windows
overlap. They come to the stack by phases: array p has the columns p, p + stride, …, so that neighbouring results find
the elements of one window position beside each other, too.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...hlo.analysis.windows import single_op
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..core.builder import IndexValue, over_columns
from ..core.registers import Register, flatten, unflatten
from ..core.stack import StackArray
from ..loops.elemental import Elemental, Index
from ..loops.form import at_most, between, needs
from ..loops.memory import Pointer, store
from .reduce_window import axes_of, combine, open_rows
from .windows import Axis

MAXIMUM_STRIDE = 4
"""Largest stride: LLVM joins loads that are so far apart into whole vectors."""

MAXIMUM_WINDOW = 16
"""Most window positions along memory, which are unrolled."""

_REPEATABLE = (Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR)
"""What combines a value with itself without a change."""


def must_have_phases(instruction: Instruction) -> None:
    """Raises Unfit if `PhasedPool` does not take a pool of one operand."""
    axis = axes_of(instruction)[instruction.shape.minor_to_major[0]]
    op = single_op(instruction)
    needs((axis.holes, axis.dilation) == (1, 1), "windows or the input have holes along memory")
    at_most(axis.stride, min(axis.window, MAXIMUM_STRIDE), "elements between windows along memory")
    between(axis.window, 2, MAXIMUM_WINDOW, "elements of a window along memory")
    needs(op in (*_REPEATABLE, Op.ADD), f"windows are combined by {op.value if op else 'several operations'}")


class PhasedPool:
    """Blocks of at most `width` results beside each other. init: the initial value."""

    def __init__(self, e: Elemental, instruction: Instruction, init: Register, width: int):
        self.e, self.code, self.instruction, self.init = e, e.code, instruction, init
        self.axes, self.column = axes_of(instruction), instruction.shape.minor_to_major[0]
        self.axis = self.axes[self.column]
        more = (self.axis.window - 1) // self.axis.stride
        self.phases = [StackArray(self.code, init, width + more) for _ in range(self.axis.stride)]
        self.more = more
        self.joins = not all(a.meets_one for d, a in enumerate(self.axes) if d != self.column)
        self.start = init if single_op(instruction) in _REPEATABLE else _nothing(init)

    def block(self, positions: Sequence[IndexValue], start: IndexValue, width: int, pointer: Pointer) -> None:
        """Compute and store the results from `start` on along the fastest dimension."""
        code, instruction, count = self.code, self.instruction, width + self.more
        self._fill(start, count)
        loops, places = open_rows(code, self.axes, self.column, positions)
        self._row(places, start, count)
        for loop in reversed(loops):
            loop.close()
        with code.loop(width, unroll=over_columns(width)) as each:
            value, shape = self.init, instruction.shape
            for tap in range(self.axis.window):
                turn, phase = divmod(tap, self.axis.stride)
                met = self.phases[phase].read(code.add(each, turn))
                value = combine(self.e, instruction, [value], [met])[0]
            where = [*positions]
            where[self.column] = code.add(start, each)
            store(code, pointer, shape.dtype, Index.at(code, shape, where).offset(shape), value)

    def _fill(self, start: IndexValue, count: int) -> None:
        """Write what is combined with a row: everywhere, or where a single row leaves gaps."""
        code, end = self.code, self.code.add(start, count)
        if self.joins:
            with code.loop(count, unroll=over_columns(count)) as fill:
                for phase in self.phases:
                    phase.write(fill, self.start)
            return
        for p, phase in enumerate(self.phases):
            first, last = _turns(self.axis, p)
            for low, high in ((start, code.minimum(end, first)), (code.maximum(start, last), end)):
                with code.range(low, high) as each:
                    phase.write(code.subtract(each, start), self.start)

    def _row(self, places: list[IndexValue], start: IndexValue, count: int) -> None:
        """Combine a row of the input with the phases: turns [start, start + count) of `stride` columns each."""
        code, all_phases = self.code, range(self.axis.stride)
        ends = [_turns(self.axis, p) for p in all_phases]
        first, last = max(low for low, _ in ends), min(high for _, high in ends)
        end = code.add(start, count)
        if first < last:
            self._turns(places, start, (code.maximum(start, first), code.minimum(end, last)), all_phases)
        for p in all_phases:  # turns at the row's ends of which other phases lie in the padding
            for low, high in ((ends[p][0], min(first, ends[p][1])), (max(first, last, ends[p][0]), ends[p][1])):
                if low < high:
                    self._turns(places, start, (code.maximum(start, low), code.minimum(end, high)), (p,))

    def _turns(
        self, places: list[IndexValue], start: IndexValue, within: tuple[IndexValue, IndexValue], phases: Sequence[int]
    ) -> None:
        code, source = self.code, self.instruction.operands[0]
        with code.range(*within) as each:
            slot = code.subtract(each, start)
            first = code.add(code.multiply(each, self.axis.stride), -self.axis.low)
            for p in phases:
                places[self.column] = code.add(first, p)
                value = self.e.value(source, Index.at(code, source.shape, places))
                if self.joins:
                    value = combine(self.e, self.instruction, [self.phases[p].read(slot)], [value])[0]
                self.phases[p].write(slot, value)


def _turns(axis: Axis, phase: int) -> tuple[int, int]:
    """[start, end) of the turns whose column of a phase is in the input."""
    return -(-(axis.low - phase) // axis.stride), -(-(axis.low + axis.size - phase) // axis.stride)


def _nothing(init: Register) -> Register:
    """What adds nothing: -0.0, or the integer 0."""
    zeros = [ir.Constant(r.type, 0 if isinstance(r.type, ir.IntType) else -0.0) for r in flatten(init)]
    return unflatten(init, zeros)
