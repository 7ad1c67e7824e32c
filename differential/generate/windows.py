"""Draws reduce-window and select-and-scatter: windows of every kind, over drawn values and over planes of their own.

A dimension's window may be wider than the array, lie in padding of any width, skip elements, meet holes, run backward
or be cumulative; the others are mostly of one element, which may lie in the padding, too.
"""

from __future__ import annotations

import math
from typing import Any

from ...hlo.attributes import Window, WindowDim
from ...hlo.dtypes import DType
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from ...hlo.records import replace
from ...hlo.shapes import Shape, array, tuple_shape
from .folds import argmax_region, fold_ops, folded_known, identity, region_of
from .program import MOST_ELEMENTS, Body
from .regions import ORDERED, chain_region, start_of
from .source import Source
from .values import DRAWN, FLOATS, SIGNED, UNSIGNED, Value

MOST_RESULTS = 4096
MOST_READS = 1 << 16
"""Elements of all windows together: the oracle reads them one position of the window after the other."""

LANES = (8, 7, 9, 15, 16, 17, 31, 32, 33, 64, 65, 127, 130, 260)
"""Sizes of the dimension along memory of a plane: around the widths of vectors and of the tiles of both stacks."""

FEW = (2, 1, 3, 4, 5, 8)
"""Sizes of the other dimensions of a plane."""

EMPTY_PERCENT = 8
"""Windows that may be longer than what they slide over, so that there are no results."""

FAR = (9, 70, 140)
"""Padding that is wider than windows, vectors and tiles."""


def positions(w: WindowDim, n: int) -> int:
    """The number of positions of a window along a dimension of n elements."""
    padded = (n - 1) * w.lhs_dilate + 1 + w.pad_low + w.pad_high if n else w.pad_low + w.pad_high
    reach = (w.size - 1) * w.rhs_dilate + 1
    return (padded - reach) // w.stride + 1 if padded >= reach else 0


def window_dim(body: Body, n: int) -> tuple[WindowDim, int]:
    """A short window along a dimension of n elements, and its number of positions."""
    w = short_dim(body.source, n)
    return w, positions(w, n)


def plain_dim(draw: Source, n: int) -> WindowDim:
    """A short window without padding and dilation."""
    size, stride = draw.integer(1, 3), draw.integer(1, 2)
    return WindowDim(max(1, min(size, n)), stride)


def short_dim(draw: Source, n: int) -> WindowDim:
    """A short window with a little of everything."""
    size, stride = draw.integer(1, 3), draw.integer(1, 2)
    holes, spread = draw.choice((1, 1, 2)), draw.choice((1, 1, 2))
    low, high = draw.choice((0, 1, 2, -1)), draw.choice((0, 1, 2, -1))
    return WindowDim(size, stride, low, high, holes, spread, draw.chance(20))


def single_dim(draw: Source, n: int) -> WindowDim:
    """A window of one element, most often without anything else; else some lie in the padding or in holes."""
    if draw.chance(50):
        return WindowDim(1, draw.choice((1, 1, 2, 3)), *_padding(draw, n, 1), draw.choice((1, 1, 2, 3)))
    return WindowDim(1)


def wide_dim(draw: Source, n: int) -> WindowDim:
    """A window of any size up to more than the array, with strides up to more than the window."""
    size = draw.choice((2, 3, 4, 5, 1, 8, 16, 17, 21, 33, max(n, 1), n + 2))
    stride = draw.choice((1, 2, 3, 4, 5, 1, size, size + 2))
    holes, spread = draw.choice((1, 1, 1, 2, 3, 4)), draw.choice((1, 1, 1, 2, 3, 4))
    return WindowDim(size, stride, *_padding(draw, n, size), holes, spread, draw.chance(15))


