"""A maximum or minimum over many floats as three chains, each of which LLVM turns into a vector reduction.

`llvm.maximum` takes about six dependent instructions on x86, because of NaN and of the sign of zero. So one chain
ignores both, one notes whether there was a NaN, and one combines the signs. The signs matter only if the result is
zero: a maximum is −0 if all signs are set, a minimum if any is.
"""

from __future__ import annotations

from llvmlite import ir

from ..hlo.opcodes import Op
from .builder import Code

_IGNORED = ("nnan", "nsz")


def is_long(code: Code, bits: int, length: int) -> bool:
    """Whether `length` elements fill a vector; LLVM makes no vector reduction of fewer."""
    return length >= code.lanes(bits)


def open_chains(code: Code, value: ir.Value) -> list[ir.Value]:
    """The initial accumulators, from a first value."""
    b = code.b
    return [value, b.bitcast(value, _bits(value)), b.fcmp_unordered("uno", value, value)]


def combine_chains(code: Code, op: Op, chains: list[ir.Value], value: ir.Value) -> list[ir.Value]:
    """The accumulators after one more value. The first accumulator is poison after a NaN."""
    b, (best, signs, invalid) = code.b, chains
    better = b.fcmp_ordered(">" if op is Op.MAXIMUM else "<", best, value, flags=_IGNORED)
    bits = b.bitcast(value, signs.type)
    return [
        b.select(better, best, value, flags=_IGNORED),
        b.and_(signs, bits) if op is Op.MAXIMUM else b.or_(signs, bits),
        b.or_(invalid, b.fcmp_unordered("uno", value, value)),
    ]


def close_chains(code: Code, chains: list[ir.Value]) -> ir.Value:
    """The maximum or minimum; NaN if one of the values was NaN."""
    b, (best, signs, invalid) = code.b, chains
    type_ = signs.type
    is_zero = b.icmp_unsigned("==", b.shl(b.bitcast(best, type_), type_(1)), type_(0))
    zero = b.bitcast(b.and_(signs, type_(1 << (type_.width - 1))), best.type)
    return b.select(invalid, best.type(float("nan")), b.select(is_zero, zero, best))


def _bits(value: ir.Value) -> ir.IntType:
    return ir.IntType(64 if isinstance(value.type, ir.DoubleType) else 32)
