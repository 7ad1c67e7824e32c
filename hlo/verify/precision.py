"""Ops whose floats have more than one element type. XLA's shape rules let them differ, so modules with them verify; but
XLA:CPU refuses such a module, and no stack here could say in which precision to compute.
"""

from __future__ import annotations

from ..ir import Instruction
from ..opclasses import ELEMENTWISE
from ..opcodes import Op

ONE_PRECISION = (ELEMENTWISE - {Op.BITCAST_CONVERT, Op.CONVERT, Op.STOCHASTIC_CONVERT}) | {
    *(Op.BROADCAST, Op.CONCATENATE, Op.COPY, Op.DYNAMIC_SLICE, Op.DYNAMIC_UPDATE_SLICE, Op.GATHER, Op.PAD),
    *(Op.RESHAPE, Op.REVERSE, Op.SLICE, Op.TRANSPOSE),
}
"""Opcodes that give a kernel no place to convert: float operands and results must have one element type."""


def mixed_precision(i: Instruction) -> str | None:
    """The element types of an op's floats, in words, if they differ where the stacks need one; else None."""
    if i.opcode not in ONE_PRECISION:
        return None
    floats = {o.shape.dtype for o in i.operands if o.shape.dtype.is_float}
    if i.shape.dtype.is_float:
        floats.add(i.shape.dtype)
    return " and ".join(sorted(d.value for d in floats)) if len(floats) > 1 else None
