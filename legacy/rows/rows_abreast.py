"""Rows of few elements side by side: each lane is of another row, so that a walk over the columns computes many at
once. One row after the other, much of a vector is idle, and what is computed once a row is scalar.

Blocks of rows are transposed through registers into arrays on the stack, column by column, and results back. A row is
computed in the order of its columns, whichever block it is in. What is left of the rows at the end is copied into a
block of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opclasses import EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Code, IndexValue, Unroll
from ..core.registers import FLOAT, HALF, I16, I32, flatten, memory_type, shuffled
from ..core.stack import StackArray, alloca
from ..core.view import View
from ..loops.elemental import Elemental
from ..loops.form import Fit, Results, Task, at_least, between, form, known, needs
from ..loops.leaf import Leaf
from ..loops.memory import Pointer, address, load, store
from ..loops.ranges import Steps, bounds
from ..numerics.narrow import NARROW
from ..reductions.reduce import Reducer, Reduction
from .row_graph import Role, RowGraph
from .rows import (
    SINGLE,
    RowElemental,
    Walk,
    in_whole_rows,
    is_flat,
    is_light_in_rows,
    over_rows,
    plan_walks,
    rows_of,
    wanted,
    with_role,
)

MINIMUM_LENGTH = 4
"""Elements of a row. Fewer are no square."""

MAXIMUM_LENGTH = 33
"""Longer rows fill vectors by themselves, and their sums are made of parts."""

CHAINS = 2
"""Vectors of a block: while the maximum or sum of one waits for its last step, the other's goes on."""

SIDE = 4
"""Rows and columns of a block that is transposed within 128 bits."""

WIDTHS = {DType.F32: FLOAT, DType.BF16: I32, DType.F16: I32}
"""What holds an element of a block in the transposed arrays: narrow ones as bits, widened."""


@dataclass(frozen=True, slots=True)
class Abreast:
    """lanes: rows of a block."""

    rows: RowGraph
    lanes: int
    walks: tuple[Walk, ...]


def _must_gain(view: View, results: Results, rows: RowGraph) -> None:
    """Raises Unfit if a row kernel does not gain by rows side by side."""
    lanes, grid = CHAINS * view.lanes(32), rows.grid
    needs(not view.by_element, "for a device")
    at_least(lanes, SIDE, "rows of a block")
    between(grid.length, MINIMUM_LENGTH, MAXIMUM_LENGTH, "elements of a row")
    at_least(grid.count, lanes, "rows")
    for dtype, role in _in_memory(view, results.leaves, rows):
        needs(dtype in WIDTHS if role is Role.FULL else not dtype.is_complex, f"{dtype.value} cannot be turned")
    made = any(i not in view.leaves and not i.operands and i.shape.size != 1 for i in _by_row(rows))
    needs(not made and is_flat(rows, view), "something is not read at the current row and column, or made there")
    if is_single(results):
        _single_must_gain(view, results, rows)
    else:
        _many_must_gain(view, results, rows)


def is_single(results: Results) -> bool:
    """Whether a kernel is one reduction, and nothing follows it."""
    return results.alone and results.root.opcode is Op.REDUCE


def _single_must_gain(view: View, results: Results, rows: RowGraph) -> None:
    """LLVM makes scalars of it if a row fills no vector of 16, or if each step rounds and waits for one."""
    reduction, length, count = Reduction.of(view, results.root, apart=False), rows.grid.length, rows.grid.count
    simple = known(reduction.simple, "the region is no single operation")
    at_least(length, MINIMUM_REDUCED_LENGTH, "elements that are only reduced of a row")
    at_least(count, MINIMUM_REDUCED_ROWS, "rows that are only reduced")
    if simple.opcode in (Op.MAXIMUM, Op.MINIMUM):
        needs(length < FULL_LENGTH, f"rows of {length} elements fill vectors of {FULL_LENGTH}")
    else:
        needs(reduction.dtype in NARROW and not reduction.in_single, "no step of the reduction rounds")


MINIMUM_REDUCED_LENGTH = 9
"""Elements of a row that is only reduced. Shorter ones are unrolled."""

FULL_LENGTH = 16
"""Elements of a row that is only reduced, of which LLVM makes vectors."""

