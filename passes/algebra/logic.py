"""Rules for bits and comparisons: and, or, xor, not, shifts, compare."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..building import Builder
from .ranges import Range, range_of
from .rule import (
    EXTREMES,
    integer_of,
    is_exact,
    is_known,
    is_number,
    is_ones,
    is_zero,
    number,
    rule,
    swaps,
    truth,
    truth_of,
)

BITWISE = (Op.AND, Op.OR)
SHIFTS = (Op.SHIFT_LEFT, Op.SHIFT_RIGHT_LOGICAL, Op.SHIFT_RIGHT_ARITHMETIC)
OTHER = {Op.AND: Op.OR, Op.OR: Op.AND, Op.MINIMUM: Op.MAXIMUM, Op.MAXIMUM: Op.MINIMUM}
OPPOSITE = {"EQ": "NE", "NE": "EQ", "LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT"}


def same_operands(i: Instruction, b: Builder) -> Instruction | None:
    """x op x → x, for and, or, minimum, maximum."""
    return i.operands[0] if i.operands[0] is i.operands[1] else None


def logic_known(i: Instruction, b: Builder) -> Instruction | None:
    """x and true, x or false → x; x and false, x or true → the constant; the same for integers."""
    for x, y in swaps(i):
        known = truth_of(y)
        if known is None and y.shape.dtype.is_integer:
            known = True if is_ones(y) else False if is_zero(y) else None
        if known is not None:
            return x if known is (i.opcode is Op.AND) else y
    return None


def logic_of_negation(i: Instruction, b: Builder) -> Instruction | None:
    """x and not x → 0, x or not x → all ones."""
    for x, y in swaps(i):
        if y.opcode is Op.NOT and y.operands[0] is x:
            full = i.opcode is Op.OR
            return truth(b, full, i) if i.shape.dtype is DType.PRED else number(b, -1 if full else 0, i)
    return None


def absorb(i: Instruction, b: Builder) -> Instruction | None:
    """x and (x or y) → x, x and (x and y) → x and y; the same for or, and for minimum, maximum of integers."""
    if not is_exact(i.shape.dtype):
        return None
    for x, y in swaps(i):
        if y.opcode in (i.opcode, OTHER[i.opcode]) and any(o is x for o in y.operands):
            return y if y.opcode is i.opcode else x
    return None


def de_morgan(i: Instruction, b: Builder) -> Instruction | None:
    """not x and not y → not (x or y), not x or not y → not (x and y), if the negations have no other use."""
    x, y = i.operands
    if x.opcode is not Op.NOT or y.opcode is not Op.NOT or not b.is_sole(x) or not b.is_sole(y):
        return None
    return b.unary(Op.NOT, b.binary(OTHER[i.opcode], x.operands[0], y.operands[0]))


def xor_known(i: Instruction, b: Builder) -> Instruction | None:
    """x xor x → 0, x xor 0 → x, x xor all ones → not x."""
    for x, y in swaps(i):
        if x is y:
            return truth(b, False, i) if i.shape.dtype is DType.PRED else number(b, 0, i)
        if is_zero(y) or truth_of(y) is False:
            return x
        if is_ones(y) or truth_of(y):
            return b.unary(Op.NOT, x)
    return None


def not_of_compare(i: Instruction, b: Builder) -> Instruction | None:
    """not (x < y) → x ≥ y, if NaN is impossible; not (x = y) → x ≠ y."""
    inner = i.operands[0]
    if inner.opcode is not Op.COMPARE or not b.is_sole(inner):
        return None
    direction, dtype = inner.attributes["direction"], inner.operands[0].shape.dtype
    if not is_exact(dtype) and direction not in ("EQ", "NE") and inner.attributes.get("type") != "TOTALORDER":
        return None
    kept = {k: v for k, v in inner.attributes.items() if k == "type"}
    return b.compare(inner.operands[0], OPPOSITE[direction], inner.operands[1], **kept)


# --- shifts ----------------------------------------------------------------------------------------------------------


def shift_by_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x << 0, x >> 0, 0 << y and 0 >> y → the first operand."""
    return i.operands[0] if is_zero(i.operands[1]) or is_zero(i.operands[0]) else None


def shift_out(i: Instruction, b: Builder) -> Instruction | None:
    """x shifted by its width or more → 0, except for arithmetic shifts."""
    by = integer_of(i.operands[1])
    out = by is not None and (by < 0 or by >= i.shape.dtype.bits) and i.opcode is not Op.SHIFT_RIGHT_ARITHMETIC
    return number(b, 0, i) if out else None


def shift_twice(i: Instruction, b: Builder) -> Instruction | None:
    """(x << m) << n → x << (m + n), and the same for right shifts; m and n are each less than the width."""
    inner, by, bits = i.operands[0], integer_of(i.operands[1]), i.shape.dtype.bits
    if inner.opcode is not i.opcode or by is None or bits < 8:
        return None
    first = integer_of(inner.operands[1])
    if first is None or not (0 <= by < bits and 0 <= first < bits):
        return None
    if by + first < bits:
        return b.binary(i.opcode, inner.operands[0], by + first)
    return b.binary(i.opcode, inner.operands[0], bits - 1) if i.opcode is Op.SHIFT_RIGHT_ARITHMETIC else number(b, 0, i)


