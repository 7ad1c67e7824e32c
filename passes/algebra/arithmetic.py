"""Rules for arithmetic: sums, products, quotients, powers, signs and rounding.

Floats: x + 0 → x is wrong for x = -0, unless the zero is -0; x · 0, x - x and x / x are never folded, because of NaN
and infinities. Integers wrap, so that their sums and products may be taken in any order.
"""

from __future__ import annotations

import math

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..building import Builder
from ..cleanup.constant_folding import number_of
from .ranges import range_of
from .rule import integer_of, is_exact, is_known, is_number, is_zero, number, rule, swaps

ROUNDINGS = (Op.FLOOR, Op.CEIL, Op.ROUND_NEAREST_EVEN, Op.ROUND_NEAREST_AFZ)
BINARY_FLOATS = {DType.F16: 14, DType.BF16: 100, DType.F32: 100, DType.F64: 100}
"""Float types in which x / 2^k becomes x · 2^-k, with the largest |k| for which both powers are normal numbers."""


def add_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x + 0 → x for integers; x + -0 → x for floats, even if x = -0."""
    for x, y in swaps(i):
        if (i.shape.dtype.is_integer and is_zero(y)) or (i.shape.dtype.is_float and is_number(y, -0.0)):
            return x
    return None


def add_negated(i: Instruction, b: Builder) -> Instruction | None:
    """x + -y → x - y."""
    if i.shape.dtype.is_complex or i.shape.dtype is DType.PRED:
        return None
    for x, y in swaps(i):
        if y.opcode is Op.NEGATE:
            return b.binary(Op.SUBTRACT, x, y.operands[0])
    return None


def subtract_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x - 0 → x, if the zero is positive."""
    x, y = i.operands
    dtype = i.shape.dtype
    return x if (dtype.is_integer and is_zero(y)) or (dtype.is_float and is_number(y, 0.0)) else None


def subtract_itself(i: Instruction, b: Builder) -> Instruction | None:
    """x - x → 0 for integers."""
    return number(b, 0, i) if i.operands[0] is i.operands[1] and i.shape.dtype.is_integer else None


def subtract_negated(i: Instruction, b: Builder) -> Instruction | None:
    """x - -y → x + y."""
    x, y = i.operands
    plain = y.opcode is Op.NEGATE and not i.shape.dtype.is_complex
    return b.binary(Op.ADD, x, y.operands[0]) if plain else None


def subtract_constant(i: Instruction, b: Builder) -> Instruction | None:
    """(x + c) - d → x + (c - d) for integers."""
    x, d = i.operands
    if not i.shape.dtype.is_integer or x.opcode is not Op.ADD or not is_known(d):
        return None
    for y, c in swaps(x):
        if is_known(c) and not is_known(y):
            return b.binary(Op.ADD, y, b.binary(Op.SUBTRACT, c, d))
    return None


def gather_constants(i: Instruction, b: Builder) -> Instruction | None:
    """(x · c) · d → x · (c · d) for integers, where · is add, multiply, and, or, xor."""
    if not is_exact(i.shape.dtype):
        return None
    for x, d in swaps(i):
        if x.opcode is i.opcode and is_known(d):
            for y, c in swaps(x):
                if is_known(c) and not is_known(y):
                    return b.binary(i.opcode, y, b.binary(i.opcode, c, d))
    return None


def multiply_one(i: Instruction, b: Builder) -> Instruction | None:
    """x · 1 → x."""
    if i.shape.dtype.is_complex:
        return None
    return next((x for x, y in swaps(i) if is_number(y, 1)), None)


def multiply_zero(i: Instruction, b: Builder) -> Instruction | None:
    """x · 0 → 0 for integers."""
    return next((o for o in i.operands if i.shape.dtype.is_integer and is_zero(o)), None)


def multiply_minus_one(i: Instruction, b: Builder) -> Instruction | None:
    """x · -1 → -x."""
    if i.shape.dtype.is_complex or i.shape.dtype.is_unsigned:
        return None
    return next((b.unary(Op.NEGATE, x) for x, y in swaps(i) if is_number(y, -1)), None)


def multiply_negated(i: Instruction, b: Builder) -> Instruction | None:
    """-x · -y → x · y, and the same for quotients of floats."""
    x, y = i.operands
    if x.opcode is not Op.NEGATE or y.opcode is not Op.NEGATE or i.shape.dtype.is_complex:
        return None
    if i.opcode is Op.DIVIDE and not i.shape.dtype.is_float:
        return None
    return b.binary(i.opcode, x.operands[0], y.operands[0])


