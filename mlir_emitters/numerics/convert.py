"""convert and reduce-precision. bitcast-convert, which may change the shape, is in shape.py."""

from __future__ import annotations

from mlir import ir

from ...codegen.field.element import active
from ...codegen.field.names import float_name, integer_name
from ...hlo.dtypes import DType
from ..core.builder import Builder, Value
from ..core.elements import (
    NARROW,
    ROUNDED,
    SMALL_INTEGERS,
    FloatFormat,
    Scalar,
    decode,
    raw_type,
    round_to,
    working_type,
    wrap_small,
)
from ..core.graph import Node

KEPT = 14
"""Bits of the mantissa of an f64 that a float of at most 11 bits is rounded from."""
BEYOND = 1 << 17
"""More than the largest number of f16, and of all floats of a byte but f8e8m0fnu."""


def convert(b: Builder, node: Node, x: Scalar) -> Scalar:
    return convert_to(b, node.inputs[0].dtype, node.output.dtype, x)


def convert_to(b: Builder, source: DType, target: DType, x: Scalar) -> Scalar:
    """Convert a value as XLA:CPU does: float to integer saturates, and NaN becomes 0."""
    if source is target:
        return x
    if isinstance(x, tuple):
        real, imaginary = x
        if target.is_complex:
            return _real(b, source.component, target.component, real), _real(
                b, source.component, target.component, imaginary
            )
        if target is DType.PRED:
            return b.binary("ori", _nonzero(b, real), _nonzero(b, imaginary))
        return _real(b, source.component, target, real)
    if target.is_complex:
        value = _real(b, source, target.component, x)
        return value, b.like(0.0, value)
    return _real(b, source, target, x)


def _real(b: Builder, source: DType, target: DType, x: Value) -> Value:
    if source is target:
        return x
    if source in NARROW and target in (DType.PRED, DType.F16) and (code := b.recall(("code", source, x))) is not None:
        if target is DType.PRED:
            return _nonzero_code(b, NARROW[source], code)
        if source is DType.F8E5M2:  # the upper half of an f16
            return b.extend(b.bitcast(b.binary("shli", b.extui(code, b.types.i16), 8), b.types.f16))
    if target is DType.PRED:
        by_bits = source in ROUNDED and source is not DType.F8E8M0FNU  # its smallest number is a subnormal f32
        return _nonzero_bits(b, x) if by_bits else _nonzero(b, x)
    if source.is_float:
        return _float_to_float(b, source, target, x) if target.is_float else _float_to_integer(b, target, x)
    if target.is_float:
        return _integer_to_float(b, source, target, x)
    return _integer_to_integer(b, source, target, x)


def _nonzero_code(b: Builder, format: FloatFormat, code: Value) -> Value:
    """Whether the number of a code is not zero. Where -0 has none, its code is NaN."""
    magnitude = code if format.negative_zero_is_nan else b.binary("andi", code, format.sign_bit - 1)
    return b.compare_integers("ne", magnitude, b.like(0, code))


def _nonzero_bits(b: Builder, x: Value) -> Value:
    """Whether a narrow float, given as f32, is not zero. It tests bits, since a comparison would flush bf16's
    subnormals.
    """
    bits = b.binary("andi", b.bitcast(x, b.types.i32), 0x7FFFFFFF)
    return b.compare_integers("ne", bits, b.like(0, bits))


def _nonzero(b: Builder, x: Value) -> Value:
    if b.is_float(x.type):
        return b.compare("une", x, b.like(0.0, x))
    return b.compare_integers("ne", x, b.like(0, x))


def _float_to_float(b: Builder, source: DType, target: DType, x: Value) -> Value:
    if target is DType.F64:
        return _least_extended(b, x) if source is DType.F8E8M0FNU else b.extend(x)
    if source is DType.F64 and target is DType.F8E8M0FNU:
        return _power_below(b, x, round_to(b, target, narrow_f64(b, x)))
    if source is DType.F64:
        x = narrow_f64(b, x) if target in ROUNDED else b.truncate(x, b.types.f32)
    if source is DType.F16 and target is DType.F8E5M2:
        return _upper_half(b, x)
    return round_to(b, target, x) if target in ROUNDED else x


