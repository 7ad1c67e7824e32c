"""Insertion sort of short runs, and merges of neighbouring runs; the sort of few elements as a function of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, field, replace
from ..core.builder import Builder, Index, Loop, Unroll, Value
from ..core.elements import Scalar, decode, flatten, raw_type, unflatten
from ..core.graph import Buffer, Node
from ..loops.elemental import Elemental, ElementRule
from ..loops.helper import call_helper, memory_types
from ..loops.scratch import Scratch
from .sort_keys import keys_of, meaning_of
from .sort_lanes import Lane, Source, read_all

FLUSHED = (DType.F32, DType.F64)
"""Floats of which x86 has minima and maxima, which flush subnormals."""

MAXIMUM_ROW_ELEMENTS = 1 << 40
"""Elements of a row that a function takes whose length it does not know: more than any has."""


class Runs:
    """Sorts elements in runs of `run`, a power of two, and merges these. few: there are some candidates only."""

    def __init__(self, e: Elemental, node: Node, run: int, few: bool):
        self.e, self.b, self.node, self.run, self.few = e, e.b, node, run, few
        keys = None if e.b.by_element else keys_of(node.bodies[0])
        # LLVM makes minima and maxima of a float comparison and its selection: they would move a subnormal as 0.
        self.flushing = keys if keys is not None and keys.partial and keys.key.dtype in FLUSHED else None

    def before(self, left: Sequence[Scalar], right: Sequence[Scalar]) -> Value:
        """Whether the comparator puts the raw elements `left` before `right`."""
        pairs = zip(self.node.inputs, left, right, strict=True)
        operands = [decode(self.b, x.dtype, value) for x, *both in pairs for value in both]
        result = flatten(self.e.apply(self.node.bodies[0], operands)[0])[0]
        if self.flushing is not None:  # besides, as NaNs have keys
            first, second = (self.flushing.unsigned(self.e, element) for element in (left, right))
            return self.b.binary("andi", result, self.b.compare_integers("ult", first, second))
        return result

    def insert(self, source: Source, lanes: Sequence[Lane], start: Index, end: Index) -> None:
        """Insertion sort of the elements [start, end) of a source into the same positions of the lanes."""
        b, t = self.b, self.b.types
        with b.loop(start, end, unroll=Unroll.NONE) as loop:
            values = source(loop.index)
            shift = b.open_while([loop.index, b.constant(1, t.i1)])
            place, moving = shift.carried
            inside = b.compare_integers("sgt", place, b.materialize(start))
            shift.test(b.binary("andi", inside, moving))
            place, _ = shift.carried
            below = b.add(place, -1)
            neighbours = [lane.read(b, below) for lane in lanes]
            moves = self.before(values, neighbours)
            for lane, neighbour, value in zip(lanes, neighbours, values, strict=True):
                lane.write(b, place, self.either(moves, neighbour, value, lane.buffer))
            shift.close([b.select(moves, b.materialize(below), place), moves])
            for lane, value in zip(lanes, values, strict=True):
                lane.write(b, shift.values[0], value)

    def either(self, condition: Value, yes: Scalar, no: Scalar, buffer: Buffer) -> Scalar:
        pairs = zip(flatten(yes), flatten(no), strict=True)
        return unflatten([self.b.select(condition, y, n) for y, n in pairs], buffer.dtype)

    def merge_passes(self, first: Sequence[Lane], second: Sequence[Lane], passes: Index, length: Index) -> list[Lane]:
        """Merge all runs of one length, then exchange source and target for the next. Returns the last target."""
        b, count = self.b, len(first)
        loop: Loop = b.open_loop(0, passes, 1, [lane.base for lane in (*first, *second)], Unroll.NONE)
        source = [replace(lane, base=p) for lane, p in zip(first, loop.carried[:count], strict=True)]
        target = [replace(lane, base=p) for lane, p in zip(second, loop.carried[count:], strict=True)]
        self.merge_pass(source, target, loop.index, length)
        loop.next = [*loop.carried[count:], *loop.carried[:count]]
        b.close_loop(loop)
        return [replace(lane, base=base) for lane, base in zip(first, loop.values[:count], strict=True)]

    def sort(self, home: Sequence[Lane], away: Sequence[Lane], count: Value) -> None:
        """Sort the first elements of `home`."""
        b = self.b
        with b.loop(0, count, self.run, unroll=Unroll.NONE) as loop:
            end = b.least(b.add(loop.index, self.run), count)
            self.insert(lambda position: read_all(b, home, position), home, loop.index, end)
        runs = b.binary("shrui", b.binary("addi", count, -1), self.run.bit_length() - 1)
        passes = b.op("arith.subi", b.constant(64, b.types.i64), b.op("math.ctlz", runs))
        found = self.merge_passes(home, away, passes, count)
        odd = b.compare_integers("ne", b.binary("andi", passes, 1), b.constant(0, b.types.i64))
        branch = b.branch(odd, [])
        with branch.side(0), b.loop(0, count, unroll=Unroll.NONE) as loop:
            for lane, target in zip(found, home, strict=True):
                target.write(b, loop.index, lane.read(b, loop.index))
        with branch.side(1):
            pass

    def merge_pass(self, source: Sequence[Lane], target: Sequence[Lane], number: Index, length: Index) -> None:
        """Merge all runs of the length that they have before the pass of this number."""
        b = self.b
        shift = b.materialize(b.add(number, self.run.bit_length() - 1))
        width = b.op("arith.shli", b.constant(1, b.types.i64), shift)
        pair = b.op("arith.addi", width, width)
        # ceil(length / (2 * width))
        pairs = b.binary("shrui", b.binary("shrui", b.binary("addi", pair, b.add(length, -1)), shift), 1)
        with b.loop(0, pairs, unroll=Unroll.NONE) as each:
            low = b.op("arith.muli", each.index, pair)
            middle = b.least(b.op("arith.addi", low, width), length)
            high = b.least(b.op("arith.addi", b.materialize(middle), width), length)
            self.merge(source, target, low, b.materialize(middle), b.materialize(high))

    def merge(self, source: Sequence[Lane], target: Sequence[Lane], low: Value, middle: Value, high: Value) -> None:
        """Merge the runs [low, middle), never empty, and [middle, high).

        If a run is used up, the element at middle - 1 is read in its place but not taken.
        """
        b = self.b
        last = b.add(middle, -1)
        unroll = Unroll.NONE if self.few else Unroll.ANY  # code that compiles fast
        with b.loop(low, high, 1, [low, middle], unroll) as loop:
            left, right = loop.carried
            more_left = b.compare_integers("slt", left, middle)
            more_right = b.compare_integers("slt", right, high)
            left_place = b.select(more_left, left, b.materialize(last))
            right_place = b.select(more_right, right, b.materialize(last))
            lefts = [lane.read(b, left_place) for lane in source]
            rights = [lane.read(b, right_place) for lane in source]
            first = b.select(more_left, self.before(rights, lefts), b.constant(1, b.types.i1))
            take = b.binary("andi", more_right, first)
            for lane, x, y in zip(target, lefts, rights, strict=True):
                lane.write(b, loop.index, self.either(take, y, x, lane.buffer))
            taken = b.extui(take, b.types.i64)
            stays = b.op("arith.subi", b.constant(1, b.types.i64), taken)
            loop.next = [b.op("arith.addi", left, stays), b.op("arith.addi", right, taken)]


@dataclass(frozen=True, slots=True)
class Few:
    """A sort of few elements as a function that kernels share whose operands have the same dtypes, and whose
    comparators compute the same. run: as of Runs; fma: whether the target has fused multiply-adds.
    """

    rules: Mapping[Op, ElementRule] = field(compare=False)
    node: Node = field(compare=False)
    run: int
    fma: bool
    name: str = ""

    def __post_init__(self) -> None:
        text = f"{self.run} {self.fma} {meaning_of(self.node.bodies[0])}"
        dtypes = "".join(f".{x.dtype.value}" for x in self.node.inputs)
        name = f"mlir.few{dtypes}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        object.__setattr__(self, "name", name)

    def types(self, b: Builder) -> list[ir.Type]:
        held = [raw_type(b.types, x.dtype) for x in self.node.inputs]
        return [*memory_types(b, held * 2), *[b.types.i64] * (2 * len(held) + 1)]

    def call(self, b: Builder, home: Sequence[Lane], away: Sequence[Lane], count: Value) -> None:
        """Sort the first `count` elements of `home`, with as much memory away."""
        places = [b.pointer(lane.base, 0, raw_type(b.types, lane.buffer.dtype)) for lane in (*home, *away)]
        call_helper(b, self, places, [count], len(places))

    def emit(self, b: Builder, parameters: Sequence[Value]) -> None:
        """The function's body."""
        *given, count = parameters
        operands = [*self.node.inputs] * 2
        half, rows = len(self.node.inputs), zip(given, given[len(operands) :], operands, strict=False)
        lanes = []
        for place, start, x in rows:  # in a form that loops may carry
            base = b.row(place, start, raw_type(b.types, x.dtype), MAXIMUM_ROW_ELEMENTS)
            lanes.append(Lane(base, 0, 1, x))
        runs = Runs(Elemental(b, [], self.rules, Scratch()), self.node, self.run, few=True)
        runs.sort(lanes[:half], lanes[half:], count)
