"""Shape inference for elementwise opcodes: their operands have one shape and an element type of the opcode's class."""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import COMPLEX, FLOAT, INTEGER, SIGNED, DType
from ..ir import Instruction
from ..opcodes import Op
from ..opset_rows import ANY, NUMBER, PRED
from ..records import replace
from ..shapes import Shape
from .rules import ShapeRule, arrays, broken, higher, make, merged_dynamic, same_dims, same_dtype

ANALYTIC = FLOAT | COMPLEX


def as_is(shape: Shape) -> Shape:
    return shape


def to_component(shape: Shape) -> Shape:
    return replace(shape, dtype=shape.dtype.component) if shape.dtype.is_complex else shape


def to_pred(shape: Shape) -> Shape:
    return replace(shape, dtype=DType.PRED)


def check_dtype(i: Instruction, dtype: DType, allowed: frozenset[DType], label: str) -> None:
    """Checks that an element type is among those that the opcode takes."""
    if dtype not in allowed:
        broken(i, label, f"takes no {dtype.value} elements", f"it takes {_class_name(allowed)}")


def _class_name(allowed: frozenset[DType]) -> str:
    named = (
        (PRED, "pred"),
        (INTEGER, "integers"),
        (SIGNED, "signed integers"),
        (FLOAT, "floats"),
        (COMPLEX, "complex"),
    )
    found = [
        name for group, name in named if group <= allowed and not (name.startswith("signed") and allowed >= INTEGER)
    ]
    return ", ".join(found) or ", ".join(sorted(d.value for d in allowed))


def unary(allowed: frozenset[DType], result: Callable[[Shape], Shape] = as_is) -> ShapeRule:
    """UNARY1: the operand is an array. UNARY2: its element type is in the opcode's class."""

    def infer(i: Instruction) -> Shape:
        (shape,) = arrays(i, "UNARY1")
        check_dtype(i, shape.dtype, allowed, "UNARY2")
        return result(shape)

    return infer


def binary_shape(i: Instruction, allowed: frozenset[DType]) -> Shape:
    """BINARY1: the operands are arrays. BINARY2: they have one element type (floats may differ in precision).
    BINARY3: they have one shape. BINARY4: the element type is in the opcode's class.
    """
    a, b = arrays(i, "BINARY1")
    if not same_dtype(a.dtype, b.dtype):
        broken(i, "BINARY2", f"element types {a.dtype.value} and {b.dtype.value} differ", "convert one of them")
    if not same_dims(a, b):
        broken(i, "BINARY3", f"shapes {a} and {b} differ", "HLO has no implicit broadcast: add a broadcast")
    check_dtype(i, a.dtype, allowed, "BINARY4")
    dims = tuple(max(x, y) for x, y in zip(a.dims, b.dims, strict=True))
    dtype = higher(a.dtype, b.dtype)
    if dtype is a.dtype and dims == a.dims and not b.dynamic:
        return a
    return Shape(dtype, dims, a.layout, merged_dynamic(a, b))


def binary(allowed: frozenset[DType], result: Callable[[Shape], Shape] = as_is) -> ShapeRule:
    return lambda i: result(binary_shape(i, allowed))


def complex_(i: Instruction) -> Shape:
    """COMPLEX1: both parts are f32, or both are f64."""
    shape = binary_shape(i, FLOAT)
    a, b = (o.shape.dtype for o in i.operands)
    if a is not b or a not in (DType.F32, DType.F64):
        broken(i, "COMPLEX1", f"parts of types {a.value} and {b.value} cannot form a complex number", "use f32 or f64")
    return replace(shape, dtype=DType.C64 if a is DType.F32 else DType.C128)


def clamp(i: Instruction) -> Shape:
    """CLAMP1: the operands are arrays. CLAMP2: they have one element type. CLAMP3: each bound is a scalar or has the
    operand's shape.
    """
    low, x, high = arrays(i, "CLAMP1")
    for bound in (low, high):
        if not same_dtype(bound.dtype, x.dtype):
            broken(i, "CLAMP2", f"element types {bound.dtype.value} and {x.dtype.value} differ")
        if bound.rank and not same_dims(bound, x):
            broken(i, "CLAMP3", f"bound {bound} must be a scalar or of shape {x}")
    return x


def select(i: Instruction) -> Shape:
    """SELECT1: both sides are arrays. SELECT2: the predicate has type pred. SELECT3: both sides have one shape.
    SELECT4: the predicate is a scalar or has that shape.
    """
    p, a, b = (o.shape for o in i.operands)
    if p.dtype is not DType.PRED:
        broken(i, "SELECT2", f"the predicate has type {p.dtype.value}, not pred")
    if not a.is_array or not b.is_array:
        broken(i, "SELECT1", f"both sides must be arrays, not {a} and {b}")
    if not same_dtype(a.dtype, b.dtype) or not same_dims(a, b):
        broken(i, "SELECT3", f"sides of shapes {a} and {b} differ")
    if p.rank and not same_dims(p, a):
        broken(i, "SELECT4", f"the predicate's shape {p} differs from {a}", "broadcast the predicate")
    return replace(a, dtype=higher(a.dtype, b.dtype), dynamic=merged_dynamic(a, b))


def convert(i: Instruction) -> Shape:
    """CONVERT1: operand and result are arrays."""
    (shape,) = arrays(i, "CONVERT1")
    if not i.shape.is_array:
        broken(i, "CONVERT1", f"cannot convert to {i.shape}")
    return replace(shape, dtype=i.shape.dtype, layout=None)


