"""Pads that make short rows of an array in memory longer, as pixels that get a fourth channel: whole vectors of the
result, each of which is one load, one choice of lanes and one store. LLVM would move parts of rows element by element.
"""

from __future__ import annotations

import math

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Unroll
from ..core.registers import I32, shuffled
from ..core.stack import alloca
from ..core.view import View
from ..loops.access import fastest_dimension, live_dimensions
from ..loops.elemental import Elemental
from ..loops.form import Fit, Task, at_least, at_most, form, needs
from ..loops.leaf import Leaf
from ..loops.memory import Pointer, store
from ..loops.ranges import Steps, bounds

MAXIMUM_LENGTH = 16
"""Elements of a row of the result: a loop has code for at most this number of vectors."""

MINIMUM_ELEMENTS = 1 << 12
"""Minimum elements of a result for which the loop pays."""

UNIT = 8
"""Bytes of a lane, at most. Longer elements, which are complex, have several."""

NARROW = 2
"""Bytes of a lane, at most, that a processor may move within a part of a vector only."""


@dataclass(frozen=True, slots=True)
class PaddedRows:
    """rows: their number; before, low, after: lanes of a row of the operand, of what is put before them, of a row of
    the result. each: lanes of an element. lanes: of a vector.
    """

    operand: Instruction
    filler: Instruction
    rows: int
    before: int
    low: int
    after: int
    each: int
    lanes: int

    @staticmethod
    def of(view: View, leaf: Leaf) -> PaddedRows:
        """Those of a result. Raises Unfit if it is none, or rows are long or few."""
        pad, shape = leaf.instruction, leaf.shape
        needs(not leaf.path and not leaf.in_place, "the result is written in place")
        at_least(shape.size, MINIMUM_ELEMENTS, "elements")
        operand, dtype, fast = pad.operands[0], shape.dtype, fastest_dimension(shape)
        needs(operand in view.leaves, "the operand is computed")
        needs(dtype is not DType.PRED and dtype.bits >= 8, f"elements of {dtype.value}")
        assert fast is not None
        padding, length = pad.attributes["padding"], shape.dims[fast]
        here, size = padding[fast], operand.shape.dims[fast]
        at_most(length, MAXIMUM_LENGTH, "elements of a row")
        doubles = _is_power(size) and _is_power(length) and not view.processor.masks and not dtype.is_complex
        needs(not doubles, f"{size} elements become {length}: LLVM makes vectors of powers of two without masks, too")
        beside = any((p.low, p.high, p.interior) != (0, 0, 0) for d, p in enumerate(padding) if d != fast)
        longer = min(here.low, here.high) >= 0 and here.interior == 0 and size > 0
        needs(longer and not beside, "more than the ends of rows is padded")
        needs(operand.shape.minor_to_major == shape.minor_to_major, "rows lie in another order")
        each, rows = max(1, dtype.bytes // UNIT), shape.size // length
        before, low, after = (n * each for n in (size, here.low, length))
        unit = min(dtype.bytes, UNIT)
        vector = max(view.vector_bits, 128) // 8
        lanes = (min(vector, view.processor.narrow_shuffle_bytes) if unit <= NARROW else vector) // unit
        return PaddedRows(operand, pad.operands[1], rows, before, low, after, each, lanes)

    def emit(self, e: Elemental, leaf: Leaf, steps: Steps | None) -> None:
        code, dtype = e.code, leaf.shape.dtype
        unit = min(dtype.bytes, UNIT)
        element = ir.IntType(8 * unit)
        lanes = self.lanes
        fillers = self._fillers(e, dtype, element)
        source, target = e.leaves[self.operand].value, leaf.pointer(e).value
        begin, end = bounds(code, steps, self.rows)
        together = lanes // math.gcd(self.after, lanes)
        choices = [self._choice(v * lanes, lanes) for v in range(together * self.after // lanes)]
        needed = 1 + max(n for _, mask in choices for n in mask if n < lanes)
        loaded = next(n for n in (lanes // 4, lanes // 2, lanes) if n >= needed)  # fewer cross fewer lines
        reach = max(first for first, _ in choices) + loaded  # that a group of rows reads of the operand
        last = (self.rows * self.before - reach) // self.before
        stop = code.minimum(code.subtract(end, together - 1), last + 1)
        loop = code.range(begin, stop, together, carried=[code.value(begin)], unroll=Unroll.DONE)
        b, vector = code.b, ir.VectorType(element, loaded)
        filled = shuffled(b, fillers, [n % self.each for n in range(lanes)])
        read, write = (code.multiply(loop.index, n) for n in (self.before, self.after))
        for v, (first, mask) in enumerate(choices):
            here = b.gep(source, [code.value(code.add(read, first))], inbounds=True, source_etype=element)
            there = b.gep(target, [code.value(code.add(write, v * lanes))], inbounds=True, source_etype=element)
            row = b.load(here, typ=vector, align=dtype.component.bytes)
            row = row if loaded == lanes else shuffled(b, row, [n % loaded for n in range(lanes)])
            chosen = shuffled(b, row, mask, filled)
            b.store(chosen, there, align=dtype.component.bytes)
        (rest,) = loop.close([code.value(code.add(loop.index, together))])
        code.define(rest, code.scope, again=True)

        with code.range(rest, end, unroll=Unroll.SCALAR) as i:
            read, write = (code.multiply(i, n) for n in (self.before, self.after))
            for n in range(self.after):
                b, k = code.b, n - self.low
                if 0 <= k < self.before:
                    here = b.gep(source, [code.value(code.add(read, k))], inbounds=True, source_etype=element)
                    value = b.load(here, typ=element, align=dtype.component.bytes)
                else:
                    value = b.extract_element(fillers, I32(n % self.each))
                there = b.gep(target, [code.value(code.add(write, n))], inbounds=True, source_etype=element)
                b.store(value, there, align=dtype.component.bytes)

    def _fillers(self, e: Elemental, dtype: DType, element: ir.Type) -> ir.Value:
        """The lanes of the padding value."""
        space = Pointer(alloca(e.code, element, self.each))
        store(e.code, space, dtype, 0, e.number(self.filler))
        return e.code.b.load(space.value, typ=ir.VectorType(element, self.each), align=dtype.bytes)

    def _choice(self, start: int, lanes: int) -> tuple[int, list[int]]:
        """(The first lane that is loaded, the lane of it, or behind it of the padding, for each) of the vector that
        begins at a lane of a group of rows. Rows become longer: what a vector needs of them is not more than a vector.
        """
        places = [divmod(n, self.after) for n in range(start, start + lanes)]
        inside = [0 <= k - self.low < self.before for _, k in places]
        taken = [row * self.before + k - self.low for row, k in places]
        first = min((n for n, fits in zip(taken, inside, strict=True) if fits), default=0)
        return first, [n - first if fits else lanes + j for j, (n, fits) in enumerate(zip(taken, inside, strict=True))]


def _is_power(count: int) -> bool:
    """Whether a count is a power of two."""
    return count & (count - 1) == 0


def in_whole_rows(task: Task) -> bool:
    """Whether steps are of whole rows that follow each other: they number the slowest dimensions."""
    shape = task.results.shape
    live = live_dimensions(shape)[::-1]
    numbered = [d for d in task.numbered if shape.dims[d] != 1]
    return task.partition is None or (numbered == live[: len(numbered)] and len(numbered) < len(live))


def must_be_only(task: Task, op: Op) -> None:
    """Raises Unfit if a result is not written piece by piece. op: the root's."""
    results = task.results
    only = results.alone and results.root.opcode is op and results.root not in task.view.leaves
    needs(only, f"no {op.value} is the only result")
    needs(not task.view.by_element, "for a device")


@form(
    "padded/rows",
    lambda e, results, given, steps: given.emit(e, results.first, steps),
    MAXIMUM_LENGTH="elements of a row of the result",
    MINIMUM_ELEMENTS="elements of the result",
)
def rows(task: Task) -> Fit:
    """Short rows that become longer, as pixels that get a channel: whole vectors, of chosen lanes."""
    must_be_only(task, Op.PAD)
    return Fit(PaddedRows.of(task.view, task.results.first), in_whole_rows(task))
