"""A scheduled module whose chosen instructions are sealed: each is a custom call that stands for a kernel of XLA's.

No pass looks inside one, so what XLA compiled is what runs. `output_to_operand_aliasing` says which operands its code
overwrites; the planner gives these one buffer where it can, and no others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..hlo.attributes import OutputAlias
from ..hlo.conventions import XLA_KERNEL
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opclasses import control_computations
from ..hlo.opcodes import Op
from ..passes.rewriting import rebuild, rename_predecessors
from .match import Match

SEALED = ".xla"
"""What is put behind the name of a sealed instruction, so that its kernel's name is none of XLA's symbols."""


def seal(module: Module, found: Mapping[Instruction, Match], chosen: Callable[[Instruction], bool]) -> Module:
    """Seal the instructions of `found` that are chosen. Names are unique within a computation."""
    places = {(c.name, i.name): found[i] for c in control_computations(module) for i in c.instructions if i in found}

    def change(computation: Computation) -> Computation:
        names: dict[str, str] = {}
        new: dict[Instruction, Instruction] = {}
        for old in computation.instructions:
            match = places.get((computation.name, old.name))
            operands = tuple(new[o] for o in old.operands)
            if match is not None and chosen(match.instruction):
                new[old] = rename_predecessors(sealed(old, operands, match), names)
                names[old.name] = new[old].name
            else:
                kept = old if operands == old.operands else old.replace(operands=operands)
                new[old] = rename_predecessors(kept, names)
        if not names:
            return computation
        return Computation(computation.name, tuple(new.values()), new[computation.root], computation.attributes)

    return rebuild(module, change, control_computations(module))


def sealed(old: Instruction, operands: tuple[Instruction, ...], match: Match) -> Instruction:
    attributes = {
        "custom_call_target": XLA_KERNEL + match.kernel.symbol,
        "backend_config": str(match.workgroups),
        "output_to_operand_aliasing": tuple(OutputAlias(index, n, ()) for n, index in match.overwritten),
    }
    kept = {name: value for name, value in old.attributes.items() if name in ("metadata", "control-predecessors")}
    if not attributes["output_to_operand_aliasing"]:
        del attributes["output_to_operand_aliasing"]
    return Instruction(Op.CUSTOM_CALL, old.name + SEALED, old.shape, operands, {**attributes, **kept}, old.location)


def symbol_in(i: Instruction) -> str:
    """The symbol that a sealed instruction stands for."""
    return str(i.attributes["custom_call_target"]).removeprefix(XLA_KERNEL)


def workgroups_in(i: Instruction) -> int:
    """How often the kernel of a sealed instruction is called."""
    return int(str(i.attributes["backend_config"]))
