"""Elementwise ops: one row per opcode, one function per class of element types. Functions take and return working
values (elements.py).
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import ml_dtypes

from ...codegen.field.element import active
from ...codegen.field.names import OPAQUE_COMPLEX, function_name
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.records import dataclass
from ..core.builder import Builder, Value
from ..core.elements import NARROW, ROUNDED, SMALL_INTEGERS, Scalar, flatten, round_to, wrap_small
from ..core.graph import Node
from . import complex_inverse, complex_math, complex_trigonometry, half
from .convert import convert, reduce_precision
from .integer_division import divide_signed, divide_unsigned, remainder_signed, remainder_unsigned

Function = Callable[..., Scalar]
"""(builder, node, *operands) → result."""


@dataclass(frozen=True, slots=True)
class Typed:
    """The emitters of an opcode, one per type class of the first operand. A class without one is unsupported.

    integer: for signed and unsigned types. exact: results of narrow floats need no rounding, because they are an
    operand or representable in any case.
    """

    floating: Function | None = None
    signed: Function | None = None
    unsigned: Function | None = None
    pred: Function | None = None
    complex: Function | None = None
    exact: bool = False
    integer: Function | None = None

    def function(self, dtype: DType) -> Function | None:
        """The function for an operand type; None if unsupported."""
        if dtype is DType.PRED:
            return self.pred
        if dtype.is_complex:
            return self.complex
        if dtype.is_float:
            return self.floating
        return self.integer or (self.signed if dtype.is_signed else self.unsigned)


_ZEROS_BELOW = frozenset({Op.CEIL, Op.ROUND_NEAREST_AFZ, Op.ROUND_NEAREST_EVEN})
"""Exact ops that make -0 of a negative number."""


_TO_INTEGERS = _ZEROS_BELOW | {Op.FLOOR}


_OF_HALF: dict[Op, Callable[..., Value]] = {Op.MAXIMUM: half.maximum, Op.MINIMUM: half.minimum, Op.CLAMP: half.clamp}


@functools.cache
def _lacks_integers(dtype: DType) -> bool:
    """Whether a type of floats does not have each integer next to one of its numbers: 16 behind 15.5, or 0."""
    about = ml_dtypes.finfo(dtype.numpy)
    return not float(about.max).is_integer() or dtype is DType.F8E8M0FNU


def emit_elementwise(b: Builder, node: Node, operands: list[Scalar]) -> Scalar:
    """The result of one elementwise node, rounded or wrapped to its type."""
    row = EMIT[node.opcode]
    function = row.function(node.inputs[0].dtype)
    assert function is not None, f"unchecked {node.opcode}"
    dtype = node.output.dtype
    if dtype is DType.F16 and node.opcode in _OF_HALF and not b.by_element:
        return _OF_HALF[node.opcode](b, *operands)
    if active() is not None and node.inputs[0].dtype.is_complex and node.opcode in OPAQUE_COMPLEX:
        return _named_complex(b, node, operands)
    result = function(b, node, *operands)
    if isinstance(result, tuple):
        return result
    if dtype in ROUNDED and (not row.exact or (node.opcode in _TO_INTEGERS and _lacks_integers(dtype))):
        return round_to(b, dtype, result)
    if node.opcode in _ZEROS_BELOW and dtype in NARROW and NARROW[dtype].negative_zero_is_nan:
        return b.op("arith.addf", result, b.f32(0.0))  # the type's only zero is +0
    return wrap_small(b, dtype, result) if dtype in SMALL_INTEGERS and not row.exact else result


def _named_complex(b: Builder, node: Node, operands: list[Scalar]) -> Scalar:
    """A function of complex numbers as calls by its name, one for each part of the result (docs/exact.md)."""
    parts = [part for operand in operands for part in flatten(operand)]
    type = parts[0].type
    names = ("re", "im") if node.output.dtype.is_complex else ("re",)
    symbols = [function_name(node.opcode.value, str(type), part) for part in names]
    made = [b.call(b.external(s, [type] * len(parts), type, pure=True), type, parts) for s in symbols]
    return made[0] if len(made) == 1 else (made[0], made[1])


# How rows are made --------------------------------------------------------------------------------------------------


def simple(function: Callable[..., Scalar]) -> Function:
    """A row's function from a function that does not need the node."""
    return lambda b, node, *operands: function(b, *operands)


def operation(name: str, *, contracts: bool = False) -> Function:
    """One operation of the arith or the math dialect."""

    def emit(b: Builder, node: Node, *operands: Value) -> Value:
        return b.op(name, *operands, attributes=b.flags if contracts else None)

    return emit


def library(name: str) -> Function:
    """One operation of the math dialect. math_library expands it if LLVM has no instruction for it."""
    return lambda b, node, *operands: b.math(name, *operands)


