"""Hoist common work out of conditionals: values that all branches compute are computed once, before it.

Values are numbered across branches; equal instructions on equal outside values get the same number. A value that every
branch computes is hoisted if it costs more than reading it from memory, or if every branch returns it as the same
element of its result. Cheap values that a branch's kernel computes along the way stay in the branch.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from ...hlo.analysis.effects import has_side_effect, is_impure
from ...hlo.fingerprint import attributes_key, computation_key
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import CONTROL, CONTROL_PREDECESSORS, branches
from ...hlo.opcodes import Op
from ...hlo.shapes import tuple_shape
from ..flatten import rebuild_callers
from ..fuel import spend
from ..fusion.cost import weight
from ..fusion.loop import PRODUCERS
from ..rewriting import Names, with_attributes
from .loops import CHEAP

Numbers = Mapping[Instruction, int]
"""Value numbers of the instructions of a branch that depend on outside values only."""


def hoist_branches(module: Module) -> Module:
    """Compute values that all branches of a conditional share once, before the conditional."""
    return rebuild_callers(module, Op.CONDITIONAL, _hoist)


def _hoist(computation: Computation, names: Names) -> Computation:
    pinned = computation.pinned
    new: dict[Instruction, Instruction] = {}
    out: list[Instruction] = []
    for old in computation.instructions:
        operands = tuple(new[o] for o in old.operands)
        i = old if operands == old.operands else old.replace(operands=operands)
        free = i.name not in pinned and CONTROL_PREDECESSORS not in i.attributes
        made = _better(i, names) if i.opcode is Op.CONDITIONAL and free else [i]
        out += made
        new[old] = made[-1]
    if len(out) == len(computation.instructions):
        return computation
    return Computation(computation.name, tuple(out), new[computation.root], computation.attributes)


def _better(i: Instruction, names: Names) -> list[Instruction]:
    """The hoisted instructions, the new operand tuples and the conditional; only the last if nothing is hoisted."""
    called, tuples = branches(i), i.operands[1:]
    if len(called) < 2 or any(o.opcode is not Op.TUPLE for o in tuples):
        return [i]
    if any(u.opcode is not Op.GET_TUPLE_ELEMENT for c in called for u in c.users[c.parameters[0]]):
        return [i]
    if any(c.root is c.parameters[0] for c in called):
        return [i]
    table: dict[Hashable, int] = {}
    numbered = [_numbers(c, o, table) for c, o in zip(called, tuples, strict=True)]
    common = set.intersection(*(set(n.values()) for n in numbered))
    wanted = _wanted(called, numbered, common)
    if not wanted or not spend():
        return [i]
    made, outside = _copied(called[0], tuples[0], numbered[0], wanted, names)
    exported = {n: outside[n] for n in wanted}
    parts = []
    for o in tuples:
        taken = (*o.operands, *exported.values())
        shape = tuple_shape(*(t.shape for t in taken))
        parts.append(Instruction(Op.TUPLE, names.fresh(o.name), shape, taken, location=o.location))
    changed = [_taking(c, n, list(exported), list(exported.values()), names) for c, n in zip(called, numbered)]
    if "branch_computations" in i.attributes:
        i = with_attributes(i, branch_computations=tuple(changed))
    else:
        i = with_attributes(i, true_computation=changed[0], false_computation=changed[1])
    return [*made, *parts, i.replace(operands=(i.operands[0], *parts))]


def _numbers(branch: Computation, operand: Instruction, table: dict[Hashable, int]) -> Numbers:
    """Number the values of a branch. table: numbers assigned so far, by key; shared by all branches."""
    pinned = branch.pinned
    found: dict[Instruction, int] = {}
    for i in branch.instructions:
        if not i.shape.is_array or i.shape.is_dynamic or CONTROL_PREDECESSORS in i.attributes or i.name in pinned:
            continue
        if i.opcode is Op.GET_TUPLE_ELEMENT and i.operands[0] is branch.parameters[0]:
            key: Hashable = operand.operands[i.attributes["index"]]
        elif is_impure(i) or i.opcode in CONTROL or (i.opcode is Op.CONSTANT and i.literal.is_elided):
            continue
        elif all(o in found for o in i.operands):
            regions = tuple(computation_key(c) for c in i.called())
            key = (i.opcode, i.shape, tuple(found[o] for o in i.operands), attributes_key(i), regions)
        else:
            continue
        found[i] = table.setdefault(key, len(table))
    return found


def _wanted(called: Sequence[Computation], numbered: Sequence[Numbers], common: set[int]) -> dict[int, None]:
    """Numbers of the values to hoist, in program order."""
    results: set[int] = set()
    if all(c.root.opcode is Op.TUPLE for c in called):
        for elements in zip(*(c.root.operands for c in called), strict=True):
            given = {n.get(e) for n, e in zip(numbered, elements, strict=True)}
            results |= {n for n in given if n is not None and len(given) == 1}
    free = {Op.CONSTANT, Op.GET_TUPLE_ELEMENT}
    return {
        n: None
        for i, n in numbered[0].items()
        if n in common and i.opcode not in free and (n in results or not _is_cheap(i))
    }


def _is_cheap(i: Instruction) -> bool:
    return i.opcode in CHEAP or (i.opcode in PRODUCERS and weight(i) <= 1)


def _copied(
    branch: Computation, operand: Instruction, numbers: Numbers, wanted: Mapping[int, None], names: Names
) -> tuple[list[Instruction], dict[int, Instruction]]:
    """Copies of the instructions that the wanted values need, in order, and each copy by its number."""
    needed: set[Instruction] = set()
    for i in reversed(branch.instructions):
        if i in numbers and (i in needed or numbers[i] in wanted):
            needed.update((i, *i.operands))
    made: list[Instruction] = []
    outside: dict[int, Instruction] = {}
    for i, number in numbers.items():
        if i not in needed or number in outside:
            continue
        if i.opcode is Op.GET_TUPLE_ELEMENT:
            outside[number] = operand.operands[i.attributes["index"]]
        else:
            operands = tuple(outside[numbers[o]] for o in i.operands)
            outside[number] = i.replace(name=names.fresh(i.name), operands=operands)
            made.append(outside[number])
    return made, outside


def _taking(
    branch: Computation, numbers: Numbers, exported: Sequence[int], values: Sequence[Instruction], names: Names
) -> Computation:
    """The branch over the longer operand tuple, without the instructions that it no longer needs."""
    old = branch.parameters[0]
    count = len(old.shape.elements)
    parameter = old.replace(shape=tuple_shape(*old.shape.elements, *(v.shape for v in values)))
    taken = {
        n: Instruction(
            Op.GET_TUPLE_ELEMENT, names.fresh(f"{old.name}.part"), v.shape, (parameter,), {"index": count + k}
        )
        for k, (n, v) in enumerate(zip(exported, values, strict=True))
    }
    new: dict[Instruction, Instruction] = {old: parameter}
    out = [parameter, *taken.values()]
    for i in branch.instructions:
        if numbers.get(i) in taken:
            new[i] = taken[numbers[i]]
        elif i is not old:
            new[i] = i.replace(operands=tuple(new[o] for o in i.operands))
            out.append(new[i])
    return _live(Computation(branch.name, tuple(out), new[branch.root], branch.attributes))


def _live(branch: Computation) -> Computation:
    tied = branch.pinned
    needed = {branch.root}
    for i in reversed(branch.instructions):
        ties = i.name in tied or CONTROL_PREDECESSORS in i.attributes
        if i in needed or ties or i.opcode is Op.PARAMETER or i.opcode in CONTROL or has_side_effect(i):
            needed.update((i, *i.operands))
    kept = tuple(i for i in branch.instructions if i in needed)
    return Computation(branch.name, kept, branch.root, branch.attributes)
