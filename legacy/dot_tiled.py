"""Large f32 and f64 dots: register tiles of rows × vectors of columns; the right operand is packed into panels on the
stack, as in K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).

For each panel of columns and block of the contracting dimension, the panel is copied into contiguous rows (zeros beyond
the last column). Then each tile of rows keeps its sums in vector registers while it iterates over the panel. If
elementwise ops follow, a panel is as deep as the product, and they are computed on each finished tile.
Only the register tile is unrolled; unrolling is disabled on the loops around it and on the packing loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise

from llvmlite import ir

from ..hlo.dtypes import DType
from ..hlo.ir import Instruction
from ..hlo.shapes import Shape
from ..planning.partition import Partition
from .builder import Code, IndexValue, Loop, Once, Range, Unroll, over_columns
from .dot_dims import DotDims
from .elemental import Elemental, Index
from .loops import parts
from .memory import Pointer, address
from .partial import TERMS, UNBOUNDED, Level, levels_of
from .ranges import Steps, blocks, loops_over
from .registers import I32, memory_type, real_constant
from .stack import alloca

PANEL_BYTES = 1 << 16
"""Bytes of a packed panel: a quarter of the smallest L2 caches (256 KiB), which also hold rows of the left operand."""

WHOLE_PANEL_BYTES = 1 << 19
"""Bytes of a packed panel that must hold the whole depth: a sixteenth of a thread's stack (8 MiB)."""

CHAIN = 320
"""Products that are added to a register of a tile before it is added to a partial sum in memory, which costs less than
one instruction in a hundred.
"""

PARTIAL_BYTES = 1 << 18
"""Bytes of the stack for partial sums of C, beside the panel and the values of a row: a thread has 8 MiB."""

FEW_ROWS = 32
"""Up to this number of rows, a second tile height costs more compile time than it saves."""

SMALLEST = 16**3
"""Multiplications below which the simpler loops are as fast."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix in a buffer: the offset of element (0, 0) for this batch, and the strides of rows and columns, in
    elements.
    """

    pointer: Pointer
    start: IndexValue
    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Problem:
    """C[rows, columns] = A[rows, depth] · B[depth, columns], all of one dtype. Columns of C are adjacent."""

    dtype: DType
    rows: int
    columns: int
    depth: int
    lanes: int
    vectors: int

    @property
    def tile_rows(self) -> int:
        """Rows of a tile: as many as registers allow; for few rows a divisor, so that one tile's code is enough."""
        most = registers(self.lanes * self.dtype.bits)
        full = (most - widest(most) - 1) // widest(most)
        heights = range(full, 3, -1) if self.rows <= FEW_ROWS else ()
        return next((n for n in heights if self.rows % n == 0), full)

    def depth_of(self, size: int) -> int:
        """The number of rows of a panel of `size` bytes."""
        return size // (self.panel * self.dtype.bytes)

    @property
    def panel(self) -> int:
        """Columns of a panel."""
        return self.lanes * self.vectors

    @property
    def element(self) -> ir.Type:
        return memory_type(self.dtype)

    @property
    def vector(self) -> ir.VectorType:
        return ir.VectorType(self.element, self.lanes)


def registers(vector_bits: int) -> int:
    """The number of vector registers. x86 has twice as many with its widest vectors (AVX-512)."""
    return 32 if vector_bits >= 512 else 16


def widest(most: int) -> int:
    """Vectors of columns in a tile: an eighth of the registers. Sums use the rest, except for one factor."""
    return most // 8


def stride_of(shape: Shape, dims: Sequence[int]) -> int | None:
    """The stride of several dimensions traversed as one, in elements; None if it is not constant."""
    live = [d for d in dims if shape.dims[d] != 1]
    strides = shape.strides
    for outer, inner in pairwise(live):
        if strides[outer] != strides[inner] * shape.dims[inner]:
            return None
    return strides[live[-1]] if live else 1


@dataclass(frozen=True, slots=True)
class Side:
    """One operand: its dimensions by role, and the strides along the free and the contracting ones."""

    operand: Instruction
    batch: tuple[int, ...]
    free: tuple[int, ...]
    free_stride: int
    contracted_stride: int

    @property
    def size(self) -> int:
        """The number of elements along the free dimensions."""
        return math.prod(self.operand.shape.dims[d] for d in self.free)


