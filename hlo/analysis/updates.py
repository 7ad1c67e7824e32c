"""Which operands an op updates in place: dynamic-update-slice and scatter change a few elements of a whole array."""

from __future__ import annotations

from ..ir import Computation, Instruction
from ..layouts import is_alias, same_bytes
from ..library.calls import is_sealed
from ..opclasses import ELEMENTWISE
from ..opcodes import Op
from ..shapes import Shape


def updated_operands(instruction: Instruction) -> tuple[tuple[int, int], ...]:
    """(operand, result leaf) of the arrays that a dynamic-update-slice or scatter may update in place.

    The op is unnested or the root of a fusion. In-place update saves copying the whole array.
    """
    if is_sealed(instruction):
        return declared_pairs(instruction)
    if instruction.opcode is not Op.FUSION:
        return tuple(
            (n, n)
            for n in range(updated_count(instruction))
            if instruction.operands.count(instruction.operands[n]) == 1
            and same_bytes(_leaf(instruction, n), instruction.operands[n].shape)
        )
    body = instruction.called()[0]
    root = body.root
    found = []
    for n in range(updated_count(root)):
        target = root.operands[n]
        if (
            target.opcode is Op.PARAMETER
            and root.operands.count(target) == 1
            and same_bytes(target.shape, _leaf(root, n))
            and _only_updated(body, root, target)
        ):
            found.append((target.parameter_number, n))
    return tuple(found)


def declared_pairs(instruction: Instruction) -> tuple[tuple[int, int], ...]:
    """(operand, result leaf) pairs of `output_to_operand_aliasing`."""
    numbers = {index: n for n, (index, _) in enumerate(instruction.shape.leaves())}
    aliases = instruction.attributes.get("output_to_operand_aliasing", ())
    return tuple((alias.operand, numbers[alias.output]) for alias in aliases if not alias.operand_index)


def updated_count(instruction: Instruction) -> int:
    """The number of leading operands that an op returns with some elements changed."""
    if instruction.opcode is Op.DYNAMIC_UPDATE_SLICE:
        return 1
    return len(instruction.operands) // 2 if instruction.opcode is Op.SCATTER else 0


def _leaf(instruction: Instruction, n: int) -> Shape:
    return instruction.shape.elements[n] if instruction.shape.is_tuple else instruction.shape


def _only_updated(body: Computation, root: Instruction, target: Instruction) -> bool:
    """Whether the fusion reads `target` only at elements that it then writes, each just before writing it.

    An update of one element is computed whole before it is written, whatever it reads.
    """
    readers = [u for u in body.users[target] if u is not root]
    if not readers or root.opcode is Op.SCATTER:
        return not readers
    update = root.operands[1]
    if update.shape.size == 1:
        return True
    if body.users[update] != (root,):
        return False
    pointwise = pointwise_members(body, update)
    return all(
        r.opcode is Op.DYNAMIC_SLICE
        and r in pointwise
        and same_bytes(r.shape, update.shape)
        and r.operands[0] is target
        and target not in r.operands[1:]
        and r.operands[1:] == root.operands[2:]
        for r in readers
    )


def pointwise_members(body: Computation, *ends: Instruction) -> set[Instruction]:
    """The instructions that are read only on the way to `ends`, element for element at one place in memory.

    ends: the root, or some of its operands. The root does not count as a reader of an end.
    """
    found, read, elsewhere = set[Instruction](), set(ends), set[Instruction]()
    if body.root not in read:
        elsewhere.update(o for o in body.root.operands if o not in read)
    for i in reversed(body.instructions):
        if i is body.root and i not in ends:
            continue
        if i in read and i not in elsewhere:
            found.add(i)
        for o in i.operands:
            (read if i in found and reads_in_place(i, o) else elsewhere).add(o)
    return found


def reads_in_place(i: Instruction, operand: Instruction) -> bool:
    """Whether element k of the result, in memory order, needs only element k of the operand, in memory order."""
    a, b = operand.shape, i.shape
    if i.opcode in ELEMENTWISE:
        return a.dims == b.dims and (a.layout == b.layout or a.strides == b.strides)
    return is_alias(i) and a.is_array and a.size == b.size
