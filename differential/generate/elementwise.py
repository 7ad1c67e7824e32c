"""Draws elementwise ops: each row of the opset with its own types, on operands whose errors it keeps small."""

from __future__ import annotations

import math
from typing import Any

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.opset_rows import EXACT
from ...hlo.shapes import Shape
from .program import Body
from .values import DRAWN, FLOATS, SIGNED, UNSIGNED, Value, capacity, continuous, joined_known

D = DType

DIRECTIONS = ("LT", "EQ", "NE", "GE", "GT", "LE")
COMPLEX_OF = {D.F32: D.C64, D.F64: D.C128}

KEEPING = frozenset({Op.NEGATE, Op.ABS, Op.REAL, Op.IMAG, Op.COPY, Op.NOT, Op.POPCNT, Op.COUNT_LEADING_ZEROS})
"""Unary ops after which the numbers are as exact as before, and floats no larger."""

ROUNDING = frozenset({Op.FLOOR, Op.CEIL, Op.ROUND_NEAREST_AFZ, Op.ROUND_NEAREST_EVEN, Op.SIGN})
"""Unary ops that jump, and make integers."""

SMOOTH = {Op.TANH: 1.0, Op.SINE: 1.0, Op.COSINE: 1.0, Op.ERF: 1.0, Op.LOGISTIC: 1.0, Op.ASINH: math.inf}
"""Functions that take inexact operands, with the largest magnitude of their real results."""

LARGEST_OF = {**SMOOTH, Op.ASIN: 1.6, Op.ACOS: 3.2}


def types_of(op: Op) -> tuple[DType, ...]:
    return tuple(d for d in DRAWN if d in OPSET[op].dtypes)


def unary(body: Body, op: Op) -> Value:
    wants_exact = op not in KEEPING and op not in SMOOTH
    v = body.operand(lambda v: v.exact if wants_exact else v.smooth or op in KEEPING, types_of(op))
    dtype, whole, most = v.dtype, v.whole, v.most
    exact = v.exact and OPSET[op].ulp == EXACT and op is not Op.SQRT
    if op is Op.IS_FINITE:
        return body.add(op, [v])
    if not continuous(dtype):
        most = v.most if op is Op.ABS or (op is Op.NEGATE and dtype.is_signed) else math.inf
    elif op in (Op.REAL, Op.IMAG) and dtype.is_float:
        most = v.most if op is Op.REAL else 0.0
    elif dtype.is_complex and op not in (Op.NEGATE, Op.REAL, Op.IMAG, Op.COPY):
        exact, whole, most = False, False, (1.5 * v.most if op in (Op.ABS, Op.SIGN) else math.inf)
    elif op in ROUNDING:
        whole = exact and v.most < math.inf
    elif op not in KEEPING:
        whole, most = False, LARGEST_OF.get(op, math.inf)
    return body.add(op, [v], exact=exact, whole=whole, most=most)


def binary(body: Body, op: Op) -> Value:
    make = BINARY_RULES.get(op, _integers)
    return make(body, op)


def _integers(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: True, types_of(op))
    return body.add(op, _pair(body, v, body.like(v)))


def _pair(body: Body, v: Value, w: Value) -> list[Value]:
    return [w, v] if body.source.chance(30) else [v, w]


def arithmetic(body: Body, op: Op) -> Value:
    """add, subtract, multiply: exact where both are integers and the result is small enough for its type."""
    v = body.operand(lambda v: v.smooth, types_of(op))
    w = body.like(v, lambda w: w.smooth)
    return body.add(op, _pair(body, v, w), **arithmetic_known(op, v, w))


def arithmetic_known(op: Op, v: Value, w: Value) -> dict[str, Any]:
    """What is known of v + w, v − w or v · w, as arguments of Body.add."""
    if not continuous(v.dtype):
        return {}
    most = v.most + w.most if op is not Op.MULTIPLY else v.most * w.most * (2 if v.dtype.is_complex else 1)
    whole = v.whole and w.whole and most <= capacity(v.dtype)
    return {"exact": whole, "whole": whole, "most": math.inf if math.isnan(most) else most}


def _divide(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: v.smooth, types_of(op))
    w = body.like(v, lambda w: w.exact)
    return body.add(op, [v, w], exact=not continuous(v.dtype))


def _remainder(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: v.exact, types_of(op))
    return body.add(op, _pair(body, v, body.like(v, lambda w: w.exact)))


def _function(body: Body, op: Op) -> Value:
    """A function of two operands, which stacks approximate."""
    v = body.operand(lambda v: v.exact, types_of(op))
    w = body.like(v, lambda w: w.exact)
    return body.add(op, _pair(body, v, w), exact=False, most=3.2 if op is Op.ATAN2 else math.inf)


def extremum(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: True, tuple(d for d in types_of(op) if not d.is_complex))
    return body.moved(op, _pair(body, v, body.like(v)))


def _complex(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: True, (D.F32, D.F64))
    return body.moved(op, [v, body.like(v)], Shape(COMPLEX_OF[v.dtype], v.dims))


