"""Compute arithmetic on floats narrower than f32 in f32 between converts, for targets without narrow arithmetic.

Each op's result is still rounded to its own type, so that values do not change. In no pipeline: both stacks emit narrow
floats themselves, in the same way.
"""

from __future__ import annotations

from ...hlo import opset
from ...hlo.dtypes import FLOAT, DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.records import replace
from ..building import Builder
from ..expansion import Where, expand_ops

NARROW = FLOAT - {DType.F32, DType.F64}
THROUGH_F16 = frozenset({DType.F8E5M2, DType.F8E4M3FN})
"""Types to which XLA:CPU rounds through f16."""

ARITHMETIC = (opset.UNARY | opset.BINARY | {Op.DOT, Op.CONVOLUTION}) - {Op.REDUCE_PRECISION}


def normalize_floats(module: Module) -> Module:
    """Compute arithmetic on narrow floats in f32 between converts, for targets without narrow arithmetic."""
    return expand_ops(module, dict.fromkeys(ARITHMETIC, in_f32), Where.EVERYWHERE)


def in_f32(i: Instruction, b: Builder) -> Instruction | None:
    if not any(o.shape.dtype in NARROW for o in i.operands):
        return None
    operands = [_converted(b, o, DType.F32) if o.shape.dtype in NARROW else o for o in i.operands]
    dtype = i.shape.dtype
    shape = replace(i.shape, dtype=DType.F32) if dtype in NARROW else i.shape
    made = b.op(i.opcode, shape, *operands, **i.attributes)
    if dtype in THROUGH_F16:
        made = _converted(b, made, DType.F16)
    return _converted(b, made, dtype)


def _converted(b: Builder, x: Instruction, dtype: DType) -> Instruction:
    """x converted to `dtype`, in the layout of x."""
    return x if x.shape.dtype is dtype else b.op(Op.CONVERT, replace(x.shape, dtype=dtype), x)