def stochastic_convert(i: Instruction) -> Shape:
    """SCONVERT1: the operands are floats and unsigned random bits. SCONVERT2: both have the same width in bits.
    SCONVERT3: both have the same shape.
    """
    x, bits = arrays(i, "SCONVERT1")
    if not x.dtype.is_float or not bits.dtype.is_unsigned:
        broken(i, "SCONVERT1", f"takes floats and unsigned random bits, not {x} and {bits}")
    if x.dtype.bits != bits.dtype.bits:
        broken(i, "SCONVERT2", f"{bits.dtype.value} bits are not as wide as {x.dtype.value}")
    if not same_dims(x, bits):
        broken(i, "SCONVERT3", f"shapes {x} and {bits} differ")
    return replace(x, dtype=i.shape.dtype, layout=None)


def bitcast_convert(i: Instruction) -> Shape:
    """BITCONVERT1: operand and result are arrays. BITCONVERT2: a complex type stays what it is, as in XLA.
    BITCONVERT3: the last dimension of a narrower operand is the ratio of the widths.
    """
    (x,) = arrays(i, "BITCONVERT1")
    to = i.shape.dtype
    if not i.shape.is_array:
        broken(i, "BITCONVERT1", f"cannot convert to {i.shape}")
    if x.dtype is not to and (x.dtype.is_complex or to.is_complex):
        remedy = "take its parts with real and imag, make one with complex"
        broken(i, "BITCONVERT2", f"cannot reinterpret {x.dtype.value} as {to.value}", remedy)
    bits, to_bits = (8 if d is DType.PRED else d.bits for d in (x.dtype, to))
    narrow, wide = sorted((bits, to_bits))
    ratio = wide // narrow
    if bits > to_bits:
        return make(to, (*x.dims, ratio), (*x.dynamic, False) if x.dynamic else ())
    if bits < to_bits:
        if not x.rank or x.dims[-1] != ratio:
            broken(i, "BITCONVERT3", f"the last dimension of {x} must be {ratio} to become {to.value}")
        return make(to, x.dims[:-1], x.dynamic[:-1])
    return replace(x, dtype=to, layout=None)


def reduce_precision(i: Instruction) -> Shape:
    """REDPREC1: the operand is an array of floats. REDPREC2: exponent_bits ≥ 1 and mantissa_bits ≥ 0."""
    (x,) = arrays(i, "REDPREC1")
    check_dtype(i, x.dtype, FLOAT, "REDPREC1")
    if i.attributes["exponent_bits"] < 1 or i.attributes["mantissa_bits"] < 0:
        broken(i, "REDPREC2", "needs exponent_bits ≥ 1 and mantissa_bits ≥ 0")
    return x


def compare(i: Instruction) -> Shape:
    """COMPARE1: the order that `type` names exists for the element type."""
    shape = binary_shape(i, ANY)
    kind, dtype = i.attributes.get("type"), i.operands[0].shape.dtype
    suits = {
        "FLOAT": FLOAT | COMPLEX,
        "TOTALORDER": FLOAT | INTEGER | PRED,
        "SIGNED": SIGNED,
        "UNSIGNED": (INTEGER - SIGNED) | PRED,
    }
    if kind is not None and dtype not in suits[kind]:
        broken(i, "COMPARE1", f"type={kind} does not suit {dtype.value} elements")
    return replace(shape, dtype=DType.PRED, layout=shape.layout)


INFER: dict[Op, ShapeRule] = {
    **dict.fromkeys(
        (
            Op.ACOS,
            Op.ACOSH,
            Op.ASIN,
            Op.ASINH,
            Op.ATANH,
            Op.CBRT,
            Op.COSINE,
            Op.COSH,
            Op.ERF,
            Op.EXPONENTIAL,
            Op.EXPONENTIAL_MINUS_ONE,
            Op.LOG,
            Op.LOG_PLUS_ONE,
            Op.LOGISTIC,
            Op.RSQRT,
            Op.SINE,
            Op.SINH,
            Op.SQRT,
            Op.TAN,
            Op.TANH,
        ),
        unary(ANALYTIC),
    ),
    **dict.fromkeys((Op.CEIL, Op.FLOOR, Op.ROUND_NEAREST_AFZ, Op.ROUND_NEAREST_EVEN), unary(FLOAT)),
    Op.ABS: unary(SIGNED | ANALYTIC, to_component),
    Op.COUNT_LEADING_ZEROS: unary(INTEGER),
    Op.IMAG: unary(ANALYTIC, to_component),
    Op.IS_FINITE: unary(FLOAT, to_pred),
    Op.NEGATE: unary(NUMBER),
    Op.NOT: unary(INTEGER | PRED),
    Op.POPCNT: unary(INTEGER),
    Op.REAL: unary(ANALYTIC, to_component),
    Op.SIGN: unary(SIGNED | ANALYTIC),
    **dict.fromkeys((Op.ADD, Op.MAXIMUM, Op.MINIMUM, Op.MULTIPLY), binary(ANY)),
    **dict.fromkeys((Op.DIVIDE, Op.POWER, Op.REMAINDER, Op.SUBTRACT), binary(NUMBER)),
    **dict.fromkeys((Op.SHIFT_LEFT, Op.SHIFT_RIGHT_ARITHMETIC, Op.SHIFT_RIGHT_LOGICAL, Op.MULHI), binary(INTEGER)),
    **dict.fromkeys((Op.AND, Op.OR, Op.XOR), binary(INTEGER | PRED)),
    Op.ATAN2: binary(NUMBER),
    Op.COMPARE: compare,
    Op.COMPLEX: complex_,
    Op.CLAMP: clamp,
    Op.SELECT: select,
    Op.CONVERT: convert,
    Op.BITCAST_CONVERT: bitcast_convert,
    Op.REDUCE_PRECISION: reduce_precision,
    Op.STOCHASTIC_CONVERT: stochastic_convert,
}
