"""Draws ops that move elements: reshapes, transposes, slices, pads, gathers, scatters, dynamic slices and updates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...hlo.attributes import PadDim, SliceDim
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from .folds import folded_known, region_of, scatter_ops
from .program import MOST_ELEMENTS, MOST_RANK, Body
from .values import DRAWN, INDICES, Value, joined_known


def _array(body: Body, most: int = MOST_ELEMENTS, *, rank: bool = False) -> Value:
    """Any value of `most` elements at most. rank: not a scalar."""
    return body.operand(lambda v: v.size <= most and (bool(v.dims) or not rank), DRAWN)


def copy(body: Body, op: Op) -> Value:
    v = body.any()
    made = body.instruction(op, [v.instruction], v.instruction.shape.without_layout())
    if len(v.dims) > 1 and body.source.chance(70):
        made = body.turned(made)
    return body.keep(made, **v.known)


def broadcast(body: Body, op: Op) -> Value | None:
    """Inserts dimensions anywhere, with the operand's in any order."""
    v, draw = _array(body, 1000), body.source
    rank = len(v.dims) + draw.integer(0, min(3, MOST_RANK - len(v.dims)))
    at = draw.sample(range(rank), len(v.dims))
    dims = [draw.choice((2, 1, 3, 5, 0)) if rank < 5 else draw.choice((1, 2)) for _ in range(rank)]
    for d, n in zip(at, v.dims):
        dims[d] = n
    if math.prod(dims) > MOST_ELEMENTS:
        return None
    return body.moved(op, [v], Shape(v.dtype, tuple(dims)), dimensions=tuple(at))


