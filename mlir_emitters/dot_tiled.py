"""dot as a tiled matrix product: panels of the right operand are packed and stay in cache, a tile of accumulators is in
vector registers, as in K. Goto and R. van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008).
Elementwise ops that follow are computed on each finished tile.

C[m, n] = Σ A[m, k]·B[k, n]. Tiles and panels are some vectors of columns wide. Several rows of A are multiplied with a
panel together, so that every loaded vector of B is used as often. Other dimensions (batch, further free ones) are loops
around it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from mlir import ir

from ..hlo.dtypes import DType
from .builder import Index, Unroll, Value
from .convert import convert_to
from .dot import accumulator_of, narrow
from .dot_dims import Dimension, dimensions_of
from .elemental import Elemental, Indices, load_element
from .elements import Scalar, decode, encode, flatten, raw_type
from .graph import Buffer, Node

FEW_TILES = 8  # of rows: up to this number, the tile's height divides the rows, so that one tile's code is enough
LEAST_HEIGHT = 4  # of such a tile: lower ones use a loaded vector of B too few times
DEPTH = 256  # contracting elements of a packed panel, and multiply-adds per read and write of a result
WHOLE_DEPTH = 8 * DEPTH  # the same for panels with the whole depth: for narrower results and for epilogues
LEAST_COLUMNS = 8  # narrower products are dot products, for which loops are as fast
PACK_ROWS = 8  # with fewer rows, a panel is used too few times to be packed
TILED = frozenset(
    {
        DType.F32,
        DType.F64,
        DType.F16,
        DType.BF16,
        DType.S8,
        DType.S16,
        DType.S32,
        DType.S64,
        DType.U8,
        DType.U16,
        DType.U32,
        DType.U64,
    }
)
COMPUTE = {
    DType.F16: DType.F32,
    DType.BF16: DType.F32,
    DType.S8: DType.S32,
    DType.S16: DType.S32,
    DType.U8: DType.U32,
    DType.U16: DType.U32,
}


@functools.cache
def best_tile(vector_bits: int) -> tuple[int, int]:
    """(rows, vectors of columns) of the tile with the most multiply-adds per load, among those that fit in registers.

    Registers hold the sums, the vectors of B and one factor of A. The number of vectors is a power of two, because most
    products have a multiple of one as columns.
    """
    registers = 32 if vector_bits >= 512 else 16
    tiles = [((registers - vectors - 1) // vectors, vectors) for vectors in (1, 2, 4, 8)]
    return max(tiles, key=lambda tile: tile[0] * tile[1] / (tile[0] + tile[1]))


def emit_matmul(
    e: Elemental, node: Node, result: Buffer, vector_bits: int, write: Callable[[Indices], None] | None = None
) -> bool:
    """Emit the loops of a product. False if plain loops suit it better.

    write: called with the index of each result, whose value is bound; None stores the results to `result`.
    """
    lhs, rhs = node.inputs
    if e.b.strict or lhs.writer is not None or rhs.writer is not None or vector_bits < 128:
        return False
    if not {lhs.dtype, rhs.dtype, result.dtype} <= TILED or (result.dtype.is_integer and lhs.dtype.is_float):
        return False
    batch, rows, columns, contracted = dimensions_of(node)
    if len(contracted) != 1 or not contracted[0].size or not columns:
        return False
    column = columns.pop()
    row = rows.pop() if rows else Dimension(1, 0, 0, 0)
    if (
        column.out != 1 and row.out == 1 and row.size >= LEAST_COLUMNS
    ):  # a transposed result: multiply the other way round
        node_ = _Operands(rhs, lhs)
        row, column, depth = (d.flipped() for d in (column, row, contracted[0]))
        outer = [d.flipped() for d in (*batch, *rows, *columns)]
    else:
        node_, depth, outer = _Operands(lhs, rhs), contracted[0], [*batch, *rows, *columns]
    wide = accumulator_of(node)
    wide = COMPUTE.get(wide, wide)
    whole = wide is not result.dtype or write is not None
    if column.out != 1 or column.size < LEAST_COLUMNS or (whole and depth.size > WHOLE_DEPTH):
        return False
    Matmul(e, node_, result, wide, (row, column, depth), vector_bits, write).emit(outer)
    return True


@dataclass(frozen=True, slots=True)
class _Operands:
    left: Buffer
    right: Buffer


@dataclass(frozen=True, slots=True)
class _Block:
    """A part of a product: offsets of its first elements in A, B and the result, and its number of columns.

    depth: contracting elements. adds: whether the sums are added to the stored result.
    """

    left: Index
    right: Index
    out: Index
    depth: int
    columns: int
    adds: bool


class Matmul:
    """One product. Offsets are in elements of each buffer."""

    def __init__(
        self,
        e: Elemental,
        operands: _Operands,
        result: Buffer,
        wide: DType,
        dimensions: tuple[Dimension, Dimension, Dimension],
        vector_bits: int,
        write: Callable[[Indices], None] | None,
    ):
        self.e, self.b, self.result, self.wide, self.write = e, e.b, result, wide, write
        self.left, self.right = operands.left, operands.right
        self.row, self.column, self.depth = dimensions
        height, vectors = best_tile(vector_bits)
        even = [n for n in range(height, LEAST_HEIGHT - 1, -1) if self.row.size % n == 0]
        self.rows = even[0] if even and self.row.size <= FEW_TILES * even[0] else height
        self.element = raw_type(self.b.types, wide)
        self.lanes = vector_bits // (8 * wide.bytes)
        self.vector = ir.VectorType.get([self.lanes], self.element)
        self.width = min(vectors * self.lanes, -(-self.column.size // self.lanes) * self.lanes)
        self.narrow = wide is not result.dtype or write is not None
        self.coordinates: dict[int, Index] = {}  # of the result, along the loops around a tile
        self.first_row: Index = 0
        self.first_column: Index = 0
        self.block = self.depth.size if self.narrow else min(DEPTH, self.depth.size)
        # Contiguous rows of B that are read only a few times need no copy.
        whole = self.column.size % self.lanes == 0
        self.packs = not (whole and self.right.dtype is wide and self.column.rhs == 1 and self.row.size < PACK_ROWS)
        self.panel = self.b.alloca(self.element, self.block * self.width, 64) if self.packs else None
        self.tile = self.b.alloca(self.element, self.rows * self.width, 64) if self.narrow else None

    def emit(self, outer: Sequence[Dimension]) -> None:
        b = self.b
        offsets: list[Index] = [0, 0, 0]
        loops = []
        for d in outer:
            loops.append(b.open_loop(0, d.size))
            self.coordinates |= d.split(b, loops[-1].index)
            offsets = [b.add(o, b.mul(loops[-1].index, s)) for o, s in zip(offsets, self._strides(d), strict=True)]
        self._columns(offsets)
        for loop in reversed(loops):
            b.close_loop(loop)

    def _strides(self, d: Dimension) -> tuple[int, int, int]:
        return d.lhs, d.rhs, d.out

    def _columns(self, offsets: list[Index]) -> None:
        """Panels of columns; the last one may be narrower."""
        whole = self.column.size - self.column.size % self.width
        if whole == self.width:
            self._panel(offsets, 0, self.width)
        elif whole:
            with self.b.loop(0, whole, self.width) as loop:
                self._panel(offsets, loop.index, self.width)
        if whole < self.column.size:
            self._panel(offsets, whole, self.column.size - whole)

    def _panel(self, offsets: list[Index], start: Index, columns: int) -> None:
        """All rows of one panel, block by block along the contracting dimension."""
        b = self.b
        left, right, out = offsets
        self.first_column = start
        right, out = b.add(right, b.mul(start, self.column.rhs)), b.add(out, start)

        def block(first: Index, depth: int, adds: bool) -> None:
            part = b.add(left, b.mul(first, self.depth.lhs)), b.add(right, b.mul(first, self.depth.rhs))
            self._depth_block(_Block(*part, out, depth, columns, adds))

        size = self.depth.size
        if size <= 2 * self.block:
            for first in range(0, size, self.block):
                block(first, min(self.block, size - first), first > 0)
            return
        block(0, self.block, False)
        whole = size - size % self.block
        with b.loop(self.block, whole, self.block) as loop:
            block(loop.index, self.block, True)
        if whole < size:
            block(whole, size - whole, True)

    def _depth_block(self, block: _Block) -> None:
        """All rows of one block of the contracting dimension; the last tile may have fewer."""
        if self.packs:
            self._pack(block.right, block.depth, block.columns)
        whole = self.row.size - self.row.size % self.rows
        self.first_row = 0
        if whole == self.rows:
            self._rows(block, self.rows)
        elif whole:
            with self.b.loop(0, whole, self.rows, unroll=Unroll.NONE) as loop:
                self._rows(self._from_row(block, loop.index), self.rows)
        if whole < self.row.size:
            self._rows(self._from_row(block, whole), self.row.size - whole)

    def _from_row(self, block: _Block, row: Index) -> _Block:
        b = self.b
        self.first_row = row
        left, out = (b.add(at, b.mul(row, s)) for at, s in ((block.left, self.row.lhs), (block.out, self.row.out)))
        return replace(block, left=left, out=out)

    def _pack(self, right: Index, depth: int, columns: int) -> None:
        """Copy a block of B, converted and zero-padded to the panel's width. The inner loop follows B's memory."""
        b = self.b
        assert self.panel is not None
        by_column = self.column.rhs != 1 and self.depth.rhs == 1
        sizes = (columns, depth) if by_column else (depth, columns)
        with b.loop(0, sizes[0], unroll=Unroll.NONE) as slow, b.loop(0, sizes[1], unroll=Unroll.NONE) as fast:
            k, n = (fast.index, slow.index) if by_column else (slow.index, fast.index)
            offset = b.add(right, b.add(b.mul(k, self.depth.rhs), b.mul(n, self.column.rhs)))
            value = self._load(self.right, offset)
            b.store(value, b.pointer(self.panel, b.add(b.mul(k, self.width), n), self.element), self.wide.bytes)
        padded = -(-columns // self.lanes) * self.lanes
        if padded > columns:
            with b.loop(0, depth, unroll=Unroll.NONE) as slow, b.loop(columns, padded, unroll=Unroll.NONE) as fast:
                zero = b.like(0, self._zero())
                b.store(
                    zero,
                    b.pointer(self.panel, b.add(b.mul(slow.index, self.width), fast.index), self.element),
                    self.wide.bytes,
                )

    def _zero(self) -> Value:
        return self.b.constant(0.0 if self.wide.is_float else 0, self.element)

    def _load(self, buffer: Buffer, offset: Index) -> Value:
        raw = load_element(self.b, self.e.pointers[buffer.argument], buffer.dtype, offset)
        return flatten(convert_to(self.b, buffer.dtype, self.wide, decode(self.b, buffer.dtype, raw)))[0]

    def _rows(self, block: _Block, rows: int) -> None:
        """rows × columns results: accumulators in registers over one block of the contracting dimension."""
        b = self.b
        vectors = -(-block.columns // self.lanes)
        tile = [(m, v) for m in range(rows) for v in range(vectors)]
        with b.loop(0, block.depth, 1, [self._accumulator(block, m, v) for m, v in tile]) as loop:
            sources = [self._right_vector(block.right, loop.index, v) for v in range(vectors)]
            sums: list[Value] = []
            for m in range(rows):
                place = b.add(block.left, b.add(m * self.row.lhs, b.mul(loop.index, self.depth.lhs)))
                factor = b.op("vector.broadcast", self._load(self.left, place), type=self.vector)
                sums += [self._multiply_add(factor, x, loop.carried[len(sums) + v]) for v, x in enumerate(sources)]
            loop.next = sums
        for (m, v), value in zip(tile, loop.values, strict=True):
            self._store(value, block, m, v)
        if self.narrow:
            self._narrow(block.out, rows, block.columns)

    def _multiply_add(self, x: Value, y: Value, total: Value) -> Value:
        b = self.b
        if not self.wide.is_float:
            return b.op("arith.addi", total, b.op("arith.muli", x, y))
        if b.fma_hardware:
            return b.op("math.fma", x, y, total)
        return b.op("arith.addf", total, b.op("arith.mulf", x, y))

    def _right_vector(self, right: Index, k: Index, v: int) -> Value:
        b = self.b
        if self.panel is not None:
            place = b.pointer(self.panel, b.add(b.mul(k, self.width), v * self.lanes), self.element)
            return b.load(place, self.vector, self.lanes * self.wide.bytes)
        offset = b.add(right, b.add(b.mul(k, self.depth.rhs), v * self.lanes))
        return b.load(
            b.pointer(self.e.pointers[self.right.argument], offset, self.element), self.vector, self.wide.bytes
        )

    def _accumulator(self, block: _Block, m: int, v: int) -> Value:
        b, columns = self.b, block.columns
        if not block.adds:
            return b.op("vector.broadcast", self._zero(), type=self.vector)
        place = self._place(block.out, m, v)
        if (v + 1) * self.lanes <= columns:
            return b.load(place, self.vector, self.wide.bytes)
        zero = b.op("vector.broadcast", self._zero(), type=self.vector)
        return b.op(
            "llvm.intr.masked.load",
            place,
            self._mask(columns - v * self.lanes),
            zero,
            type=self.vector,
            attributes={"alignment": ir.IntegerAttr.get(b.types.i32, self.wide.bytes)},
        )

    def _place(self, out: Index, m: int, v: int) -> Value:
        offset = self.b.add(out, m * self.row.out + v * self.lanes)
        return self.b.pointer(self.e.pointers[self.result.argument], offset, self.element)

    def _mask(self, count: int) -> Value:
        b = self.b
        type = ir.VectorType.get([self.lanes], b.types.i1)
        bits = ", ".join("true" if lane < count else "false" for lane in range(self.lanes))
        return b.vector_constant(ir.Attribute.parse(f"dense<[{bits}]> : {type}"), type, ("mask", self.lanes, count))

    def _store(self, value: Value, block: _Block, m: int, v: int) -> None:
        b, columns = self.b, block.columns
        if self.tile is not None:
            place = b.pointer(self.tile, m * self.width + v * self.lanes, self.element)
            b.store(value, place, self.lanes * self.wide.bytes)
        elif (v + 1) * self.lanes <= columns:
            b.store(value, self._place(block.out, m, v), self.wide.bytes)
        else:
            b.operation(
                "llvm.intr.masked.store",
                [],
                [value, self._place(block.out, m, v), self._mask(columns - v * self.lanes)],
                {"alignment": ir.IntegerAttr.get(b.types.i32, self.wide.bytes)},
            )

    def _narrow(self, out: Index, rows: int, columns: int) -> None:
        """Round a tile of accumulators into the result, or pass it to `write`."""
        b, dtype = self.b, self.result.dtype
        assert self.tile is not None
        type = raw_type(b.types, dtype)
        with b.loop(0, rows, unroll=Unroll.NONE) as row, b.loop(0, columns, unroll=Unroll.NONE) as column:
            place = b.pointer(self.tile, b.add(b.mul(row.index, self.width), column.index), self.element)
            value = b.load(place, self.element, self.wide.bytes)
            rounded = narrow(b, self.wide, dtype, value) if dtype.is_float else convert_to(b, self.wide, dtype, value)
            if self.write is not None:
                self._hand_on(b.add(self.first_row, row.index), b.add(self.first_column, column.index), rounded)
            else:
                target = b.add(out, b.add(b.mul(row.index, self.row.out), column.index))
                b.store(
                    flatten(encode(b, dtype, rounded))[0],
                    b.pointer(self.e.pointers[self.result.argument], target, type),
                    dtype.bytes,
                )

    def _hand_on(self, row: Index, column: Index, value: Scalar) -> None:
        b = self.b
        assert self.write is not None
        places = self.coordinates | self.row.split(b, row) | self.column.split(b, column)
        index = tuple(places.get(d, 0) for d in range(len(self.result.dims)))
        b.remember((self.result, index, False), value)
        self.write(index)
