"""The operands of a tiled product: panels of the right one are packed, rows of the left one are converted where their
dtype is not that of the sums. What large products read and write is fetched into the first cache shortly before.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.records import dataclass, replace
from ..core.builder import Code, IndexValue, Unroll
from ..core.registers import I64, Register, memory_type
from ..core.stack import alloca
from ..loops.elemental import Elemental, Index
from ..loops.form import Results
from ..loops.leaf import write_all
from ..loops.memory import Pointer, address, load, prefetch, store
from ..loops.ranges import parts
from ..numerics.convert import convert
from ..numerics.narrow import decode_vector
from .dot_micro import Ahead
from .dot_pack import ROWS_AHEAD, STRIP, Pack
from .dot_pairs import part_of, put, put_left
from .dot_problem import Problem, Side
from .dot_words import element, first_sums, word

PLACES_AHEAD = 64
"""Elements of A's rows that are fetched before they are read: a tile reads a short stretch of each of several rows."""

NARROW_TILE = 2
"""Vectors of columns up to which tiles fetch nothing of A: their steps are too short. With 6 × 2 vectors, a step is 20
instructions in 6 cycles, in which a processor decodes 36; a fetch and the choice of its row are 12 more.
"""


HALVES = frozenset({DType.F16, DType.BF16})
"""Dtypes of a left operand of which vectors are converted."""


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

    def in_parts(self, code: Code, parts: int) -> Matrix:
        """The matrix of the parts of its elements, which are adjacent in a row."""
        return Matrix(self.pointer, code.multiply(self.start, parts), self.row * parts, 1 if parts > 1 else self.column)

    def at(self, code: Code, dtype: DType, row: IndexValue, column: IndexValue) -> ir.Value:
        """The address of an element."""
        return address(code, self.pointer, dtype, self.offset(code, row, column))


