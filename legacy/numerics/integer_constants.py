"""Quotients of vectors of 64-bit integers by constants: products of halves, because processors multiply vectors of 32
bits to 64, and LLVM makes of such a quotient one product of 128 bits for each element.
"""

from __future__ import annotations

from llvmlite import ir

from ..core.builder import Code
from ..core.registers import I64, V

BITS = 64
HALF = (1 << 32) - 1


def takes(x: V, divisor: int, signed: bool) -> bool:
    """Whether `quotient` takes the constant. Of a positive power of two LLVM makes shifts of vectors."""
    if not _may_be_long(x):
        return False
    size = abs(divisor) if signed else divisor % (1 << BITS)
    if size < 2 or size == 1 << 63:
        return False
    return (divisor < 0 and signed) or size & (size - 1) != 0


def _may_be_long(x: V) -> bool:
    """Whether x is made of numbers of 64 bits in memory. Of counters and shorter ones LLVM finds how large they are,
    and divides 32 bits, of which processors have vectors.
    """
    seen, waiting = set[int](), [x]
    while waiting:
        value = waiting.pop()
        if value.type != I64 or id(value) in seen or isinstance(value, ir.Constant) or _opcode(value) in COUNTED:
            continue
        if _opcode(value) not in ARITHMETIC:
            return True
        seen.add(id(value))
        waiting += value.operands
    return False


def _opcode(value: V) -> str:
    return value.opname if isinstance(value, ir.Instruction) else ""


COUNTED = {"zext", "sext", "phi"}
ARITHMETIC = {"add", "sub", "mul", "select", "and", "or", "xor", "shl", "lshr", "ashr", "sdiv", "udiv", "srem", "urem"}


def reciprocal(divisor: int, largest: int) -> tuple[int, int] | None:
    """(m, s) with x // divisor = (x·m) >> (64 + s) for all x up to `largest`, and m of 64 bits, if there are.

    m is 2^(64 + s) / divisor, rounded up. What that adds to a product must not carry into the next integer.
    """
    shift = divisor.bit_length() - 1  # the largest of those whose m has 64 bits
    unit = 1 << (BITS + shift)
    factor = -(-unit // divisor)
    return (factor, shift) if (factor * divisor - unit) * largest < unit else None


def quotient(code: Code, x: V, divisor: int, signed: bool) -> V:
    """x / divisor, towards zero, for a divisor that `takes` is true of."""
    b = code.b
    if not signed:
        return _unsigned(code, x, divisor % (1 << BITS))
    sign = b.ashr(x, I64(63))
    size = b.sub(b.xor(x, sign), sign)
    found = abs(divisor)
    if found & (found - 1) == 0:
        result = b.lshr(size, I64(found.bit_length() - 1))
    else:
        pair = reciprocal(found, 1 << 63)
        assert pair is not None, "a number of 63 bits has a factor of 64"
        result = b.lshr(_upper(code, size, pair[0]), I64(pair[1]))
    turned = b.xor(sign, I64(-1)) if divisor < 0 else sign
    return b.sub(b.xor(result, turned), turned)


def _unsigned(code: Code, x: V, divisor: int) -> V:
    b, largest = code.b, (1 << BITS) - 1
    if found := reciprocal(divisor, largest):
        return b.lshr(_upper(code, x, found[0]), I64(found[1]))
    even = (divisor & -divisor).bit_length() - 1
    if even:  # a number without its lowest bits has a factor of 64
        found = reciprocal(divisor >> even, largest >> even)
        assert found is not None
        return b.lshr(_upper(code, b.lshr(x, I64(even)), found[0]), I64(found[1]))
    shift = divisor.bit_length()  # the factor has a bit more than 64, which stands for x itself: (x + t) / 2, t below x
    factor = -(-(1 << (BITS + shift)) // divisor)
    part = _upper(code, x, factor - (1 << BITS))
    return b.lshr(b.add(part, b.lshr(b.sub(x, part), I64(1))), I64(shift - 1))


def _upper(code: Code, x: V, factor: int) -> V:
    """The upper 64 bits of the product with an unsigned constant."""
    b = code.b
    low, high = b.and_(x, I64(HALF)), b.lshr(x, I64(32))
    small, large = I64(factor & HALF), I64(factor >> 32)
    first = b.add(b.mul(high, small), b.lshr(b.mul(low, small), I64(32)))
    second = b.add(b.mul(low, large), b.and_(first, I64(HALF)))
    return b.add(b.mul(high, large), b.add(b.lshr(first, I64(32)), b.lshr(second, I64(32))))