def cumulative_dim(draw: Source, n: int) -> WindowDim:
    """A window over all that is before each element, or behind it; sometimes a little more or less than that."""
    n = max(n, 1)
    size = n + draw.choice((0, 0, 0, 3, -1) if n > 1 else (0, 0, 3))
    other = draw.choice((0, 0, 0, 1, -1))
    low, high = (size - 1, other) if not draw.chance(40) else (other, size - 1)
    return WindowDim(size, 1, low, high, 1, 1, draw.chance(10))


def _padding(draw: Source, n: int, size: int) -> tuple[int, int]:
    """Padding on no side, on one or on both: less than the window, more than it, or negative."""
    sides = draw.choice((3, 0, 1, 2, 3))

    def side() -> int:
        kind = draw.integer(0, 9)
        if kind < 5:
            return draw.integer(1, 3)
        if kind < 8:
            return size + draw.integer(0, 3)
        return draw.choice(FAR) if kind == 8 else -draw.integer(1, max(1, n))

    return side() if sides & 1 else 0, side() if sides & 2 else 0


def window_of(draw: Source, dims: tuple[int, ...], column: int) -> tuple[WindowDim, ...]:
    """A window over an array: short along all dimensions, or wide or cumulative along one or two, `column` often."""
    kind = draw.integer(0, 9)
    if kind < 3 or not dims:
        return tuple(short_dim(draw, n) for n in dims)
    rule = cumulative_dim if kind < 5 else wide_dim
    chosen = {column if draw.chance(70) else draw.integer(0, len(dims) - 1)}
    if draw.chance(35):
        chosen.add(draw.integer(0, len(dims) - 1))
    bare = kind in (3, 5)  # a cumulative one is a running reduction if the others are
    return tuple(
        rule(draw, n) if d in chosen else WindowDim(1) if bare else single_dim(draw, n) for d, n in enumerate(dims)
    )


def _fits(window: tuple[WindowDim, ...], counts: tuple[int, ...]) -> bool:
    size = math.prod(counts)
    return size <= MOST_RESULTS and size * math.prod(w.size for w in window) <= MOST_READS


def _fitting(draw: Source, dims: tuple[int, ...], column: int) -> tuple[tuple[WindowDim, ...], tuple[int, ...]]:
    """(Window, dimensions of its result); if there are too many elements, the padding and the windows are shortened."""
    window = window_of(draw, dims, column)
    if not draw.chance(EMPTY_PERCENT):
        window = tuple(_met(w, n) for w, n in zip(window, dims, strict=True))
    for most in (4096, 16, 3, 1):
        window = tuple(_shortened(w, most) for w in window)
        counts = tuple(positions(w, n) for w, n in zip(window, dims, strict=True))
        if _fits(window, counts):
            break
    return window, counts


def _met(w: WindowDim, n: int) -> WindowDim:
    """With so much padding that there is a position."""
    size = n if n == 0 else (n - 1) * w.lhs_dilate + 1
    missing = (w.size - 1) * w.rhs_dilate + 1 - size - w.pad_low - w.pad_high
    return replace(w, pad_high=w.pad_high + max(0, missing))


def _shortened(w: WindowDim, most: int) -> WindowDim:
    low, high = (min(p, most) for p in (w.pad_low, w.pad_high))
    holes = min(w.lhs_dilate, most)
    return replace(w, size=min(w.size, most), pad_low=low, pad_high=high, lhs_dilate=holes)


def _plane(body: Body, fits: Any) -> Value:
    """A value of few rows and a width around those of vectors, of the type of the program."""
    draw, allowed = body.source, body.program.limits.dtypes
    dtype = draw.choice([d for d in body.program.types if d in DRAWN] or allowed[:1])
    rank = draw.choice((2, 1, 3, 2, 4, 5))
    dims = [draw.choice(FEW if rank < 4 else FEW[:3]) for _ in range(rank - 1)]
    dims.insert(draw.choice((rank - 1, rank - 1, rank - 1, 0)), draw.choice(LANES))
    if math.prod(dims) > MOST_ELEMENTS:
        dims = [min(n, 33 if n == max(dims) else 3) for n in dims]
    return body.of(dtype, dims, fits)