def negated_factor(i: Instruction, b: Builder) -> Instruction | None:
    """-x · c → x · -c, and the same for quotients of floats, with the constant on either side."""
    x, y = i.operands
    if i.shape.dtype.is_complex or (i.opcode is Op.DIVIDE and not i.shape.dtype.is_float):
        return None
    if x.opcode is Op.NEGATE and is_known(y):
        return b.binary(i.opcode, x.operands[0], b.unary(Op.NEGATE, y))
    return b.binary(i.opcode, b.unary(Op.NEGATE, x), y.operands[0]) if y.opcode is Op.NEGATE and is_known(x) else None


def negated_product(i: Instruction, b: Builder) -> Instruction | None:
    """-(x · c) → x · -c, if the product has no other use; the same for quotients of floats."""
    inner = i.operands[0]
    if inner.opcode not in (Op.MULTIPLY, Op.DIVIDE) or i.shape.dtype.is_complex or not b.is_sole(inner):
        return None
    if inner.opcode is Op.DIVIDE and not i.shape.dtype.is_float:
        return None
    x, y = inner.operands
    if is_known(y):
        return b.binary(inner.opcode, x, b.unary(Op.NEGATE, y))
    return b.binary(inner.opcode, b.unary(Op.NEGATE, x), y) if is_known(x) else None


def square_of_magnitude(i: Instruction, b: Builder) -> Instruction | None:
    """|x| · |x| and -x · -x → x · x."""
    x, y = i.operands
    if x is not y or x.opcode not in (Op.ABS, Op.NEGATE) or x.operands[0].shape.dtype.is_complex:
        return None
    return b.binary(Op.MULTIPLY, x.operands[0], x.operands[0])


def factor_out(i: Instruction, b: Builder) -> Instruction | None:
    """x · c ± y · c → (x ± y) · c for integers, if the products have no other use."""
    p, q = i.operands
    if not i.shape.dtype.is_integer or p.opcode is not Op.MULTIPLY or q.opcode is not Op.MULTIPLY or p is q:
        return None
    if not b.is_sole(p) or not b.is_sole(q):
        return None
    for x, c in swaps(p):
        for y, d in swaps(q):
            if c is d:
                return b.binary(Op.MULTIPLY, b.binary(i.opcode, x, y), c)
    return None


def divide_one(i: Instruction, b: Builder) -> Instruction | None:
    """x / 1 → x."""
    return i.operands[0] if is_number(i.operands[1], 1) and not i.shape.dtype.is_complex else None


def divide_minus_one(i: Instruction, b: Builder) -> Instruction | None:
    """x / -1 → -x."""
    dtype = i.shape.dtype
    plain = dtype.is_signed or dtype.is_float
    return b.unary(Op.NEGATE, i.operands[0]) if plain and is_number(i.operands[1], -1) else None


def divide_power_of_two(i: Instruction, b: Builder) -> Instruction | None:
    """x / 2^k → x · 2^-k, if both powers are normal numbers."""
    by = number_of(i.operands[1])
    if by is None or i.shape.dtype not in BINARY_FLOATS:
        return None
    value = float(by)
    if not math.isfinite(value) or value == 0 or abs(math.frexp(value)[0]) != 0.5 or value in (1, -1):
        return None
    if abs(math.log2(abs(value))) > BINARY_FLOATS[i.shape.dtype]:
        return None
    return b.binary(Op.MULTIPLY, i.operands[0], 1 / value)


def unsigned_divide_power_of_two(i: Instruction, b: Builder) -> Instruction | None:
    """x / 2^k → x >> k for integers that are never negative."""
    value = integer_of(i.operands[1]) if i.shape.dtype.is_integer and i.shape.dtype.bits >= 8 else None
    if value is None or value < 2 or value & (value - 1) or range_of(i.operands[0])[0] < 0:
        return None
    return b.binary(Op.SHIFT_RIGHT_LOGICAL, i.operands[0], value.bit_length() - 1)


def divide_in_range(i: Instruction, b: Builder) -> Instruction | None:
    """x / c → 0 for integers with 0 ≤ x < c."""
    value = integer_of(i.operands[1]) if i.shape.dtype.is_integer else None
    if value is None or value < 1 or not i.shape.size:
        return None
    low, high = range_of(i.operands[0])
    return number(b, 0, i) if low >= 0 and high < value else None


