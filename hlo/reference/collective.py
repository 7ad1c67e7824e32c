"""Collectives as one device sees them when it is alone: groups of one.

A group of more than one device needs an executor of several replicas; here that is refused, never guessed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import UnsupportedError
from ..ir import Instruction
from .context import Context, Value

Array = np.ndarray


def _alone(instruction: Instruction) -> None:
    groups = instruction.attributes.get("replica_groups", ())
    if isinstance(groups, tuple) and any(isinstance(g, tuple) and len(g) > 1 for g in groups):
        raise UnsupportedError("evaluator", f"{instruction.opcode.value} across devices", location=instruction.location,
                               remedy="the evaluator runs one replica; give it groups of one")


def same(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Value:
    """With one member a gather, a reduction, an exchange or a broadcast is the operand."""
    _alone(instruction)
    leaves = [o.reshape(s.dims) for o, (_, s) in zip(operands, instruction.shape.leaves(), strict=True)]
    return tuple(leaves) if instruction.shape.is_tuple else leaves[0]


def gather_start(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Value:
    _alone(instruction)
    value = tuple(operands) if len(operands) > 1 else operands[0]
    return (value, value)


def permute(instruction: Instruction, operands: Sequence[Array], context: Context) -> Value:
    """A device that no pair names as target gets zeros."""
    pairs = instruction.attributes.get("source_target_pairs", ())
    device = context.partition or context.replica
    for source, target in pairs:
        if target == device and source != device:
            raise UnsupportedError("evaluator", "collective-permute across devices", location=instruction.location)
    received = (device, device) in {tuple(p) for p in pairs}
    out = [o if received else np.zeros_like(o) for o in operands]
    return tuple(out) if instruction.shape.is_tuple and len(out) > 1 else out[0]


def permute_start(instruction: Instruction, operands: Sequence[Array], context: Context) -> Value:
    result = permute(instruction, operands, context)
    value = tuple(operands) if isinstance(result, tuple) else operands[0]
    rest = (np.zeros((), np.uint32),) * (len(instruction.shape.elements) - 2)
    return (value, result, *rest)


def pair_done(_instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    return operands[0][1]


def ragged_all_to_all(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """Copies the ragged rows input[in : in + size] to output[out : out + size]."""
    _alone(instruction)
    x, output, input_offsets, sizes, output_offsets, _ = operands
    out = output.copy()
    for start, size, to in zip(input_offsets.reshape(-1), sizes.reshape(-1), output_offsets.reshape(-1), strict=True):
        out[int(to):int(to) + int(size)] = x[int(start):int(start) + int(size)]
    return out


def partition_id(_instruction: Instruction, _operands: Sequence[Value], context: Context) -> Array:
    return np.array(context.partition, np.uint32)


def replica_id(_instruction: Instruction, _operands: Sequence[Value], context: Context) -> Array:
    return np.array(context.replica, np.uint32)
