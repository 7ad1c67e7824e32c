"""Common subexpression elimination: equal pure instructions on equal operands become one."""

from __future__ import annotations

from collections.abc import Hashable

from ...hlo.analysis.effects import is_impure
from ...hlo.fingerprint import attributes_key, computation_key
from ...hlo.ir import Computation, Instruction, Module, rewrite
from ...hlo.opclasses import CONTROL, CONTROL_PREDECESSORS
from ..rewriting import rebuild


def share_equal(module: Module) -> Module:
    """Merge equal instructions of a computation, except those with side effects or random results."""
    keys: dict[Computation, Hashable] = {}
    return rebuild(module, lambda c: _share(c, keys))


def share_computation(computation: Computation) -> Computation:
    """The computation with equal instructions merged."""
    return _share(computation, {})


def _share(computation: Computation, keys: dict[Computation, Hashable]) -> Computation:
    first: dict[Hashable, Instruction] = {}
    changed = False
    pinned = computation.pinned

    def change(instruction: Instruction) -> Instruction | None:
        nonlocal changed
        if (
            is_impure(instruction)
            or instruction.opcode in CONTROL
            or instruction.name in pinned
            or CONTROL_PREDECESSORS in instruction.attributes
        ):
            return None
        key = _key(instruction, keys)
        kept = first.setdefault(key, instruction)
        changed = changed or kept is not instruction
        return kept

    result = rewrite(computation, change)
    return result if changed else computation


def _key(instruction: Instruction, keys: dict[Computation, Hashable]) -> Hashable:
    """A key that is equal for instructions that compute the same from the same operand instructions."""
    if not instruction.attributes:
        return instruction.opcode, instruction.shape, instruction.operands, (), ()
    called = instruction.called()
    for c in called:
        if c not in keys:
            keys[c] = computation_key(c)
    return (
        instruction.opcode,
        instruction.shape,
        instruction.operands,
        attributes_key(instruction),
        tuple([keys[c] for c in called]),
    )