def other_dims(body: Body, dims: Sequence[int]) -> tuple[int, ...]:
    """Dimensions that hold the same number of elements: split, merged, with ones added and dropped."""
    found, draw = list(dims), body.source
    for _ in range(draw.integer(1, 4)):
        at, kind = draw.integer(0, len(found)), draw.integer(0, 3)
        if kind == 0 and at + 1 < len(found):
            found[at : at + 2] = [found[at] * found[at + 1]]
        elif kind == 1 and at < len(found) < MOST_RANK:
            factors = [f for f in (2, 3, 4, 5) if found[at] % f == 0]
            if factors:
                f = draw.choice(factors)
                found[at : at + 1] = [f, found[at] // f]
        elif kind == 2 and len(found) < MOST_RANK:
            found.insert(at, 1)
        elif at < len(found) and found[at] == 1:
            del found[at]
    return tuple(found)


def reshape(body: Body, op: Op) -> Value:
    v = _array(body)
    return body.moved(op, [v], Shape(v.dtype, other_dims(body, v.dims)))


def bitcast(body: Body, op: Op) -> Value:
    """Another shape of the same bytes, which are in row-major order."""
    v = body.operand(lambda v: v.instruction.shape.layout is None, DRAWN)
    return body.moved(op, [v], Shape(v.dtype, other_dims(body, v.dims)))


def transpose(body: Body, op: Op) -> Value:
    v = _array(body)
    order = tuple(body.source.sample(range(len(v.dims)), len(v.dims))[::-1])
    return body.moved(op, [v], Shape(v.dtype, tuple(v.dims[d] for d in order)), dimensions=order)


def reverse(body: Body, op: Op) -> Value:
    v = _array(body)
    over = [d for d in range(len(v.dims)) if body.source.chance(60)]
    return body.moved(op, [v], v.instruction.shape.without_layout(), dimensions=tuple(over))


def slice_(body: Body, op: Op) -> Value:
    """Rarely empty: of each dimension one element at least is taken, but for one in 33."""
    v, parts = _array(body, rank=True), []
    for n in v.dims:
        start = body.source.integer(0, max(n - 1, 0))
        least = start if body.source.chance(3) else min(start + 1, n)
        parts.append(SliceDim(start, body.source.integer(least, n), body.source.choice((1, 2, 1, 3))))
    dims = tuple(-(-(p.limit - p.start) // p.stride) for p in parts)
    return body.moved(op, [v], Shape(v.dtype, dims), slice=tuple(parts))


def pad(body: Body, op: Op) -> Value | None:
    v, draw, rows, dims = _array(body, 1000, rank=True), body.source, [], []
    for n in v.dims:
        low, high, inner = draw.choice((0, 1, 2, -1)), draw.choice((0, 1, 2, -1)), draw.choice((0, 0, 1))
        made = low + high + n + max(n - 1, 0) * inner
        if made < 0:
            low, high, inner, made = 0, 0, 0, n
        rows.append(PadDim(low, high, inner))
        dims.append(made)
    if math.prod(dims) > MOST_ELEMENTS:
        return None
    return body.moved(op, [v, body.scalar(v.dtype)], Shape(v.dtype, tuple(dims)), padding=tuple(rows))


def concatenate(body: Body, op: Op) -> Value:
    v, draw = _array(body, 800, rank=True), body.source
    axis = draw.integer(0, len(v.dims) - 1)
    found = [w for w in body.values if w.dtype is v.dtype and _differs_along(w.dims, v.dims, axis) and w.size <= 800]
    parts = [v, *(draw.choice(found) for _ in range(draw.integer(1, 4)))]
    dims = tuple(sum(p.dims[axis] for p in parts) if d == axis else n for d, n in enumerate(v.dims))
    return body.moved(op, parts, Shape(v.dtype, dims), dimensions=(axis,))


def _differs_along(a: Sequence[int], b: Sequence[int], axis: int) -> bool:
    return len(a) == len(b) and all(m == n for d, (m, n) in enumerate(zip(a, b)) if d != axis)


def iota(body: Body, op: Op) -> Value:
    dims = tuple(body.source.choice(body.program.shapes)) or (5,)
    dtype = body.source.choice([d for d in body.program.limits.dtypes if d.is_float or d.is_integer or d.is_complex])
    return body.add(op, (), Shape(dtype, dims), iota_dimension=body.source.integer(0, len(dims) - 1))


def dynamic_slice(body: Body, op: Op) -> Value:
    v = _array(body, rank=True)
    sizes = tuple(body.source.integer(min(1, n), n) for n in v.dims)
    first = body.index()
    starts = [first, *(body.of(first.dtype, ()) for _ in v.dims[1:])]
    return body.add(op, [v, *starts], Shape(v.dtype, sizes), **v.known, dynamic_slice_sizes=sizes)


def dynamic_update_slice(body: Body, op: Op) -> Value:
    v = _array(body, rank=True)
    piece = body.of(v.dtype, [body.source.integer(min(1, n), n) for n in v.dims])
    first = body.index()
    starts = [first, *(body.of(first.dtype, ()) for _ in v.dims[1:])]
    shape = v.instruction.shape.without_layout()
    return body.add(op, [v, piece, *starts], shape, **joined_known([v, piece]))


@dataclass(frozen=True)
class Numbers:
    """Dimension numbers of a gather or scatter."""

    sizes: tuple[int, ...]
    mapped: tuple[int, ...]
    alone: tuple[int, ...]
    places: tuple[int, ...]
    indices: tuple[int, ...]
    vector: int
    combined: tuple[int, ...]


def _numbers(body: Body, dims: Sequence[int]) -> Numbers:
    draw, rank = body.source, len(dims)
    mapped = draw.sample(range(rank), draw.integer(min(1, rank), min(rank, 2)))
    alone = sorted(draw.sample(range(rank), draw.integer(0, min(rank, 2))))
    sizes = [min(1, n) if d in alone else draw.integer(min(1, n), n) for d, n in enumerate(dims)]
    batch = [draw.choice((2, 1, 3, 4)) for _ in range(draw.integer(0, 2))]
    window = rank - len(alone)
    places = sorted(draw.sample(range(len(batch) + window), window))
    vector = draw.integer(0, len(batch))
    if len(mapped) == 1 and draw.chance(50):
        vector, indices = len(batch), batch
    else:
        indices = [*batch[:vector], len(mapped), *batch[vector:]]
    inner, outer = iter([n for d, n in enumerate(sizes) if d not in alone]), iter(batch)
    combined = [next(inner) if d in places else next(outer) for d in range(len(batch) + window)]
    lists = (tuple(sizes), tuple(mapped), tuple(alone), tuple(places), tuple(indices))
    return Numbers(*lists, vector, tuple(combined))


def gather(body: Body, op: Op) -> Value | None:
    v = _array(body, 500)
    n = _numbers(body, v.dims)
    if math.prod(n.combined) > 2000 or len(n.combined) > MOST_RANK:
        return None
    where = body.of(body.source.choice(INDICES), n.indices)
    return body.add(
        op,
        [v, where],
        Shape(v.dtype, n.combined),
        **v.known,
        offset_dims=n.places,
        collapsed_slice_dims=n.alone,
        start_index_map=n.mapped,
        index_vector_dim=n.vector,
        slice_sizes=n.sizes,
    )


def scatter(body: Body, op: Op) -> Value | None:
    v = body.operand(lambda v: v.size <= 500 and v.smooth and not v.dtype.is_complex, DRAWN)
    n = _numbers(body, v.dims)
    if math.prod(n.combined) > 500 or len(n.combined) > MOST_RANK:
        return None
    where = body.of(body.source.choice(INDICES), n.indices)
    updates = body.of(v.dtype, n.combined, lambda w: w.smooth)
    fold = body.source.choice(scatter_ops(v.dtype, max(v.most, updates.most)))
    return body.add(
        op,
        [v, where, updates],
        v.instruction.shape.without_layout(),
        **folded_known(fold, (v, updates), updates.size + 1),
        update_window_dims=n.places,
        inserted_window_dims=n.alone,
        scatter_dims_to_operand_dims=n.mapped,
        index_vector_dim=n.vector,
        to_apply=region_of(body, fold, v.dtype),
    )


MOVEMENT_RULES = {
    Op.COPY: copy,
    Op.BROADCAST: broadcast,
    Op.RESHAPE: reshape,
    Op.BITCAST: bitcast,
    Op.TRANSPOSE: transpose,
    Op.REVERSE: reverse,
    Op.SLICE: slice_,
    Op.PAD: pad,
    Op.CONCATENATE: concatenate,
    Op.IOTA: iota,
    Op.DYNAMIC_SLICE: dynamic_slice,
    Op.DYNAMIC_UPDATE_SLICE: dynamic_update_slice,
    Op.GATHER: gather,
    Op.SCATTER: scatter,
}