def bitwise(name: str) -> Typed:
    return Typed(integer=operation(name), pred=operation(name))


# Floats -------------------------------------------------------------------------------------------------------------


def sign(b: Builder, x: Value) -> Value:
    """±1; zeros and NaN are returned unchanged."""
    zero_or_nan = b.compare("ueq", x, b.like(0.0, x))
    return b.select(zero_or_nan, x, b.copysign(b.like(1.0, x), x))


def logistic(b: Builder, x: Value) -> Value:
    one = b.like(1.0, x)
    return b.divf(one, b.addf(one, b.math("math.exp", b.negf(x))))


def is_finite(b: Builder, x: Value) -> Value:
    return b.compare("olt", b.absf(x), b.like(float("inf"), x))


def clamp_float(b: Builder, low: Value, x: Value, high: Value) -> Value:
    return b.minf(b.maxf(x, low), high)


# Integers -----------------------------------------------------------------------------------------------------------


def zero(b: Builder, x: Value) -> Value:
    return b.like(0, x)


def width(b: Builder, node: Node, x: Value) -> int:
    return node.inputs[0].dtype.bits


def negate_integer(b: Builder, x: Value) -> Value:
    return b.binary("subi", zero(b, x), x)


def absolute_integer(b: Builder, node: Node, x: Value) -> Value:
    """The magnitude of the least number is the number itself, as in two's complement of its width."""
    value = b.select(b.compare_integers("slt", x, zero(b, x)), negate_integer(b, x), x)
    dtype = node.output.dtype
    return wrap_small(b, dtype, value) if dtype in SMALL_INTEGERS else value


def sign_signed(b: Builder, x: Value) -> Value:
    positive = b.extui(b.compare_integers("sgt", x, zero(b, x)), x.type)
    negative = b.extui(b.compare_integers("slt", x, zero(b, x)), x.type)
    return b.binary("subi", positive, negative)


def sign_unsigned(b: Builder, x: Value) -> Value:
    return b.extui(b.compare_integers("ne", x, zero(b, x)), x.type)


EXPONENT_BITS = 6
"""XLA:CPU uses only this many low bits of an integer exponent."""


def power_integer(b: Builder, x: Value, y: Value) -> Value:
    """Square and multiply, wrapping. An exponent with its top bit set, even an unsigned one, counts as negative: the
    result is 0, or ±1 for a base of ±1.
    """
    one, minus_one = b.like(1, x), b.like(-1, x)
    result, base = one, x
    for k in range(EXPONENT_BITS):
        picked = b.compare_integers("ne", b.binary("andi", y, 1 << k), zero(b, y))
        result = b.select(picked, b.binary("muli", result, base), result)
        base = b.binary("muli", base, base)
    odd = b.compare_integers("ne", b.binary("andi", y, 1), zero(b, y))
    unit = b.select(b.compare_integers("eq", x, minus_one), b.select(odd, minus_one, one), zero(b, x))
    unit = b.select(b.compare_integers("eq", x, one), one, unit)
    return b.select(b.compare_integers("slt", y, zero(b, y)), unit, result)


def shift(name: str) -> Function:
    """A shift by the width or more shifts out all bits: zero, or the sign for shrsi."""

    def emit(b: Builder, node: Node, x: Value, y: Value) -> Value:
        bits = width(b, node, x)
        too_far = b.compare_integers("uge", y, b.like(bits, y))
        if name == "shrsi":
            if node.inputs[0].dtype.is_unsigned and node.inputs[0].dtype in SMALL_INTEGERS:
                x = b.binary("shrsi", b.binary("shli", x, 8 - bits), 8 - bits)
            return b.binary("shrsi", x, b.select(too_far, b.like(bits - 1, y), y))
        if name == "shrui" and node.inputs[0].dtype in SMALL_INTEGERS:
            x = b.binary("andi", x, (1 << bits) - 1)
        return b.select(too_far, zero(b, x), b.binary(name, x, b.select(too_far, zero(b, y), y)))

    return emit


def multiply_high(extend: str) -> Function:
    """The upper half of the double-width product."""

    def emit(b: Builder, node: Node, x: Value, y: Value) -> Value:
        bits = width(b, node, x)
        wide = b.types.integer(2 * x.type.width)
        product = b.binary("muli", b.op(extend, x, type=wide), b.op(extend, y, type=wide))
        return b.trunci(b.binary("shrui", product, bits), x.type)

    return emit


def count_leading_zeros(b: Builder, node: Node, x: Value) -> Value:
    bits = width(b, node, x)
    if bits < 8:
        x = b.binary("andi", x, (1 << bits) - 1)
        return b.binary("subi", b.op("math.ctlz", x), 8 - bits)
    return b.op("math.ctlz", x)


