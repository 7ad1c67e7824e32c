"""Modules without the properties that a proto or XLA's printer may change: names, order of instructions and
computations.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from ...formats.proto.writer import CONFIG
from ...hlo.ir import Computation, Instruction, Module


def canonical(module: Module) -> Module:
    """Put instructions in post-order and computations in order of their calls; rename both by position."""
    made: dict[Computation, Computation] = {}

    def computation(old: Computation) -> Computation:
        if old not in made:
            made[old] = _rebuild(old, computation, lambda: f"c{len(made)}", bool(module.attributes.get("is_scheduled")))
        return made[old]

    entry = computation(module.entry)
    for other in sorted(module.computations, key=lambda c: c.name):
        computation(other)
    attributes = {k: v for k, v in module.attributes.items() if k not in CONFIG}
    return Module(module.name, tuple(made.values()), entry, attributes)


def _rebuild(old: Computation, computation: Any, name: Any, keep_order: bool) -> Computation:
    new: dict[Instruction, Instruction] = {}
    order = old.instructions if keep_order else _post_order(old)
    names = {i.name: f"i{n}" for n, i in enumerate(order)}
    for i in order:
        attributes = {k: _value(k, v, computation, names) for k, v in sorted(i.attributes.items())}
        new[i] = Instruction(i.opcode, names[i.name], i.shape, tuple(new[o] for o in i.operands), attributes)
    return Computation(name(), tuple(new.values()), new[old.root], MappingProxyType(dict(old.attributes)))


def _value(key: str, value: Any, computation: Any, names: dict[str, str]) -> Any:
    if isinstance(value, Computation):
        return computation(value)
    if isinstance(value, tuple) and value and isinstance(value[0], Computation):
        return tuple(map(computation, value))
    return tuple(sorted(names[n] for n in value)) if key == "control-predecessors" else value


def _post_order(computation: Computation) -> list[Instruction]:
    seen: dict[Instruction, None] = {}
    for start in (computation.root, *sorted(computation.instructions, key=lambda i: i.name)):
        stack = [(start, False)]
        while stack:
            instruction, done = stack.pop()
            if done:
                seen.setdefault(instruction)
            elif instruction not in seen:
                before = [computation.by_name[n] for n in instruction.attributes.get("control-predecessors", ())]
                stack.append((instruction, True))
                stack += [(o, False) for o in reversed((*instruction.operands, *before))]
    return list(seen)
