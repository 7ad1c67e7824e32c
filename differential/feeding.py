"""The part of a module that some of its results are computed from: what feeds them, and what has side effects."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from ..hlo.analysis.effects import effectful_computations
from ..hlo.dynamic_border import DynamicBorder
from ..hlo.ir import Computation, Instruction, Module
from ..hlo.opcodes import Op
from ..hlo.shapes import tuple_shape
from ..passes.cleanup.dce import live_instructions
from ..passes.rewriting import callees_first


def part_feeding(module: Module, leaves: Collection[int]) -> tuple[Module, dict[int, int]]:
    """(A module with the same parameters, {number of a result leaf: its number there} for at least these leaves).

    It is the module itself where its root is no tuple, or its results have sizes that other results say.
    """
    root = module.entry.root
    if root.opcode is not Op.TUPLE or DynamicBorder.of(module) is not None:
        return module, {leaf: leaf for leaf in leaves}
    owner = [n for n, o in enumerate(root.operands) for _, s in o.shape.leaves() if s.is_array]
    kept = sorted({owner[leaf] for leaf in leaves})
    operands = tuple(root.operands[n] for n in kept)
    smaller = root.replace(operands=operands, shape=tuple_shape(*(o.shape for o in operands)))
    entry = _with_root(module, smaller)
    where = [leaf for leaf, n in enumerate(owner) if n in kept]
    made = replace(module, computations=callees_first(entry), entry=entry)
    return made, {leaf: number for number, leaf in enumerate(where)}


def _with_root(module: Module, root: Instruction) -> Computation:
    entry = module.entry
    whole = Computation(entry.name, (*entry.instructions, root), root)
    live = live_instructions(whole, effectful_computations(module))
    return Computation(entry.name, tuple(i for i in whole.instructions if i in live), root, entry.attributes)
