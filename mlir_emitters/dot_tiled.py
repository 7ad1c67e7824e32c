"""dot as a tiled matrix product: panels of the right operand are packed and stay in cache, a tile of accumulators is in
vector registers, as in K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
Elementwise ops that follow are computed on each finished tile.

C[m, n] = Σ A[m, k]·B[k, n]. Tiles and panels are some vectors of columns wide. Several rows of A are multiplied with a
panel together, so that every loaded vector of B is used as often. Other dimensions (batch, further free ones) are loops
around it.

Complex numbers are two columns of B and of C each, and two factors of A: a tile has sums of B's row times the real
parts of A, and times the imaginary ones, and joins them as they are stored. It has as many multiply-adds as planes of
parts would, and B need not be parted.

The contracting dimension is summed in blocks of about DEPTH, whatever its size, and block sums are added to totals.
Totals are in the result where it has their type. Otherwise, and if there are more than PRECISE blocks, they are on the
stack, for a band of rows at a time; of many blocks of f32 in f64, so that rounding errors do not grow with the depth.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from mlir import ir

from ..hlo.dtypes import DType
from ..hlo.records import replace
from .builder import Index, Unroll, Value
from .dot import accumulator_of
from .dot_dims import Dimension
from .dot_dtypes import IN_VECTORS, dtype_of_sums
from .dot_flat import FLAT_ROWS, NEAR_TILE, PACK_ROWS, is_flat, is_large, near_rows, shares_lines
from .dot_operands import Block, Operands, is_readable
from .dot_product import Product, open_loops, positions_of_step, product_of
from .dot_registers import FEW_REGISTERS, best_tile, flat_tile, lanes_of, registers_of
from .dot_results import Results, Totals
from .dot_stream import RowsOfB
from .dot_tile import CACHE_LINE, Tile
from .dot_words import Words
from .elemental import Elemental, Indices
from .elements import raw_type
from .graph import Buffer, Node
from .ranges import Steps, bounds, grouped

FEW_TILES = 8  # of rows: up to this number, or of words, the tile's height divides the rows: one tile's code is enough
LEAST_HEIGHT = 4  # of such a tile: lower ones use a loaded vector of B too few times
DEPTH = 256  # contracting elements of a packed panel, and multiply-adds per read and write of a total
LONG_DEPTH = 2 * DEPTH  # the same with many registers, whose machines have large second caches: XLA's depth, too
WHOLE_DEPTH = 2 * DEPTH  # the same for panels with the whole depth: for narrower results and for epilogues
PRECISE = 48  # blocks of f32 that may be added up in f32
FEW_SUMS = 8  # vectors of sums, up to which a tile waits for additions, not for memory: it has several sums of each
FEW_DEPTH = DEPTH // 4  # the depth of its blocks
STREAM_DEPTH = 16  # of one row: as many rows of B are read along all columns, while the next ones are fetched
NEAR_DEPTH = 64  # the same of a B that a processor reads from its caches, and that is not fetched
STREAM_ROWS = 8  # the same with few registers, whose panels are narrow: a page of each of more rows has left the caches
PAGE_COLUMNS = 1 << 10  # columns of B's rows that are read one after the other: a page of f32
FAR_BYTES = 3 << 22  # of a B that comes from the memory: of one in the third cache, tiles read it as fast
STREAM_TOTALS = 1 << 13  # columns whose totals are on the stack if a row is read so: 32 KiB, half of the first caches
BAND = 256  # rows whose totals are on the stack: with f64 and 64 columns, 128 KiB
ROWS_OF_STEPS = 256  # rows for which a panel is packed once, of those that a call computes
FETCH_ROWS = 16  # rows of B that are fetched before they are read in place; a row takes some 16 cycles
FLAT_DEPTH = 256  # of several rows that read B in place: as many rows of B are read along all columns


def converts_in_place(product: Product) -> bool:
    """Whether factors of A are converted as they are read, and not in front of each tile: where they are read a few
    times, where that is an instruction, and where a tile's factors of a step are adjacent: too few for a loop.
    """
    if product.factors < PACK_ROWS or product.depth.lhs != 1:
        return product.left.dtype in IN_VECTORS
    return product.left.dtype in IN_VECTORS.keys() - {DType.F16}


def emit_matmul(
    e: Elemental,
    node: Node,
    result: Buffer,
    vector_bits: int,
    write: Callable[[Indices], None] | None = None,
    steps: Steps | None = None,
) -> bool:
    """Emit the loops of a product. False if plain loops suit it better.

    write: called with the index of each result, whose value is bound; None stores the results to `result`.
    """
    product = product_of(e.b, node, result, vector_bits)
    if product is None:
        return False
    wide = dtype_of_sums(accumulator_of(node))
    of_step = 0 if steps is None else positions_of_step(product.column, steps.partition)
    rows_of_step = 0 if steps is None or of_step else positions_of_step(product.row, steps.partition)
    Matmul(e, product, result, wide, vector_bits, write, steps, of_step, rows_of_step).emit()
    return True


def steps_together(steps: Steps, rows_of_step: int) -> int:
    """How many steps a panel is packed for at once, of those that a call computes."""
    most = max(1, ROWS_OF_STEPS // rows_of_step)
    return next(n for n in range(most, 0, -1) if steps.partition.least % n == 0)


class Matmul:
    """One product. Offsets are in elements of each buffer."""

    def __init__(
        self,
        e: Elemental,
        product: Product,
        result: Buffer,
        wide: DType,
        vector_bits: int,
        write: Callable[[Indices], None] | None,
        steps: Steps | None = None,
        of_step: int = 0,
        rows_of_step: int = 0,
    ):
        """of_step, rows_of_step: the columns or the rows of a step; both 0 if it is of loops around."""
        self.e, self.b, self.result, self.wide = e, e.b, result, wide
        self.outer = product.outer
        self.row, self.column, self.depth = product.row, product.column, product.depth
        self.parts = product.parts
        self.steps, self.of_step, self.rows_of_step = steps, of_step, rows_of_step
        self.narrow = wide is not result.dtype.component or write is not None
        few = is_flat(product, wide, vector_bits, self.narrow)
        words = None if few else Words.of(e.b.facts, product.left.dtype, product.right.dtype, wide, product.depth.size)
        converting = words is None and product.left.dtype is not wide and converts_in_place(product)
        codes = any(x.dtype.bits <= 8 for x in (product.left, product.right))
        near = is_large(product, wide) and self.row.size <= near_rows(vector_bits)
        height, vectors = (
            flat_tile(vector_bits, self.row.size, NEAR_TILE if near else FLAT_ROWS, self.parts)
            if few
            else best_tile(vector_bits, converting, codes and wide.is_float, self.parts)
        )
        least = LEAST_HEIGHT // self.parts
        self.together = steps_together(steps, rows_of_step) if steps is not None and rows_of_step else 1
        called = rows_of_step * self.together or self.row.size  # rows that tiles follow each other in

        def height_for(rows: int) -> int:
            """Of tiles: one that divides the rows, where that is worth it."""
            even = next((n for n in range(height, least - 1, -1) if rows % n == 0), 0)
            lower = even and ((words is not None and words.wraps) or rows <= FEW_TILES * even)
            return even if lower else height

        self.rows = height_for(called)
        self.words = 1 if words is None else words.size
        self.in_words = words is not None and words.are_read(self.depth.lhs)  # of A
        d, n = self.depth, self.words
        self.depth = replace(d, size=-(-d.size // n), lhs=d.lhs * n, rhs=d.rhs * n)
        self.element = raw_type(self.b.types, wide)
        self.lanes = lanes_of(vector_bits, wide, self.column.size if few else 0)
        self.width = min(vectors * self.lanes, -(-self.column.size // self.lanes) * self.lanes)
        # How products are summed must depend on neither steps nor a tile's place: a last bit would.
        self.sums = height_for(self.row.size) * self.parts * self.width // self.lanes
        few_registers = registers_of(vector_bits) <= FEW_REGISTERS
        room = few_registers and self.sums + self.width // self.lanes + 2 <= FEW_REGISTERS
        self.pairs = room and (product.left.dtype, wide, self.depth.lhs) == (DType.BF16, DType.F32, 1)
        if steps is not None and of_step:
            self.width = math.gcd(self.width, of_step * steps.partition.least)
        self.first_row: Index = 0
        self.first_column: Index = 0
        few_sums = self.sums <= FEW_SUMS
        streams = few and is_readable(product, wide)
        if self.narrow:
            streams = streams and self.row.size == 1 and self.column.size <= STREAM_TOTALS
        depth = FEW_DEPTH if few_sums and not streams else DEPTH
        precise = wide is DType.F32 and self.depth.size > PRECISE * depth
        self.banded = precise or (self.narrow and not streams and self.depth.size > WHOLE_DEPTH)
        self.total = DType.F64 if precise else wide
        block = (DEPTH if few_sums else 2 * DEPTH) if precise else depth
        if wide.is_float and not (precise or few_sums or few or self.narrow or few_registers):
            block = LONG_DEPTH
        self.streams = streams and not self.banded
        self.sums_of_page: Value | None = None
        far = self.depth.size * self.column.size * product.right.dtype.bytes >= FAR_BYTES
        self.later = False  # whether tiles fetch the next block of B, not the next rows
        if self.streams:
            self.later = near or self.row.size == 1
            short = STREAM_ROWS if few_registers else STREAM_DEPTH if is_large(product, wide) else NEAR_DEPTH
            if far and self.row.size == 1 and self.parts == 1:  # dot_stream.py
                short = NEAR_DEPTH
                self.sums_of_page = self.b.alloca(self.element, PAGE_COLUMNS, 64)
            flat = FEW_DEPTH if self.parts > 1 and few_sums else FLAT_DEPTH  # chains of complex sums are short in XLA
            block = short if self.later else flat
        whole = self.narrow and not self.banded and not self.streams
        self.block = self.depth.size if whole else min(block, self.depth.size)
        sizes = self.lanes, self.width, self.rows, self.block
        self.operands = Operands(e, product, wide, *sizes, few, converting or self.in_words, words)
        if self.streams and not self.later and shares_lines(product):
            self.operands.spread_left(self.row.size)
        if product.left.dtype is not wide and few_registers:
            self.operands.fetches_left = False
        if self.row.size == 1 and not few_registers and not is_large(product, wide):
            self.operands.fetches = False  # a fetch takes the place of a load
        self.tile = None
        self.band = self.rows * max(1, BAND // self.rows) if self.banded else self.row.size
        if self.narrow or self.banded:
            rows = min(self.band + self.rows - 1, self.row.size) if self.banded else self.rows
            size = -(-self.column.size // self.lanes) * self.lanes if self.streams else rows * self.width
            self.tile = self.b.alloca(raw_type(self.b.types, self.total), size, 64)
        totals = None if self.tile is None else Totals(self.tile, self.total, self.width)
        self.results = Results(e, product, result, wide, totals, write)

    def emit(self) -> None:
        b = self.b
        # Short tiles are so fast that the loops around them are worth all that LLVM does.
        tall = self.column.size <= self.width  # the only panel needs all rows from memory
        b.lean = bool(self.streams)
        b.shares = self.block >= (DEPTH // 2 if tall else DEPTH // 4) and not self.streams
        offsets: list[Index] = [0, 0, 0]
        inside = self.of_step or self.rows_of_step
        loops, places = open_loops(b, self.outer, None if inside else self.steps)
        for d, place in zip(self.outer, places, strict=True):
            self.results.coordinates |= d.split(b, place)
            offsets = [b.add(o, b.mul(place, s)) for o, s in zip(offsets, self._strides(d), strict=True)]
        if self.rows_of_step:
            self._row_blocks(offsets)
        else:
            self._columns(offsets)
        for loop in reversed(loops):
            b.close_loop(loop)

    def _row_blocks(self, offsets: list[Index]) -> None:
        """Blocks of the steps' rows, each with panels of its own."""
        b, steps, each, whole = self.b, self.steps, self.rows_of_step, self.row
        assert steps is not None
        for _, step, count in grouped(b, steps, [steps.partition.extent], self.together):
            self.results.top = top = b.mul(step, each)
            self.row = replace(whole, size=count * each)
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
        if self.steps is not None and self.of_step:
            first, last = bounds(self.b, self.steps, self.column.size)
            end = last if whole == self.column.size else self.b.binary("minsi", self.b.materialize(last), whole)
            with self.b.loop(first, end, self.width) as loop:
                visit(loop.index, self.width)
            if whole < self.column.size:
                with self.b.loop(whole, last, self.column.size - whole) as loop:
                    visit(whole, self.column.size - whole)
            return
        if whole == self.width:
            visit(0, self.width)
        elif whole:
            with self.b.loop(0, whole, self.width) as loop:
                visit(loop.index, self.width)
        if whole < self.column.size:
            visit(whole, self.column.size - whole)

    def _blocks(self, visit: Callable[[Index, int, bool | Value], None]) -> None:
        """visit: called with the first contracting element of each block, their number, and whether totals exist."""
        b, size = self.b, self.depth.size
        whole = size - size % self.block
        if whole == self.block:
            visit(0, self.block, False)
        else:
            # One copy of the code for all blocks; LLVM must not make another for the first one.
            with b.loop(0, whole, self.block, unroll=Unroll.NONE) as loop:
                later = b.compare_integers("sgt", b.materialize(loop.index), b.materialize(0))
                visit(loop.index, self.block, later)
        if whole < size:
            visit(whole, size - whole, True)

    def _stream(self, offsets: list[Index], block: tuple[Index, int, bool | Value]) -> None:
        """All columns of a block of the contracting dimension."""
        if self.operands.spread is not None:
            part = self._deeper(self._of_panel(offsets, 0, 0), block[0])
            self.operands.copy_left(replace(part, depth=block[1]), self.row.size)
        whole = self.column.size - self.column.size % self.lanes
        if self.sums_of_page is None or not whole:
            self._panels(lambda *panel: self._part(offsets, panel, block))
            return
        first, last = bounds(self.b, self.steps if self.of_step else None, self.column.size)
        self._along(
            offsets, block, first, last if last == whole else self.b.binary("minsi", self.b.materialize(last), whole)
        )
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
            count = b.binary("minsi", b.materialize(b.sub(end, page.index)), PAGE_COLUMNS)
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
        b, vector = self.b, ir.VectorType.get([self.lanes], self.element)
        nothing = b.op("vector.broadcast", b.constant(-0.0 if self.wide.is_float else 0, self.element), type=vector)
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
        if whole <= self.band:
            self._band(block, 0, self.row.size)
            return
        with b.loop(0, whole, self.band, unroll=Unroll.NONE) as loop:
            end = b.add(loop.index, self.band)
            if whole % self.band:
                end = b.binary("minsi", b.materialize(end), whole)
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
        tile = Tile(
            self.wide,
            left.dtype,
            right.dtype,
            self.wide if self.tile is None else self.total,
            rows,
            columns,
            self.lanes,
            "k"
            if left.along == (self.words if self.in_words else self.parts)
            else "m"
            if left.row == self.parts
            else "-",
            0 if operands.reads(block.columns) else self.width,
            apart,
            self.tile is None and columns != block.columns,
            None if ahead is None else ahead.dtype,
            b.fma_hardware,
            self.words,
            self.pairs and apart == 1 and block.depth % 2 == 0,
            operands.fetches and operands.reads(block.columns),
            self.parts,
        )
        if self.tile is None:
            out, stride = b.pointer(self.e.pointers[self.result.argument], block.out, self.element), self.row.out
        else:
            out, stride = b.pointer(self.tile, block.total, raw_type(b.types, self.total)), self.width
        adds = int(block.adds) if isinstance(block.adds, bool) else b.extui(block.adds, b.types.i64)
        lines = (
            -(-block.columns * self.wide.bytes // CACHE_LINE)
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
            numbers.append(right.row * (self.block if self.later else FETCH_ROWS))
        tile.call(b, places, [*numbers, lines])
        if self.narrow and not self.banded and not self.streams:
            self._finish(block.out, rows, block.columns)

    def _sums_apart(self, depth: int) -> int:
        """Into how many sums, a power of two, each vector of a tile is split: products k, k + n, …"""
        apart = 1
        while self.wide.is_float and 2 * apart * self.sums <= FEW_SUMS and depth % (2 * apart) == 0:
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
