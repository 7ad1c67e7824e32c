"""Expand cholesky and triangular-solve of element types that LAPACK lacks (f16, bf16, f8): compute in f32."""

from __future__ import annotations

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.library.lapack import LETTERS
from ...hlo.opcodes import Op
from ...hlo.records import replace
from ..building import Builder
from ..expansion import expand_ops


def expand_linalg(module: Module) -> Module:
    """Compute cholesky and triangular-solve in f32 for element types that LAPACK lacks."""
    return expand_ops(module, {Op.CHOLESKY: in_f32, Op.TRIANGULAR_SOLVE: in_f32})


def in_f32(i: Instruction, b: Builder) -> Instruction | None:
    """The op on operands converted to f32, with its result converted back; None if LAPACK has the type."""
    if i.shape.dtype in LETTERS or not i.shape.dtype.is_float:
        return None
    wide = [b.unary(Op.CONVERT, o, DType.F32) for o in i.operands]
    solved = b.op(i.opcode, replace(i.shape, dtype=DType.F32), *wide, **i.attributes)
    return b.unary(Op.CONVERT, solved, i.shape.dtype)
