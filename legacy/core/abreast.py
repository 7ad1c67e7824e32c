"""Loops whose body is a long chain of operations that wait for one another: LLVM puts several of their vectors side by
side. By itself it does so for short bodies, of which a processor has many under way in any case.
"""

from __future__ import annotations

from .builder import Loop, Once, Unroll

MANY = 1 << 16
"""Minimum elements for which the copies of the body are worth the time to compile them."""

CHAIN = 34
"""Minimum operations, each waiting for the one before, for which a processor does not begin enough of the next vectors
by itself. Six of them are the place of an element, its load and its store.
"""

BESIDE = 3
"""Operations for each of a chain up to which they leave room for further vectors."""


def spread(loop: Loop | Once, elements: int) -> None:
    """Say so of a loop that is complete but not closed, if it is such a one. elements: of it and the loops around."""
    if elements < MANY or isinstance(loop, Once) or loop.unroll is not Unroll.FREELY or loop.carried:
        return
    if loop.code.loops > loop.number:  # there is one in it
        return
    chain, operations = chain_of(loop)
    if chain >= CHAIN and operations <= BESIDE * chain:
        loop.unroll = Unroll.ABREAST


def chain_of(loop: Loop) -> tuple[int, int]:
    """(The most operations of the body that wait for one another, the number of all)."""
    blocks, ends = loop.code.function.blocks, dict[int, int]()
    for block in blocks[blocks.index(loop.body) :]:
        for i in block.instructions:
            ends[id(i)] = 1 + max((ends.get(id(operand), 0) for operand in i.operands), default=0)
    return max(ends.values(), default=0), len(ends)
