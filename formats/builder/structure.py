"""Ops of XlaBuilder that name values or carry them: parameters, constants, tuples, conversions, compare, select."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from .builder import XlaBuilder
from .shapes import DTypeLike, ShapeLike
from .values import Value, XlaOp, binary, broadcast_to


def parameter(builder: XlaBuilder, parameter_number: int, shape: ShapeLike, name: str | None = None) -> XlaOp:
    """The parameter of this number, counted from 0 (Parameter)."""
    return builder.parameter(parameter_number, shape, name)


def constant(builder: XlaBuilder, value: Any, dtype: DTypeLike | None = None) -> XlaOp:
    """A constant (ConstantR0, ConstantR1, ConstantR2, …): a number, a list or an array; see XlaBuilder.constant."""
    return builder.constant(value, dtype)


def constant_literal(builder: XlaBuilder, literal: Any) -> XlaOp:
    """A constant of a literal (ConstantLiteral): an array, or a tuple of arrays."""
    return builder.constant(literal)


def zero(builder: XlaBuilder, dtype: DTypeLike) -> XlaOp:
    """The scalar 0 of a type (Zero)."""
    return builder.constant(np.zeros((), builder.dtype(dtype).numpy))


def one(builder: XlaBuilder, dtype: DTypeLike) -> XlaOp:
    """The scalar 1 of a type (One)."""
    return builder.constant(np.ones((), builder.dtype(dtype).numpy))


def scalar_like(prototype: XlaOp, value: int | float | complex) -> XlaOp:
    """A scalar of the prototype's element type (ScalarLike)."""
    return prototype.builder.value(value, prototype)


def full_like(prototype: XlaOp, value: int | float | complex) -> XlaOp:
    """An array of the prototype's shape that holds one number (FullLike)."""
    return broadcast_to(scalar_like(prototype, value), prototype.dims, ())


def iota(builder: XlaBuilder, shape: ShapeLike, iota_dimension: int = 0) -> XlaOp:
    """0, 1, 2, … along one dimension (Iota)."""
    return builder.add(Op.IOTA, (), shape, iota_dimension=iota_dimension)


def get_shape(op: XlaOp) -> Shape:
    """The shape of an op (GetShape)."""
    return op.shape


# -- tuples and order -------------------------------------------------------------------------------------------------
def tuple(builder: XlaBuilder, elements: Sequence[Value]) -> XlaOp:
    """A tuple of ops (Tuple)."""
    return builder.add(Op.TUPLE, elements)


def get_tuple_element(tuple_data: XlaOp, index: int) -> XlaOp:
    """An element of a tuple (GetTupleElement); `op[index]` is the same."""
    return tuple_data.builder.add(Op.GET_TUPLE_ELEMENT, [tuple_data], index=index)


def optimization_barrier(operand: XlaOp) -> XlaOp:
    """The operand, whose uses no optimisation moves before it (OptimizationBarrier)."""
    return operand.builder.add(Op.OPT_BARRIER, [operand])


def create_token(builder: XlaBuilder) -> XlaOp:
    """A token that depends on nothing (CreateToken)."""
    return builder.add(Op.AFTER_ALL)


def after_all(builder: XlaBuilder, tokens: Sequence[XlaOp]) -> XlaOp:
    """A token that is ready after all of these (AfterAll)."""
    return builder.add(Op.AFTER_ALL, tokens)


def add_dependency(operand: XlaOp, token: XlaOp) -> XlaOp:
    """The operand, ready after the token."""
    return operand.builder.add(Op.ADD_DEPENDENCY, [operand, token])


# -- conversions ------------------------------------------------------------------------------------------------------
def _retyped(operand: XlaOp, dtype: DTypeLike) -> Shape:
    return Shape(operand.builder.dtype(dtype), operand.dims, None, operand.shape.dynamic)


def convert_element_type(operand: XlaOp, new_element_type: DTypeLike) -> XlaOp:
    """Each element as another type (ConvertElementType)."""
    return operand.builder.add(Op.CONVERT, [operand], _retyped(operand, new_element_type))


