"""Tiles of results that read arrays across the order of memory: blocks that are transposed in registers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from llvmlite import ir

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ...hlo.shapes import Shape
from ..core.builder import Code, IndexValue
from ..core.registers import I32, memory_type, transposed
from ..core.stack import alloca
from ..core.view import View
from .access import Access, crossings_of, fastest_dimension
from .elemental import Elemental, Index
from .form import Fit, Results, Task, form, known
from .leaf import Leaf
from .memory import Pointer, address, load
from .nest import NARROW, TILE_SIDE, Body, Modes, open_nest, writes
from .ranges import Part, Steps, block_of, blocks, parts

MINIMUM_TILED_ELEMENTS = TILE_SIDE * TILE_SIDE
"""Elements of an array that is read across memory, at least: those of a tile."""


MINIMUM_TILED_SIDE = 8
"""Elements of the result along each side, at least: what is one value a row needs no tiles."""


TURNS = 8
"""Rows of a result of which parts of a line, which the next positions outside them complete, are written by turns."""


LEAST_SIDE = 4
"""Of the blocks that are transposed in registers: smaller ones do not pay off."""


def tile_of(view: View, roots: Sequence[Instruction], shape: Shape) -> tuple[int, int, list[Access]] | None:
    """(The dimension across which a leaf of the roots is read, the fastest, all such leaves), if tiles pay off."""
    fast = fastest_dimension(shape)
    found = (
        c
        for root in roots
        for c in crossings_of(view, root, MINIMUM_TILED_ELEMENTS)
        if c.across != fast and fast in c.roles
    )
    crossings = [c for c in found if shape.dims[c.across] >= MINIMUM_TILED_SIDE]
    wide = fast is not None and shape.dims[fast] >= MINIMUM_TILED_SIDE
    return (crossings[0].across, fast, crossings) if fast is not None and wide and crossings else None


@dataclass(frozen=True, slots=True)
class Tiles:
    """across: the dimension across which leaves are read; fast: that of neighbours in the result. staged: what is
    copied to the stack. lines: whether what is written is one of these, moved; streams: whether its lines go past the
    caches. inside: the dimension along which rows of one block follow each other. block: rows of a tile in steps.
    """

    across: int
    fast: int
    staged: tuple[Access, ...]
    lines: bool
    streams: bool
    inside: tuple[int, ...]
    outside: tuple[int, ...]
    block: int | None


def emit_tiles(e: Elemental, results: Results, tiles: Tiles, steps: Steps | None) -> None:
    """In tiles of two dimensions, as a leaf of the roots is read across the memory order of their shape."""
    shape, across, fast, body = results.shape, tiles.across, tiles.fast, writes(e, results)
    staged = [
        Staged(c, Pointer(alloca(e.code, memory_type(c.value.shape.dtype), TILE_SIDE * TILE_SIDE)))
        for c in tiles.staged
    ]
    positions: list[IndexValue] = [0] * shape.rank
    lines = None
    if tiles.lines:
        lines = Lines(e.code, results.first.pointer(e), shape, staged[0].tile, tiles.streams)
    inside = tiles.inside

    def rows(_: list[IndexValue], first: IndexValue = 0, size: int = shape.dims[across]) -> None:
        for start, end, height in parts(size, TURNS if inside else TILE_SIDE):
            if not inside:
                columns((start, end, height), first, [])
                continue
            with e.code.loop(end - start, start=start, step=height) as i:
                top = e.code.add(first, i)
                open_nest(e, shape.dims, inside, positions, partial(columns, (0, height, height), top), Modes())

    def columns(height: Part, top: IndexValue, _: list[IndexValue]) -> None:
        for width in parts(shape.dims[fast], TILE_SIDE):
            _tiles(e, positions, (across, fast), height, width, staged, body, lines, top)

    if steps is None or tiles.block is None:
        open_nest(e, shape.dims, tiles.outside, positions, rows, Modes(), steps)
        return
    numbered = steps.dimensions
    for outer, first, size in blocks(e.code, steps, [shape.dims[d] for d in numbered], tiles.block):
        for d, place in zip(numbered, outer, strict=False):
            positions[d] = place
        open_nest(e, shape.dims, tiles.outside, positions, partial(rows, first=first, size=size), Modes())


def _tiles(
    e: Elemental,
    positions: list[IndexValue],
    dims: tuple[int, int],
    height: Part,
    width: Part,
    staged: Sequence[Staged],
    body: Body,
    lines: Lines | None,
    top: IndexValue = 0,
) -> None:
    """All tiles of one part of the two dimensions. Leaves read across them are first transposed on the stack, but what
    only moves goes straight to the result where no line is written past the caches, and no place of them is crowded.

    top: what is added to the positions of the height.
    """
    code, (across, fast) = e.code, dims
    outer = code.loop(height[1] - height[0], start=height[0], step=height[2])
    inner = code.loop(width[1] - width[0], start=width[0], step=width[2])
    above = code.add(top, outer.index)
    positions[across], positions[fast] = above, inner.index
    if lines is not None and not lines.fit(width[2]) and lines.apart(across):
        straight = Rows(lines.result, code.weighted_sum(positions, lines.shape.strides), lines.shape.strides[across])
        if _turn(e, staged[0], positions, fast, height[2], width[2], straight):
            inner.close()
            outer.close()
            return
    turned = [s for s in staged if _turn(e, s, positions, fast, height[2], width[2])]
    row = code.loop(height[2])
    column_start = inner.index
    positions[across] = code.add(above, row.index)
    if lines is not None and turned and lines.fit(width[2]):
        lines.write(positions, code.multiply(row.index, width[2]), width[2])
        for loop in (row, inner, outer):
            loop.close()
        return
    column = code.loop(width[2])
    positions[fast] = code.add(column_start, column.index)
    for s in turned:
        leaf = s.crossing.value
        value = load(code, s.tile, leaf.shape.dtype, code.add(code.multiply(row.index, width[2]), column.index))
        e.bind(leaf, Index.at(code, leaf.shape, [positions[r] for r in s.crossing.roles]), value)
    body(positions)
    for loop in (column, row, inner, outer):
        loop.close()


@dataclass(frozen=True, slots=True)
class Staged:
    """A crossing whose part of a tile is copied to the stack; at most TILE_SIDE × TILE_SIDE elements."""

    crossing: Access
    tile: Pointer


@dataclass(frozen=True, slots=True)
class Rows:
    """Where the rows of a turned tile go: from `start` on, `apart` elements from each other."""

    result: Pointer
    start: IndexValue
    apart: int


@dataclass(frozen=True, slots=True)
class Lines:
    """Writes the rows of a tile, which only moves elements, as whole lines of the result past the caches.

    streams: the result is one that they may be written to.
    """

    code: Code
    result: Pointer
    shape: Shape
    tile: Pointer
    streams: bool

    def fit(self, width: int) -> bool:
        return self.streams and width * self.shape.dtype.bytes % self.code.view.processor.line_bytes == 0

    def apart(self, across: int) -> bool:
        """Whether rows of the result do not share few places of the first cache, a quarter of its sets."""
        crowded = self.code.view.processor.way_bytes // 4
        return self.shape.strides[across] * self.shape.dtype.bytes % crowded != 0

    def write(self, positions: Sequence[IndexValue], start: IndexValue, width: int) -> None:
        """A row at these positions. start: its place in the tile."""
        code, dtype = self.code, self.shape.dtype
        size = code.view.processor.line_bytes
        count = size // dtype.bytes
        target = code.weighted_sum(positions, self.shape.strides)
        for k in range(0, width, count):
            source = address(code, self.tile, dtype, code.add(start, k))
            line = code.b.load(source, typ=ir.VectorType(memory_type(dtype), count), align=size)
            stored = code.b.store(line, address(code, self.result, dtype, code.add(target, k)), align=size)
            stored.set_metadata("nontemporal", code.module.add_metadata([I32(1)]))


def moves(view: View, root: Instruction) -> bool:
    """Whether the root is a leaf with its dimensions in another order."""
    while root not in view.leaves and root.opcode in (Op.TRANSPOSE, Op.COPY):
        root = root.operands[0]
    return root in view.leaves


def _may_stream(view: View, leaf: Leaf, fast: int) -> bool:
    """Whether a result is so large that its lines would be read to be written over, at least half of the last cache,
    and every tile in it begins with a line.
    """
    shape, line, large = leaf.shape, view.processor.line_bytes, view.processor.last_cache_bytes // 2
    others = (shape.strides[d] for d in range(shape.rank) if d != fast and shape.dims[d] != 1)
    aligned = leaf.alignment % line == 0 and all(s * shape.dtype.bytes % line == 0 for s in others)
    return aligned and shape.bytes >= large


def _lanes(view: View, shape: Shape) -> int:
    """The side of the blocks that are transposed in registers. Above 8, rows that lie a power of two apart are more
    lines than a set of the nearest cache holds, which narrow elements make up for.
    """
    most = 16 if shape.dtype.bytes <= NARROW else 8
    return 0 if shape.dtype.is_complex else min(most, view.vector_bits // max(32, 8 * shape.dtype.bytes))


def _turn(
    e: Elemental,
    s: Staged,
    start: list[IndexValue],
    fast: int,
    height: int,
    width: int,
    straight: Rows | None = None,
) -> bool:
    """Copy the leaf's part of a tile so that the tile's rows are adjacent; the last blocks of a side that they do not
    divide lie further back, over those before them. False if a side is shorter than a block.

    straight: where the rows are written instead of the tile, block after block along them: whole lines if vectors are.
    """
    code, c, leaf = e.code, s.crossing, s.crossing.value
    dtype, lanes = leaf.shape.dtype, _lanes(code.view, leaf.shape)
    line = code.view.processor.line_bytes
    if straight is not None and code.view.vector_bits >= 8 * line:
        lanes = max(lanes, line // dtype.bytes if dtype.bytes > NARROW else 0)
    while lanes > max(LEAST_SIDE, min(height, width)):
        lanes //= 2
    if height < lanes or width < lanes:
        return False
    stride = leaf.shape.strides[c.roles.index(fast)]
    corner = code.weighted_sum([start[r] for r in c.roles], leaf.shape.strides)
    vector = ir.VectorType(memory_type(dtype), lanes)
    columns = code.loop(width, step=lanes) if straight is None else None
    rows = code.loop(height, step=lanes)
    columns = columns or code.loop(width, step=lanes)
    left = code.minimum(columns.index, width - lanes) if width % lanes else columns.index
    upper = code.minimum(rows.index, height - lanes) if height % lanes else rows.index
    source = code.add(corner, code.add(code.multiply(left, stride), upper))
    block = [
        code.b.load(address(code, e.leaves[leaf], dtype, code.add(source, k * stride)), typ=vector, align=dtype.bytes)
        for k in range(lanes)
    ]
    to = straight or Rows(s.tile, 0, width)
    target = code.add(to.start, code.add(code.multiply(upper, to.apart), left))
    for k, register in enumerate(transposed(code.b, block)):
        place = address(code, to.result, dtype, code.add(target, k * to.apart))
        code.b.store(register, place, align=dtype.bytes)
    for loop in (rows, columns) if straight is None else (columns, rows):
        loop.close()
    return True


@form(
    "nest/tiles",
    emit_tiles,
    MINIMUM_TILED_ELEMENTS="elements of what is read across memory",
    MINIMUM_TILED_SIDE="elements along a side",
)
def tiled(task: Task) -> Fit:
    """Arrays read across the order of memory: tiles of two dimensions, transposed in registers.

    Tiles can compute some of the steps if the steps' last dimension is their height, or none is a side of theirs.
    """
    view, results, partition, numbered = task.view, task.results, task.partition, task.numbered
    shape, least, side = results.shape, MINIMUM_TILED_ELEMENTS, MINIMUM_TILED_SIDE
    reason = f"nothing of {least} elements is read across at least {side} rows of at least {side} elements"
    across, fast, crossings = known(tile_of(view, results.roots, shape), reason)
    exact = {(c.value, c.roles): c for c in crossings if c.exact and c.across == across and fast in c.roles}
    staged = tuple(c for c in exact.values() if _lanes(view, c.value.shape) >= 4)
    lines = results.alone and len(staged) == 1 and moves(view, results.root)
    order = [d for d in reversed(shape.minor_to_major) if d not in (fast, across)]
    inside: list[int] = []
    if lines and order and order[-1] not in numbered and shape.strides[order[-1]] == shape.dims[fast]:
        inside = order[-1:] if shape.dims[fast] <= max(TURNS, _lanes(view, shape)) else []
    in_steps, block = fast not in numbered, None
    if partition is not None and across in numbered:
        block = block_of(partition, shape.dims[across], TILE_SIDE)
        in_steps = numbered[-1] == across and block is not None
    outside = tuple(d for d in order if d not in inside and not (block and d in numbered))
    streams = lines and _may_stream(view, results.first, fast)
    return Fit(Tiles(across, fast, staged, lines, streams, tuple(inside), outside, block), in_steps)