def sides_of(instruction: Instruction) -> tuple[Side, Side, int, bool] | None:
    """(A, B, row stride of the result, whether A and B are exchanged because the left operand's columns are adjacent).

    None if dimensions of one role have no common stride, or if no neighbours in the result are adjacent.
    """
    dims, (lhs, rhs) = DotDims.of(instruction), instruction.operands[:2]
    left = _side(lhs, dims.lhs_batch, dims.lhs_free, dims.lhs_contracting)
    right = _side(rhs, dims.rhs_batch, dims.rhs_free, dims.rhs_contracting)
    batches, rank = len(dims.lhs_batch), instruction.shape.rank
    middle = batches + len(dims.lhs_free)
    rows = stride_of(instruction.shape, range(batches, middle))
    columns = stride_of(instruction.shape, range(middle, rank))
    if left is None or right is None or rows is None or columns is None:
        return None
    if columns == 1:
        return left, right, rows, False
    return (right, left, columns, True) if rows == 1 else None


def _side(
    operand: Instruction, batch: tuple[int, ...], free: tuple[int, ...], contracting: tuple[int, ...]
) -> Side | None:
    across, along = stride_of(operand.shape, free), stride_of(operand.shape, contracting)
    return None if across is None or along is None else Side(operand, batch, free, across, along)