def unsigned_remainder_power_of_two(i: Instruction, b: Builder) -> Instruction | None:
    """x % 2^k → x and (2^k - 1) for integers that are never negative."""
    value = integer_of(i.operands[1]) if i.shape.dtype.is_integer and i.shape.dtype.bits >= 8 else None
    if value is None or value < 1 or value & (value - 1) or range_of(i.operands[0])[0] < 0:
        return None
    return b.binary(Op.AND, i.operands[0], value - 1)


def remainder_one(i: Instruction, b: Builder) -> Instruction | None:
    """x % 1 and x % -1 → 0 for integers."""
    return number(b, 0, i) if integer_of(i.operands[1]) in (1, -1) else None


def remainder_in_range(i: Instruction, b: Builder) -> Instruction | None:
    """x % c → x for integers with -c < x < c."""
    value = integer_of(i.operands[1])
    if value is None or value < 1 or not i.shape.size:
        return None
    low, high = range_of(i.operands[0])
    return i.operands[0] if -value < low and high < value else None


def power_zero_or_one(i: Instruction, b: Builder) -> Instruction | None:
    """x^0 → 1; 1^x → 1 for floats; x^1 → x."""
    x, y = i.operands
    if i.shape.dtype.is_complex:
        return None
    if is_zero(y) or (is_number(x, 1) and i.shape.dtype.is_float):
        return number(b, 1, i)
    return x if is_number(y, 1) else None


def power_integer(i: Instruction, b: Builder) -> Instruction | None:
    """x^2, x^3 and x^4 → products, for integers."""
    exponent = integer_of(i.operands[1])
    return _product(b, i.operands[0], exponent) if exponent in (2, 3, 4) else None


def power_small(i: Instruction, b: Builder) -> Instruction | None:
    """x^2, x^3 and x^4 → products, x^-1 → a quotient, for floats. Narrow ones are rounded once: in f32 before."""
    exponent = number_of(i.operands[1]) if i.shape.dtype in BINARY_FLOATS else None
    if exponent is None or exponent not in (-1, 2, 3, 4):
        return None
    x, narrow = i.operands[0], i.shape.dtype.bits < 32
    if narrow and exponent in (3, 4):
        return b.convert(_product(b, b.convert(x, DType.F32), int(exponent)), i.shape.dtype)
    return b.binary(Op.DIVIDE, number(b, 1, i), x) if exponent == -1 else _product(b, x, int(exponent))


def power_half(i: Instruction, b: Builder) -> Instruction | None:
    """x^0.5 → sqrt(x + 0), x^-0.5 → rsqrt(x + 0), for floats: of -0 as of 0; ∞ and 0 of -∞."""
    exponent = number_of(i.operands[1]) if i.shape.dtype in BINARY_FLOATS else None
    if exponent is None or exponent not in (0.5, -0.5):
        return None
    x, root_of = i.operands[0], Op.SQRT if exponent == 0.5 else Op.RSQRT
    if is_never_negative(x):
        return b.unary(root_of, x)
    root = b.unary(root_of, b.binary(Op.ADD, x, number(b, 0, i)))
    below = b.compare(x, "EQ", number(b, -math.inf, i))
    return b.select(below, number(b, math.inf if exponent == 0.5 else 0, i), root)


def power_complex(i: Instruction, b: Builder) -> Instruction | None:
    """x^1 → x, x^2 and x^3 → products, for complex numbers, as in XLA: exact where the polar form rounds the angle."""
    exponent = number_of(i.operands[1]) if i.shape.dtype.is_complex else None
    if exponent is None or exponent not in (1, 2, 3):
        return None
    return i.operands[0] if exponent == 1 else _product(b, i.operands[0], int(exponent.real))


def _product(b: Builder, x: Instruction, count: int) -> Instruction:
    square = b.binary(Op.MULTIPLY, x, x)
    return square if count == 2 else b.binary(Op.MULTIPLY, square, x if count == 3 else square)


def twice(i: Instruction, b: Builder) -> Instruction | None:
    """--x and ~~x → x."""
    inner = i.operands[0]
    return inner.operands[0] if inner.opcode is i.opcode else None


