"""Conditional simplification: a known selector, or branches that are all the same, leave one branch, inlined."""

from __future__ import annotations

import numpy as np

from ..dtypes import DType
from ..fingerprint import computation_key
from ..ir import Computation, Instruction, Module
from ..opclasses import CONTROL_PREDECESSORS, branches
from ..opcodes import Op
from .flatten import copy_body, unshare
from .fuel import spend
from .rewriting import Names, rebuild


def simplify_conditionals(module: Module) -> Module:
    """Inline the branch that is known to run."""
    names = Names.of(module)
    done = rebuild(module, lambda c: _simplify(c, names))
    return done if done is module else unshare(done)


def _simplify(computation: Computation, names: Names) -> Computation:
    if not any(i.opcode is Op.CONDITIONAL for i in computation.instructions):
        return computation
    pinned = {n for i in computation.instructions for n in i.attributes.get(CONTROL_PREDECESSORS, ())}
    new: dict[Instruction, Instruction] = {}
    out: dict[Instruction, None] = {}
    changed = False
    for old in computation.instructions:
        operands = tuple(new[o] for o in old.operands)
        i = old if operands == old.operands else old.replace(operands=operands)
        number = _known_branch(i) if i.opcode is Op.CONDITIONAL and i.name not in pinned else None
        if number is not None and CONTROL_PREDECESSORS not in i.attributes and spend():
            body, new[old] = copy_body(branches(i)[number], (i.operands[1 + number],), names)
            out.update(dict.fromkeys(body))
            changed = True
        else:
            new[old] = i
            out[i] = None
    return (
        Computation(computation.name, tuple(out), new[computation.root], computation.attributes)
        if changed
        else computation
    )


def _known_branch(i: Instruction) -> int | None:
    """The branch that runs, or any one of branches that are equal."""
    selector, choices = i.operands[0], branches(i)
    if selector.opcode is Op.CONSTANT and not selector.literal.is_elided:
        value = selector.literal.array
        if selector.shape.dtype is DType.PRED:
            return 0 if bool(value) else 1
        number = int(np.asarray(value))
        return number if 0 <= number < len(choices) else len(choices) - 1
    if len(choices) == 1:
        return 0
    if any(o is not i.operands[1] for o in i.operands[2:]):
        return None
    keys = {computation_key(c) for c in choices}
    return 0 if len(keys) == 1 else None