def count_ones(b: Builder, node: Node, x: Value) -> Value:
    bits = width(b, node, x)
    return b.op("math.ctpop", b.binary("andi", x, (1 << bits) - 1) if bits < 8 else x)


def clamp_integer(minimum: str, maximum: str) -> Function:
    return lambda b, node, low, x, high: b.binary(minimum, b.binary(maximum, x, low), high)


# Comparison and choice ----------------------------------------------------------------------------------------------

ORDERED = {"EQ": "oeq", "NE": "une", "LT": "olt", "LE": "ole", "GT": "ogt", "GE": "oge"}


def compare_floats(b: Builder, node: Node, x: Value, y: Value) -> Value:
    if takes_raw(node):
        dtype = node.inputs[0].dtype
        return compare_signed(b, node, _total_order_of_bits(b, dtype, x), _total_order_of_bits(b, dtype, y))
    if node.attributes.get("type") == "TOTALORDER":
        return compare_signed(b, node, _total_order(b, x), _total_order(b, y))
    return b.compare(ORDERED[node.attributes["direction"]], x, y)


def takes_raw(node: Node) -> bool:
    """Whether a node needs raw operands: the total order of 8-bit floats distinguishes NaNs."""
    return node.opcode is Op.COMPARE and node.attributes.get("type") == "TOTALORDER" and node.inputs[0].dtype in NARROW


def _total_order_of_bits(b: Builder, dtype: DType, raw: Value) -> Value:
    """As `_total_order`, for a raw float of at most 8 bits. The only NaN of fnuz formats has the bits of −0: it is
    first.
    """
    format = NARROW[dtype]
    spare = 31 - (format.exponent + format.mantissa)
    bits = b.binary("shrsi", b.binary("shli", b.extui(raw, b.types.i32), spare), spare)
    flipped = b.binary("xori", bits, format.sign_bit - 1)
    key = b.select(b.compare_integers("slt", bits, zero(b, bits)), flipped, bits)
    if format.negative_zero_is_nan:
        key = b.select(
            b.compare_integers("eq", bits, b.like(-format.sign_bit, bits)), b.like(-2 * format.sign_bit, bits), key
        )
    return key


def _total_order(b: Builder, x: Value) -> Value:
    """The integer of a float in the order −NaN < −inf < … < −0 < 0 < … < NaN."""
    single = x.type == b.types.f32
    bits = b.bitcast(x, b.types.i32 if single else b.types.i64)
    flipped = b.binary("xori", bits, 0x7FFFFFFF if single else (1 << 63) - 1)
    return b.select(b.compare_integers("slt", bits, zero(b, bits)), flipped, bits)


def compare_signed(b: Builder, node: Node, x: Value, y: Value) -> Value:
    direction = node.attributes["direction"].lower()
    return b.compare_integers(direction if direction in ("eq", "ne") else "s" + direction, x, y)


def compare_unsigned(b: Builder, node: Node, x: Value, y: Value) -> Value:
    direction = node.attributes["direction"].lower()
    return b.compare_integers(direction if direction in ("eq", "ne") else "u" + direction, x, y)


def logical_not(b: Builder, x: Value) -> Value:
    return b.binary("xori", x, -1)


