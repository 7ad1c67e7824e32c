"""Loop nests over the elements of a result: in memory order, or in 16×16 tiles if a source is contiguous along another
dimension, so that both sides use whole cache lines. Pure transposes are in transposition.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ...hlo.opclasses import EXPENSIVE
from ...planning.partition import Partition
from ..core.access import AccessMap
from ..core.builder import Builder, Index, Loop, Unroll
from ..core.facts import Facts
from ..core.graph import Buffer, reachable
from ..core.index_arithmetic import Axis
from .ranges import Steps, grouped, neighbours, outer_loops, width_of

TILE_SIDE = 16
"""Elements along each side of a tile."""

MINIMUM_TILED_SIDE = 64
"""Elements along a dimension: shorter ones are not tiled."""

UNROLLED_ITERATIONS = 16
"""Iterations: shorter loops are unrolled completely."""

MASKED_ELEMENTS = range(9, 16)
"""Elements of rows that LLVM makes one vector of with a mask, if they are one loop."""

MINIMUM_GATHERED_ELEMENTS, MAXIMUM_GATHERED_ELEMENTS = 8, 30
"""Elements of rows that LLVM unrolls as a whole if it may."""

INTERLEAVED_ELEMENTS = range(9)
"""Elements of a step whose rows LLVM interleaves as it vectorises the loop over steps."""

PLAIN_NODES = 11
"""Nodes of which such a row has no two copies, at least."""

MAXIMUM_COPIES = 8
"""Copies of a loop: three or five, beside each other, make long transposes faster."""


Before = Callable[[Sequence[Index], Index, Index], None]


def _nothing(index: Sequence[Index], top: Index, left: Index) -> None:
    pass


class Inner:
    """The innermost loops of a nest: host loops."""

    def __init__(self, b: Builder):
        self.b, self.loops = b, list[Loop]()

    def open(self, start: Index, count: Index, unroll: Unroll = Unroll.ANY) -> Index:
        """The position along one more loop, over `count` places from `start` on, inside the loops before."""
        self.loops.append(self.b.open_loop(0, count, unroll=unroll))
        return self.b.add(start, self.loops[-1].index)

    def close(self) -> None:
        self.b.close_loops(self.loops)


class Axes(Inner):
    """The innermost loops of a nest as axes of one operation."""

    def __init__(self, b: Builder):
        super().__init__(b)
        self.count = 0

    def open(self, start: Index, count: Index, unroll: Unroll = Unroll.ANY) -> Index:
        return self.within(start, count)

    def within(self, start: Index, count: Index, limits: tuple[int, int] | None = None) -> Axis:
        """As `open`. limits: the first position and the end, where start and count do not say it."""
        self.count += 1
        return Axis(start, 1, self.count - 1, count, limits)


def with_loops(
    b: Builder,
    over: Buffer,
    body: Callable[[tuple[Index, ...]], None],
    steps: Steps | None = None,
    kind: type[Inner] = Inner,
    unroll: Unroll | None = None,
    cheap: bool = False,
) -> None:
    """A loop nest over a shape or over steps, the fastest dimension innermost. Dimensions of size 1 have no loop.

    cheap: whether `body` is so little code that it may be there twice.
    kind: of the loops that `body` is directly in, but for those over steps. unroll: their mode, if it is not that of
    the elements' dtype.
    """
    unroll = unroll_of(b.facts, over) if unroll is None else unroll
    inside: tuple[int, ...] = () if steps is None else steps.dimensions
    order = [d for d in over.order if d not in inside]
    many = inside and over.dims[inside[-1]] >= MINIMUM_TILED_SIDE
    few = not order or (many and _count(over, order) in INTERLEAVED_ELEMENTS)

    def nest(places: dict[int, Index], inner: Inner, row: tuple[int, int] | None = None) -> None:
        for d in order:
            start, count = row if row is not None and d == order[-1] else (0, over.dims[d])
            places[d] = inner.open(start, count, unroll)
        b.scopes.append({})
        body(tuple(places.get(d, 0) for d in range(len(over.dims))))
        b.scopes.pop()
        inner.close()

    if steps is not None and len(inside) > 1 and few and not b.by_element:
        # An inner loop over neighbours along the last dimension: LLVM does not vectorise one that divides by its size.
        for outer, first, count in neighbours(b, steps, [over.dims[d] for d in inside]):
            inner = kind(b)
            last = inner.open(first, count, Unroll.ANY if order else unroll)
            nest(dict(zip(inside, [*outer, last], strict=True)), inner)
        return
    with outer_loops(b, steps, inside, over.dims, (), of_steps=unroll) as places:
        for row in _pieces(over.dims[order[-1]] if order else 1, cheap):
            nest(dict(places), kind(b), row)


def _count(over: Buffer, dimensions: Sequence[int]) -> int:
    return math.prod(over.dims[d] for d in dimensions)


def _pieces(row: int, cheap: bool) -> list[tuple[int, int]]:
    """(First position, number) of what has a nest of its own of the last dimension: in front of what fills no vector,
    LLVM would otherwise make one masked vector of a short row, and without masks that takes longer than all else.
    """
    cut = MASKED_ELEMENTS.start - 1
    return [(0, cut), (cut, row - cut)] if cheap and row in MASKED_ELEMENTS else [(0, row)]


def unroll_of(facts: Facts, over: Buffer) -> Unroll:
    """LLVM would fully unroll short loops and fill long vectors of narrow elements one by one: thousands of moves. Of
    wider ones, where processors can, it would gather and scatter elements of several rows.
    """
    if over.dtype.bytes <= 2:
        return Unroll.SHORT
    own = over.fastest
    gathers = facts.processor.gathers and not over.dtype.is_complex
    return (
        Unroll.NONE
        if gathers and own is not None and MINIMUM_GATHERED_ELEMENTS <= over.dims[own] <= MAXIMUM_GATHERED_ELEMENTS
        else Unroll.ANY
    )


def are_few(facts: Facts, group: Sequence[Buffer]) -> bool:
    """Whether all that narrow results are made of are a few plain operations, and there are no masks."""
    if facts.processor.masks or group[0].dtype.bytes > 2:
        return False
    made = list(reachable(group))
    return len(made) < PLAIN_NODES and not any(node.bodies or node.opcode in EXPENSIVE for node in made)


def copied_across(reads: AccessMap) -> bool:
    """Whether a source is read across the order of memory in loops of which LLVM would make many copies: it puts
    vectors together element by element there. A kernel of 3 × 3 positions took 50 ms to compile.
    """
    first = reads.results[0]
    copies = math.prod(n for d, n in enumerate(first.dims) if d != first.fastest and n < UNROLLED_ITERATIONS)
    return copies > MAXIMUM_COPIES and reads.crossing(2) is not None


def are_whole_tiles(over: Buffer, sides: tuple[int, int], partition: Partition | None) -> bool:
    """Whether tiles can be of some of the steps: of whole rows of tiles, or if the steps number no side of theirs."""
    if partition is None:
        return True
    slow, fast = sides
    if fast in partition.dimensions:
        return False
    last = slow not in partition.dimensions or partition.dimensions[-1] == slow
    return last and (slow not in partition.dimensions or width_of(partition, over.dims[slow], TILE_SIDE) is not None)


def tiled(
    b: Builder,
    over: Buffer,
    crossing: tuple[int, int],
    body: Callable[[tuple[Index, ...]], None],
    steps: Steps | None = None,
    kind: type[Inner] = Inner,
    before: Before = _nothing,
    unroll: Unroll = Unroll.SCALAR,
) -> None:
    """A loop nest over a shape, or over the steps, in tiles of the two dimensions. kind, unroll: of the loops in a
    tile. before: called with the positions along the other dimensions and the starts along these, before those loops.
    """
    (slow, fast), dims = crossing, over.dims
    inside: tuple[int, ...] = () if steps is None else steps.dimensions
    index: dict[int, Index] = dict.fromkeys(range(len(dims)), 0)
    others = [d for d in over.order if d not in (*crossing, *inside)]

    def tiles(top: Index, around: Sequence[int] = (), height: int | None = None) -> None:
        """All tiles of a row of them, in loops over the dimensions around."""
        with outer_loops(b, None, (), dims, around) as places, b.loop(0, dims[fast], TILE_SIDE) as left:
            index.update(places)
            before([*index.values()], top, left.index)
            inner = kind(b)
            index[slow] = inner.open(top, _side(b, top, dims[slow]) if height is None else height, unroll)
            index[fast] = inner.open(left.index, _side(b, left.index, dims[fast]), unroll)
            body(tuple(index.values()))
            inner.close()

    if steps is None:
        with outer_loops(b, None, (), dims, others) as places, b.loop(0, dims[slow], TILE_SIDE) as top:
            index.update(places)
            tiles(top.index)
    elif slow in inside:
        width = width_of(steps.partition, dims[slow], TILE_SIDE)
        assert width is not None
        for outer, start, height in grouped(b, steps, [dims[d] for d in inside], width):
            index.update(zip(inside, outer, strict=False))
            tiles(start, others, height)
    else:
        whole = dims[slow] - dims[slow] % TILE_SIDE
        with outer_loops(b, steps, inside, dims, ()) as places:
            index.update(places)
            for start, end, height in ((0, whole, TILE_SIDE), (whole, dims[slow], dims[slow] - whole)):
                if start < end:
                    with b.loop(start, end, height) as top:
                        tiles(top.index, others, height)


def _side(b: Builder, start: Index, size: int) -> Index:
    """The places of a tile that begins at `start`, along a dimension of this size."""
    return TILE_SIDE if size % TILE_SIDE == 0 else b.least(b.sub(size, start), TILE_SIDE)