def negated_difference(i: Instruction, b: Builder) -> Instruction | None:
    """-(x - y) → y - x for integers."""
    inner = i.operands[0]
    if inner.opcode is not Op.SUBTRACT or not i.shape.dtype.is_integer or not b.is_sole(inner):
        return None
    return b.binary(Op.SUBTRACT, inner.operands[1], inner.operands[0])


def idempotent(i: Instruction, b: Builder) -> Instruction | None:
    """f(f(x)) → f(x) for abs and sign."""
    same = i.operands[0].opcode is i.opcode and not i.operands[0].operands[0].shape.dtype.is_complex
    return i.operands[0] if same else None


def rounded_twice(i: Instruction, b: Builder) -> Instruction | None:
    """round(round(x)) → the inner rounding, for any of floor, ceil, round-nearest."""
    return i.operands[0] if i.operands[0].opcode in ROUNDINGS else None


def rounded_integer(i: Instruction, b: Builder) -> Instruction | None:
    """round(convert(n)) → convert(n), for an integer or pred n."""
    inner = i.operands[0]
    return inner if inner.opcode is Op.CONVERT and is_exact(inner.operands[0].shape.dtype) else None


def abs_of_negated(i: Instruction, b: Builder) -> Instruction | None:
    """|-x| → |x|."""
    inner = i.operands[0]
    plain = inner.opcode is Op.NEGATE and not inner.shape.dtype.is_complex
    return b.unary(Op.ABS, inner.operands[0]) if plain else None


def abs_of_what_is_not_negative(i: Instruction, b: Builder) -> Instruction | None:
    """|x| → x, if x is exp(y), logistic(y) or y · y of floats, or an integer that is never negative."""
    x = i.operands[0]
    if x.shape.dtype.is_float:
        return x if x.opcode is not Op.ABS and is_never_negative(x) else None
    return x if x.shape.dtype.is_integer and range_of(x)[0] >= 0 else None


def is_never_negative(x: Instruction) -> bool:
    """Whether a float's sign is never set, but of a NaN."""
    square = x.opcode is Op.MULTIPLY and x.operands[0] is x.operands[1]
    return square or x.opcode in (Op.ABS, Op.EXPONENTIAL, Op.LOGISTIC)


RULES = (
    rule(Op.ADD, add_zero),
    rule(Op.ADD, add_negated),
    rule((Op.ADD, Op.SUBTRACT), factor_out),
    rule((Op.ADD, Op.MULTIPLY, Op.AND, Op.OR, Op.XOR), gather_constants),
    rule(Op.SUBTRACT, subtract_zero),
    rule(Op.SUBTRACT, subtract_itself),
    rule(Op.SUBTRACT, subtract_negated),
    rule(Op.SUBTRACT, subtract_constant),
    rule(Op.MULTIPLY, multiply_one),
    rule(Op.MULTIPLY, multiply_zero),
    rule(Op.MULTIPLY, multiply_minus_one),
    rule(Op.MULTIPLY, square_of_magnitude),
    rule((Op.MULTIPLY, Op.DIVIDE), multiply_negated),
    rule((Op.MULTIPLY, Op.DIVIDE), negated_factor),
    rule(Op.DIVIDE, divide_one),
    rule(Op.DIVIDE, divide_minus_one),
    rule(Op.DIVIDE, divide_power_of_two),
    rule(Op.DIVIDE, divide_in_range),
    rule(Op.DIVIDE, unsigned_divide_power_of_two),
    rule(Op.REMAINDER, remainder_one),
    rule(Op.REMAINDER, remainder_in_range),
    rule(Op.REMAINDER, unsigned_remainder_power_of_two),
    rule(Op.POWER, power_zero_or_one),
    rule(Op.POWER, power_integer),
    rule(Op.POWER, power_small, "products round after each factor, pow once", 4),
    rule(Op.POWER, power_half, "the root rounds, then its reciprocal, pow once", 4),
    rule(Op.POWER, power_complex, "the polar form rounds logarithm and angle", 32),
    rule((Op.NEGATE, Op.NOT), twice),
    rule(Op.NEGATE, negated_difference),
    rule(Op.NEGATE, negated_product),
    rule((Op.ABS, Op.SIGN), idempotent),
    rule(Op.ABS, abs_of_negated),
    rule(Op.ABS, abs_of_what_is_not_negative),
    rule(ROUNDINGS, rounded_twice),
    rule(ROUNDINGS, rounded_integer),
)
