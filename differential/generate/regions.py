"""Draws ops that apply a computation of scalars: reduce, sort, map, scan, topk; windows.py draws those of windows."""

from __future__ import annotations

import math

from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, array, tuple_shape
from .elementwise import without_nan
from .folds import argmax_region, fold_ops, folded_known, identity, region_of
from .inputs import LONG_KINDS
from .program import LONG, MOST_ELEMENTS, Body
from .sorts import sort
from .values import DRAWN, FLOATS, SIGNED, UNSIGNED, Value, capacity, continuous, limits

ORDERED = (*FLOATS, *SIGNED, *UNSIGNED)


IN_ORDER = 32
"""Elements that a fold in order has at most: the oracle folds pairs of more."""


LARGE_START = 4096


def start_of(body: Body, op: Op, dtype: DType) -> Value:
    """The number that a reduction begins with: its identity, or another one, which counts once.

    The large one is more than what the orders of a long sum may differ by.
    """
    if op in (Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR):
        return body.scalar(dtype) if body.source.chance(30) else body.scalar(dtype, identity(op, dtype))
    if not body.program.limits.starts or not body.source.chance(20):
        return body.scalar(dtype, identity(op, dtype))
    most = capacity(dtype) if continuous(dtype) else limits(dtype)[1]
    return body.scalar(dtype, min(body.source.choice((3, LARGE_START)), most))


def reduce(body: Body, op: Op) -> Value:
    """A fold along some dimensions; rarely of rows, a long one, an argmax, one of several arrays, or one in order."""
    kind = body.source.integer(0, 27)
    if kind >= 26:
        return _in_order(body)
    if kind >= 24 and body.entry:
        return _long(body)
    if kind >= 19:
        return _of_rows(body)
    if kind >= 17:
        return _argmax(body)
    if kind >= 15:
        return _several(body)
    v = body.operand(lambda v: v.smooth, DRAWN)
    return _reduced(body, v, body.source.choice(fold_ops(v.dtype, v.most)))


def _reduced(body: Body, v: Value, fold: Op) -> Value:
    return _folded(body, v, fold, tuple(d for d in range(len(v.dims)) if not body.source.chance(40)))


def _folded(body: Body, v: Value, fold: Op, over: tuple[int, ...]) -> Value:
    left = tuple(n for d, n in enumerate(v.dims) if d not in over)
    count = math.prod(v.dims[d] for d in over)
    start = start_of(body, fold, v.dtype)
    known = folded_known(fold, (v, start), count + 1)
    region = region_of(body, fold, v.dtype)
    return body.add(Op.REDUCE, [v, start], Shape(v.dtype, left), **known, dimensions=over, to_apply=region)


ROWS = (65, 32, 33, 64, 130, 259)
"""Elements of rows that are folded in several vectors at once, and what is left of them."""


def _of_rows(body: Body) -> Value:
    """A fold of rows that fill several vectors, along the last dimension."""
    usual = [d for d in (DType.F32, DType.F64) if d in body.program.limits.dtypes]
    dtype = body.source.choice([*(d for d in body.program.types if d in ORDERED), *usual] or [DType.F32])
    dims = (*((body.source.choice((3, 1, 8)),) if body.source.chance(60) else ()), body.source.choice(ROWS))
    v = body.of(dtype, dims, lambda v: v.smooth)
    fold = body.source.choice(fold_ops(dtype, v.most))
    return _folded(body, v, fold, (len(dims) - 1,))


