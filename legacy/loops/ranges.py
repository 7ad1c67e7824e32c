"""The steps that a call of a kernel computes, [begin, end) of its partition, and the loops over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from llvmlite import ir

from ...hlo.records import dataclass
from ...planning.partition import Partition
from ..core.abreast import spread
from ..core.builder import Code, IndexValue, Loop, Once, Unroll


@dataclass(frozen=True, slots=True)
class Steps:
    """begin and end are multiples of the partition's `least`, or end is its extent; begin < end.

    The loops over the results ask for it: nothing else decides which elements a call computes.
    """

    partition: Partition
    begin: ir.Value
    end: ir.Value

    @property
    def dimensions(self) -> tuple[int, ...]:
        """Dimensions of the results whose positions the steps number, the first of them slowest."""
        return self.partition.dimensions


def numbered(steps: Steps | None) -> tuple[int, ...]:
    """The dimensions of results that the steps number."""
    return () if steps is None else steps.dimensions


def in_order(
    code: Code, steps: Steps, sizes: Sequence[int], unroll: Unroll = Unroll.FREELY
) -> tuple[Loop | Once, list[IndexValue]]:
    """(A loop over the steps, the positions along the steps' dimensions, which have these sizes)."""
    loop = code.between(steps.begin, steps.end, unroll=unroll)
    return loop, list(code.split(loop.index, sizes))


def bounds(code: Code, steps: Steps | None, count: int) -> tuple[IndexValue, IndexValue]:
    """The first of `count` places, of which each step has its share, and the end: those of the steps only, or all."""
    each = 1 if steps is None else count // steps.partition.extent
    return (0, count) if steps is None else (code.multiply(steps.begin, each), code.multiply(steps.end, each))


def scaled(code: Code, steps: Steps | None, count: int) -> Loop | Once:
    """A loop over these places."""
    return code.loop(count) if steps is None else code.between(*bounds(code, steps, count))


@contextmanager
def elements(code: Code, steps: Steps | None, count: int) -> Iterator[IndexValue]:
    """A loop over all elements, `count` of them, or over those of the steps: the position. If all chunks have the same
    number of elements, or a multiple of it, the inner loop is of that constant length, which compiles faster.
    """
    if steps is None or steps.partition.extent % steps.partition.least:
        loop = scaled(code, steps, count)
        yield loop.index
        spread(loop, count)
        loop.close()
        return
    block = steps.partition.least * (count // steps.partition.extent)
    with code.between(*bounds(code, steps, count), block, unroll=Unroll.NEVER) as outer:
        inner = code.loop(block)
        yield code.add(outer, inner.index)
        spread(inner, count)
        inner.close()


def block_of(partition: Partition, last: int, most: int, least: int = 8) -> int | None:
    """The largest width up to `most` of the blocks of `blocks`; None if none of `least` is possible.

    last: the size of the last of the partition's dimensions.
    """
    several = len(partition.dimensions) > 1
    fits = (n for n in range(most, least - 1, -1) if partition.least % n == 0 and not (several and last % n))
    return next(fits, None)


def blocks(
    code: Code, steps: Steps, sizes: Sequence[int], width: int
) -> Iterator[tuple[list[IndexValue], IndexValue, int]]:
    """Loops over the steps in blocks of `width` neighbours along the last dimension: (positions along the others, the
    block's first position, its width). There are up to two bodies: of whole blocks, and of the rest at the end.
    """
    extent = steps.partition.extent
    whole = extent - extent % width
    for start, end, block in ((steps.begin, code.minimum(steps.end, whole), width), (whole, steps.end, extent - whole)):
        if not block or (start is steps.begin and not whole):
            continue
        with code.range(start, end, block) as i:
            *outer, first = code.split(i, sizes)
            yield outer, first, block


Part: TypeAlias = tuple[int, int, int]


def parts(size: int, block: int) -> list[Part]:
    """(start, end, step): the full blocks of a dimension, and the rest as one smaller block."""
    whole = size - size % block
    return [(start, end, min(block, end - start)) for start, end in ((0, whole), (whole, size)) if start != end]


def pieces(code: Code, size: int, block: int) -> Iterator[tuple[IndexValue, int]]:
    """Loops over these blocks: (the first position, their size)."""
    for start, end, step in parts(size, block):
        with code.loop(end - start, start=start, step=step, unroll=Unroll.NEVER) as first:
            yield first, step


def columns_fit(partition: Partition | None, inside: Sequence[int], column: int, size: int, most: int) -> bool:
    """Whether `column_blocks` can run over some of the steps. size: of the column's dimension."""
    if partition is None or column not in inside:
        return True
    return inside[-1] == column and block_of(partition, size, most, min(most, 8)) is not None


def column_blocks(
    code: Code,
    steps: Steps | None,
    dims: Sequence[int],
    order: Sequence[int],
    column: int,
    most: int,
    around: Unroll = Unroll.FREELY,
    inside: Sequence[int] | None = None,
) -> Iterator[tuple[list[IndexValue], IndexValue, int]]:
    """Loops over dimensions in this order and over blocks of up to `most` columns: (positions by dimension, the first
    column, the number of columns). around: the mode of loops around all columns. inside: the
    dimensions that the steps number, if these are not dimensions of results.
    """
    inside = numbered(steps) if inside is None else inside
    if steps is None or column not in inside:
        with loops_over(code, steps, dims, order, around, inside) as positions:
            for first, block in pieces(code, dims[column], most):
                yield positions, first, block
        return
    width = block_of(steps.partition, dims[column], most, min(most, 8))
    assert width is not None
    for outer, first, block in blocks(code, steps, [dims[d] for d in inside], width):
        with loops_over(code, None, dims, [d for d in order if d not in inside]) as positions:
            for d, place in zip(inside, outer, strict=False):
                positions[d] = place
            yield positions, first, block


@contextmanager
def loops_over(
    code: Code,
    steps: Steps | None,
    dims: Sequence[int],
    order: Sequence[int],
    unroll: Unroll = Unroll.FREELY,
    inside: Sequence[int] | None = None,
) -> Iterator[list[IndexValue]]:
    """Loops over dimensions in this order, the steps' first: a list of positions by dimension, 0 for any other.

    unroll: the mode of the other loops; theirs, too, if it is SCALAR. inside: as of column_blocks.
    """
    inside = numbered(steps) if inside is None else inside
    positions: list[IndexValue] = [0] * len(dims)
    opened: list[Loop | Once] = []
    if steps is not None:
        kind = unroll if unroll is Unroll.SCALAR else Unroll.FREELY
        loop, places = in_order(code, steps, [dims[d] for d in inside], kind)
        opened.append(loop)
        for d, place in zip(inside, places, strict=True):
            positions[d] = place
    for d in order:
        if d not in inside:
            opened.append(code.loop(dims[d], unroll=unroll))
            positions[d] = opened[-1].index
    yield positions
    for loop in reversed(opened):
        loop.close()