EMIT: dict[Op, Typed] = {
    Op.ABS: Typed(
        operation("math.absf"),
        absolute_integer,
        simple(lambda b, x: x),
        complex=simple(complex_math.absolute),
        exact=True,
    ),
    Op.ACOS: Typed(library("math.acos"), complex=simple(complex_inverse.acos)),
    Op.ACOSH: Typed(library("math.acosh"), complex=simple(complex_inverse.acosh)),
    Op.ASIN: Typed(library("math.asin"), complex=simple(complex_inverse.asin)),
    Op.ASINH: Typed(library("math.asinh"), complex=simple(complex_inverse.asinh)),
    Op.ATANH: Typed(library("math.atanh"), complex=simple(complex_inverse.atanh)),
    Op.CBRT: Typed(library("math.cbrt"), complex=simple(complex_math.cbrt)),
    Op.CEIL: Typed(operation("math.ceil"), exact=True),
    Op.COSINE: Typed(library("math.cos"), complex=simple(complex_trigonometry.cosine)),
    Op.COSH: Typed(library("math.cosh"), complex=simple(complex_trigonometry.cosh)),
    Op.COUNT_LEADING_ZEROS: Typed(integer=count_leading_zeros),
    Op.ERF: Typed(library("math.erf")),
    Op.EXPONENTIAL: Typed(library("math.exp"), complex=simple(complex_math.exponential)),
    Op.EXPONENTIAL_MINUS_ONE: Typed(library("math.expm1"), complex=simple(complex_math.exponential_minus_one)),
    Op.FLOOR: Typed(operation("math.floor"), exact=True),
    Op.IMAG: Typed(simple(lambda b, x: b.like(0.0, x)), complex=simple(lambda b, x: x[1]), exact=True),
    Op.IS_FINITE: Typed(simple(is_finite), exact=True),
    Op.LOG: Typed(library("math.log"), complex=simple(complex_math.log)),
    Op.LOG_PLUS_ONE: Typed(library("math.log1p"), complex=simple(complex_math.log_plus_one)),
    Op.LOGISTIC: Typed(simple(logistic), complex=simple(complex_math.logistic)),
    Op.NEGATE: Typed(
        simple(Builder.negf), integer=simple(negate_integer), complex=simple(complex_math.negate), exact=False
    ),
    Op.NOT: Typed(integer=simple(logical_not), pred=simple(logical_not)),
    Op.POPCNT: Typed(integer=count_ones),
    Op.REAL: Typed(simple(lambda b, x: x), complex=simple(lambda b, x: x[0]), exact=True),
    Op.ROUND_NEAREST_AFZ: Typed(operation("math.round"), exact=True),
    Op.ROUND_NEAREST_EVEN: Typed(operation("math.roundeven"), exact=True),
    Op.RSQRT: Typed(library("math.rsqrt"), complex=simple(complex_math.rsqrt)),
    Op.SIGN: Typed(
        simple(sign), simple(sign_signed), simple(sign_unsigned), complex=simple(complex_math.sign), exact=True
    ),
    Op.SINE: Typed(library("math.sin"), complex=simple(complex_trigonometry.sine)),
    Op.SINH: Typed(library("math.sinh"), complex=simple(complex_trigonometry.sinh)),
    Op.SQRT: Typed(operation("math.sqrt"), complex=simple(complex_math.sqrt)),
    Op.TAN: Typed(library("math.tan"), complex=simple(complex_trigonometry.tan)),
    Op.TANH: Typed(library("math.tanh"), complex=simple(complex_trigonometry.tanh)),
    Op.CONVERT: Typed(convert, convert, convert, convert, convert, exact=True),
    Op.REDUCE_PRECISION: Typed(reduce_precision),
    Op.ADD: Typed(
        operation("arith.addf", contracts=True),
        integer=operation("arith.addi"),
        pred=operation("arith.ori"),
        complex=simple(complex_math.add),
    ),
    Op.AND: bitwise("arith.andi"),
    Op.ATAN2: Typed(library("math.atan2"), complex=simple(complex_inverse.atan2)),
    Op.COMPARE: Typed(compare_floats, compare_signed, compare_unsigned, compare_unsigned, complex_math.compare),
    Op.COMPLEX: Typed(simple(lambda b, x, y: (x, y))),
    Op.DIVIDE: Typed(
        operation("arith.divf", contracts=True),
        simple(divide_signed),
        simple(divide_unsigned),
        complex=simple(complex_math.divide),
    ),
    Op.MAXIMUM: Typed(
        operation("arith.maximumf"),
        operation("arith.maxsi"),
        operation("arith.maxui"),
        operation("arith.ori"),
        complex=simple(complex_math.maximum),
        exact=True,
    ),
    Op.MINIMUM: Typed(
        operation("arith.minimumf"),
        operation("arith.minsi"),
        operation("arith.minui"),
        operation("arith.andi"),
        complex=simple(complex_math.minimum),
        exact=True,
    ),
    Op.MULHI: Typed(signed=multiply_high("arith.extsi"), unsigned=multiply_high("arith.extui")),
    Op.MULTIPLY: Typed(
        operation("arith.mulf", contracts=True),
        integer=operation("arith.muli"),
        pred=operation("arith.andi"),
        complex=simple(complex_math.multiply),
    ),
    Op.OR: bitwise("arith.ori"),
    Op.POWER: Typed(library("math.powf"), integer=simple(power_integer), complex=simple(complex_math.power)),
    Op.REMAINDER: Typed(operation("arith.remf"), simple(remainder_signed), simple(remainder_unsigned)),
    Op.SHIFT_LEFT: Typed(integer=shift("shli")),
    Op.SHIFT_RIGHT_ARITHMETIC: Typed(integer=shift("shrsi")),
    Op.SHIFT_RIGHT_LOGICAL: Typed(integer=shift("shrui")),
    Op.SUBTRACT: Typed(
        operation("arith.subf", contracts=True),
        integer=operation("arith.subi"),
        pred=operation("arith.xori"),
        complex=simple(complex_math.subtract),
    ),
    Op.XOR: bitwise("arith.xori"),
    Op.CLAMP: Typed(
        simple(clamp_float),
        clamp_integer("minsi", "maxsi"),
        clamp_integer("minui", "maxui"),
        clamp_integer("andi", "ori"),
        complex=simple(complex_math.clamp),
        exact=True,
    ),
}
