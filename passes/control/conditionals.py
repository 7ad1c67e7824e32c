"""Conditional simplification, one visit per conditional.

- With a known selector, or with equal branches, one branch is inlined.
- Small branches without effects are all computed, and selects choose between their results.
- Unused results are dropped; results that all branches forward unchanged are taken from outside.
- Operands that a branch does not read are dropped; small constants among its operands move into the branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...hlo.analysis.effects import has_side_effect
from ...hlo.dtypes import DType
from ...hlo.fingerprint import computation_key
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import CONTROL_PREDECESSORS, ELEMENTWISE, EXPENSIVE, branches
from ...hlo.opcodes import Op
from ...hlo.records import dataclass, field
from ...hlo.shapes import tuple_shape
from ..building import Builder
from ..expand.conditional import by_select
from ..flatten import copy_body, rebuild_callers
from ..fuel import spend
from ..rewriting import Names, with_attributes

CHEAP = (ELEMENTWISE - {Op.STOCHASTIC_CONVERT}) | {
    Op.PARAMETER, Op.CONSTANT, Op.TUPLE, Op.GET_TUPLE_ELEMENT, Op.BROADCAST, Op.RESHAPE, Op.IOTA, Op.SLICE,
}  # fmt: skip
"""Opcodes that may occur in a branch that is computed unconditionally."""

MOST_WORK = 2048
"""Maximum number of elements that all branches compute to be replaced by selects; an expensive op counts as 8."""

MOST_INSTRUCTIONS = 48
"""Maximum number of instructions of all branches together to be replaced by selects."""

MOST_CONSTANT = 16
"""Maximum number of elements of a constant that moves into a branch."""


def simplify_conditionals(module: Module) -> Module:
    """Inline a branch that is known to run, compute all branches of a cheap choice, and drop unused values."""
    return rebuild_callers(module, Op.CONDITIONAL, lambda c, names: _Sweep(c, names).run())


@dataclass(eq=False)
class _Sweep:
    """The sweep over one computation: the new value of each old instruction, and the new places of results."""

    computation: Computation
    names: Names
    out: dict[Instruction, None] = field(default_factory=dict)
    new: dict[Instruction, Instruction] = field(default_factory=dict)
    moved: dict[Instruction, Mapping[int, int]] = field(default_factory=dict)
    handed_on: dict[Instruction, Mapping[int, Instruction]] = field(default_factory=dict)
    changed: bool = False

    def run(self) -> Computation:
        old = self.computation
        if not any(i.opcode is Op.CONDITIONAL for i in old.instructions):
            return old
        pinned = old.pinned
        for i in old.instructions:
            operands = tuple(self.new[o] for o in i.operands)
            copy = i if operands == i.operands else i.replace(operands=operands)
            free = i.name not in pinned and CONTROL_PREDECESSORS not in i.attributes
            if i.opcode is Op.CONDITIONAL and free:
                self.put(i, *self.better(i, copy))
            elif i.opcode is Op.GET_TUPLE_ELEMENT and i.operands[0] in self.moved:
                self.take(i, copy)
            else:
                self.put(i, [copy], copy)
        if not self.changed:
            return old
        return Computation(old.name, tuple(self.out), self.new[old.root], old.attributes)

    def put(self, old: Instruction, instructions: Sequence[Instruction], value: Instruction) -> None:
        self.out.update(dict.fromkeys(instructions))
        self.new[old] = value

    def take(self, old: Instruction, copy: Instruction) -> None:
        """An element of a conditional whose results have new indices."""
        index = old.attributes["index"]
        outside = self.handed_on[old.operands[0]].get(index)
        if outside is not None and CONTROL_PREDECESSORS not in old.attributes:
            self.new[old] = outside
        else:
            place = self.moved[old.operands[0]][index]
            copy = with_attributes(copy, index=place)
            self.put(old, [copy], copy)

    def better(self, old: Instruction, i: Instruction) -> tuple[Sequence[Instruction], Instruction]:
        """(instructions, value) that replace a conditional."""
        number = _known_branch(i)
        if number is not None and spend("conditionals/known"):
            self.changed = True
            return copy_body(branches(i)[number], (i.operands[1 + number],), self.names)
        if _is_cheap(i):
            b = Builder(self.names, i.name, i.location)
            result = by_select(i, b)
            if result is not None and spend("conditionals/select"):
                self.changed = True
                value = b.finish(result, i)
                return b.instructions, value
        return self.narrowed(old, i)

    def narrowed(self, old: Instruction, i: Instruction) -> tuple[Sequence[Instruction], Instruction]:
        """The conditional without results that are unused or forwarded, and without operands that are not read."""
        outside = _handed_on(i) if i.shape.is_tuple else {}
        keep = self.kept(old, outside)
        called = branches(i) if keep is None else [_pruned(c, keep, self.names) for c in branches(i)]
        parts = [_Part.of(o, c) for o, c in zip(i.operands[1:], called, strict=True)]
        if (keep is None and not any(p.shrinks for p in parts)) or not spend("conditionals/narrow"):
            return [i], i
        self.changed = True
        made = [p.made(self.names) for p in parts]
        if keep is not None:
            self.moved[old] = {n: k for k, n in enumerate(keep)}
            self.handed_on[old] = outside
            i = i.replace(shape=tuple_shape(*(i.shape.elements[n] for n in keep)))
            i = Instruction(i.opcode, i.name, i.shape, i.operands, _without_sharding(i), i.location)
        i = _with_branches(i, [c for _, c in made])
        tuples = [o for (o, _), p in zip(made, parts) if p.shrinks]
        i = i.replace(operands=(i.operands[0], *(o for o, _ in made)))
        return [*tuples, i], i

    def kept(self, old: Instruction, outside: Mapping[int, Instruction]) -> list[int] | None:
        """The result elements that users need from the conditional; None if all stay."""
        users = self.computation.users[old]
        if not old.shape.is_tuple or old is self.computation.root:
            return None
        if any(u.opcode is not Op.GET_TUPLE_ELEMENT for u in users):
            return None
        used = {u.attributes["index"] for u in users if CONTROL_PREDECESSORS in u.attributes} | {
            u.attributes["index"] for u in users if u.attributes["index"] not in outside
        }
        return sorted(used) or [0] if len(used) < len(old.shape.elements) and len(old.shape.elements) > 1 else None


def _without_sharding(i: Instruction) -> dict:
    return {k: v for k, v in i.attributes.items() if k != "sharding"}


def _with_branches(i: Instruction, made: Sequence[Computation]) -> Instruction:
    if "branch_computations" in i.attributes:
        return with_attributes(i, branch_computations=tuple(made))
    return with_attributes(i, true_computation=made[0], false_computation=made[1])


def _handed_on(i: Instruction) -> dict[int, Instruction]:
    """Result elements that every branch forwards from the same outside value, by index."""
    found: dict[int, Instruction] = {}
    for n in range(len(i.shape.elements)):
        sources = {_source(o, c, n) for o, c in zip(i.operands[1:], branches(i), strict=True)}
        source = sources.pop()
        if source is not None and not sources and source.shape.is_array and source.shape == i.shape.elements[n]:
            found[n] = source
    return found


def _source(operand: Instruction, branch: Computation, n: int) -> Instruction | None:
    """The outside value that element n of a branch's result forwards; None if the branch computes it."""
    value = branch.root.operands[n] if branch.root.opcode is Op.TUPLE else None
    if value is None or value.opcode is not Op.GET_TUPLE_ELEMENT or operand.opcode is not Op.TUPLE:
        return None
    return operand.operands[value.attributes["index"]] if value.operands[0] is branch.parameters[0] else None


