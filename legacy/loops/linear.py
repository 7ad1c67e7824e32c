"""Decides which graphs can run as one flat loop in memory order, without multi-dimensional indices and divisions."""

from __future__ import annotations

from collections.abc import Collection, Container

from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from ..numerics.elementwise import EMIT
from .elemental import same_order
from .memory import is_splat


def is_linear(root: Instruction, leaves: Container[Instruction]) -> bool:
    """Whether every array that `root` depends on is read in the memory order of root's elements."""
    stack, seen = [root], {root}
    while stack:
        instruction = stack.pop()
        if instruction in leaves:
            continue
        if not _keeps_order(instruction):
            return False
        for operand in instruction.operands:
            if operand not in seen and operand.shape.size != 1:
                seen.add(operand)
                stack.append(operand)
    return True


def _keeps_order(instruction: Instruction) -> bool:
    shape = instruction.shape
    if shape.is_tuple:
        return False
    if instruction.opcode in EMIT or instruction.opcode is Op.MAP:
        return all(o.shape.size == 1 or _same_memory_order(shape, o.shape) for o in instruction.operands)
    rule = _RULES.get(instruction.opcode)
    return rule is not None and rule(instruction)


def _same_memory_order(a: Shape, b: Shape) -> bool:
    return a.dims == b.dims and same_order(a.dims, a.minor_to_major, b.minor_to_major)


def _broadcast(instruction: Instruction) -> bool:
    operand = instruction.operands[0].shape
    if operand.size == 1:
        return True
    return is_reshaping_broadcast(instruction) and instruction.shape.is_row_major and operand.is_row_major


def is_bitcast_transpose(instruction: Instruction) -> bool:
    """Whether a transpose leaves every element at its place in memory."""
    shape, source = instruction.shape, instruction.operands[0].shape
    return all(
        shape.dims[i] == 1 or shape.strides[i] == source.strides[d] for i, d in enumerate(instruction.dimensions)
    )


def is_reshaping_broadcast(instruction: Instruction) -> bool:
    """Whether a broadcast only adds dimensions of size 1."""
    return instruction.operands[0].shape.size == instruction.shape.size and tuple(
        sorted(instruction.dimensions)
    ) == tuple(instruction.dimensions)


_RULES = {
    Op.CONSTANT: lambda i: i.shape.size == 1 or is_splat(i.literal),
    Op.BROADCAST: _broadcast,
    Op.RESHAPE: lambda i: i.shape.is_row_major and i.operands[0].shape.is_row_major,
    Op.BITCAST: lambda i: True,
    Op.TRANSPOSE: is_bitcast_transpose,
    Op.IOTA: lambda i: i.shape.rank == 1,
    Op.BITCAST_CONVERT: lambda i: _same_memory_order(i.shape, i.operands[0].shape),
}


def source_of(operand: Instruction, leaves: Collection[Instruction]) -> Instruction | None:
    """What is in memory and has the elements of an operand at the same offsets."""
    inner = through(operand, leaves)
    return inner if inner in leaves else None


def through(operand: Instruction, leaves: Collection[Instruction] = ()) -> Instruction:
    """What an operand is behind reshapes that move nothing."""
    while operand not in leaves and operand.opcode in (Op.RESHAPE, Op.BITCAST):
        (before,) = operand.operands
        if not (operand.shape.is_row_major and before.shape.is_row_major and before.shape.dtype is operand.shape.dtype):
            break
        operand = before
    return operand
