"""Short rows are sorted side by side: lane k of each vector is of row k.

A tile of scratch memory holds the keys of several rows, and their elements, as vectors of one position each. A window,
the first few elements so far, moves in registers from the end of the rows to their beginning: the element that it meets
is compared with its first one, the later of both with its second, and so on; what falls out at its end takes the free
place behind it. Only neighbours that are out of order are exchanged, so the sort is stable; accesses depend on no data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from mlir import ir

from ...hlo.dtypes import DType
from ...planning.allocation import POOL_ALIGNMENT
from ..core.builder import Index, Pointer, Unroll, Value
from ..core.elements import Scalar, flatten, parts, raw_type, unflatten
from ..core.facts import Facts
from ..core.graph import Buffer, Node
from ..loops.elemental import Elemental
from ..loops.form import fewer, more
from ..loops.ranges import Steps, neighbours, outer_loops, positions_of
from .sort_counting import digits_for
from .sort_keys import KEYED_FLOATS, Keys, keys_of

MINIMUM_ROWS = 8
"""Minimum rows next to each other that are sorted so: of fewer, half of the time is a call's, and there is more
code to compile than for insertion. Measured, 8 rows of 8 take half of the time, and 2 as long.
"""

DECIDING_VECTOR_BITS = 256
"""Bits of the vectors for which it is decided whether rows are sorted so."""

MINIMUM_LANES = 4
"""Rows side by side."""


MAXIMUM_WINDOW = 4
"""Most positions of a window."""

MAXIMUM_POSITIONS = 256
"""Positions of a row at most: the scratch memory of longer ones has less for each."""

MAXIMUM_PASS_COST = 16
"""Most that an element may cost for each pass of a sort by digits, the other choice: positions of the row, times the
vectors of a position and one, by lanes. Measured, both take as long at 16 to 25 (with AVX2 and SSE at 12 to 20).
"""

INTEGER_PASSES = 2
"""Those of integers, which are often small: digits that all keys share take no pass."""


@dataclass(frozen=True, slots=True)
class Tile:
    """How rows are sorted side by side. lanes: how many; window: its positions.

    along: the dimension of the rows; -1 if they are numbered by the steps, whose last dimension is too short.
    alone: the operand that is made of the sorted keys, so that it is not held beside them; -1 if there is none.
    """

    keys: Keys
    along: int
    lanes: int
    window: int
    alone: int


def tile_for(facts: Facts, scratch: int, node: Node, results: Sequence[Buffer], numbered: Sequence[int]) -> Tile | str:
    """How rows are sorted side by side, or why they are sorted one after the other. scratch: bytes of scratch memory;
    numbered: the dimensions that steps number.
    """
    keys = keys_of(node.bodies[0])
    dimension = node.attributes["dimensions"][0]
    length = node.inputs[0].dims[dimension]
    if keys is None:
        return "the comparator does not compare one key"
    if facts.by_element:
        return "elements are not side by side"
    if length < 2 or length > MAXIMUM_POSITIONS:
        return f"{length} positions of a row, not 2 to {MAXIMUM_POSITIONS}"
    alone = operand_of(keys)
    sizes = [keys.bits // 8, *(x.dtype.bytes for k, x in enumerate(node.inputs) if k != alone)]
    room = scratch // (sum(sizes) * length)
    # Whatever the processor and the steps: where rows are sorted in another way, NaNs may lie elsewhere.
    lanes, vectors = _lanes(sizes, DECIDING_VECTOR_BITS, room)
    dims, order = results[0].dims, [d for d in results[0].shape.minor_to_major if d != dimension]
    rows = max((dims[d] for d in order), default=1)
    if rows < MINIMUM_ROWS:
        return fewer(rows, "rows", MINIMUM_ROWS)
    if lanes < MINIMUM_LANES:
        return f"scratch memory has room for {room} rows side by side, fewer than {MINIMUM_LANES}"
    work, most = length * (1 + vectors), MAXIMUM_PASS_COST * lanes * passes_for(keys, length)
    if work > most:
        return more(work, "vectors, positions counted, for an element", most)
    lanes, vectors = _lanes(sizes, facts.vector_bits, room)
    free = [d for d in order if d not in numbered[:-1]]
    along = next((d for d in free if dims[d] >= 2 * lanes), max(free, key=lambda d: dims[d]))
    if dims[along] < MINIMUM_ROWS:
        along = -1
    window = min(MAXIMUM_WINDOW, facts.processor.vector_registers // vectors - 2)
    return Tile(keys, along, lanes, max(1, window), alone)


def _lanes(sizes: Sequence[int], vector_bits: int, room: int) -> tuple[int, int]:
    """(Rows side by side, vectors of a position.) sizes: bytes of the key and of what lies beside it, of one row."""
    lanes = max(MINIMUM_LANES, vector_bits // (8 * sizes[0]))
    while lanes > room:
        lanes //= 2
    return lanes, sum(max(1, 8 * size * lanes // vector_bits) for size in sizes)


def passes_for(keys: Keys, length: int) -> int:
    """How many passes a sort by digits would take."""
    size = keys.bits // 8
    if keys.key.dtype in KEYED_FLOATS or digits_for(keys, length) is None:
        return size
    return min(size, INTEGER_PASSES)


def operand_of(keys: Keys) -> int:
    """The operand whose bits the keys tell; -1 if there is none."""
    if keys.key not in keys.body.parameters:
        return -1
    dtype = keys.key.dtype
    if dtype in KEYED_FLOATS:
        told = not keys.partial
    else:
        told = dtype is DType.PRED or dtype.bits == keys.bits
    return keys.body.parameters.index(keys.key) // 2 if told else -1


class Abreast:
    """Sorts the rows of all results by tiles. starts: the numbers of their first elements in sorted rows."""

    def __init__(self, e: Elemental, node: Node, results: Sequence[Buffer], starts: Sequence[int], tile: Tile):
        self.e, self.b, self.node, self.results, self.starts, self.tile = e, e.b, node, results, starts, tile
        self.keys, self.lanes = tile.keys, tile.lanes
        self.dimension = node.attributes["dimensions"][0]
        self.length = node.inputs[0].dims[self.dimension]
        sizes = [r.dims[self.dimension] for r in results]
        self.wanted = max(start + size for start, size in zip(starts, sizes, strict=True))
        self.index: dict[int, Index] = dict.fromkeys(range(len(results[0].dims)), 0)
        self.arrays: list[tuple[Pointer, ir.Type, int]] = []  # the keys, then what is held: (memory, type, bytes)
        self.numbers: dict[int, list[int]] = {}  # operand → its arrays, one for each part
        self.steps: Steps | None = None

    def emit(self, steps: Steps | None) -> None:
        b, self.steps = self.b, steps
        self.take()
        for first, count, whole in self.stretches(steps):
            with b.loop(0, count, self.lanes, unroll=Unroll.NONE) as loop:
                place, left = b.add(first, loop.index), b.sub(count, loop.index)
                self.by_count(left, whole, partial(self.load, place))
                self.make_keys()
                self.sort()
                if self.tile.alone >= 0:
                    self.make_elements()
                self.by_count(left, whole, partial(self.store, place))

    def take(self) -> None:
        """Name the places of the arrays in scratch memory."""
        b, t = self.b, self.b.types
        held = [(self.keys.type(self.e), self.keys.bits // 8)]
        for k, x in enumerate(self.node.inputs):
            self.numbers[k] = [0]
            if k != self.tile.alone:
                self.numbers[k] = [len(held) + n for n in range(parts(x.dtype))]
                held += [(raw_type(t, x.dtype), x.dtype.bytes // parts(x.dtype))] * parts(x.dtype)
        starts = [0]
        for _, size in sorted(held, key=lambda array: -array[1]):  # the widest first, so that vectors are aligned
            starts.append(starts[-1] + self.length * self.lanes * size)
        base = self.e.scratch.take(b, starts[-1])
        order = sorted(range(len(held)), key=lambda n: -held[n][1])
        for n, (type, size) in enumerate(held):
            self.arrays.append((b.pointer(base, starts[order.index(n)], t.i8), type, size))

    def stretches(self, steps: Steps | None) -> Iterator[tuple[Index, Index, bool]]:
        """Loops over all dimensions but that of the rows: (the first row, how many, whether all tiles are whole)."""
        b, dims, along = self.b, self.results[0].dims, self.tile.along
        inside = () if steps is None else steps.dimensions
        order = [d for d in reversed(self.results[0].shape.minor_to_major) if d not in (self.dimension, along)]
        if steps is None or (along >= 0 and along not in inside):
            with outer_loops(b, steps, inside, dims, order) as places:
                self.index |= places
                yield 0, dims[along], dims[along] % self.lanes == 0
            return
        order = [d for d in order if d not in inside]
        if along < 0 or len(inside) == 1:
            whole = steps.partition.least % self.lanes == steps.partition.extent % self.lanes == 0
            with outer_loops(b, None, (), dims, order) as places:
                self.index |= places
                yield steps.begin, b.sub(steps.end, steps.begin), whole
            return
        for numbered, first, count in neighbours(b, steps, [dims[d] for d in inside]):
            self.index |= zip(inside, numbered, strict=False)
            with outer_loops(b, None, (), dims, order) as places:
                self.index |= places
                yield first, count, isinstance(count, int) and count % self.lanes == 0

    def at(self, position: Index, row: Index) -> tuple[Index, ...]:
        """The index of an element."""
        self.index[self.dimension] = position
        if self.tile.along >= 0:
            self.index[self.tile.along] = row
        elif self.steps is not None:
            inside = self.steps.dimensions
            sizes = [self.results[0].dims[d] for d in inside]
            self.index |= zip(inside, positions_of(self.b, row, sizes), strict=True)
        return tuple(self.index.values())

    def by_count(self, left: Index, whole: bool, body: Callable[[Index], None]) -> None:
        """Code for a tile's number of rows: a constant, or what is left."""
        if whole:
            body(self.lanes)
            return
        b = self.b
        branch = b.branch(b.compare_integers("sge", b.materialize(left), b.materialize(self.lanes)), [])
        with branch.side(0):
            body(self.lanes)
        with branch.side(1):
            body(left)

    def load(self, first: Index, lanes: Index) -> None:
        """Fill the tile with the elements of rows; of what the keys tell, into their places."""
        b = self.b
        for k, x in enumerate(self.node.inputs):
            with self.positions(self.length, lanes, x if x.writer is None else self.results[k]) as (position, lane):
                values = flatten(self.e.value(x, self.at(position, b.add(first, lane)), raw=True))
                for n, value in zip(self.numbers[k], values, strict=True):
                    _, type, size = self.arrays[n]
                    b.store(b.bitcast(value, type), self.place(n, position, lane), size)

    @contextmanager
    def positions(self, count: int, lanes: Index, outside: Buffer) -> Iterator[tuple[Index, Index]]:
        """Loops over positions and lanes. Those of all lanes are made of vectors, where an array outside has such."""
        b = self.b
        vectors = isinstance(lanes, int) and self.tile.along >= 0 and outside.strides[self.tile.along] == 1
        with (
            b.loop(0, count, unroll=Unroll.NONE) as loop,
            b.loop(0, lanes, unroll=Unroll.ANY if vectors else Unroll.DONE) as each,
        ):
            yield loop.index, each.index

    def make_keys(self) -> None:
        """Compute the keys, signed, of what is in the tile."""
        b, inputs = self.b, self.node.inputs
        with b.loop(0, self.length * self.lanes, unroll=Unroll.LEAN) as loop:
            element: list[Scalar] = []
            for k, x in enumerate(inputs):
                values = [b.bitcast(self.read(n, loop.index), raw_type(b.types, x.dtype)) for n in self.numbers[k]]
                element.append(unflatten(values, x.dtype))
            key = b.binary("xori", self.keys.unsigned(self.e, element), 1 << (self.keys.bits - 1))
            b.store(key, self.place(0, 0, loop.index), self.arrays[0][2])

    def make_elements(self) -> None:
        """Replace the keys, if there is nothing besides them, by the elements that have them."""
        b = self.b
        with b.loop(0, min(self.wanted, self.length) * self.lanes, unroll=Unroll.LEAN) as loop:
            told = self.told(self.read(0, loop.index), self.node.inputs[self.tile.alone].dtype)
            b.store(told, self.place(0, 0, loop.index), self.arrays[0][2])

    def place(self, n: int, position: Index, lane: Index = 0) -> Pointer:
        b, (memory, type, _) = self.b, self.arrays[n]
        return b.pointer(memory, b.add(b.mul(position, self.lanes), lane), type)

    def read(self, n: int, lane: Index) -> Value:
        """A scalar of an array. lane: counted over all positions."""
        return self.b.load(self.place(n, 0, lane), self.arrays[n][1], self.arrays[n][2])

    # The network -----------------------------------------------------------------------------------------------------

    def sort(self) -> None:
        """Sort the first elements of each row that are wanted. Keys are signed here."""
        b, n, window = self.b, self.length, self.tile.window
        turns = min(-(-self.wanted // window), n // window)
        if turns and n > 2 * window:
            with b.loop(0, turns, unroll=Unroll.DONE) as loop:
                start = b.mul(loop.index, window)
                held = self.ordered([self.fetch(n - window + k) for k in range(window)])
                flat = [v for vectors in held for v in vectors]
                count = len(self.arrays)
                with b.loop(0, b.sub(n - window, start), 1, flat, Unroll.DONE) as steps:
                    held = [steps.carried[k : k + count] for k in range(0, len(flat), count)]
                    position = b.sub(n - window - 1, steps.index)
                    last = self.fetch(position)
                    for k in range(window):
                        held[k], last = self.exchanged(last, held[k])
                    self.put(b.add(position, window), last)
                    steps.next = [v for vectors in held for v in vectors]
                for k in range(window):
                    self.put(b.add(start, k), steps.values[k * count : (k + 1) * count])
            done = turns * window
        else:
            done = 0
        if done < min(n, self.wanted):
            for k, vectors in enumerate(self.ordered([self.fetch(k) for k in range(done, n)])):
                self.put(done + k, vectors)

    def ordered(self, held: list[Sequence[Value]]) -> list[Sequence[Value]]:
        """Few positions in order, by exchanges of neighbours."""
        for end in range(len(held) - 1, 0, -1):
            for k in range(end):
                held[k], held[k + 1] = self.exchanged(held[k], held[k + 1])
        return held

    def exchanged(self, first: Sequence[Value], second: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """Two positions, the first before the second, in order."""
        b = self.b
        x, y = first[0], second[0]
        if len(first) == 1:
            return [b.op("arith.minsi", x, y)], [b.op("arith.maxsi", x, y)]
        flags = b.vector(self.lanes, b.types.i1)
        turned = b.op("arith.cmpi", x, y, type=flags, attributes=b.types.compare_integer["sgt"])
        pairs = list(zip(first, second, strict=True))
        return [b.select(turned, q, p) for p, q in pairs], [b.select(turned, p, q) for p, q in pairs]

    def fetch(self, position: Index) -> list[Value]:
        b = self.b
        return [
            b.load(self.place(n, position), b.vector(self.lanes, type), self.alignment(size))
            for n, (_, type, size) in enumerate(self.arrays)
        ]

    def put(self, position: Index, vectors: Sequence[Value]) -> None:
        for n, (value, (_, _, size)) in enumerate(zip(vectors, self.arrays, strict=True)):
            self.b.store(value, self.place(n, position), self.alignment(size))

    def alignment(self, size: int) -> int:
        return min(POOL_ALIGNMENT, self.lanes * size)

    # The results -----------------------------------------------------------------------------------------------------

    def store(self, first: Index, lanes: Index) -> None:
        b = self.b
        for k, (result, start) in enumerate(zip(self.results, self.starts, strict=True)):
            with self.positions(result.dims[self.dimension], lanes, result) as (position, lane):
                place = b.add(b.mul(b.add(position, start), self.lanes), lane)
                values = [b.bitcast(self.read(n, place), raw_type(b.types, result.dtype)) for n in self.numbers[k]]
                self.e.store(result, self.at(position, b.add(first, lane)), unflatten(values, result.dtype))

    def told(self, key: Value, dtype: DType) -> Value:
        """The bits of the element that has a key."""
        b, top = self.b, 1 << (self.keys.bits - 1)
        if self.keys.greater:
            key = b.binary("xori", key, -1)
        if dtype in KEYED_FLOATS:  # the signed key has the sign of the number
            mask = b.binary("shrui", b.binary("shrsi", key, self.keys.bits - 1), 1)
            return b.binary("xori", key, mask)
        return key if dtype.is_signed else b.binary("xori", key, top)
