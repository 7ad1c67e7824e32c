"""Expand gathers whose slices have a size of 0, so that emitters may assume that a gather reads its operand.

If a collapsed dimension has slice size 0, the result still has elements. As in the evaluator, the size then counts as 1
if the operand has elements; the result is zero if it has none.
"""

from __future__ import annotations

from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ..building import Builder
from ..expansion import Where, expand_ops


def expand_gather(module: Module) -> Module:
    """Replace gathers of empty operands by zeros, and slice sizes of 0 that the result does not show by 1."""
    return expand_ops(module, {Op.GATHER: _with_extent}, Where.EVERYWHERE)


def _with_extent(i: Instruction, b: Builder) -> Instruction | None:
    sizes = i.attributes["slice_sizes"]
    if not i.shape.size or 0 not in sizes:
        return None
    x, indices = i.operands
    if not x.shape.size:
        return b.op(Op.BROADCAST, i.shape, b.constant(0, x.shape.dtype), dimensions=())
    attributes = {**i.attributes, "slice_sizes": tuple(max(n, 1) for n in sizes)}
    return b.op(Op.GATHER, i.shape, x, indices, **attributes)
