"""Rules for select, minimum, maximum, clamp, and is-finite."""

from __future__ import annotations

import math

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..building import Builder
from ..cleanup.constant_folding import number_of, splat_of
from .ranges import range_of
from .rule import EXTREMES, integer_of, is_exact, is_known, is_zero, rule, swaps, truth, truth_of

# --- select ----------------------------------------------------------------------------------------------------------


def select_known(i: Instruction, b: Builder) -> Instruction | None:
    """select with a known test, or between x and x → the value."""
    test, x, y = i.operands
    if x is y:
        return x
    known = truth_of(test)
    return None if known is None else (x if known else y)


def select_of_not(i: Instruction, b: Builder) -> Instruction | None:
    """select(not p, x, y) → select(p, y, x)."""
    test, x, y = i.operands
    return b.select(test.operands[0], y, x) if test.opcode is Op.NOT else None


def select_same_test(i: Instruction, b: Builder) -> Instruction | None:
    """select(p, select(p, x, y), z) → select(p, x, z), and the same for the other value."""
    test, x, y = i.operands
    if x.opcode is Op.SELECT and x.operands[0] is test:
        return b.select(test, x.operands[1], y)
    return b.select(test, x, y.operands[2]) if y.opcode is Op.SELECT and y.operands[0] is test else None


def select_truth(i: Instruction, b: Builder) -> Instruction | None:
    """select of pred values, one of them known → p, not p, and, or."""
    test, x, y = i.operands
    if i.shape.dtype is not DType.PRED or test.shape.dims != i.shape.dims:
        return None
    yes, no = truth_of(x), truth_of(y)
    if yes is not None and no is not None:
        return x if yes is no else test if yes else b.unary(Op.NOT, test)
    if yes is not None:
        return b.binary(Op.OR, test, y) if yes else b.binary(Op.AND, b.unary(Op.NOT, test), y)
    if no is not None:
        return b.binary(Op.OR, b.unary(Op.NOT, test), x) if no else b.binary(Op.AND, test, x)
    return None


def select_extreme(i: Instruction, b: Builder) -> Instruction | None:
    """select(x < y, x, y) → minimum(x, y) for integers, and the same for the other directions."""
    test, x, y = i.operands
    if test.opcode is not Op.COMPARE or not x.shape.dtype.is_integer or test.shape.dims != i.shape.dims:
        return None
    if test.operands == (x, y):
        chosen = _EXTREME.get(test.attributes["direction"])
    elif test.operands == (y, x):
        chosen = {Op.MINIMUM: Op.MAXIMUM, Op.MAXIMUM: Op.MINIMUM}.get(
            _EXTREME.get(test.attributes["direction"], Op.ADD)
        )
    else:
        return None
    return b.binary(chosen, x, y) if chosen is not None else None


def select_of_update(i: Instruction, b: Builder) -> Instruction | None:
    """select(p, dynamic-update-slice(x, y, n), x) → dynamic-update-slice(x, select(p at n, y, x at n), n).

    The same mirrored. It costs as much as the part, not the whole array, where the update is in place.
    """
    test, *values = i.operands
    for k, (update, x) in enumerate((values, values[::-1])):
        if update.opcode is Op.DYNAMIC_UPDATE_SLICE and update.operands[0] is x and b.is_sole(update):
            y, *starts = update.operands[1:]
            old = b.dynamic_slice(x, starts, y.shape.dims)
            chosen = b.dynamic_slice(test, starts, y.shape.dims) if test.shape.dims else test
            part = b.select(chosen, old, y) if k else b.select(chosen, y, old)
            return b.dynamic_update_slice(x, part, starts)
    return None


_EXTREME = {"LT": Op.MINIMUM, "LE": Op.MINIMUM, "GT": Op.MAXIMUM, "GE": Op.MAXIMUM}


# --- minimum, maximum, clamp -----------------------------------------------------------------------------------------


def extreme_of_limit(i: Instruction, b: Builder) -> Instruction | None:
    """maximum(x, least value of the type) → x; minimum(x, least) → least except for floats; the same mirrored."""
    for x, y in swaps(i):
        side = _side(y)
        if side is not None and side is (i.opcode is Op.MAXIMUM):
            return x
        if side is not None and is_exact(y.shape.dtype):
            return y
    return None


def _side(x: Instruction) -> bool | None:
    """True for the least value of a type (-inf, INT_MIN, false), False for the greatest, None for any other."""
    if x.shape.dtype.is_float:
        limit = number_of(x)
        return float(limit) < 0 if limit is not None and math.isinf(float(limit)) else None
    if x.shape.dtype is DType.PRED:
        known = truth_of(x)
        return None if known is None else not known
    value = integer_of(x)
    if value is None or x.shape.dtype.bits < 2:
        return None
    signed, bits = x.shape.dtype.is_signed, x.shape.dtype.bits
    least, most = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return True if value == least else False if value == most else None


