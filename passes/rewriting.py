"""Tools for passes: fresh names, attributes, orders, and rebuilding a module computation by computation."""

from __future__ import annotations

import heapq
import re
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from ..hlo.ir import CALLING_ATTRIBUTES, Computation, Instruction, Module
from ..hlo.opclasses import CONTROL_PREDECESSORS
from ..hlo.opcodes import Op

_SUFFIX = re.compile(r"(\.\d+)+$")


class Names:
    """Hands out names that are unique within a module."""

    def __init__(self, taken: Iterable[str] = ()):
        self._taken = set(taken)
        self._next: dict[str, int] = {}
        self._module: Module | None = None  # its names are taken too; read when the first name is asked for

    @classmethod
    def of(cls, module: Module) -> Names:
        names = cls()
        names._module = module
        return names

    def fresh(self, name: str) -> str:
        """Return `name` itself if it is free, else its stem with a number."""
        if self._module is not None:
            self._taken.update([i.name for c in self._module.computations for i in c.instructions])
            self._taken.update([c.name for c in self._module.computations])
            self._module = None
        if name not in self._taken:
            self._taken.add(name)
            return name
        stem = _SUFFIX.sub("", name) if name[-1:].isdigit() else name
        number = self._next.get(stem, 0)
        while True:
            number += 1
            candidate = f"{stem}.{number}"
            if candidate not in self._taken:
                break
        self._next[stem] = number
        self._taken.add(candidate)
        return candidate


def with_attributes(instruction: Instruction, **changes: Any) -> Instruction:
    """A copy with some attributes set; None removes an attribute."""
    merged = {**instruction.attributes, **changes}
    return instruction.replace(attributes=MappingProxyType({k: v for k, v in merged.items() if v is not None}))


def recall(instruction: Instruction, change: Callable[[Computation], Computation]) -> Instruction:
    """The instruction, calling `change(c)` wherever it called c; the instruction itself if nothing changes.

    `change` is called once per call site.
    """
    if not instruction.attributes or not instruction.called():
        return instruction
    changes: dict[str, Any] = {}
    for key in CALLING_ATTRIBUTES:
        old = instruction.attributes.get(key)
        if isinstance(old, Computation):
            new: Any = change(old)
        elif isinstance(old, tuple) and any(isinstance(v, Computation) for v in old):
            new = tuple(change(v) if isinstance(v, Computation) else v for v in old)
        else:
            continue
        if new is not old and new != old:
            changes[key] = new
    return with_attributes(instruction, **changes) if changes else instruction


def relink(instruction: Instruction, table: Mapping[Computation, Computation]) -> Instruction:
    """The instruction, calling `table[c]` wherever it called c; the instruction itself if nothing changes."""
    return recall(instruction, lambda c: table.get(c, c))


def callees_first(entry: Computation) -> tuple[Computation, ...]:
    """The entry and all computations reachable from it, callees before callers."""
    order: dict[Computation, None] = {}
    stack: list[tuple[Computation, bool]] = [(entry, False)]
    while stack:
        computation, ready = stack.pop()
        if ready:
            order[computation] = None
        elif computation not in order:
            stack.append((computation, True))
            stack.extend((c, False) for i in reversed(computation.calling) for c in reversed(i.called()))
    return tuple(order)


def relink_computation(computation: Computation, table: Mapping[Computation, Computation]) -> Computation:
    """The computation with `relink` applied to each instruction; the computation itself if nothing changes."""
    if not any(table.get(c, c) is not c for i in computation.calling for c in i.called()):
        return computation
    new: dict[Instruction, Instruction] = {}
    for old in computation.instructions:
        operands = tuple(new[o] for o in old.operands)
        new[old] = relink(old if operands == old.operands else old.replace(operands=operands), table)
    return Computation(computation.name, tuple(new.values()), new[computation.root], computation.attributes)


def rebuild(
    module: Module, change: Callable[[Computation], Computation], only: Iterable[Computation] | None = None
) -> Module:
    """Apply `change` to all computations, or only to those in `only`, callees first, and relink their callers."""
    chosen = None if only is None else set(only)
    table: dict[Computation, Computation] = {}
    for old in module.computations:
        linked = relink_computation(old, table)
        table[old] = change(linked) if chosen is None or old in chosen else linked
    if all(new is old for old, new in table.items()):
        return module
    return Module(module.name, tuple(table.values()), table[module.entry], module.attributes)


def untied(instruction: Instruction) -> Instruction:
    """The instruction without control predecessors: within a kernel only data dependencies order instructions."""
    if CONTROL_PREDECESSORS not in instruction.attributes:
        return instruction
    return with_attributes(instruction, **{CONTROL_PREDECESSORS: None})


def alone(instruction: Instruction, name: str) -> Computation:
    """An instruction as a computation. Its operands are the parameters, one each even where it has an operand twice."""
    parameters = {
        operand: Instruction(Op.PARAMETER, f"p{n}", operand.shape, (), {"parameter_number": n})
        for n, operand in enumerate(dict.fromkeys(instruction.operands))
    }
    root = untied(instruction).replace(operands=tuple(parameters[o] for o in instruction.operands))
    return Computation(name, (*parameters.values(), root), root)


def rename_predecessors(instruction: Instruction, names: Mapping[str, str]) -> Instruction:
    """The instruction with its control predecessors renamed."""
    old = instruction.attributes.get(CONTROL_PREDECESSORS)
    if not old:
        return instruction
    return with_attributes(instruction, **{CONTROL_PREDECESSORS: tuple(names.get(n, n) for n in old)})


def group_order(
    computation: Computation,
    group_of: Mapping[Instruction, tuple[Instruction, ...]],
    source: Callable[[Instruction], Instruction] = lambda i: i,
) -> list[Instruction | tuple[Instruction, ...]]:
    """The computation's instructions in topological order, each group as one unit, otherwise in their present order.

    source: returns the instruction that a view views. A group makes views of its own values itself, so it needs none of
    them from outside.
    """
    units: dict[int, Instruction | tuple[Instruction, ...]] = {}  # by the position of the first member
    unit_of: dict[Instruction, int] = {}
    for place, i in enumerate(computation.instructions):
        if i not in unit_of:
            group = group_of.get(i)
            units[place] = group or i
            unit_of.update(dict.fromkeys(group or (i,), place))
    needs: dict[int, set[int]] = {unit: set() for unit in units}
    by_name = {i.name: i for i in computation.instructions}
    for i in computation.instructions:
        user = unit_of[i]
        predecessors = [by_name[p] for p in i.attributes.get(CONTROL_PREDECESSORS, ()) if p in by_name]
        needs[user].update(unit_of[o] for o in (*i.operands, *predecessors) if unit_of[source(o)] != user)
    return [units[n] for n in topological_order(needs)]


def topological_order(needs: Mapping[int, Iterable[int]]) -> list[int]:
    """Numbers in topological order; of several candidates the least comes first.

    needs: the predecessors of each number. Raises ValueError if there is a cycle.
    """
    users: dict[int, list[int]] = {n: [] for n in needs}
    waiting: dict[int, int] = {}
    for n, before in needs.items():
        waiting[n] = 0
        for m in before:
            users[m].append(n)
            waiting[n] += 1
    ready = [n for n, count in waiting.items() if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        order.append(heapq.heappop(ready))
        for user in users[order[-1]]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, user)
    if len(order) < len(needs):
        raise ValueError(f"these need each other in a circle: {sorted(n for n in needs if waiting[n])}")
    return order
