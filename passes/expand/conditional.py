"""Expand conditionals within fusions and regions: compute all branches and select between their results."""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction, Module
from ...hlo.opclasses import branches
from ...hlo.opcodes import Op
from ..building import Builder
from ..expansion import Where, expand_ops


def expand_conditional(module: Module) -> Module:
    """Replace every conditional within kernels whose branches always terminate by selects, outer ones first."""
    while True:
        after = expand_ops(module, {Op.CONDITIONAL: by_select}, Where.KERNELS)
        if after is module:
            return module
        module = after


def by_select(i: Instruction, b: Builder) -> Instruction | None:
    """All branches, and a chain of selects for each leaf of the result; None if a branch contains a loop."""
    called = branches(i)
    if any(_holds(c, Op.WHILE) for c in called) or not all(s.is_array for _, s in i.shape.leaves()):
        return None
    selector, *arguments = i.operands
    roots = [b.inline(c, [x]) for c, x in zip(called, arguments, strict=True)]
    if any(s.is_tuple for s in i.shape.elements):
        return None
    leaves = [_parts(b, r) for r in roots]
    if selector.shape.dtype is DType.PRED:
        tests = [selector]
    else:
        tests = [b.compare(selector, "EQ", k) for k in range(len(roots) - 1)]
    chosen = leaves[-1]
    for test, values in zip(reversed(tests), reversed(leaves[:-1]), strict=True):
        chosen = [b.select(test, v, c) for v, c in zip(values, chosen, strict=True)]
    return b.tuple(chosen) if i.shape.is_tuple else chosen[0]


def _parts(b: Builder, root: Instruction) -> Sequence[Instruction]:
    if root.opcode is Op.TUPLE:
        return root.operands
    return b.elements(root) if root.shape.is_tuple else [root]


def _holds(computation: Computation, opcode: Op) -> bool:
    return any(i.opcode is opcode or any(_holds(c, opcode) for c in i.called()) for i in computation.instructions)