def extreme_in_range(i: Instruction, b: Builder) -> Instruction | None:
    """minimum, maximum of integers whose ranges decide it → the smaller or larger operand."""
    if not i.shape.dtype.is_integer or not i.shape.size:
        return None
    x, y = i.operands
    (a, c), (d, e) = range_of(x), range_of(y)
    low, high = (x, y) if c <= d else (y, x) if e <= a else (None, None)
    return low if i.opcode is Op.MINIMUM else high


def extreme_of_constants(i: Instruction, b: Builder) -> Instruction | None:
    """max(max(x, c), d) → max(x, max(c, d)), and the same for min."""
    if i.shape.dtype.is_complex:
        return None  # where one operand is NaN, the second is the result: the order matters
    for x, d in swaps(i):
        if x.opcode is i.opcode and is_known(d):
            for y, c in swaps(x):
                if is_known(c) and not is_known(y) and not (i.shape.dtype.is_float and (is_zero(c) or is_zero(d))):
                    return b.binary(i.opcode, y, b.binary(i.opcode, c, d))
    return None


def clamp_twice(i: Instruction, b: Builder) -> Instruction | None:
    """clamp(a, clamp(a, x, b), b) → clamp(a, x, b)."""
    inner = i.operands[1]
    same = inner.opcode is Op.CLAMP and inner.operands[0] is i.operands[0] and inner.operands[2] is i.operands[2]
    return inner if same else None


def clamp_of_clamp(i: Instruction, b: Builder) -> Instruction | None:
    """clamp(a, clamp(c, x, d), b) → clamp(clamp(a, c, b), x, clamp(a, d, b)), if the bounds are known and not 0."""
    inner = i.operands[1]
    if inner.opcode is not Op.CLAMP:
        return None
    known = [splat_of(o) for o in (i.operands[0], i.operands[2], inner.operands[0], inner.operands[2])]
    if i.shape.dtype.is_complex or any(o is None or (i.shape.dtype.is_float and is_zero(o)) for o in known):
        return None  # complex: where NaN is compared, the order matters
    low, high, first, last = (o for o in known if o is not None)
    limits = [b.op(Op.CLAMP, o.shape.without_layout(), low, o, high) for o in (first, last)]
    return b.op(Op.CLAMP, i.shape.without_layout(), limits[0], inner.operands[1], limits[1])


def clamp_in_range(i: Instruction, b: Builder) -> Instruction | None:
    """clamp(a, x, b) of integers whose ranges decide it → x if a ≤ x ≤ b, b if b ≤ a or b ≤ x, a if x ≤ a ≤ b."""
    low, x, high = i.operands
    if not i.shape.dtype.is_integer or not i.shape.size:
        return None
    (a, c), (d, e), (f, g) = range_of(low), range_of(x), range_of(high)
    if c <= d and e <= f:
        return x
    if g <= d or g <= a:
        return b.broadcast(high, i.shape.dims)
    return b.broadcast(low, i.shape.dims) if e <= a and c <= f else None


def is_finite_of_sign(i: Instruction, b: Builder) -> Instruction | None:
    """is-finite(-x), is-finite(|x|) → is-finite(x)."""
    inner = i.operands[0]
    plain = inner.opcode in (Op.NEGATE, Op.ABS) and inner.operands[0].shape.dtype is inner.shape.dtype
    return b.unary(Op.IS_FINITE, inner.operands[0], DType.PRED) if plain else None


def is_finite_integer(i: Instruction, b: Builder) -> Instruction | None:
    """is-finite(convert(n)) → true, if the float type reaches all values of the integer type."""
    inner = i.operands[0]
    if inner.opcode is not Op.CONVERT or not is_exact(inner.operands[0].shape.dtype):
        return None
    wide = inner.shape.dtype in (DType.F32, DType.F64, DType.BF16)
    narrow = inner.operands[0].shape.dtype.bits <= 8 and inner.shape.dtype is DType.F16
    return truth(b, True, i) if wide or narrow else None


RULES = (
    rule(Op.SELECT, select_known),
    rule(Op.SELECT, select_of_not),
    rule(Op.SELECT, select_same_test),
    rule(Op.SELECT, select_truth),
    rule(Op.SELECT, select_extreme),
    rule(Op.SELECT, select_of_update),
    rule(EXTREMES, extreme_of_limit),
    rule(EXTREMES, extreme_in_range),
    rule(EXTREMES, extreme_of_constants),
    rule(Op.CLAMP, clamp_twice),
    rule(Op.CLAMP, clamp_of_clamp),
    rule(Op.CLAMP, clamp_in_range),
    rule(Op.IS_FINITE, is_finite_of_sign),
    rule(Op.IS_FINITE, is_finite_integer),
)
