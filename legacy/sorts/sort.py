"""sort: insertion sort of short runs, then bottom-up merges whose selections do not branch. The sort is stable.

Memory accesses depend on counts only, so a comparator that is no strict weak order still yields a permutation.
The passes alternate between scratch memory and the result (or more scratch, if the rows of the result are strided).
Long rows whose comparator compares one key are sorted by its digits; of few first elements the rest is not sorted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence

from llvmlite import ir

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ...planning.allocation import POOL_ALIGNMENT
from ..core.builder import Code, IndexValue, Unroll
from ..core.helper import call, declared
from ..core.registers import BOOL, I8, I64, POINTER, Register, chosen
from ..core.stack import Scratch
from ..loops.elemental import Elemental, ElementRule, Index, Reads
from ..loops.form import Results
from ..loops.memory import address
from ..loops.ranges import Steps, loops_over
from ..movement.indexing import refuse
from . import sort_radix, sort_select
from .sort_order import KeyOrder, flushing_order, structure
from .sort_rows import OperandRow, OperandRows, Target, at_starts

MAXIMUM_RUN_ELEMENTS = 16
"""Elements per run that is sorted by insertion before merging; a power of two. Insertion moves n²/4 elements, four
merges of n elements move 4·n.
"""

ALONE = 512
"""Least elements of a row that an item of a device sorts by digits. It adds up counts one by one, and selects nothing:
that is done in vectors.
"""


def emit_sort(
    e: Elemental, instruction: Instruction, results: Sequence[Target], way: Way, steps: Steps | None = None
) -> None:
    """Sort all rows, or those of the steps. results: one target per operand."""
    code, shape = e.code, results[0].shape
    dimension, memory = instruction.dimensions[0], _memory(e, instruction, way)
    order = [d for d in reversed(shape.minor_to_major) if d != dimension]
    with loops_over(code, steps, shape.dims, order) as positions:
        targets = []
        for result in results:
            shape = result.shape
            start = address(code, result.pointer, shape.dtype, code.weighted_sum(positions, shape.strides))
            targets.append(OperandRow(start, shape.strides[dimension], shape))
        _Sorter(e, instruction, positions, memory).sort(targets, [r.start for r in results])


@dataclass(frozen=True, slots=True)
class Cut:
    """Which elements of sorted rows of `length` are wanted: the first ones. is_part: not all."""

    length: int
    wanted: int
    is_part: bool

    @staticmethod
    def of(results: Results) -> Cut:
        (dimension,), leaves = results.root.dimensions, results.leaves
        length = results.root.operands[0].shape.dims[dimension]
        sizes = [leaf.shape.dims[dimension] for leaf in leaves]
        wanted = max(leaf.start + size for leaf, size in zip(leaves, sizes, strict=True))
        return Cut(length, wanted, any(size != length for size in sizes))


@dataclass(frozen=True, slots=True)
class Way:
    """How rows are sorted. spare: whether that takes scratch memory. is_part: whether the results are parts of rows.
    order: the known order of keys. digits: whether the sort is by them. selected: how many first elements are selected
    before they are sorted, or 0. keys: the operand in whose spare rows their keys lie. is_shared: whether a function
    that kernels share sorts these.
    """

    spare: bool
    is_part: bool = False
    order: KeyOrder | None = None
    digits: bool = False
    selected: int = 0
    keys: int = 0
    is_shared: bool = False


def scratch_bytes(instruction: Instruction, cut: Cut) -> int:
    """Bytes for rows of all operands."""
    return _layout(instruction, cut.is_part)[1]


@dataclass(frozen=True, slots=True)
class _Memory:
    """A way of sorting, and its scratch memory.

    spare: rows of each operand: one, and a second if the rows of the result are strided or parts. counts: for a sort by
    digits.
    """

    way: Way
    spare: Sequence[Sequence[OperandRow]] = ()
    counts: ir.Value | None = None


def _memory(e: Elemental, instruction: Instruction, way: Way) -> _Memory:
    if not way.spare:
        return _Memory(way)
    rows, total = _layout(instruction, way.is_part)
    more = sort_radix.count_bytes(way.order) if way.digits and way.order is not None else 0
    base = e.scratch.take(e.code, total + more)
    return _Memory(way, _spare(e, rows, base), _at(e.code, base, total) if more else None)


def _layout(instruction: Instruction, cut: bool) -> tuple[list[tuple[Shape, list[int]]], int]:
    """(The offsets of each operand's rows in scratch memory, bytes of all). cut: the results are parts of rows."""
    dimension = instruction.dimensions[0]
    rows: list[tuple[Shape, list[int]]] = []
    total = 0
    for _, shape in instruction.shape.leaves():
        size = -(-shape.dims[dimension] * shape.dtype.bytes // POOL_ALIGNMENT) * POOL_ALIGNMENT
        count = 2 if cut or shape.strides[dimension] != 1 else 1
        rows.append((shape, [total + k * size for k in range(count)]))
        total += count * size
    return rows, total


def _spare(e: Elemental, rows: Sequence[tuple[Shape, list[int]]], base: ir.Value) -> list[list[OperandRow]]:
    return [[OperandRow(_at(e.code, base, offset), 1, shape) for offset in offsets] for shape, offsets in rows]


def _at(code: Code, base: ir.Value, offset: int) -> ir.Value:
    return code.b.gep(base, [I64(offset)], inbounds=True, source_etype=I8)


class _Sorter:
    """Sorts one row of every operand together. positions: of the row; the sorted dimension's entry is overwritten."""

    def __init__(self, e: Elemental, instruction: Instruction, positions: list[IndexValue], memory: _Memory):
        self.e, self.code, self.instruction, self.positions = e, e.code, instruction, positions
        self.way, self.memory = memory.way, memory
        self.comparator = instruction.attributes["to_apply"]
        self.flushing = None if self.code.view.by_element else flushing_order(self.comparator)
        self.dimension = instruction.dimensions[0]
        self.length = instruction.operands[0].shape.dims[self.dimension]

    def sort(self, targets: OperandRows, starts: Sequence[int]) -> None:
        """Sort the row. starts: for each target, the first element of the sorted row that it gets."""
        way, spare = self.way, self.memory.spare
        passes = (-(-self.length // MAXIMUM_RUN_ELEMENTS) - 1).bit_length()
        last = [s[1] if len(s) > 1 else t for s, t in zip(spare, targets, strict=True)] if spare else targets
        if way.selected:
            last = self._select(last, [s[0] for s in spare])
        elif way.digits:
            last = self._sort_digits(last, [s[0] for s in spare], targets)
        elif passes:
            self._sort_runs(last, [s[0] for s in spare], passes)
        else:
            self._insert(last, 0, self.length, self._source)
        for row, target, start in zip(last, targets, starts, strict=True):
            if row is not target:
                self._copy(row, target, start)

    def _copy(self, row: OperandRow, target: OperandRow, start: int = 0) -> None:
        code = self.code
        with code.loop(target.shape.dims[self.dimension], unroll=Unroll.SHORT) as copy:
            target.write(code, copy, row.read(code, code.add(copy, start)))

    def _select(self, rows: OperandRows, others: OperandRows) -> OperandRows:
        """Collect what may be wanted in `rows`, and sort that; returns where it is."""
        code, way = self.code, self.way
        assert way.order is not None
        memory = others[way.keys].start, rows[way.keys].start
        count = sort_select.Selection(self.e, way.order, self.length, way.selected, *memory).collect(self._source, rows)
        if not way.is_shared:  # shared functions are not strict
            return self.sort_few(rows, others, count)
        _Few(self.instruction, self.e.rules).call(code, rows, others, count)
        return rows

    def sort_few(self, rows: OperandRows, others: OperandRows, count: ir.Value) -> OperandRows:
        """Sort the first elements of `rows`; returns where they are."""
        code = self.code
        with code.range(0, count, MAXIMUM_RUN_ELEMENTS, unroll=Unroll.NEVER) as i:
            end = code.minimum(code.add(i, MAXIMUM_RUN_ELEMENTS), count)
            self._insert(rows, i, end, lambda place: [row.read(code, place) for row in rows])
        b = code.b
        runs = b.lshr(b.sub(count, I64(1)), I64(MAXIMUM_RUN_ELEMENTS.bit_length() - 1))
        passes = b.sub(I64(64), code.intrinsic("llvm.ctlz.i64", I64, [runs, BOOL(0)]))
        return self._merge_all(rows, others, passes, count)

    def _sort_digits(self, home: OperandRows, away: OperandRows, targets: OperandRows) -> OperandRows:
        """Sort by digits; returns the rows where the elements are: `home` if these are the targets."""
        code, way = self.code, self.way
        assert way.order is not None and self.memory.counts is not None
        rows = sort_radix.RadixSort(self.e, way.order, self.length, self.memory.counts).sort(self._source, home, away)
        if not any(row is target for row, target in zip(home, targets, strict=True)):
            return rows
        with code.when(code.b.icmp_unsigned("!=", rows[0].start, home[0].start)):
            for row, target in zip(rows, home, strict=True):
                self._copy(row, target)
        return home

    def _sort_runs(self, last: OperandRows, other: OperandRows, passes: int) -> None:
        """Sort runs, then merge them back and forth; the last pass writes to `last`."""
        first, second = (last, other) if passes % 2 == 0 else (other, last)
        with self.code.loop(self.length, step=MAXIMUM_RUN_ELEMENTS, unroll=Unroll.NEVER) as i:
            start = i
            end = self.code.minimum(self.code.add(start, MAXIMUM_RUN_ELEMENTS), self.length)
            self._insert(first, start, end, self._source)
        self._merge_all(first, second, passes, self.length)

    def less(self, left: Sequence[Register], right: Sequence[Register]) -> ir.Value:
        pairs = [value for pair in zip(left, right, strict=True) for value in pair]
        result = self.e.apply(self.comparator, pairs)
        if self.flushing is not None:  # besides, as NaNs have keys
            below = self.code.b.icmp_signed("<", self.flushing.of(self.e, left), self.flushing.of(self.e, right))
            return self.code.b.and_(result, below)
        return result

    def _source(self, position: IndexValue) -> list[Register]:
        """The elements of all operands at a position."""
        self.positions[self.dimension] = position
        return [self.e.value(o, Index.at(self.code, o.shape, self.positions)) for o in self.instruction.operands]

    def _insert(
        self,
        rows: OperandRows,
        start: IndexValue,
        end: IndexValue,
        source: Callable[[IndexValue], Sequence[Register]],
    ) -> None:
        """Insertion sort of the elements [start, end) of `source` into the same positions of `rows`."""
        code = self.code
        with code.loop(code.subtract(end, start), unroll=Unroll.NEVER) as outer:
            position = code.add(outer, start)
            values = source(position)
            going = code.begin_while([code.value(position), code.truth(True)])
            place, moves = going.carried
            going.test(code.b.and_(moves, code.b.icmp_signed(">", place, code.value(start))))
            before = code.value(code.subtract(place, 1))
            neighbours = [row.read(code, before) for row in rows]
            moved = self.less(values, neighbours)
            for row, neighbour, value in zip(rows, neighbours, values, strict=True):
                row.write(code, place, chosen(code.b, moved, neighbour, value))
            place, _ = going.close([code.b.select(moved, before, place), moved])
            for row, value in zip(rows, values, strict=True):
                row.write(code, place, value)

    def _merge_all(
        self, first: OperandRows, second: OperandRows, passes: IndexValue, length: IndexValue
    ) -> list[OperandRow]:
        """Merge pass by pass from one set of rows to the other. The length of runs doubles in each pass. Returns where
        the elements are.
        """
        code = self.code
        starts = [row.start for row in (*first, *second)]
        loop = code.range(0, passes, carried=starts, unroll=Unroll.NEVER)
        count = len(first)
        source, target = at_starts(first, loop.carried[:count]), at_starts(second, loop.carried[count:])
        b, shift = code.b, code.value(code.add(loop.index, MAXIMUM_RUN_ELEMENTS.bit_length()))
        width, both = b.shl(I64(MAXIMUM_RUN_ELEMENTS), code.value(loop.index)), b.shl(I64(1), shift)
        last = code.value(code.subtract(length, 1))
        with code.loop(b.lshr(b.add(last, both, flags=("nsw",)), shift), unroll=Unroll.NEVER) as pair:
            b = code.b
            low = b.shl(code.value(pair), shift)
            middle = self._bounded(b.add(low, width, flags=("nsw",)), length)
            high = self._bounded(b.add(middle, width, flags=("nsw",)), length)
            self._merge(source, target, low, middle, high)
        return at_starts(first, loop.close([*loop.carried[count:], *loop.carried[:count]])[:count])

    def _bounded(self, position: ir.Value, length: IndexValue) -> ir.Value:
        b, end = self.code.b, self.code.value(length)
        return b.select(b.icmp_signed("<", position, end), position, end)

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
            row.write(code, place, chosen(code.b, take, taken_, kept))
        taken = b.zext(take, I64)
        right = b.add(right, taken, flags=("nsw",))
        left = b.add(left, b.sub(I64(1), taken, flags=("nsw",)), flags=("nsw",))
        unroll = Unroll.NEVER if self.way.selected else Unroll.FREELY  # candidates are few: code that compiles fast
        step.close([left, right, b.add(place, I64(1), flags=("nsw",))], unroll=unroll)


class _Few:
    """A sort of few elements, as a function that all kernels call whose operands have these dtypes, and whose
    comparator is the same. Such ones have one name.
    """

    def __init__(self, instruction: Instruction, rules: Mapping[Op, ElementRule]):
        self.instruction, self.rules = instruction, rules
        self.shapes = [shape for _, shape in instruction.shape.leaves()]
        dtypes = "".join(f".{shape.dtype.value}" for shape in self.shapes)
        meaning = hashlib.sha256(structure(instruction.attributes["to_apply"]).encode()).hexdigest()
        self.name = f"legacy.few{dtypes}.{MAXIMUM_RUN_ELEMENTS}.{meaning[:16]}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Few) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)

    def call(self, code: Code, rows: OperandRows, others: OperandRows, count: ir.Value) -> None:
        """Sort the first `count` elements of rows, with as much other memory."""
        call(code.b, self, [*(row.start for row in (*rows, *others)), count])

    def declare(self, module: ir.Module) -> ir.Function:
        memory = [POINTER] * 2 * len(self.shapes)
        return declared(module, self.name, [*memory, I64], [False] * len(memory))

    def define(self, module: ir.Module) -> None:
        function = self.declare(module)
        code = Code(module, function)
        *starts, count = function.args
        rows = [OperandRow(start, 1, shape) for start, shape in zip(starts, 2 * self.shapes, strict=True)]
        half, e = len(self.shapes), Elemental(code, {}, self.rules, Scratch(None, 0))
        way = _Memory(Way(False, selected=1))
        sorted_ = _Sorter(e, self.instruction, [], way).sort_few(rows[:half], rows[half:], count)
        away = code.b.icmp_unsigned("!=", sorted_[0].start, rows[0].start)
        with code.when(away), code.loop(count, unroll=Unroll.NEVER) as i:
            for row, target in zip(sorted_, rows, strict=False):
                target.write(code, i, row.read(code, i))
        code.b.ret_void()


def sort(e: Elemental, instruction: Instruction, index: Index) -> Reads:
    refuse(instruction)
    yield


RULES: dict[Op, ElementRule] = {Op.SORT: sort}
