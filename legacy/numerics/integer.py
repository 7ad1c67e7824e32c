"""Integer arithmetic with XLA's special cases; no trap, no undefined behaviour. Arguments: (code, dtype, *values)."""

from __future__ import annotations

from llvmlite import ir

from ...codegen.field.element import active
from ...hlo.dtypes import DType
from ..core.builder import Code
from ..core.registers import BOOL, DOUBLE, V
from . import integer_constants


def negate(code: Code, dtype: DType, x: V) -> V:
    return code.b.sub(x.type(0), x)


def absolute(code: Code, dtype: DType, x: V) -> V:
    """|x|; |INT_MIN| is INT_MIN."""
    if not dtype.is_signed:
        return x
    return code.b.select(code.b.icmp_signed("<", x, x.type(0)), code.b.sub(x.type(0), x), x)


def sign(code: Code, dtype: DType, x: V) -> V:
    b = code.b
    positive = b.zext(b.icmp_signed("!=", x, x.type(0)), x.type)
    if not dtype.is_signed:
        return positive
    return b.select(b.icmp_signed("<", x, x.type(0)), x.type(-1), positive)


def invert(code: Code, dtype: DType, x: V) -> V:
    return code.b.xor(x, x.type(-1))


def invert_pred(code: Code, x: V) -> V:
    return code.b.xor(x, BOOL(1))


def _significant(code: Code, dtype: DType, x: V) -> V:
    """x without the sign extension of a sub-byte integer."""
    return code.b.and_(x, x.type((1 << dtype.bits) - 1)) if dtype.bits < 8 else x


def popcount(code: Code, dtype: DType, x: V) -> V:
    return code.intrinsic(f"llvm.ctpop.i{x.type.width}", x.type, [_significant(code, dtype, x)])


def leading_zeros(code: Code, dtype: DType, x: V) -> V:
    width = x.type.width
    zeros = code.intrinsic(f"llvm.ctlz.i{width}", x.type, [_significant(code, dtype, x), BOOL(0)])
    return code.b.sub(zeros, x.type(width - dtype.bits)) if width != dtype.bits else zeros


def _extremum(code: Code, dtype: DType, predicate: str, x: V, y: V) -> V:
    b = code.b
    return b.select((b.icmp_signed if dtype.is_signed else b.icmp_unsigned)(predicate, x, y), x, y)


def maximum(code: Code, dtype: DType, x: V, y: V) -> V:
    return _extremum(code, dtype, ">", x, y)


def minimum(code: Code, dtype: DType, x: V, y: V) -> V:
    return _extremum(code, dtype, "<", x, y)


def clamp(code: Code, dtype: DType, low: V, x: V, high: V) -> V:
    return minimum(code, dtype, maximum(code, dtype, x, low), high)


def _least(dtype: DType, x: V) -> V:
    return x.type(-(1 << (dtype.bits - 1)))


def divide(code: Code, dtype: DType, x: V, y: V) -> V:
    """x / y. x / 0 is -1 (all bits set); INT_MIN / -1 is INT_MIN."""
    b = code.b
    if _takes_products(code, dtype, x, y):
        return integer_constants.quotient(code, x, int(y.constant), dtype.is_signed)
    zero = b.icmp_signed("==", y, y.type(0))
    if not dtype.is_signed:
        return b.select(zero, x.type(-1), _quotient(code, dtype, x, y, b.select(zero, y.type(1), y)))
    overflow = b.and_(b.icmp_signed("==", x, _least(dtype, x)), b.icmp_signed("==", y, y.type(-1)))
    quotient = _quotient(code, dtype, x, y, b.select(b.or_(zero, overflow), y.type(1), y))
    return b.select(zero, x.type(-1), quotient)


def _quotient(code: Code, dtype: DType, x: V, y: V, divisor: V) -> V:
    """x by a divisor, y unless that would trap, towards zero."""
    b = code.b
    if _estimates(code, dtype, y):
        return _wide_quotient(code, dtype, x, divisor)[0]
    if not _divides_floats(code, dtype, y):
        return b.sdiv(x, divisor) if dtype.is_signed else b.udiv(x, divisor)
    wide = ir.FloatType() if dtype.bits <= 16 else ir.DoubleType()
    if dtype.is_signed:
        return b.fptosi(b.fdiv(b.sitofp(x, wide), b.sitofp(divisor, wide)), x.type)
    return b.fptoui(b.fdiv(b.uitofp(x, wide), b.uitofp(divisor, wide)), x.type)


def _divides_floats(code: Code, dtype: DType, y: V) -> bool:
    """Whether integers are divided as floats with more bits: exactly, because a quotient that is no integer is 1 / x of
    itself away from one at least. No processor divides vectors of integers; of a constant LLVM makes a product.
    """
    plain = code.view.by_element or active() is not None or isinstance(y, ir.Constant)
    return dtype.bits <= 32 and not plain


LESS = 1 - 2.0**-50
"""A reciprocal times this is below the exact one, by more than its own rounding errors and those of its products."""


MINIMUM_LANES_OF_ESTIMATES = 8
"""Lanes of a vector whose quotients are estimated together: fewer are divided sooner one by one."""


def _estimates(code: Code, dtype: DType, y: V) -> bool:
    """Whether a processor divides vectors of 64-bit integers sooner by estimates, for which it converts them to f64."""
    plain = code.view.by_element or active() is not None or isinstance(y, ir.Constant)
    view = code.view
    wide = view.processor.long_conversions and view.lanes(64) >= MINIMUM_LANES_OF_ESTIMATES
    return dtype.bits == 64 and wide and not plain


