"""Maxima and minima of f16 by integers. Between conversions, LLVM would move one of f32 to f16, which takes 50 times as
long, because few processors have vectors of it.
"""

from __future__ import annotations

from ..hlo.dtypes import DType
from .builder import Builder, Value
from .elements import decode, encode

MAGNITUDE = 0x7FFF
NOT_A_NUMBER = 0x7C01  # the least magnitude


def maximum(b: Builder, x: Value, y: Value) -> Value:
    return _extreme(b, "maxsi", MAGNITUDE, x, y)


def minimum(b: Builder, x: Value, y: Value) -> Value:
    return _extreme(b, "minsi", ~MAGNITUDE, x, y)


def clamp(b: Builder, low: Value, x: Value, high: Value) -> Value:
    return minimum(b, maximum(b, x, low), high)


def _extreme(b: Builder, name: str, nan: int, x: Value, y: Value) -> Value:
    """nan: the place of NaN in the order of numbers, at the end that the operation prefers."""
    places = [_place(b, encode(b, DType.F16, value), nan) for value in (x, y)]
    result = decode(b, DType.F16, _mirrored(b, b.binary(name, *places)))
    assert not isinstance(result, tuple)
    return result


def _place(b: Builder, raw: Value, nan: int) -> Value:
    is_nan = b.compare_integers("uge", b.binary("andi", raw, MAGNITUDE), b.like(NOT_A_NUMBER, raw))
    return b.select(is_nan, b.like(nan, raw), _mirrored(b, raw))


def _mirrored(b: Builder, raw: Value) -> Value:
    """Sign and magnitude as two's complement, where −0 is −1, and back."""
    return b.binary("xori", raw, b.binary("andi", b.binary("shrsi", raw, 15), MAGNITUDE))
