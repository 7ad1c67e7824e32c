"""The operands of a tiled product: panels of the right one are packed, rows of the left one are converted where their
dtype is not that of the sums.
"""

from __future__ import annotations

from dataclasses import dataclass

from llvmlite import ir

from ..hlo.dtypes import DType
from .builder import Code, IndexValue, Unroll
from .convert import convert
from .dot_problem import Problem
from .loops import parts
from .memory import Pointer, address, load, store
from .registers import I32, real_constant

STRIP = 64
"""Rows of a panel that are packed together where B is read across them: each line of the panel is written in many
places, so that these rows should stay in the first cache.
"""


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix in a buffer: the offset of element (0, 0) for this batch, and the strides of rows and columns, in
    elements.
    """

    pointer: Pointer
    start: IndexValue
    row: int
    column: int

    def offset(self, code: Code, row: IndexValue, column: IndexValue) -> IndexValue:
        return code.add(code.add(self.start, code.multiply(row, self.row)), code.multiply(column, self.column))

    def at(self, code: Code, dtype: DType, row: IndexValue, column: IndexValue) -> ir.Value:
        """The address of an element."""
        return address(code, self.pointer, dtype, self.offset(code, row, column))


@dataclass(frozen=True, slots=True)
class Tile:
    """`count` rows of C from `top` on, and `width` columns, at most a panel's, from `column` on."""

    top: IndexValue
    count: int
    column: IndexValue
    width: int


@dataclass(frozen=True, slots=True)
class Operands:
    """A and B of a product, and the memory that they are copied to.

    panel: for B, at most `block` rows of it. converted: for a tile's rows of A; None if these are read in place.
    """

    code: Code
    problem: Problem
    block: int
    a: Matrix
    b: Matrix
    panel: Pointer
    converted: Pointer | None

    def pack(self, column: IndexValue, width: int, row: IndexValue, depth: int) -> None:
        """Pack B[row…, column…] into the panel. The inner loop follows B's memory."""
        p, code = self.problem, self.code
        across = self.b.column <= self.b.row
        for start, end, size in [(0, depth, depth)] if across else parts(depth, STRIP):
            strips = code.loop(end - start, start=start, step=size, unroll=Unroll.NEVER)
            outer = code.loop(size if across else width, unroll=Unroll.NEVER)
            inner = code.loop(width if across else size, unroll=Unroll.NEVER)
            k, j = (outer.index, inner.index) if across else (inner.index, outer.index)
            k = code.add(strips.index, k)
            offset = self.b.offset(code, code.add(row, k), code.add(column, j))
            value = convert(code, p.right, p.dtype, load(code, self.b.pointer, p.right, offset))
            store(code, self.panel, p.dtype, code.add(code.multiply(k, p.panel), j), value)
            inner.close()
            outer.close()
            strips.close()
        if width < p.panel:
            self._pack_zeros(width, depth)

    def _pack_zeros(self, width: int, depth: int) -> None:
        p, code = self.problem, self.code
        outer = code.loop(depth, unroll=Unroll.NEVER)
        inner = code.loop(p.panel - width, start=width, unroll=Unroll.NEVER)
        target = code.add(code.multiply(outer.index, p.panel), inner.index)
        store(code, self.panel, p.dtype, target, real_constant(p.element, 0.0))
        inner.close()
        outer.close()

    def pack_left(self, tile: Tile, row: IndexValue, depth: int) -> None:
        """Convert A[top…, row…], the rows of a tile one after the other, unless they are read in place. The inner loop
        follows A's memory.
        """
        p, code = self.problem, self.code
        if self.converted is None:
            return
        along = self.a.column <= self.a.row
        outer = code.loop(tile.count if along else depth, unroll=Unroll.NEVER)
        inner = code.loop(depth if along else tile.count, unroll=Unroll.NEVER)
        r, k = (outer.index, inner.index) if along else (inner.index, outer.index)
        offset = self.a.offset(code, code.add(tile.top, r), code.add(row, k))
        value = convert(code, p.left, p.dtype, load(code, self.a.pointer, p.left, offset))
        store(code, self.converted, p.dtype, code.add(code.multiply(r, self.block), k), value)
        inner.close()
        outer.close()

    def left(self, tile: Tile, r: int, row: IndexValue, place: IndexValue) -> ir.Value:
        """A[top + r, row + place] in each lane of a value."""
        p, code, b = self.problem, self.code, self.code.b
        if self.converted is None:
            at = self.a.at(code, p.dtype, code.add(tile.top, r), code.add(row, place))
        else:
            at = address(code, self.converted, p.dtype, code.add(r * self.block, place))
        scalar = b.load(at, typ=p.element, align=p.dtype.bytes)
        lanes, _ = p.values(tile.width)
        undefined = ir.Constant(ir.VectorType(p.element, lanes), ir.Undefined)
        return b.shuffle_vector(
            b.insert_element(undefined, scalar, I32(0)), undefined, ir.Constant(ir.VectorType(I32, lanes), None)
        )

    def right(self, tile: Tile, place: IndexValue) -> list[ir.Value]:
        """The values of row `place` of the panel."""
        p, code = self.problem, self.code
        lanes, count = p.values(tile.width)
        first = code.multiply(place, p.panel)
        return [
            code.b.load(
                address(code, self.panel, p.dtype, code.add(first, v * lanes)),
                typ=ir.VectorType(p.element, lanes),
                align=p.lanes * p.dtype.bytes,
            )
            for v in range(count)
        ]
