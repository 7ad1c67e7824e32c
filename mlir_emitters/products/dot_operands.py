"""The operands of a tiled matrix product: panels of the right one are packed, and vectors and scalars of both are
converted to the dtype that they are multiplied in. What does not stay in the caches is fetched before it is used.
"""

from __future__ import annotations

from ...hlo.dtypes import DType
from ...hlo.records import dataclass, replace
from ..core.builder import Index, Pointer, Unroll, Value
from ..core.elements import decode, flatten, raw_type
from ..loops.elemental import Elemental, load_element
from ..numerics.convert import convert_to
from .dot_blocks import Blocking
from .dot_pack import DEPTH_TOGETHER, ROWS_AHEAD, Pack
from .dot_product import Operand, is_readable
from .dot_words import Words

ELEMENTS_AHEAD = 32
"""Elements of A's rows that are fetched before they are read: a tile reads a short stretch of each."""


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a product: offsets of its first elements in A, B, the result and the totals, its number of columns.

    depth: contracting elements, or words of them. adds: whether the sums are added to totals; a value where that is
    known at run time. first: the first of the depth.
    """

    left: Index
    right: Index
    out: Index
    total: Index
    depth: int
    columns: int
    adds: bool | Value
    first: Index = 0


@dataclass(frozen=True, slots=True)
class Read:
    """Elements of `dtype` from a place on. row, along: strides of rows and along them, in elements."""

    dtype: DType
    place: Pointer
    row: int
    along: int


class Operands:
    """How a product's tiles read A and B. Offsets are in elements of each buffer."""

    def __init__(self, e: Elemental, blocking: Blocking):
        product, tile, wide, words = blocking.product, blocking.tile, blocking.wide, blocking.tile.words
        self.e, self.b, self.wide, self.lanes, self.width = e, e.b, wide, tile.lanes, tile.width
        self.left, self.right, self.block, self.rows = product.left, product.right, blocking.block, tile.rows
        self.row, self.column, self.depth, self.parts = product.row, product.column, product.depth, product.parts
        self.element = raw_type(self.b.types, wide)
        self.fetches = not product.is_near(self.b.facts) and blocking.fetches
        alike = product.depth.lhs == self.parts  # contracting elements of A are neighbours
        self.fetches_left = not tile.flat and alike and blocking.fetches_left and not blocking.spreads
        # Contiguous rows of B that are read only a few times need no copy.
        self.reads_right = tile.flat and is_readable(product, wide)
        self.first_sums = words is not None and words.wraps  # whether sums begin with a row in front of the panel
        self.panel = self.left_panel = self.spread = None
        if not self.reads_right or self.column.size % self.lanes:
            self.panel = self.b.alloca(self.element, (self.block + self.first_sums) * self.width, 64)
        self.words, self.size = words, tile.size
        self.panel_at = self.width * self.first_sums  # behind the row of first sums
        if self.left.dtype is not wide and not (tile.converting or tile.reads_words(product.depth)):
            self.left_panel = self.b.alloca(self.element, self.block * self.rows, 64)
        if blocking.spreads:  # all rows of a block of A, their lines in different sets of the first cache
            self.spread = self.b.alloca(self.element, self._spread_row * self.row.size, 64)
        # Strides of rows and of contracting elements there.
        self.of_left = (self.block, 1) if self.depth.lhs == 1 else (1, self.rows)

    def zero(self) -> Value:
        return self.b.constant(0.0 if self.wide.is_float else 0, self.element)

    def pack(self, block: Block) -> None:
        """Copy a block of B, converted and zero-padded to the panel's width. The inner loop follows B's memory.

        What fills a part of the panel is packed here: its width is a constant, on which vectors of short rows depend.
        """
        b, columns, depth = self.b, block.columns, block.depth
        if self.reads(columns):
            return
        assert self.panel is not None
        unit = "n" if self.column.rhs == 1 else "k" if self.depth.rhs == self.parts else "-"
        if columns == self.width and (self.words is None or self.words.are_packed(self.right.dtype, unit)):
            sizes = columns, self.lanes, unit
            pack = Pack(self.right.dtype, self.wide, *sizes, False, b.fma_hardware, self.parts, self.size)
            if self.fetches and (unit == "n" or pack.turns):
                pack = replace(pack, fetches=True)
            numbers = [depth, self.depth.rhs, self.column.rhs]
            pack.call(
                b,
                self._place(self.right, block.right),
                b.pointer(self.panel, self.panel_at, self.element),
                numbers,
            )
            if self.words is not None and self.first_sums:
                self._store_first_sums(self.words, depth, columns // self.lanes)
            return
        if self.column.rhs != 1 and self.depth.rhs == self.parts:
            whole = depth - depth % DEPTH_TOGETHER
            for first, last in ((0, whole), (whole, depth)):
                if first != last:
                    with b.loop(first, last, min(DEPTH_TOGETHER, last - first), unroll=Unroll.NONE) as group:
                        self._pack_across(block, group.index, min(DEPTH_TOGETHER, last - first))
        else:
            with b.loop(0, depth, unroll=Unroll.NONE) as slow:
                if self.fetches and self.column.rhs == 1:
                    for n in range(self.size):
                        self._fetch_row(block, b.add(b.mul(b.add(slow.index, ROWS_AHEAD), self.size), n))
                with b.loop(0, columns // self.parts, unroll=Unroll.NONE) as fast:
                    self._pack_one(block, slow.index, fast.index)
        padded = -(-columns // self.lanes) * self.lanes
        if padded > columns:
            with b.loop(0, depth, unroll=Unroll.NONE) as slow, b.loop(columns, padded, unroll=Unroll.NONE) as fast:
                zero = b.like(0, self.zero())
                b.store(
                    zero,
                    b.pointer(self.panel, self._panel_offset(slow.index, fast.index), self.element),
                    self.wide.bytes,
                )
        if self.words is not None and self.first_sums:
            self._store_first_sums(self.words, depth, padded // self.lanes)

    def _panel_offset(self, k: Index, n: Index) -> Index:
        return self.b.add(self.panel_at, self.b.add(self.b.mul(k, self.width), n))

    def _store_first_sums(self, words: Words, depth: int, vectors: int) -> None:
        b, panel, type = self.b, self.panel, self.b.vector(self.lanes, self.element)
        assert panel is not None

        def place(k: Index, v: int) -> Pointer:
            return b.pointer(panel, self._panel_offset(k, v * self.lanes), self.element)

        zero = b.op("vector.broadcast", self.zero(), type=type)
        with b.loop(0, depth, 1, [zero] * vectors, Unroll.NONE) as loop:
            rows = [b.load(place(loop.index, v), type, self.lanes * self.wide.bytes) for v in range(vectors)]
            loop.next = words.first_sums(b, rows, loop.carried)
        for v, total in enumerate(loop.values):
            b.store(b.op("arith.subi", zero, total), place(-1, v), self.lanes * self.wide.bytes)

    def _fetch_row(self, block: Block, k: Index) -> None:
        b, dtype = self.b, self.right.dtype
        start = b.add(block.right, b.mul(k, self.depth.rhs))
        for column in range(0, block.columns, b.processor.line_bytes // dtype.bytes):
            b.prefetch(self._place(self.right, b.add(start, column)))

    def ahead(self, block: Block) -> Read | None:
        """What a tile fetches of A, from its first place on; None: nothing.

        Rows that are converted are the next tile's. Not so others: where rows are a page apart, those of two tiles
        would drive each other from the first cache.
        """
        b, row = self.b, self.row.lhs
        if not self.fetches_left:
            return None
        start = b.add(block.left, ELEMENTS_AHEAD * self.parts if self.left_panel is None else self.rows * row)
        return Read(self.left.dtype, self._place(self.left, start), row, 1)

    def _place(self, buffer: Operand, offset: Index) -> Pointer:
        return self.b.pointer(self.e.pointers[buffer.argument], offset, raw_type(self.b.types, buffer.dtype))

    def _pack_across(self, block: Block, first: Index, count: int) -> None:
        """Some contracting elements of a block that is stored by columns. Each of them is a line of the panel that is
        written column by column: few such lines stay in the first cache.
        """
        b = self.b
        columns = block.columns // self.parts
        with b.loop(0, columns, unroll=Unroll.NONE) as slow, b.loop(0, count, unroll=Unroll.NONE) as fast:
            self._pack_one(block, b.add(first, fast.index), slow.index)

    def _pack_one(self, block: Block, k: Index, n: Index) -> None:
        b = self.b
        assert self.panel is not None
        n = b.mul(n, self.parts)
        offset = b.add(block.right, b.add(b.mul(k, self.depth.rhs * self.size), b.mul(n, self.column.rhs)))
        if self.words is None:
            values = [self._load(self.right, b.add(offset, part)) for part in range(self.parts)]
        else:
            pointer, place = self.e.pointers[self.right.argument], b.add(block.first, k)
            values = [self.words.load(b, pointer, self.right.dtype, offset, self.depth.rhs, place)]
        for part, value in enumerate(values):
            at = self._panel_offset(k, b.add(n, part))
            b.store(value, b.pointer(self.panel, at, self.element), self.wide.bytes)

    def reads(self, columns: int) -> bool:
        """Whether vectors of B are read in place, for a panel of this many columns."""
        return self.reads_right and columns % self.lanes == 0

    def pack_left(self, block: Block, rows: int) -> None:
        """Copy a tile's rows of A, converted, unless they are read in place. The inner loop follows A's memory."""
        b = self.b
        if self.left_panel is None:
            return
        by_row = self.depth.lhs == 1
        if self.words is not None and self.words.is_memory(self.left.dtype, self.depth.lhs):
            self._copy_words(self.words, block, rows)
            return
        sizes = (rows, block.depth) if by_row else (block.depth, rows)
        with b.loop(0, sizes[0], unroll=Unroll.NONE) as slow, b.loop(0, sizes[1], unroll=Unroll.NONE) as fast:
            m, k = (slow.index, fast.index) if by_row else (fast.index, slow.index)
            along = b.mul(k, self.depth.lhs * self.size)
            offset = b.add(block.left, b.add(b.mul(m, self.row.lhs), along))
            if self.words is None:
                value = self._load(self.left, offset)
            else:
                pointer, place = self.e.pointers[self.left.argument], b.add(block.first, k)
                value = self.words.load(b, pointer, self.left.dtype, offset, self.depth.lhs, place)
                value = self.words.flip(b, value)
            b.store(value, self._left_place(m, k), self.wide.bytes)

    def _copy_words(self, words: Words, block: Block, rows: int) -> None:
        """Copy words of a tile's rows of A as they lie in memory, some at a time: LLVM makes no vectors of words."""
        b = self.b
        pointer = self.e.pointers[self.left.argument]
        whole = block.depth - block.depth % self.lanes
        for first, last, count in ((0, whole, self.lanes), (whole, block.depth, 1)):
            if first == last:
                continue
            with b.loop(0, rows, unroll=Unroll.NONE) as row, b.loop(first, last, count, unroll=Unroll.NONE) as k:
                place = b.add(block.left, b.add(b.mul(row.index, self.row.lhs), b.mul(k.index, words.size)))
                several = words.load_several(b, pointer, place, count)
                b.store(several, self._left_place(row.index, k.index), self.wide.bytes)

    def _left_place(self, m: Index, k: Index) -> Value:
        b, (row, along) = self.b, self.of_left
        assert self.left_panel is not None
        return b.pointer(self.left_panel, b.add(b.mul(m, row), b.mul(k, along)), self.element)

    def _load(self, buffer: Operand, offset: Index) -> Value:
        raw = load_element(self.b, self.e.pointers[buffer.argument], buffer.dtype, offset)
        return flatten(convert_to(self.b, buffer.dtype, self.wide, decode(self.b, buffer.dtype, raw)))[0]

    @property
    def _spread_row(self) -> int:
        return self.block * self.parts + self.b.processor.line_bytes // self.wide.bytes

    def copy_left(self, block: Block, rows: int) -> None:
        """Copy rows of a block of A."""
        b = self.b
        assert self.spread is not None
        length = block.depth * self.parts
        with b.loop(0, rows, unroll=Unroll.NONE) as row, b.loop(0, length, unroll=Unroll.NONE) as k:
            value = self._load(self.left, b.add(block.left, b.add(b.mul(row.index, self.row.lhs), k.index)))
            at = b.add(b.mul(row.index, self._spread_row), k.index)
            b.store(value, b.pointer(self.spread, at, self.element), self.wide.bytes)

    def left_read(self, block: Block, top: Index, first: Index = 0) -> Read:
        """Where a tile of rows from `top` on reads A. first: of what was packed, where a block is a part of it."""
        if self.spread is not None:
            place = self.b.pointer(self.spread, self.b.mul(top, self._spread_row), self.element)
            return Read(self.wide, place, self._spread_row, self.parts)
        if self.left_panel is not None:
            row, along = self.of_left
            return Read(self.wide, self.b.pointer(self.left_panel, self.b.mul(first, along), self.element), row, along)
        return Read(self.left.dtype, self._place(self.left, block.left), self.row.lhs, self.depth.lhs * self.size)

    def right_read(self, block: Block) -> Read:
        """Where a tile reads rows of B; columns are adjacent."""
        if self.reads(block.columns):
            return Read(self.right.dtype, self._place(self.right, block.right), self.depth.rhs, 1)
        assert self.panel is not None
        return Read(self.wide, self.b.pointer(self.panel, self.panel_at, self.element), self.width, 1)
