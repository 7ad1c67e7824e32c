"""convert, bitcast-convert, reduce-precision, stochastic-convert, bitcast."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from ...hlo.dtypes import DType
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction
from ...hlo.shapes import Shape

Array = np.ndarray


def convert(instruction: Instruction, x: Array) -> Array:
    return convert_to(x, instruction.operands[0].shape.dtype, instruction.shape.dtype)


def convert_to(x: Array, source: DType, target: DType) -> Array:
    """Float to integer truncates and saturates, and NaN gives 0; complex to real drops the imaginary part."""
    if source is target:
        return x
    if source.is_complex and not target.is_complex:
        x, source = x.real, source.component
    if target is DType.PRED:
        return np.asarray(nonzero_bits(x, source) if source.is_float and source.bits <= 16 else x != 0)
    if source.is_float and target.is_integer:
        return _float_to_integer(x, target)
    if source is DType.F8E8M0FNU and target.component is DType.F64:
        return _power_of_two(x).astype(target.numpy)
    if source is DType.F64 and target is DType.F8E8M0FNU:
        return _nearest_power(x)
    if source.is_integer and source.bits < 8:
        x = x.astype(np.int8)  # ml_dtypes has no cast from one narrow integer to another
    if (source.is_float and source.bits <= 8) or (target.is_complex and source.bits <= 16 and not source.is_complex):
        x = x.astype(np.float32)  # exact; ml_dtypes lacks some casts between narrow floats
    if source is DType.F64 and target.is_float and target.bits <= 16 and target is not DType.F16:
        x = _single_odd(x)  # ml_dtypes rounds to f32 first
    return _without_nan(x, target).astype(target.numpy)


def _single_odd(x: Array) -> Array:
    """f64 → f32; of the two neighbours of an inexact number the odd one, which a second rounding sees to be inexact."""
    with np.errstate(over="ignore"):
        near = x.astype(np.float32)
    other = np.nextafter(near, np.where(near.astype(np.float64) < x, np.inf, -np.inf).astype(np.float32))
    inexact = np.isfinite(x) & (near.astype(np.float64) != x)
    return np.where(inexact & (near.view(np.uint32) % 2 == 0), other, near)


def _without_nan(x: Array, target: DType) -> Array:
    """x with NaN replaced by -0 if the target is f4e2m1fn, which has no NaN: so XLA converts it."""
    if target is not DType.F4E2M1FN or x.dtype.kind in "iub":
        return x
    x = x if x.dtype.kind == "f" else x.astype(np.float32)
    return np.where(np.isnan(x), x.dtype.type(-0.0), x)


def _power_of_two(x: Array) -> Array:
    """f8e8m0fnu in f64. Its smallest value is subnormal in f32 and would be flushed there."""
    code = np.ascontiguousarray(x).reshape(x.shape).view(np.uint8)
    return np.where(code == 255, np.nan, np.ldexp(1.0, code.astype(np.int32) - 127))


def _nearest_power(x: Array) -> Array:
    """f64 in f8e8m0fnu: NaN below 2^-127; numbers between 2^-127 and 2^-126 are rounded up."""
    least, normal = 2.0**-127, np.where(x < 2.0**-126, 1.0, x).astype(np.float32)
    code = normal.astype(DType.F8E8M0FNU.numpy).view(np.uint8)
    small = np.where(x > least, np.uint8(1), np.where(x == least, np.uint8(0), np.uint8(255)))
    return np.where(x < 2.0**-126, small, code).astype(np.uint8).view(DType.F8E8M0FNU.numpy)


_THROUGH_F16 = {DType.F8E5M2.numpy, DType.F8E4M3FN.numpy}


def narrow(x: Array, target: DType) -> Array:
    """Round a result to its type. XLA:CPU computes f8e5m2 and f8e4m3fn in f16, so these are rounded twice.

    The opcode convert rounds once. An integer result of floats saturates, and NaN gives 0.
    """
    if target.is_integer and x.dtype.kind == "f":
        return _float_to_integer(x, target)
    if target.numpy in _THROUGH_F16 and x.dtype.kind == "f" and x.dtype.itemsize > 2:
        x = x.astype(np.float32).astype(np.float16)
    return _without_nan(x, target).astype(target.numpy)


def nonzero_bits(x: Array, dtype: DType) -> Array:
    """Whether elements are not zero, by their bits, as XLA converts them to pred.

    A subnormal f16 or bf16 counts as not zero (a subnormal f32 is flushed); 2^-127 of f8e8m0fnu counts as zero.
    """
    bits = np.ascontiguousarray(x).reshape(x.shape).view(np.dtype(f"u{x.dtype.itemsize}"))
    magnitude = bits if dtype is DType.F8E8M0FNU else bits & bits.dtype.type((1 << (dtype.bits - 1)) - 1)
    return (magnitude != 0) | np.isnan(x)  # in fnuz types NaN has the bits 0x80, so its magnitude is 0


def _float_to_integer(x: Array, target: DType) -> Array:
    whole = np.trunc(x.astype(np.float64))
    low = -(2 ** (target.bits - 1)) if target.is_signed else 0
    high = 2 ** (target.bits - 1 if target.is_signed else target.bits) - 1
    wide = np.int64 if target.is_signed else np.uint64
    # float(high) may round up to 2**bits, which the integer type cannot hold; hence `>=` and the explicit value.
    inside = np.where(np.isnan(whole) | (whole <= low) | (whole >= high), 0, whole).astype(wide)
    out = np.where(whole <= low, wide(low), np.where(whole >= high, wide(high), inside))
    return np.where(np.isnan(whole), wide(0), out).astype(target.numpy)


def bitcast_convert(instruction: Instruction, x: Array) -> Array:
    """The same bits as another type. A change of width adds or removes a last dimension."""
    return reinterpret(x, instruction.operands[0].shape.dtype, instruction.shape.dtype, None)


def reinterpret(x: Array, source: DType, target: DType, dims: tuple[int, ...] | None) -> Array:
    """The elements' bits in row-major order, little-endian, read as elements of `target`.

    dims: dimensions of the result; None: those of x, with a last dimension added or removed if the width changes.
    """
    x = np.ascontiguousarray(x).reshape(x.shape)  # ascontiguousarray turns a scalar into a vector
    if source is target or DType.PRED not in (source, target):
        return _reinterpret(x, source, target, dims)
    if target is DType.PRED:  # one byte per element; every byte other than 0 is true
        return _reinterpret(x, source, DType.U8, dims) != 0
    return _reinterpret(x.view(np.uint8), DType.U8, target, dims)


def _reinterpret(x: Array, source: DType, target: DType, dims: tuple[int, ...] | None) -> Array:
    if source.bits == target.bits:
        out = x.view(target.numpy).reshape(x.shape)
        return out if dims is None else out.reshape(dims)
    if source.bits >= 8 and target.bits >= 8:
        flat = x.reshape(-1).view(target.numpy)
    else:
        flat = _from_bits(_to_bits(x, source), target)
    if dims is not None:
        return flat.reshape(dims)
    if source.bits >= target.bits:
        return flat.reshape(*x.shape, source.bits // target.bits)
    return flat.reshape(x.shape[:-1])


def _to_bits(x: Array, dtype: DType) -> Array:
    raw = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
    bits = np.unpackbits(raw.reshape(-1, dtype.bytes), axis=1, bitorder="little")
    return bits[:, : dtype.bits].reshape(-1)


def _from_bits(bits: Array, dtype: DType) -> Array:
    if dtype.bits >= 8:
        return np.packbits(bits.reshape(-1, dtype.bytes * 8), axis=1, bitorder="little").reshape(-1).view(dtype.numpy)
    groups = bits.reshape(-1, dtype.bits)
    values = (groups << np.arange(dtype.bits, dtype=np.uint8)).sum(axis=1).astype(np.uint8)
    if dtype.is_float:
        return values.view(dtype.numpy)
    if dtype.is_signed:
        values = np.where(values >> np.uint8(dtype.bits - 1), values | np.uint8(256 - (1 << dtype.bits)), values)
        return values.astype(np.uint8).view(np.int8).astype(dtype.numpy)
    return values.astype(dtype.numpy)


def physical(x: Array, shape: Shape) -> Array:
    """The elements as a vector in memory order."""
    return x.transpose(tuple(reversed(shape.minor_to_major))).reshape(-1)


def from_physical(flat: Array, shape: Shape) -> Array:
    """The inverse of `physical`: the array of `shape` with the elements `flat` in memory order."""
    order = tuple(reversed(shape.minor_to_major))
    return flat.reshape([shape.dims[d] for d in order]).transpose(np.argsort(order))


def keeps_places(source: Shape, target: Shape) -> bool:
    """Whether a bitcast keeps every element in place and only changes its type, to one of the same width."""
    same = source.dims == target.dims and source.dtype.bits == target.dtype.bits
    return same and source.minor_to_major == target.minor_to_major


def bitcast(instruction: Instruction, operands: list[Array], _context: object) -> Array:
    """Reinterpret memory. This is the only opcode whose result depends on layouts."""
    (x,), source, target = operands, instruction.operands[0].shape, instruction.shape
    if source.is_dynamic or target.is_dynamic:
        if not keeps_places(source, target):
            what = f"bitcast of dynamic dimensions ({source} to {target})"
            raise UnsupportedError("evaluator", what, location=instruction.location, remedy="write a reshape")
        return reinterpret(x, source.dtype, target.dtype, x.shape)
    flat = physical(x, source)
    if source.dtype is not target.dtype:
        flat = reinterpret(flat, source.dtype, target.dtype, (-1,))
    return from_physical(flat, target)


def reduce_precision(instruction: Instruction, x: Array) -> Array:
    """Round (to nearest, ties to even) to fewer exponent and mantissa bits, within the same type.

    A number that is too large becomes infinity, one that is too small a signed zero; NaN is kept. As in XLA, floats of
    at most one byte are rounded as f16, f8e8m0fnu as f32.
    """
    if x.dtype.itemsize == 1:
        wide = x.astype(np.float32)
        own = wide if x.dtype == DType.F8E8M0FNU.numpy else wide.astype(np.float16)
        return np.asarray(reduce_precision(instruction, own)).astype(np.float32).astype(x.dtype)
    exponent, mantissa = instruction.attributes["exponent_bits"], instruction.attributes["mantissa_bits"]
    info = ml_dtypes.finfo(x.dtype)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    one = unsigned.type(1)
    bits = np.ascontiguousarray(x).view(unsigned).reshape(x.shape)
    sign_mask = one << unsigned.type(unsigned.itemsize * 8 - 1)
    sign, size = bits & sign_mask, bits & ~sign_mask
    infinity = unsigned.type((1 << info.nexp) - 1) << unsigned.type(info.nmant)
    if mantissa < info.nmant:
        drop = unsigned.type(info.nmant - mantissa)
        last = (size >> drop) & one
        size = (size + last + ((one << (drop - one)) - one)) & ~((one << drop) - one)
    if exponent < info.nexp:
        bias, narrow_bias = (1 << (info.nexp - 1)) - 1, (1 << (exponent - 1)) - 1
        largest = unsigned.type(((bias + narrow_bias) << info.nmant) | ((1 << info.nmant) - 1))
        smallest = unsigned.type((bias - narrow_bias + 1) << info.nmant)
        size = np.where(size > largest, infinity, np.where(size < smallest, unsigned.type(0), size))
    out = (sign | size).astype(unsigned).view(x.dtype)
    return np.where(np.isnan(x), x, out)


def stochastic_convert(instruction: Instruction, x: Array, random: Array) -> Array:
    """Stochastic rounding. To an integer: the fraction is the probability of rounding the magnitude up."""
    source, target = instruction.operands[0].shape.dtype, instruction.shape.dtype
    if not target.is_integer:
        return _stochastic_to_float(x, random, target)
    size = np.abs(x.astype(np.float64))
    whole = np.trunc(size)
    fraction = np.where(np.isfinite(size), size - whole, 0)
    threshold = np.ldexp(fraction, random.dtype.itemsize * 8).astype(np.uint64)  # exact, or truncated
    whole = whole + (random.astype(np.uint64) < threshold)
    return convert_to(np.copysign(whole, x.astype(np.float64)), DType.F64 if source.is_float else source, target)


def _stochastic_to_float(x: Array, random: Array, target: DType) -> Array:
    """To a float: add random bits below the mantissa bits that are kept, then truncate."""
    wide = x.astype(np.float32)
    drop = 23 - ml_dtypes.finfo(target.numpy).nmant
    noise = random.astype(np.uint64) & np.uint64((1 << drop) - 1)
    bits = (wide.view(np.uint32).astype(np.uint64) + noise) & np.uint64(0xFFFFFFFF & ~((1 << drop) - 1))
    rounded = bits.astype(np.uint32).view(np.float32).reshape(wide.shape)
    return np.where(np.isfinite(wide), rounded, wide).astype(target.numpy)
