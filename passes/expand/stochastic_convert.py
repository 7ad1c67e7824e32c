"""Expand stochastic-convert into elementwise ops, also within fusions.

To integers: round up with the fraction as probability, decided by random bits of the operand's width. To floats: add
random bits below the kept mantissa, then truncate.
"""

from __future__ import annotations

import ml_dtypes

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder
from ..expansion import Where, expand_ops


def expand_stochastic_convert(module: Module) -> Module:
    """Replace every stochastic-convert by the equivalent elementwise ops."""
    return expand_ops(module, {Op.STOCHASTIC_CONVERT: round_by_bits}, Where.EVERYWHERE)


def round_by_bits(i: Instruction, b: Builder) -> Instruction:
    x, random = map(b.plain, i.operands)
    if i.shape.dtype.is_integer:
        return _to_integer(b, x, random, i.shape.dtype)
    return _to_float(b, b.convert(x, DType.F32), b.convert(random, DType.U32), i.shape.dtype)


def _to_integer(b: Builder, x: Instruction, random: Instruction, target: DType) -> Instruction:
    """Round to an integer. Every step is exact: fraction · 2ⁿ is an integer below 2ⁿ, or is truncated to one."""
    bits = random.shape.dtype.bits
    x = b.convert(x, DType.F64 if x.shape.dtype is DType.F64 else DType.F32)
    size = b.unary(Op.ABS, x)
    whole = b.unary(Op.FLOOR, size)
    fraction = b.binary(Op.SUBTRACT, size, whole)
    threshold = b.convert(b.binary(Op.MULTIPLY, fraction, 2.0**bits), DType.U64 if bits == 64 else DType.U32)
    up = b.convert(b.compare(b.convert(random, threshold.shape.dtype), "LT", threshold), x.shape.dtype)
    rounded = b.binary(Op.ADD, whole, up)
    negative = b.compare(x, "LT", 0.0)
    return b.convert(b.select(negative, b.unary(Op.NEGATE, rounded), rounded), target)


def _to_float(b: Builder, x: Instruction, random: Instruction, target: DType) -> Instruction:
    drop = 23 - ml_dtypes.finfo(target.numpy).nmant
    if drop <= 0:
        return b.convert(x, target)
    mask = (1 << drop) - 1
    noise = b.binary(Op.AND, random, mask)
    bits = b.binary(Op.AND, b.binary(Op.ADD, b.bits(x, DType.U32), noise), ~mask & 0xFFFFFFFF)
    finite = b.op(Op.IS_FINITE, array(DType.PRED, *x.shape.dims), x)
    return b.convert(b.select(finite, b.bits(bits, DType.F32), x), target)
