"""Operations that only move parts of rows from one large array to another: with non-temporal stores of whole lines. The
caches have no room for both, and would read what is written over.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...codegen.processors import Processor
from ..core.builder import Index, Unroll
from ..core.elements import raw_type
from ..core.graph import Buffer
from ..core.index_arithmetic import Axis
from .elemental import Elemental, Indices

MINIMUM_LINES = 16
"""Lines of a part of a row."""


def emit_moved(e: Elemental, source: Buffer, read: Indices, result: Buffer, index: Indices) -> bool:
    """Copy the elements of `source` at an index to those of `result` at another one. False if they are no long parts of
    rows on both sides, or are not many.
    """
    b, size = e.b, result.dtype.bytes
    axes = sorted((i for i in index if isinstance(i, Axis)), key=lambda i: i.number)
    count = _row(b.processor, source, read, result, index, axes[-1]) if axes else None
    if count is None:
        return False
    loops = [b.open_loop(0, axis.count, unroll=Unroll.NONE) for axis in axes[:-1]]
    counters: list[Index] = [loop.index for loop in loops]
    line = b.processor.line_bytes
    lanes, element = line // size, raw_type(b.types, result.dtype)
    whole, vector = count - count % lanes, b.vector(lanes, element)
    places = [_place(e, source, read, counters), _place(e, result, index, counters)]
    for first, end, width, type in ((0, whole, lanes, vector), (whole, count, 1, element)):
        if first < end:
            with b.loop(first, end, width, unroll=Unroll.NONE) as loop:
                here, there = (b.pointer(e.pointers[x.argument], b.add(at, loop.index), element) for x, at in places)
                value = b.load(here, type, size)
                b.store(value, there, line if width > 1 else size, width > 1)
    b.close_loops(loops)
    return True


def _row(processor: Processor, source: Buffer, read: Indices, result: Buffer, index: Indices, last: Axis) -> int | None:
    """The elements of a part of a row, along the last axis; None if they are not copied so."""
    line, cache = processor.line_bytes, processor.last_cache_bytes
    lanes = line // result.dtype.bytes
    if source.dtype is not result.dtype or source.argument == result.argument:
        return None
    if not (isinstance(last.start, int) and last.start % lanes == 0 and isinstance(last.count, int)):
        return None
    if _step(index, result, last.number) != 1 or _step(read, source, last.number) != 1:
        return None
    rows = [s for i, s, n in zip(index, result.strides, result.dims, strict=True) if i is not last and n != 1]
    aligned = result.alignment >= line and all(s % lanes == 0 for s in rows)
    large = result.shape.bytes >= cache and source.shape.bytes >= cache // 4  # parts of smaller arrays stay there
    return last.count if aligned and large and last.count // lanes >= MINIMUM_LINES else None


def _step(index: Indices, buffer: Buffer, number: int) -> int:
    """How many elements of a buffer a step along an axis is; 0 if it is along several dimensions or none."""
    steps = [
        i.step * s for i, s in zip(index, buffer.strides, strict=True) if isinstance(i, Axis) and i.number == number
    ]
    return steps[0] if len(steps) == 1 else 0


def _place(e: Elemental, buffer: Buffer, index: Indices, counters: Sequence[Index]) -> tuple[Buffer, Index]:
    """A buffer, and the offset of its first element in the innermost loop."""
    b = e.b

    def position(i: Index) -> Index:
        if not isinstance(i, Axis):
            return i
        return b.add(i.start, b.mul(counters[i.number], i.step)) if i.number < len(counters) else i.start

    return buffer, b.offset(map(position, index), buffer.strides)
