"""A pure transpose of elements that are one number: blocks go through vector registers, and whole cache lines are
written.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mlir import ir

from ...hlo.records import dataclass
from ...planning.partition import Partition
from ..core.access import Access
from ..core.builder import Builder, Index, Loop, Unroll, Value
from ..core.elements import raw_type
from ..core.facts import Facts
from ..core.graph import Buffer
from ..loops.elemental import Elemental
from ..loops.form import Answer, Fits
from ..loops.generic import emit_generic
from ..loops.loops import MINIMUM_TILED_SIDE, are_whole_tiles
from ..loops.ranges import Steps, bounds, open_steps
from ..loops.squares import LANE_BYTES, square_turned, unpacked
from ..loops.view import Subject, View
from .regions import Box, over_boxes

BAND_ROWS = 256
"""Rows of blocks that are finished before the next ones."""

LINES_TOGETHER = 8
"""Lines of a row of the result that follow each other: rows a power of two apart share places of the caches. Of
non-temporal stores, which leave the caches, it is one, and two of halves.
"""
OPEN_LINES = 8
"""Rows of which streaming stores may write a part of a line at a time: with sixteen, they took twice as long."""
MINIMUM_SIDE, MAXIMUM_SIDE = 8, 16
"""Of blocks; large ones spill."""
MINIMUM_VECTOR_BYTES = 32
"""Bytes of a side that is long enough in any case: by blocks of four, AVX2 takes half the time for 64-bit numbers."""
MINIMUM_STREAMED_SIDE = 4
"""Of blocks of results that are written with non-temporal stores, which are worth more."""
LANE_ELEMENT_BYTES = 2
"""Bytes of elements up to which a block is as high as a lane has elements, and as wide as a vector: nothing crosses
lanes then, and 512 bits are a whole line. In rows that are shorter than a lane, blocks are half as high and wide.
"""


@dataclass(frozen=True, slots=True)
class Block:
    """What goes through registers at once. line: the width of those that write whole lines, one behind the other."""

    height: int
    width: int
    line: int


def block_for(size: int, width: int, vector_bits: int, least: int, line_bytes: int) -> Block | None:
    """The block of a result with rows of `width` elements of `size` bytes; None if it is lower than `least`."""
    if size <= LANE_ELEMENT_BYTES:
        height = side = LANE_BYTES // size if width >= LANE_BYTES // size else MINIMUM_SIDE
        while 2 * side <= min(width, vector_bits // (8 * size)):
            side *= 2
    else:
        height = side = min(MAXIMUM_SIDE, vector_bits // (8 * size))
    whole = max(line_bytes // size, side)
    return Block(height, side, whole if width >= whole else side) if height >= least else None


def _is_large(facts: Facts, result: Buffer) -> bool:
    """Whether a result fills half of the last cache, and is written with non-temporal stores."""
    return result.shape.bytes >= facts.processor.last_cache_bytes // 2


def _block_of(facts: Facts, result: Buffer, crossing: tuple[int, int]) -> Block | None:
    """The block that fits into the two dimensions: of short ones that of half as long vectors."""
    (slow, fast), dims, bits = crossing, result.dims, facts.vector_bits
    untiled = min(dims[slow], dims[fast]) < MINIMUM_TILED_SIDE  # what is no block is read across the order of memory
    side = min(MINIMUM_SIDE, MINIMUM_VECTOR_BYTES // result.dtype.bytes)
    least = MINIMUM_STREAMED_SIDE if untiled or _is_large(facts, result) else side
    line = facts.processor.line_bytes
    fitting = (block_for(result.dtype.bytes, dims[fast], n, least, line) for n in (bits, bits // 2))
    return next((x for x in fitting if x is not None and dims[slow] >= x.height and dims[fast] >= x.width), None)


@dataclass(frozen=True, slots=True)
class Blocks:
    """A transposition of `source` in blocks. sides: the dimensions of the result that they lie along, the slower first;
    strides: of the source, along the result's dimensions; ends: of whole blocks along the sides.

    inside: the dimension along which rows follow each other, if a block is as wide as a row; shifted: the last blocks
    lie further back, over those before them; aligned: whole lines are written; streams: stores are non-temporal.
    """

    source: Buffer
    block: Block
    sides: tuple[int, int]
    strides: tuple[int, ...]
    ends: tuple[int, int]
    inside: int | None
    shifted: bool
    aligned: bool
    streams: bool


def fits(view: View, subject: Subject) -> Answer:
    reads, result = subject.reads, subject.first
    source, sides = reads.transposed, reads.crossing(MINIMUM_SIDE)
    if source is None:
        return "it is no transposition of one array"
    if sides is None:
        return f"both sides are not at least {MINIMUM_SIDE} elements"
    block = _block_of(view.facts, result, sides)
    if block is None:
        return f"a block of {view.facts.vector_bits} bits is larger than the sides, or too low"
    if result.argument == source.buffer.argument:
        return "the array is transposed in place"
    cut = view.partition is not None and not _are_whole(view.partition, sides, block)
    crossing = reads.crossing(MINIMUM_TILED_SIDE) if cut else None
    if crossing is not None and are_whole_tiles(result, crossing, view.partition):
        return f"steps would cut blocks of {block.height} rows, but no tiles"
    # By element on several threads it takes longer than in blocks on one.
    return Fits(_blocks_of(view, result, source, sides, block), not cut)


def _are_whole(partition: Partition, sides: tuple[int, int], block: Block) -> bool:
    """Whether steps number no side of the blocks, or whole blocks along the slow one."""
    if not set(partition.dimensions) & set(sides):
        return True
    return partition.dimensions == sides[:1] and partition.least % block.height == 0


def _blocks_of(view: View, result: Buffer, source: Access, sides: tuple[int, int], block: Block) -> Blocks:
    dims, size, (slow, fast) = result.dims, result.dtype.bytes, sides
    line = view.facts.processor.line_bytes
    apart = view.numbered != sides[:1]
    ends = dims[slow] - dims[slow] % block.height, dims[fast] - dims[fast] % block.line
    strides = tuple(source.strides(len(dims)))
    inside = _follows_row(result, sides, block, view.numbered, line) if apart else None
    shifted = apart and inside is None and max(dims[slow], dims[fast]) <= BAND_ROWS and ends != (dims[slow], dims[fast])
    aligned = (
        not shifted
        and block.line * size == line
        and result.alignment >= line
        and all(s % block.line == 0 for d, s in enumerate(result.strides) if d != fast)
    )
    few = block.width == block.line or block.height <= OPEN_LINES
    streams = aligned and _is_large(view.facts, result) and few
    return Blocks(source.buffer, block, sides, strides, ends, inside, shifted, aligned, streams)


def emit(e: Elemental, subject: Subject, blocks: Blocks, steps: Steps | None) -> None:
    """Transpose blocks through registers, and what they leave over element by element."""
    b, result, block, (slow, fast) = e.b, subject.first, blocks.block, blocks.sides
    loops = _Loops(b, result, blocks, steps)
    if blocks.inside is not None:
        loops.open_rows(blocks.inside)
    elif blocks.shifted:
        loops.open_shifted()
    else:
        loops.open_blocks(steps)
    offset_from, offset_to = loops.offsets
    rows = _load_rows(e, blocks.source, offset_from, blocks.strides[fast], block)
    if result.dtype.bytes <= LANE_ELEMENT_BYTES:
        turned = unpacked(b, _stacked(b, rows, block.height), 1, block.height)
    else:
        turned = square_turned(b, rows, result.dtype.bytes)
    _store_rows(e, result, turned, offset_to, result.strides[slow], blocks.aligned, blocks.streams)
    b.close_loops(loops.loops)
    rest = [] if blocks.shifted else _rest(result.dims, blocks.sides, blocks.ends)
    over_boxes(b, result, rest, lambda index: emit_generic(e, [result], index, Unroll.SCALAR), steps)


def _rest(dims: Sequence[int], crossing: tuple[int, int], ends: tuple[int, int]) -> list[Box]:
    """What lies behind the last blocks: of the rows of blocks, and the rows below them."""
    slow, fast = crossing
    beside, below = [(0, n) for n in dims], [(0, n) for n in dims]
    beside[slow], beside[fast] = (0, ends[0]), (ends[1], dims[fast])
    below[slow] = ends[0], dims[slow]
    return [tuple(box) for box in (beside, below) if all(low < high for low, high in box)]


def _follows_row(
    result: Buffer, crossing: tuple[int, int], block: Block, numbered: Sequence[int], line_bytes: int
) -> int | None:
    """The dimension along which rows follow each other, if a block is as wide as a row and rows above each other are
    whole blocks.
    """
    (slow, fast), dims = crossing, result.dims
    if dims[fast] != block.width or block.width * result.dtype.bytes > line_bytes or dims[slow] % block.height:
        return None
    others = (d for d in range(len(dims)) if d not in crossing and d not in numbered and dims[d] != 1)
    return next((d for d in others if result.strides[d] == dims[fast]), None)


class _Loops:
    """Loops around a block. offsets: of the current one in source and result. Opened at first: those over the
    dimensions other than the inner ones, among them the sides of a block; first those that steps number.
    """

    def __init__(self, b: Builder, result: Buffer, blocks: Blocks, steps: Steps | None):
        self.b, self.result, self.blocks, self.dims = b, result, blocks, result.dims
        inner = blocks.sides if blocks.inside is None else (*blocks.sides, blocks.inside)
        self.loops: list[Loop] = []
        self.offsets: list[Index] = [0, 0]
        places: dict[int, Index] = {}
        if steps is not None and set(steps.dimensions).isdisjoint(inner):
            loop, found = open_steps(b, steps, [self.dims[d] for d in steps.dimensions])
            self.loops.append(loop)
            places.update(zip(steps.dimensions, found, strict=True))
        for d in (d for d in result.order if d not in inner and d not in places):
            self.loops.append(b.open_loop(0, self.dims[d], 1))
            places[d] = self.loops[-1].index
        for d, place in places.items():
            self._move(d, place)

    def _move(self, d: int, by: Index) -> None:
        strides = self.blocks.strides[d], self.result.strides[d]
        self.offsets = [self.b.add(at, self.b.mul(by, s)) for at, s in zip(self.offsets, strides, strict=True)]

    def open(self, d: int, lower: Index, upper: Index, step: int, unroll: Unroll = Unroll.ANY) -> Index:
        """Open a loop along a dimension."""
        self.loops.append(self.b.open_loop(lower, upper, step, unroll=unroll))
        self._move(d, self.loops[-1].index)
        return self.loops[-1].index

    def open_rows(self, inside: int) -> None:
        """As `open_blocks`, of rows that are narrower than a line: those that complete it come next, before further
        blocks along the slow dimension. Many lines that lie a power of two apart would leave the cache in between.
        """
        for d, step in ((self.blocks.sides[0], self.blocks.block.height), (inside, 1)):
            self.open(d, 0, self.dims[d], step)

    def open_shifted(self) -> None:
        """As `open_blocks`, of blocks that cover all: the last ones lie further back, over those before them."""
        (slow, fast), block = self.blocks.sides, self.blocks.block
        for d, side in ((fast, block.width), (slow, block.height)):
            size = self.dims[d]
            self.loops.append(self.b.open_loop(0, size, side))
            at = self.loops[-1].index
            self._move(d, self.b.least(at, size - side) if size % side else at)

    def open_blocks(self, steps: Steps | None) -> None:
        """Open loops over all blocks."""
        (slow, fast), block, ends, b = self.blocks.sides, self.blocks.block, self.blocks.ends, self.b
        sided = steps if steps is not None and steps.dimensions == (slow,) else None
        lower, upper = bounds(b, sided, self.dims[slow])
        if ends[0] < self.dims[slow]:
            upper = b.least(upper, ends[0])
        band = min(BAND_ROWS, ends[0])
        whole = ends[0] % band == 0 and (sided is None or sided.partition.least % band == 0)
        start = self.open(slow, lower, upper, band)
        lines = block.line // block.width if self.blocks.streams else LINES_TOGETHER
        piece = block.line * math.gcd(ends[1] // block.line, lines)
        self.open(fast, 0, ends[1], piece)
        height: Index = band if whole else b.least(b.sub(upper, start), band)
        deep = _depth(b, self.result, block, self.blocks.streams)
        if any(n % deep for n in (band, ends[0], deep if sided is None else sided.partition.least)):
            deep = block.height
        self.open(slow, 0, height, deep)
        if deep > block.height:
            self.open(fast, 0, piece, block.line, Unroll.NONE)
            self.open(slow, 0, deep, block.height, Unroll.NONE)
            piece = block.line
        if piece > block.width:
            self.open(fast, 0, piece, block.width, Unroll.NONE)


def _depth(b: Builder, result: Buffer, block: Block, streams: bool) -> int:
    """Rows of the result whose blocks follow each other: they read the same lines of the source, then near."""
    if streams and block.width < block.line:
        return block.height
    size, line = result.dtype.bytes, b.processor.line_bytes
    return math.lcm(block.height, (line if streams or size > LANE_ELEMENT_BYTES else line // 2) // size)


def _load_rows(e: Elemental, source: Buffer, offset: Index, stride: int, block: Block) -> list[Value]:
    """The block in the source: its rows are the width in the result, `stride` elements apart."""
    b, element = e.b, raw_type(e.b.types, source.dtype)
    row = b.vector(block.height, element)
    places = [b.pointer(e.pointers[source.argument], b.add(offset, k * stride), element) for k in range(block.width)]
    return [b.load(place, row, source.dtype.bytes) for place in places]


def _stacked(b: Builder, rows: Sequence[Value], lane: int) -> list[Value]:
    """Vectors of several lanes: row k, row k + lane, and so on, for each k < lane."""
    parts = [list(rows[first : first + lane]) for first in range(0, len(rows), lane)]
    while len(parts) > 1:
        joined = zip(parts[::2], parts[1::2], strict=True)
        parts = [[b.joined(both) for both in zip(*pair, strict=True)] for pair in joined]
    return parts[0]


def _store_rows(
    e: Elemental, result: Buffer, rows: Sequence[Value], offset: Index, stride: int, aligned: bool, streams: bool
) -> None:
    """Store vectors to the result, `stride` elements apart."""
    b, element = e.b, raw_type(e.b.types, result.dtype)
    whole = ir.VectorType(rows[0].type).shape[0] * result.dtype.bytes
    for k, row in enumerate(rows):
        place = b.pointer(e.pointers[result.argument], b.add(offset, k * stride), element)
        b.store(row, place, whole if aligned else result.dtype.bytes, streams)
