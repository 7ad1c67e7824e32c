"""Draws sorts: rows of lengths around the limits of their kernels along any dimension, several operands, all orders,
and slices of what is sorted. Sorts of which only slices are read have kernels of their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.attributes import SliceDim
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, array, tuple_shape
from .elementwise import without_nan
from .folds import order_region
from .program import MOST_ELEMENTS, Body
from .values import DRAWN, FLOATS, SIGNED, UNSIGNED, Value

ORDERED = (*FLOATS, *SIGNED, *UNSIGNED)

ROWS = (11, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 65, 127, 128, 129, 255, 256, 257, 400, 513, 1025, 2100)
"""Elements of a row: around those of runs, of rows that are sorted side by side, and of those sorted by digits."""

BESIDE = (1, 2, 3, 5, 7, 8, 9, 16, 17, 35)
"""Rows along another dimension: around the lanes of vectors."""

OWN_PERCENT, SLICED_PERCENT, LAYOUT_PERCENT = 60, 60, 25


def sort(body: Body, op: Op) -> Value:
    """A sort of one to four arrays, or slices of one."""
    draw = body.source
    key, axis = _rows(body) if draw.chance(OWN_PERCENT) else _found(body)
    key = without_nan(body, key)
    rest = [_beside(body, key) for _ in range(draw.choice((0, 0, 1, 1, 2, 3)))]
    keys = [key]
    if rest and rest[0].dtype in ORDERED and rest[0].exact and draw.chance(35):
        rest[0] = without_nan(body, rest[0])
        keys.append(rest[0])
    values = [key, *rest]
    order = tuple(range(len(key.dims) - 1, -1, -1))
    if draw.chance(LAYOUT_PERCENT):
        order = tuple(draw.sample(range(len(key.dims)), len(key.dims)))
    values = [_laid_out(body, v, order) for v in values]
    total = key.dtype.is_float and draw.chance(50)
    region = _region(body, [v.dtype for v in values], len(keys), total)
    decided = not rest and (total or not key.dtype.is_float)  # equal keys are the same bits
    stable = {} if decided and draw.chance(50) else {"is_stable": True}
    shapes = [Shape(v.dtype, v.dims).with_layout(order) for v in values]
    shape = tuple_shape(*shapes) if rest else shapes[0]
    operands = [v.instruction for v in values]
    made = body.instruction(op, operands, shape, dimensions=(axis,), to_apply=region, **stable)
    before = list(body.values)
    found = body.parts(made, values) if rest else [body.keep(made, **key.known)]
    if draw.chance(SLICED_PERCENT):
        body.values = before  # nobody else reads what is sorted
        found = [_sliced(body, v, axis) for v in found]
    return found[0]


def _rows(body: Body) -> tuple[Value, int]:
    """(Keys of their own shape, the dimension that is sorted)."""
    draw = body.source
    allowed = [d for d in body.program.types if d in ORDERED] or [d for d in ORDERED if d in body.program.limits.dtypes]
    length, rank = draw.choice(ROWS), draw.choice((2, 1, 2, 3, 4))
    axis, dims = draw.integer(0, rank - 1), [1] * rank
    dims[axis] = length
    for d in range(rank):
        if d != axis:
            room = MOST_ELEMENTS // math.prod(dims)
            dims[d] = max(min(draw.choice(BESIDE), room), 1)
    return body.of(draw.choice(allowed or [DType.F32]), dims, lambda v: v.exact), axis


def _found(body: Body) -> tuple[Value, int]:
    v = body.operand(lambda v: v.exact and bool(v.dims), ORDERED)
    return v, body.source.integer(0, len(v.dims) - 1)


def _beside(body: Body, key: Value) -> Value:
    """An array of the key's dimensions, of any type."""
    draw = body.source
    others = [w for w in body.values if w.dims == key.dims]
    if others and draw.chance(60):
        return draw.choice(others)
    kinds = [d for d in body.program.limits.dtypes if d in DRAWN]
    return body.of(draw.choice(kinds or [key.dtype]), key.dims)


def _laid_out(body: Body, v: Value, order: tuple[int, ...]) -> Value:
    """v in the layout that all operands and results of the sort have."""
    shape = v.instruction.shape
    if shape.minor_to_major == order:
        return v
    made = body.instruction(Op.COPY, [v.instruction], shape.with_layout(order))
    return body.keep(made, **v.known)


def _region(body: Body, dtypes: Sequence[DType], keys: int, total: bool) -> Computation:
    """A comparator of the first of several pairs; of two keys, the second decides between equal ones."""
    draw = body.source
    direction, turned = draw.choice(("LT", "GT")), draw.chance(30)
    kinds = [("TOTALORDER" if total else None) if d.is_float else None for d in dtypes]
    if keys == 1 and not turned:
        return order_region(body, dtypes, direction, kinds[0])

    def compare(inner: Body, n: int, way: str) -> Instruction:
        a, b = inner.instructions[2 * n : 2 * n + 2]
        extra = {"type": kinds[n]} if kinds[n] else {}
        return inner.instruction(Op.COMPARE, (b, a) if turned else (a, b), array(DType.PRED), direction=way, **extra)

    def build(inner: Body) -> Instruction:
        first = compare(inner, 0, direction)
        if keys == 1:
            return first
        same, second = compare(inner, 0, "EQ"), compare(inner, 1, direction)
        return inner.instruction(Op.SELECT, (same, second, first), array(DType.PRED))

    types = "_".join(d.value for d in dtypes)
    name = f"order{keys}_{types}_{direction}_{'total' if total else 'usual'}{'_turned' * turned}"
    return body.program.region(name, [array(d) for d in dtypes for _ in range(2)], build)


def _sliced(body: Body, v: Value, axis: int) -> Value:
    """A part of each row, or of some rows, sometimes at a distance from each other."""
    draw, parts = body.source, []
    for d, n in enumerate(v.dims):
        if n == 0 or not draw.chance(85 if d == axis else 30):
            parts.append(SliceDim(0, n, 1))
            continue
        start = draw.choice((0, 0, draw.integer(0, n - 1)))
        limit = draw.choice((n, draw.integer(start + 1, n)))
        parts.append(SliceDim(start, limit, draw.choice((1, 1, 2, 3))))
    dims = tuple(-(-(p.limit - p.start) // p.stride) for p in parts)
    shape = Shape(v.dtype, dims)
    order = v.instruction.shape.minor_to_major
    if not draw.chance(15):
        shape = shape.with_layout(order)
    return body.keep(body.instruction(Op.SLICE, [v.instruction], shape, slice=tuple(parts)), **v.known)