def _upper_half(b: Builder, x: Value) -> Value:
    """f16 to f8e5m2, by the bits of f16. It, too, is noted as the code of the number."""
    t = b.types
    bits = b.bitcast(b.truncate(x, t.f16), t.i16)
    up = b.binary("addi", b.binary("addi", bits, b.binary("andi", b.binary("shrui", bits, 8), 1)), 0x7F)
    picked = b.select(b.is_nan(x), b.binary("ori", bits, 0x200), up)
    raw = b.trunci(b.binary("shrui", picked, 8), t.i8)
    rounded = decode(b, DType.F8E5M2, raw)
    assert not isinstance(rounded, tuple)
    return rounded


def _least_extended(b: Builder, x: Value) -> Value:
    """f8e8m0fnu to f64. Its smallest number is a subnormal f32 and would be flushed."""
    least = b.compare_integers("eq", b.bitcast(x, b.types.i32), b.constant(0x400000, b.types.i32))
    return b.select(least, b.f64(2.0**-127), b.extend(x))


def _power_below(b: Builder, x: Value, rounded: Value) -> Value:
    """f64 below 2^-126 in f8e8m0fnu (as f32): 2^-127 stays, larger numbers become 2^-126, smaller ones NaN."""
    least = b.f64(2.0**-127)
    small = b.select(b.compare("oeq", x, least), b.f32(2.0**-127), b.f32(float("nan")))
    small = b.select(b.compare("ogt", x, least), b.f32(2.0**-126), small)
    return b.select(b.compare("olt", x, b.f64(2.0**-126)), small, rounded)


def narrow_f64(b: Builder, x: Value) -> Value:
    """Round f64 to f32 so that a second rounding to a narrower type gives the correctly rounded result.

    What does not stay of the mantissa makes its last bit odd. So few bits stay that f32 holds them, also of the
    subnormals among which bf16's smallest lie.
    """
    t = b.types
    lost = (1 << (52 - KEPT)) - 1
    bits = b.bitcast(x, t.i64)
    negative = b.binary("subi", b.like(0, bits), b.binary("andi", bits, lost))  # bits above are set unless it is zero
    last = b.binary("andi", negative, lost + 1)
    return b.truncate(b.bitcast(b.binary("ori", b.binary("andi", bits, ~lost), last), t.f64), t.f32)


def _float_to_integer(b: Builder, target: DType, x: Value) -> Value:
    """Round towards zero, saturate, NaN to 0. The conversion gets only values in range: others are poison."""
    if active() is not None:
        type = raw_type(b.types, target)
        symbol = b.external(integer_name(target.value, str(x.type)), [x.type], type, pure=True)
        return b.call(symbol, type, [x])
    bits, signed = target.bits, target.is_signed
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    mantissa = 24 if x.type == b.types.f32 else 53
    top = high - (high & ((1 << max(high.bit_length() - mantissa, 0)) - 1))  # the largest float in range
    inside = b.op("arith.maxnumf", b.like(float(low), x), x)
    inside = b.op("arith.minnumf", inside, b.like(float(top), x))
    type = raw_type(b.types, target)
    value = b.op("arith.fptosi" if signed else "arith.fptoui", inside, type=type)
    if top != high:
        value = b.select(b.compare("ogt", x, b.like(float(top), x)), b.constant(high, type), value)
    return b.select(b.is_nan(x), b.constant(0, type), value)


