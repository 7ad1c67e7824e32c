"""sort: insertion sort of short runs, then bottom-up merges whose selections do not branch. The sort is stable.

Memory accesses depend on counts only, so a comparator that is no strict weak order still yields a permutation.
The passes alternate between scratch memory and the result (or more scratch, if the rows of the result are strided).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from ..hlo.ir import Instruction
from ..hlo.opcodes import Op
from ..hlo.shapes import Shape
from ..planning.allocation import POOL_ALIGNMENT
from ..planning.partition import Partition
from .builder import Code, IndexValue
from .elemental import Elemental, ElementRule, Index, Reads
from .indexing import refuse
from .memory import Pointer, address, load, store
from .ranges import Steps, loops_over
from .registers import I8, I64, Register

RUN = 16
"""Elements per run that is sorted by insertion before merging; a power of two. Insertion moves n²/4 elements, four
merges of n elements move 4·n.
"""


@dataclass(frozen=True, slots=True)
class OperandRow:
    """One operand's row in one memory: the address of its first element, and the stride in elements."""

    start: ir.Value
    stride: int
    shape: Shape

    def read(self, code: Code, position: IndexValue) -> Register:
        return load(code, Pointer(self.start), self.shape.dtype, code.multiply(position, self.stride))

    def write(self, code: Code, position: IndexValue, value: Register) -> None:
        store(code, Pointer(self.start), self.shape.dtype, code.multiply(position, self.stride), value)


OperandRows = Sequence[OperandRow]
"""One row per operand, all of one length."""


@dataclass(frozen=True, slots=True)
class Target:
    """The destination and layout of a sorted operand: the whole of each row, or the part from element `start` on."""

    pointer: Pointer
    shape: Shape
    start: int


def takes_steps(instruction: Instruction, partition: Partition) -> bool:
    """Whether `emit_sort` can compute some of the steps: some of the rows."""
    return instruction.dimensions[0] not in partition.dimensions


def emit_sort(e: Elemental, instruction: Instruction, results: Sequence[Target], steps: Steps | None = None) -> None:
    """Sort all rows, or those of the steps. results: one target per operand."""
    code, shape = e.code, results[0].shape
    dimension = instruction.dimensions[0]
    length = instruction.operands[0].shape.dims[dimension]
    cut = any(r.shape.dims[dimension] != length for r in results)
    spare = _spare(e, instruction, cut) if length > RUN or cut else []
    inside = () if steps is None else steps.dimensions
    order = [d for d in reversed(shape.minor_to_major) if d != dimension]
    with loops_over(code, steps, inside, shape.dims, order) as positions:
        targets = []
        for result in results:
            shape = result.shape
            start = address(code, result.pointer, shape.dtype, code.weighted_sum(positions, shape.strides))
            targets.append(OperandRow(start, shape.strides[dimension], shape))
        _Sorter(e, instruction, positions).sort(targets, spare, [r.start for r in results])