def reduce_window(body: Body, op: Op) -> Value | None:
    """A fold of windows: of a preferred value, of any, or of a plane; rarely of two arrays, or in order."""
    draw = body.source

    def fits(v: Value) -> bool:
        return v.smooth and bool(v.dims) and v.size <= MOST_ELEMENTS

    if draw.chance(55) and not body.preferred:
        v = _plane(body, fits)
    else:
        v = body.operand(fits, DRAWN)
    if not v.dims:
        return None
    column = v.instruction.shape.minor_to_major[0]
    window, counts = _fitting(draw, v.dims, column)
    if not _fits(window, counts):
        return None
    kind = draw.integer(0, 19)
    if kind >= 18 and v.exact and v.dtype in ORDERED:
        return _places(body, v, window, counts)
    if kind == 17 and v.dtype in (*SIGNED, *UNSIGNED):
        return _folded(body, v, chain_region(body, v.dtype), body.scalar(v.dtype), window, counts, {})
    fold = draw.choice(fold_ops(v.dtype, v.most))
    start = start_of(body, fold, v.dtype)
    known = folded_known(fold, (v, start), math.prod(w.size for w in window) + 1)
    return _folded(body, v, region_of(body, fold, v.dtype), start, window, counts, known)


def _folded(
    body: Body,
    v: Value,
    region: Computation,
    start: Value,
    window: tuple[WindowDim, ...],
    counts: tuple[int, ...],
    known: dict[str, Any],
) -> Value:
    shape = Shape(v.dtype, counts)
    return body.add(Op.REDUCE_WINDOW, [v, start], shape, **known, window=Window(window), to_apply=region)


def _places(body: Body, v: Value, window: tuple[WindowDim, ...], counts: tuple[int, ...]) -> Value:
    """The largest element of each window, and where it is along one dimension: a fold of two arrays."""
    axis = body.source.integer(0, len(v.dims) - 1)
    number = body.add(Op.IOTA, (), Shape(DType.S32, v.dims), iota_dimension=axis)
    starts = [body.scalar(v.dtype, identity(Op.MAXIMUM, v.dtype)), body.scalar(DType.S32, 0)]
    made = body.instruction(
        Op.REDUCE_WINDOW,
        [x.instruction for x in (v, number, *starts)],
        tuple_shape(Shape(v.dtype, counts), Shape(DType.S32, counts)),
        window=Window(window),
        to_apply=argmax_region(body, v.dtype),
    )
    return body.parts(made, [Value(v.instruction), number])[1]


def select_and_scatter(body: Body, op: Op) -> Value | None:
    """Of plain windows, or of short ones with padding, dilation and reversal."""
    kinds = (*FLOATS, *SIGNED, *UNSIGNED)
    v = body.operand(lambda v: v.whole and bool(v.dims) and v.size <= 300, kinds)
    rule = short_dim if body.source.chance(50) else plain_dim
    window = tuple(rule(body.source, n) for n in v.dims)
    counts = tuple(positions(w, n) for w, n in zip(window, v.dims, strict=True))
    if not _fits(window, counts):
        return None
    source = body.of(v.dtype, counts, lambda w: w.smooth)
    scalar = array(v.dtype)

    def build(inner: Body) -> Instruction:
        return inner.instruction(Op.COMPARE, inner.instructions[:2], array(DType.PRED), direction="GE")

    chosen = body.program.region(f"ge_{v.dtype.value}", (scalar, scalar), build)
    return body.add(
        op,
        [v, source, body.scalar(v.dtype, 0)],
        v.instruction.shape.without_layout(),
        **folded_known(Op.ADD, (source,), max(source.size, 1)),
        window=Window(window),
        select=chosen,
        scatter=region_of(body, Op.ADD, v.dtype),
    )


WINDOW_RULES = {Op.REDUCE_WINDOW: reduce_window, Op.SELECT_AND_SCATTER: select_and_scatter}
