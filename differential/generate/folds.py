"""The computations of scalars that reductions, windows and scatters apply, and what is known of their results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import array, tuple_shape
from .program import Body
from .values import Value, capacity, continuous, limits

PUT, KEEP = "put", "keep"
"""Regions of scatters that take the update, or what was there."""

Fold = Op | str


def fold_ops(dtype: DType, most: float) -> tuple[Op, ...]:
    """Ops that may fold elements of a type, up to a magnitude, in any order.

    Floats are multiplied only where no product can overflow: whether an infinity meets a zero depends on the order.
    """
    if dtype is DType.PRED:
        return Op.OR, Op.AND, Op.XOR
    if dtype.is_complex:
        return (Op.ADD,)
    if dtype.is_integer:
        return Op.ADD, Op.MAXIMUM, Op.MINIMUM, Op.MULTIPLY, Op.AND, Op.OR, Op.XOR
    return Op.ADD, Op.MAXIMUM, Op.MINIMUM, Op.ADD, *([Op.MULTIPLY] if most <= 1 else [])


def scatter_ops(dtype: DType, most: float) -> tuple[Fold, ...]:
    return *fold_ops(dtype, most), PUT, KEEP


def identity(op: Op, dtype: DType) -> Any:
    """The number that a fold begins with and that changes nothing."""
    if op is Op.MULTIPLY:
        return 1
    if op is Op.AND:
        return True if dtype is DType.PRED else -1 if dtype.is_signed else limits(dtype)[1]
    if op in (Op.MAXIMUM, Op.MINIMUM):
        if dtype.is_integer:
            return limits(dtype)[op is Op.MINIMUM]
        most = math.inf if capacity(dtype) > 64 else 4.0
        return -most if op is Op.MAXIMUM else most
    return 0


def region_of(body: Body, fold: Fold, dtype: DType) -> Computation:
    """The computation of two scalars that a fold applies."""
    scalar = array(dtype)
    stem = fold.value if isinstance(fold, Op) else fold

    def build(inner: Body) -> Instruction:
        a, b = inner.instructions
        if isinstance(fold, Op):
            return inner.instruction(fold, (a, b), scalar)
        return b if fold == PUT else a

    return body.program.region(f"{stem}_{dtype.value}", (scalar, scalar), build)


def folded_known(fold: Fold, values: Sequence[Value], count: int) -> dict[str, Any]:
    """What is known of a fold of `count` elements of the values, as arguments of Body.add."""
    exact, whole = all(v.exact for v in values), all(v.whole for v in values)
    most, dtype = max(v.most for v in values), values[-1].dtype
    if not continuous(dtype):
        return {}
    if fold is Op.ADD:
        total = count * most if count else 0.0
        whole = whole and total <= capacity(dtype)
        return {"exact": whole, "whole": whole, "most": total}
    if fold is Op.MULTIPLY:
        return {"exact": False}
    return {"exact": exact, "whole": whole, "most": most}


def argmax_region(body: Body, dtype: DType) -> Computation:
    """Of (value, index, value, index): the larger value, NaN above all, and of equal ones the first."""
    value, number, truth = array(dtype), array(DType.S32), array(DType.PRED)

    def build(inner: Body) -> Instruction:
        a, i, b, j = inner.instructions
        more = inner.instruction(Op.COMPARE, (a, b), truth, direction="GT")
        nan = inner.instruction(Op.COMPARE, (a, a), truth, direction="NE")
        left = inner.instruction(Op.OR, (more, nan), truth)
        equal = inner.instruction(Op.COMPARE, (a, b), truth, direction="EQ")
        before = inner.instruction(Op.COMPARE, (i, j), truth, direction="LT")
        first = inner.instruction(Op.AND, (equal, before), truth)
        which = inner.instruction(Op.OR, (left, first), truth)
        x = inner.instruction(Op.SELECT, (left, a, b), value)
        y = inner.instruction(Op.SELECT, (which, i, j), number)
        return inner.instruction(Op.TUPLE, (x, y), tuple_shape(value, number))

    return body.program.region(f"argmax_{dtype.value}", (value, number, value, number), build)


def order_region(body: Body, dtypes: Sequence[DType], direction: str, kind: str | None) -> Computation:
    """A comparator of the first of several pairs."""
    shapes = [array(d) for d in dtypes for _ in range(2)]

    def build(inner: Body) -> Instruction:
        a, b = inner.instructions[:2]
        extra = {"type": kind} if kind else {}
        return inner.instruction(Op.COMPARE, (a, b), array(DType.PRED), direction=direction, **extra)

    names = "_".join(d.value for d in dtypes)
    return body.program.region(f"order_{names}_{direction}_{kind or 'usual'}", shapes, build)