def _spare(e: Elemental, instruction: Instruction, cut: bool) -> list[list[OperandRow]]:
    """The rows of each operand in scratch memory: one, and a second if the rows of the result are strided.

    cut: the results are parts of rows.
    """
    code, dimension = e.code, instruction.dimensions[0]
    rows: list[tuple[Shape, list[int]]] = []
    total = 0
    for _, shape in instruction.shape.leaves():
        size = -(-shape.dims[dimension] * shape.dtype.bytes // POOL_ALIGNMENT) * POOL_ALIGNMENT
        count = 2 if cut or shape.strides[dimension] != 1 else 1
        rows.append((shape, [total + k * size for k in range(count)]))
        total += count * size
    base = e.scratch.take(code, total)

    def row(offset: int, shape: Shape) -> OperandRow:
        return OperandRow(code.b.gep(base, [I64(offset)], inbounds=True, source_etype=I8), 1, shape)

    return [[row(offset, shape) for offset in offsets] for shape, offsets in rows]


class _Sorter:
    """Sorts one row of every operand together. positions: of the row; the sorted dimension's entry is overwritten."""

    def __init__(self, e: Elemental, instruction: Instruction, positions: list[IndexValue]):
        self.e, self.code, self.instruction, self.positions = e, e.code, instruction, positions
        self.comparator = instruction.attributes["to_apply"]
        self.dimension = instruction.dimensions[0]
        self.length = instruction.operands[0].shape.dims[self.dimension]

    def sort(self, targets: OperandRows, spare: Sequence[Sequence[OperandRow]], starts: Sequence[int]) -> None:
        """Sort the row. starts: for each target, the first element of the sorted row that it gets."""
        code, passes = self.code, (-(-self.length // RUN) - 1).bit_length()
        last = [s[1] if len(s) > 1 else t for s, t in zip(spare, targets, strict=True)] if spare else targets
        if passes:
            self._sort_runs(last, [s[0] for s in spare], passes)
        else:
            self._insert(last, 0, self.length)
        for row, target, start in zip(last, targets, starts, strict=True):
            if row is not target:
                copy = code.loop(target.shape.dims[self.dimension])
                target.write(code, copy.index, row.read(code, code.add(copy.index, start)))
                copy.close()

    def _sort_runs(self, last: OperandRows, other: OperandRows, passes: int) -> None:
        """Sort runs, then merge them back and forth; the last pass writes to `last`."""
        first, second = (last, other) if passes % 2 == 0 else (other, last)
        loop = self.code.loop(self.length, step=RUN)
        start = loop.index
        end = self.code.minimum(self.code.add(start, RUN), self.length)
        self._insert(first, start, end)
        loop.close()
        self._merge_all(first, second, passes)

    def less(self, left: Sequence[Register], right: Sequence[Register]) -> ir.Value:
        pairs = [value for pair in zip(left, right, strict=True) for value in pair]
        result = self.e.apply(self.comparator, pairs)
        assert isinstance(result, ir.Value)
        return result

    def _source(self, position: IndexValue) -> list[Register]:
        """The elements of all operands at a position."""
        self.positions[self.dimension] = position
        return [self.e.value(o, Index.at(self.code, o.shape, self.positions)) for o in self.instruction.operands]

    def _insert(self, rows: OperandRows, start: IndexValue, end: IndexValue) -> None:
        """Insertion sort of the operands' elements [start, end) into the same positions of `rows`."""
        code = self.code
        outer = code.loop(code.subtract(end, start))
        position = code.add(outer.index, start)
        values = self._source(position)
        going = code.begin_while([code.value(position), code.truth(True)])
        place, moves = going.carried
        assert isinstance(place, ir.Value) and isinstance(moves, ir.Value)
        going.test(code.b.and_(moves, code.b.icmp_signed(">", place, code.value(start))))
        before = code.value(code.subtract(place, 1))
        neighbours = [row.read(code, before) for row in rows]
        moved = self.less(values, neighbours)
        for row, neighbour, value in zip(rows, neighbours, values, strict=True):
            row.write(code, place, choose(code, moved, neighbour, value))
        place, _ = going.close([code.b.select(moved, before, place), moved])
        assert isinstance(place, ir.Value)
        for row, value in zip(rows, values, strict=True):
            row.write(code, place, value)
        outer.close()

    def _merge_all(self, first: OperandRows, second: OperandRows, passes: int) -> None:
        """Merge pass by pass from one set of rows to the other. The length of runs doubles in each pass."""
        code = self.code
        starts = [row.start for row in (*first, *second)]
        loop = code.loop(passes, carried=starts)
        count = len(first)
        carried = [s for s in loop.carried if isinstance(s, ir.Value)]
        source = [OperandRow(s, row.stride, row.shape) for s, row in zip(carried[:count], first, strict=True)]
        target = [OperandRow(s, row.stride, row.shape) for s, row in zip(carried[count:], second, strict=True)]
        b, shift = code.b, code.value(code.add(loop.index, RUN.bit_length()))
        width, both = b.shl(I64(RUN), code.value(loop.index)), b.shl(I64(1), shift)
        pair = code.loop(b.lshr(b.add(I64(self.length - 1), both, flags=("nsw",)), shift))
        b = code.b
        low = b.shl(code.value(pair.index), shift)
        middle = self._bounded(b.add(low, width, flags=("nsw",)))
        high = self._bounded(b.add(middle, width, flags=("nsw",)))
        self._merge(source, target, low, middle, high)
        pair.close()
        loop.close([*carried[count:], *carried[:count]])

    def _bounded(self, position: ir.Value) -> ir.Value:
        b = self.code.b
        return b.select(b.icmp_signed("<", position, I64(self.length)), position, I64(self.length))

    def _merge(self, source: OperandRows, target: OperandRows, low: ir.Value, middle: ir.Value, high: ir.Value) -> None:
        """Merge the runs [low, middle) and [middle, high). The second may be empty.

        If a run is used up, the element at middle - 1 is read in its place but not taken.
        """
        code = self.code
        step = code.begin_while([low, middle, low])
        left, right, place = (v for v in step.carried if isinstance(v, ir.Value))
        step.test(code.b.icmp_signed("<", place, high))
        b = code.b
        left_there = b.icmp_signed("<", left, middle)
        right_there = b.icmp_signed("<", right, high)
        last = b.sub(middle, I64(1), flags=("nsw",))
        at_left, at_right = b.select(left_there, left, last), b.select(right_there, right, last)
        for position in (at_left, at_right):
            code.define(position, code.scope)
        lefts, rights = ([row.read(code, at) for row in source] for at in (at_left, at_right))
        less = self.less(rights, lefts)
        take = b.and_(right_there, b.or_(b.not_(left_there), less))
        for row, kept, taken_ in zip(target, lefts, rights, strict=True):
            row.write(code, place, choose(code, take, taken_, kept))
        taken = b.zext(take, I64)
        right = b.add(right, taken, flags=("nsw",))
        left = b.add(left, b.sub(I64(1), taken, flags=("nsw",)), flags=("nsw",))
        step.close([left, right, b.add(place, I64(1), flags=("nsw",))])


def choose(code: Code, condition: ir.Value, yes: Register, no: Register) -> Register:
    """A select on each part of a value."""
    if isinstance(yes, tuple):
        assert isinstance(no, tuple)
        return tuple(choose(code, condition, y, n) for y, n in zip(yes, no, strict=True))
    return code.b.select(condition, yes, no)


def sort(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    refuse(instruction)
    yield


RULES: dict[Op, ElementRule] = {Op.SORT: sort}