def problem_of(e: Elemental, instruction: Instruction, vector_bits: int) -> Problem | None:
    """The tiled form of a dot; None if it does not fit or does not pay off."""
    lhs, rhs = instruction.operands[:2]
    dtype, dims = instruction.shape.dtype, DotDims.of(instruction)
    fits = (
        dtype in (DType.F32, DType.F64)
        and lhs.shape.dtype is dtype
        and rhs.shape.dtype is dtype
        and lhs in e.leaves
        and rhs in e.leaves
    )
    sides = sides_of(instruction) if fits else None
    if sides is None:
        return None
    rows, columns = sides[0].size, sides[1].size
    depth = math.prod(lhs.shape.dims[d] for d in dims.lhs_contracting)
    lanes = max(vector_bits, 128) // dtype.bits
    if columns < lanes or rows < 4 or depth < 4 or rows * columns * depth < SMALLEST:
        return None
    most = widest(registers(vector_bits))
    return Problem(dtype, rows, columns, depth, lanes, min(most, -(-columns // lanes)))


def emit_tiled_dot(
    e: Elemental, instruction: Instruction, result: Pointer, problem: Problem, steps: Steps | None = None
) -> None:
    """Emit a dot into the buffer at `result`."""
    _emit(e, instruction, problem, result, None, steps)


def has_epilogue(problem: Problem) -> bool:
    """Whether a panel may be as deep as the product, as elementwise ops on finished tiles need."""
    return problem.depth <= problem.depth_of(WHOLE_PANEL_BYTES)


def emit_dot_with_epilogue(
    e: Elemental,
    instruction: Instruction,
    problem: Problem,
    finish: Callable[[Index], None],
    steps: Steps | None = None,
) -> bool:
    """Call `finish(index)` for each element, with its value bound. False if the depth is too large."""
    if not has_epilogue(problem):
        return False
    _emit(e, instruction, problem, None, finish, steps)
    return True


def takes_steps(instruction: Instruction, problem: Problem, partition: Partition) -> bool:
    """Whether the loops can compute some of the steps: some of the batches, blocks of rows, whole panels of columns."""
    batches = DotDims.of(instruction).lhs_batch
    if partition.dimensions == tuple(range(len(batches)))[: len(partition.dimensions)]:
        return True
    if _of_step(instruction, partition, columns=False) is not None:
        return True
    width = _of_step(instruction, partition, columns=True)
    return width is not None and partition.least * width % problem.panel == 0


ROWS_OF_STEPS = 512
"""Rows for which a panel is packed once, of those that a call computes."""


def _of_step(instruction: Instruction, partition: Partition, columns: bool) -> int | None:
    """The columns, or the rows, of a step; None if the steps do not number these."""
    sides = sides_of(instruction)
    assert sides is not None
    dims = DotDims.of(instruction)
    side = sides[1] if columns else sides[0]
    first = len(dims.lhs_batch) + (len(dims.lhs_free) if columns != sides[3] else 0)
    live = [d for d in range(first, first + len(side.free)) if instruction.shape.dims[d] != 1]
    return side.size // partition.extent if partition.dimensions == tuple(live[: len(partition.dimensions)]) else None


def _emit(
    e: Elemental,
    instruction: Instruction,
    problem: Problem,
    result: Pointer | None,
    finish: Callable[[Index], None] | None,
    steps: Steps | None,
) -> None:
    code, sides = e.code, sides_of(instruction)
    assert sides is not None
    left, right, rows, exchanged = sides
    block = problem.depth if finish is not None else min(problem.depth_of(PANEL_BYTES), problem.depth)
    space = Pointer(alloca(code, problem.element, block * problem.panel))
    finished = Pointer(alloca(code, problem.element, problem.tile_rows * problem.panel))
    width = None if steps is None else _of_step(instruction, steps.partition, columns=True)
    height = None if steps is None else _of_step(instruction, steps.partition, columns=False)
    around = steps if width is None and height is None else None
    sizes = [left.operand.shape.dims[d] for d in left.batch]
    inside = () if around is None else around.dimensions
    with loops_over(code, around, inside, sizes, range(len(sizes))) as batch:
        a = Matrix(e.leaves[left.operand], _start(code, left, batch), left.free_stride, left.contracted_stride)
        b = Matrix(e.leaves[right.operand], _start(code, right, batch), right.contracted_stride, right.free_stride)
        start = code.weighted_sum(batch, instruction.shape.strides[: len(batch)])
        c = Matrix(result or finished, start, rows, 1)

        def end(row: IndexValue, column: IndexValue, value: ir.Value) -> None:
            assert finish is not None
            places = [*batch]
            pairs = [(row, left), (column, right)]
            for part, side in reversed(pairs) if exchanged else pairs:
                dims = [side.operand.shape.dims[d] for d in side.free]
                places += code.split(part, dims, list(reversed(range(len(dims)))))
            linear = code.add(c.start, code.add(code.multiply(row, rows), column))
            index = Index(code, instruction.shape.dims, instruction.shape.minor_to_major, tuple(places), linear)
            e.bind(instruction, index, value)
            finish(index)

        columns: tuple[IndexValue, IndexValue] | None = None
        if steps is not None and width is not None:
            columns = code.multiply(steps.begin, width), code.multiply(steps.end, width)
        if steps is None or height is None:
            given = None if finish is None else end
            _Tiled(code, problem, block, a, b, c, space, finished, given, columns).emit()
            return
        most = max(1, ROWS_OF_STEPS // height)
        together = next(n for n in range(most, 0, -1) if steps.partition.least % n == 0)
        for _, step, count in blocks(code, steps, [steps.partition.extent], together):
            top = code.multiply(step, height)

            def below(row: IndexValue, column: IndexValue, value: ir.Value, top: IndexValue = top) -> None:
                end(code.add(top, row), column, value)

            part = replace(problem, rows=count * height)
            left_part = replace(a, start=code.add(a.start, code.multiply(top, a.row)))
            result_part = replace(c, start=code.add(c.start, code.multiply(top, c.row))) if finish is None else c
            given = None if finish is None else below
            _Tiled(code, part, block, left_part, b, result_part, space, finished, given, None).emit()


def _start(code: Code, side: Side, batch: Sequence[IndexValue]) -> IndexValue:
    return code.weighted_sum(batch, [side.operand.shape.strides[d] for d in side.batch])


@dataclass(frozen=True, slots=True)
class Tile:
    """`count` rows of C from `top` on, and `width` columns, at most a panel's, from `column` on."""

    top: IndexValue
    count: int
    column: IndexValue
    width: int


@dataclass(frozen=True, slots=True)
class _Tiled:
    """The loops of one matrix product. packed: the panel, of `block` rows.

    end(row, column, value): receives each element instead of C; `finished` is then the memory of a finished tile.
    columns: the first of those to compute, and the one behind the last, multiples of a panel's or the end; None: all.
    """

    code: Code
    problem: Problem
    block: int
    a: Matrix
    b: Matrix
    c: Matrix
    packed: Pointer
    finished: Pointer
    end: Callable[[IndexValue, IndexValue, ir.Value], None] | None
    columns: tuple[IndexValue, IndexValue] | None

    def emit(self) -> None:
        p, code = self.problem, self.code
        if p.depth > self.block and self.columns is None:
            self._clear(self.c, p.rows, p.columns)
        whole = p.columns - p.columns % p.panel
        for start, end in ((0, whole), (whole, p.columns)):
            if start == end:
                continue
            width = min(p.panel, end - start)
            if self.columns is None:
                panels: Loop | Once | Range = code.loop(end - start, start=start, step=width)
            else:
                first, last = self.columns
                panels = code.range(first if start == 0 else start, code.minimum(last, end), width)
                if p.depth > self.block:
                    self._clear(self.c, p.rows, width, panels.index)
            count, rest = divmod(p.depth, self.block)
            if count:
                with self._partial_sums(count, panels.index, width) as (block, target):
                    self._block(panels.index, width, code.multiply(block, self.block), self.block, target)
            if rest:
                self._block(panels.index, width, count * self.block, rest, self.c)
            panels.close()

    def _block(self, column: IndexValue, width: int, row: IndexValue, depth: int, target: Matrix) -> None:
        self._pack(column, width, row, depth)
        self._rows(column, width, row, depth, target)

    @contextmanager
    def _partial_sums(self, count: int, column: IndexValue, width: int) -> Iterator[tuple[IndexValue, Matrix]]:
        """Loops over `count` blocks of the depth, with (the block's number, the matrix that it is added to): partial
        sums of C's columns from `column` on, or C where they are few or do not fit on the stack.
        """
        p, code, target = self.problem, self.code, self.c
        levels, _ = levels_of([count], 1, UNBOUNDED if code.strict else TERMS)
        size = p.rows * p.panel * p.dtype.bytes
        if sum(level.apart for level in levels) * size > PARTIAL_BYTES:
            levels = [Level(0, 1, False)]
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
                space = Pointer(alloca(code, p.element, p.rows * p.panel))
                # Column `column` is the first of the partial sums, so that tiles find both by the same numbers.
                target = Matrix(space, code.subtract(0, column), p.panel, 1)
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
        rows = code.loop(p.rows)
        columns = code.loop(width)
        place = code.add(column, columns.index)
        to, from_ = (self._at(m, rows.index, place) for m in (target, source))
        first, second = (code.b.load(at, typ=p.element, align=p.dtype.bytes) for at in (to, from_))
        code.b.store(code.b.fadd(first, second), to, align=p.dtype.bytes)
        columns.close()
        rows.close()

    def _clear(self, m: Matrix, height: int, width: int, first: IndexValue = 0) -> None:
        p, code = self.problem, self.code
        rows = code.loop(height)
        columns = code.loop(width)
        place = self._at(m, rows.index, code.add(first, columns.index))
        code.b.store(real_constant(p.element, 0.0), place, align=p.dtype.bytes)
        columns.close()
        rows.close()

    def _at(self, m: Matrix, row: IndexValue, column: IndexValue) -> ir.Value:
        code = self.code
        offset = code.add(code.add(m.start, code.multiply(row, m.row)), code.multiply(column, m.column))
        return address(code, m.pointer, self.problem.dtype, offset)

    def _pack(self, column: IndexValue, width: int, row: IndexValue, depth: int) -> None:
        """Pack B[row…, column…] into the panel. The inner loop follows B's memory."""
        p, code = self.problem, self.code
        across = self.b.column <= self.b.row
        outer = code.loop(depth if across else width, unroll=Unroll.NEVER)
        inner = code.loop(width if across else depth, unroll=Unroll.NEVER)
        k, j = (outer.index, inner.index) if across else (inner.index, outer.index)
        value = code.b.load(self._at(self.b, code.add(row, k), code.add(column, j)), typ=p.element, align=p.dtype.bytes)
        target = code.add(code.multiply(k, p.panel), j)
        code.b.store(value, address(code, self.packed, p.dtype, target), align=p.dtype.bytes)
        inner.close()
        outer.close()
        if width < p.panel:
            self._pack_zeros(width, depth)

    def _pack_zeros(self, width: int, depth: int) -> None:
        p, code = self.problem, self.code
        outer = code.loop(depth, unroll=Unroll.NEVER)
        inner = code.loop(p.panel - width, start=width, unroll=Unroll.NEVER)
        target = code.add(code.multiply(outer.index, p.panel), inner.index)
        code.b.store(real_constant(p.element, 0.0), address(code, self.packed, p.dtype, target), align=p.dtype.bytes)
        inner.close()
        outer.close()

    def _rows(self, column: IndexValue, width: int, row: IndexValue, depth: int, target: Matrix) -> None:
        p, code = self.problem, self.code
        whole = p.rows - p.rows % p.tile_rows
        for start, end in ((0, whole), (whole, p.rows)):
            if start != end:
                count = min(p.tile_rows, end - start)
                tiles = code.loop(end - start, start=start, step=count, unroll=Unroll.NEVER)
                self._tile(Tile(tiles.index, count, column, width), row, depth, target)
                tiles.close()

    def _tile(self, tile: Tile, row: IndexValue, depth: int, target: Matrix) -> None:
        """Add A[top…, row…] · panel to the tile's rows of the target, or give its elements to `end`."""
        p, code = self.problem, self.code
        if depth > CHAIN and not code.strict:
            sums = self._sums_in_parts(tile, row, depth)
        else:
            sums = self._sums(tile, row, 0, depth)
        for n, total in enumerate(sums):
            r, v = divmod(n, p.vectors)
            if self.end is not None:
                code.b.store(total, self._finished(n), align=p.lanes * p.dtype.bytes)
            elif v * p.lanes < tile.width:
                place = self._at(target, code.add(tile.top, r), code.add(tile.column, v * p.lanes))
                self._store(place, total, min(p.lanes, tile.width - v * p.lanes))
        if self.end is not None:
            self._finish(tile)

    def _sums(self, tile: Tile, row: IndexValue, first: IndexValue, depth: int) -> list[ir.Value]:
        """The sums of `depth` products from row `first` of the panel on: the tile's vectors, row by row."""
        p, code = self.problem, self.code
        zero = ir.Constant(p.vector, None)
        k = code.loop(depth, carried=[zero] * (tile.count * p.vectors))
        sums = list(k.carried)
        place = code.add(first, k.index)
        base = code.multiply(place, p.panel)
        columns = [
            code.b.load(
                address(code, self.packed, p.dtype, code.add(base, v * p.lanes)),
                typ=p.vector,
                align=p.lanes * p.dtype.bytes,
            )
            for v in range(p.vectors)
        ]
        for r in range(tile.count):
            a = self._broadcast(self._at(self.a, code.add(tile.top, r), code.add(row, place)))
            for v in range(p.vectors):
                n = r * p.vectors + v
                sums[n] = code.b.fadd(sums[n], code.b.fmul(a, columns[v]))
        return k.close(sums)

    def _sums_in_parts(self, tile: Tile, row: IndexValue, depth: int) -> list[ir.Value]:
        """The same, in partial sums of at most CHAIN products that are added up in `finished`."""
        p, code = self.problem, self.code
        vectors, align = range(tile.count * p.vectors), p.lanes * p.dtype.bytes
        for n in vectors:
            code.b.store(ir.Constant(p.vector, None), self._finished(n), align=align)
        for start, end, step in parts(depth, -(-depth // -(-depth // CHAIN))):
            chains = code.loop(end - start, start=start, step=step, unroll=Unroll.NEVER)
            for n, total in enumerate(self._sums(tile, row, chains.index, step)):
                before = code.b.load(self._finished(n), typ=p.vector, align=align)
                code.b.store(code.b.fadd(before, total), self._finished(n), align=align)
            chains.close()
        return [code.b.load(self._finished(n), typ=p.vector, align=align) for n in vectors]

    def _finished(self, n: int) -> ir.Value:
        """The address of vector n of a tile in `finished`."""
        p = self.problem
        r, v = divmod(n, p.vectors)
        return address(self.code, self.finished, p.dtype, r * p.panel + v * p.lanes)

    def _broadcast(self, place: ir.Value) -> ir.Value:
        p, b = self.problem, self.code.b
        scalar = b.load(place, typ=p.element, align=p.dtype.bytes)
        undefined = ir.Constant(p.vector, ir.Undefined)
        return b.shuffle_vector(
            b.insert_element(undefined, scalar, I32(0)), undefined, ir.Constant(ir.VectorType(I32, p.lanes), None)
        )

    def _store(self, place: ir.Value, total: ir.Value, lanes: int) -> None:
        """Store the first lanes of a sum to C. If the depth has several blocks, add them to the stored value."""
        p, b = self.problem, self.code.b
        if lanes < p.lanes:
            first = ir.Constant(ir.VectorType(I32, lanes), list(range(lanes)))
            total = b.shuffle_vector(total, ir.Constant(p.vector, ir.Undefined), first)
        if p.depth > self.block:
            total = b.fadd(total, b.load(place, typ=total.type, align=p.dtype.bytes))
        b.store(total, place, align=p.dtype.bytes)

    def _finish(self, tile: Tile) -> None:
        p, code = self.problem, self.code
        assert self.end is not None
        rows = code.loop(tile.count, unroll=Unroll.NEVER)
        columns = code.loop(tile.width, unroll=over_columns(tile.width))
        place = address(code, self.finished, p.dtype, code.add(code.multiply(rows.index, p.panel), columns.index))
        value = code.b.load(place, typ=p.element, align=p.dtype.bytes)
        self.end(code.add(tile.top, rows.index), code.add(tile.column, columns.index), value)
        columns.close()
        rows.close()
