"""Short rows side by side: lane k of a vector belongs to the k-th row of a block, so that vectors are full and what is
computed once a row is a vector, too. One by one, rows of ten elements fill two thirds of a vector or less.

A block is read into memory on the stack, column by column, and results go from there to their place; four by four, they
are transposed in registers. Rows that are left over are copied into a block of their own: every row is computed alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice

from mlir import ir

from ...hlo.dtypes import DType
from ...hlo.opclasses import EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Builder, Index, Unroll, Value
from ..core.elements import Scalar, flatten, parts, raw_type
from ..core.graph import Buffer, Node, is_rounded_once
from ..core.memory import DYNAMIC
from ..core.slots import Slots
from ..loops.elemental import Elemental, Indices, load_element, store_element
from ..loops.form import Answer, Fits, fewer
from ..loops.ranges import Steps, bounds
from ..loops.reduced import only_op
from ..loops.row_graph import Role, RowGraph, first_of
from ..loops.squares import unpacked
from ..loops.view import Subject, View
from ..reductions.extremum import MINIMUM_TRIPLE_ELEMENTS, extremum_of
from ..reductions.reduce import Running
from .row_walks import ONE_INSTRUCTION, Rows, Walk
from .rows import RowKernel

MINIMUM_ROW_ELEMENTS, MAXIMUM_ROW_ELEMENTS = 4, 33
"""Elements of a row. Of fewer there is no square; more are added up in several sums (BLOCK_SUM of long_sums.py)."""

SQUARE_SIDE = 4
"""Rows and columns that change places within 128 bits."""

BLOCK_VECTORS = 2
"""Of a block: with one, its maximum waits for itself, which was a tenth of the time of a softmax."""

ELEMENTS = frozenset({DType.F32, DType.BF16, DType.F16})
"""Of rows. Narrow ones have 32 bits on the stack."""


@dataclass(frozen=True, slots=True)
class Abreast:
    """Rows, with how many lie side by side."""

    rows: Rows
    lanes: int


def fits(view: View, subject: Subject) -> Answer:
    """Of many short rows, of elements that can be side by side, which are faster that way."""
    graph, results, lanes = subject.rows, subject.results, BLOCK_VECTORS * view.facts.vector_bits // 32
    if isinstance(graph, str):
        return graph
    if view.facts.by_element or not graph.plain:
        return "elements are not side by side" if view.facts.by_element else "arrays are read elsewhere than in the row"
    if not MINIMUM_ROW_ELEMENTS <= graph.length <= MAXIMUM_ROW_ELEMENTS:
        return f"rows of {graph.length:,} elements, not {MINIMUM_ROW_ELEMENTS} to {MAXIMUM_ROW_ELEMENTS}"
    if graph.count < lanes:
        return fewer(graph.count, "rows", lanes)
    reason = _why_not_side_by_side(graph, results) or _why_not_faster(graph, results)
    return reason or Fits(Abreast(Rows.of(graph, results, view.in_place), lanes), graph.takes(view.partition))


def _why_not_side_by_side(graph: RowGraph, results: Sequence[Buffer]) -> str:
    """Why values cannot be, a lane for each row; empty if they can."""
    roles = graph.roles.items()
    other = next((x for x, r in roles if (x.writer is None or x in results) and not _is_taken(x, r)), None)
    if other is not None:
        return f"lanes do not hold {other.dtype.value}"
    if any(_is_read_anywhere(x) for x, role in roles if role is not Role.COLUMN):
        return "a constant array has no elements for lanes without a row"
    reduced = any(x.writer and x.writer.opcode is Op.REDUCE and role is Role.FULL for x, role in roles)
    return "an element of a row is a reduction" if reduced else ""


def only_reduction(results: Sequence[Buffer]) -> Node | None:
    """The reduction that is all of a kernel's results, with one output; None for other kernels."""
    node = first_of(results[0]).writer if len(results) == 1 else None
    return node if node is not None and node.opcode is Op.REDUCE and len(node.outputs) == 1 else None


def _why_not_faster(graph: RowGraph, results: Sequence[Buffer]) -> str:
    """Why rows one by one are as fast; empty if they are not: with a function of each element, all but those that fill
    long vectors; with none, those that end within a short vector.
    """
    node = only_reduction(results)
    if node is not None:
        return (
            fewer(graph.count, "rows", MINIMUM_ALONE_ROWS)
            if graph.count < MINIMUM_ALONE_ROWS
            else _why_not_waiting(node, graph.length)
        )
    full = [x for x, role in graph.roles.items() if role is Role.FULL]
    bytes = {graph.length * x.dtype.bytes for x in full if x.writer is None or x in results}
    if any(x.writer is not None and x.writer.opcode in EXPENSIVE - ONE_INSTRUCTION for x in full):
        return "" if any(n % FILLED_BYTES for n in bytes) else f"rows of {max(bytes, default=0)} bytes fill vectors"
    some = any(n > SHORT_VECTOR_BYTES and n % SHORT_VECTOR_BYTES for n in bytes)
    return "" if some else f"rows of {max(bytes, default=0)} bytes end with a vector, and elements are cheap"


