"""Arithmetic, logic and rounding, element by element, in NumPy. Special cases are those of XLA:CPU.

Integers wrap; x/0 is -1 (signed) or the largest value (unsigned); x%0 is x; a shift by the width or more gives 0, or
for arithmetic shifts the sign; maximum, minimum and clamp propagate NaN.
"""

from __future__ import annotations

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from . import complex as cx
from .rounding import flushed

Array = np.ndarray


def is_integer(x: Array) -> bool:
    return x.dtype.kind in "iu"


def _unsigned(x: Array) -> Array:
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


def add(x: Array, y: Array) -> Array:
    return np.add(x, y)


def subtract(x: Array, y: Array) -> Array:
    return np.not_equal(x, y) if x.dtype == np.bool_ else np.subtract(x, y)


def multiply(x: Array, y: Array) -> Array:
    if x.dtype.kind == "c":
        return cx.multiply(x, y)
    return np.multiply(x, y)


def divide(x: Array, y: Array) -> Array:
    if not is_integer(x):
        return cx.divide(x, y) if x.dtype.kind == "c" else np.divide(x, y)
    zero = y == 0
    quotient, rest = np.divmod(x, np.where(zero, y.dtype.type(1), y))
    # np.divmod rounds down, HLO truncates. INT_MIN / -1 wraps to INT_MIN.
    quotient = quotient + ((rest != 0) & ((x < 0) != (y < 0))).astype(x.dtype)
    if x.dtype.kind == "i":
        smallest = np.iinfo(x.dtype).min
        quotient = np.where((x == smallest) & (y == -1), x, quotient)
    return np.where(zero, x.dtype.type(-1) if x.dtype.kind == "i" else np.iinfo(x.dtype).max, quotient).astype(x.dtype)


def remainder(x: Array, y: Array) -> Array:
    """The remainder has the sign of the dividend."""
    if not is_integer(x):
        return flushed(np.fmod(flushed(x), flushed(y)))
    zero = y == 0
    safe = np.where(zero | (y == -1), y.dtype.type(1), y) if x.dtype.kind == "i" else np.where(zero, y.dtype.type(1), y)
    return np.where(zero, x, np.fmod(x, safe)).astype(x.dtype)


def mulhi(instruction: Instruction, x: Array, y: Array) -> Array:
    """The upper half of the double-width product."""
    dtype = instruction.shape.dtype
    if dtype.bits < 64:
        wide = np.int64 if dtype.is_signed else np.uint64
        return (x.astype(wide) * y.astype(wide) >> wide(dtype.bits)).astype(dtype.numpy)
    product = x.astype(object) * y.astype(object)
    return np.asarray(product >> 64, dtype=object).astype(dtype.numpy)


def _shift(instruction: Instruction, x: Array, y: Array, operation: np.ufunc, *, signed: bool, fill: bool) -> Array:
    """Shift in a type of at least one byte. An amount of the type's width or more gives 0, or the sign if `fill`."""
    dtype = instruction.shape.dtype
    raw = x if dtype.bits >= 8 else x.astype(np.int8 if dtype.is_signed else np.uint8)
    amount = _unsigned(y) if dtype.bits >= 8 else _bits_of(y, dtype)
    if dtype.bits < 8 and not (signed and dtype.is_signed):
        raw = _bits_of(x, dtype)
    if dtype.bits < 8 and signed and dtype.is_unsigned:  # the type's highest bit is the sign
        raw = (raw << np.uint8(8 - dtype.bits)).view(np.int8) >> np.int8(8 - dtype.bits)
    raw = raw.view(np.dtype(f"{'i' if signed else 'u'}{raw.dtype.itemsize}"))
    inside = amount < dtype.bits
    beyond = np.where(raw < 0, raw.dtype.type(-1), raw.dtype.type(0)) if fill else raw.dtype.type(0)
    out = np.where(inside, operation(raw, np.where(inside, amount, 0).astype(raw.dtype)), beyond)
    return out.view(dtype.numpy) if dtype.bits >= 8 else out.astype(dtype.numpy)


def shift_left(instruction: Instruction, x: Array, y: Array) -> Array:
    return _shift(instruction, x, y, np.left_shift, signed=False, fill=False)


def shift_right_logical(instruction: Instruction, x: Array, y: Array) -> Array:
    return _shift(instruction, x, y, np.right_shift, signed=False, fill=False)