MINIMUM_REDUCED_ROWS = 2048
"""Such rows at least, for which 15 ms more of compilation pay."""


def _many_must_gain(view: View, results: Results, rows: RowGraph) -> None:
    """Rows one by one take longer with functions of elements, unless they are f32 and whole vectors of all sizes;
    others if their end is within 128 bits, and a row is no part of them.
    """
    found = {array for array in _in_memory(view, results.leaves, rows) if array[1] is Role.FULL}
    sizes = [rows.grid.length * dtype.bytes for dtype, _ in found]
    full = [i for i, role in rows.roles.items() if role is Role.FULL and i in rows.sources]
    if any(i.opcode in EXPENSIVE - SINGLE for i in full):
        needs(any(size % VECTORS for size in sizes), f"rows are multiples of {VECTORS} bytes")
    else:
        gains = any(size > LANE and size % LANE for size in sizes)
        needs(gains, f"rows are multiples of {LANE} bytes, or fewer")


LANE, VECTORS = 16, 128
"""Bytes."""


def _by_row(rows: RowGraph) -> list[Instruction]:
    return [i for i, role in rows.roles.items() if role is not Role.COLUMN]


def _in_memory(view: View, leaves: Sequence[Leaf], rows: RowGraph) -> list[tuple[DType, Role]]:
    """The dtypes and roles of the arrays that are read or written by row."""
    read = [(i.shape.dtype, rows.roles[i]) for i in _by_row(rows) if i in view.leaves]
    return read + [(leaf.shape.dtype, rows.roles[leaf.instruction]) for leaf in leaves]


@dataclass(eq=False, slots=True)
class Columns:
    """A block of rows in an array on the stack, column by column: of each, one element for each lane."""

    code: Code
    dtype: DType
    lanes: int
    space: ir.Value

    @staticmethod
    def new(code: Code, dtype: DType, lanes: int, length: int) -> Columns:
        return Columns(code, dtype, lanes, alloca(code, WIDTHS[dtype], lanes * length))

    def read(self, at: IndexValue) -> ir.Value:
        b = self.code.b
        value = b.load(self._place(at), typ=WIDTHS[self.dtype])
        if self.dtype is DType.F32:
            return value
        bits = b.trunc(value, I16)
        return b.bitcast(bits, HALF) if self.dtype is DType.F16 else bits

    def write(self, at: IndexValue, value: ir.Value) -> None:
        b = self.code.b
        if self.dtype is not DType.F32:
            value = b.zext(b.bitcast(value, I16) if self.dtype is DType.F16 else value, I32)
        self.code.b.store(value, self._place(at))

    def _place(self, at: IndexValue) -> ir.Value:
        return self.code.b.gep(self.space, [self.code.value(at)], inbounds=True, source_etype=WIDTHS[self.dtype])

    def fetch(self, rows: ir.Value, length: int) -> None:
        """Take a block of rows from memory."""
        for first, places in self._pieces(rows, length):
            parts = [[self._load(place) for place in group] for group in places]
            for k, column in enumerate(_turned(self.code.b, [_joined(self.code.b, group) for group in parts])):
                self.code.b.store(column, self._column(first, k), align=4)

    def put(self, rows: ir.Value, length: int) -> None:
        """Write the block to memory."""
        type_ = ir.VectorType(WIDTHS[self.dtype], self.lanes)
        for first, places in self._pieces(rows, length):
            b = self.code.b
            columns = [b.load(self._column(first, k), typ=type_, align=4) for k in range(SIDE)]
            for value, group in zip(_turned(b, columns), places, strict=True):
                bits = value if self.dtype is DType.F32 else b.trunc(value, ir.VectorType(I16, self.lanes))
                for q, place in enumerate(group):
                    part = shuffled(b, bits, range(SIDE * q, SIDE * q + SIDE), bits)
                    b.store(part, place, align=self.dtype.bytes)

    def _column(self, first: IndexValue, k: int) -> ir.Value:
        return self._place(self.code.multiply(self.code.add(first, k), self.lanes))

    def _pieces(self, rows: ir.Value, length: int) -> Iterator[tuple[IndexValue, list[list[ir.Value]]]]:
        """A loop over pieces of SIDE columns: the first column; for each k < SIDE, the places of rows k, k + SIDE, ….
        Where the last ones are fewer, the piece overlaps that before.
        """
        code = self.code
        with code.loop(length, step=SIDE, unroll=Unroll.DONE) as i:
            first = i if length % SIDE == 0 else code.minimum(i, length - SIDE)
            held = [range(k, self.lanes, SIDE) for k in range(SIDE)]
            yield (
                first,
                [
                    [address(code, Pointer(rows), self.dtype, code.add(first, row * length)) for row in group]
                    for group in held
                ],
            )

    def _load(self, place: ir.Value) -> ir.Value:
        b, narrow = self.code.b, self.dtype is not DType.F32
        return b.load(place, typ=ir.VectorType(I16 if narrow else FLOAT, SIDE), align=self.dtype.bytes)