def give(
    e: Elemental,
    results: Results,
    batch: Sequence[IndexValue],
    places: Sequence[tuple[IndexValue, Side]],
    linear: IndexValue,
    value: Register,
) -> None:
    """Store an element of the product, or compute all that follows it. places: its positions along the sides, in the
    order of the result's dimensions; linear: its place in memory.
    """
    (instruction,), shape = results.products, results.products[0].shape
    if results.ends:
        store(e.code, results.first.pointer(e), shape.dtype, linear, value)
        return
    positions = [*batch]
    for place, side in places:
        positions += e.code.split(place, [side.operand.shape.dims[d] for d in side.free])
    index = Index(e.code, shape.dims, shape.minor_to_major, tuple(positions), linear)
    e.bind(instruction, index, value)
    write_all(e, results.leaves, index)


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

    panel: for B, at most `block` rows of it. converted: for a tile's rows of A; None if these are read in place. first:
    for what the sums of words begin with.
    """

    code: Code
    problem: Problem
    block: int
    a: Matrix
    b: Matrix
    panel: Pointer
    converted: Pointer | None
    first: Pointer

    def in_place(self, width: int) -> bool:
        """Whether columns of B, `width` together, are read where they lie."""
        return self.problem.flat and width % self.problem.lanes == 0

    def pack(self, column: IndexValue, width: int, row: IndexValue, depth: int) -> None:
        """Pack B[row…, column…] into the panel. The inner loop follows B's memory. What fills a part of the panel is
        packed here: its width is a constant, on which vectors of short rows depend.
        """
        p, code = self.problem, self.code
        if self.in_place(width):
            return
        across = self.b.column <= self.b.row
        if p.parts > 1:
            column, row, depth = code.divide(column, p.parts), code.divide(row, p.parts), depth // p.parts
        if width == p.panel and p.elements % p.group == 0:
            unit = min(self.b.column, self.b.row) == 1
            pack = Pack(p.right, p.dtype, width, across, unit, False, p.lanes, p.group)
            pack = replace(pack, fetches=p.large and (pack.turns or (across and self.b.column == 1)))
            first = code.multiply(row, p.group)
            source = code.b.gep(
                self.b.pointer.value,
                [code.value(code.multiply(self.b.offset(code, first, column), p.parts))],
                source_etype=memory_type(p.right),
            )
            pack.call(code, source, self.panel.value, depth, self.b.row, self.b.column)
            if p.group > 1 and p.wraps:
                first_sums(code, p, self.panel, depth, self.first)
            return
        elements = width // p.parts
        for start, end, size in [(0, depth, depth)] if across else parts(depth, STRIP):
            with (
                code.loop(end - start, start=start, step=size, unroll=Unroll.NEVER) as strip,
                code.loop(size if across else elements, unroll=Unroll.NEVER) as outer,
            ):
                if p.large and across and self.b.column == 1:
                    self._fetch_rows(code.add(row, code.add(outer, ROWS_AHEAD)), column, elements)
                with code.loop(elements if across else size, unroll=Unroll.NEVER) as inner:
                    k, j = (outer, inner) if across else (inner, outer)
                    k = code.add(strip, k)
                    self._put(k, j, code.add(row, k), code.add(column, j))
        if width < p.panel:
            self._pack_zeros(width, depth * p.parts)
        if p.group > 1 and p.wraps:
            first_sums(code, p, self.panel, depth, self.first)

    def _put(self, k: IndexValue, j: IndexValue, place: IndexValue, column: IndexValue) -> None:
        """Store to row k and column j of the panel what it has of a column of B at a place of the depth."""
        p, code = self.problem, self.code
        if p.parts > 1:
            value = load(code, self.b.pointer, p.right, self.b.offset(code, place, column))
            put(code, p.dtype, self.panel, p.panel, k, j, value)
        else:
            target = code.add(code.multiply(k, p.panel), j)
            store(code, self.panel, p.dtype, target, self._of_right(place, column))

    def _of_right(self, place: IndexValue, column: IndexValue) -> ir.Value:
        """What the panel has of a column of B at a place of the depth."""
        p, code = self.problem, self.code
        if p.group > 1:
            return word(code, p, self.b.pointer, self.b.offset(code, 0, column), self.b.row, place)
        return convert(code, p.right, p.dtype, load(code, self.b.pointer, p.right, self.b.offset(code, place, column)))

    def _fetch_rows(self, place: IndexValue, column: IndexValue, width: int) -> None:
        code, dtype, group = self.code, self.problem.right, self.problem.group
        for n in range(group):
            row = code.add(code.multiply(place, group), n)
            for first in range(0, width, self.problem.processor.line_bytes * 8 // dtype.bits):
                prefetch(code, self.b.pointer, dtype, self.b.offset(code, row, code.add(column, first)))

    def _pack_zeros(self, width: int, depth: int) -> None:
        p, code = self.problem, self.code
        with (
            code.loop(depth, unroll=Unroll.NEVER) as outer,
            code.loop(p.panel - width, start=width, unroll=Unroll.NEVER) as inner,
        ):
            target = code.add(code.multiply(outer, p.panel), inner)
            store(code, self.panel, p.dtype, target, ir.Constant(p.element, 0))

    def pack_left(self, tile: Tile, row: IndexValue, depth: int) -> None:
        """Convert A[top…, row…], the rows of a tile one after the other, unless they are read in place. The inner loop
        follows A's memory.
        """
        p, code = self.problem, self.code
        if self.converted is None:
            return
        if self.in_columns:
            self._pack_columns(tile, row, depth)
            return
        along = self.a.column <= self.a.row
        first, count = code.multiply(row, p.group), depth * p.group
        if p.parts > 1:
            first, count = code.divide(row, p.parts), depth // p.parts
        rest = p.elements % p.group
        end = code.minimum(count, code.subtract(p.elements, first)) if rest and p.wraps else count
        with (
            code.loop(tile.count if along else end, unroll=Unroll.NEVER) as outer,
            code.loop(end if along else tile.count, unroll=Unroll.NEVER) as inner,
        ):
            r, k = (outer, inner) if along else (inner, outer)
            column = code.add(first, k)
            inside = code.b.icmp_signed("<", code.value(column), I64(p.elements)) if rest and not p.wraps else None
            column = column if inside is None else code.minimum(column, p.elements - 1)
            value = load(code, self.a.pointer, p.left, self.a.offset(code, code.add(tile.top, r), column))
            target = code.add(code.multiply(r, self.block * p.group), code.multiply(k, p.parts))
            if p.parts > 1:
                put_left(code, p.dtype, self.converted, target, value)
            elif p.group > 1:
                part = element(code, p, value)
                if inside is not None:  # behind the last element: zero times zero, not times what was there
                    part = code.b.select(inside, part, ir.Constant(part.type, 0))
                place = code.b.gep(self.converted.value, [code.value(target)], source_etype=part.type)
                code.b.store(part, place, align=part.type.width // 8)
            else:
                store(code, self.converted, p.dtype, target, convert(code, p.left, p.dtype, value))

    @property
    def in_columns(self) -> bool:
        """Whether a tile's copy of A's rows has their columns one after the other, as A has them in memory, so that
        vectors are converted.
        """
        p = self.problem
        return self.converted is not None and self.a.row == p.group == 1 and (p.parts > 1 or p.left in HALVES)

    def _pack_columns(self, tile: Tile, row: IndexValue, depth: int) -> None:
        """Convert the same column by column; one of complex numbers becomes one of each part."""
        p, code, count = self.problem, self.code, tile.count
        assert self.converted is not None
        with code.loop(depth // p.parts, unroll=Unroll.NEVER) as i:
            column = code.add(code.divide(row, p.parts), i)
            vector = ir.VectorType(memory_type(p.left), count * p.parts)
            values = code.b.load(self.a.at(code, p.left, tile.top, column), typ=vector, align=p.left.component.bytes)
            for n in range(p.parts):
                part = part_of(code, values, n) if p.parts > 1 else decode_vector(code.b, p.left, values)
                place = code.multiply(code.add(code.multiply(i, p.parts), n), count)
                code.b.store(part, address(code, self.converted, p.dtype, place), align=p.dtype.bytes)

    def spread(self, rows: int) -> Operands:
        """The same with a copy of A's rows, whose lines are in different sets of the first cache."""
        p, code = self.problem, self.code
        row = p.depth + p.processor.line_bytes // p.dtype.bytes
        copy = Pointer(alloca(code, p.element, rows * row))
        with code.loop(rows, unroll=Unroll.NEVER) as outer, code.loop(p.depth) as inner:
            value = load(code, self.a.pointer, p.left, self.a.offset(code, outer, inner))
            store(code, copy, p.dtype, code.add(code.multiply(outer, row), inner), value)
        return replace(self, a=Matrix(copy, 0, row, 1))

    def right(self, column: IndexValue, row: IndexValue) -> ir.Value:
        """The address of B[row, column]."""
        return self.b.at(self.code, self.problem.right, row, column)

    def left(self, tile: Tile, row: IndexValue) -> tuple[ir.Value, int, int]:
        """(the address of A[top, row], the strides of rows and columns) where a tile reads it."""
        if self.converted is None:
            place = self.a.at(self.code, self.problem.dtype, tile.top, row)
            return place, self.a.row, self.a.column
        if self.in_columns:
            return self.converted.value, 1, tile.count
        return self.converted.value, self.block, 1

    def ahead(self, tile: Tile, row: IndexValue) -> Ahead | None:
        """What a tile fetches of A.

        Rows that are converted are the next tile's. Others must not be: where rows are a page apart, the lines of two
        tiles would drive each other from the first cache.
        """
        p, code = self.problem, self.code
        next_tile = self.converted is not None
        if p.flat or not p.fetches(tile.count) or self.a.column != 1 or p.vectors <= NARROW_TILE:
            return None
        group, dtype = (1, p.dtype) if p.in_words else (p.group, p.left)
        k = code.multiply(row, group)
        r, k = (code.add(tile.top, tile.count), k) if next_tile else (tile.top, code.add(k, PLACES_AHEAD))
        first = code.b.gep(
            self.a.pointer.value, [code.value(self.a.offset(code, r, k))], source_etype=memory_type(dtype)
        )
        return Ahead(first, self.a.row * dtype.bytes, dtype.bytes * group)
