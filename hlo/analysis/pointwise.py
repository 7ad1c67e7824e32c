"""Which leaves a graph of instructions reads at the index of its result only, and which at other indices too."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..ir import Instruction
from ..opclasses import ELEMENTWISE


def pointwise_leaves(
    roots: Sequence[Instruction], leaves: Collection[Instruction]
) -> tuple[set[Instruction], set[Instruction]]:
    """(leaves that some root reads through elementwise ops only, leaves that are read in any other way).

    A leaf can be in both sets.
    """
    found: dict[bool, set[Instruction]] = {True: set(), False: set()}
    stack = [(root, True) for root in roots]
    while stack:
        i, here = stack.pop()
        if i in found[here]:
            continue
        found[here].add(i)
        if i not in leaves:
            passes = here and i.opcode in ELEMENTWISE
            stack += [(o, passes and o.shape.dims == i.shape.dims) for o in i.operands]
    return {i for i in found[True] if i in leaves}, {i for i in found[False] if i in leaves}
