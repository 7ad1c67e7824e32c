"""The steps that a call of a kernel computes, and the loops over them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...hlo.records import dataclass
from ...planning.partition import Partition
from ..core.builder import Builder, Index, Loop, Unroll, Value


@dataclass(frozen=True, slots=True)
class Steps:
    """[begin, end) of a partition's steps. Both are multiples of its `least`, or its extent; begin < end."""

    partition: Partition
    begin: Value
    end: Value

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Dimensions of the results whose positions the steps number, the first of them slowest."""
        return self.partition.dimensions


def bounds(b: Builder, steps: Steps | None, count: int) -> tuple[Index, Index]:
    """The range of `count` places that a call computes, if each step has this number; all of them without steps."""
    if steps is None:
        return 0, count
    each = count // steps.partition.extent
    return b.mul(steps.begin, each), b.mul(steps.end, each)


@contextmanager
def runs(b: Builder, steps: Steps | None, count: int) -> Iterator[tuple[Index, Index]]:
    """(The first, the number) of neighbours among `count` places, or among those of the steps, which have as many each.
    Where `least` divides the extent it is a loop, and the number a constant: LLVM needs less time for such.
    """
    lower, upper = bounds(b, steps, count)
    if steps is None or steps.partition.extent % steps.partition.least:
        yield lower, b.sub(upper, lower)
        return
    length = steps.partition.least * (count // steps.partition.extent)
    with between(b, lower, upper, length) as first:
        yield first, length


def positions_of(b: Builder, number: Index, sizes: Sequence[int]) -> list[Index]:
    """The position along each dimension of the element with this number, the first dimension slowest."""
    found: list[Index] = []
    for k, size in enumerate(sizes):
        part = b.div(number, math.prod(sizes[k + 1 :]))
        found.append(part if k == 0 else b.rem(part, size))
    return found


def open_steps(b: Builder, steps: Steps, sizes: Sequence[int], unroll: Unroll = Unroll.ANY) -> tuple[Loop, list[Index]]:
    """(A loop over the steps, the positions along their dimensions, which have these sizes)."""
    loop = b.open_loop(steps.begin, steps.end, unroll=unroll)
    return loop, positions_of(b, loop.index, sizes)


@contextmanager
def outer_loops(
    b: Builder,
    steps: Steps | None,
    inside: Sequence[int],
    dims: Sequence[int],
    order: Sequence[int],
    unroll: Unroll = Unroll.ANY,
    of_steps: Unroll = Unroll.ANY,
) -> Iterator[dict[int, Index]]:
    """Loops over dimensions in this order, those that the steps number (`inside`) first: dimension → position.
    unroll: of the loops but for that over steps.
    """
    loops: list[Loop] = []
    places: dict[int, Index] = {}
    if steps is not None:
        loop, found = open_steps(b, steps, [dims[d] for d in inside], of_steps)
        loops.append(loop)
        places.update(zip(inside, found, strict=True))
    for d in order:
        if dims[d] != 1 and d not in places:
            loops.append(b.open_loop(0, dims[d], unroll=unroll))
            places[d] = loops[-1].index
    if not loops:
        b.scopes.append({})
    yield places
    if not loops:
        b.scopes.pop()
    b.close_loops(loops)


def chunks(
    b: Builder, start: int, end: int, width: int, unroll: Unroll = Unroll.ANY, bare: bool = True
) -> Iterator[tuple[Index, int]]:
    """(The first, the number) of neighbours: `width` at a time, in a loop, then what is left. bare: a single whole
    chunk has no loop.
    """
    whole = end - (end - start) % width
    if whole == start + width and bare:
        yield start, width
    elif whole > start:
        with b.loop(start, whole, width, unroll=unroll) as loop:
            yield loop.index, width
    if whole < end:
        yield whole, end - whole


def width_of(partition: Partition, last: int, most: int, multiple: int = 1, least: int = 8) -> int | None:
    """The widest group of neighbours, at most `most`, that `grouped` can take together; None if it is below `least`.

    last: the size of the last dimension of the steps. multiple: what the width must be a multiple of.
    """
    whole = math.gcd(partition.least, last) if len(partition.dimensions) > 1 else partition.least
    widths = [n for n in range(min(most, whole), least - 1, -1) if whole % n == 0 and n % multiple == 0]
    return widths[0] if widths else None


@contextmanager
def between(b: Builder, lower: Index, upper: Index, step: int) -> Iterator[Index]:
    loop = b.open_loop(lower, upper, step, unroll=Unroll.NONE)
    yield loop.index
    b.close_loop(loop)


def grouped(b: Builder, steps: Steps, sizes: Sequence[int], width: int) -> Iterator[tuple[list[Index], Index, int]]:
    """Loops over the steps, `width` neighbours along their last dimension at a time: (positions along the others, the
    first of the neighbours, their number). One body for whole groups, and one for what is left at the very end.
    """
    extent = steps.partition.extent
    whole = extent - extent % width
    if whole:
        upper = steps.end if whole == extent else b.least(steps.end, whole)
        with between(b, steps.begin, upper, width) as first:
            *outer, place = positions_of(b, first, sizes)
            yield outer, place, width
    if whole < extent:
        with between(b, whole, steps.end, extent - whole) as first:
            *outer, place = positions_of(b, first, sizes)
            yield outer, place, extent - whole


def neighbours(b: Builder, steps: Steps, sizes: Sequence[int]) -> Iterator[tuple[list[Index], Index, Index]]:
    """Loops over the steps: (positions along all dimensions but the last, the first of neighbours along that one, their
    number): groups of a constant number where this is possible, otherwise what the steps have of each row.
    """
    last = sizes[-1]
    width = width_of(steps.partition, last, last)
    if width is not None:
        yield from grouped(b, steps, sizes, width)
        return
    upper = b.add(b.div(b.sub(steps.end, 1), last), 1)
    with between(b, b.div(steps.begin, last), upper, 1) as row:
        start = b.mul(row, last)
        first = b.greatest(b.sub(steps.begin, start), 0)
        end = b.least(b.sub(steps.end, start), last)
        yield positions_of(b, row, sizes[:-1]), first, b.sub(end, first)
