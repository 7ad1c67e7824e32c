"""Row kernels (row_graph.py): one loop over rows, and in it one walk over the row per level of reductions.

Results of reductions stay in registers. Expensive values that two walks need are kept in an array on the stack, or
read back if they are results. If all arrays are read at the current row and column, one counter each is enough for rows
and columns; otherwise each dimension has a loop.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from ...codegen.processors import Processor
from ...hlo.ir import Instruction
from ...hlo.opclasses import ELEMENTWISE, EXPENSIVE
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, field
from ...hlo.shapes import Shape
from ..core.builder import Code, IndexValue, Loop, Once, Unroll
from ..core.registers import Register, flatten
from ..core.stack import StackArray
from ..core.view import View
from ..loops.elemental import Elemental, Index, Reads
from ..loops.fetch import streams_of
from ..loops.form import Fit, Results, Task, form, needs
from ..loops.leaf import Leaf
from ..loops.memory import address, load
from ..loops.nest import SHORTEST
from ..loops.ranges import Steps, scaled
from ..numerics.elementwise import EMIT
from ..reductions.long_sums import PartialSums, nothing
from ..reductions.reduce import Reducer, Reduction
from ..reductions.sum_run import Made, SumRun, is_run, made_of
from .row_graph import PASSED, Role, RowGraph, row_graph

STAGED_BYTES = Processor().second_cache_bytes // 4
"""Bytes of stack for values of a row that several walks need: with the operands, half of the second cache."""


def find_rows(view: View, leaves: Sequence[Leaf]) -> RowGraph:
    """The roles of a row kernel's values; a single reduction is one, too. Raises Unfit if it is none."""
    return row_graph(list(dict.fromkeys(leaf.instruction for leaf in leaves)), view.leaves, single=True)


