"""Long sums of floats in blocks, so that rounding errors do not grow with their length.

`PartialSums`: a sum along memory has LANES partial sums side by side on the stack, a short dot product FEW_LANES.
Element i goes to partial sum i mod LANES, whatever the width of the target's vectors. LLVM makes vectors of neighbours;
it need not reorder anything. At the end of a block of at most BLOCK_ELEMENTS, a tree adds up the partial sums, and its
result is added to a total, in f64 where the partial sums are f32. `Chains`: a sum over short dimensions, or next to a
reduction of another kind, is one chain in a block, which LLVM may split. `Totals`: sums side by side are a chain each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ..core.builder import Builder, Index, Unroll, Value
from ..core.facts import Facts
from ..core.graph import Node

LANES = 64
"""Partial sums: four vectors of 512 bits, the latency of an addition in cycles."""

FEW_LANES = 16
"""Partial sums of a short sum."""

WIDEST_VECTOR_BYTES = 64
"""Bytes of a vector of the widest target."""

ELEMENTS_TOGETHER = 4
"""Elements that are added to a partial sum per read and write of it."""

BLOCK_ELEMENTS = 1 << 14
"""Elements between two additions to the total: a hundredth of their time."""

MINIMUM_BLOCK_ELEMENTS = 512
"""Elements of a sum in blocks: a shorter one is as exact as one block."""

SHORT_CHAIN_ADDITIONS = 16
"""Additions to a chain side by side with others: its error is then that of two or three roundings."""

SPLIT_CHAIN_ADDITIONS = 1 << 10
"""Additions to a chain that LLVM splits if the target has vectors."""

MAXIMUM_REGISTER_CHAINS = 128
"""Chains side by side that may stay in registers."""

CHAINS_TOGETHER = 16
"""Chains side by side that are added to their totals as one vector."""

WHOLE_CHAIN_ADDITIONS = 1 << 8
"""Additions to a chain that it may not split: besides an arg max."""

MEMORY_CHAIN_ADDITIONS = 1 << 12
"""Additions to a chain along memory, which LLVM splits over vectors on every target."""


Carried = Sequence[Value]
Visit = Callable[[Sequence[Index], Carried], tuple[Sequence[Value], Carried]]
"""(index along the dimensions, other carried values) → (an addend for each sum, the next carried values)."""


def component_type(b: Builder, dtype: DType) -> ir.Type:
    """The type in which a float, or a part of a complex number, is summed."""
    return b.types.f64 if dtype.component is DType.F64 else b.types.f32


def are_float_sums(node: Node) -> bool:
    """Whether each result of a reduction is the sum of its elements in f32, f64 or complex numbers of these."""
    body = node.bodies[0]
    half = len(body.outputs)
    for k, output in enumerate(body.outputs):
        root = output.writer
        if root is not None and root.opcode is Op.COPY:  # a value of a tuple
            root = root.inputs[0].writer
        if root is None or root.opcode is not Op.ADD or output.dtype.component not in (DType.F32, DType.F64):
            return False
        if {*root.inputs} != {body.parameters[k], body.parameters[k + half]}:
            return False
    return True


def long_sum(
    b: Builder, sizes: Sequence[int], types: Sequence[ir.Type], turns: int, chain: int | None = None
) -> LongSums:
    """Sums of these types over dimensions of these sizes, slowest first. chain: None if there are no other carried
    values, else the additions to a chain beside them.
    """
    if sizes[-1] < LANES * ELEMENTS_TOGETHER:
        return Chains(b, sizes, types, min(SPLIT_CHAIN_ADDITIONS, chain or SPLIT_CHAIN_ADDITIONS))
    return PartialSums(b, sizes, types, turns) if chain is None else Chains(b, sizes, types, chain)


def is_long(facts: Facts, sizes: Sequence[int]) -> bool:
    """Whether a sum over dimensions of these sizes is long enough for blocks."""
    return not facts.strict and math.prod(sizes) >= MINIMUM_BLOCK_ELEMENTS


class LongSums:
    """Sums over all elements of some dimensions. sizes: of the dimensions, slowest first; types: of the sums."""

    def __init__(self, b: Builder, sizes: Sequence[int], types: Sequence[ir.Type]):
        self.b, self.sizes, self.types = b, list(sizes), types
        self.totals = [b.alloca(b.types.f64, 1, 8) for _ in types]
        self.spills = False
        self.ahead: Callable[[Sequence[Index], int], None] | None = None
        """What partial sums call with the place, and the number, of the elements that a loop's body adds."""

    def add_up(self, visit: Visit, carried: Carried = ()) -> Carried:
        """Emit the loops. Returns the carried values after them."""
        raise NotImplementedError

    def rests(self) -> Sequence[Value]:
        """What was added up since the last addition to the totals."""
        raise NotImplementedError

    def results(self, initials: Sequence[Value]) -> list[Value]:
        """The sums, added to these values."""
        b, found = self.b, []
        for total, initial, value in zip(self.totals, initials, self.rests(), strict=True):
            if self.spills:
                wide = self._with_total(total, value)
                value = b.truncate(wide, value.type) if wide.type != value.type else wide
            found.append(b.op("arith.addf", initial, value))
        return found

    def _open_totals(self) -> None:
        for total in self.totals:
            self.b.store(self.b.f64(-0.0), total, 8)

    def _to_totals(self, values: Sequence[Value]) -> None:
        self.spills = True
        for total, value in zip(self.totals, values, strict=True):
            self.b.store(self._with_total(total, value), total, 8)

    def _with_total(self, total: Value, value: Value) -> Value:
        b = self.b
        wide = value if value.type == b.types.f64 else b.extend(value)
        return b.op("arith.addf", b.load(total, b.types.f64, 8), wide)


