"""The representation of one element of each HLO type in memory and in registers.

A scalar has two forms: *raw*, as in memory (data movement copies it bit for bit), and *working*, for arithmetic. pred:
raw i8, working i1. f16, bf16 and the 8- and 4-bit floats: raw iN, working f32 (always a value of the narrow type). 2-
and 4-bit integers: i8 in both forms (sign- or zero-extended). complex: a (real, imaginary) pair in both forms. Other
types have the same form in both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from mlir import ir

from ...codegen.field.element import plain
from ...hlo.dtypes import DType
from ...hlo.records import dataclass
from .builder import Builder, Types, Value

Scalar: TypeAlias = Value | tuple[Value, Value]
"""One element; a pair if it is complex."""


@dataclass(frozen=True, slots=True)
class FloatFormat:
    """A narrow float: widths and bias, whether it has infinities, and the bits of its NaN (None: no NaN).

    negative_zero_is_nan: the 'fnuz' formats, whose only NaN is 0x80.
    """

    exponent: int
    mantissa: int
    bias: int
    infinity: bool
    nan: int | None
    negative_zero_is_nan: bool = False

    @property
    def sign_bit(self) -> int:
        return 1 << (self.exponent + self.mantissa)

    @property
    def largest(self) -> int:
        """The bits of the largest finite value."""
        top = self.sign_bit - 1
        if self.infinity:
            return top - (1 << self.mantissa)
        return top - 1 if self.nan is not None and not self.negative_zero_is_nan else top


NARROW: dict[DType, FloatFormat] = {
    DType.F8E5M2: FloatFormat(5, 2, 15, True, 0x7E),
    DType.F8E4M3: FloatFormat(4, 3, 7, True, 0x7C),
    DType.F8E3M4: FloatFormat(3, 4, 3, True, 0x78),
    DType.F8E4M3FN: FloatFormat(4, 3, 7, False, 0x7F),
    DType.F8E4M3B11FNUZ: FloatFormat(4, 3, 11, False, 0x80, True),
    DType.F8E4M3FNUZ: FloatFormat(4, 3, 8, False, 0x80, True),
    DType.F8E5M2FNUZ: FloatFormat(5, 2, 16, False, 0x80, True),
    DType.F4E2M1FN: FloatFormat(2, 1, 1, False, None),
}
SMALL_INTEGERS = frozenset({DType.S1, DType.S2, DType.S4, DType.U1, DType.U2, DType.U4})
ROUNDED = frozenset({DType.F16, DType.BF16, DType.F8E8M0FNU}) | NARROW.keys()
"""Types that are computed in f32 and rounded after each operation."""


def raw_type(types: Types, dtype: DType) -> ir.Type:
    """The MLIR type of one element in memory (of one component, if complex)."""
    if dtype in (DType.F32, DType.C64):
        return types.f32
    if dtype in (DType.F64, DType.C128):
        return types.f64
    return types.integer(dtype.bytes * 8)


def working_type(types: Types, dtype: DType) -> ir.Type:
    """The MLIR type of one element in registers (of one component, if complex)."""
    if dtype is DType.PRED:
        return types.i1
    return types.f32 if dtype in ROUNDED else raw_type(types, dtype)


def parts(dtype: DType) -> int:
    return 2 if dtype.is_complex else 1


def scalar_types(types: Types, dtype: DType, raw: bool) -> list[ir.Type]:
    """The types of the values that form one element."""
    return [raw_type(types, dtype) if raw else working_type(types, dtype)] * parts(dtype)


def flatten(scalar: Scalar) -> list[Value]:
    return list(scalar) if isinstance(scalar, tuple) else [scalar]


def spread(scalars: Iterable[Scalar]) -> list[Value]:
    """The parts of all scalars."""
    return [part for scalar in scalars for part in flatten(scalar)]


def gathered(values: Iterable[Value], dtypes: Iterable[DType]) -> list[Scalar]:
    """The scalars of these types whose parts they are, one after the other."""
    left = iter(values)
    return [unflatten([next(left) for _ in range(parts(dtype))], dtype) for dtype in dtypes]


def unflatten(values: list[Value], dtype: DType) -> Scalar:
    return (values[0], values[1]) if dtype.is_complex else values[0]


def decode(b: Builder, dtype: DType, raw: Scalar) -> Scalar:
    """Raw form to working form. `encode` takes the code of a narrow float back."""
    if isinstance(raw, tuple) or not (dtype in ROUNDED or dtype in SMALL_INTEGERS or dtype is DType.PRED):
        return raw
    t = b.types
    if dtype is DType.PRED:
        return b.compare_integers("ne", raw, b.constant(0, t.i8))
    if dtype in SMALL_INTEGERS:
        return wrap_small(b, dtype, raw)
    if dtype is DType.BF16:
        return b.bitcast(b.binary("shli", b.extui(raw, t.i32), 16), t.f32)
    if dtype is DType.F16:
        return b.extend(b.bitcast(raw, t.f16))
    value = _decode_e8m0(b, raw) if dtype is DType.F8E8M0FNU else _decode_narrow(b, NARROW[dtype], raw)
    b.scopes[0]["code", dtype, value] = raw  # the outermost: where the number is known, its code is, too
    return value


def encode(b: Builder, dtype: DType, value: Scalar) -> Scalar:
    """Working form to raw form. It is exact, because working values are already rounded."""
    if isinstance(value, tuple) or not (dtype in ROUNDED or dtype is DType.PRED):
        return value
    t = b.types
    if dtype is DType.PRED:
        return b.extui(value, t.i8)
    if dtype is DType.BF16:
        return b.trunci(b.binary("shrui", b.bitcast(value, t.i32), 16), t.i16)
    if dtype is DType.F16:
        return b.bitcast(b.truncate(value, t.f16), t.i16)
    known: Value | None = b.recall(("code", dtype, value))
    return _encoded(b, dtype, value) if known is None else known


def _encoded(b: Builder, dtype: DType, value: Value) -> Value:
    if dtype is DType.F8E8M0FNU:
        return _encode_e8m0(b, value)
    with plain() as over_a_field:
        return _encode_narrow(b, NARROW[dtype], value, not over_a_field)


def round_to(b: Builder, dtype: DType, value: Value) -> Value:
    """An f32 result rounded to a narrow type, still as f32. What has 8 bits or less is rounded by its code."""
    if dtype is DType.BF16:
        return _round_bf16(b, value)
    if dtype is DType.F16:
        return b.extend(b.truncate(value, b.types.f16))
    raw = _encoded(b, dtype, value)
    rounded = decode(b, dtype, raw)
    assert not isinstance(rounded, tuple)
    return rounded


def wrap_small(b: Builder, dtype: DType, value: Value) -> Value:
    """An i8 wrapped to a 1-, 2- or 4-bit integer."""
    spare = 8 - dtype.bits
    if dtype.is_unsigned:
        return b.binary("andi", value, (1 << dtype.bits) - 1)
    return b.binary("shrsi", b.binary("shli", value, spare), spare)


def _round_bf16(b: Builder, value: Value) -> Value:
    """Round to nearest even by integer operations, which every target vectorises. NaN becomes quiet, with its sign."""
    i32 = b.types.i32
    bits = b.bitcast(value, i32)
    odd = b.binary("andi", b.binary("shrui", bits, 16), 1)
    up = b.binary("addi", b.binary("addi", bits, odd), 0x7FFF)
    quiet = b.binary("ori", bits, 0x400000)
    picked = b.select(b.is_nan(value), quiet, up)
    return b.bitcast(b.binary("andi", picked, 0xFFFF0000), b.types.f32)


def _decode_narrow(b: Builder, format: FloatFormat, raw: Value) -> Value:
    """Decode a narrow float. Normal: shift the bits and change the bias. Subnormal: multiply its integer by the
    smallest step. Then handle NaN, infinity and the sign.
    """
    t = b.types
    bits = b.extui(raw, t.i32)
    magnitude = b.binary("andi", bits, format.sign_bit - 1)
    placed = b.binary("shli", magnitude, 23 - format.mantissa)
    normal = b.bitcast(b.binary("addi", placed, (127 - format.bias) << 23), t.f32)
    step = 2.0 ** (1 - format.bias - format.mantissa)
    subnormal = b.op("arith.mulf", b.op("arith.uitofp", magnitude, type=t.f32), b.f32(step))
    is_subnormal = b.compare_integers("ult", magnitude, b.constant(1 << format.mantissa, t.i32))
    value = b.select(is_subnormal, subnormal, normal)
    if format.infinity:
        top = format.largest + 1
        value = b.select(b.compare_integers("eq", magnitude, b.constant(top, t.i32)), b.f32(float("inf")), value)
        value = b.select(b.compare_integers("ugt", magnitude, b.constant(top, t.i32)), b.f32(float("nan")), value)
    elif format.nan is not None and not format.negative_zero_is_nan:
        value = b.select(b.compare_integers("eq", magnitude, b.constant(format.nan, t.i32)), b.f32(float("nan")), value)
    shift = 31 - (format.exponent + format.mantissa)
    sign = b.binary("andi", b.binary("shli", bits, shift), 0x80000000)
    value = b.bitcast(b.binary("ori", b.bitcast(value, t.i32), sign), t.f32)
    if format.negative_zero_is_nan:
        value = b.select(b.compare_integers("eq", bits, b.constant(0x80, t.i32)), b.f32(float("nan")), value)
    return value


def _encode_narrow(b: Builder, format: FloatFormat, value: Value, has_subnormals: bool) -> Value:
    """Round an f32 to nearest even and pack it. has_subnormals: of f32 numbers below the smallest normal one."""
    t = b.types
    bits = b.bitcast(value, t.i32)
    magnitude = b.binary("andi", bits, 0x7FFFFFFF)
    drop = 23 - format.mantissa
    odd = b.binary("andi", b.binary("shrui", magnitude, drop), 1)
    rounded = b.binary("addi", b.binary("addi", magnitude, odd), (1 << (drop - 1)) - 1)
    normal = b.binary("subi", b.binary("shrui", rounded, drop), (127 - format.bias) << format.mantissa)
    # Below the smallest normal: after adding 2^k the hardware rounds at the right bit, and the low bits are the code.
    magic = 2.0 ** (23 + 1 - format.bias - format.mantissa)
    absolute = b.bitcast(magnitude, t.f32)
    shifted = b.op("arith.addf", absolute, b.f32(magic))
    subnormal = b.binary("subi", b.bitcast(shifted, t.i32), b.bitcast(b.f32(magic), t.i32))
    if not has_subnormals:
        subnormal = b.constant(0, t.i32)
    least = b.f32(2.0 ** (1 - format.bias))
    code = b.select(b.compare("olt", absolute, least), subnormal, normal)
    code = _overflow(b, format, code, magnitude)
    shift = 31 - (format.exponent + format.mantissa)
    sign = b.binary("andi", b.binary("shrui", bits, shift), format.sign_bit)
    if format.negative_zero_is_nan:
        zero = b.constant(0, t.i32)
        sign = b.select(b.compare_integers("eq", code, zero), zero, sign)
    code = b.binary("ori", code, sign)
    if format.negative_zero_is_nan:
        out_of_range = b.compare_integers("ugt", b.binary("andi", code, 0xFFFF00), b.constant(0, t.i32))
        code = b.select(out_of_range, b.constant(0x80, t.i32), code)
    return b.trunci(code, t.i8)


def _overflow(b: Builder, format: FloatFormat, code: Value, magnitude: Value) -> Value:
    """Replace values beyond the largest finite one, infinities and NaN. The sign is added later."""
    t = b.types
    too_large = b.compare_integers("sgt", code, b.constant(format.largest, t.i32))
    is_nan = b.compare_integers("ugt", magnitude, b.constant(0x7F800000, t.i32))
    if format.infinity:
        code = b.select(too_large, b.constant(format.largest + 1, t.i32), code)
        return b.select(is_nan, b.constant(format.nan or 0, t.i32), code)
    if format.nan is None:  # no NaN in the format: saturate; NaN becomes -0, as in ml_dtypes
        saturated = b.select(too_large, b.constant(format.largest, t.i32), code)
        return b.select(is_nan, b.constant(format.sign_bit, t.i32), saturated)
    nan = 0x10000 if format.negative_zero_is_nan else format.nan
    return b.select(b.binary("ori", too_large, is_nan), b.constant(nan, t.i32), code)


def _decode_e8m0(b: Builder, raw: Value) -> Value:
    """Decode f8e8m0fnu: 2^(bits−127); 0xff is NaN."""
    t = b.types
    bits = b.extui(raw, t.i32)
    power = b.bitcast(b.binary("shli", bits, 23), t.f32)
    power = b.select(b.compare_integers("eq", bits, b.constant(0, t.i32)), b.f32(2.0**-127), power)
    return b.select(b.compare_integers("eq", bits, b.constant(255, t.i32)), b.f32(float("nan")), power)


def _encode_e8m0(b: Builder, value: Value) -> Value:
    """Round to the nearest power of two (ties go up, since the hidden bit is odd). Negative and non-finite numbers and
    zero become NaN.

    It works on bits, since a comparison would flush 2^-127 (code 0). XLA rounds larger subnormals up to code 1.
    """
    t = b.types
    bits = b.bitcast(value, t.i32)
    normal = b.binary("shrui", b.binary("addi", bits, 0x400000), 23)
    subnormal = b.extui(b.compare_integers("ugt", bits, b.constant(0x400000, t.i32)), t.i32)
    rounded = b.select(b.compare_integers("ult", bits, b.constant(0x800000, t.i32)), subnormal, normal)
    # As unsigned numbers minus one, zero, negative numbers, infinity and NaN are all out of range.
    less = b.binary("addi", bits, 0xFFFFFFFF)
    ok = b.compare_integers("ult", less, b.constant(0x7F7FFFFF, t.i32))
    return b.trunci(b.select(ok, rounded, b.constant(255, t.i32)), t.i8)