def _takes_products(code: Code, dtype: DType, x: V, y: V) -> bool:
    """Whether a quotient by y is a product of vectors here: LLVM multiplies 64-bit integers by elements for it."""
    return (
        dtype.bits == 64
        and code.view.vector_bits >= 256
        and not code.view.by_element
        and isinstance(y, ir.Constant)
        and integer_constants.takes(x, int(y.constant), dtype.is_signed)
    )


def _wide_quotient(code: Code, dtype: DType, x: V, divisor: V) -> tuple[V, V]:
    """(quotient towards zero, rest) of 64-bit integers.

    Of magnitudes, by two estimates from below. What the first leaves is below divisor + 2¹⁵, what the second leaves at
    most the divisor if that is below 2⁴⁸, otherwise below twice the divisor: one step makes it exact.
    """
    b = code.b
    top, bottom = (absolute(code, dtype, v) for v in (x, divisor))
    factor = b.fmul(b.fdiv(DOUBLE(1.0), b.uitofp(bottom, DOUBLE)), DOUBLE(LESS))
    quotient, rest = top.type(0), top
    for _ in range(2):
        estimate = b.fptoui(b.fmul(b.uitofp(rest, DOUBLE), factor), top.type)
        quotient, rest = b.add(quotient, estimate), b.sub(rest, b.mul(estimate, bottom))
    short = b.icmp_unsigned(">=", rest, bottom)
    quotient = b.add(quotient, b.zext(short, top.type))
    rest = b.select(short, b.sub(rest, bottom), rest)
    if not dtype.is_signed:
        return quotient, rest
    differ, zero = b.xor(x, divisor), top.type(0)
    signed = b.select(b.icmp_signed("<", differ, zero), b.neg(quotient), quotient)
    return signed, b.select(b.icmp_signed("<", x, zero), b.neg(rest), rest)


def remainder(code: Code, dtype: DType, x: V, y: V) -> V:
    """x % y. x % 0 is x; INT_MIN % -1 is 0."""
    b = code.b
    if _takes_products(code, dtype, x, y):
        return b.sub(x, b.mul(integer_constants.quotient(code, x, int(y.constant), dtype.is_signed), y))
    zero = b.icmp_signed("==", y, y.type(0))
    minus_one = b.icmp_signed("==", y, y.type(-1))
    divisor = b.select(b.or_(zero, minus_one) if dtype.is_signed else zero, y.type(1), y)
    if _divides_floats(code, dtype, y):
        rest = b.sub(x, b.mul(_quotient(code, dtype, x, y, divisor), divisor))
    elif _estimates(code, dtype, y):
        rest = _wide_quotient(code, dtype, x, divisor)[1]
    else:
        rest = b.srem(x, divisor) if dtype.is_signed else b.urem(x, divisor)
    return b.select(zero, x, rest)


def multiply_high(code: Code, dtype: DType, x: V, y: V) -> V:
    """The upper half of the double-width product."""
    b = code.b
    wide = ir.IntType(2 * x.type.width)
    extend = b.sext if dtype.is_signed else b.zext
    product = b.mul(extend(x, wide), extend(y, wide))
    return b.trunc(b.lshr(product, wide(dtype.bits)), x.type)


def _in_range(code: Code, dtype: DType, amount: V) -> tuple[V, V]:
    """(whether the amount is below the width in bits, the amount or else 0)."""
    b = code.b
    fine = b.icmp_unsigned("<", amount, amount.type(dtype.bits))
    return fine, b.select(fine, amount, amount.type(0))


def shift_left(code: Code, dtype: DType, x: V, amount: V) -> V:
    fine, amount = _in_range(code, dtype, amount)
    return code.b.select(fine, code.b.shl(x, amount), x.type(0))


def shift_right_logical(code: Code, dtype: DType, x: V, amount: V) -> V:
    fine, amount = _in_range(code, dtype, amount)
    return code.b.select(fine, code.b.lshr(_significant(code, dtype, x), amount), x.type(0))


def shift_right_arithmetic(code: Code, dtype: DType, x: V, amount: V) -> V:
    b = code.b
    fine, amount = _in_range(code, dtype, amount)
    return b.ashr(_signed(code, dtype, x), b.select(fine, amount, x.type(dtype.bits - 1)))


def _signed(code: Code, dtype: DType, x: V) -> V:
    """An unsigned sub-byte integer, sign-extended from its top bit for an arithmetic shift."""
    if dtype.bits >= 8:
        return x
    spare = x.type(x.type.width - dtype.bits)
    return code.b.ashr(code.b.shl(x, spare), spare)


POWER_BITS = 6
"""As XLA:CPU, integer power uses the low six bits of the exponent, and its top bit as a sign even if it is unsigned."""


def power(code: Code, dtype: DType, x: V, y: V) -> V:
    """x^y by repeated squaring, wrapping. For y < 0: 1 if x = 1, ±1 if x = -1, otherwise 0."""
    b, type_ = code.b, x.type
    result, base = type_(1), x
    for k in range(min(POWER_BITS, dtype.bits)):
        bit = b.icmp_signed("!=", b.and_(y, type_(1 << k)), type_(0))
        result = b.select(bit, b.mul(result, base), result)
        base = b.mul(base, base)
    sign_of_one = b.select(b.icmp_signed("!=", b.and_(y, type_(1)), type_(0)), type_(-1), type_(1))
    inverse = b.select(b.icmp_signed("==", x, type_(-1)), sign_of_one, type_(0))
    inverse = b.select(b.icmp_signed("==", x, type_(1)), type_(1), inverse)
    return b.select(b.icmp_signed("<", y, type_(0)), inverse, result)
