"""Which operands a kernel may overwrite with its result, as plan.KernelRequest promises."""

from __future__ import annotations

from .ir import Computation, Instruction
from .opclasses import ELEMENTWISE, same_bytes
from .opcodes import Op


def updated_operand(instruction: Instruction) -> int | None:
    """The operand that a dynamic-update-slice (unnested, or a fusion's root) may update in place, if any."""
    if instruction.opcode is Op.DYNAMIC_UPDATE_SLICE:
        operands = instruction.operands
        if operands[0] in operands[1:] or not same_bytes(instruction.shape, operands[0].shape):
            return None
        return 0
    if instruction.opcode is not Op.FUSION or not instruction.shape.is_array:
        return None
    body = instruction.called()[0]
    root = body.root
    if root.opcode is not Op.DYNAMIC_UPDATE_SLICE or root.operands[0].opcode is not Op.PARAMETER:
        return None
    target = root.operands[0]
    if not same_bytes(target.shape, root.shape) or not _only_updated(body, root, target):
        return None
    return target.parameter_number


def _only_updated(body: Computation, root: Instruction, target: Instruction) -> bool:
    """The fusion reads `target` at most at the elements that it then writes, each just before writing it."""
    if target in root.operands[1:]:
        return False
    readers = [u for u in body.users[target] if u is not root]
    if not readers:
        return True
    update = root.operands[1]
    if body.users[update] != (root,):
        return False
    pointwise = _pointwise(body, update)
    return all(
        r.opcode is Op.DYNAMIC_SLICE
        and r in pointwise
        and r.operands[0] is target
        and target not in r.operands[1:]
        and r.operands[1:] == root.operands[2:]
        for r in readers
    )


def _pointwise(body: Computation, end: Instruction) -> set[Instruction]:
    """`end`, and what is read only on the way to it through elementwise ops, element for element."""
    found = {end}
    for i in reversed(body.instructions):
        users = body.users[i]
        if users and i.shape.dims == end.shape.dims and all(u in found and u.opcode in ELEMENTWISE for u in users):
            found.add(i)
    return found


def reusable_operands(instruction: Instruction) -> tuple[int, ...]:
    """Operands whose buffer the single array result may take over, element by element, if they die here."""
    if not instruction.shape.is_array or instruction.shape.is_dynamic:
        return ()
    updated = updated_operand(instruction)
    if updated is not None:
        return (updated,)
    if instruction.opcode is Op.FUSION:
        candidates = _elementwise_parameters(instruction.called()[0])
    elif instruction.opcode in ELEMENTWISE:
        candidates = list(range(len(instruction.operands)))
    else:
        return ()
    return tuple(n for n in candidates if _same_places(instruction.operands[n], instruction))


def reuses(instruction: Instruction) -> tuple[tuple[int, int], ...]:
    """(operand, result leaf): the leaf may take over the operand's buffer, element by element, if it dies here."""
    if instruction.shape.is_array:
        return tuple((n, 0) for n in reusable_operands(instruction))
    if instruction.opcode is not Op.FUSION or not all(s.is_array for s in instruction.shape.elements):
        return ()
    body = instruction.called()[0]
    if body.root.opcode is not Op.TUPLE or body.root.shape.is_dynamic:
        return ()
    found = []
    for leaf, end in enumerate(body.root.operands):
        if body.users[end] != (body.root,) or body.root.operands.count(end) > 1:
            continue  # another leaf reads what this one reads
        pointwise = _pointwise(body, end)
        for p in body.parameters:
            operand = instruction.operands[p.parameter_number]
            if p in pointwise and p is not end and not end.shape.is_dynamic and _same_places(operand, end):
                found.append((p.parameter_number, leaf))
    return tuple(found)


def _same_places(operand: Instruction, result: Instruction) -> bool:
    """Element i of both lies at the same byte."""
    a, b = operand.shape, result.shape
    return (
        a.is_array
        and a.dims == b.dims
        and a.dtype.bytes == b.dtype.bytes
        and not a.is_dynamic
        and a.size > 0
        and a.strides == b.strides
    )


def _elementwise_parameters(body: Computation) -> list[int]:
    """Parameters that the root depends on through elementwise ops only, at its own index."""
    pointwise = _pointwise(body, body.root)
    return [p.parameter_number for p in body.parameters if p in pointwise and p is not body.root]
