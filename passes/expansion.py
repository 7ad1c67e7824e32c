"""Shared driver of the expanders: replace instructions of given opcodes by what a rule builds."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opclasses import CONTROL_PREDECESSORS, control_computations
from ..hlo.opcodes import Op
from .building import Builder, Rewrite
from .fuel import spend
from .rewriting import Names, callees_first, relink, with_attributes


class Where(Enum):
    """Which instructions an expander visits."""

    HOST = "outside kernels"
    KERNELS = "within fusions and regions"
    EVERYWHERE = "both"


def expand_ops(
    module: Module, rules: Mapping[Op, Rewrite], where: Where = Where.HOST, *, dynamic: bool = False
) -> Module:
    """Replace each visited instruction by `rules[opcode](instruction, builder)`; None keeps the instruction.

    The result has the name and the control predecessors of the instruction that it replaces, so that its control
    successors still find it. Computations that are no longer called are dropped. Rules for instructions within kernels
    may only build ops that are allowed there. dynamic: whether to visit instructions with dynamic dimensions too.
    """
    if module.opcodes.isdisjoint(rules):
        return module
    names = Names.of(module)
    chosen = _chosen(module, where)
    table: dict[Computation, Computation] = {}
    out: list[Computation] = []
    for old in module.computations:
        table[old] = _expand(old, rules if old in chosen else {}, table, names, out, dynamic)
        out.append(table[old])
    if all(a is b for a, b in table.items()):
        return module
    entry = table[module.entry]
    reached = frozenset(callees_first(entry))
    return Module(module.name, tuple(c for c in out if c in reached), entry, module.attributes)


def _chosen(module: Module, where: Where) -> frozenset[Computation]:
    host = frozenset(control_computations(module))
    if where is Where.HOST:
        return host
    every = frozenset(module.computations)
    return every - host if where is Where.KERNELS else every


def _expand(
    computation: Computation,
    rules: Mapping[Op, Rewrite],
    table: Mapping[Computation, Computation],
    names: Names,
    regions: list[Computation],
    dynamic: bool,
) -> Computation:
    new: dict[Instruction, Instruction] = {}
    instructions: list[Instruction] = []
    for old in computation.instructions:
        operands = tuple(new[o] for o in old.operands)
        i = relink(old if operands == old.operands else old.replace(operands=operands), table)
        made = _replacement(i, rules, names, dynamic)
        if made is None:
            new[old] = i
            instructions.append(i)
        else:
            new[old] = made.instructions[-1]
            instructions += made.instructions
            regions += made.computations
    if len(instructions) == len(computation.instructions) and all(
        a is b for a, b in zip(instructions, computation.instructions)
    ):
        return computation
    return Computation(computation.name, tuple(instructions), new[computation.root], computation.attributes)


def _replacement(i: Instruction, rules: Mapping[Op, Rewrite], names: Names, dynamic: bool) -> Builder | None:
    """A builder with the replacement of the instruction, its value last; None to keep the instruction."""
    rule = rules.get(i.opcode)
    if rule is None or (not dynamic and any(s.is_dynamic for s in (i.shape, *(o.shape for o in i.operands)))):
        return None
    builder = Builder(names, i.name, i.location)
    result = rule(i, builder)
    if result is None or not spend():
        return None
    builder.finish(result, i)
    before = i.attributes.get(CONTROL_PREDECESSORS)
    if before:
        after(builder, tuple(before))
    return builder


def after(builder: Builder, before: tuple[str, ...]) -> Mapping[Instruction, Instruction]:
    """Make every instruction of the builder wait for `before`. Returns the new instruction for each old one."""
    new: dict[Instruction, Instruction] = {}
    for i in builder.instructions:
        waiting = with_attributes(i, **{CONTROL_PREDECESSORS: before})
        new[i] = waiting.replace(operands=tuple(new.get(o, o) for o in i.operands))
    builder.instructions[:] = new.values()
    return new
