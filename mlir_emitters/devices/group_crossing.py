"""Kernels of devices that read across the memory order of their results: a group of items computes a tile of two sides.

Each line of memory that a tile touches is read whole by the items of one group, in one cache.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

from ...codegen.options import GroupShape
from ...hlo.records import dataclass
from ..core.access import AccessMap
from ..core.builder import Index
from ..core.elements import flatten, scalar_types
from ..core.graph import Buffer, origin
from ..core.slots import Slots
from ..loops.elemental import Elemental, Indices
from ..loops.form import Answer, fitting
from ..loops.ranges import positions_of
from ..loops.view import Subject, View
from ..reductions.results import write_together
from ..roots import why_no_loops
from .group import ALIGNMENT_BYTES, Group


@dataclass(frozen=True, slots=True)
class CrossingTiles:
    """Tiles of results of these dimensions. sides: (dimension, size of a tile along it), the fastest of memory last;
    others: the other dimensions.
    """

    dims: tuple[int, ...]
    sides: tuple[tuple[int, int], tuple[int, int]]
    others: tuple[int, ...]

    @property
    def counts(self) -> list[int]:
        """Of tiles along the other dimensions and along the sides."""
        return [self.dims[d] for d in self.others] + [-(-self.dims[d] // size) for d, size in self.sides]

    @property
    def steps(self) -> int:
        return math.prod(self.counts)


def fits(view: View, subject: Subject) -> Answer:
    if subject.products or not isinstance(subject.rows, str) or not _is_nest(view, subject):
        return "the results are not computed by one nest of loops, element by element"
    return fitting(crossing_tiles_of(subject.reads, view.group) if view.group is not None else "")


def _is_nest(view: View, subject: Subject) -> bool:
    found = [(origin(result).writer, result) for result in subject.results]
    alone = all(node is not None and why_no_loops(view.facts, node, result) is not None for node, result in found)
    return alone and len(subject.results) == len(view.results)


def emit(e: Elemental, subject: Subject, tiles: CrossingTiles, group: Group) -> None:
    kernel = CrossingKernel(e, tiles, group, subject.reads)
    kernel.emit(lambda index: write_together(e, subject.results, index))


def crossing_tiles_of(reads: AccessMap, shape: GroupShape) -> CrossingTiles | str:
    """The tiles of results of one shape; why they read along their memory, or are smaller than a group."""
    least = max(shape.across, shape.down)
    crossing = reads.crossing(least)
    if crossing is None:
        return f"nothing is read along another dimension than the results', both of at least {least} elements"
    slow, fast = crossing
    sides = (slow, shape.down * shape.rows), (fast, shape.across * shape.columns)
    first, order = reads.results[0], reversed(reads.results[0].shape.minor_to_major)
    return CrossingTiles(first.dims, sides, tuple(d for d in order if d not in crossing))


class CrossingKernel:
    """Emits the tile that is the group's step, with write(index) for each element of an item.

    Items first read along the memory of sources, then write along that of the results; sources that are read across
    them lie in the group's memory between, as far as there is room.
    """

    def __init__(self, e: Elemental, tiles: CrossingTiles, group: Group, reads: AccessMap):
        self.e, self.b, self.tiles, self.group = e, e.b, tiles, group
        ((self.slow, self.height), (self.fast, self.width)) = tiles.sides
        self.pitch = self.height + 1  # a line further is another bank, and another set of a cache
        self.staged: list[tuple[Buffer, tuple[int, ...], Slots]] = []
        self.sources = [x for x in reads.leaves if x.follows(self.slow)]

    def emit(self, write: Callable[[Indices], None]) -> None:
        for found in self.sources:
            self._stage(found.buffer, tuple(run.dimension for run in found.runs if run is not None))
        if self.staged:
            self.group.barrier()
        shape = self.group.shape
        index, starts = self._begin()
        for down in range(0, self.height, shape.down):
            for across in range(0, self.width, shape.across):
                y, x = self.b.add(self.group.down, down), self.b.add(self.group.across, across)
                index[self.slow], index[self.fast] = self.b.add(starts[0], y), self.b.add(starts[1], x)
                with self._within(index):
                    for source, places, array in self.staged:
                        raw = array.read(self.b.add(self.b.mul(x, self.pitch), y))
                        at = tuple(index[d] for d in places)
                        self.b.remember((source, at, True), raw[0] if len(raw) == 1 else tuple(raw))
                    write(tuple(index))

    def _begin(self) -> tuple[list[Index], list[Index]]:
        """(An index at the tile, where its sides begin), by the number that is known since the last barrier."""
        tiles, index = self.tiles, list[Index]([0] * len(self.tiles.dims))
        places = positions_of(self.b, self.group.step, tiles.counts)
        for d, place in zip(tiles.others, places, strict=False):
            index[d] = place
        return index, [self.b.mul(place, size) for place, (_, size) in zip(places[-2:], tiles.sides, strict=True)]

    def _within(self, index: Sequence[Index]) -> AbstractContextManager[None]:
        """What is built inside runs where the results have an element at an index."""
        b, dims = self.b, self.tiles.dims
        tests = [
            b.compare_integers("ult", b.materialize(index[d]), b.constant(dims[d], b.types.i64))
            for d, size in self.tiles.sides
            if dims[d] % size
        ]
        if not tests:
            return nullcontext()
        return self.group.only(tests[0] if len(tests) == 1 else b.binary("andi", *tests))

    def _stage(self, source: Buffer, places: tuple[int, ...]) -> None:
        """Copy a source's part of the tile to the group's memory; not if there is no room. Items that are neighbours
        have neighbours in the source.
        """
        b, group, shape = self.b, self.group, self.group.shape
        count = self.width * self.pitch
        if group.used + count * source.dtype.bytes + ALIGNMENT_BYTES > shape.memory or self.height % shape.across:
            return
        types = scalar_types(b.types, source.dtype, raw=True)
        array = group.slots(types, count)
        index, starts = self._begin()
        for down in range(0, self.width, shape.down):
            for across in range(0, self.height, shape.across):
                y, x = b.add(group.across, across), b.add(group.down, down)
                index[self.slow], index[self.fast] = b.add(starts[0], y), b.add(starts[1], x)
                with self._within(index):
                    raw = self.e.value(source, tuple(index[d] for d in places), raw=True)
                    array.write(b.add(b.mul(x, self.pitch), y), flatten(raw))
        self.staged.append((source, places, array))
