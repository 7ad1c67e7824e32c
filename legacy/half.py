"""Maxima and minima of f16 by its bits as integers: before AVX512-FP16 no instruction makes them of vectors of f16, and
where the neighbours of one in f32 are conversions, LLVM computes it in f16: by elements, 50 times as slow.
"""

from __future__ import annotations

from typing import TypeAlias

from llvmlite import ir

from ..hlo.opcodes import Op
from .builder import Code

V: TypeAlias = ir.Value
I16 = ir.IntType(16)
HALF = ir.HalfType()

INFINITY = 0x7C00
LARGEST, SMALLEST = 0x7FFF, -0x8000
"""Keys of NaN, which a maximum or a minimum of anything with NaN is."""


def ordered(code: Code, opcode: Op, values: list[V]) -> V:
    """MAXIMUM or MINIMUM of two, or CLAMP of (low, x, high)."""
    if opcode is Op.CLAMP:
        low, x, high = values
        return _chosen(code, False, _chosen(code, True, low, x), high)
    return _chosen(code, opcode is Op.MAXIMUM, *values)


OPS = frozenset({Op.MAXIMUM, Op.MINIMUM, Op.CLAMP})


def _chosen(code: Code, largest: bool, x: V, y: V) -> V:
    nan = I16(LARGEST if largest else SMALLEST)
    chosen = code.intrinsic(f"llvm.{'smax' if largest else 'smin'}.i16", I16, [_key(code, v, nan) for v in (x, y)])
    return code.b.bitcast(_turned(code, chosen), HALF)


def _key(code: Code, x: V, nan: V) -> V:
    """An integer in the order of numbers, −0 before 0."""
    b = code.b
    bits = b.bitcast(x, I16)
    is_nan = b.icmp_unsigned(">", b.and_(bits, I16(LARGEST)), I16(INFINITY))
    return b.select(is_nan, nan, _turned(code, bits))


def _turned(code: Code, bits: V) -> V:
    """Negative numbers the other way round; its own inverse."""
    b = code.b
    return b.xor(bits, b.and_(b.ashr(bits, I16(15)), I16(LARGEST)))