def bitcast_convert_type(operand: XlaOp, new_element_type: DTypeLike) -> XlaOp:
    """The bits of the elements as another type (BitcastConvertType). A narrower type adds a last dimension, a wider
    one takes it away.
    """
    shape = _retyped(operand, new_element_type)
    old, new = (8 if d is DType.PRED else d.bits for d in (operand.dtype, shape.dtype))
    if old > new:
        shape = Shape(shape.dtype, (*operand.dims, old // new))
    elif old < new:
        shape = Shape(shape.dtype, operand.dims[:-1])
    return operand.builder.add(Op.BITCAST_CONVERT, [operand], shape)


def stochastic_convert_type(operand: XlaOp, random: XlaOp, new_element_type: DTypeLike) -> XlaOp:
    """Each element as another type, rounded by random bits (StochasticConvertType)."""
    return operand.builder.add(Op.STOCHASTIC_CONVERT, [operand, random], _retyped(operand, new_element_type))


def reduce_precision(operand: XlaOp, exponent_bits: int, mantissa_bits: int) -> XlaOp:
    """Each element rounded to a format of fewer bits, in its own type (ReducePrecision)."""
    return operand.builder.add(Op.REDUCE_PRECISION, [operand], exponent_bits=exponent_bits, mantissa_bits=mantissa_bits)


def conj(operand: XlaOp) -> XlaOp:
    """The complex conjugate (Conj)."""
    b = operand.builder
    return b.add(Op.COMPLEX, [b.add(Op.REAL, [operand]), b.add(Op.NEGATE, [b.add(Op.IMAG, [operand])])])


def copy(operand: XlaOp) -> XlaOp:
    """A copy (Copy)."""
    return operand.builder.add(Op.COPY, [operand])


# -- compare and choose -----------------------------------------------------------------------------------------------
def compare(
    lhs: Value, rhs: Value, direction: str, type: str | None = None, broadcast_dimensions: Sequence[int] = ()
) -> XlaOp:
    """Each two elements compared (Compare). direction: EQ, NE, GE, GT, LE or LT; type: FLOAT, TOTALORDER, SIGNED or
    UNSIGNED.
    """
    return binary(Op.COMPARE, lhs, rhs, broadcast_dimensions, direction=direction, type=type)


def eq(lhs: Value, rhs: Value, broadcast_dimensions: Sequence[int] = ()) -> XlaOp:
    """lhs == rhs (Eq)."""
    return compare(lhs, rhs, "EQ", None, broadcast_dimensions)


def ne(lhs: Value, rhs: Value, broadcast_dimensions: Sequence[int] = ()) -> XlaOp:
    """lhs != rhs (Ne)."""
    return compare(lhs, rhs, "NE", None, broadcast_dimensions)


def ge(lhs: Value, rhs: Value, broadcast_dimensions: Sequence[int] = ()) -> XlaOp:
    """lhs ≥ rhs (Ge)."""
    return compare(lhs, rhs, "GE", None, broadcast_dimensions)


def gt(lhs: Value, rhs: Value, broadcast_dimensions: Sequence[int] = ()) -> XlaOp:
    """lhs > rhs (Gt)."""
    return compare(lhs, rhs, "GT", None, broadcast_dimensions)


def le(lhs: Value, rhs: Value, broadcast_dimensions: Sequence[int] = ()) -> XlaOp:
    """lhs ≤ rhs (Le)."""
    return compare(lhs, rhs, "LE", None, broadcast_dimensions)


def lt(lhs: Value, rhs: Value, broadcast_dimensions: Sequence[int] = ()) -> XlaOp:
    """lhs < rhs (Lt)."""
    return compare(lhs, rhs, "LT", None, broadcast_dimensions)


def select(pred: XlaOp, on_true: Value, on_false: Value) -> XlaOp:
    """Elements of on_true where pred holds, else of on_false (Select). A scalar side is broadcast to the other's shape,
    and a scalar pred stays one.
    """
    b = pred.builder
    like = next((v for v in (on_true, on_false) if isinstance(v, XlaOp)), None)
    x, y = b.value(on_true, like), b.value(on_false, like)
    dims = next((v.dims for v in (x, y, pred) if v.rank), ())
    x, y = (broadcast_to(v, dims, ()) if dims and v.shape.is_array and not v.rank else v for v in (x, y))
    return b.add(Op.SELECT, [pred, x, y])


def clamp(min: Value, operand: XlaOp, max: Value) -> XlaOp:
    """Each element, raised to min and lowered to max, which are scalars or arrays of its shape (Clamp)."""
    b = operand.builder
    return b.add(Op.CLAMP, [b.value(min, operand), operand, b.value(max, operand)])


__all__ = [
    "add_dependency",
    "after_all",
    "bitcast_convert_type",
    "clamp",
    "compare",
    "conj",
    "constant",
    "constant_literal",
    "convert_element_type",
    "copy",
    "create_token",
    "eq",
    "full_like",
    "ge",
    "get_shape",
    "get_tuple_element",
    "gt",
    "iota",
    "le",
    "lt",
    "ne",
    "one",
    "optimization_barrier",
    "parameter",
    "reduce_precision",
    "scalar_like",
    "select",
    "stochastic_convert_type",
    "tuple",
    "zero",
]
