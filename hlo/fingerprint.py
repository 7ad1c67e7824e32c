"""Structural keys: equal keys mean equal code, names aside. CSE uses them, and kernels with equal keys are shared."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from .ir import Computation, Instruction
from .opclasses import CONTROL_PREDECESSORS, COSMETIC_ATTRIBUTES
from .opcodes import Op

_IGNORED = COSMETIC_ATTRIBUTES | {CONTROL_PREDECESSORS, "control-successors"}
_NO_BACKEND_CONFIG = frozenset({Op.FUSION, Op.WHILE, Op.CONDITIONAL})


def attributes_key(instruction: Instruction) -> Hashable:
    """Key of the attributes that change a value, without called computations."""
    if not instruction.attributes:
        return ()
    found = []
    for name, value in instruction.attributes.items():
        if name in _IGNORED or (name == "backend_config" and instruction.opcode in _NO_BACKEND_CONFIG):
            continue
        frozen = _freeze(value)
        if frozen is not None:
            found.append((name, frozen))
    return tuple(sorted(found, key=lambda pair: pair[0])) if len(found) > 1 else tuple(found)


def _freeze(value: Any) -> Hashable | None:
    """A hashable form; None for called computations, which the caller keys separately."""
    if isinstance(value, Computation):
        return None
    if isinstance(value, tuple):
        if value and isinstance(value[0], Computation):
            return None
        return tuple(_freeze(v) for v in value)
    if isinstance(value, dict):
        return tuple(sorted((k, _freeze(v)) for k, v in value.items()))
    return value


def instruction_key(instruction: Instruction, operands: tuple[Hashable, ...]) -> Hashable:
    """Key of an instruction, given the keys (or numbers) of its operands."""
    return (
        instruction.opcode,
        instruction.shape,
        operands,
        attributes_key(instruction),
        tuple([computation_key(c) for c in instruction.called()]),
    )


def computation_key(computation: Computation) -> Hashable:
    """Key of a whole computation: the keys of its instructions in order, with operands by number."""
    numbers: dict[Instruction, int] = {}
    rows = []
    for i in computation.instructions:
        rows.append(instruction_key(i, tuple([numbers[o] for o in i.operands])))
        numbers[i] = len(numbers)
    return tuple(rows), numbers[computation.root]
