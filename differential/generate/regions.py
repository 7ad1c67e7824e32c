"""Draws ops that apply a computation of scalars: reduce, reduce-window, select-and-scatter, sort, map, scan, topk."""

from __future__ import annotations

import math

from ...hlo.attributes import Window, WindowDim
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, array, tuple_shape
from .elementwise import without_nan
from .folds import argmax_region, fold_ops, folded_known, identity, region_of
from .inputs import LONG_KINDS
from .program import LONG, MOST_ELEMENTS, Body
from .sorts import sort
from .values import DRAWN, FLOATS, SIGNED, UNSIGNED, Value, capacity, continuous, limits

ORDERED = (*FLOATS, *SIGNED, *UNSIGNED)
SUMMED = tuple(d for d in DRAWN if not d.is_complex)


IN_ORDER = 32
"""Elements that a fold in order has at most: the oracle folds pairs of more."""


LARGE_START = 4096


def _start(body: Body, op: Op, dtype: DType) -> Value:
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
    start = _start(body, fold, v.dtype)
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
    start = _start(body, Op.ADD, dtype)
    known = folded_known(Op.ADD, (v, start), dims[over[0]] + 1)
    return body.add(Op.REDUCE, [v, start], Shape(dtype, left), **known, dimensions=over, to_apply=region)


def _in_order(body: Body) -> Value:
    """A fold along one dimension that is neither commutative nor associative: all stacks fold from the first on."""
    v = body.operand(lambda v: any(n <= IN_ORDER for n in v.dims), (*SIGNED, *UNSIGNED))
    short = [d for d, n in enumerate(v.dims) if n <= IN_ORDER]
    axis, scalar = body.source.choice(short), array(v.dtype)

    def build(inner: Body) -> Instruction:
        a, b = inner.instructions
        return inner.instruction(Op.ADD, (inner.instruction(Op.ADD, (a, a), scalar), b), scalar)

    region = body.program.region(f"chain_{v.dtype.value}", (scalar, scalar), build)
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


# windows


def window_dim(body: Body, n: int, *, plain: bool = False) -> tuple[WindowDim, int]:
    """One dimension of a window over n elements, and its number of positions. plain: without padding and dilation."""
    draw = body.source
    size, stride = draw.integer(1, 3), draw.integer(1, 2)
    if plain:
        size = max(1, min(size, n))
        return WindowDim(size, stride), (n - size) // stride + 1 if n >= size else 0
    holes, spread = draw.choice((1, 1, 2)), draw.choice((1, 1, 2))
    low, high = draw.choice((0, 1, 2, -1)), draw.choice((0, 1, 2, -1))
    padded = (n - 1) * holes + 1 + low + high if n else low + high
    reach = (size - 1) * spread + 1
    count = 0 if padded < reach else (padded - reach) // stride + 1
    return WindowDim(size, stride, low, high, holes, spread, draw.chance(20)), count


def _cumulative(body: Body, dims: tuple[int, ...]) -> tuple[WindowDim, ...]:
    """A window over all that is before each element, or behind it, along one dimension."""
    axis = body.source.integer(0, len(dims) - 1)
    n, front = dims[axis], body.source.chance(70)
    along = WindowDim(max(n, 1), 1, n - 1 if front and n else 0, 0 if front or not n else n - 1)
    return tuple(along if d == axis else WindowDim(1) for d in range(len(dims)))


def reduce_window(body: Body, op: Op) -> Value | None:
    v = body.operand(lambda v: v.smooth and bool(v.dims) and v.size <= 500, SUMMED)
    fold = body.source.choice(fold_ops(v.dtype, v.most))
    if body.source.chance(30) and v.size:
        window, dims = _cumulative(body, v.dims), v.dims
    else:
        rows = [window_dim(body, n) for n in v.dims]
        window, dims = tuple(w for w, _ in rows), tuple(n for _, n in rows)
    if math.prod(dims) > 1500:
        return None
    start = (
        _start(body, fold, v.dtype)
        if fold in (Op.MAXIMUM, Op.MINIMUM)
        else body.scalar(v.dtype, identity(fold, v.dtype))
    )
    known = folded_known(fold, (v, start), math.prod(w.size for w in window))
    region = region_of(body, fold, v.dtype)
    shape = Shape(v.dtype, dims)
    return body.add(op, [v, start], shape, **known, window=Window(window), to_apply=region)


def select_and_scatter(body: Body, op: Op) -> Value:
    kinds = (*FLOATS, *SIGNED, *UNSIGNED)
    v = body.operand(lambda v: v.whole and bool(v.dims) and v.size <= 300, kinds)
    rows = [window_dim(body, n, plain=True) for n in v.dims]
    source = body.of(v.dtype, [n for _, n in rows], lambda w: w.smooth)
    scalar = array(v.dtype)

    def build(inner: Body) -> Instruction:
        return inner.instruction(Op.COMPARE, inner.instructions[:2], array(DType.PRED), direction="GE")

    chosen = body.program.region(f"ge_{v.dtype.value}", (scalar, scalar), build)
    return body.add(
        op,
        [v, source, body.scalar(v.dtype, 0)],
        v.instruction.shape.without_layout(),
        **folded_known(Op.ADD, (source,), max(source.size, 1)),
        window=Window(tuple(w for w, _ in rows)),
        select=chosen,
        scatter=region_of(body, Op.ADD, v.dtype),
    )


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
    Op.REDUCE_WINDOW: reduce_window,
    Op.SELECT_AND_SCATTER: select_and_scatter,
    Op.SORT: sort,
    Op.TOPK: topk,
    Op.MAP: map_,
    Op.SCAN: scan,
}
