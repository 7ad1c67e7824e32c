"""Maxima and minima of f16 by integers. Between conversions, LLVM would move one of f32 to f16, which takes 50 times as
long, because few processors have vectors of it.
"""

from __future__ import annotations

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ..core.builder import Builder, Value
from ..core.elements import decode, encode

MAGNITUDE = 0x7FFF
"""The bits of an f16 without its sign."""

NOT_A_NUMBER = 0x7C01
"""The least magnitude of a NaN, as bits of an f16."""


_NAMES = {Op.MAXIMUM: "maxsi", Op.MINIMUM: "minsi"}
_LAST = {Op.MAXIMUM: MAGNITUDE, Op.MINIMUM: ~MAGNITUDE}
"""The place of NaN in the order of numbers: at the end that the operation prefers."""


def maximum(b: Builder, x: Value, y: Value) -> Value:
    return of_key(b, best_key(b, Op.MAXIMUM, key(b, Op.MAXIMUM, x), key(b, Op.MAXIMUM, y)))


def minimum(b: Builder, x: Value, y: Value) -> Value:
    return of_key(b, best_key(b, Op.MINIMUM, key(b, Op.MINIMUM, x), key(b, Op.MINIMUM, y)))


def key(b: Builder, op: Op, x: Value) -> Value:
    """The integer by which numbers are compared for this MAXIMUM or MINIMUM."""
    return _place(b, encode(b, DType.F16, x), _LAST[op])


def best_key(b: Builder, op: Op, x: Value, y: Value) -> Value:
    return b.binary(_NAMES[op], x, y)


def of_key(b: Builder, x: Value) -> Value:
    """The number of a key."""
    result = decode(b, DType.F16, _mirrored(b, x))
    assert not isinstance(result, tuple)
    return result


def clamp(b: Builder, low: Value, x: Value, high: Value) -> Value:
    return minimum(b, maximum(b, x, low), high)


def _place(b: Builder, raw: Value, nan: int) -> Value:
    is_nan = b.compare_integers("uge", b.binary("andi", raw, MAGNITUDE), b.like(NOT_A_NUMBER, raw))
    return b.select(is_nan, b.like(nan, raw), _mirrored(b, raw))


def _mirrored(b: Builder, raw: Value) -> Value:
    """Sign and magnitude as two's complement, where −0 is −1, and back."""
    return b.binary("xori", raw, b.binary("andi", b.binary("shrsi", raw, 15), MAGNITUDE))