def _integer_to_float(b: Builder, source: DType, target: DType, x: Value) -> Value:
    name = "arith.sitofp" if source.is_signed else "arith.uitofp"
    if active() is not None:
        type = b.types.f64 if target is DType.F64 else b.types.f32
        symbol = b.external(float_name(source.is_signed, str(x.type), str(type)), [x.type], type, pure=True)
        value = b.call(symbol, type, [x])
        return round_to(b, target, value) if target in ROUNDED else value
    if target is DType.F64:
        return b.op(name, x, type=b.types.f64)
    if source.bits > 24 and (target is DType.F16 or target in NARROW):
        return round_to(b, target, b.op("arith.sitofp", _within(b, source, x), type=b.types.f32))
    value = b.op(name, x, type=b.types.f32)  # bf16 is rounded from f32, as XLA's: no other way is as short
    return round_to(b, target, value) if target in ROUNDED else value


def _within(b: Builder, source: DType, x: Value) -> Value:
    """A wide integer as an i32 that f32 holds: beyond BEYOND, all are infinite, or whatever such numbers become."""
    x = b.binary("minsi" if source.is_signed else "minui", x, BEYOND)
    x = b.binary("maxsi", x, -BEYOND) if source.is_signed else x
    return x if source.bits == 32 else b.trunci(x, b.types.i32)


def _integer_to_integer(b: Builder, source: DType, target: DType, x: Value) -> Value:
    type = working_type(b.types, target)
    have, want = x.type.width, type.width
    if want > have:
        x = b.extsi(x, type) if source.is_signed else b.extui(x, type)
    elif want < have:
        x = b.trunci(x, type)
    return wrap_small(b, target, x) if target in SMALL_INTEGERS else x


def reduce_precision(b: Builder, node: Node, x: Value) -> Value:
    """Round to fewer mantissa and exponent bits, ties to even. Out of range becomes infinity or a signed zero."""
    exponent, mantissa = node.attributes["exponent_bits"], node.attributes["mantissa_bits"]
    format = DType.F16 if node.output.dtype in NARROW else node.output.dtype  # as XLA
    bits, full_mantissa, full_exponent = _bits_of_format(b, format, x)
    sign_mask = 1 << (full_mantissa + full_exponent)
    if mantissa < full_mantissa:
        drop = full_mantissa - mantissa
        odd = b.binary("andi", b.binary("shrui", bits, drop), 1)
        bits = b.binary("addi", b.binary("addi", bits, odd), (1 << (drop - 1)) - 1)
        bits = b.binary("andi", bits, -(1 << drop))
    if exponent < full_exponent:
        bits = _limit_exponent(b, bits, exponent, full_mantissa, full_exponent, sign_mask)
    return b.select(b.is_nan(x), x, _from_bits(b, format, bits, x.type))


def _bits_of_format(b: Builder, dtype: DType, x: Value) -> tuple[Value, int, int]:
    """(bits, mantissa width, exponent width) of a value in its own format. f16 has its bits in an i32."""
    if dtype is DType.F64:
        return b.bitcast(x, b.types.i64), 52, 11
    if dtype is DType.F16:
        return b.extui(b.bitcast(b.truncate(x, b.types.f16), b.types.i16), b.types.i32), 10, 5
    return b.bitcast(x, b.types.i32), 23, 8


def _from_bits(b: Builder, dtype: DType, bits: Value, type: ir.Type) -> Value:
    if dtype is DType.F16:
        return b.extend(b.bitcast(b.trunci(bits, b.types.i16), b.types.f16))
    return b.bitcast(bits, type)


def _limit_exponent(b: Builder, bits: Value, exponent: int, mantissa: int, full: int, sign_mask: int) -> Value:
    bias, reduced = (1 << (full - 1)) - 1, (1 << (exponent - 1)) - 1
    field = b.binary("andi", bits, ((1 << full) - 1) << mantissa)
    sign = b.binary("andi", bits, sign_mask)
    infinity = b.binary("ori", sign, ((1 << full) - 1) << mantissa)
    over = b.compare_integers("ugt", field, b.like((bias + reduced) << mantissa, bits))
    under = b.compare_integers("ule", field, b.like((bias - reduced) << mantissa, bits))
    return b.select(over, infinity, b.select(under, sign, bits))
