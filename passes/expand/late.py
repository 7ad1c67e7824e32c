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
    held: dict[Instruction, None] = {}
    exchanges: set[Instruction] = set()

    def put(i: Instruction) -> None:
        """Place an instruction, and before it what it needs of those that are held."""
        stack = [i]
        needed: dict[Instruction, None] = {}
        while stack:
            user = stack.pop()
            before = user.attributes.get(CONTROL_PREDECESSORS, ())
            for other in held:
                if other not in needed and (other in user.operands or other.name in before):
                    needed[other] = None
                    stack.append(other)
        for other in [h for h in held if h in needed]:
            del held[other]
            done.append(other)
        done.append(i)

    for i in computation.instructions:
        follows = any(o in held or o in exchanges for o in i.operands)
        if follows and i.name not in kept and not i.called() and not has_side_effect(i):
            held[i] = None
            continue
        put(i)
        if i.opcode in OUTSIDE:
            exchanges.add(i)
    return [*done, *held]
