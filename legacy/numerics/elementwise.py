"""Elementwise opcodes, one row each, with one function per kind of number (pred, integer, float, complex)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from llvmlite import ir

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..core.builder import Code
from ..core.registers import Register, V, chosen, real_constant
from . import complex_inverse as ci
from . import complex_math as cm
from . import complex_trigonometry as ct
from . import integer
from .convert import bits_of, convert, emit_convert, emit_reduce_precision
from .functions import library
from .narrow import FORMATS, decode
from .real import Real
from .typed import Typed, real_of

Emit: TypeAlias = Callable[..., Register]
"""(code, instruction, *operand registers) → result register."""


def intrinsic(name: str) -> Callable[..., V]:
    return lambda r, *values: r.call(name, *values)


def instruction_of(name: str) -> Callable[..., V]:
    """The LLVM instruction `name`, on integers or preds."""
    return lambda code, *values: getattr(code.b, name)(*(v for v in values if isinstance(v, ir.Value)))


def _sign(r: Real, x: V) -> V:
    result = r.select(r.gt(x, 0.0), r.c(1.0), x)
    return r.select(r.lt(x, 0.0), r.c(-1.0), result)


def _clamp(r: Real, low: V, x: V, high: V) -> V:
    return r.call("minimum", r.call("maximum", x, low), high)


def _is_finite(r: Real, x: V) -> V:
    return r.lt(r.abs(x), float("inf"))


COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def emit_compare(code: Code, instruction: Instruction, a: Register, b: Register) -> Register:
    dtype = instruction.operands[0].shape.dtype
    direction = COMPARISONS[instruction.attributes["direction"]]
    if dtype.is_complex:
        return cm.compare(real_of(code, dtype), direction, cm.pair(a), cm.pair(b))
    if dtype.is_float:
        if instruction.attributes.get("type") == "TOTALORDER":
            keys = [_total_order(code, dtype, value) for value in (a, b)]
            return code.b.icmp_signed(direction, *keys)
        a, b = decode(code, dtype, a), decode(code, dtype, b)
        return (code.b.fcmp_unordered if direction == "!=" else code.b.fcmp_ordered)(direction, a, b)
    return (code.b.icmp_signed if dtype.is_signed else code.b.icmp_unsigned)(direction, a, b)


def _total_order(code: Code, dtype: DType, value: V) -> V:
    """Storage bits as a signed integer in total order: -NaN < -inf < … < -0 < +0 < … < inf < NaN.

    In formats without -0 the only NaN comes first; f8e8m0fnu has no sign.
    """
    b = code.b
    bits = bits_of(code, dtype, value)
    type_ = bits.type
    if dtype is DType.F8E8M0FNU:
        return b.xor(bits, type_(-128))
    if dtype.bits < type_.width:
        bits = b.shl(bits, type_(type_.width - dtype.bits))
    key = b.xor(bits, b.lshr(b.ashr(bits, type_(type_.width - 1)), type_(1)))
    if dtype not in FORMATS or not FORMATS[dtype].unsigned_zero:
        return key
    key = b.select(b.icmp_signed("<", bits, type_(0)), b.add(key, type_(1)), key)
    return b.select(b.icmp_signed("==", bits, type_(-128)), type_(-128), key)


def emit_select(code: Code, instruction: Instruction, condition: Register, a: Register, b: Register) -> Register:
    return chosen(code.b, condition, a, b)


def emit_identity(code: Code, instruction: Instruction, value: Register) -> Register:
    return value


def emit_real(code: Code, instruction: Instruction, value: Register) -> Register:
    return value[0] if isinstance(value, tuple) else value


def emit_imag(code: Code, instruction: Instruction, value: Register) -> Register:
    if isinstance(value, tuple):
        return value[1]
    return convert(code, DType.F32, instruction.shape.dtype, real_constant(ir.FloatType(), 0.0))


def emit_complex(code: Code, instruction: Instruction, real: Register, imag: Register) -> Register:
    return real, imag


def _pred_clamp(code: Code, low: V, x: V, high: V) -> V:
    return code.b.and_(code.b.or_(x, low), high)


AND, OR = instruction_of("and_"), instruction_of("or_")

EMIT: dict[Op, Emit] = {
    Op.ABS: Typed(integer=integer.absolute, real=Real.abs, complex=cm.absolute),
    Op.ACOS: Typed(real=library("acos"), complex=ci.acos),
    Op.ACOSH: Typed(real=library("acosh"), complex=ci.acosh),
    Op.ASIN: Typed(real=library("asin"), complex=ci.asin),
    Op.ASINH: Typed(real=library("asinh"), complex=ci.asinh),
    Op.ATANH: Typed(real=library("atanh"), complex=ci.atanh),
    Op.CBRT: Typed(real=library("cbrt"), complex=cm.cbrt),
    Op.CEIL: Typed(real=intrinsic("ceil")),
    Op.COSINE: Typed(real=library("cos"), complex=ct.cos),
    Op.COSH: Typed(real=library("cosh"), complex=ct.cosh),
    Op.COUNT_LEADING_ZEROS: Typed(integer=integer.leading_zeros),
    Op.ERF: Typed(real=library("erf")),
    Op.EXPONENTIAL: Typed(real=library("exp"), complex=cm.exp),
    Op.EXPONENTIAL_MINUS_ONE: Typed(real=library("expm1"), complex=cm.expm1),
    Op.FLOOR: Typed(real=intrinsic("floor")),
    Op.IMAG: emit_imag,
    Op.IS_FINITE: Typed(real=_is_finite),
    Op.LOG: Typed(real=library("log"), complex=cm.log),
    Op.LOG_PLUS_ONE: Typed(real=library("log_plus_one"), complex=cm.log1p),
    Op.LOGISTIC: Typed(real=library("logistic"), complex=cm.logistic),
    Op.NEGATE: Typed(integer=integer.negate, real=Real.neg, complex=cm.negate),
    Op.NOT: Typed(pred=integer.invert_pred, integer=integer.invert),
    Op.POPCNT: Typed(integer=integer.popcount),
    Op.REAL: emit_real,
    Op.ROUND_NEAREST_AFZ: Typed(real=intrinsic("round")),
    Op.ROUND_NEAREST_EVEN: Typed(real=intrinsic("roundeven")),
    Op.RSQRT: Typed(real=library("rsqrt"), complex=cm.rsqrt),
    Op.SIGN: Typed(integer=integer.sign, real=_sign, complex=cm.sign),
    Op.SINE: Typed(real=library("sin"), complex=ct.sin),
    Op.SINH: Typed(real=library("sinh"), complex=ct.sinh),
    Op.SQRT: Typed(real=library("sqrt"), complex=cm.sqrt),
    Op.TAN: Typed(real=library("tan"), complex=ct.tan),
    Op.TANH: Typed(real=library("tanh"), complex=ct.tanh),
    Op.CONVERT: emit_convert,
    Op.REDUCE_PRECISION: emit_reduce_precision,
    Op.ADD: Typed(pred=OR, integer=instruction_of("add"), real=Real.add, complex=cm.add),
    Op.AND: Typed(pred=AND, integer=AND),
    Op.ATAN2: Typed(real=library("atan2"), complex=ci.atan2),
    Op.COMPARE: emit_compare,
    Op.COMPLEX: emit_complex,
    Op.DIVIDE: Typed(integer=integer.divide, real=Real.div, complex=cm.divide),
    Op.MAXIMUM: Typed(pred=OR, integer=integer.maximum, real=intrinsic("maximum"), complex=cm.maximum),
    Op.MINIMUM: Typed(pred=AND, integer=integer.minimum, real=intrinsic("minimum"), complex=cm.minimum),
    Op.MULHI: Typed(integer=integer.multiply_high),
    Op.MULTIPLY: Typed(pred=AND, integer=instruction_of("mul"), real=Real.mul, complex=cm.multiply),
    Op.OR: Typed(pred=OR, integer=OR),
    Op.POWER: Typed(integer=integer.power, real=library("power"), complex=cm.power),
    Op.REMAINDER: Typed(integer=integer.remainder, real=lambda r, a, b: r.code.b.frem(a, b)),
    Op.SHIFT_LEFT: Typed(integer=integer.shift_left),
    Op.SHIFT_RIGHT_ARITHMETIC: Typed(integer=integer.shift_right_arithmetic),
    Op.SHIFT_RIGHT_LOGICAL: Typed(integer=integer.shift_right_logical),
    Op.SUBTRACT: Typed(pred=instruction_of("xor"), integer=instruction_of("sub"), real=Real.sub, complex=cm.subtract),
    Op.XOR: Typed(pred=instruction_of("xor"), integer=instruction_of("xor")),
    Op.CLAMP: Typed(pred=_pred_clamp, integer=integer.clamp, real=_clamp, complex=cm.clamp),
    Op.SELECT: emit_select,
    Op.COPY: emit_identity,
    Op.OPT_BARRIER: emit_identity,
}
