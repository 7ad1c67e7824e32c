"""Keeps the overlap of a schedule: what a start's expansion does with the result of an exchange moves to its done."""

from __future__ import annotations

from collections.abc import Container

from ...hlo.analysis.effects import has_side_effect
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import CONTROL_PREDECESSORS, OUTSIDE, control_computations
from ..rewriting import rebuild


def postponed(module: Module, kept: Container[str]) -> Module:
    """The module with instructions that follow an exchange right before their first user.

    kept: names of instructions that keep their places.
    """

    def order(computation: Computation) -> Computation:
        return Computation(
            computation.name, tuple(_ordered(computation, kept)), computation.root, computation.attributes
        )

    return rebuild(module, order, control_computations(module))


def _ordered(computation: Computation, kept: Container[str]) -> list[Instruction]:
    done: list[Instruction] = []
    held: dict[str, Instruction] = {}
    exchanges: set[Instruction] = set()
    places = {i.name: place for place, i in enumerate(computation.instructions)}

    def put(i: Instruction) -> None:
        """Place an instruction, and before it what it needs of those that are held."""
        stack = [i]
        needed: set[str] = set()
        while stack:
            user = stack.pop()
            for name in (*(o.name for o in user.operands), *user.attributes.get(CONTROL_PREDECESSORS, ())):
                if name in held and name not in needed:
                    needed.add(name)
                    stack.append(held[name])
        done.extend(held.pop(name) for name in sorted(needed, key=places.__getitem__))
        done.append(i)

    for i in computation.instructions:
        follows = any(o.name in held or o in exchanges for o in i.operands)
        if follows and i.name not in kept and not i.called() and not has_side_effect(i):
            held[i.name] = i
            continue
        put(i)
        if i.opcode in OUTSIDE:
            exchanges.add(i)
    return [*done, *held.values()]