# --- compare ---------------------------------------------------------------------------------------------------------


def compare_itself(i: Instruction, b: Builder) -> Instruction | None:
    """compare(x, x) → a constant, if NaN is impossible: for integers, pred, and any type in total order."""
    x, y = i.operands
    if x is not y or not (is_exact(x.shape.dtype) or i.attributes.get("type") == "TOTALORDER"):
        return None
    return truth(b, i.attributes["direction"] in ("EQ", "LE", "GE"), i)


MIRRORED = {"EQ": "EQ", "NE": "NE", "LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE"}


def compare_negated(i: Instruction, b: Builder) -> Instruction | None:
    """-x < -y → x > y, -x < c → x > -c, for floats, the same for other directions; not in total order."""
    x, y = i.operands
    if not x.shape.dtype.is_float or i.attributes.get("type") == "TOTALORDER" or Op.NEGATE not in (x.opcode, y.opcode):
        return None
    if not all(o.opcode is Op.NEGATE or is_known(o) for o in (x, y)):
        return None
    x, y = (o.operands[0] if o.opcode is Op.NEGATE else b.unary(Op.NEGATE, o) for o in (x, y))
    kept = {k: v for k, v in i.attributes.items() if k == "type"}
    return b.compare(x, MIRRORED[i.attributes["direction"]], y, **kept)


def compare_ranges(i: Instruction, b: Builder) -> Instruction | None:
    """A comparison of integers whose ranges decide it → a constant: u < 0, iota < n, a remainder, a mask."""
    known = decided(i)
    return None if known is None else truth(b, known, i)


def decided(i: Instruction, known: Mapping[Instruction, Range] = MappingProxyType({})) -> bool | None:
    """The result of a comparison of integers, if it is the same for all elements and ranges decide it; else None.

    known: ranges that the caller knows already, by instruction.
    """
    x, y = i.operands
    if not x.shape.dtype.is_integer or not i.shape.size:
        return None
    (a, c), (d, e) = range_of(x, known=known), range_of(y, known=known)
    return _DECIDED[i.attributes["direction"]](a, c, d, e)


def _less(a: int, c: int, d: int, e: int) -> bool | None:
    return True if c < d else False if a >= e else None


def _less_or_equal(a: int, c: int, d: int, e: int) -> bool | None:
    return True if c <= d else False if a > e else None


def _equal(a: int, c: int, d: int, e: int) -> bool | None:
    return False if c < d or e < a else True if a == c == d == e else None


def _not(known: bool | None) -> bool | None:
    return None if known is None else not known


_DECIDED = {
    "LT": _less,
    "LE": _less_or_equal,
    "GT": lambda a, c, d, e: _less(d, e, a, c),
    "GE": lambda a, c, d, e: _less_or_equal(d, e, a, c),
    "EQ": _equal,
    "NE": lambda a, c, d, e: _not(_equal(a, c, d, e)),
}


def compare_with_truth(i: Instruction, b: Builder) -> Instruction | None:
    """p = true, p ≠ false → p; p = false, p ≠ true → not p."""
    direction = i.attributes["direction"]
    if direction not in ("EQ", "NE"):
        return None
    for x, y in swaps(i):
        known = truth_of(y)
        if known is not None:
            return x if known is (direction == "EQ") else b.unary(Op.NOT, x)
    return None


def compare_converted_truth(i: Instruction, b: Builder) -> Instruction | None:
    """convert(p) ≠ 0 → p, convert(p) = 0 → not p."""
    x, y = i.operands
    direction = i.attributes["direction"]
    if x.opcode is not Op.CONVERT or x.operands[0].shape.dtype is not DType.PRED or not is_number(y, 0.0):
        return None
    p = x.operands[0]
    return p if direction in ("NE", "GT") else b.unary(Op.NOT, p) if direction in ("EQ", "LE") else None


RULES = (
    rule((*BITWISE, *EXTREMES), same_operands),
    rule(BITWISE, logic_known),
    rule(BITWISE, logic_of_negation),
    rule((*BITWISE, *EXTREMES), absorb),
    rule(BITWISE, de_morgan),
    rule(Op.XOR, xor_known),
    rule(Op.NOT, not_of_compare),
    rule(SHIFTS, shift_by_zero),
    rule(SHIFTS, shift_out),
    rule(SHIFTS, shift_twice),
    rule(Op.COMPARE, compare_itself),
    rule(Op.COMPARE, compare_with_truth),
    rule(Op.COMPARE, compare_converted_truth),
    rule(Op.COMPARE, compare_ranges),
    rule(Op.COMPARE, compare_negated),
)
