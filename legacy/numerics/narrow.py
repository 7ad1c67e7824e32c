"""Floats narrower than f32: conversions between storage bits and f32 by vectorisable integer arithmetic. Only f16 has
an LLVM type.
"""

from __future__ import annotations

import math

from llvmlite import ir

from ...codegen.field.element import plain
from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from ..core.builder import Code
from ..core.registers import DOUBLE, FLOAT, HALF, I8, I16, I32, I64, V, splat
from .real import Real


@dataclass(frozen=True, slots=True)
class Format:
    """A float format of at most 8 bits. infinity, nan: their codes without sign; None if the format lacks them.

    unsigned_zero: the format has no -0, and the code of -0 is NaN. largest: the code of the largest finite number.
    """

    exponent_bits: int
    mantissa_bits: int
    bias: int
    largest: int
    infinity: int | None = None
    nan: int | None = None
    unsigned_zero: bool = False

    @property
    def sign(self) -> int:
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @property
    def overflow(self) -> int:
        """The code for numbers beyond the largest: infinity, else NaN, else the largest."""
        return next(code for code in (self.infinity, self.nan, self.largest) if code is not None)


FORMATS: dict[DType, Format] = {
    DType.F8E5M2: Format(5, 2, 15, 0x7B, infinity=0x7C, nan=0x7E),
    DType.F8E4M3: Format(4, 3, 7, 0x77, infinity=0x78, nan=0x7C),
    DType.F8E3M4: Format(3, 4, 3, 0x6F, infinity=0x70, nan=0x78),
    DType.F8E4M3FN: Format(4, 3, 7, 0x7E, nan=0x7F),
    DType.F8E4M3B11FNUZ: Format(4, 3, 11, 0x7F, nan=0x80, unsigned_zero=True),
    DType.F8E4M3FNUZ: Format(4, 3, 8, 0x7F, nan=0x80, unsigned_zero=True),
    DType.F8E5M2FNUZ: Format(5, 2, 16, 0x7F, nan=0x80, unsigned_zero=True),
    DType.F4E2M1FN: Format(2, 1, 1, 0x07),
}

NARROW = frozenset({DType.F16, DType.BF16, DType.F8E8M0FNU, *FORMATS})
"""Floats that are computed in f32."""

LOST = 40
"""The lowest bit of an f64 that stays where it becomes a narrow float. f16 needs two bits more than its own, and a
subnormal f32 must hold what decides about one of bf16.
"""


def decode(code: Code, dtype: DType, value: V) -> V:
    """Storage bits → the register for arithmetic: f32 for narrow floats, the value itself otherwise."""
    b = code.b
    if dtype is DType.F16:
        return b.fpext(value, FLOAT)
    if dtype is DType.BF16:
        return b.bitcast(b.shl(b.zext(value, I32), I32(16)), FLOAT)
    if dtype is DType.F8E8M0FNU:
        return _decode_power(code, value)
    return _decode_small(code, FORMATS[dtype], value) if dtype in FORMATS else value


def decode_vector(b: ir.IRBuilder, dtype: DType, value: V) -> V:
    """The same for a vector of f16 or bf16; a vector of another dtype as it is."""
    lanes = value.type.count
    if dtype is DType.F16:
        return b.fpext(value, ir.VectorType(FLOAT, lanes))
    if dtype is not DType.BF16:
        return value
    bits = b.zext(value, ir.VectorType(I32, lanes))
    return b.bitcast(b.shl(bits, splat(b, I32(16), lanes)), ir.VectorType(FLOAT, lanes))


def encode(code: Code, dtype: DType, value: V) -> V:
    """The inverse of `decode`. Rounds to nearest even and keeps NaN."""
    if dtype is DType.F16:
        return code.b.fptrunc(value, HALF)
    if dtype is DType.BF16:
        return _encode_bfloat(code, value)
    if dtype is DType.F8E8M0FNU:
        return _encode_power(code, value)
    return _encode_small(code, FORMATS[dtype], value) if dtype in FORMATS else value


def to_single_odd(code: Code, value: V) -> V:
    """f64 → f32, rounded to odd, so that a second rounding to a narrow float gives the correctly rounded result.

    The bits below bit LOST count as one: added to ones, they carry into it unless they are zeros.
    """
    b = code.b
    bits, low = b.bitcast(value, I64), I64((1 << LOST) - 1)
    folded = b.and_(b.or_(bits, b.add(b.and_(bits, low), low)), I64(-(1 << LOST)))
    return b.fptrunc(b.bitcast(folded, DOUBLE), FLOAT)


def half_of_half(code: Code, value: V) -> V:
    """f16 → f8e5m2, which has the exponent of f16 and the upper bits of its mantissa."""
    b = code.b
    bits = b.bitcast(value, I16)
    upper = b.lshr(bits, I16(8))
    rounded = b.lshr(b.add(b.add(bits, I16(0x7F)), b.and_(upper, I16(1))), I16(8))
    is_nan = b.icmp_unsigned(">", b.and_(bits, I16(0x7FFF)), I16(0x7C00))
    return b.trunc(b.select(is_nan, b.or_(upper, I16(2)), rounded), I8)


def _encode_bfloat(code: Code, value: V) -> V:
    b = code.b
    bits = b.bitcast(value, I32)
    upper = b.lshr(bits, I32(16))
    rounded = b.lshr(b.add(bits, b.add(b.and_(upper, I32(1)), I32(0x7FFF))), I32(16))
    is_nan = b.fcmp_unordered("uno", value, value)
    return b.trunc(b.select(is_nan, b.or_(upper, I32(0x40)), rounded), I16)


