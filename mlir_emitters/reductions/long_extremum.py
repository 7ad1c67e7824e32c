"""A maximum or minimum along the memory of a large array, in lanes: what lies ahead is fetched beside their loop,
of which LLVM makes vectors. A loop that carries the accumulators of extremum.py has no such place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...hlo.opcodes import Op
from ..core.builder import Builder, Index, Unroll, Value
from ..core.slots import Slots
from .extremum import advance_column, advance_three, close_column, close_three, open_three
from .long_sums import ELEMENTS_TOGETHER, LANES, Blocks, Carried


def is_in_lanes(sizes: Sequence[int]) -> bool:
    """Whether dimensions of these sizes, slowest first, fill the lanes."""
    return sizes[-1] >= LANES * ELEMENTS_TOGETHER


def extremum_in_lanes(
    b: Builder,
    op: Op,
    sizes: Sequence[int],
    first: Value,
    visit: Callable[[Sequence[Index]], Value],
    ahead: Callable[[Sequence[Index], int], None],
) -> Value:
    """The extremum of `first` and the elements. visit: the element at a place; ahead: as of `LongSums`."""
    size, step = sizes[-1], LANES * ELEMENTS_TOGETHER
    openings = [first, b.bitcast(first, b.types.i64 if first.type == b.types.f64 else b.types.i32)]
    slots = Slots.for_values(b, openings, LANES)
    for space, value in zip(slots.arrays, openings, strict=True):
        b.store(b.op("vector.broadcast", value, type=b.vector(LANES, value.type)), space, 64)

    def turns(prefix: Sequence[Index], starts: Sequence[Index], length: int) -> None:
        with b.loop(0, length, unroll=Unroll.VECTORIZED) as lane:
            values = slots.read(lane.index)
            found = [visit([*prefix, b.add(start, lane.index)]) for start in starts]
            slots.write(lane.index, advance_column(b, op, values, found))

    def whole(prefix: Sequence[Index], at: Index, given: Carried) -> Carried:
        ahead([*prefix, at], step)
        turns(prefix, [b.add(at, k * LANES) for k in range(ELEMENTS_TOGETHER)], LANES)
        return given

    def rest(prefix: Sequence[Index], at: int, given: Carried) -> Carried:
        starts = list(range(at, size - LANES + 1, LANES))
        if starts:
            turns(prefix, starts, LANES)
        left = (size - at) % LANES
        if left:
            turns(prefix, [size - left], left)
        return given

    Blocks(b, sizes, step, 1 << 62, lambda given: given, Unroll.NONE).emit(whole, rest)
    with b.loop(0, LANES, 1, open_three(b, first), Unroll.VECTORIZED) as lane:
        lane.next = advance_three(b, op, lane.carried, close_column(b, slots.read(lane.index)))
    return close_three(b, lane.values)
