"""convert and reduce-precision, and the conversions of registers between dtypes."""

from __future__ import annotations

from llvmlite import ir

from ...codegen.field.element import active
from ...codegen.field.names import integer_name
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.records import dataclass
from ..core.builder import Code
from ..core.registers import DOUBLE, FLOAT, HALF, I8, I16, I32, Register, V, memory_type, real_constant, register_type
from .narrow import FORMATS, NARROW, decode, encode, half_of_half, least_powers, power_as_double, to_single_odd
from .real import Real


def wrap_integer(code: Code, dtype: DType, value: V) -> V:
    """Keep the low bits of a sub-byte integer in its i8 register, sign- or zero-extended."""
    if dtype.bits >= 8:
        return value
    b = code.b
    if dtype.is_unsigned:
        return b.and_(value, I8((1 << dtype.bits) - 1))
    return b.ashr(b.shl(value, I8(8 - dtype.bits)), I8(8 - dtype.bits))


def convert(code: Code, source: DType, target: DType, value: Register) -> Register:
    """Convert one value by XLA's rules: float → integer saturates, and NaN becomes 0."""
    if source is target:
        return value
    if source.is_complex:
        parts = tuple(convert(code, source.component, target.component, part) for part in value)
        return parts if target.is_complex else parts[0]
    if target.is_complex:
        part = target.component
        return convert(code, source, part, value), real_constant(register_type(part), 0.0)
    if target is DType.PRED:
        return _to_pred(code, source, value)
    if source.is_float:
        return _from_float(code, source, target, value)
    return _from_integer(code, source, target, value)


def _to_pred(code: Code, source: DType, value: V) -> V:
    if source in NARROW and source is not DType.F8E8M0FNU:  # by its bits, so that no subnormal is flushed
        magnitude = (1 << (source.bits - 1)) - 1
        bits = bits_of(code, source, value)
        unsigned_zero = source in FORMATS and FORMATS[source].unsigned_zero
        return code.b.icmp_signed(
            "!=", bits if unsigned_zero else code.b.and_(bits, bits.type(magnitude)), bits.type(0)
        )
    if source.is_float:
        value = decode(code, source, value)
        return code.b.fcmp_unordered("!=", value, real_constant(value.type, 0.0))
    return code.b.icmp_signed("!=", value, value.type(0))


def _from_float(code: Code, source: DType, target: DType, value: V) -> V:
    if target.is_float:
        if source is DType.F64:
            single = to_single_odd(code, value) if target in NARROW else code.b.fptrunc(value, FLOAT)
            narrow = encode(code, target, single)
            return least_powers(code, value, narrow) if target is DType.F8E8M0FNU else narrow
        if source is DType.F8E8M0FNU and target is DType.F64:
            return power_as_double(code, value)
        if (source, target) == (DType.F8E5M2, DType.F16):
            return code.b.bitcast(code.b.shl(code.b.zext(value, I16), I16(8)), HALF)
        if (source, target) == (DType.F16, DType.F8E5M2):
            return half_of_half(code, value)
        value = decode(code, source, value)
        return code.b.fpext(value, DOUBLE) if target is DType.F64 else encode(code, target, value)
    return _to_integer(code, target, decode(code, source, value))


def _to_integer(code: Code, target: DType, value: V) -> V:
    """Towards zero; NaN is 0, and what is beyond the type's range becomes its nearest end.

    Written out, since LLVM takes llvm.fptosi.sat apart element by element where it is vectorised. The conversion gets
    numbers of its range only: for others its result is poison.
    """
    b, r, type_ = code.b, Real(code, 64 if value.type == DOUBLE else 32), register_type(target)
    if active() is not None:
        return code.intrinsic(integer_name(target.value, r.suffix), type_, [value])
    width, signed = target.bits, target.is_signed
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    to_int = b.fptosi if signed else b.fptoui
    if high.bit_length() <= r.mantissa + 1:  # both ends are floats: limit the number
        value = r.select(b.fcmp_ordered("ord", value, value), value, r.c(0.0)) if signed else value
        value = r.select(r.gt(value, low), value, r.c(low))  # an unsigned NaN becomes 0 here
        value = r.select(r.lt(value, high), value, r.c(high))
        if width > 16:
            return to_int(value, type_)
        return b.trunc(b.fptosi(value, I32), type_)
    end = float(high + 1)
    inside = r.lt(r.abs(value), end) if signed else r.both(r.gt(value, 0.0), r.lt(value, end))
    result = to_int(r.select(inside, value, r.c(0.0)), type_)
    result = b.select(r.compare(">=", value, r.c(end)), type_(high), result)
    return b.select(r.compare("<=", value, r.c(-end)), type_(low), result) if signed else result


def _from_integer(code: Code, source: DType, target: DType, value: V) -> V:
    b = code.b
    signed = source.is_signed
    if target.is_float:
        type_ = DOUBLE if target is DType.F64 else FLOAT
        wide = b.sitofp(value, type_) if signed else b.uitofp(value, type_)
        return encode(code, target, wide)
    type_ = register_type(target)
    assert isinstance(type_, ir.IntType)
    if type_.width > value.type.width:
        value = b.sext(value, type_) if signed else b.zext(value, type_)
    elif type_.width < value.type.width:
        value = b.trunc(value, type_)
    return wrap_integer(code, target, value)