def compare(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: v.exact, types_of(op))
    w = body.like(v, lambda w: w.exact)
    direction = body.source.choice(DIRECTIONS)
    if v.dtype.is_complex:
        return body.add(op, [v, w], direction="NE" if direction == "NE" else "EQ")
    if v.dtype in FLOATS and body.source.chance(25):
        v, w = without_nan(body, v), without_nan(body, w)
        return body.add(op, [v, w], direction=direction, type="TOTALORDER")
    return body.add(op, [v, w], direction=direction)


def without_nan(body: Body, v: Value) -> Value:
    """v with 0 in place of NaN: the sign of a computed NaN is open, and decides in a total order."""
    if v.whole or not v.dtype.is_float:
        return v
    zero = body.repeated(body.scalar(v.dtype, 0.0), v.dims)
    same = body.add(Op.COMPARE, [v, v], direction="EQ")
    return body.add(Op.SELECT, [same, v, zero], exact=v.exact, most=v.most)


BINARY_RULES = {
    **dict.fromkeys((Op.ADD, Op.SUBTRACT, Op.MULTIPLY), arithmetic),
    **dict.fromkeys((Op.MAXIMUM, Op.MINIMUM), extremum),
    **dict.fromkeys((Op.POWER, Op.ATAN2), _function),
    Op.DIVIDE: _divide,
    Op.REMAINDER: _remainder,
    Op.COMPLEX: _complex,
    Op.COMPARE: compare,
}


def select(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: True, DRAWN)
    w = body.like(v)
    test = body.of(D.PRED, () if body.source.chance(30) else v.dims)
    return body.add(op, [test, v, w], **joined_known([v, w]))


def clamp(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: True, tuple(d for d in types_of(op) if not d.is_complex and d is not D.PRED))
    scalars = body.source.chance(60)
    low, high = (body.scalar(v.dtype) if scalars else body.like(v) for _ in range(2))
    return body.moved(op, [low, v, high])


def convert(body: Body, op: Op) -> Value:
    to = body.source.choice(body.program.types if body.source.chance(50) else body.program.limits.dtypes)
    jumps = not continuous(to)
    v = body.operand(lambda v: v.exact if jumps else v.smooth, DRAWN)
    if v.dtype.is_complex and not to.is_complex:
        to = v.dtype
    most = v.most if continuous(v.dtype) else min(v.most, 2.0**v.dtype.bits)
    whole = continuous(to) and v.whole and most <= capacity(to)
    fits = continuous(to) and most <= capacity(to)
    return body.add(op, [v], Shape(to, v.dims), exact=v.exact, whole=whole, most=most if fits else math.inf)


def bitcast_convert(body: Body, op: Op) -> Value:
    """Between integers of any widths, and from integers to floats; from floats where their bits are given."""
    kinds = (*SIGNED, *UNSIGNED, *FLOATS)

    def readable(v: Value) -> bool:
        given = body.entry and v.instruction.opcode is Op.PARAMETER  # the sign of a computed NaN is open
        return v.dtype.is_integer or given

    if body.source.chance(20):
        return _joined_bits(body)
    v = body.operand(readable, kinds)
    have = v.dtype.bits
    targets = [d for d in kinds if d.bits == have]
    if len(v.dims) < 8 and v.size < 500 and v.dtype.is_integer:
        targets += [d for d in (*SIGNED, *UNSIGNED) if d.bits < have]
    targets += [d for d in (*SIGNED, *UNSIGNED) if v.dims and v.dims[-1] * have == d.bits and v.dtype.is_integer]
    to = body.source.choice(targets)
    dims = v.dims if to.bits == have else (*v.dims, have // to.bits) if to.bits < have else v.dims[:-1]
    return body.add(op, [v], Shape(to, dims))


def _joined_bits(body: Body) -> Value:
    """Elements of a last dimension put together to wider ones."""
    wide = body.source.choice((D.S32, D.U64, D.S16, D.U8, D.U16))
    narrow = body.source.choice([d for d in (D.S8, D.U16, D.U4, D.S32, D.U2) if d.bits < wide.bits])
    first = (body.source.choice((3, 1, 5, 17)),)
    return body.add(Op.BITCAST_CONVERT, [body.of(narrow, (*first, wide.bits // narrow.bits))], Shape(wide, first))


def reduce_precision(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: v.exact, FLOATS)
    bits: dict[str, Any] = {"exponent_bits": body.source.integer(2, 11), "mantissa_bits": body.source.integer(1, 23)}
    return body.add(op, [v], **bits)


def stochastic_convert(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: v.exact, FLOATS)
    noise = body.of(next(d for d in UNSIGNED if d.bits == v.dtype.bits), v.dims)
    targets = [D.S8, D.S32, D.S16] + ([D.BF16, D.F16] if v.dtype is D.F32 else [])
    return body.add(op, [v, noise], Shape(body.source.choice(targets), v.dims))


CONVERT_RULES = {
    Op.CONVERT: convert,
    Op.BITCAST_CONVERT: bitcast_convert,
    Op.REDUCE_PRECISION: reduce_precision,
    Op.STOCHASTIC_CONVERT: stochastic_convert,
}
TERNARY_RULES = {Op.SELECT: select, Op.CLAMP: clamp}
