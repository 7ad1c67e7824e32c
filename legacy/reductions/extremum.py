"""A maximum or minimum over many floats as three chains, each of which LLVM turns into a vector reduction.

`llvm.maximum` takes about six dependent instructions on x86, because of NaN and of the sign of zero. So one chain
ignores both, one notes whether there was a NaN, and one combines the signs. The signs matter only if the result is
zero: a maximum is −0 if all signs are set, a minimum if any is. Columns have the first and the last only.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import zip_longest

from llvmlite import ir

from ...hlo.opcodes import Op
from ..core.builder import Code
from ..core.view import View

_IGNORED = ("nnan", "nsz")


def is_long(view: View, bits: int, length: int) -> bool:
    """Whether `length` elements fill a vector; LLVM makes no vector reduction of fewer."""
    return length >= view.lanes(bits)


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


def join_chains(code: Code, op: Op, first: list[ir.Value], second: list[ir.Value]) -> list[ir.Value]:
    """The accumulators of the values of both."""
    b, (best, signs, invalid), (other, others, another) = code.b, first, second
    better = b.fcmp_ordered(">" if op is Op.MAXIMUM else "<", best, other, flags=_IGNORED)
    join = b.and_ if op is Op.MAXIMUM else b.or_
    return [b.select(better, best, other, flags=_IGNORED), join(signs, others), b.or_(invalid, another)]


def close_chains(code: Code, chains: list[ir.Value]) -> ir.Value:
    """The maximum or minimum; NaN if one of the values was NaN."""
    best, signs, invalid = chains
    return code.b.select(invalid, best.type(float("nan")), _with_sign(code, best, signs))


def open_pair(code: Code, value: ir.Value) -> list[ir.Value]:
    """The initial accumulators of a column, from a first value."""
    return [value, code.b.bitcast(value, _bits(value))]


def combine_rows(code: Code, op: Op, pair: list[ir.Value], values: Sequence[ir.Value]) -> list[ir.Value]:
    """A column's accumulators after values of several rows. The first is NaN from the first one on: it compares with
    nothing. So one comparison for NaN suffices for two rows, and rows need no order among themselves.
    """
    b, (best, signs), order = code.b, pair, ">" if op is Op.MAXIMUM else "<"
    top = values[0]
    for value in values[1:]:
        top = b.select(b.fcmp_ordered(order, value, top), value, top)
    best = b.select(b.fcmp_ordered(order, top, best), top, best)
    tests = [b.fcmp_unordered("uno", x, y) for x, y in zip_longest(values[::2], values[1::2], fillvalue=values[0])]
    best = b.select(functools.reduce(b.or_, tests), best.type(float("nan")), best)
    join = b.and_ if op is Op.MAXIMUM else b.or_
    return [best, functools.reduce(join, [b.bitcast(value, signs.type) for value in values], signs)]


def close_pair(code: Code, pair: Sequence[ir.Value]) -> ir.Value:
    """The maximum or minimum of a column."""
    best, signs = pair
    return _with_sign(code, best, signs)


def _with_sign(code: Code, best: ir.Value, signs: ir.Value) -> ir.Value:
    """The best value, whose sign, where it is zero, is that of all values."""
    b, type_ = code.b, signs.type
    is_zero = b.icmp_unsigned("==", b.shl(b.bitcast(best, type_), type_(1)), type_(0))
    zero = b.bitcast(b.and_(signs, type_(1 << (type_.width - 1))), best.type)
    return b.select(is_zero, zero, best)


def _bits(value: ir.Value) -> ir.IntType:
    return ir.IntType(64 if isinstance(value.type, ir.DoubleType) else 32)
