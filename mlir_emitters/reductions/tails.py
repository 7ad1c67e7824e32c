"""Maxima, minima, and, or along memory, in vectors to the last element: the vector at a row's end begins within the one
before it, for what counts twice changes nothing. As scalars, a few last elements take longer than all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...hlo.opclasses import EXPENSIVE
from ...hlo.opcodes import Op
from ..core.builder import Builder, Index, Loop, Unroll, Value
from ..core.elements import ROUNDED
from ..core.facts import Facts
from ..core.graph import Buffer, Node, reachable
from ..loops.linear import is_linear
from ..loops.reduced import only_op
from .extremum import extremum_of

VECTOR_BYTES = 64
"""Bytes of a vector of the values that are compared, on no processor in particular."""

MINIMUM_VECTOR_ELEMENTS = 16
"""Elements of a row that LLVM makes vectors of."""

FETCHED_ELEMENTS = range(128, 257)
"""Elements of a row that is fetched ahead: lanes do it for longer ones."""

LOOP_VECTORS = 16
"""Vectors of one loop; of more, most are in a loop over the row."""

MAXIMUM_OPERATIONS = 4
"""Operations of an element, of which each vector has code of its own."""


def lanes_of(facts: Facts, node: Node, sizes: Sequence[int], joins: bool, fetches: bool) -> int | None:
    """The lanes of the vectors of a reduction's rows, if it gains by them. sizes: of its loops along memory; joins:
    whether they are fewer than its dimensions; fetches: whether what lies ahead is fetched.
    """
    operand, size = node.inputs[0], sizes[-1]
    dtype = operand.dtype
    if (
        size < MINIMUM_VECTOR_ELEMENTS
        or facts.by_element
        or dtype.is_complex
        or not (_counts_twice(node) and _is_cheap(operand))
    ):
        return None
    lanes = VECTOR_BYTES // (4 if dtype in ROUNDED else dtype.bytes)
    lanes = min(lanes, 1 << (size.bit_length() - 1))
    return lanes if size % lanes or len(sizes) > 1 or fetches or (joins and not dtype.is_float) else None


def _counts_twice(node: Node) -> bool:
    """Whether an element may be combined more than once: of a maximum, a minimum, and, or of both parameters."""
    return extremum_of(node) is not None or only_op(node) in (Op.AND, Op.OR)


def _is_cheap(operand: Buffer) -> bool:
    made = list(reachable([operand]))
    if len(made) > MAXIMUM_OPERATIONS or any(node.opcode in EXPENSIVE for node in made):
        return False
    return not made or is_linear([operand])


def reduce_tails(
    b: Builder,
    sizes: Sequence[int],
    lanes: int,
    first: Sequence[Value],
    advance: Callable[[Sequence[Index], Sequence[Value]], list[Value]],
    merge: Callable[[Sequence[Value], Sequence[Value]], list[Value]],
    ahead: Callable[[Sequence[Index], int], None] | None = None,
) -> list[Value]:
    """The carried values after all elements. Every row begins with the first ones, so that none waits for another.

    advance: the carried values after the element at a place; merge: those of two rows; ahead: fetches what lies
    ahead of elements, from their place and number.
    """
    *outer, size = sizes
    loops: list[Loop] = []
    carried = list(first)
    for length in outer:
        loops.append(b.open_loop(0, length, 1, carried, Unroll.SHORT))
        carried = list(loops[-1].carried)
    prefix = [loop.index for loop in loops]
    found, whole, last = list(first), size - size % lanes, size - lanes
    starts = [*range(0, last, lanes), last]
    if ahead is not None:
        ahead([*prefix, 0], size)
    if len(starts) > LOOP_VECTORS:
        with b.loop(0, whole, 1, found, Unroll.ANY) as row:
            row.next = advance([*prefix, row.index], row.carried)
        found, starts = list(row.values), [last] if whole < size else []
    if starts:
        with b.loop(0, lanes, 1, found, Unroll.VECTORIZED) as lane:
            values = list(lane.carried)
            for start in starts:
                values = advance([*prefix, b.add(lane.index, start)], values)
            lane.next = values
        found = list(lane.values)
    if loops:
        found = merge(carried, found)
    return b.close_loops(loops, found)
