"""Compare numbers of positions as floats, where these are exact: causal masks, triangles, diagonals, edges.

A position is a 64-bit number, and LLVM turns a comparison of two positions' low halves into one of the whole: two
vectors and two masks in place of one. It keeps comparisons of floats as they are.
"""

from __future__ import annotations

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.records import replace
from ..algebra.ranges import range_of
from ..algebra.rule import integer_of
from ..building import Builder
from ..expansion import expand_ops

EXACT = 1 << 24
"""Integers of up to this magnitude are exact in f32."""

WIDE = frozenset({DType.S32, DType.U32, DType.S64, DType.U64})
_STEPS = frozenset({Op.ADD, Op.SUBTRACT})


def compare_counted(module: Module) -> Module:
    """Replace comparisons of what is made of iotas and constants."""
    return expand_ops(module, {Op.COMPARE: as_floats})


def as_floats(i: Instruction, b: Builder) -> Instruction | None:
    x, y = i.operands
    if x.shape.dtype not in WIDE or not i.shape.size or i.shape.is_dynamic:
        return None
    if not (is_counted(x) and is_counted(y)) or (integer_of(x) is not None and integer_of(y) is not None):
        return None
    made: dict[Instruction, Instruction] = {}
    attributes = {name: value for name, value in i.attributes.items() if name != "type"}
    return b.op(Op.COMPARE, i.shape, _float(x, b, made), _float(y, b, made), **attributes)


def is_counted(x: Instruction) -> bool:
    """Whether x is an iota, one number, or a sum or difference of such, each exact in f32."""
    low, high = range_of(x)
    if low < -EXACT or high > EXACT:
        return False
    return x.opcode is Op.IOTA or integer_of(x) is not None or (x.opcode in _STEPS and all(map(is_counted, x.operands)))


def _float(x: Instruction, b: Builder, made: dict[Instruction, Instruction]) -> Instruction:
    """The same numbers in f32."""
    if x not in made:
        shape, number = replace(x.shape, dtype=DType.F32), integer_of(x)
        if number is not None:
            made[x] = b.constant(number, DType.F32, x.shape.dims)
        elif x.opcode is Op.IOTA:
            made[x] = b.op(Op.IOTA, shape, iota_dimension=x.attributes["iota_dimension"])
        else:
            made[x] = b.op(x.opcode, shape, *[_float(o, b, made) for o in x.operands])
    return made[x]