class Chains(LongSums):
    """One chain for each sum, which is added to its total after at most `limit` elements.

    A short last dimension has a sum of its own, which is added to the chain, so that neither waits for the other.
    """

    def __init__(self, b: Builder, sizes: Sequence[int], types: Sequence[ir.Type], limit: int):
        super().__init__(b, sizes, types)
        self.limit = limit
        self.chains: Carried = ()

    def add_up(self, visit: Visit, carried: Carried = ()) -> Carried:
        b, count = self.b, len(self.types)
        self._open_totals()
        empty = [b.constant(-0.0, type) for type in self.types]

        def added(given: Carried, addends: Sequence[Value]) -> list[Value]:
            with b.reassociating():
                return [b.addf(x, y) for x, y in zip(given, addends, strict=False)]

        def one(index: Sequence[Index], given: Carried) -> Carried:
            addends, others = visit(index, given[count:])
            return [*added(given, addends), *others]

        def whole(prefix: Sequence[Index], at: Index, given: Carried) -> Carried:
            if not apart:
                return one([*prefix, at], given)
            with b.loop(0, self.sizes[-1], 1, [*empty, *given[count:]], Unroll.SHORT) as loop:
                loop.next = one([*prefix, at, loop.index], loop.carried)
            return [*added(given, loop.values[:count]), *loop.values[count:]]

        def rest(prefix: Sequence[Index], at: int, given: Carried) -> Carried:
            raise AssertionError("steps of one element leave no rest")

        def spill(given: Carried) -> Carried:
            self._to_totals(given[:count])
            return [*empty, *given[count:]]

        apart = len(self.sizes) > 1 and self.sizes[-1] <= self.limit
        sizes, limit = (self.sizes[:-1], self.limit // self.sizes[-1]) if apart else (self.sizes, self.limit)
        blocks = Blocks(b, sizes, 1, limit, spill, Unroll.SHORT)
        after = blocks.emit(whole, rest, [*empty, *carried])
        self.chains = after[:count]
        return after[count:]

    def rests(self) -> Sequence[Value]:
        return self.chains


class PartialSums(LongSums):
    """`lanes` partial sums (a power of two) for each sum, of neighbours along the last dimension.

    turns: elements that are added to each in the body of a loop; one, which is little code, where memory is what takes
    the time.
    """

    def __init__(
        self,
        b: Builder,
        sizes: Sequence[int],
        types: Sequence[ir.Type],
        turns: int = ELEMENTS_TOGETHER,
        lanes: int = LANES,
    ):
        super().__init__(b, sizes, types)
        self.turns, self.lanes = turns, lanes
        self.partial = [b.alloca(t, lanes, 64) for t in types]

    def add_up(self, visit: Visit, carried: Carried = ()) -> Carried:
        b, size, lanes, turns = self.b, self.sizes[-1], self.lanes, 1 if self.ahead else self.turns
        self.open()

        def whole(prefix: Sequence[Index], at: Index, given: Carried) -> Carried:
            if self.ahead:
                self.ahead([*prefix, at], lanes * turns)
            return self._turns(visit, prefix, [b.add(at, k * lanes) for k in range(turns)], lanes, given)

        def rest(prefix: Sequence[Index], at: int, given: Carried) -> Carried:
            starts = list(range(at, size - lanes + 1, lanes))
            if starts:
                given = self._turns(visit, prefix, starts, lanes, given)
            left = (size - at) % lanes
            return self._turns(visit, prefix, [size - left], left, given) if left else given

        def spill(given: Carried) -> Carried:
            self.spill()
            return given

        return Blocks(b, self.sizes, lanes * turns, BLOCK_ELEMENTS, spill, Unroll.NONE).emit(whole, rest, carried)

    def open(self) -> None:
        """Start the totals and the partial sums."""
        self._open_totals()
        self.clear()

    def spill(self) -> None:
        """Add the partial sums to the totals, and start them again."""
        self._to_totals(self.rests())
        self.clear()

    def spill_before(self, end: Value, whole: Value, spill: Callable[[], None]) -> None:
        """Call `spill`, but not at the end of the last block."""
        branch = self.b.branch(self.b.compare_integers("slt", end, whole), [])
        with branch.side(0):
            spill()
        with branch.side(1):
            pass

    def _turns(
        self, visit: Visit, prefix: Sequence[Index], starts: Sequence[Index], length: int, carried: Carried
    ) -> Carried:
        """Add some elements to each of the first `length` partial sums. starts: the first index of each turn."""
        b = self.b
        unroll = Unroll.ANY if length < 16 and length.bit_count() > 1 else Unroll.VECTORIZED
        with b.loop(0, length, 1, carried, unroll) as lane:
            carried = lane.carried
            slots = [b.pointer(p, lane.index, t) for p, t in zip(self.partial, self.types, strict=True)]
            sums = [b.load(slot, t, self._bytes(t)) for slot, t in zip(slots, self.types, strict=True)]
            for start in starts:
                addends, carried = visit([*prefix, b.add(start, lane.index)], carried)
                sums = [b.addf(total, addend) for total, addend in zip(sums, addends, strict=True)]
            for slot, value in zip(slots, sums, strict=True):
                b.store(value, slot, self._bytes(value.type))
            lane.next = carried
        return lane.values

    def _bytes(self, type: ir.Type) -> int:
        return 8 if type == self.b.types.f64 else 4

    def clear(self) -> None:
        """Start the partial sums at −0, to which any number, −0 as well, can be added without a change."""
        b = self.b
        for slot, type in zip(self.partial, self.types, strict=True):
            vector = self._vector(type)
            empty = b.filled(-0.0, vector)
            for at in range(0, self.lanes, vector.shape[0]):
                b.store(empty, b.pointer(slot, at, type), self._aligned(vector))

    def rests(self) -> Sequence[Value]:
        """The partial sums added up pairwise: the first half to the second, and so on."""
        b, trees = self.b, [self.tree(number, 1)[0] for number in range(len(self.types))]
        return [b.lane(x, 0) for x in trees]

    def tree(self, number: int, columns: int) -> list[Value]:
        """The sums, as vectors, of a quantity's partial sums whose numbers differ by multiples of `columns`."""
        b, slot, type = self.b, self.partial[number], self.types[number]
        vector = self._vector(type)
        count = vector.shape[0]
        places = [b.pointer(slot, at, type) for at in range(0, self.lanes, count)]
        values = [b.load(place, vector, self._aligned(vector)) for place in places]
        while len(values) * count > max(count, columns):
            half = len(values) // 2
            values = [b.op("arith.addf", *pair) for pair in zip(values[:half], values[half:], strict=True)]
        while count > columns:
            count //= 2
            values = [b.op("arith.addf", *b.halves(values[0]))]
        return values

    def _vector(self, type: ir.Type) -> ir.VectorType:
        """What is cleared and added up at once. If it were all partial sums, LLVM would see them as one value, which it
        takes apart and joins for each of the target's vectors.
        """
        return ir.VectorType.get([min(WIDEST_VECTOR_BYTES // self._bytes(type), self.lanes)], type)

    def _aligned(self, vector: ir.VectorType) -> int:
        return min(64, vector.shape[0] * self._bytes(vector.element_type))


class Blocks:
    """Loops over dimensions, the last in steps, with `spill` called between at most `limit` elements (or one step).

    spill: takes the carried values and returns them.
    """

    def __init__(
        self,
        b: Builder,
        sizes: Sequence[int],
        step: int,
        limit: int,
        spill: Callable[[Carried], Carried],
        unroll: Unroll = Unroll.ANY,
    ):
        self.b, self.sizes, self.step, self.limit, self.spill, self.unroll = b, sizes, step, limit, spill, unroll
        self.level = next(d for d in range(len(sizes)) if math.prod(sizes[d + 1 :]) <= max(limit, 1))

    def emit(
        self,
        whole: Callable[[Sequence[Index], Index, Carried], Carried],
        rest: Callable[[Sequence[Index], int, Carried], Carried],
        carried: Carried = (),
    ) -> Carried:
        """whole: called with the index along all dimensions but the last, and the start of a step; rest: with that of
        the remaining indices of the last dimension, less than a step.
        """

        def nest(prefix: list[Index], given: Carried) -> Carried:
            d = len(prefix)
            last = d == len(self.sizes) - 1
            step = self.step if last else 1
            full = self.sizes[d] - self.sizes[d] % step
            inner = math.prod(self.sizes[d + 1 :])

            def run(start: Index, end: Index, before: Carried) -> Carried:
                with self.b.loop(start, end, step, before, self.unroll) as loop:
                    if last:
                        loop.next = whole(prefix, loop.index, loop.carried)
                    else:
                        loop.next = nest([*prefix, loop.index], loop.carried)
                return loop.values

            group = max(1, self.limit // max(1, inner * step))  # steps in a block, then as many in each
            group = -(-full // (-(-full // (group * step)) or 1) // step) * step if full else step
            if d == self.level and full > group:
                with self.b.loop(0, full, group, given, Unroll.NONE) as block:
                    end = self.b.add(block.index, group)
                    if full % group:
                        end = self.b.least(end, full)
                    block.next = self.spill(run(block.index, end, block.carried))
                given = block.values
            elif full:
                given = run(0, full, given)
            if last and full < self.sizes[d]:
                given = rest(prefix, full, given)
            return self.spill(given) if d == self.level and d > 0 and full <= group else given

        return nest([], carried)


class Totals:
    """Totals of chains side by side, for a run of places on the stack.

    block: the number of places; parts: the chains of a place, each `block` after the one before. chain: their type;
    wide: whether they are added so often that totals are f64. most: chains that may stay in registers.
    """

    def __init__(
        self, b: Builder, block: int, chain: ir.Type, wide: bool, parts: int = 1, most: int = MAXIMUM_REGISTER_CHAINS
    ):
        self.b, self.chain, self.most = b, chain, most
        self.starts = [k * block for k in range(parts)]
        self.type = b.types.f64 if wide else chain
        self.space = b.alloca(self.type, block * parts, 64)

    def clear(self, count: int) -> None:
        b = self.b
        for place, lanes in self._runs(count):
            for start in self.starts:
                b.store(self._empty(self.type, lanes), self._place(b.add(place, start)), self._bytes(self.type))

    def spill(self, chains: Value, count: int) -> None:
        """Add the chains of `count` places to their totals, and start them again at −0."""
        b = self.b
        for first, lanes in self._runs(count):
            for place in [b.add(first, start) for start in self.starts]:
                slot = b.pointer(chains, place, self.chain)
                value = b.load(slot, self._vector(self.chain, lanes), self._bytes(self.chain))
                if self.chain != self.type:
                    value = b.op("arith.extf", value, type=self._vector(self.type, lanes))
                total = b.load(self._place(place), value.type, self._bytes(self.type))
                b.store(b.op("arith.addf", total, value), self._place(place), self._bytes(self.type))
                b.store(self._empty(self.chain, lanes), slot, self._bytes(self.chain))

    def _runs(self, count: int) -> Iterator[tuple[Index, int]]:
        """Yield (place, number) of runs that are one vector each: LLVM spends no time on making vectors of places.

        Chains that fit in registers stay there if no loop around them is left.
        """
        whole = count - count % CHAINS_TOGETHER
        if whole > self.most:
            with self.b.loop(0, whole, CHAINS_TOGETHER, unroll=Unroll.DONE) as loop:
                yield loop.index, CHAINS_TOGETHER
        else:
            yield from ((place, CHAINS_TOGETHER) for place in range(0, whole, CHAINS_TOGETHER))
        lanes = CHAINS_TOGETHER
        while whole < count:
            lanes //= 2
            if count - whole >= lanes:
                yield whole, lanes
                whole += lanes

    @staticmethod
    def _vector(type: ir.Type, lanes: int) -> ir.Type:
        return ir.VectorType.get([lanes], type) if lanes > 1 else type

    def _empty(self, type: ir.Type, lanes: int) -> Value:
        value = self.b.constant(-0.0, type)
        return self.b.op("vector.broadcast", value, type=self._vector(type, lanes)) if lanes > 1 else value

    def read(self, place: Index) -> Value:
        """The total at a place."""
        return self.b.load(self._place(place), self.type, self._bytes(self.type))

    def final(self, place: Index, value: Value) -> Value:
        """The total at a place plus a chain's value, in the chain's type."""
        wide = self._with_chain(place, value)
        return wide if value.type == wide.type else self.b.truncate(wide, value.type)

    def finished(self, place: Index, lanes: int) -> Value:
        """The totals of neighbours, in the chain's type. A total of nothing, -0, is 0."""
        b, type = self.b, self._vector(self.type, lanes)
        total = b.load(self._place(place), type, self._bytes(self.type))
        wide = b.op("arith.addf", total, b.filled(0, type))
        narrow = self._vector(self.chain, lanes)
        return wide if narrow == type else b.op("arith.truncf", wide, type=narrow)

    def _with_chain(self, place: Index, value: Value) -> Value:
        b = self.b
        wide = value if value.type == self.type else b.extend(value)
        return b.op("arith.addf", self.read(place), wide)

    def _place(self, index: Index) -> Value:
        return self.b.pointer(self.space, index, self.type)

    def _bytes(self, type: ir.Type) -> int:
        return 8 if type == self.b.types.f64 else 4
