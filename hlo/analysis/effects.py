"""Which instructions and computations have side effects, and which instructions CSE must not merge."""

from __future__ import annotations

from ..ir import Computation, Instruction, Module
from ..library.calls import lapack_call
from ..opclasses import IMPURE, SIDE_EFFECTS
from ..opcodes import Op

_MAY_ACT = SIDE_EFFECTS | {Op.CUSTOM_CALL}


def has_side_effect(instruction: Instruction) -> bool:
    """Whether the instruction itself has a side effect; the computations that it calls are not looked at."""
    if instruction.opcode is Op.CUSTOM_CALL:
        flag = instruction.attributes.get("custom_call_has_side_effect", False)
        return flag is True or getattr(flag, "text", flag) == "true"
    return instruction.opcode in SIDE_EFFECTS


def is_impure(instruction: Instruction) -> bool:
    """Whether CSE must keep two equal instructions apart. It may merge LAPACK calls: they depend on operands only."""
    if instruction.opcode is Op.CUSTOM_CALL:
        return has_side_effect(instruction) or lapack_call(instruction) is None
    return instruction.opcode in IMPURE


def effectful_computations(module: Module) -> set[Computation]:
    """Computations with a side effect, in their own instructions or in a computation that they call."""
    found: set[Computation] = set()
    for computation in module.computations:
        acts = not computation.opcodes.isdisjoint(_MAY_ACT) and any(map(has_side_effect, computation.instructions))
        if acts or any(c in found for i in computation.calling for c in i.called()):
            found.add(computation)
    return found
