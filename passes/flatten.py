"""Flatten a module: inline calls and nested fusions, and give every computation exactly one call site."""

from __future__ import annotations

from collections.abc import Callable

from ..hlo.analysis.effects import has_side_effect
from ..hlo.errors import TestbedError
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opclasses import CONTROL_PREDECESSORS
from ..hlo.opcodes import Op
from .inline import inline_calls
from .rewriting import Names, rebuild, recall, rename_predecessors, with_attributes

DEEPEST_NESTING = 200


def flatten(module: Module) -> Module:
    """Inline calls and nested fusions, clone shared computations, and drop unreachable ones."""
    return unshare(inline_calls(module))


def copy_body(
    computation: Computation, arguments: tuple[Instruction, ...], names: Names, predecessors: tuple[str, ...] = ()
) -> tuple[list[Instruction], Instruction]:
    """Copy a computation's instructions under fresh names, with `arguments` in place of its parameters.

    Returns the copies and the copy of the root. predecessors: control predecessors to add to the copied root and to
    copied instructions with side effects.
    """
    new: dict[Instruction, Instruction] = {}
    renamed: dict[str, str] = {}
    body: list[Instruction] = []
    for old in computation.instructions:
        if old.opcode is Op.PARAMETER:
            new[old] = arguments[old.parameter_number]
            renamed[old.name] = new[old].name
            continue
        copy = old.replace(operands=tuple(new[o] for o in old.operands), name=names.fresh(old.name))
        copy = rename_predecessors(copy, renamed)
        if predecessors and (old is computation.root or has_side_effect(old)):
            before = copy.attributes.get(CONTROL_PREDECESSORS, ())
            copy = with_attributes(copy, **{CONTROL_PREDECESSORS: tuple(before) + predecessors})
        new[old] = copy
        renamed[old.name] = copy.name
        body.append(copy)
    return body, new[computation.root]


def unshare(module: Module) -> Module:
    """Clone computations until each has one caller, and make every name unique in the module."""
    state = _Unshared(Names(), set(), [])
    entry = state.own(module.entry, 0)
    return Module(module.name, tuple(state.order), entry, module.attributes)


def rebuild_callers(module: Module, opcode: Op, change: Callable[[Computation, Names], Computation]) -> Module:
    """Change the computations that contain `opcode`, callees first, then give every computation one caller again."""
    if opcode not in module.opcodes:
        return module
    names = Names.of(module)
    done = rebuild(module, lambda c: change(c, names) if opcode in c.opcodes else c)
    return done if done is module else unshare(done)


class _Unshared:
    """Depth-first copy of the tree of computations below the entry."""

    def __init__(self, names: Names, seen: set[Computation], order: list[Computation]):
        self.names, self.seen, self.order = names, seen, order

    def own(self, computation: Computation, depth: int) -> Computation:
        """The computation itself, or a clone of it if an earlier caller has it; the same for everything it calls.

        Raises TestbedError if computations are nested more than DEEPEST_NESTING deep.
        """
        if depth > DEEPEST_NESTING:
            raise TestbedError(
                f"computation {computation.name} is nested more than {DEEPEST_NESTING} deep",
                remedy="flatten the nest of loops or conditionals",
            )
        changed = computation in self.seen
        self.seen.add(computation)
        new: dict[Instruction, Instruction] = {}
        renamed: dict[str, str] = {}
        for old in computation.instructions:
            operands = tuple(new[o] for o in old.operands)
            copy = recall(old, lambda c: self.own(c, depth + 1))
            name = self.names.fresh(old.name)
            if changed or operands != old.operands or name != old.name:
                copy = copy.replace(operands=operands, name=name)
                renamed[old.name] = name
            new[old] = rename_predecessors(copy, renamed) if renamed else copy
        name = self.names.fresh(computation.name)
        if changed or name != computation.name or any(a is not b for a, b in new.items()):
            computation = Computation(name, tuple(new.values()), new[computation.root], computation.attributes)
        self.order.append(computation)
        return computation