def emit_convert(code: Code, instruction: Instruction, value: Register) -> Register:
    return convert(code, instruction.operands[0].shape.dtype, instruction.shape.dtype, value)


def bits_of(code: Code, dtype: DType, value: Register) -> V:
    """The storage bits of a value in an integer register as wide as its memory. Only the low dtype.bits are
    significant.
    """
    b = code.b
    if dtype is DType.C64:
        wide = ir.IntType(64)
        low, high = (b.zext(b.bitcast(part, ir.IntType(32)), wide) for part in value)
        return b.or_(low, b.shl(high, wide(32)))
    assert isinstance(value, ir.Value)
    if dtype is DType.PRED:
        return b.zext(value, I8)
    if isinstance(value.type, ir.IntType):
        return b.and_(value, I8((1 << dtype.bits) - 1)) if dtype.bits < 8 else value
    return b.bitcast(value, ir.IntType(dtype.bits))


def from_bits(code: Code, dtype: DType, bits: V) -> Register:
    """The inverse of `bits_of`."""
    b = code.b
    if dtype is DType.C64:
        low, high = b.trunc(bits, ir.IntType(32)), b.trunc(b.lshr(bits, bits.type(32)), ir.IntType(32))
        return b.bitcast(low, FLOAT), b.bitcast(high, FLOAT)
    if dtype is DType.PRED:
        return b.icmp_signed("!=", bits, bits.type(0))
    type_ = memory_type(dtype)
    if isinstance(type_, ir.IntType):
        return wrap_integer(code, dtype, bits) if dtype.is_integer else bits
    return b.bitcast(bits, type_)


def emit_reduce_precision(code: Code, instruction: Instruction, value: Register) -> Register:
    """Work on the bits of the dtype itself; bf16 uses the upper half of an f32.

    As in XLA, floats of a byte or less are converted to f16 first, f8e8m0fnu to f32.
    """
    dtype = instruction.shape.dtype
    if dtype in FORMATS:
        half = code.b.fptrunc(decode(code, dtype, value), HALF)
        return encode(code, dtype, code.b.fpext(_reduce_precision(code, instruction, DType.F16, half), FLOAT))
    if dtype not in OWN_BITS:
        return encode(code, dtype, _reduce_precision(code, instruction, DType.F32, decode(code, dtype, value)))
    return _reduce_precision(code, instruction, dtype, value)


def _reduce_precision(code: Code, instruction: Instruction, dtype: DType, value: V) -> V:
    exponent_bits, mantissa_bits = (int(instruction.attributes[key]) for key in ("exponent_bits", "mantissa_bits"))
    own = OWN_BITS[dtype]
    bits = original = bits_of(code, dtype, value)
    if mantissa_bits < own.mantissa:
        bits = _round_mantissa(code, bits, own.mantissa - mantissa_bits)
    if exponent_bits < own.exponent:
        bits = _clip_exponent(code, bits, own, exponent_bits)
    b = code.b
    infinity = ((1 << own.exponent) - 1) << own.mantissa
    magnitude = b.and_(original, original.type((1 << (dtype.bits - 1)) - 1))
    quiet = b.or_(original, original.type(1 << (own.mantissa - 1)))
    result = from_bits(code, dtype, b.select(b.icmp_unsigned(">", magnitude, original.type(infinity)), quiet, bits))
    return result


@dataclass(frozen=True, slots=True)
class FloatBits:
    """Widths of the exponent and the mantissa of a float, in bits."""

    exponent: int
    mantissa: int

    @property
    def bias(self) -> int:
        return (1 << (self.exponent - 1)) - 1


OWN_BITS = {
    DType.F16: FloatBits(5, 10),
    DType.BF16: FloatBits(8, 7),
    DType.F32: FloatBits(8, 23),
    DType.F64: FloatBits(11, 52),
}
"""dtypes whose own bits reduce-precision works on."""


def _round_mantissa(code: Code, bits: V, dropped: int) -> V:
    b, type_ = code.b, bits.type
    odd = b.and_(b.lshr(bits, type_(dropped)), type_(1))
    rounded = b.add(bits, b.add(odd, type_((1 << (dropped - 1)) - 1)))
    return b.and_(rounded, type_(-(1 << dropped)))


def _clip_exponent(code: Code, bits: V, own: FloatBits, exponent_bits: int) -> V:
    """Replace values outside the exponent's range by infinity or zero, with their sign."""
    b, type_ = code.b, bits.type
    half = (1 << (exponent_bits - 1)) - 1
    infinity = (2 * own.bias + 1) << own.mantissa
    magnitude = b.and_(bits, type_((1 << (type_.width - 1)) - 1))
    sign = b.and_(bits, type_(-(1 << (type_.width - 1))))
    too_large = b.icmp_unsigned(">=", magnitude, type_((own.bias + half + 1) << own.mantissa))
    too_small = b.icmp_unsigned("<", magnitude, type_((own.bias - half + 1) << own.mantissa))
    result = b.select(too_large, b.or_(sign, type_(infinity)), bits)
    return b.select(too_small, sign, result)
