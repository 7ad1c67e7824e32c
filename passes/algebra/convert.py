"""Rules for type conversions: chains of convert and bitcast-convert, and the parts of complex numbers."""

from __future__ import annotations

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder
from .ranges import range_of
from .rule import MANTISSA, holds, is_exact, number, rule


def convert_back(i: Instruction, b: Builder) -> Instruction | None:
    """convert(convert(x)) → x, if the intermediate type holds every value of x."""
    inner = i.operands[0]
    if inner.opcode is not Op.CONVERT or inner.operands[0].shape.dtype is not i.shape.dtype:
        return None
    return inner.operands[0] if holds(inner.shape.dtype, i.shape.dtype) else None


def convert_twice(i: Instruction, b: Builder) -> Instruction | None:
    """convert(convert(x)) → convert(x), if the inner convert is lossless, or both truncate integers.

    Floats are converted to the nearest integer of a type, integers wrap around: where a type does not hold an integer,
    it matters whether it came as a float.
    """
    inner = i.operands[0]
    if inner.opcode is not Op.CONVERT:
        return None
    x, middle, last = inner.operands[0], inner.shape.dtype, i.shape.dtype
    cuts = x.shape.dtype.is_integer and middle.is_integer and last.is_integer and last.bits <= middle.bits
    lossless = holds(middle, x.shape.dtype) and (last is not DType.PRED or is_exact(x.shape.dtype))
    if is_exact(x.shape.dtype) and middle.is_float and last.is_integer:
        lossless = lossless and holds(last, x.shape.dtype)
    real = not (middle.is_complex or last.is_complex)
    return b.convert(x, last) if real and last is not x.shape.dtype and (cuts or lossless) else None


def convert_of_iota(i: Instruction, b: Builder) -> Instruction | None:
    """convert(iota) → iota, if both types hold all of its numbers."""
    inner = i.operands[0]
    if inner.opcode is not Op.IOTA or i.shape.dtype is DType.PRED or not i.shape.size:
        return None
    d = inner.attributes["iota_dimension"]
    last, old, new = i.shape.dims[d] - 1, inner.shape.dtype, i.shape.dtype
    if not old.is_integer or last > range_of_type(old) or last > range_of_type(new):
        return None
    return b.iota(new, i.shape.dims, d)


def range_of_type(dtype: DType) -> int:
    """The largest n such that a type holds 0 … n; -1 if unknown."""
    if dtype.is_integer:
        return 2 ** (dtype.bits - dtype.is_signed) - 1
    return 2 ** MANTISSA[dtype] if dtype in MANTISSA else -1


def convert_of_select(i: Instruction, b: Builder) -> Instruction | None:
    """convert(select(p, 1, 0)) → convert(p)."""
    inner = i.operands[0]
    if inner.opcode is not Op.SELECT or not inner.shape.dtype.is_integer or inner.shape.dtype.bits < 8:
        return None
    p, x, y = inner.operands
    one = range_of(x) == (1, 1) and range_of(y) == (0, 0) and p.shape.dims == i.shape.dims
    return b.convert(p, i.shape.dtype) if one and i.shape.size else None


def bits_twice(i: Instruction, b: Builder) -> Instruction | None:
    """bitcast-convert(bitcast-convert(x)) → bitcast-convert(x) or x, between types of equal width other than pred."""
    inner = i.operands[0]
    if inner.opcode is not Op.BITCAST_CONVERT or inner.shape.dtype is DType.PRED:
        return None
    x = inner.operands[0]
    if not x.shape.dims == inner.shape.dims == i.shape.dims:
        return None
    return b.bits(x, i.shape.dtype)


def part_of_complex(i: Instruction, b: Builder) -> Instruction | None:
    """real(complex(x, y)) → x, imag(complex(x, y)) → y."""
    inner = i.operands[0]
    return inner.operands[i.opcode is Op.IMAG] if inner.opcode is Op.COMPLEX else None


def part_of_real(i: Instruction, b: Builder) -> Instruction | None:
    """real(x) → x and imag(x) → 0, for x that is not complex."""
    x = i.operands[0]
    if x.shape.dtype.is_complex:
        return None
    return x if i.opcode is Op.REAL else number(b, 0, i)


def part_of_sum(i: Instruction, b: Builder) -> Instruction | None:
    """real(z ± w) → real(z) ± real(w), real(-z) → -real(z), if the argument has no other use; the same for imag."""
    inner = i.operands[0]
    if inner.opcode not in (Op.ADD, Op.SUBTRACT, Op.NEGATE) or not inner.shape.dtype.is_complex or not b.is_sole(inner):
        return None
    return b.op(
        inner.opcode,
        array(i.shape.dtype, *i.shape.dims),
        *(b.unary(i.opcode, o, i.shape.dtype) for o in inner.operands),
    )


def complex_of_parts(i: Instruction, b: Builder) -> Instruction | None:
    """complex(real(z), imag(z)) → z."""
    x, y = i.operands
    same = x.opcode is Op.REAL and y.opcode is Op.IMAG and x.operands[0] is y.operands[0]
    return x.operands[0] if same and x.operands[0].shape.dtype is i.shape.dtype else None


RULES = (
    rule(Op.CONVERT, convert_back),
    rule(Op.CONVERT, convert_twice),
    rule(Op.CONVERT, convert_of_iota),
    rule(Op.CONVERT, convert_of_select),
    rule(Op.BITCAST_CONVERT, bits_twice),
    rule((Op.REAL, Op.IMAG), part_of_complex),
    rule((Op.REAL, Op.IMAG), part_of_real),
    rule((Op.REAL, Op.IMAG), part_of_sum),
    rule(Op.COMPLEX, complex_of_parts),
)
