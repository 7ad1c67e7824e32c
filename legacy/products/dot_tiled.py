"""Large dots of floats: register tiles of rows × vectors of columns; the right operand is packed into panels on the
stack, as in K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).

For each panel of columns and block of the contracting dimension, the panel is copied into contiguous rows (zeros beyond
the last column). Then each tile of rows keeps its sums in vector registers while it iterates over the panel. If
elementwise ops follow, or sums are rounded to a narrower type, a panel is as deep as the product, and these are
computed on each finished tile. Where that is too deep, a band of rows has its sums of one panel on the stack.
Operands narrower than the sums are converted as they are packed: the right one's panel, and the left one's tiles.
The register tile is a function that all products share (dot_micro.py); no loop around it or of packing is unrolled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from llvmlite import ir

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, replace
from ...planning.partition import Partition
from ..core.builder import Code, IndexValue, Loop, Once, Range, Unroll, over_columns
from ..core.registers import I64, Register
from ..core.stack import alloca
from ..loops.elemental import Elemental
from ..loops.form import Fit, Results, Task, form
from ..loops.memory import Pointer, address
from ..loops.ranges import Steps, blocks, bounds, loops_over, pieces
from ..reductions.long_sums import TERMS, UNBOUNDED, Level, levels_of
from . import dot_problem
from .dot import rounded
from .dot_micro import B_AHEAD, Along, Micro
from .dot_operands import Matrix, Operands, Tile, give
from .dot_pairs import pair
from .dot_problem import Problem, Sides, in_stretches, positions_of_step, problem_of, unstreamed

WHOLE_PANEL_BYTES = 1 << 19
"""Bytes of a packed panel that must hold the whole depth: a sixteenth of a thread's stack (8 MiB)."""

ROUNDED_PANEL_BYTES = 1 << 17
"""Bytes of a panel that may hold the whole depth where sums are rounded: then tile by tile."""

CHAIN = 320
"""Products that are added to a register of a tile before it is added to a partial sum in memory, which costs less than
one instruction in a hundred.
"""

SHORT_CHAIN, FEW_SUMS = 40, 1 << 10
"""The same for complex products, and the sums (of parts) up to which these have it: XLA's chains are short, too."""

PARTIAL_BYTES = 1 << 18
"""Bytes of the stack for partial sums of C, besides the panel and the values of a row: a thread has 8 MiB."""

BAND = 512
"""Rows for which a panel is packed once, where a call computes some of the rows or their sums are on the stack."""

LONG, LESS = 100, 60
"""Minimum products of a sum for which the loops around a tile take little time, so that LLVM does less for them: of a
tall product, whose only panel needs all rows from memory, and of others.
"""


@dataclass(frozen=True, slots=True)
class Blocking:
    """block: rows of a panel. banded: whether a band of rows has its sums of one panel on the stack. hands_on: whether
    each sum is given to what follows, or rounded, instead of being stored with its tile. chain: as CHAIN. columns,
    rows: numbers of a step, if the steps number these.
    """

    problem: Problem
    sides: Sides
    block: int
    banded: bool
    hands_on: bool
    chain: int
    columns: int | None
    rows: int | None


def blocking_of(problem: Problem, sides: Sides, root: Instruction, partition: Partition | None, ends: bool) -> Blocking:
    """Steps may be some batches, blocks of rows, or whole panels of columns. ends: nothing follows the product."""
    problem = problem if ends else unstreamed(problem)
    columns = None if partition is None else positions_of_step(root, partition, columns=True)
    rows = None if partition is None else positions_of_step(root, partition, columns=False)
    problem = in_stretches(problem, 0 if partition is None or columns is None else columns * partition.least)
    deep = not ends and problem.depth > problem.depth_of(WHOLE_PANEL_BYTES)
    narrow = problem.result is not problem.dtype
    banded = deep or (narrow and problem.depth > problem.depth_of(ROUNDED_PANEL_BYTES))
    whole = (not ends or narrow) and not banded
    block = problem.depth if whole else min(problem.depth_of(problem.panel_bytes), problem.depth)
    block = min(B_AHEAD, problem.depth) if problem.streamed else block
    # By all rows: no bit depends on how many a call computes.
    chain = SHORT_CHAIN if problem.parts > 1 and problem.rows * problem.columns <= FEW_SUMS else CHAIN
    return Blocking(problem, sides, block, banded, not ends or banded or narrow, chain, columns, rows)