@dataclass(eq=False)
class _Part:
    """A branch with its operand: the operand elements that it reads, and the constants that move into it."""

    operand: Instruction
    branch: Computation
    keep: list[int]
    constants: Mapping[int, Instruction]

    @staticmethod
    def of(operand: Instruction, branch: Computation) -> _Part:
        parameter = branch.parameters[0]
        users = branch.users[parameter]
        whole = operand.opcode is not Op.TUPLE or parameter is branch.root
        if whole or not users or any(u.opcode is not Op.GET_TUPLE_ELEMENT for u in users):
            return _Part(operand, branch, [], {})
        used = sorted({u.attributes["index"] for u in users})
        constants = {n: operand.operands[n] for n in used if _is_small_constant(operand.operands[n])}
        keep = [n for n in used if n not in constants] or used[:1]
        constants = {n: c for n, c in constants.items() if n not in keep}
        return _Part(operand, branch, keep, constants)

    @property
    def shrinks(self) -> bool:
        return bool(self.keep) and len(self.keep) < len(self.operand.operands)

    def made(self, names: Names) -> tuple[Instruction, Computation]:
        """(operand, branch) restricted to the kept elements."""
        operand, parameter = self.operand, self.branch.parameters[0]
        new: dict[Instruction, Instruction] = {}
        if self.shrinks:
            shape = tuple_shape(*(operand.operands[n].shape for n in self.keep))
            kept = tuple(operand.operands[n] for n in self.keep)
            operand = Instruction(Op.TUPLE, names.fresh(operand.name), shape, kept, location=operand.location)
            new[parameter] = Instruction(
                Op.PARAMETER, parameter.name, tuple_shape(*(parameter.shape.elements[n] for n in self.keep)), (),
                {"parameter_number": 0}, parameter.location,
            )  # fmt: skip
        for old in self.branch.instructions:
            if old not in new:
                new[old] = self.copied(old, new)
        root = new[self.branch.root]
        return operand, Computation(self.branch.name, tuple(new.values()), root, self.branch.attributes)

    def copied(self, old: Instruction, new: Mapping[Instruction, Instruction]) -> Instruction:
        operands = tuple(new[o] for o in old.operands)
        if self.shrinks and old.operands == (self.branch.parameters[0],):
            index = old.attributes["index"]
            if index in self.constants and CONTROL_PREDECESSORS not in old.attributes:
                return self.constants[index].replace(name=old.name, shape=old.shape)
            return with_attributes(old, index=self.keep.index(index)).replace(operands=operands)
        return old if operands == old.operands else old.replace(operands=operands)


