"""The array values behind tuples and views: ops that move no bytes hand the leaves of their operands on."""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Instruction
from ..layouts import is_alias
from ..opclasses import FORWARDING
from ..opcodes import Op
from ..shapes import Shape

NO_BUFFER = -1
"""The variable number of a token, which has none."""

Leaves = tuple[int, ...]


def leaf_count(shape: Shape) -> int:
    return 1 if not shape.is_tuple else sum(leaf_count(e) for e in shape.elements)


def element_range(shape: Shape, index: int) -> tuple[int, int]:
    """[start, stop) of the leaves of a tuple's element among the leaves of the tuple."""
    start = sum(leaf_count(e) for e in shape.elements[:index])
    return start, start + leaf_count(shape.elements[index])


def moves_no_bytes(i: Instruction) -> bool:
    """Whether the result leaves of an op are leaves of its operands: it needs no kernel and no copy."""
    if i.opcode is Op.COPY:
        return i.shape.is_tuple
    return i.opcode in FORWARDING or (i.opcode in (Op.BITCAST, Op.RESHAPE, Op.TRANSPOSE) and is_alias(i))


def forward(i: Instruction, operands: Sequence[Leaves]) -> Leaves:
    """The leaves of the result of an op that moves no bytes."""
    if i.opcode is Op.TUPLE:
        return tuple(leaf for o in operands for leaf in o)
    if i.opcode is Op.GET_TUPLE_ELEMENT:
        start, stop = element_range(i.operands[0].shape, i.attributes["index"])
        return operands[0][start:stop]
    if i.opcode is Op.AFTER_ALL:
        return (NO_BUFFER,)
    return operands[0]
