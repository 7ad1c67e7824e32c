"""dot as a tiled matrix product: panels of the right operand are packed and stay in cache, a tile of accumulators is in
vector registers, as in K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
Elementwise ops that follow are computed on each finished tile.

C[m, n] = Σ A[m, k]·B[k, n]. Tiles and panels are some vectors of columns wide. Several rows of A are multiplied with a
panel together, so that every loaded vector of B is used as often. Other dimensions (batch, further free ones) are loops
around it.

Complex numbers are two columns of B and of C each, and two factors of A: a tile has sums of B's row times the real
parts of A, and times the imaginary ones, and joins them as they are stored. It has as many multiply-adds as planes of
parts would, and B need not be split.

The contracting dimension is summed in blocks of about PANEL_DEPTH, whatever its size, and block sums are added to
totals. Totals are in the result where it has their type. Otherwise, and if there are more than PRECISE_BLOCKS, they are
on the stack, for a band of rows at a time; of many blocks of f32 in f64, so that rounding errors do not grow with the
depth.
"""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.records import replace
from ..core.builder import Index, Unroll, Value
from ..core.elements import raw_type
from ..core.facts import Code
from ..core.graph import Buffer
from ..loops.elemental import Elemental, Indices
from ..loops.form import Answer, Fits
from ..loops.ranges import Steps, bounds, chunks, grouped
from ..loops.view import Subject, View
from ..reductions.results import epilogue
from .dot import accumulator_of
from .dot_blocks import FEW_SUM_VECTORS, PANEL_DEPTH, STREAM_ROWS, Blocking, blocking_of
from .dot_dims import Dimension
from .dot_dtypes import dtype_of_sums
from .dot_operands import Block, Operands
from .dot_product import computes_steps, open_loops, product_of
from .dot_results import Results, Totals
from .dot_stream import RowsOfB
from .dot_tile import Tile

PAGE_COLUMNS = 1 << 10
"""Columns of B's rows that are read one after the other: a page of f32."""

FETCH_ROWS = 16
"""Rows of B that are fetched before they are read in place; a row takes some 16 cycles."""


def fits(view: View, subject: Subject) -> Answer:
    facts, node, result = view.facts, subject.node, subject.product_result
    product = product_of(facts, node, result)
    if isinstance(product, str):
        return product
    wide = dtype_of_sums(accumulator_of(node))
    narrow = wide is not result.dtype.component or bool(subject.products)
    blocking = blocking_of(facts, product, wide, narrow, view.partition)
    return Fits(blocking, computes_steps(facts, node, product, view.partition), _code_of(blocking))