def _joined(b: ir.IRBuilder, parts: Sequence[ir.Value]) -> ir.Value:
    """One vector of several, of 32 bits an element."""
    while len(parts) > 1:
        lanes = range(2 * parts[0].type.count)
        parts = [shuffled(b, x, lanes, y) for x, y in zip(parts[::2], parts[1::2], strict=True)]
    (whole,) = parts
    return b.zext(whole, ir.VectorType(I32, whole.type.count)) if whole.type.element == I16 else whole


def _turned(b: ir.IRBuilder, rows: Sequence[ir.Value]) -> list[ir.Value]:
    """Four vectors whose lanes of 128 bits are the columns of those of the given ones; the same turns them back."""
    count = rows[0].type.count

    def mixed(x: ir.Value, y: ir.Value, places: Sequence[int]) -> ir.Value:
        """In each 128 bits, the elements at these places of both."""
        lanes = [q + p % SIDE + count * (p // SIDE) for q in range(0, count, SIDE) for p in places]
        return shuffled(b, x, lanes, y)

    first, second = ([mixed(rows[k], rows[k + 1], places) for places in (_LOW, _HIGH)] for k in (0, 2))
    return [mixed(x, y, places) for x, y in zip(first, second, strict=True) for places in _PAIRS]


_LOW, _HIGH = (0, 4, 1, 5), (2, 6, 3, 7)
_PAIRS = (0, 1, 4, 5), (2, 3, 6, 7)


class AbreastRows(RowElemental):
    """Emits a row kernel in blocks whose rows are one to a lane of a vector."""

    def __init__(self, e: Elemental, results: Results, given: Abreast):
        rows = given.rows
        super().__init__(e, rows, flat=True)
        self.lanes, self.length, self.walks = given.lanes, rows.grid.length, given.walks
        self.full, self.numbers = (with_role(results, rows, role) for role in (Role.FULL, Role.ROW))
        self.memory = [i for i in _by_row(rows) if i in e.leaves]
        self.first: IndexValue = 0
        self.sources: dict[Instruction, Columns | Pointer] = {}
        self.columns: dict[Instruction, StackArray | Columns] = {}  # computed already
        self.of_rows: dict[Instruction, StackArray] = {}  # numbers of rows that walks read
        self.totals: list[tuple[Reducer, list[StackArray]]] = []

    def emit(self, steps: Steps | None) -> None:
        code, count = self.code, self.rows.grid.count
        made = {leaf: Columns.new(code, leaf.shape.dtype, self.lanes, self.length) for leaf in self.full}
        begin, end = bounds(code, steps, count)
        with code.between(begin, end, self.lanes, unroll=Unroll.NEVER) as block:
            self.first, left = block, code.subtract(end, block)
            rest = None if steps is None and count % self.lanes == 0 else self._is_rest(left)
            targets = self._open(rest, left)
            for step in self.walks:
                self._walk(step, made)
            with self._lane() as lane:
                self._recall_rows(lane)
                values = [leaf.value(self, self.place(leaf.instruction, leaf.shape)) for leaf in self.numbers]
                for leaf, value in zip(self.numbers, values, strict=True):
                    store(code, Pointer(targets[leaf]), leaf.shape.dtype, lane, value)
            for leaf, columns in made.items():
                columns.put(targets[leaf], self.length)
            self._close(rest, left, targets)

    # Memory of a block -----------------------------------------------------------------------------------------------

    def _is_rest(self, left: IndexValue) -> ir.Value:
        return self.code.b.icmp_signed("<", self.code.value(left), self.code.value(self.lanes))

    def _open(self, rest: ir.Value | None, left: IndexValue) -> dict[Leaf, ir.Value]:
        """Read the block's rows; returns where results go. rest: whether there are fewer rows left than lanes."""
        code = self.code
        read = [(self.leaves[i].value, i.shape.dtype, self.rows.roles[i]) for i in self.memory]
        written = [
            (x.pointer(self).value, x.shape.dtype, self.rows.roles[x.instruction]) for x in (*self.full, *self.numbers)
        ]
        arrays = [*read, *written]
        if rest is None:
            places = [self._place_of(*array) for array in arrays]
        else:
            apart = [alloca(code, memory_type(d), self.lanes * self._width(role)) for _, d, role in arrays]
            branch = code.branch(rest)
            for k, (array, copy) in enumerate(zip(arrays, apart, strict=True)):
                if k < len(read):
                    self._fill(copy, array)
                    self._copy(copy, self._place_of(*array), array, left)
            branch.otherwise()
            found = branch.join(tuple(apart), tuple(self._place_of(*array) for array in arrays))
            places = flatten(found)
        for i, place in zip(self.memory, places, strict=False):
            if self.rows.roles[i] is Role.ROW:
                self.sources[i] = Pointer(place)
                continue
            columns = Columns.new(code, i.shape.dtype, self.lanes, self.length)
            columns.fetch(place, self.length)
            self.sources[i] = columns
        return dict(zip((*self.full, *self.numbers), places[len(read) :], strict=True))

    def _close(self, rest: ir.Value | None, left: IndexValue, targets: dict[Leaf, ir.Value]) -> None:
        """Copy what is left of the results to their place."""
        if rest is None:
            return
        with self.code.when(rest):
            for leaf, place in targets.items():
                array = leaf.pointer(self).value, leaf.shape.dtype, self.rows.roles[leaf.instruction]
                self._copy(self._place_of(*array), place, array, left)

    def _width(self, role: Role) -> int:
        return self.length if role is Role.FULL else 1

    def _place_of(self, pointer: ir.Value, dtype: DType, role: Role) -> ir.Value:
        return address(self.code, Pointer(pointer), dtype, self.code.multiply(self.first, self._width(role)))

    def _fill(self, target: ir.Value, array: tuple[ir.Value, DType, Role]) -> None:
        """Zeros, for lanes without a row."""
        _, dtype, role = array
        type_ = ir.IntType(8 * dtype.bytes)
        with self.code.loop(self.lanes * self._width(role), unroll=Unroll.NEVER) as i:
            place = self.code.b.gep(target, [self.code.value(i)], inbounds=True, source_etype=type_)
            self.code.b.store(type_(0), place, align=dtype.bytes)

    def _copy(self, target: ir.Value, source: ir.Value, array: tuple[ir.Value, DType, Role], left: IndexValue) -> None:
        _, dtype, role = array
        type_ = ir.IntType(8 * dtype.bytes)
        with self.code.loop(self.code.multiply(left, self._width(role)), unroll=Unroll.NEVER) as i:
            b = self.code.b
            at = [self.code.value(i)]
            value = b.load(b.gep(source, at, inbounds=True, source_etype=type_), typ=type_, align=dtype.bytes)
            b.store(value, b.gep(target, at, inbounds=True, source_etype=type_), align=dtype.bytes)

    # Walks -----------------------------------------------------------------------------------------------------------

    @contextmanager
    def _lane(self) -> Iterator[IndexValue]:
        """A loop over the block's rows, of which LLVM makes one vector."""
        with self.code.loop(self.lanes, unroll=Unroll.VECTORS) as i:
            self.row = self.code.add(self.first, i)
            yield i

    def _walk(self, step: Walk, made: dict[Leaf, Columns]) -> None:
        code = self.code
        reducers = [Reducer(self, reduce, apart=False) for reduce in step.reduces]
        sums: list[list[StackArray]] = []
        with self._lane() as lane:
            self._recall_rows(lane)
            for number in self._numbers_of(step):
                value = self.value(number, self.place(number))
                if number not in self.of_rows:
                    self.of_rows[number] = StackArray(code, value, self.lanes)
                    self.of_rows[number].write(lane, value)
            for reducer in reducers:
                opened = reducer.open([self.number(init) for init in reducer.inits])
                sums.append([StackArray(code, value, self.lanes) for value in opened])
                for array, value in zip(sums[-1], opened, strict=True):
                    array.write(lane, value)
        with code.loop(self.length, unroll=Unroll.NEVER) as column:
            self.set_column([column])
            with self._lane() as lane:
                at = code.add(code.multiply(column, self.lanes), lane)
                self._recall(step, lane, at)
                for reducer, arrays in zip(reducers, sums, strict=True):
                    values = [self.value(o, self.place(o)) for o in reducer.operands]
                    results = reducer.combine([array.read(lane) for array in arrays], values)
                    for array, value in zip(arrays, results, strict=True):
                        array.write(lane, value)
                self._keep(step, at, made)
        self.totals += zip(reducers, sums, strict=True)

    def _recall_rows(self, lane: IndexValue) -> None:
        """Let what is known of the current row be known: elements in memory, results of reductions, other numbers."""
        for i, source in self.sources.items():
            if isinstance(source, Pointer):
                self.bind(i, self.place(i), load(self.code, source, i.shape.dtype, lane))
        for reducer, arrays in self.totals:
            total = reducer.result(reducer.close([array.read(lane) for array in arrays]))
            self.bind(reducer.instruction, self.place(reducer.instruction), total)
        for number, array in self.of_rows.items():
            self.bind(number, self.place(number), array.read(lane))

    def _recall(self, step: Walk, lane: IndexValue, at: IndexValue) -> None:
        """As above, for the current element. at: its place in the arrays of columns."""
        for number in self._numbers_of(step):
            self.bind(number, self.place(number), self.of_rows[number].read(lane))
        for i, source in self.sources.items():
            if isinstance(source, Columns):
                self.bind(i, self.place(i), source.read(at))
        for i in step.held:
            self.bind(i, self.place(i), self.columns[i].read(at))

    def _keep(self, step: Walk, at: IndexValue, made: dict[Leaf, Columns]) -> None:
        """Keep what later walks need, and the results."""
        for i in step.staged:
            value = self.value(i, self.place(i))
            if i not in self.columns:
                narrow = i.shape.is_array and i.shape.dtype in WIDTHS
                own = StackArray(self.code, value, self.lanes * self.length)
                self.columns[i] = Columns.new(self.code, i.shape.dtype, self.lanes, self.length) if narrow else own
            self.columns[i].write(at, value)
        for leaf in step.written:
            value = leaf.value(self, self.place(leaf.instruction, leaf.shape))
            made[leaf].write(at, value)
            self.columns.setdefault(leaf.instruction, made[leaf])

    def _numbers_of(self, step: Walk) -> list[Instruction]:
        """Values of the row that a walk reads."""
        found = wanted(self.view, self.rows, step)
        sources = [pair for i in self.rows.roles if i in found for pair in self.rows.sources.get(i, ())]
        return list(dict.fromkeys(x for x, role in sources if role is Role.ROW))


@form(
    "rows/abreast",
    lambda e, results, given, steps: AbreastRows(e, results, given).emit(steps),
    MINIMUM_LENGTH="elements of a row",
    MAXIMUM_LENGTH="elements of a row",
    MINIMUM_REDUCED_LENGTH="elements of a row that is only reduced",
    MINIMUM_REDUCED_ROWS="rows that are only reduced",
)
def abreast(task: Task) -> Fit:
    """Many short rows side by side: each lane is of another row.

    A single reduction is a row kernel, too, if it gains by that.
    """
    view, results = task.view, task.results
    rows = rows_of(task, single=True)
    _must_gain(view, results, rows)
    walks = tuple(plan_walks(view, with_role(results, rows, Role.FULL), rows))
    found, light = Abreast(rows, CHAINS * view.lanes(32), walks), is_light_in_rows(rows, ())
    return Fit(found, in_whole_rows(rows, task), over_rows(rows), light=light)
