"""Elementwise opcodes, one row each: the C expression of an element, over helper functions of the runtime (helpers.py).

A helper is called `tb_NAME_DTYPE`. Narrow floats are decoded, computed in float, and encoded.
"""

from __future__ import annotations

from collections.abc import Callable

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from .types import NARROW, c_type, working

Scalar = Callable[..., str]
"""(instruction, *operand expressions) → expression of the result."""


def decode(dtype: DType, value: str) -> str:
    return f"tb_decode_{dtype.value}({value})" if dtype in NARROW else value


def encode(dtype: DType, value: str) -> str:
    return f"tb_encode_{dtype.value}({value})" if dtype in NARROW else value


def wrap(dtype: DType, value: str) -> str:
    """The low bits of an integer expression as a value of its type."""
    if dtype.bits < 8:
        return f"tb_wrap_{dtype.value}({value})"
    return f"({c_type(dtype)})({value})"


def of_type(name: str) -> Scalar:
    """The helper of this name for the type of the first operand."""

    def emit(i: Instruction, *values: str) -> str:
        dtype = i.operands[0].shape.dtype
        if dtype not in NARROW:
            return f"tb_{name}_{dtype.value}({', '.join(values)})"
        call = f"tb_{name}_f32({', '.join(decode(dtype, v) for v in values)})"
        return encode(dtype, call) if i.shape.dtype is dtype else call

    return emit


def arithmetic(sign: str, pred: str, name: str) -> Scalar:
    """A C operator. pred: that of preds. Integers wrap: unsigned arithmetic has no overflow."""

    def emit(i: Instruction, a: str, b: str) -> str:
        dtype = i.shape.dtype
        if dtype.is_complex:
            return f"tb_{name}_{dtype.value}({a}, {b})"
        if dtype is DType.PRED:
            return f"{a} {pred} {b}"
        if dtype.is_integer:
            wide = f"uint{max(dtype.bits, 32)}_t"
            return wrap(dtype, f"({wide}){a} {sign} ({wide}){b}")
        return encode(dtype, f"{decode(dtype, a)} {sign} {decode(dtype, b)}")

    return emit


def logical(sign: str) -> Scalar:
    def emit(i: Instruction, a: str, b: str) -> str:
        return f"({c_type(i.shape.dtype)})({a} {sign} {b})"

    return emit


def extremum(name: str, pred: str) -> Scalar:
    typed = of_type(name)
    return lambda i, *values: f" {pred} ".join(values) if i.shape.dtype is DType.PRED else typed(i, *values)


def _clamp(i: Instruction, low: str, x: str, high: str) -> str:
    if i.shape.dtype is DType.PRED:
        return f"({x} | {low}) & {high}"
    return of_type_of("clamp", i.shape.dtype, low, x, high)


def of_type_of(name: str, dtype: DType, *values: str) -> str:
    if dtype not in NARROW:
        return f"tb_{name}_{dtype.value}({', '.join(values)})"
    return encode(dtype, f"tb_{name}_f32({', '.join(decode(dtype, v) for v in values)})")


COMPARISONS = {"EQ": "==", "NE": "!=", "LT": "<", "LE": "<=", "GT": ">", "GE": ">="}


def _compare(i: Instruction, a: str, b: str) -> str:
    dtype, direction = i.operands[0].shape.dtype, i.attributes["direction"]
    sign = COMPARISONS[direction]
    if dtype.is_complex:
        return f"tb_{direction.lower()}_{dtype.value}({a}, {b})"
    if dtype.is_float and i.attributes.get("type") == "TOTALORDER":
        return f"tb_order_{dtype.value}({a}) {sign} tb_order_{dtype.value}({b})"
    return f"{decode(dtype, a)} {sign} {decode(dtype, b)}"


def _not(i: Instruction, x: str) -> str:
    return f"!{x}" if i.shape.dtype is DType.PRED else wrap(i.shape.dtype, f"~(uint{max(i.shape.dtype.bits, 32)}_t){x}")


def _negate(i: Instruction, x: str) -> str:
    dtype = i.shape.dtype
    if dtype.is_complex:
        return f"tb_negate_{dtype.value}({x})"
    if dtype.is_integer:
        return wrap(dtype, f"0u - (uint{max(dtype.bits, 32)}_t){x}")
    return encode(dtype, f"-{decode(dtype, x)}")


def convert(source: DType, target: DType, x: str) -> str:
    """XLA's conversion: float → integer saturates, NaN becomes 0, and of a complex number the real part counts."""
    if source is target:
        return x
    if source.is_complex and not target.is_complex:
        return convert(source.component, target, f"{x}.re")
    if target.is_complex:
        part, name = target.component, c_type(target)
        if source.is_complex:
            return f"tb_{target.value}_of_{source.value}({x})"
        return f"tb_make_{target.value}({convert(source, part, x)}, 0)" if name else x
    if target is DType.PRED and source is DType.F8E8M0FNU:
        return "1"  # it has no zero
    if target is DType.PRED:
        return f"tb_nonzero_{source.value}({x})" if source in NARROW else f"{x} != 0"
    if target.is_integer:
        if source.is_float:
            return f"tb_{target.value}_of_{working(source).value}({decode(source, x)})"
        return wrap(target, x)
    return _to_float(source, target, x)