def _code_of(blocking: Blocking) -> Code:
    """Short tiles are so fast that the loops around them are worth all that LLVM does."""
    tall = blocking.product.column.size <= blocking.tile.width  # the only panel needs all rows from memory
    long = blocking.block >= (PANEL_DEPTH // 2 if tall else PANEL_DEPTH // 4)
    return Code(shares=long and not blocking.streams, lean=blocking.streams)


def emit(e: Elemental, subject: Subject, blocking: Blocking, steps: Steps | None) -> None:
    """Emit the loops of a product."""
    Matmul(e, blocking, subject.product_result, epilogue(e, subject), steps).emit()


class Matmul:
    """One product. Offsets are in elements of each buffer."""

    def __init__(
        self,
        e: Elemental,
        blocking: Blocking,
        result: Buffer,
        write: Callable[[Indices], None] | None,
        steps: Steps | None,
    ):
        """write: called with the index of each result, whose value is bound; None stores the results to `result`."""
        product, tile, wide = blocking.product, blocking.tile, blocking.wide
        self.e, self.b, self.result, self.wide, self.blocking = e, e.b, result, wide, blocking
        self.outer, self.row, self.column, self.depth = product.outer, product.row, product.column, blocking.depth
        self.parts, self.steps, self.total = product.parts, steps, blocking.total
        self.rows, self.width, self.lanes, self.block = tile.rows, tile.width, tile.lanes, blocking.block
        self.narrow, self.banded, self.streams = blocking.narrow, blocking.banded, blocking.streams
        self.element = raw_type(self.b.types, wide)
        self.first_row: Index = 0
        self.first_column: Index = 0
        self.sums_of_page = self.b.alloca(self.element, PAGE_COLUMNS, 64) if blocking.pages else None
        self.operands = Operands(e, blocking)
        self.tile = None
        if self.narrow or self.banded:
            rows = min(blocking.band + self.rows - 1, self.row.size) if self.banded else self.rows
            size = -(-self.column.size // self.lanes) * self.lanes if self.streams else rows * self.width
            self.tile = self.b.alloca(raw_type(self.b.types, self.total), size, 64)
        totals = None if self.tile is None else Totals(self.tile, self.total, self.width)
        self.results = Results(e, product, result, wide, totals, write)

    def emit(self) -> None:
        b = self.b
        offsets: list[Index] = [0, 0, 0]
        sizes = self.blocking.steps
        loops, places = open_loops(b, self.outer, None if sizes.columns or sizes.rows else self.steps)
        for d, place in zip(self.outer, places, strict=True):
            self.results.coordinates |= d.split(b, place)
            offsets = [b.add(o, b.mul(place, s)) for o, s in zip(offsets, self._strides(d), strict=True)]
        if sizes.rows:
            self._row_blocks(offsets)
        else:
            self._columns(offsets)
        b.close_loops(loops)

    def _row_blocks(self, offsets: list[Index]) -> None:
        """Blocks of the steps' rows, each with panels of its own."""
        b, steps, sizes, whole = self.b, self.steps, self.blocking.steps, self.row
        assert steps is not None
        for _, step, count in grouped(b, steps, [steps.partition.extent], sizes.together):
            self.results.top = top = b.mul(step, sizes.rows)
            self.row = replace(whole, size=count * sizes.rows)
            strides = whole.lhs, 0, whole.out
            self._columns([b.add(o, b.mul(top, s)) for o, s in zip(offsets, strides, strict=True)])

    def _strides(self, d: Dimension) -> tuple[int, int, int]:
        return d.lhs, d.rhs, d.out

    def _columns(self, offsets: list[Index]) -> None:
        """All panels of columns, each block by block along the contracting dimension, or the other way round."""
        if self.streams:
            self._blocks(lambda *block: self._stream(offsets, block))
            if self.narrow:
                self._panels(lambda *panel: self._finish_panel(offsets, panel))
        elif self.banded:
            self._panels(lambda *panel: self._bands(offsets, panel))
        else:
            self._panels(lambda *panel: self._blocks(lambda *block: self._part(offsets, panel, block)))

    def _panels(self, visit: Callable[[Index, int], None]) -> None:
        """visit: called with the first column and the number of columns of each panel; the last one may be narrower."""
        whole = self.column.size - self.column.size % self.width
        if self.steps is not None and self.blocking.steps.columns:
            first, last = bounds(self.b, self.steps, self.column.size)
            end = last if whole == self.column.size else self.b.least(last, whole)
            with self.b.loop(first, end, self.width) as loop:
                visit(loop.index, self.width)
            if whole < self.column.size:
                with self.b.loop(whole, last, self.column.size - whole) as loop:
                    visit(whole, self.column.size - whole)
            return
        for panel in chunks(self.b, 0, self.column.size, self.width):
            visit(*panel)

    def _blocks(self, visit: Callable[[Index, int, bool | Value], None]) -> None:
        """visit: called with the first contracting element of each block, their number, and whether totals exist."""
        b = self.b
        # One copy of the code for all blocks; LLVM must not make another for the first one.
        for first, depth in chunks(b, 0, self.depth.size, self.block, Unroll.NONE):
            if isinstance(first, int):
                visit(first, depth, first > 0)
            else:
                visit(first, depth, b.compare_integers("sgt", b.materialize(first), b.materialize(0)))

    def _stream(self, offsets: list[Index], block: tuple[Index, int, bool | Value]) -> None:
        """All columns of a block of the contracting dimension."""
        if self.operands.spread is not None:
            part = self._deeper(self._of_panel(offsets, 0, 0), block[0])
            self.operands.copy_left(replace(part, depth=block[1]), self.row.size)
        whole = self.column.size - self.column.size % self.lanes
        if self.sums_of_page is None or not whole:
            self._panels(lambda *panel: self._part(offsets, panel, block))
            return
        first, last = bounds(self.b, self.steps if self.blocking.steps.columns else None, self.column.size)
        self._along(offsets, block, first, self.b.least(last, whole))
        if whole < self.column.size:
            with self.b.loop(whole, last, self.column.size - whole):
                self._part(offsets, (whole, self.column.size - whole), block)

    def _along(self, offsets: list[Index], block: tuple[Index, int, bool | Value], start: Index, end: Index) -> None:
        """Columns of a block of the only row, as whole vectors: pages of B's rows, whose sums are on the stack."""
        b, operands, (first, depth, adds) = self.b, self.operands, block
        assert self.sums_of_page is not None
        part = self._deeper(replace(self._of_panel(offsets, 0, 0), depth=depth), first)
        operands.pack_left(part, 1)
        sums = b.pointer(self.sums_of_page, 0, self.element)
        with b.loop(start, end, PAGE_COLUMNS, unroll=Unroll.NONE) as page:
            count = b.least(b.sub(end, page.index), PAGE_COLUMNS)
            whole = depth - depth % STREAM_ROWS
            for low, high, rows in ((0, whole, STREAM_ROWS), (whole, depth, depth - whole)):
                if low == high:
                    continue
                with b.loop(low, high, rows, unroll=Unroll.NONE) as k:
                    deeper = self._deeper(replace(part, right=b.add(part.right, page.index)), k.index)
                    left, right = operands.left_read(deeper, 0, k.index), operands.right_read(deeper)
                    helper = RowsOfB(self.wide, left.dtype, right.dtype, rows, self.lanes, b.fma_hardware)
                    more = b.extui(b.compare_integers("sgt", b.materialize(k.index), b.materialize(0)), b.types.i64)
                    numbers = [left.along, right.row, count, more, *(right.row * n for n in range(1, rows))]
                    helper.call(b, [left.place, right.place, sums], numbers)
            self._add_page(b.add(part.out, page.index), page.index, count, adds)

    def _add_page(self, out: Index, column: Index, count: Index, adds: bool | Value) -> None:
        """Add the sums of a page's columns to totals."""
        b, vector = self.b, self.b.vector(self.lanes, self.element)
        nothing = b.filled(-0.0, vector)
        with b.loop(0, count, self.lanes, unroll=Unroll.NONE) as k:
            total = b.load(b.pointer(self.sums_of_page, k.index, self.element), vector, self.lanes * self.wide.bytes)
            if self.tile is None:
                place = b.pointer(self.e.pointers[self.result.argument], b.add(out, k.index), self.element)
            else:
                place = b.pointer(self.tile, b.add(column, k.index), self.element)
            if adds is not False:
                before = b.load(place, vector, self.wide.bytes)
                before = before if adds is True else b.select(adds, before, nothing)
                total = b.op("arith.addf" if self.wide.is_float else "arith.addi", before, total)
            b.store(total, place, self.wide.bytes)

    def _part(self, offsets: list[Index], panel: tuple[Index, int], block: tuple[Index, int, bool | Value]) -> None:
        """All rows of a block of a panel."""
        (start, columns), (first, depth, adds) = panel, block
        part = self._deeper(replace(self._of_panel(offsets, start, columns), depth=depth, adds=adds), first)
        self.operands.pack(part)
        whole = self.row.size - self.row.size % self.rows
        self._tiles(part, 0, 0, whole, self.rows)
        self._tiles(part, 0, whole, self.row.size, self.row.size - whole)

    def _bands(self, offsets: list[Index], panel: tuple[Index, int]) -> None:
        """All rows of a panel, with totals on the stack."""
        b, block = self.b, self._of_panel(offsets, *panel)
        whole = self.row.size - self.row.size % self.rows
        if whole <= self.blocking.band:
            self._band(block, 0, self.row.size)
            return
        with b.loop(0, whole, self.blocking.band, unroll=Unroll.NONE) as loop:
            end = b.add(loop.index, self.blocking.band)
            if whole % self.blocking.band:
                end = b.least(end, whole)
            self._band(block, loop.index, end)
        if whole < self.row.size:
            self._band(block, whole, self.row.size)

    def _of_panel(self, offsets: list[Index], start: Index, columns: int) -> Block:
        """A block of no depth: where the panel begins."""
        b = self.b
        left, right, out = offsets
        self.first_column = start
        return Block(left, b.add(right, b.mul(start, self.column.rhs)), b.add(out, start), 0, 0, columns, True)

    def _deeper(self, block: Block, first: Index) -> Block:
        """The block that begins at a contracting element."""
        b = self.b
        left, right = (
            b.add(at, b.mul(first, s)) for at, s in ((block.left, self.depth.lhs), (block.right, self.depth.rhs))
        )
        return replace(block, left=left, right=right, first=first)

    def _band(self, block: Block, start: Index, end: Index) -> None:
        """A band of rows, of whole tiles where their number is not known: totals on the stack, then results."""
        b = self.b
        assert self.tile is not None
        count = b.sub(end, start)
        rest = count % self.rows if isinstance(count, int) else 0
        whole_end = b.sub(end, rest)
        element = raw_type(b.types, self.total)
        zero = b.constant(0.0 if self.total.is_float else 0, element)
        with b.loop(0, b.mul(count, self.width), unroll=Unroll.NONE) as loop:
            b.store(zero, b.pointer(self.tile, loop.index, element), self.total.bytes)
        whole = self.depth.size - self.depth.size % self.block
        for first, last in ((0, whole), (whole, self.depth.size)):
            if first == last:
                continue
            with b.loop(first, last, self.block, unroll=Unroll.NONE) as loop:
                part = self._deeper(replace(block, depth=min(self.block, last - first)), loop.index)
                self.operands.pack(part)
                self._tiles(part, start, start, whole_end, self.rows)
                self._tiles(part, start, whole_end, end, rest)
        self.first_row = start
        self._finish(b.add(block.out, b.mul(start, self.row.out)), count, block.columns)

    def _tiles(self, block: Block, base: Index, start: Index, end: Index, rows: int) -> None:
        """Tiles of `rows` rows each, from row `start` on. base: the row of the first total."""
        if not rows or (isinstance(start, int) and start == end):
            return
        if isinstance(start, int) and isinstance(end, int) and end - start == rows:
            self._rows(self._from_row(block, base, start), rows)
        else:
            with self.b.loop(start, end, rows, unroll=Unroll.NONE) as loop:
                self._rows(self._from_row(block, base, loop.index), rows)

    def _from_row(self, block: Block, base: Index, row: Index) -> Block:
        b = self.b
        self.first_row = row
        left, out = (b.add(at, b.mul(row, s)) for at, s in ((block.left, self.row.lhs), (block.out, self.row.out)))
        total = b.mul(b.sub(row, base), self.width) if self.banded else self.first_column if self.streams else 0
        return replace(block, left=left, out=out, total=total)

    def _rows(self, block: Block, rows: int) -> None:
        """rows × columns results: sums over one block of the contracting dimension."""
        b, operands = self.b, self.operands
        operands.pack_left(block, rows)
        fetches = operands.fetches and rows == self.rows  # a rest of rows is too short to gain
        ahead = operands.ahead(block) if fetches else None
        left, right = operands.left_read(block, self.first_row), operands.right_read(block)
        columns, apart = -(-block.columns // self.lanes) * self.lanes, self._sums_apart(block.depth)
        shape = self.blocking.tile
        tile = Tile(
            self.wide,
            left.dtype,
            right.dtype,
            self.wide if self.tile is None else self.total,
            rows,
            columns,
            self.lanes,
            "k"
            if left.along == (shape.size if shape.reads_words(self.blocking.product.depth) else self.parts)
            else "m"
            if left.row == self.parts
            else "-",
            0 if operands.reads(block.columns) else self.width,
            apart,
            self.tile is None and columns != block.columns,
            None if ahead is None else ahead.dtype,
            b.fma_hardware,
            shape.size,
            shape.pairs and apart == 1 and block.depth % 2 == 0,
            operands.fetches and operands.reads(block.columns),
            self.parts,
        )
        if self.tile is None:
            out, stride = b.pointer(self.e.pointers[self.result.argument], block.out, self.element), self.row.out
        else:
            out, stride = b.pointer(self.tile, block.total, raw_type(b.types, self.total)), self.width
        adds = int(block.adds) if isinstance(block.adds, bool) else b.extui(block.adds, b.types.i64)
        lines = (
            -(-block.columns * self.wide.bytes // b.processor.line_bytes)
            if fetches and self.tile is None and not self.streams
            else 0
        )
        places = [left.place, right.place, out]
        numbers: list[Index] = [left.along, right.row, block.depth, stride, adds, block.columns]
        numbers += [left.row * m for m in range(1, tile.starts)]
        if ahead is not None:
            places.append(ahead.place)
            numbers.append(ahead.row)
        if tile.later:
            numbers.append(right.row * (self.block if self.blocking.later else FETCH_ROWS))
        tile.call(b, places, [*numbers, lines])
        if self.narrow and not self.banded and not self.streams:
            self._finish(block.out, rows, block.columns)

    def _sums_apart(self, depth: int) -> int:
        """Into how many sums, a power of two, each vector of a tile is split: products k, k + n, …"""
        apart = 1
        while (
            self.wide.is_float and 2 * apart * self.blocking.tile.sums <= FEW_SUM_VECTORS and depth % (2 * apart) == 0
        ):
            apart *= 2
        return apart

    def _finish_panel(self, offsets: list[Index], panel: tuple[Index, int]) -> None:
        """Finish the only row's totals, which are those of all panels."""
        block = self._of_panel(offsets, *panel)
        self.first_row = 0
        self._finish(block.out, 1, block.columns, self.first_column)

    def _finish(self, out: Index, rows: Index, columns: int, first: Index = 0) -> None:
        """Finish rows of totals, from `first` on."""
        self.results.finish(out, (self.first_row, rows), (self.first_column, columns), first)
