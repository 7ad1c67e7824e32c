"""Operations that only move parts of rows from one large array to another: with non-temporal stores of whole lines. The
caches have no room for both, and would read what is written over.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..core.builder import Index, Unroll
from ..core.elements import raw_type
from ..core.graph import Buffer
from ..core.index_arithmetic import Axis
from .elemental import Elemental, Indices

LINE = 64  # bytes
LEAST_RESULT = 16 << 20  # bytes of a result from which on it is not kept in the caches
LEAST_SOURCE = 4 << 20  # of a smaller array parts stay in them
LEAST_LINES = 16  # of a part of a row


def emit_moved(e: Elemental, source: Buffer, read: Indices, result: Buffer, index: Indices) -> bool:
    """Copy the elements of `source` at an index to those of `result` at another one. False if they are no long parts of
    rows on both sides, or are not many.
    """
    b, size = e.b, result.dtype.bytes
    axes = sorted((i for i in index if isinstance(i, Axis)), key=lambda i: i.number)
    lanes = LINE // size
    if not axes or source.dtype is not result.dtype or source.argument == result.argument:
        return False
    last = axes[-1]
    along = [n for n, i in enumerate(index) if i is last]
    ends = isinstance(last.start, int) and last.start % lanes == 0 and isinstance(last.count, int)
    if not ends or [result.strides[n] for n in along] != [1] or _step(read, source, last.number) != 1:
        return False
    assert isinstance(last.count, int)
    whole = last.count - last.count % lanes
    rows = [s for n, s in enumerate(result.strides) if n not in along and result.dims[n] != 1]
    aligned = result.alignment >= LINE and all(s % lanes == 0 for s in rows)
    large = result.shape.bytes >= LEAST_RESULT and source.shape.bytes >= LEAST_SOURCE
    if not aligned or not large or whole < LEAST_LINES * lanes:
        return False
    loops = [b.open_loop(0, axis.count, unroll=Unroll.NONE) for axis in axes[:-1]]
    counters: list[Index] = [loop.index for loop in loops]
    element, vector = raw_type(b.types, result.dtype), b.vector(lanes, raw_type(b.types, result.dtype))
    places = [_place(e, source, read, counters), _place(e, result, index, counters)]
    for first, end, width, type in ((0, whole, lanes, vector), (whole, last.count, 1, element)):
        if first < end:
            with b.loop(first, end, width, unroll=Unroll.NONE) as loop:
                here, there = (b.pointer(e.pointers[x.argument], b.add(at, loop.index), element) for x, at in places)
                value = b.load(here, type, size)
                b.store(value, there, LINE if width > 1 else size, width > 1)
    b.close_loops(loops)
    return True


def _step(index: Indices, buffer: Buffer, number: int) -> int:
    """How many elements of a buffer a step along an axis is; 0 if it is along several dimensions or none."""
    steps = [
        i.step * s for i, s in zip(index, buffer.strides, strict=True) if isinstance(i, Axis) and i.number == number
    ]
    return steps[0] if len(steps) == 1 else 0


def _place(e: Elemental, buffer: Buffer, index: Indices, counters: Sequence[Index]) -> tuple[Buffer, Index]:
    """A buffer, and the offset of its first element in the innermost loop."""
    b = e.b
    offset: Index = 0
    for i, stride in zip(index, buffer.strides, strict=True):
        at: Index = i.start if isinstance(i, Axis) else i
        if isinstance(i, Axis) and i.number < len(counters):
            at = b.add(at, b.mul(counters[i.number], i.step))
        offset = b.add(offset, b.mul(at, stride))
    return buffer, offset