def _to_float(source: DType, target: DType, x: str) -> str:
    if not source.is_float:
        return encode(target, f"({c_type(working(target))}){x}")
    if source is DType.F64:
        if target is DType.F32:
            return f"(float){x}"
        return f"tb_e8m0_of_f64({x})" if target is DType.F8E8M0FNU else encode(target, f"tb_odd_f32({x})")
    if target is DType.F64:
        return f"tb_f64_of_e8m0({x})" if source is DType.F8E8M0FNU else f"(double){decode(source, x)}"
    return encode(target, decode(source, x))


def _convert(i: Instruction, x: str) -> str:
    return convert(i.operands[0].shape.dtype, i.shape.dtype, x)


OWN_BITS = {DType.F16: (5, 10), DType.BF16: (8, 7), DType.F32: (8, 23), DType.F64: (11, 52)}
"""Type → bits of the exponent and of the mantissa."""


def _reduce_precision(i: Instruction, x: str) -> str:
    """On the bits of the type itself. As in XLA, floats of a byte or less become f16 first, f8e8m0fnu f32."""
    dtype = i.shape.dtype
    bits = f"{int(i.attributes['exponent_bits'])}, {int(i.attributes['mantissa_bits'])}"
    if dtype in OWN_BITS:
        return _reduced(dtype, x, bits)
    via = DType.F32 if dtype is DType.F8E8M0FNU else DType.F16
    return encode(dtype, decode(via, _reduced(via, encode(via, decode(dtype, x)), bits)))


def _reduced(dtype: DType, x: str, bits: str) -> str:
    exponent, mantissa = OWN_BITS[dtype]
    inner = f"tb_{dtype.value}_bits({x})" if dtype in (DType.F32, DType.F64) else x
    found = f"tb_reduce_precision({inner}, {exponent}, {mantissa}, {bits})"
    return f"tb_bits_{dtype.value}({found})" if dtype in (DType.F32, DType.F64) else f"(uint16_t){found}"


def _imag(i: Instruction, x: str) -> str:
    return f"{x}.im" if i.operands[0].shape.dtype.is_complex else encode(i.shape.dtype, "0.0f")


def _real(i: Instruction, x: str) -> str:
    return f"{x}.re" if i.operands[0].shape.dtype.is_complex else x


def _complex(i: Instruction, re: str, im: str) -> str:
    return f"tb_make_{i.shape.dtype.value}({re}, {im})"


def _abs(i: Instruction, x: str) -> str:
    dtype = i.operands[0].shape.dtype
    if dtype in NARROW and dtype is not DType.F8E8M0FNU:
        return encode(dtype, f"fabsf({decode(dtype, x)})")
    return of_type("abs")(i, x)


SCALARS: dict[Op, Scalar] = {
    Op.ABS: _abs,
    Op.ACOS: of_type("acos"),
    Op.ACOSH: of_type("acosh"),
    Op.ASIN: of_type("asin"),
    Op.ASINH: of_type("asinh"),
    Op.ATANH: of_type("atanh"),
    Op.CBRT: of_type("cbrt"),
    Op.CEIL: of_type("ceil"),
    Op.COSINE: of_type("cos"),
    Op.COSH: of_type("cosh"),
    Op.COUNT_LEADING_ZEROS: of_type("clz"),
    Op.ERF: of_type("erf"),
    Op.EXPONENTIAL: of_type("exp"),
    Op.EXPONENTIAL_MINUS_ONE: of_type("expm1"),
    Op.FLOOR: of_type("floor"),
    Op.IMAG: _imag,
    Op.IS_FINITE: of_type("is_finite"),
    Op.LOG: of_type("log"),
    Op.LOG_PLUS_ONE: of_type("log1p"),
    Op.LOGISTIC: of_type("logistic"),
    Op.NEGATE: _negate,
    Op.NOT: _not,
    Op.POPCNT: of_type("popcnt"),
    Op.REAL: _real,
    Op.ROUND_NEAREST_AFZ: of_type("round"),
    Op.ROUND_NEAREST_EVEN: of_type("rint"),
    Op.RSQRT: of_type("rsqrt"),
    Op.SIGN: of_type("sign"),
    Op.SINE: of_type("sin"),
    Op.SINH: of_type("sinh"),
    Op.SQRT: of_type("sqrt"),
    Op.TAN: of_type("tan"),
    Op.TANH: of_type("tanh"),
    Op.CONVERT: _convert,
    Op.REDUCE_PRECISION: _reduce_precision,
    Op.ADD: arithmetic("+", "|", "add"),
    Op.AND: logical("&"),
    Op.ATAN2: of_type("atan2"),
    Op.COMPARE: _compare,
    Op.COMPLEX: _complex,
    Op.DIVIDE: lambda i, a, b: (
        arithmetic("/", "&", "div")(i, a, b) if i.shape.dtype.is_float else of_type("div")(i, a, b)
    ),
    Op.MAXIMUM: extremum("max", "|"),
    Op.MINIMUM: extremum("min", "&"),
    Op.MULHI: of_type("mulhi"),
    Op.MULTIPLY: arithmetic("*", "&", "mul"),
    Op.OR: logical("|"),
    Op.POWER: of_type("pow"),
    Op.REMAINDER: of_type("rem"),
    Op.SHIFT_LEFT: of_type("shl"),
    Op.SHIFT_RIGHT_ARITHMETIC: of_type("sar"),
    Op.SHIFT_RIGHT_LOGICAL: of_type("shr"),
    Op.SUBTRACT: arithmetic("-", "^", "sub"),
    Op.XOR: logical("^"),
    Op.CLAMP: _clamp,
    Op.SELECT: lambda i, condition, a, b: f"{condition} ? {a} : {b}",
    Op.COPY: lambda i, x: x,
    Op.OPT_BARRIER: lambda i, x: x,
}
