"""Parts of arrays that a tile reads across the order of memory: copied to the stack through vector registers first, so
that the loops of the tile read rows as they write them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.records import dataclass
from ..core.access import Access, AccessMap
from ..core.builder import Index, Value
from ..core.elements import raw_type
from ..core.facts import Facts
from ..core.graph import Buffer
from ..core.index_arithmetic import Axis
from .elemental import Elemental, Indices
from .loops import TILE_SIDE
from .squares import square_turned

COPIED_BYTES = (4, 8)
"""Bytes of the elements that are copied: a row of a tile of narrower ones is a part of a line."""

MINIMUM_LANES = 4
"""Lanes of the vectors that go through registers."""


POSITIONS_AHEAD = 4 * TILE_SIDE
"""Positions along the rows of the result that what is fetched lies ahead. The next tile's lines are apart from those of
this one, so that hardware does not fetch them in time, nor those that are written.
"""


@dataclass(eq=False, slots=True)
class Turned:
    """The copies of the tiles of a kernel. tiles: by the array and how the result's dimensions run along its own.

    shift: how far the current tile begins behind its copies, which never reach past the ends of the array. ahead: large
    arrays that lie as the result does, itself among them.
    """

    e: Elemental
    dims: Sequence[int]
    crossing: tuple[int, int]
    tiles: dict[Access, Value]
    ahead: Sequence[Buffer]
    shift: tuple[Index, Index] = (0, 0)

    def copy(self, index: Sequence[Index], top: Index, left: Index) -> None:
        """Fill the copies for a tile. index: positions along the other dimensions of the result."""
        b = self.e.b
        starts = [b.least(start, self.dims[d] - TILE_SIDE) for d, start in zip(self.crossing, (top, left), strict=True)]
        self.shift = b.sub(top, starts[0]), b.sub(left, starts[1])
        places = list(index)
        places[self.crossing[0]], places[self.crossing[1]] = starts
        for access, tile in self.tiles.items():
            self._turn(access, tile, places)
        for buffer in self.ahead:
            self._fetch(buffer, places)

    def _fetch(self, buffer: Buffer, places: Sequence[Index]) -> None:
        """Ask for the lines of a tile further on."""
        b, element = self.e.b, raw_type(self.e.b.types, buffer.dtype)
        offset = b.offset(places, buffer.strides, POSITIONS_AHEAD)
        for row in range(TILE_SIDE):
            start = b.add(offset, row * buffer.strides[self.crossing[0]])
            for k in range(0, TILE_SIDE, b.processor.line_bytes // buffer.dtype.bytes):
                place = b.pointer(self.e.pointers[buffer.argument], b.add(start, k), element)
                b.prefetch(place, writes=buffer.writer is not None)

    def _turn(self, access: Access, tile: Value, places: Sequence[Index]) -> None:
        b, leaf, runs = self.e.b, access.buffer, [run.dimension for run in access.runs if run is not None]
        element = raw_type(b.types, leaf.dtype)
        lanes = lanes_of(b.vector_bits, leaf)
        vector = b.vector(lanes, element)
        offset = b.offset((places[run] for run in runs), leaf.strides)
        stride = leaf.strides[runs.index(self.crossing[1])]
        for down in range(0, TILE_SIDE, lanes):
            for column in range(0, TILE_SIDE, lanes):
                at = [b.add(offset, (column + k) * stride + down) for k in range(lanes)]
                rows = [
                    b.load(b.pointer(self.e.pointers[leaf.argument], x, element), vector, leaf.dtype.bytes) for x in at
                ]
                if is_fetched(b.facts, leaf) and down % (b.processor.line_bytes // leaf.dtype.bytes) == 0:
                    for x in at:
                        b.prefetch(
                            b.pointer(self.e.pointers[leaf.argument], b.add(x, POSITIONS_AHEAD * stride), element)
                        )
                for k, row in enumerate(square_turned(b, rows, leaf.dtype.bytes)):
                    place = b.pointer(tile, (down + k) * TILE_SIDE + column, element)
                    b.store(row, place, lanes * leaf.dtype.bytes)

    def part(self, buffer: Buffer, at: Indices, index: Indices) -> tuple[Value, list[Axis]] | None:
        """(The elements in a copy from the tile's first on, the axes that they lie along); None if what is read at `at`
        of a buffer, for a result at `index`, is in no copy.
        """
        for access, tile in self.tiles.items():
            leaf, runs = access.buffer, access.places
            if leaf == buffer and tuple(at) == tuple(index[run] for run in runs if run is not None):
                b, axes = self.e.b, [i for i in at if isinstance(i, Axis)]
                strides = [TILE_SIDE if run == self.crossing[0] else 1 for run in runs if run in self.crossing]
                offset = b.add(b.mul(self.shift[0], TILE_SIDE), self.shift[1])
                place = b.pointer(tile, offset, raw_type(b.types, leaf.dtype))
                return b.part(place, [axis.count for axis in axes], strides), axes
        return None


def is_fetched(facts: Facts, buffer: Buffer) -> bool:
    """Whether an array is fetched: it fills half of the last cache. With smaller ones, that took 1.1 times as long."""
    return buffer.shape.bytes >= facts.processor.last_cache_bytes // 2


def lanes_of(vector_bits: int, leaf: Buffer) -> int:
    """The side of the blocks that go through registers."""
    return min(TILE_SIDE, vector_bits // (8 * leaf.dtype.bytes))


@dataclass(frozen=True, slots=True)
class Leaves:
    """What tiles copy: arrays, and how the result's dimensions run along theirs. ahead: as of Turned."""

    turned: tuple[Access, ...]
    ahead: tuple[Buffer, ...]


def turned_leaves(facts: Facts, reads: AccessMap, crossing: tuple[int, int]) -> Leaves | None:
    """What the tiles of results read across the order of memory; None if there is nothing, or it is copied element by
    element.
    """
    written = {result.argument for result in reads.results}
    found = [
        access
        for access in reads.across(crossing)
        for leaf in [access.buffer]
        if not leaf.dtype.is_complex
        and leaf.dtype.bytes in COPIED_BYTES
        and leaf.argument not in written
        and lanes_of(facts.vector_bits, leaf) >= MINIMUM_LANES
    ]
    # Large arrays that lie as the results do: these, and what they read.
    alike = dict.fromkeys(reads.alike) | dict.fromkeys(reads.results)
    ahead = [x for x in alike if is_fetched(facts, x) and not x.dtype.is_complex]
    return Leaves(tuple(found), tuple(ahead)) if found else None


def copies_of(e: Elemental, group: Sequence[Buffer], crossing: tuple[int, int], leaves: Leaves) -> Turned:
    """Memory for the copies of a tile."""
    b, tiles = e.b, {}
    for access in leaves.turned:
        leaf = access.buffer
        element, lanes = raw_type(b.types, leaf.dtype), lanes_of(b.vector_bits, leaf)
        tiles[access] = b.alloca(element, TILE_SIDE * TILE_SIDE, lanes * leaf.dtype.bytes)
    return Turned(e, group[0].dims, crossing, tiles, leaves.ahead)
