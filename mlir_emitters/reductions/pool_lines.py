"""Pools with overlapping or strided windows along memory: the input's rows are joined on a line first.

All rows under a tile of windows are combined into one line on the stack, each by one loop along memory; what lies in
the padding keeps the operation's neutral value. The windows along memory are then combined from the line. Where they
are strides apart, one loop splits it into as many lanes first, whose neighbours belong to neighbouring windows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...hlo.opcodes import Op
from ..core.builder import Index, Unroll, Value
from ..core.graph import Buffer, Node
from ..core.slots import Slots
from ..loops.elemental import Elemental
from ..loops.form import more
from .reduce_window import Pool, lone_op, slides_of

MAXIMUM_STRIDE = 4
"""Largest stride. With more lanes, splitting a line into them takes longer than it saves."""

MAXIMUM_TAPS = 20
"""Window positions whose reads are written out one by one, at most."""

IDEMPOTENT = frozenset({Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR})
"""Operations whose result with a value's double is the value."""


def why_not_lines(node: Node) -> str | None:
    """None if `LinePool` can and should emit a pool."""
    slide = slides_of(node)[node.output.shape.minor_to_major[0]]
    if (slide.gap, slide.spread) != (1, 1):
        return "windows or what they are over have gaps along memory"
    if not max(2, slide.stride) <= slide.window <= MAXIMUM_TAPS:
        return f"{slide.window} window positions along memory, not {max(2, slide.stride)} to {MAXIMUM_TAPS}"
    if slide.stride > MAXIMUM_STRIDE:
        return more(slide.stride, "places between windows", MAXIMUM_STRIDE)
    return None if lone_op(node) in {Op.ADD, *IDEMPOTENT} else "windows are not added up, nor of an extremum"


class LinePool(Pool):
    """Loops: all dimensions except the fastest, tiles of the fastest, rows under windows and a line; then windows."""

    def __init__(self, e: Elemental, node: Node, result: Buffer):
        super().__init__(e, node, result)
        self.slide = self.slides[self.column]
        self.whole = all(s.single for d, s in enumerate(self.slides) if d != self.column)

    def tile(self, start: Sequence[Value], begin: Index, width: int) -> None:
        b, stride = self.b, self.slide.stride
        start = self.opened(start)
        each = width + (self.slide.window - 1) // stride  # elements of a lane
        line = Slots.for_values(b, start, each * stride, alignment=1)
        self.join_rows(line, b.mul(begin, stride), each * stride, start)
        lanes = [line]
        if stride > 1:
            lanes = [Slots.for_values(b, start, each, alignment=1) for _ in range(stride)]
            with b.loop(0, each) as loop:
                first = b.mul(loop.index, stride)
                for k, lane in enumerate(lanes):
                    lane.write(loop.index, line.read(b.add(first, k)))
        with b.loop(0, width, unroll=Unroll.VECTORIZED) as loop:
            values = [*start]
            for tap in range(self.slide.window):
                values = self.joined(values, lanes[tap % stride].read(b.add(loop.index, tap // stride)))
            self.write(b.add(begin, loop.index), values)

    def join_rows(self, line: Slots, begin: Index, length: int, start: Sequence[Value]) -> None:
        """Combine all rows under the windows into the line, which begins `low` before column `begin`."""
        b, low = self.b, self.slide.low
        lower = b.greatest(begin, low)
        upper = b.least(b.add(begin, length), low + self.slide.input)
        ends = (b.least(b.sub(lower, begin), length), b.greatest(b.sub(upper, begin), 0))
        for first, last in [(0, ends[0]), (ends[1], length)] if self.whole else [(0, length)]:
            with b.loop(first, last) as loop:
                line.write(loop.index, self.neutral(start))
        loops, spot = self.open_rows()
        loops.append(b.open_loop(lower, upper))
        spot[self.column] = b.add(loops[-1].index, -low)
        element = self.element(spot)
        at = b.sub(loops[-1].index, begin)
        if not self.whole:
            element = self.joined(line.read(at), element)
        line.write(at, element)
        b.close_loops(loops)

    def neutral(self, start: Sequence[Value]) -> Sequence[Value]:
        """What changes nothing: the initial value, if it may be met again; or −0.0, or the integer 0."""
        if lone_op(self.node) in IDEMPOTENT:
            return start
        floating = self.node.output.dtype.is_float or self.node.output.dtype.is_complex
        return [self.b.number(np.float32(-0.0) if floating else np.int32(0), v.type) for v in start]