def shift_right_arithmetic(instruction: Instruction, x: Array, y: Array) -> Array:
    return _shift(instruction, x, y, np.right_shift, signed=True, fill=True)


def negate(x: Array) -> Array:
    return x.copy() if x.dtype == np.bool_ else np.negative(x)


def sign(x: Array) -> Array:
    if x.dtype.kind == "c":
        return cx.sign(x)
    if x.dtype.kind == "f":
        return np.where(x == 0, x, np.sign(x))
    return np.sign(x)


def absolute(x: Array) -> Array:
    if x.dtype.kind == "c":
        return cx.magnitude(x)
    return x.copy() if x.dtype == np.bool_ else np.abs(x)


def round_nearest_afz(x: Array) -> Array:
    """Round to the nearest integer, halves away from zero."""
    whole = np.trunc(x)
    return np.copysign(np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(x.dtype.type(1), x), whole), x)


def popcnt(instruction: Instruction, x: Array) -> Array:
    dtype = instruction.shape.dtype
    return np.bitwise_count(_bits_of(x, dtype)).astype(dtype.numpy)


def count_leading_zeros(instruction: Instruction, x: Array) -> Array:
    dtype = instruction.shape.dtype
    bits = _bits_of(x, dtype)
    step = 1
    while step < dtype.bits:
        bits = bits | bits >> bits.dtype.type(step)
        step *= 2
    return (dtype.bits - np.bitwise_count(bits).astype(np.int64)).astype(dtype.numpy)


def _bits_of(x: Array, dtype: DType) -> Array:
    """The bits of an integer as an unsigned integer; bits above the type's width are 0."""
    if dtype.bits >= 8:
        return _unsigned(x)
    return x.astype(np.int8).view(np.uint8) & np.uint8((1 << dtype.bits) - 1)


def select(_instruction: Instruction, condition: Array, x: Array, y: Array) -> Array:
    return np.where(condition, x, y)


def maximum(x: Array, y: Array) -> Array:
    """The maximum, where +0 is larger than -0; np.maximum may return either. Complex: x if x >= y, otherwise y."""
    if np.result_type(x, y).kind == "c":
        return np.where(cx.ordered(np.greater_equal, x, y), x, y)
    larger = np.maximum(x, y)
    return np.where((x == 0) & (y == 0), x + y, larger) if larger.dtype.kind == "f" else larger


def minimum(x: Array, y: Array) -> Array:
    if np.result_type(x, y).kind == "c":
        return np.where(cx.ordered(np.less_equal, x, y), x, y)
    return -maximum(-x, -y) if np.result_type(x, y).kind == "f" else np.minimum(x, y)


def clamp(low: Array, x: Array, high: Array) -> Array:
    return minimum(maximum(low, x), high)


# --- compare ---------------------------------------------------------------------------------------------------------

_COMPARE = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def compare(instruction: Instruction, x: Array, y: Array) -> Array:
    """type=TOTALORDER orders -NaN < -inf < … < -0 < +0 < … < +inf < NaN. Complex numbers are ordered by real, then by
    imaginary part.
    """
    operation = _COMPARE[instruction.attributes["direction"]]
    dtype = instruction.operands[0].shape.dtype
    if dtype.is_float and instruction.attributes.get("type") == "TOTALORDER":
        x, y = total_order_key(x), total_order_key(y)
    elif (dtype.is_float and dtype.bits < 16) or dtype is DType.BF16:
        x, y = x.astype(np.float32), y.astype(np.float32)
    elif dtype.bits < 8 and dtype is not DType.PRED:
        x, y = x.astype(np.int8), y.astype(np.int8)
    elif dtype.is_complex and operation not in (np.equal, np.not_equal):
        return np.asarray(cx.ordered(operation, x, y))
    return np.asarray(operation(x, y))


def total_order_key(x: Array) -> Array:
    """Integers that are ordered as the floats are in total order."""
    bits = np.ascontiguousarray(x).view(np.dtype(f"i{x.dtype.itemsize}")).reshape(x.shape)
    if x.dtype == DType.F8E8M0FNU.numpy:  # it has no sign
        return bits.view(np.uint8)
    if x.dtype == DType.F4E2M1FN.numpy:  # its sign is the fourth bit
        bits = bits << np.int8(4) >> np.int8(4)
    key = np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)
    if x.dtype.name.endswith("fnuz"):  # their only NaN has the bits of -0 and is the smallest
        key = np.where(bits == np.iinfo(bits.dtype).min, -256, key.astype(np.int16))
    return key