def _decode_small(code: Code, f: Format, value: V) -> V:
    b = code.b
    r = Real(code, 32)
    bits = b.zext(value, I32)
    magnitude = b.and_(bits, I32(f.sign - 1))
    shift = 23 - f.mantissa_bits
    normal = b.add(b.shl(magnitude, I32(shift)), I32((127 - f.bias) << 23))
    quantum = 2.0 ** (1 - f.bias - f.mantissa_bits)
    subnormal = r.to_bits(r.mul(b.sitofp(magnitude, FLOAT), r.c(quantum)))
    result = b.select(b.icmp_signed("<", magnitude, I32(1 << f.mantissa_bits)), subnormal, normal)
    if f.infinity is not None:
        result = b.select(b.icmp_signed("==", magnitude, I32(f.infinity)), I32(0x7F800000), result)
    sign_distance = 31 - f.sign.bit_length() + 1
    result = b.or_(result, b.shl(b.and_(bits, I32(f.sign)), I32(sign_distance)))
    if f.unsigned_zero:
        result = b.select(b.icmp_signed("==", bits, I32(f.sign)), I32(0x7FC00000), result)
    elif f.nan is not None:
        first_nan = I32((f.infinity or f.largest) + 1)
        result = b.select(b.icmp_signed(">=", magnitude, first_nan), I32(0x7FC00000), result)
    return r.from_bits(result)


def _encode_small(code: Code, f: Format, value: V) -> V:
    with plain() as over_a_field:
        return _packed(code, f, value, not over_a_field)


def _packed(code: Code, f: Format, value: V, has_subnormals: bool) -> V:
    b = code.b
    r = Real(code, 32)
    bits = r.to_bits(value)
    magnitude = b.and_(bits, I32(0x7FFFFFFF))
    shift, smallest_normal = 23 - f.mantissa_bits, 2.0 ** (1 - f.bias)
    odd = b.and_(b.lshr(magnitude, I32(shift)), I32(1))
    rounded = b.lshr(b.add(magnitude, b.add(odd, I32((1 << (shift - 1)) - 1))), I32(shift))
    normal = b.sub(rounded, I32((127 - f.bias) << f.mantissa_bits))
    magic = smallest_normal * 2.0**shift  # its last bit has the weight of the format's smallest subnormal
    absolute = r.from_bits(magnitude)
    subnormal = b.sub(r.to_bits(r.add(absolute, r.c(magic))), r.to_bits(r.c(magic)))
    if not has_subnormals:
        subnormal = I32(0)
    result = b.select(r.lt(absolute, smallest_normal), subnormal, normal)
    result = b.select(b.icmp_signed(">", result, I32(f.largest)), I32(f.overflow), result)
    sign = b.and_(b.lshr(bits, I32(31 - f.sign.bit_length() + 1)), I32(f.sign))
    is_nan = r.is_nan(value)
    if f.unsigned_zero:
        sign = b.select(b.icmp_signed("==", result, I32(0)), I32(0), sign)
        result = b.or_(result, sign)
        result = b.select(is_nan, I32(f.sign), result)
    else:
        result = b.select(is_nan, I32(f.sign if f.nan is None else f.nan), b.or_(result, sign))
    return b.trunc(result, I8)


def _decode_power(code: Code, value: V) -> V:
    """f8e8m0fnu → f32: 2^(code - 127); code 255 is NaN."""
    b = code.b
    bits = b.zext(value, I32)
    result = b.shl(bits, I32(23))
    result = b.select(b.icmp_signed("==", bits, I32(0)), I32(0x00400000), result)
    return b.bitcast(b.select(b.icmp_signed("==", bits, I32(255)), I32(0x7FC00000), result), FLOAT)


def _encode_power(code: Code, value: V) -> V:
    b = code.b
    r = Real(code, 32)
    bits = r.to_bits(value)
    rounded = b.lshr(b.add(bits, I32(0x400000)), I32(23))
    least = b.zext(b.icmp_signed(">", bits, I32(0x400000)), I32)  # up to 2^-127: code 0; XLA rounds everything above up
    rounded = b.select(b.icmp_signed("<", bits, I32(0x800000)), least, rounded)
    positive = r.both(b.icmp_signed(">", bits, I32(0)), r.lt(value, math.inf))
    return b.trunc(b.select(positive, rounded, I32(255)), I8)


def power_as_double(code: Code, value: V) -> V:
    """f8e8m0fnu → f64 by its bits: in f32 the smallest number is subnormal and would be flushed."""
    b = code.b
    bits = b.zext(value, I64)
    power = b.bitcast(b.shl(b.add(bits, I64(1023 - 127)), I64(52)), DOUBLE)
    return b.select(b.icmp_signed("==", bits, I64(255)), Real(code, 64).c(math.nan), power)


def least_powers(code: Code, value: V, narrow: V) -> V:
    """f64 → f8e8m0fnu for small values: NaN below 2^-127, rounded up to 2^-126."""
    r = Real(code, 64)
    small = r.select(r.gt(value, 2.0**-127), I8(1), r.select(r.eq(value, 2.0**-127), I8(0), I8(255)))
    return r.select(r.lt(value, 2.0**-126), small, narrow)
