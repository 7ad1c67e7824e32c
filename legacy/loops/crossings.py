"""Arrays that a root reads across the order of its memory."""

from __future__ import annotations

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, replace
from ...hlo.shapes import Shape
from ..core.view import View
from ..numerics.elementwise import EMIT


def fastest_dimension(shape: Shape) -> int | None:
    """The dimension along which elements are adjacent in memory; None for a single element."""
    return next((d for d in shape.minor_to_major if shape.dims[d] != 1), None)


@dataclass(frozen=True, slots=True)
class Crossing:
    """A leaf whose elements are adjacent in memory along dimension `across` of the root.

    roles: for each dimension of the leaf the root dimension that it follows; -1 for none. exact: positions are equal.
    """

    leaf: Instruction
    roles: tuple[int, ...]
    across: int
    exact: bool


def crossings_of(view: View, root: Instruction, least: int) -> list[Crossing]:
    """All leaves of `least` elements that can be followed from the root, with the dimension along which they are
    adjacent in memory.
    """
    found: list[Crossing] = []
    start = Crossing(root, tuple(range(root.shape.rank)), -1, True)
    stack, seen = [start], {start}
    while stack:
        current = stack.pop()
        if current.leaf in view.leaves:
            fast = fastest_dimension(current.leaf.shape)
            if fast is not None and current.roles[fast] >= 0 and current.leaf.shape.size >= least:
                exact = current.exact and min(current.roles) >= 0
                found.append(replace(current, across=current.roles[fast], exact=exact))
            continue
        for following in _follow(current):
            if following not in seen:
                seen.add(following)
                stack.append(following)
    return found


def _follow(current: Crossing) -> list[Crossing]:
    """The same for the operands of an intermediate instruction."""
    instruction, roles = current.leaf, current.roles
    if instruction.opcode in EMIT:
        same = [o for o in instruction.operands if o.shape.dims == instruction.shape.dims]
        return [replace(current, leaf=o) for o in same]
    if instruction.opcode not in (Op.TRANSPOSE, Op.BROADCAST, *_SHIFTING):
        return []
    operand = instruction.operands[0]
    if instruction.opcode in _SHIFTING:
        return [replace(current, leaf=operand, exact=False)]
    inner = [-1] * operand.shape.rank
    for position, d in enumerate(instruction.dimensions):
        to, source = (d, position) if instruction.opcode is Op.TRANSPOSE else (position, d)
        inner[to] = roles[source]
    return [replace(current, leaf=operand, roles=tuple(inner))]


_SHIFTING = frozenset({Op.SLICE, Op.REVERSE, Op.DYNAMIC_SLICE, Op.PAD})
"""Opcodes that keep the order of dimensions but change positions."""