def _why_not_waiting(node: Node, length: int) -> str:
    """Why elements of a row that is only reduced do not wait for one another; empty if they do: there are no vectors of
    them.
    """
    if length < MINIMUM_ALONE_ELEMENTS or only_op(node) is None:
        return (
            fewer(length, "elements of a row", MINIMUM_ALONE_ELEMENTS)
            if length < MINIMUM_ALONE_ELEMENTS
            else "it is no single operation"
        )
    if extremum_of(node) is not None:
        return (
            ""
            if length < MINIMUM_TRIPLE_ELEMENTS
            else f"rows of {length} elements to compare, {MINIMUM_TRIPLE_ELEMENTS} or more"
        )
    operand = node.inputs[0]
    waits = operand.dtype in ELEMENTS - {DType.F32} and not is_rounded_once(operand, node.attributes["dimensions"])
    return "" if waits else f"LLVM adds up {operand.dtype.value} in vectors"


def emit(e: Elemental, subject: Subject, rows: Abreast, steps: Steps | None) -> None:
    AbreastRows(e, rows.rows, subject.results, rows.lanes).emit(steps)


MINIMUM_ALONE_ELEMENTS = 9
"""Elements of such a row. Fewer are unrolled, and LLVM makes vectors of several rows."""

MINIMUM_ALONE_ROWS = 1536
"""Least number of such rows: their code takes LLVM three times as long, which fewer rows do not give back."""

SHORT_VECTOR_BYTES = 16
"""Bytes of a short vector."""

FILLED_BYTES = 128
"""Bytes of vectors of all lengths that a row fills."""


def _is_taken(x: Buffer, role: Role) -> bool:
    return role is Role.COLUMN or (x.dtype in ELEMENTS if role is Role.FULL else not x.dtype.is_complex)


def _is_read_anywhere(x: Buffer) -> bool:
    """Whether it is a constant array, which has no elements for lanes without a row."""
    return x.writer is not None and not x.writer.inputs and x.shape.size != 1


@dataclass(frozen=True, eq=False, slots=True)
class Columns:
    """A block of rows on the stack: the elements of a column for all lanes, then the next column."""

    b: Builder
    dtype: DType
    lanes: int
    memory: Value

    @staticmethod
    def made(b: Builder, dtype: DType, lanes: int, length: int) -> Columns:
        return Columns(b, dtype, lanes, b.alloca(_held(b, dtype), lanes * length, 64))

    def read(self, at: Index) -> Value:
        """A raw element."""
        value = load_element(self.b, self.memory, DType.F32 if self.is_wide else DType.U32, at)
        assert isinstance(value, ir.Value)
        return value if self.is_wide else self.b.trunci(value, self.b.types.i16)

    def write(self, at: Index, value: Scalar) -> None:
        (raw,) = flatten(value)
        wide = raw if self.is_wide else self.b.extui(raw, self.b.types.i32)
        store_element(self.b, self.memory, DType.F32 if self.is_wide else DType.U32, at, wide)

    @property
    def is_wide(self) -> bool:
        return self.dtype is DType.F32

    def take(self, rows: Value, length: int) -> None:
        """Read the rows of a block in memory."""
        b = self.b
        part = b.vector(SQUARE_SIDE, raw_type(b.types, self.dtype))
        for first, places in self._squares(rows, length):
            vectors = [self._widened(b.joined([b.load(x, part, self.dtype.bytes) for x in some])) for some in places]
            for k, column in enumerate(self._turned(vectors)):
                b.store(column, self._column(first, k), 64)

    def give(self, rows: Value, length: int) -> None:
        """Write the rows of a block to memory."""
        b, type = self.b, self.b.vector(self.lanes, _held(self.b, self.dtype))
        for first, places in self._squares(rows, length):
            columns = [b.load(self._column(first, k), type, 64) for k in range(SQUARE_SIDE)]
            for whole, some in zip(self._turned(columns), places, strict=True):
                if not self.is_wide:
                    whole = b.op("arith.trunci", whole, type=b.vector(self.lanes, b.types.i16))
                for k, place in enumerate(some):
                    b.store(b.shuffled(range(SQUARE_SIDE * k, SQUARE_SIDE * (k + 1)), whole), place, self.dtype.bytes)

    def _turned(self, vectors: Sequence[Value]) -> list[Value]:
        return unpacked(self.b, vectors, 1, SQUARE_SIDE)

    def _widened(self, vector: Value) -> Value:
        wide = self.b.vector(self.lanes, self.b.types.i32)
        return vector if self.is_wide else self.b.op("arith.extui", vector, type=wide)

    def _column(self, first: Index, k: int) -> Value:
        b = self.b
        return b.pointer(self.memory, b.mul(b.add(first, k), self.lanes), _held(b, self.dtype))

    def _squares(self, rows: Value, length: int) -> Iterator[tuple[Index, list[list[Value]]]]:
        """A loop over groups of columns: (the first, the places of each row's part: of rows k, k + SQUARE_SIDE, …
        for each k). The last group may overlap the one before.
        """
        b, element = self.b, raw_type(self.b.types, self.dtype)
        with b.loop(0, length, SQUARE_SIDE, unroll=Unroll.DONE) as loop:
            first: Index = loop.index
            if length % SQUARE_SIDE:
                first = b.least(first, length - SQUARE_SIDE)
            yield (
                first,
                [
                    [b.pointer(rows, b.add(first, row * length), element) for row in range(k, self.lanes, SQUARE_SIDE)]
                    for k in range(SQUARE_SIDE)
                ],
            )


