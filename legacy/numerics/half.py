"""Maxima and minima of f16 by its bits as integers: before AVX512-FP16 no instruction makes them of vectors of f16, and
where the neighbours of one in f32 are conversions, LLVM computes it in f16: by elements, 50 times as slow.
"""

from __future__ import annotations

from ...hlo.opcodes import Op
from ..core.builder import Code
from ..core.registers import HALF, I16, V

INFINITY = 0x7C00
LARGEST, SMALLEST = 0x7FFF, -0x8000
"""Keys of NaN, which a maximum or a minimum of anything with NaN is."""


def ordered(code: Code, opcode: Op, values: list[V]) -> V:
    """MAXIMUM or MINIMUM of two, or CLAMP of (low, x, high)."""
    if opcode is Op.CLAMP:
        low, x, high = values
        return _chosen(code, Op.MINIMUM, _chosen(code, Op.MAXIMUM, low, x), high)
    return _chosen(code, opcode, *values)


OPS = frozenset({Op.MAXIMUM, Op.MINIMUM, Op.CLAMP})


def key_of(code: Code, opcode: Op, x: V) -> V:
    """An integer in the order of numbers, −0 before 0, and NaN where the MAXIMUM or MINIMUM finds it."""
    b = code.b
    bits = b.bitcast(x, I16)
    is_nan = b.icmp_unsigned(">", b.and_(bits, I16(LARGEST)), I16(INFINITY))
    return b.select(is_nan, I16(LARGEST if opcode is Op.MAXIMUM else SMALLEST), _turned(code, bits))


def best_key(code: Code, opcode: Op, x: V, y: V) -> V:
    return code.intrinsic(f"llvm.{'smax' if opcode is Op.MAXIMUM else 'smin'}.i16", I16, [x, y])


def of_key(code: Code, key: V) -> V:
    """The number of a key."""
    return code.b.bitcast(_turned(code, key), HALF)


def _chosen(code: Code, opcode: Op, x: V, y: V) -> V:
    return of_key(code, best_key(code, opcode, key_of(code, opcode, x), key_of(code, opcode, y)))


def _turned(code: Code, bits: V) -> V:
    """Negative numbers the other way round; its own inverse."""
    b = code.b
    return b.xor(bits, b.and_(b.ashr(bits, I16(15)), I16(LARGEST)))
