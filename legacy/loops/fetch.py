"""Large arrays that a kernel reads in the order of memory, and whose next elements it fetches ahead.

Hardware fetches ahead, too, but too late, and not from one piece of a row to that of the next row.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ..core.builder import IndexValue
from ..core.view import View
from ..numerics.elementwise import EMIT
from .elemental import Elemental
from .memory import prefetch

MOST = 2
"""Arrays that are fetched ahead together."""

AHEAD = 8192
"""Bytes that a loop along memory is ahead of what it reads."""

LONG_RUN = 4 * AHEAD
"""Minimum bytes between two jumps for which little is fetched that does not follow."""


def streams_of(view: View, operands: Sequence[Instruction], source: Shape) -> list[Instruction]:
    """The arrays of which elementwise values at the same places are made; none if the second cache holds them, or they
    are many.

    source: the shape by whose strides they are read.
    """
    found: list[Instruction] = []
    stack, seen = list(operands), set[Instruction]()
    while stack:
        i = stack.pop()
        if i in seen:
            continue
        seen.add(i)
        if i not in view.leaves:
            stack.extend(i.operands if i.opcode in EMIT or i.opcode in (Op.RESHAPE, Op.BITCAST) else ())
        elif i.shape.is_array and _in_order(i.shape, source):
            found.append(i)
    large = any(i.shape.size * i.shape.dtype.bytes >= view.processor.second_cache_bytes for i in found)
    return found if large and len(found) <= MOST else []


def _in_order(shape: Shape, source: Shape) -> bool:
    """Whether elements at the same place in `source` have its offset."""
    if shape.dims == source.dims and shape.strides == source.strides:
        return True
    return shape.size == source.size and shape.is_row_major and source.is_row_major


def fetch(e: Elemental, streams: Sequence[Instruction], offset: IndexValue, count: int, along: bool = False) -> None:
    """Ask for `count` neighbours of each array, from an offset on. along: those that lie AHEAD behind them."""
    line = e.view.processor.line_bytes
    for stream in streams:
        dtype = stream.shape.dtype
        first = e.code.add(offset, AHEAD // dtype.bytes if along else 0)
        for k in range(0, count, max(1, line // dtype.bytes)):
            prefetch(e.code, e.leaves[stream], dtype, e.code.add(first, k))