def _long(body: Body) -> Value:
    """A sum of more than 100,000 elements, in which a loss of precision is seen."""
    allowed = [d for d in body.program.limits.dtypes if d in FLOATS]
    dtype = body.source.choice(allowed or [DType.F32])
    size = body.source.choice(LONG)
    dims = body.source.choice(((size,), (1, size), (size // 2, 2), (3, size)))
    v = body.parameter(dtype, dims, LONG_KINDS)
    over = (max(range(len(dims)), key=dims.__getitem__),)
    left = tuple(n for d, n in enumerate(dims) if d not in over)
    region = region_of(body, Op.ADD, dtype)
    start = start_of(body, Op.ADD, dtype)
    known = folded_known(Op.ADD, (v, start), dims[over[0]] + 1)
    return body.add(Op.REDUCE, [v, start], Shape(dtype, left), **known, dimensions=over, to_apply=region)


def chain_region(body: Body, dtype: DType) -> Computation:
    """The computation 2·a + b, whose folds have one order."""
    scalar = array(dtype)

    def build(inner: Body) -> Instruction:
        a, b = inner.instructions
        return inner.instruction(Op.ADD, (inner.instruction(Op.ADD, (a, a), scalar), b), scalar)

    return body.program.region(f"chain_{dtype.value}", (scalar, scalar), build)


def _in_order(body: Body) -> Value:
    """A fold along one dimension that is neither commutative nor associative: all stacks fold from the first on."""
    v = body.operand(lambda v: any(n <= IN_ORDER for n in v.dims), (*SIGNED, *UNSIGNED))
    short = [d for d, n in enumerate(v.dims) if n <= IN_ORDER]
    axis, region = body.source.choice(short), chain_region(body, v.dtype)
    left = tuple(n for d, n in enumerate(v.dims) if d != axis)
    start = body.scalar(v.dtype)
    return body.add(Op.REDUCE, [v, start], Shape(v.dtype, left), dimensions=(axis,), to_apply=region)


def _argmax(body: Body) -> Value:
    v = body.operand(lambda v: v.exact and bool(v.dims), ORDERED)
    axis = body.source.integer(0, len(v.dims) - 1)
    number = body.add(Op.IOTA, (), Shape(DType.S32, v.dims), iota_dimension=axis)
    starts = [body.scalar(v.dtype, identity(Op.MAXIMUM, v.dtype)), body.scalar(DType.S32, 0)]
    left = tuple(n for d, n in enumerate(v.dims) if d != axis)
    shape = tuple_shape(Shape(v.dtype, left), Shape(DType.S32, left))
    made = body.instruction(
        Op.REDUCE,
        [x.instruction for x in (v, number, *starts)],
        shape,
        dimensions=(axis,),
        to_apply=argmax_region(body, v.dtype),
    )
    return body.parts(made, [v if v.dims[axis] and v.whole else Value(v.instruction), number])[1]


def _several(body: Body) -> Value:
    """The sum of one array and the maximum of another, in one reduce."""
    v = body.operand(lambda v: v.smooth and bool(v.dims), ORDERED)
    w, axis, scalar = body.like(v), body.source.integer(0, len(v.dims) - 1), array(v.dtype)

    def build(inner: Body) -> Instruction:
        a, b, c, d = inner.instructions
        x = inner.instruction(Op.ADD, (a, c), scalar)
        y = inner.instruction(Op.MAXIMUM, (b, d), scalar)
        return inner.instruction(Op.TUPLE, (x, y), tuple_shape(scalar, scalar))

    region = body.program.region(f"sum_and_maximum_{v.dtype.value}", (scalar,) * 4, build)
    starts = [body.scalar(v.dtype, 0), body.scalar(v.dtype, identity(Op.MAXIMUM, v.dtype))]
    left = Shape(v.dtype, tuple(n for d, n in enumerate(v.dims) if d != axis))
    operands = [x.instruction for x in (v, w, *starts)]
    shape = tuple_shape(left, left)
    made = body.instruction(Op.REDUCE, operands, shape, dimensions=(axis,), to_apply=region)
    known = folded_known(Op.ADD, (v,), v.dims[axis])
    total = Value(made, **known)
    largest = Value(made, w.exact, w.whole and bool(v.dims[axis]), w.most if v.dims[axis] else math.inf)
    return body.parts(made, [total, largest])[0]


# order


def _plain(body: Body, v: Value) -> Value:
    """v in the layout that ops with several results have."""
    if v.instruction.shape.layout is None:
        return v
    return body.moved_copy(v)


def topk(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: v.exact and bool(v.dims) and v.dims[-1] > 0, ORDERED)
    v, k = _plain(body, without_nan(body, v)), body.source.integer(1, v.dims[-1])
    dims = (*v.dims[:-1], k)
    shape = tuple_shape(Shape(v.dtype, dims), Shape(DType.S32, dims))
    made = body.instruction(op, [v.instruction], shape, k=k, largest=not body.source.chance(50))
    return body.parts(made, [v, Value(made)])[0]


# other regions


def map_(body: Body, op: Op) -> Value:
    """max(a, b) - b of each element."""
    kinds = tuple(d for d in DRAWN if d is not DType.PRED and not d.is_complex)
    v = body.operand(lambda v: v.smooth and v.size <= 500, kinds)
    w = body.like(v, lambda w: w.smooth)
    scalar = array(v.dtype)

    def build(inner: Body) -> Instruction:
        a, b = inner.instructions
        return inner.instruction(Op.SUBTRACT, (inner.instruction(Op.MAXIMUM, (a, b), scalar), b), scalar)

    region = body.program.region(f"map_{v.dtype.value}", (scalar, scalar), build)
    shape, every = v.instruction.shape.without_layout(), tuple(range(len(v.dims)))
    return body.add(op, [v, w], shape, exact=not continuous(v.dtype), dimensions=every, to_apply=region)


def scan(body: Body, op: Op) -> Value:
    """Running sums of the slices along the first dimension, in order."""
    kinds = tuple(d for d in DRAWN if d is not DType.PRED)
    v = body.operand(lambda v: v.smooth and bool(v.dims) and v.dims[0] <= 16 and v.size <= MOST_ELEMENTS // 4, kinds)
    v = _plain(body, v)
    row = Shape(v.dtype, v.dims[1:])
    init = _plain(body, body.of(v.dtype, row.dims, lambda w: w.smooth))

    def build(inner: Body) -> Instruction:
        x, carry = inner.instructions
        total = inner.instruction(Op.SUBTRACT, (carry, x), row)
        return inner.instruction(Op.TUPLE, (carry, total), tuple_shape(row, row))

    name = f"running_{v.dtype.value}_{'_'.join(map(str, row.dims))}"
    region = body.program.region(name, (row, row), build)
    made = body.instruction(
        op,
        (v.instruction, init.instruction),
        tuple_shape(v.instruction.shape, row),
        dimensions=(0,),
        num_carries=1,
        is_reverse=body.source.chance(40),
        to_apply=region,
    )
    known = folded_known(Op.ADD, (init, v), v.dims[0] + 1)
    total = Value(made, **known)
    return body.parts(made, [total, total])[0]


REGION_RULES = {
    Op.REDUCE: reduce,
    Op.SORT: sort,
    Op.TOPK: topk,
    Op.MAP: map_,
    Op.SCAN: scan,
}