@dataclass(frozen=True, slots=True)
class Walk:
    """One walk over the row. written: results; staged: values to keep; held: values kept by earlier walks."""

    reduces: list[Instruction]
    written: list[Leaf] = field(default_factory=list)
    staged: list[Instruction] = field(default_factory=list)
    held: list[Instruction] = field(default_factory=list)

    @property
    def ends(self) -> list[Instruction]:
        ends = [o for r in self.reduces for o in r.operands[: len(r.operands) // 2]]
        return ends + [leaf.instruction for leaf in self.written] + self.staged


@dataclass(frozen=True, slots=True)
class Run:
    """A sum of a row that a function which kernels share computes. ahead: whether what follows is fetched."""

    made: Made
    ahead: bool


@dataclass(frozen=True, slots=True)
class RowWalks:
    """flat: whether one counter each is enough for rows and columns. runs: of each walk, if it is one."""

    rows: RowGraph
    flat: bool
    walks: tuple[Walk, ...]
    runs: tuple[Run | None, ...]


def rows_of(task: Task, single: bool = False) -> RowGraph:
    """The roles, unless a reduction is the only result. single: a reduction of one array may be. Raises Unfit."""
    results = task.results
    only = len(set(results.roots)) == 1 and results.root.opcode is Op.REDUCE
    needs(not only or (single and results.alone), "a reduction is the only result")
    assert isinstance(task.rows, RowGraph)
    return task.rows


def in_whole_rows(rows: RowGraph, task: Task) -> bool:
    return task.partition is None or rows.grid.count % task.partition.extent == 0


def over_rows(rows: RowGraph) -> tuple[Instruction, ...]:
    """The reductions of whole rows."""
    return tuple(i for i in rows.sources if i.opcode is Op.REDUCE and rows.roles[i] is Role.ROW)


def with_role(results: Results, rows: RowGraph, role: Role) -> list[Leaf]:
    return [leaf for leaf in results.leaves if rows.roles[leaf.instruction] is role]


def _run_of(view: View, walk: Walk, rows: RowGraph) -> Run | None:
    """The sum that is all of a walk, if a function computes it."""
    if len(walk.reduces) != 1 or walk.written or walk.staged or not is_run(view, rows.grid.length):
        return None
    reduction = Reduction.of(view, walk.reduces[0])
    if reduction.in_single or not reduction.in_parts:
        return None
    made = made_of(walk.reduces[0].operands[0], view.leaves, in_rows=True)
    if made is None or not all(_is_of_row(rows, number) for number in made.numbers):
        return None
    return Run(made, bool(streams_of(view, made.arrays, made.arrays[0].shape)))


def emit_rows(e: Elemental, results: Results, given: RowWalks, steps: Steps | None = None) -> None:
    """Emit all results of a row kernel, or those of the steps: whole rows."""
    numbers = with_role(results, given.rows, Role.ROW)
    at = RowElemental(e, given.rows, given.flat)
    loops = at.open_rows(steps)
    for step, run in zip(given.walks, given.runs, strict=True):
        if run is None:
            _emit_walk(at, step)
        else:
            _emit_run(at, step.reduces[0], run)
    at.write(numbers)
    for loop in reversed(loops):
        loop.close()


def _emit_walk(e: RowElemental, step: Walk) -> None:
    """One loop over the row, and one before it for reductions that are carried where others are made of parts."""
    reducers = [Reducer(e, reduce) for reduce in step.reduces]
    opened = [r.open([e.number(init) for init in r.inits]) for r in reducers]
    in_parts = [n for n, reducer in enumerate(reducers) if reducer.in_parts]
    carried = [n for n, reducer in enumerate(reducers) if not reducer.in_parts]
    results: dict[int, list[Register]] = {}
    if carried or not in_parts:
        columns = e.open_columns([value for n in carried for value in opened[n]], [reducers[n] for n in carried])
        accumulators = regrouped(columns.carried, [opened[n] for n in carried])
        found = emit_body(e, step, [reducers[n] for n in carried], accumulators, last=not in_parts)
        final = columns.close([value for values in found for value in values])
        results.update(zip(carried, regrouped(final, found), strict=True))
    if in_parts:
        parts = _in_parts(e, step, [reducers[n] for n in in_parts], [opened[n] for n in in_parts])
        results.update(zip(in_parts, parts, strict=True))
    for n, reducer in enumerate(reducers):
        e.bind(reducer.instruction, e.place(reducer.instruction), reducer.result(reducer.close(results[n])))


def _in_parts(
    e: RowElemental, step: Walk, reducers: Sequence[Reducer], opened: Sequence[list[Register]]
) -> list[list[Register]]:
    """The accumulators of partial sums after a walk."""
    expensive = any(i.opcode in EXPENSIVE for i in wanted(e.view, e.rows, step, through=False))
    sums = PartialSums(e.code, [nothing(first) for first, *_ in opened], e.row_sizes, expensive=expensive)
    for registers in sums.steps():
        e.set_column(sums.positions)
        found = emit_body(e, step, reducers, [[r] for r in registers], last=True)
        sums.put([value for values in found for value in values])
    return [r.join(first, [total]) for r, first, total in zip(reducers, opened, sums.totals(), strict=True)]


def _emit_run(e: RowElemental, reduction: Instruction, run: Run) -> None:
    """The sum of a row, by a function."""
    code, made, reducer, length = e.code, run.made, Reducer(e, reduction), e.rows.grid.length
    e.set_column([0] * len(e.row_sizes))
    offset = code.multiply(e.row, length)
    arrays = [address(code, e.leaves[x], x.shape.dtype, offset) for x in made.arrays]
    numbers = [flatten(e.value(n, e.place(n)))[0] for n in made.numbers]
    total = SumRun(made.term, reducer.dtypes[0], run.ahead).call(code, arrays, length, numbers)
    opened = reducer.open([e.number(init) for init in reducer.inits])
    e.bind(reduction, e.place(reduction), reducer.result(reducer.close(reducer.join(opened, [total]))))


def _is_of_row(rows: RowGraph, broadcast: Instruction) -> bool:
    """Whether a broadcast number is the same for all elements of a row."""
    ((source, role),) = rows.sources[broadcast]
    return role is Role.ROW or source.shape.size == 1


def is_light_in_rows(rows: RowGraph, called: Collection[Instruction]) -> bool:
    """Whether all that a kernel computes of elements of rows itself is little and cheap."""
    own = [i for i, role in rows.roles.items() if role is Role.FULL and i in rows.sources and i not in called]
    return len(own) <= LIGHT and not any(i.opcode in EXPENSIVE - SINGLE for i in own)


LIGHT = 20
"""Operations on the elements of rows."""

SINGLE = {Op.DIVIDE, Op.SQRT}
"""Expensive operations that are an instruction."""


def regrouped(values: Sequence[Register], like: Sequence[Sequence[Register]]) -> list[list[Register]]:
    """The values in lists of the lengths of `like`."""
    remaining = iter(values)
    return [[next(remaining) for _ in group] for group in like]


def emit_body(
    e: RowElemental, step: Walk, reducers: Sequence[Reducer], accumulators: Sequence[list[Register]], last: bool
) -> list[list[Register]]:
    """What a walk does with the current element. last: it also keeps and writes values. Returns the accumulators."""
    for instruction in step.held:
        e.bind(instruction, e.place(instruction), e.kept[instruction].read(e.column))
    results = []
    for reducer, values in zip(reducers, accumulators, strict=True):
        results.append(reducer.combine(values, [e.value(o, e.place(o)) for o in reducer.operands]))
    if not last:
        return results
    for instruction in step.staged:
        value = e.value(instruction, e.place(instruction))
        if instruction not in e.kept:
            e.kept[instruction] = e.row_array(value)
        kept = e.kept[instruction]
        assert isinstance(kept, StackArray)
        kept.write(e.column, value)
    e.write(step.written)
    for leaf in step.written:
        e.kept.setdefault(leaf.instruction, ReadBack(e, leaf))
    return results


class RowElemental(Elemental):
    """Values at the current row and column, whatever their shape."""

    def __init__(self, e: Elemental, rows: RowGraph, flat: bool):
        super().__init__(e.code, e.leaves, e.rules, e.scratch)
        self.rows, self.flat = rows, flat
        self.kept: dict[Instruction, StackArray | ReadBack] = {}
        first = rows.first_array
        dims, split = [size for size in first.dims if size != 1], rows.grid.row_dims(first)
        self.outer, self.inner = dims[:split], dims[split:]
        self.row: IndexValue = 0
        self.column: IndexValue = 0
        self.row_positions: list[IndexValue] = []
        self.column_positions: list[IndexValue] = []

    def open_rows(self, steps: Steps | None) -> list[Loop | Once]:
        if steps is not None:
            return self._open_steps(steps)
        loops = [self.code.loop(size) for size in ([self.rows.grid.count] if self.flat else self.outer)]
        self.row_positions = [loop.index for loop in loops]
        self.row = self.row_positions[0] if self.flat else _join(self.code, self.row_positions, self.outer)
        return loops

    def _open_steps(self, steps: Steps) -> list[Loop | Once]:
        """One loop over the rows of the steps; two or more where positions count, the last over neighbours of a number
        that is known: LLVM makes no vectors of rows whose positions are remainders.
        """
        code, outer, last = self.code, self.outer, self.outer[-1] if self.outer else 1
        each, block = self.rows.grid.count // steps.partition.extent, math.gcd(steps.partition.least, last)
        within = len(outer)
        while within and math.prod(outer[within - 1 :]) <= each:
            within -= 1
        blocks = each == 1 and len(outer) > 1 and block >= SHORTEST
        if self.flat or math.prod(outer[within:]) != each or (each == 1 and not blocks):
            rows = scaled(code, steps, self.rows.grid.count)
            self.row = rows.index
            self.row_positions = [rows.index] if self.flat else self._at(rows.index, outer)
            return [rows]
        if blocks:
            first, inner = code.between(steps.begin, steps.end, block), code.loop(block)
            self.row = code.add(first.index, inner.index)
            *positions, start = self._at(first.index, outer)
            self.row_positions = [*positions, code.add(start, inner.index)]
            return [first, inner]
        loops = [code.between(steps.begin, steps.end), *(code.loop(size) for size in outer[within:])]
        numbers = [loop.index for loop in loops]
        self.row = _join(code, numbers, [steps.partition.extent, *outer[within:]])
        self.row_positions = [*self._at(numbers[0], outer[:within]), *numbers[1:]]
        return list(loops)

    def _at(self, number: IndexValue, sizes: Sequence[int]) -> list[IndexValue]:
        """The positions of a row's number along dimensions of rows."""
        return [*self.code.split(number, sizes)]

    def write(self, leaves: Sequence[Leaf]) -> None:
        """Compute results here, then store them."""
        values = [leaf.value(self, self.place(leaf.instruction, leaf.shape)) for leaf in leaves]
        for leaf, value in zip(leaves, values, strict=True):
            leaf.write(self, self.place(leaf.instruction, leaf.shape), value)

    def row_array(self, like: Register) -> StackArray:
        """Memory for a value of each element of the row."""
        return StackArray(self.code, like, self.rows.grid.length)

    @property
    def row_sizes(self) -> list[int]:
        """The sizes of the loops over a row."""
        return [self.rows.grid.length] if self.flat else self.inner

    def open_columns(self, carried: Sequence[Register], reducers: Sequence[Reducer]) -> Columns:
        columns = Columns(self.code, self.row_sizes, carried, reducers)
        self.set_column(columns.positions)
        return columns

    def set_column(self, positions: Sequence[IndexValue]) -> None:
        """Make the element at these positions of the loops over a row the current one."""
        self.column_positions = list(positions)
        self.column = positions[0] if self.flat else _join(self.code, positions, self.inner)

    def place(self, instruction: Instruction, shape: Shape | None = None) -> Index:
        """The index of an instruction's element at the current row and column. The instruction must have a role."""
        if shape is None:
            shape = instruction.shape.elements[0] if instruction.shape.is_tuple else instruction.shape
        role, code = self.rows.roles[instruction], self.code
        if role is Role.FULL:
            linear = code.add(code.multiply(self.row, self.rows.grid.length), self.column)
        else:
            linear = self.row if role is Role.ROW else self.column
        if self.flat:
            return Index.flat(code, shape, linear)
        parts: list[IndexValue] = []
        if role is not Role.COLUMN:
            parts += self._positions(shape, self.row, self.row_positions, self.outer, first=True)
        if role is not Role.ROW:
            parts += self._positions(shape, self.column, self.column_positions, self.inner, first=False)
        remaining = iter(parts)
        positions = tuple(0 if size == 1 else next(remaining) for size in shape.dims)
        return Index(code, shape.dims, shape.minor_to_major, positions, linear)

    def _positions(
        self, shape: Shape, flat: IndexValue, known: list[IndexValue], sizes: list[int], first: bool
    ) -> list[IndexValue]:
        """Positions along the dimensions of a shape that form the number of the row (first), or of the column."""
        total = math.prod(sizes)
        live = [d for d in shape.dims if d != 1]
        taken, product = 0, 1
        while product < total:
            taken, product = taken + 1, product * live[taken if first else -1 - taken]
        dims = live[:taken] if first else live[len(live) - taken :]
        return known if dims == sizes else list(self.code.split(flat, dims))

    def _rule(self, instruction: Instruction, index: Index) -> Reads:
        role = self.rows.roles.get(instruction)
        if role is None or instruction in self.leaves or index.key != self.place(instruction).key:
            return super()._rule(instruction, index)
        if instruction.opcode in PASSED:
            ((operand, wanted),) = self.rows.sources[instruction]
            if wanted is not None:
                return self._just(operand, self.place(operand))
        if instruction.opcode in EMIT:
            return self._elementwise_here(instruction, index)
        return super()._rule(instruction, index)

    def _elementwise_here(self, instruction: Instruction, index: Index) -> Reads:
        values = []
        for operand, wanted in self.rows.sources[instruction]:
            values.append((yield operand, self.place(operand) if wanted else index.within(operand.shape)))
        return EMIT[instruction.opcode](self.code, instruction, *values)


def is_flat(rows: RowGraph, view: View) -> bool:
    """Whether everything is read at the current row and column, so that no multi-dimensional index is needed."""
    for instruction in rows.roles:
        if instruction in view.leaves or not instruction.operands:
            if instruction.opcode is Op.IOTA:
                return False
            continue
        if any(wanted is None and operand.shape.size != 1 for operand, wanted in rows.sources[instruction]):
            return False
        if instruction.opcode not in ELEMENTWISE and instruction.opcode not in _KNOWN:
            return False
    return True


_KNOWN = PASSED | {Op.REDUCE, Op.GET_TUPLE_ELEMENT}


class Columns:
    """Loops over the elements of a row that carry values."""

    def __init__(self, code: Code, sizes: Sequence[int], carried: Sequence[Register], reducers: Sequence[Reducer]):
        self.loops: list[Loop | Once] = []
        self.carried = list(carried)
        for size in sizes:
            kinds = {reducer.unroll(size) for reducer in reducers}
            unroll = kinds.pop() if len(kinds) == 1 else Unroll.SHORT
            self.loops.append(code.loop(size, carried=self.carried, unroll=unroll))
            self.carried = list(self.loops[-1].carried)
        self.positions: list[IndexValue] = [loop.index for loop in self.loops]

    def close(self, results: Sequence[Register]) -> Sequence[Register]:
        for loop in reversed(self.loops):
            results = loop.close(results)
        return results


class ReadBack:
    """A result that an earlier walk has written."""

    def __init__(self, e: RowElemental, leaf: Leaf):
        self.e, self.leaf = e, leaf

    def read(self, column: IndexValue) -> Register:
        e, leaf = self.e, self.leaf
        offset = e.place(leaf.instruction, leaf.shape).offset(leaf.shape)
        return load(e.code, leaf.pointer(e), leaf.shape.dtype, offset)


def _join(code: Code, positions: Sequence[IndexValue], sizes: Sequence[int]) -> IndexValue:
    total: IndexValue = 0
    for position, size in zip(positions, sizes, strict=True):
        total = code.add(code.multiply(total, size), position)
    return total


# What each walk does ------------------------------------------------------------------------------------------------


def plan_walks(view: View, full: Sequence[Leaf], rows: RowGraph, space: int = STAGED_BYTES) -> list[Walk]:
    """One walk per level of reductions, and one for results that need all of them. In-place results come last.

    space: bytes for values of a row that several walks need.
    """
    levels: dict[Instruction, int] = {}
    walks: list[Walk] = []
    for instruction in rows.roles:
        level = max((levels[o] for o in rows.here(instruction)), default=0)
        if instruction.opcode is Op.REDUCE and rows.roles[instruction] is Role.ROW:
            level += 1
            walks += [Walk([]) for _ in range(level - len(walks))]
            walks[level - 1].reduces.append(instruction)
        levels[instruction] = level
    if any(leaf.in_place or levels[leaf.instruction] == len(walks) for leaf in full):
        walks.append(Walk([]))
    for leaf in full:
        walks[-1 if leaf.in_place else levels[leaf.instruction]].written.append(leaf)
    for n, step in enumerate(walks):
        for leaf in step.written:
            if leaf.instruction not in view.leaves:
                for later in walks[n + 1 :]:
                    later.held.append(leaf.instruction)
    _stage(view, rows, walks, space)
    return walks


def _stage(view: View, rows: RowGraph, walks: list[Walk], space: int) -> None:
    """Keep expensive values for later walks that need them. Users are considered before their operands."""
    needs = [wanted(view, rows, step) for step in walks]
    for instruction in reversed(list(rows.roles)):
        users = [n for n, found in enumerate(needs) if instruction in found]
        if len(users) < 2 or not _is_dear(view, rows, instruction):
            continue
        size = rows.grid.length * instruction.shape.dtype.bytes
        if size > space:
            continue
        space -= size
        walks[users[0]].staged.append(instruction)
        for n in users[1:]:
            walks[n].held.append(instruction)
            needs[n] = wanted(view, rows, walks[n])
    for step in walks:
        needed = wanted(view, rows, step, through=False)
        step.held[:] = [i for i in dict.fromkeys(step.held) if i in needed]


def _is_dear(view: View, rows: RowGraph, instruction: Instruction) -> bool:
    if rows.roles[instruction] is not Role.FULL or instruction in view.leaves or not instruction.operands:
        return False
    cheap = instruction.opcode in ELEMENTWISE or instruction.opcode in PASSED
    return instruction.opcode in EXPENSIVE or not (cheap or instruction.opcode is Op.GET_TUPLE_ELEMENT)


def wanted(view: View, rows: RowGraph, step: Walk, through: bool = True) -> set[Instruction]:
    """Values that a walk computes per element; with `through`, also the values that it holds."""
    found: set[Instruction] = set()
    stack = list(step.ends)
    while stack:
        instruction = stack.pop()
        if instruction in found or rows.roles.get(instruction) is Role.ROW:
            continue
        if instruction in step.held:
            if not through:
                found.add(instruction)
            continue
        found.add(instruction)
        stack += rows.here(instruction)
    return found


@form("rows/walks", emit_rows)
def walks(task: Task) -> Fit:
    """Rows one by one: a walk over the row for each level of reductions, whose results stay in registers."""
    view, rows = task.view, rows_of(task)
    planned = tuple(plan_walks(view, with_role(task.results, rows, Role.FULL), rows))
    runs = tuple(_run_of(view, walk, rows) for walk in planned)
    called = {walk.ends[0] for walk, run in zip(planned, runs, strict=True) if run is not None}
    own = any(walk.reduces and run is None for walk, run in zip(planned, runs, strict=True))
    found, light = RowWalks(rows, is_flat(rows, view), planned, runs), is_light_in_rows(rows, called)
    return Fit(found, in_whole_rows(rows, task), over_rows(rows), bool(called), own, light=light)
