"""sort as a kernel's root: insertion sort of short runs, then merges of neighbouring runs. The sort is stable.

Memory accesses depend on counts only, so a comparator that is no strict weak order still yields a permutation. Elements
are moved in raw form and compared as working values. Where the comparator compares one key, long rows are sorted by its
digits, and of a few first elements only the candidates are sorted.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, replace
from ...planning.allocation import POOL_ALIGNMENT
from ..core.builder import Index, Pointer, Unroll
from ..core.elements import Scalar, parts, raw_type
from ..core.facts import Facts
from ..core.graph import Buffer, Node, origin
from ..loops.elemental import Elemental, ElementRule, Indices, Reads
from ..loops.form import fewer, more
from ..loops.ranges import Steps, outer_loops
from ..movement.indexing import refuse
from .sort_counting import CountingSort, Digits, digits_for
from .sort_first import MASK_KEYS, FirstOfRow, is_selected
from .sort_keys import Keys, keys_of
from .sort_lanes import Lane
from .sort_runs import Few, Runs

MAXIMUM_RUN_ELEMENTS = 32
"""Length of the runs that are sorted by insertion; a power of two. A row of one run is sorted in its destination.

Measured: rows of f32 and f64 gain from 16 to 32. Integers and floats that comparisons decode lose: their runs are half.
"""

MINIMUM_DIGIT_ELEMENTS_ALONE = 256
"""Elements of a row that a work item sorts by digits, without vectors; masks of candidates need them."""


def sort_value(e: Elemental, node: Node, number: int, index: Indices, raw: bool) -> Reads:
    refuse(node)
    yield


RULES: dict[Op, ElementRule] = {Op.SORT: sort_value}


def uncut(result: Buffer) -> Buffer:
    """The sorted array that a buffer is a slice of, if that has a part of each row; otherwise the buffer itself."""
    node = result.writer
    if node is None or node.opcode is not Op.SLICE:
        return result
    source = origin(node.inputs[0])
    if source.writer is None or source.writer.opcode is not Op.SORT:
        return result
    (along,) = source.writer.attributes["dimensions"]
    whole = all(result.dims[d] == size for d, size in enumerate(source.dims) if d != along)
    orders = [[d for d in b.shape.minor_to_major if source.dims[d] != 1] for b in (result, source)]
    same = orders[0] == orders[1]  # where dimensions of one element stand decides nothing
    return source if whole and same and node.attributes["slice"][along].stride == 1 else result


def first_wanted(node: Node, result: Buffer) -> int:
    """The number of the element of a sorted row that is the first of a result."""
    if result.writer is node or result.writer is None:
        return 0
    return result.writer.attributes["slice"][node.attributes["dimensions"][0]].start


@dataclass(frozen=True, slots=True)
class RowPlan:
    """How rows are sorted. run: elements that are sorted by insertion; cut: whether results are parts of rows; starts:
    the numbers of their first elements; lanes: of each operand in scratch memory. keys: of the comparator, and digits:
    if rows are sorted by these.

    wanted: if candidates for this many first elements are; 0: all elements are. holder: the operand whose lanes in
    scratch memory have room for their keys.
    """

    run: int
    cut: bool
    starts: tuple[int, ...]
    lanes: tuple[int, ...]
    keys: Keys | None = None
    digits: Digits | None = None
    wanted: int = 0
    holder: int = 0

    @staticmethod
    def of(node: Node, results: Sequence[Buffer]) -> RowPlan:
        """By insertion and merges."""
        gains = node.inputs[0].dtype in (DType.F32, DType.F64)
        run = MAXIMUM_RUN_ELEMENTS if gains else max(1, MAXIMUM_RUN_ELEMENTS // 2)
        (d,) = node.attributes["dimensions"]
        length = node.inputs[0].dims[d]
        cut = any(r.dims[d] != length for r in results)
        none = length <= run and not cut
        lanes = [0 if none else 1 if r.strides[d] == 1 and not cut else 2 for r in results]
        return RowPlan(run, cut, tuple(first_wanted(node, origin(r)) for r in results), tuple(lanes))

    def lane_bytes(self, results: Sequence[Buffer], length: int) -> list[int]:
        """Where the lanes of each operand begin in scratch memory, and where all end."""
        ends = [0]
        for count, r in zip(self.lanes, results, strict=True):
            ends.append(ends[-1] + count * lane_size(r, length))
        return ends


def lane_size(result: Buffer, length: int) -> int:
    return -(-length * result.dtype.bytes // POOL_ALIGNMENT) * POOL_ALIGNMENT


def first_plan(facts: Facts, node: Node, results: Sequence[Buffer]) -> RowPlan | str:
    """Of the first elements of rows, for which few are candidates."""
    plan, (d,) = RowPlan.of(node, results), node.attributes["dimensions"]
    keys, length = keys_of(node.bodies[0]), node.inputs[0].dims[d]
    if keys is None or not plan.cut:
        return "the comparator does not compare one key" if keys is None else "whole rows are wanted"
    if facts.by_element:
        return "a work item has no masks of candidates"
    wanted = max(start + r.dims[d] for start, r in zip(plan.starts, results, strict=True))
    if not is_selected(length, wanted):
        return f"{wanted:,} of {length:,} elements are wanted, too many"
    room = [n for n, r in enumerate(results) if 8 * r.dtype.bytes >= keys.bits]
    return replace(plan, keys=keys, wanted=wanted, holder=room[0]) if room else "no operand's lane has room for keys"


def radix_plan(facts: Facts, scratch: int, node: Node, results: Sequence[Buffer]) -> RowPlan | str:
    """By the digits of keys. scratch: bytes of scratch memory."""
    plan, (d,) = RowPlan.of(node, results), node.attributes["dimensions"]
    keys, length = keys_of(node.bodies[0]), node.inputs[0].dims[d]
    if keys is None:
        return "the comparator does not compare one key"
    if facts.by_element and length < MINIMUM_DIGIT_ELEMENTS_ALONE:
        return fewer(length, "elements of a row", MINIMUM_DIGIT_ELEMENTS_ALONE)
    digits = digits_for(keys, length)
    if digits is None:
        return f"{length:,} elements of a row, too few for passes over {keys.bits} bits"
    size = plan.lane_bytes(results, length)[-1] + digits.bytes
    return (
        replace(plan, keys=keys, digits=digits) if size <= scratch else more(size, "bytes of scratch memory", scratch)
    )


class RowSort(Runs):
    """Sorts rows one after the other. Merges alternate between the result and scratch memory.

    If the result is strided or a part of each row, a second row in scratch memory takes the place of the result.
    """

    def __init__(self, e: Elemental, node: Node, results: Sequence[Buffer], plan: RowPlan):
        super().__init__(e, node, plan.run, few=False)
        self.results, self.plan = results, plan
        self.dimension = node.attributes["dimensions"][0]
        self.length = node.inputs[0].dims[self.dimension]
        self.index: dict[int, Index] = dict.fromkeys(range(len(results[0].dims)), 0)
        self.counts: Pointer | None = None

    def emit(self, steps: Steps | None = None) -> None:
        first = self.results[0]
        spare = self.spare()
        order = [d for d in reversed(first.shape.minor_to_major) if d != self.dimension]
        with outer_loops(self.b, steps, () if steps is None else steps.dimensions, first.dims, order) as places:
            self.index |= places | {self.dimension: 0}
            targets = [
                Lane(
                    self.e.pointers[r.argument],
                    self.e.offset(r, tuple(self.index.values())),
                    r.strides[self.dimension],
                    r,
                )
                for r in self.results
            ]
            self.row(targets, spare)

    def spare(self) -> list[list[Lane]]:
        """The rows in scratch memory, by operand, one after the other. Counts of digits are behind them."""
        b, digits, places = self.b, self.plan.digits, self.plan.lane_bytes(self.results, self.length)
        if not places[-1]:
            return []
        base = self.e.scratch.take(b, places[-1] + (0 if digits is None else digits.bytes))
        lanes = []
        for r, start, end in zip(self.results, places, places[1:], strict=False):
            starts = range(start, end, lane_size(r, self.length))
            lanes.append([Lane(b.pointer(base, s, b.types.i8), 0, 1, r) for s in starts])
        self.counts = b.pointer(base, places[-1], b.types.i8)
        return lanes

    def row(self, targets: Sequence[Lane], spare: Sequence[Sequence[Lane]]) -> None:
        b = self.b
        if not spare:
            self.insert(self.source, targets, 0, self.length)
            return
        passes = (-(-self.length // self.run) - 1).bit_length()
        if b.by_element:
            passes += passes % 2
        home = [lanes[1] if len(lanes) > 1 else t for t, lanes in zip(targets, spare, strict=True)]
        away = [lanes[0] for lanes in spare]
        if not self.plan.wanted and (passes or self.plan.keys is not None):
            # Lanes that are exchanged need addresses of one form: a row that begins with their first element.
            home, away = ([self.carried(x) for x in lanes] for lanes in (home, away))
        if self.plan.wanted:
            self.select(home, away, spare)
        elif self.plan.digits is not None:
            home = self.radix(home, away, all(len(lanes) > 1 for lanes in spare))
        else:
            first, second = (home, away) if passes % 2 == 0 else (away, home)
            with b.loop(0, self.length, self.run, unroll=Unroll.NONE) as loop:
                self.insert(self.source, first, loop.index, b.least(b.add(loop.index, self.run), self.length))
            if passes and b.by_element:
                self.merge_in_pairs(first, second, passes)
            elif passes:
                self.merge_passes(first, second, passes, self.length)
        for lane, target, lanes, start in zip(home, targets, spare, self.plan.starts, strict=True):
            if len(lanes) > 1:
                self.copy(lane, target, start)

    def copy(self, lane: Lane, target: Lane, start: int) -> None:
        """Copy a part of a row to a result."""
        b, dtype, count = self.b, target.buffer.dtype, target.buffer.dims[self.dimension]
        if not self.plan.wanted or count % MASK_KEYS or lane.stride != 1 or target.stride != 1 or parts(dtype) != 1:
            with b.loop(0, count, unroll=Unroll.SHORT) as loop:
                target.write(b, loop.index, lane.read(b, b.add(loop.index, start)))
            return
        raw = raw_type(b.types, dtype)
        vector = b.vector(MASK_KEYS, raw)

        def move(position: Index) -> None:
            source = b.pointer(lane.base, lane.place(b, b.add(position, start)), raw)
            place = b.pointer(target.base, target.place(b, position), raw)
            b.store(b.load(source, vector, dtype.bytes), place, dtype.bytes)

        if count == MASK_KEYS:
            move(0)
            return
        with b.loop(0, count, MASK_KEYS, unroll=Unroll.DONE) as loop:  # it takes LLVM a while to find vectors
            move(loop.index)

    def select(self, home: Sequence[Lane], away: Sequence[Lane], spare: Sequence[Sequence[Lane]]) -> None:
        """Sort the candidates for the first elements, in `home`."""
        b, plan = self.b, self.plan
        assert plan.keys is not None
        keys, minima = (lane.base for lane in spare[plan.holder])
        first = FirstOfRow(self.e, plan.keys, self.length, plan.wanted, keys, minima)
        count = first.candidates(self.source, home)
        if b.strict:  # shared functions are not
            self.sort([self.carried(x) for x in home], [self.carried(x) for x in away], count)
        else:
            Few(self.e.rules, self.node, self.run, b.fma_hardware).call(b, home, away, count)

    def radix(self, home: Sequence[Lane], away: Sequence[Lane], either: bool) -> list[Lane]:
        """Sort by digits; returns the lanes that hold the row. either: `away` will do as well as `home`."""
        b, plan = self.b, self.plan
        assert plan.keys is not None and plan.digits is not None and self.counts is not None
        sorter = CountingSort(self.e, plan.keys, self.length, plan.digits, self.counts)
        if b.by_element:
            return sorter.sort_in_turn(self.source, home, away)
        lanes, moved = sorter.sort(self.source, home, away)
        if either:
            return lanes
        branch = b.branch(moved, [])
        with branch.side(0), b.loop(0, self.length, unroll=Unroll.LEAN) as loop:  # memory takes the time
            for lane, target in zip(lanes, home, strict=True):
                target.write(b, loop.index, lane.read(b, loop.index))
        with branch.side(1):
            pass
        return list(home)

    def carried(self, lane: Lane) -> Lane:
        """A lane as loops may carry it."""
        b, dtype = self.b, lane.buffer.dtype
        count = parts(dtype)
        base = b.row(lane.base, b.mul(lane.offset, count), raw_type(b.types, dtype), self.length * count)
        return replace(lane, base=base, offset=0)

    def source(self, position: Index) -> list[Scalar]:
        """The raw elements of the operands at a position."""
        self.index[self.dimension] = position
        return [self.e.value(x, tuple(self.index.values()), raw=True) for x in self.node.inputs]

    def merge_in_pairs(self, first: Sequence[Lane], second: Sequence[Lane], passes: int) -> None:
        """An even number of passes, to `second` and back in each turn: SPIR-V has no loops that carry memory."""
        b = self.b
        with b.loop(0, passes, 2, unroll=Unroll.NONE) as loop:
            self.merge_pass(first, second, loop.index, self.length)
            self.merge_pass(second, first, b.add(loop.index, 1), self.length)