def _pruned(branch: Computation, results: Sequence[int], names: Names) -> Computation:
    """The branch restricted to some elements of its result and to instructions needed by them, effects or control."""
    root = branch.root
    if root.opcode is Op.TUPLE:
        parts = [root.operands[n] for n in results]
        body = [i for i in branch.instructions if i is not root or branch.users[root]]
    else:
        body = list(branch.instructions)
        parts = [
            Instruction(Op.GET_TUPLE_ELEMENT, names.fresh(root.name), root.shape.elements[n], (root,), {"index": n})
            for n in results
        ]
        body += parts
    made = Instruction(Op.TUPLE, names.fresh(root.name), tuple_shape(*(p.shape for p in parts)), tuple(parts))
    tied = {n for i in body for n in i.attributes.get(CONTROL_PREDECESSORS, ())}
    needed = {made, *(i for i in body if i.opcode is Op.PARAMETER or i.called() or has_side_effect(i))}
    for i in reversed([*body, made]):
        if i in needed or i.name in tied or CONTROL_PREDECESSORS in i.attributes:
            needed.add(i)
            needed.update(i.operands)
    return Computation(branch.name, tuple(i for i in (*body, made) if i in needed), made, branch.attributes)


def _is_small_constant(i: Instruction) -> bool:
    return i.opcode is Op.CONSTANT and i.shape.is_array and i.shape.size <= MOST_CONSTANT


def _known_branch(i: Instruction) -> int | None:
    """The branch that runs; branch 0 if all branches are equal; None if unknown."""
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


def _is_cheap(i: Instruction) -> bool:
    """Whether computing all branches costs less than branching: they are small, elementwise, and have no effects."""
    inside = [k for c in branches(i) for k in c.instructions]
    if len(inside) > MOST_INSTRUCTIONS or not all(_is_cheap_inside(k) for k in inside):
        return False
    if not all(s.is_array and not s.is_dynamic and s.is_row_major for _, s in i.shape.leaves()):
        return False
    work = sum(k.shape.size * (8 if k.opcode in EXPENSIVE else 1) for k in inside if k.opcode in ELEMENTWISE)
    results = sum(s.size for _, s in i.shape.leaves())
    return work + results * len(branches(i)) <= MOST_WORK


def _is_cheap_inside(k: Instruction) -> bool:
    row_major = all(s.is_array and not s.is_dynamic and s.is_row_major for _, s in k.shape.leaves())
    return k.opcode in CHEAP and row_major and CONTROL_PREDECESSORS not in k.attributes
