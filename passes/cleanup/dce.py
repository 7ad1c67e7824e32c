"""Dead code elimination: drop instructions that no result, side effect or control dependency needs."""

from __future__ import annotations

from ...hlo.analysis.effects import effectful_computations, has_side_effect
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import CONTROL_PREDECESSORS
from ...hlo.opcodes import Op
from ..rewriting import relink_computation


def remove_dead_code(module: Module) -> Module:
    """Drop dead instructions, then computations that are no longer called."""
    effectful = effectful_computations(module)
    table: dict[Computation, Computation] = {}
    for old in module.computations:
        table[old] = _live_part(old, effectful, table)
    needed = {table[module.entry]}
    for computation in reversed(tuple(table.values())):
        if computation in needed:
            needed.update(c for i in computation.calling for c in i.called())
    kept = tuple(c for c in table.values() if c in needed)
    if kept == module.computations:
        return module
    return Module(module.name, kept, table[module.entry], module.attributes)


def _live_part(
    computation: Computation, effectful: set[Computation], table: dict[Computation, Computation]
) -> Computation:
    acting = computation in effectful
    if all(i.opcode is Op.PARAMETER or (acting and _acts(i, effectful)) for i in computation.unread):
        return relink_computation(computation, table)  # every other instruction has a user, and a live one by induction
    live = live_instructions(computation, effectful)
    if len(live) != len(computation.instructions):
        kept = tuple(i for i in computation.instructions if i in live)
        computation = Computation(computation.name, kept, computation.root, computation.attributes)
    return relink_computation(computation, table)


def _acts(i: Instruction, effectful: set[Computation]) -> bool:
    return has_side_effect(i) or any(c in effectful for c in i.called())


def live_instructions(computation: Computation, effectful: set[Computation]) -> set[Instruction]:
    """Parameters, the root, instructions with side effects, and everything that these need by data or control."""
    live = {i for i in computation.instructions if i.opcode is Op.PARAMETER or _acts(i, effectful)}
    live.add(computation.root)
    stack = list(live)
    while stack:
        instruction = stack.pop()
        needs = instruction.operands
        for name in instruction.attributes.get(CONTROL_PREDECESSORS, ()):
            if name in computation.by_name:
                needs += (computation.by_name[name],)
        for need in needs:
            if need not in live:
                live.add(need)
                stack.append(need)
    return live