def _held(b: Builder, dtype: DType) -> ir.Type:
    return b.types.f32 if dtype is DType.F32 else b.types.i32


class AbreastRows(RowKernel):
    """Emits one row kernel, a block of rows at a time."""

    def __init__(self, e: Elemental, rows: Rows, results: Sequence[Buffer], lanes: int):
        super().__init__(e, rows, results)
        graph = rows.graph
        self.lanes = lanes
        self.first: Index = 0  # row of the block
        self.lane: Index = 0
        self.at: Index = 0  # the current element in arrays of columns
        self.inputs = [x for x, role in graph.roles.items() if x.writer is None and role is not Role.COLUMN]
        self.blocks: dict[Buffer, Columns] = {}  # of operands, results, and what is kept between walks
        self.places: dict[Buffer, Value] = {}  # the block's part of arrays in memory
        self.numbers: dict[Buffer, Value] = {}  # of rows, for the walks
        self.totals: list[tuple[Running, Slots]] = []

    def emit(self, steps: Steps | None = None) -> None:
        b, length = self.b, self.graph.length
        begin, end = bounds(b, steps, self.graph.count)
        for x in (*self.inputs, *self.results):
            if self.graph.roles[x] is Role.FULL:
                self.blocks[x] = Columns.made(b, x.dtype, self.lanes, length)
        with b.loop(begin, end, self.lanes, unroll=Unroll.NONE) as block:
            self.first = block.index
            left = b.sub(end, self.first)
            whole = steps is None and self.graph.count % self.lanes == 0
            few = None if whole else b.compare_integers("slt", b.materialize(left), b.materialize(self.lanes))
            self._find(few, left)
            for x in self.inputs:
                if x in self.blocks:
                    self.blocks[x].take(self.places[x], length)
            for step in self.plan.walks:
                self._walk(step)
            if any(self.graph.roles[x] is Role.ROW for x in self.results):
                with self._lanes():
                    self._recall_rows()
                    self.write_numbers()
            for x in self.results:
                if x in self.blocks:
                    self.blocks[x].give(self.places[x], length)
            if few is not None:
                with b.branch(few, []).side(0):
                    for x in self.results:
                        self._copy(self._part(x), self.places[x], x, left)

    # Memory of a block -----------------------------------------------------------------------------------------------

    def _find(self, few: Value | None, left: Index) -> None:
        """Find the places of the block in arrays; if there are `few` rows left, in copies."""
        b, arrays = self.b, list(dict.fromkeys((*self.inputs, *self.results)))
        if few is None:
            self.places = {x: self._part(x) for x in arrays}
            return
        copies = [b.alloca(raw_type(b.types, x.dtype), self.lanes * self._width(x), 64) for x in arrays]
        types = [self._part_type(x) for x in arrays]
        branch = b.branch(few, types)
        with branch.side(0) as found:
            for x, copy in zip(arrays, copies, strict=True):
                if x.writer is None:
                    self._clear(copy, x)
                    self._copy(copy, self._part(x), x, left)
                found.append(b.row(copy, 0, raw_type(b.types, x.dtype), self.lanes * self._width(x)))
        with branch.side(1) as found:
            found += [self._part(x) for x in arrays]
        self.places = dict(zip(arrays, branch.values, strict=True))

    def _width(self, x: Buffer) -> int:
        return self.graph.length if self.graph.roles[x] is Role.FULL else 1

    def _part(self, x: Buffer) -> Value:
        b, width = self.b, self._width(x)
        return b.row(
            self.pointers[x.argument], b.mul(self.first, width), raw_type(b.types, x.dtype), self.lanes * width
        )

    def _part_type(self, x: Buffer) -> ir.Type:
        layout = ir.StridedLayoutAttr.get(DYNAMIC, [1])
        return ir.MemRefType.get([self.lanes * self._width(x)], raw_type(self.b.types, x.dtype), layout)

    def _clear(self, copy: Value, x: Buffer) -> None:
        """Zeros for lanes without a row."""
        b, type = self.b, raw_type(self.b.types, x.dtype)
        with b.loop(0, self.lanes * self._width(x), unroll=Unroll.NONE) as loop:
            zero = b.constant(0.0 if b.is_float(type) else 0, type)
            b.store(zero, b.pointer(copy, loop.index, type), x.dtype.bytes)

    def _copy(self, target: Value, source: Value, x: Buffer, left: Index) -> None:
        b, type = self.b, raw_type(self.b.types, x.dtype)
        with b.loop(0, b.mul(left, self._width(x)), unroll=Unroll.NONE) as loop:
            value = b.load(b.pointer(source, loop.index, type), type, x.dtype.bytes)
            b.store(value, b.pointer(target, loop.index, type), x.dtype.bytes)

    # Walks -----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _lanes(self) -> Iterator[None]:
        """A loop over the rows of the block. LLVM makes vectors of all of it."""
        with self.b.loop(0, self.lanes, unroll=Unroll.VECTORIZED) as loop:
            self.lane = loop.index
            self.row_number = self.b.add(self.first, self.lane)
            self.row = [self.row_number]
            yield

    def _walk(self, step: Walk) -> None:
        b = self.b
        running = [Running(self, node, three=False) for node in step.reductions]
        state: list[Slots] = []
        numbers = step.numbers
        with self._lanes():
            self._recall_rows()
            for x in numbers:
                if x not in self.numbers:
                    self.numbers[x] = self._array(raw_type(b.types, x.dtype), parts(x.dtype))
                    value = self.value(x, self.place(x), raw=True)
                    store_element(b, self.numbers[x], x.dtype, self.lane, value)
            for each in running:
                opened = self.opened(each)
                state.append(Slots.for_values(b, opened, self.lanes))
                state[-1].write(self.lane, opened)
        with b.loop(0, self.graph.length, unroll=Unroll.NONE) as column:
            self.column, self.column_number = [column.index], column.index
            with self._lanes():
                self.at = b.add(b.mul(column.index, self.lanes), self.lane)
                self._recall_numbers(numbers)
                for x in self.inputs:
                    if x in self.blocks:
                        b.remember((x, self.place(x), True), self.blocks[x].read(self.at))
                self.recall_held(step)
                remaining = iter(self.combined(running, [v for slots in state for v in slots.read(self.lane)]))
                for slots in state:
                    slots.write(self.lane, list(islice(remaining, len(slots.types))))
                self.keep_and_write(step)
        self.totals += zip(running, state, strict=True)

    def _array(self, type: ir.Type, count: int) -> Value:
        return self.b.alloca(type, self.lanes * count, 64)

    def _recall_rows(self) -> None:
        """Let what is known of the current row be known: elements in memory, and results of reductions."""
        b = self.b
        for x in self.inputs:
            if x not in self.blocks:
                value = load_element(b, self.places[x], x.dtype, self.lane)
                b.remember((x, self.place(x), True), value)
        for running, slots in self.totals:
            self.bind(running.node, running.close(slots.read(self.lane)))
        self._recall_numbers(list(self.numbers))

    def _recall_numbers(self, numbers: Sequence[Buffer]) -> None:
        for x in numbers:
            self.b.remember((x, self.place(x), True), load_element(self.b, self.numbers[x], x.dtype, self.lane))

    def _read(self, buffer: Buffer) -> Scalar:
        known = buffer if buffer in self.blocks or buffer in self.stacks else self.plan.written[buffer]
        if known in self.blocks:
            return self.blocks[known].read(self.at)
        return load_element(self.b, self.stacks[known], known.dtype, self.at)

    def _keep(self, buffer: Buffer, value: Scalar) -> None:
        if buffer.dtype in ELEMENTS:
            if buffer not in self.blocks:
                self.blocks[buffer] = Columns.made(self.b, buffer.dtype, self.lanes, self.graph.length)
            self.blocks[buffer].write(self.at, value)
            return
        super()._keep(buffer, value)

    def kept_at(self) -> Index:
        return self.at

    def row_array(self, type: ir.Type, count: int) -> Value:
        return self._array(type, count)

    def store(self, buffer: Buffer, index: Indices, value: Scalar) -> None:
        """Store an element of the current row: in its block, or that of the row itself."""
        if buffer in self.blocks:
            self.blocks[buffer].write(self.at, value)
        else:
            store_element(self.b, self.places[buffer], buffer.dtype, self.lane, value)