def emit_tiled_dot(e: Elemental, results: Results, blocking: Blocking, steps: Steps | None = None) -> None:
    """Emit a dot into the buffer of the result, or all that follows it for each element."""
    code, (instruction,), result = e.code, results.products, results.first.pointer(e)
    (left, right, rows, exchanged), problem, block = blocking.sides, blocking.problem, blocking.block
    width, height = blocking.columns, blocking.rows
    around = steps if width is None and height is None else None
    sizes = instruction.shape.dims[: len(left.loops)]
    spaces = Spaces.of(code, problem, block, blocking.banded)
    with loops_over(code, around, sizes, range(len(sizes))) as batch:
        a = Matrix(
            e.leaves[left.operand], code.weighted_sum(batch, left.loops), left.free_stride, left.contracted_stride
        )
        a = a if problem.left.is_complex else a.in_parts(code, problem.parts)
        if problem.in_words:
            start = code.weighted_sum(batch, [stride // 2 for stride in left.loops])
            a = Matrix(a.pointer, start, left.free_stride // 2, 1)
        b = Matrix(
            e.leaves[right.operand], code.weighted_sum(batch, right.loops), right.contracted_stride, right.free_stride
        )
        c = Matrix(result, code.weighted_sum(batch, instruction.shape.strides[: len(batch)]), rows, 1)

        def end(row: IndexValue, column: IndexValue, total: Register) -> None:
            linear = c.offset(code, row, column)
            value = total if problem.parts > 1 else rounded(code, problem.dtype, problem.result, total)
            places = [(row, left), (column, right)]
            give(e, results, batch, places[::-1] if exchanged else places, linear, value)

        given = end if blocking.hands_on else None
        operands = Operands(code, problem, block, a, b, spaces.packed, spaces.left, spaces.partial)
        operands = operands.spread(problem.rows) if problem.spread else operands
        whole = _Tiled(code, problem, block, operands, c.in_parts(code, problem.parts), spaces, given)
        whole = replace(whole, chain=blocking.chain)
        if steps is not None and width is not None:
            whole = replace(whole, columns=bounds(code, steps, problem.columns))
        if steps is not None and height is not None:
            bands = _bands_of_steps(code, steps, height)
        else:
            bands = pieces(code, problem.rows, BAND if blocking.banded else problem.rows)
        for top, count in bands:
            whole.of_rows(top, count).emit()


def _bands_of_steps(code: Code, steps: Steps, height: int) -> Iterator[tuple[IndexValue, int]]:
    """Loops over blocks of the rows of the steps, of which each has `height`: (the first row, their number)."""
    most = max(1, BAND // height)
    together = next(n for n in range(most, 0, -1) if steps.partition.least % n == 0)
    for _, step, count in blocks(code, steps, [steps.partition.extent], together):
        yield code.multiply(step, height), count * height


@dataclass(frozen=True, slots=True)
class Spaces:
    """Memory on the stack. packed: the panel. finished: the sums of a tile. partial: the same, while chains are summed,
    or a row that the sums of words begin with. left: a tile's rows of the left operand, if they are converted. totals:
    the sums of a band of rows in a panel, if they are not in the result.
    """

    packed: Pointer
    finished: Pointer
    partial: Pointer
    left: Pointer | None
    totals: Pointer | None

    @staticmethod
    def of(code: Code, problem: Problem, block: int, banded: bool) -> Spaces:
        def space(count: int) -> Pointer:
            return Pointer(alloca(code, problem.element, count))

        left = space(block * problem.tile_rows) if problem.converts_left else None
        totals = space(min(problem.rows, BAND) * problem.stretch) if banded else None
        tile = problem.tile_rows * problem.panel
        return Spaces(space(block * problem.stretch), space(tile), space(tile), left, totals)


@dataclass(frozen=True, slots=True)
class _Tiled:
    """The loops of one matrix product. The panel has `block` rows.

    end(row, column, total): receives each sum instead of C: where there are no totals, of a tile whose sums are
    finished. top: what is added to its rows. first: whether a block of the depth is the first, whose sums replace what
    C holds; None where C has been cleared. chain: as CHAIN. columns: the first of those to compute, and the one behind
    the last, multiples of a panel's or the end; None: all.
    """

    code: Code
    problem: Problem
    block: int
    operands: Operands
    c: Matrix
    spaces: Spaces
    end: Callable[[IndexValue, IndexValue, Register], None] | None
    columns: tuple[IndexValue, IndexValue] | None = None
    top: IndexValue = 0
    first: ir.Value | None = None
    chain: int = CHAIN

    def of_rows(self, top: IndexValue, count: int) -> _Tiled:
        """The product of `count` rows from `top` on."""
        code = self.code
        a = self.operands.a
        a = replace(a, start=code.add(a.start, code.multiply(top, a.row)))
        c = replace(self.c, start=code.add(self.c.start, code.multiply(top, self.c.row)))
        operands = replace(self.operands, a=a)
        problem = replace(self.problem, rows=count, height=self.problem.tile_rows)
        return replace(self, problem=problem, operands=operands, c=c, top=top)

    def emit(self) -> None:
        p, code = self.problem, self.code
        if p.streamed:
            self._stream()
            return
        totals = self.spaces.totals
        count, rest = divmod(p.depth, self.block)
        replaces = totals is None and not any(level.apart for level in self._levels(count))
        if p.depth > self.block and self.columns is None and totals is None and not replaces:
            self._clear(self.c, p.rows, p.columns)
        many, whole = (p.columns - p.columns % n for n in (p.stretch, p.panel))
        for start, end, most in ((0, many, p.stretch), (many, whole, p.panel), (whole, p.columns, p.panel)):
            if start == end:
                continue
            width = min(most, end - start)
            if self.columns is None:
                panels: Loop | Once | Range = code.loop(end - start, start=start, step=width)
            else:
                first, last = self.columns
                panels = code.range(first if start == 0 else start, code.minimum(last, end), width)
            sums = self.c if totals is None else self._beside(totals, panels.index)
            if p.depth > self.block and (totals is not None or self.columns is not None) and not replaces:
                self._clear(sums, p.rows, width, panels.index)
            with self._partial_sums(sums, count, panels.index, width) as (block, target):
                first = code.b.icmp_unsigned("==", code.value(block), I64(0)) if replaces else None
                blocks = replace(self, first=first)
                blocks._block(panels.index, width, code.multiply(block, self.block), self.block, target)
            if rest:
                self._block(panels.index, width, count * self.block, rest, sums)
            if totals is not None:
                self._end(sums, 0, p.rows, panels.index, width)
            panels.close()

    def _stream(self) -> None:
        """Multiply a few rows of B after the other, along all columns. Tiles fetch their columns of the next ones."""
        p, code = self.problem, self.code
        first, last = self.columns or (0, p.columns)
        for row, depth in pieces(code, p.depth, self.block):
            begins = code.b.icmp_unsigned("==", code.value(row), I64(0))
            with code.range(first, last, p.panel, unroll=Unroll.NEVER) as panel:
                replace(self, first=begins)._rows(panel, p.panel, row, depth, self.c)

    def _beside(self, space: Pointer, column: IndexValue) -> Matrix:
        """Memory for sums of a panel. Column `column` is its first, so that tiles find it and C by equal numbers."""
        return Matrix(space, self.code.subtract(0, column), self.problem.stretch, 1)

    def _block(self, column: IndexValue, width: int, row: IndexValue, depth: int, target: Matrix) -> None:
        for n in range(self._panels(width)):
            panel = self._panel(n)
            operands = replace(self.operands, panel=Pointer(panel))
            operands.pack(self.code.add(column, n * self.problem.panel), min(width, self.problem.panel), row, depth)
        self._rows(column, width, row, depth, target)

    def _panels(self, width: int) -> int:
        """The number of panels of `width` columns."""
        return max(1, width // self.problem.panel)

    def _panel(self, n: IndexValue) -> ir.Value:
        """The memory of one of them."""
        code, p = self.code, self.problem
        offset = code.multiply(n, self.block * p.panel)
        return address(code, self.spaces.packed, p.dtype, offset)

    def _levels(self, count: int) -> Sequence[Level]:
        """The loops over `count` blocks of the depth."""
        p = self.problem
        levels, _ = levels_of([count], 1, UNBOUNDED if self.code.view.strict or p.wraps else TERMS)
        size = p.rows * p.stretch * p.dtype.bytes
        fits = sum(level.apart for level in levels) * size <= PARTIAL_BYTES
        return levels if fits else [Level(0, 1, False)]

    @contextmanager
    def _partial_sums(
        self, target: Matrix, count: int, column: IndexValue, width: int
    ) -> Iterator[tuple[IndexValue, Matrix]]:
        """Loops over `count` blocks of the depth, with (the block's number, the matrix that it is added to): partial
        sums of the columns from `column` on, or `target` where they are few or do not fit on the stack.
        """
        p, code = self.problem, self.code
        levels = self._levels(count)
        opened = []
        left: IndexValue = count
        number: IndexValue = 0
        for level in levels:
            loop = code.loop(left, step=level.span, unroll=Unroll.NEVER)
            whole = isinstance(left, int) and left % level.span == 0
            left = level.span if whole else code.minimum(code.subtract(left, loop.index), level.span)
            number = code.add(number, loop.index)
            opened.append((loop, target))
            if level.apart:
                target = self._beside(Pointer(alloca(code, p.element, p.rows * p.stretch)), column)
                self._clear(target, p.rows, width, column)
        yield number, target
        for loop, outer in reversed(opened):
            if outer is not target:
                self._add(target, outer, column, width)
            target = outer
            loop.close()

    def _add(self, source: Matrix, target: Matrix, column: IndexValue, width: int) -> None:
        """Add columns of one matrix of partial sums to those of another."""
        p, code = self.problem, self.code
        with code.loop(p.rows) as row, code.loop(width) as j:
            place = code.add(column, j)
            to, from_ = (m.at(code, p.dtype, row, place) for m in (target, source))
            first, second = (code.b.load(at, typ=p.element, align=p.dtype.bytes) for at in (to, from_))
            code.b.store(code.b.fadd(first, second), to, align=p.dtype.bytes)

    def _clear(self, m: Matrix, height: int, width: int, first: IndexValue = 0) -> None:
        p, code = self.problem, self.code
        with code.loop(height) as row, code.loop(width) as column:
            place = m.at(code, p.dtype, row, code.add(first, column))
            code.b.store(ir.Constant(p.element, 0), place, align=p.dtype.bytes)

    def _rows(self, column: IndexValue, width: int, row: IndexValue, depth: int, target: Matrix) -> None:
        p, code = self.problem, self.code
        for top, count in pieces(code, p.rows, p.tile_rows):
            self.operands.pack_left(Tile(top, count, column, width), row, depth)
            with code.loop(self._panels(width), unroll=Unroll.NEVER) as panel:
                first = code.add(column, code.multiply(panel, p.panel))
                self._tile(Tile(top, count, first, min(width, p.panel)), self._panel(panel), row, depth, target)

    def _tile(self, tile: Tile, panel: ir.Value, row: IndexValue, depth: int, target: Matrix) -> None:
        """Add A[top…, row…] · panel to the tile's rows of the target, or give its elements to `end`."""
        p, code = self.problem, self.code
        apart = self.end is not None and self.spaces.totals is None
        if apart:
            target = Matrix(self.spaces.finished, code.subtract(0, tile.column), p.panel, 1)
        vectors, ahead = -(-tile.width // p.lanes), self.operands.ahead(tile, row)
        left = self.operands.left(tile, row)
        masked = target.pointer == self.c.pointer and tile.width % p.lanes != 0
        along = Along.of(*left[1:])
        chain = depth if code.view.strict or p.wraps else -(-depth // -(-depth // self.chain))
        marks = chain < depth, masked, ahead is not None
        in_place = self.operands.in_place(tile.width)
        micro = Micro(p.dtype, tile.count, p.lanes, vectors, 0 if in_place else p.panel, along, *marks, p.group)
        fetches = p.fetches(tile.count) and not apart and target.pointer == self.c.pointer
        micro.call(
            code,
            left,
            self.operands.right(tile.column, row) if in_place else panel,
            (depth, chain),
            (target.at(code, p.dtype, 0 if apart else tile.top, tile.column), target.row),
            I64(0) if apart else self._adds(),
            self.spaces.partial.value,
            tile.width,
            -(-tile.width * p.dtype.bytes // p.processor.line_bytes) if fetches else 0,
            ahead,
            self.operands.b.row,
        )
        if apart:
            self._end(target, tile.top, tile.count, tile.column, tile.width)

    def _adds(self) -> ir.Value:
        """Whether a tile is added to what C holds: an i64, 0 or 1."""
        if self.problem.depth <= self.block:
            return I64(0)
        return I64(1) if self.first is None else self.code.b.zext(self.code.b.not_(self.first), I64)

    def _end(self, sums: Matrix, top: IndexValue, count: int, column: IndexValue, width: int) -> None:
        """Give the sums of `count` rows from `top` on to `end`; `sums` begins with the first of them."""
        p, code = self.problem, self.code
        assert self.end is not None
        with code.loop(count, unroll=Unroll.NEVER) as row, code.loop(width // p.parts, unroll=over_columns(width)) as j:
            place = code.add(code.divide(column, p.parts), j)
            first = sums.at(code, p.dtype, row, code.multiply(place, p.parts))
            total = (
                code.b.load(first, typ=p.element, align=p.dtype.bytes) if p.parts == 1 else pair(code, p.dtype, first)
            )
            self.end(code.add(self.top, code.add(top, row)), place, total)


@form(
    "dot/tiled",
    emit_tiled_dot,
    dot_problem,
    MINIMUM_MULTIPLICATIONS="multiplications",
    MINIMUM_ROWS="rows",
    MINIMUM_DEPTH="products of a sum",
    LARGE_DEPTH="products of a sum, for columns that fill a part of a vector",
)
def tiled(task: Task) -> Fit:
    """Large products: register tiles, whose right operand is packed into panels or read where it lies."""
    root, partition = task.product(Op.DOT), task.partition
    problem, sides = problem_of(task.view, root)
    found = blocking_of(problem, sides, root, partition, task.results.ends)
    p, in_steps = found.problem, True
    if partition is not None and any(d >= len(sides[0].loops) for d in partition.dimensions) and found.rows is None:
        in_steps = found.columns is not None and partition.least * found.columns * p.parts % problem.panel == 0
    short = p.depth < (LONG if p.columns <= p.panel else LESS)
    return Fit(found, in_steps, (root,), shares=not (short or p.streamed), lean=p.streamed)
