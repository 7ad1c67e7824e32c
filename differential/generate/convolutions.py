"""Draws convolutions: of a value that is there, or of sizes around those of vectors and tiles, as exporters write them:
operands behind transposes, pads and concatenations, and elementwise ops behind the result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...hlo.attributes import ConvolutionDims, PadDim, Window, WindowDim
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape
from .elementwise import arithmetic_known
from .program import Body
from .values import MULTIPLIED, TAME, Value, summed_known
from .windows import window_dim

D = DType
WIDER = {D.BF16: D.F32, D.F16: D.F32, D.S8: D.S32, D.U8: D.S32, D.S16: D.S32}
"""Dtypes of operands → that of a result whose sums are not rounded to them."""

SIZED_PERCENT = 70
"""Convolutions of drawn sizes; the others read a value that is there."""

FEATURES = (4, 1, 2, 3, 5, 8, 16, 7, 9, 12, 15, 17, 24, 31, 32, 33)
"""Input and output features of a group: around the widths of vectors."""

CHANNELS = (8, 16, 15, 17, 32, 33, 64)
"""Groups of depthwise convolutions."""

PLACES = (5, 3, 1, 2, 4, 6, 7, 8, 9, 10, 12, 13, 16, 17, 20)
MOST_ELEMENTS, MOST_PRODUCTS = 6000, 1 << 18
"""Elements of an operand or of the result, and products, at most: the evaluator is quick with those."""

LARGE_PERCENT, LARGER = 15, 8
"""The factor of the larger convolutions: passes transpose those and make products of them, and weights are copied."""

LARGE_FEATURES = (32, 64, 16, 33, 40, 48, 6)

USUAL = ("b*f_*io->b*f", "bf*_oi*->bf*", "b*f_*io->bf*", "bf*_*io->b*f", "b*f_o*i->b*f", "f*b_i*o->*bf", "b*f_*oi->b*f")
"""Labels that programs have; * stands for the spatial dimensions."""


def convolution(body: Body, op: Op) -> Value | None:
    """Any number of spatial dimensions, roles in any order, groups, dilations, reversal."""
    return _sized(body) if body.source.chance(SIZED_PERCENT) else _of_value(body)


def _of_value(body: Body) -> Value | None:
    v = body.operand(lambda v: v.smooth and 2 <= len(v.dims) <= 5 and 0 < v.size <= 600, MULTIPLIED)
    if not 2 <= len(v.dims) <= 5:
        return None
    draw, count = body.source, len(v.dims) - 2
    left = draw.sample(range(count + 2), count + 2)  # left[0]: the batch, left[1]: the features
    rows = [window_dim(body, v.dims[d]) for d in left[2:]]
    batch, features = v.dims[left[0]], v.dims[left[1]]
    groups = draw.choice([g for g in (1, 2, 3) if features % g == 0])
    batches = draw.choice([g for g in (1, 2, 3) if batch % g == 0]) if groups == 1 else 1
    outs = draw.choice((2, 1, 3)) * groups * batches
    inner = (features // groups, outs, *(w.size for w, _ in rows))
    outer = (batch // batches, outs, *(n for _, n in rows))
    right, result = (draw.sample(range(count + 2), count + 2) for _ in range(2))
    kernel = body.of(v.dtype, _placed(inner, right), lambda w: w.smooth)
    if math.prod(outer) > 2000:
        return None
    labels = _labels(left, right, result)
    return _add(body, v, kernel, _placed(outer, result), tuple(w for w, _ in rows), labels, groups, batches)


def _sized(body: Body) -> Value:
    """One of drawn sizes, labels and groups."""
    draw = body.source
    kinds = [d for d in body.program.types if d in MULTIPLIED]
    dtype = kinds[0] if kinds else draw.choice([d for d in MULTIPLIED if d in body.program.limits.dtypes] or [D.F32])
    rows = [_axis(body) for _ in range(draw.choice((2, 1, 2, 3, 1, 2, 3, 1, 0)))]
    larger = LARGER if draw.chance(LARGE_PERCENT) else 1
    features = FEATURES if larger == 1 else LARGE_FEATURES
    batch, ins, outs = draw.choice((1, 2, 3, 4)), draw.choice(features), draw.choice(features)
    groups, batches = draw.choice(((1, 1), (1, 1), (1, 1), (2, 1), (4, 1), (0, 1), (1, 2), (1, 3)))
    if not groups:
        groups, ins, outs = draw.choice(CHANNELS), 1, draw.choice((1, 1, 2))
    while True:
        sizes = _sizes(rows, batch, ins, outs, groups, batches)
        terms = ins * math.prod(w.size for _, w in rows)
        most = max(math.prod(s) for s in sizes)
        if most <= larger * MOST_ELEMENTS and math.prod(sizes[2]) * terms <= larger * MOST_PRODUCTS:
            break
        batch, ins, outs, rows = _smaller(batch, ins, outs, rows)
    labels = _drawn_labels(body, len(rows))
    places = [
        (labels.input_batch, labels.input_feature, *labels.input_spatial),
        (labels.kernel_input_feature, labels.kernel_output_feature, *labels.kernel_spatial),
        (labels.output_batch, labels.output_feature, *labels.output_spatial),
    ]
    x, weights, dims = (_placed(s, p) for s, p in zip(sizes, places, strict=True))
    v, w = _operand(body, dtype, x), _operand(body, dtype, weights)
    made = _add(body, v, w, dims, tuple(w for _, w in rows), labels, groups, batches)
    return _behind(body, made)


def _axis(body: Body) -> tuple[int, WindowDim]:
    """(Elements of the input, the window) of a spatial dimension; at least one position of the result."""
    draw = body.source
    n, size = draw.choice(PLACES), draw.choice((3, 1, 2, 5, 4, 7))
    stride, holes, spread = draw.choice((1, 1, 2, 3)), draw.choice((1, 1, 1, 2, 3)), draw.choice((1, 1, 1, 2, 3))
    low, high = (draw.choice((0, 1, 1, 2, -1, 4)) for _ in range(2))
    window = WindowDim(size, stride, low, high, holes, spread, draw.chance(20))
    return n, _fitted(n, window)


def _fitted(n: int, w: WindowDim) -> WindowDim:
    """The window with so much padding behind that it has a position."""
    missing = (w.size - 1) * w.rhs_dilate + 1 - ((n - 1) * w.lhs_dilate + 1 + w.pad_low + w.pad_high)
    return w if missing <= 0 else WindowDim(
        w.size, w.stride, w.pad_low, w.pad_high + missing, w.lhs_dilate, w.rhs_dilate, w.reverse
    )  # fmt: skip


def _count(n: int, w: WindowDim) -> int:
    padded = (n - 1) * w.lhs_dilate + 1 + w.pad_low + w.pad_high
    return (padded - (w.size - 1) * w.rhs_dilate - 1) // w.stride + 1


def _sizes(
    rows: Sequence[tuple[int, WindowDim]], batch: int, ins: int, outs: int, groups: int, batches: int
) -> tuple[tuple[int, ...], ...]:
    """Sizes of the input, the kernel and the result by role. batch: of the result; ins, outs: of a group."""
    features = outs * groups * batches
    return (
        (batch * batches, ins * groups, *(n for n, _ in rows)),
        (ins, features, *(w.size for _, w in rows)),
        (batch, features, *(_count(n, w) for n, w in rows)),
    )


def _smaller(
    batch: int, ins: int, outs: int, rows: list[tuple[int, WindowDim]]
) -> tuple[int, int, int, list[tuple[int, WindowDim]]]:
    """Less of what is most: the longest spatial dimension, down to a few places, then features, then windows."""
    longest = max(range(len(rows)), key=lambda k: rows[k][0], default=None)
    if longest is not None and rows[longest][0] > 4:
        n, w = rows[longest]
        return batch, ins, outs, [*rows[:longest], (n // 2, _fitted(n // 2, w)), *rows[longest + 1 :]]
    if batch > 1:
        return 1, ins, outs, rows
    if max(ins, outs) > 9:
        return (batch, ins - 8, outs, rows) if ins >= outs else (batch, ins, outs - 8, rows)
    most = max(range(len(rows)), key=lambda k: _count(*rows[k]) * rows[k][1].size)
    n, w = rows[most]
    n, border = max(1, n // 2), int(n > 3)
    less = WindowDim(max(1, w.size - 2), w.stride, border, border, 1, 1, w.reverse)
    return batch, ins, outs, [*rows[:most], (n, _fitted(n, less)), *rows[most + 1 :]]


def _drawn_labels(body: Body, count: int) -> ConvolutionDims:
    """Usual labels in half of the cases, and any order in the others."""
    draw = body.source
    if draw.chance(50):
        orders = [draw.sample(range(count + 2), count + 2) for _ in range(3)]
        return _labels(*orders)
    text = draw.choice(USUAL).replace("*", "".join(map(str, range(count))))
    left, right, result = text.replace("->", "_").split("_")
    spatial = "".join(map(str, range(count)))
    orders = [[s.index(c) for c in first + spatial] for s, first in ((left, "bf"), (right, "io"), (result, "bf"))]
    return _labels(*orders)


def _labels(left: Sequence[int], right: Sequence[int], result: Sequence[int]) -> ConvolutionDims:
    """Of the places of each role: batch and features, or input and output features, then the spatial dimensions."""
    return ConvolutionDims(
        *(left[0], left[1], tuple(left[2:])),
        *(right[0], right[1], tuple(right[2:])),
        *(result[0], result[1], tuple(result[2:])),
    )


def _operand(body: Body, dtype: DType, dims: tuple[int, ...]) -> Value:
    """A value of these dimensions: rather a parameter, sometimes behind an op that passes may fold or fuse."""
    draw = body.source
    rank, kind = len(dims), draw.choice(("plain", "plain", "plain", "transpose", "pad", "concatenate", "negate"))
    if kind != "plain" and not _is_allowed(body, Op(kind)):
        kind = "plain"
    if kind == "transpose":
        order = draw.sample(range(rank), rank)
        source = _new(body, dtype, tuple(dims[order.index(d)] for d in range(rank)))
        return body.moved(Op.TRANSPOSE, [source], Shape(dtype, dims), dimensions=tuple(order))
    axis = draw.integer(0, rank - 1)
    if kind == "pad" and dims[axis] > 2:
        low, high = draw.choice(((1, 1), (1, 0), (0, 1)))
        padding = tuple(PadDim(low, high) if d == axis else PadDim(0, 0) for d in range(rank))
        inside = tuple(n - (low + high) * (d == axis) for d, n in enumerate(dims))
        values = [_new(body, dtype, inside), body.scalar(dtype, 0)]
        return body.moved(Op.PAD, values, Shape(dtype, dims), padding=padding)
    if kind == "concatenate" and dims[axis] > 1:
        first = draw.integer(1, dims[axis] - 1)
        parts = [
            _new(body, dtype, tuple(size if d == axis else n for d, n in enumerate(dims)))
            for size in (first, dims[axis] - first)
        ]
        return body.moved(Op.CONCATENATE, parts, Shape(dtype, dims), dimensions=(axis,))
    source = _new(body, dtype, dims)
    if kind == "negate" and not dtype.is_unsigned:
        return body.add(Op.NEGATE, [source], **source.known)
    return source


def _new(body: Body, dtype: DType, dims: tuple[int, ...]) -> Value:
    if body.room and not body.source.chance(20):
        made = body.parameter(dtype, dims)
        if made.smooth:
            return made
    return body.of(dtype, dims, lambda w: w.smooth)


def _add(
    body: Body,
    v: Value,
    kernel: Value,
    dims: tuple[int, ...],
    window: tuple[WindowDim, ...],
    labels: ConvolutionDims,
    groups: int,
    batches: int,
) -> Value:
    terms = kernel.dims[labels.kernel_input_feature] * math.prod(w.size for w in window)
    dtype = v.dtype
    if dtype in WIDER and body.source.chance(30):
        dtype = WIDER[dtype]
    extra: dict[str, Any] = {"window": Window(window)} if window else {}
    return body.add(
        Op.CONVOLUTION,
        [v, kernel],
        Shape(dtype, dims),
        **summed_known(v, kernel, terms, dtype),
        **extra,
        dim_labels=labels,
        feature_group_count=groups,
        batch_group_count=batches,
    )


BEHIND = (Op.ADD, Op.MULTIPLY, Op.MAXIMUM, Op.SUBTRACT)
"""What programs have behind convolutions: rows and residuals, scales, bounds."""


def _is_allowed(body: Body, op: Op) -> bool:
    ops = body.program.limits.ops
    return ops is None or op in ops


def _behind(body: Body, made: Value) -> Value:
    """The convolution, in half of the cases with a few elementwise ops behind it."""
    draw = body.source
    if not draw.chance(50) or not made.dims or made.dtype.is_complex:
        return made
    for _ in range(draw.integer(1, 3)):
        op = draw.choice(BEHIND)
        if not _is_allowed(body, op):
            continue
        axis = draw.integer(0, len(made.dims) - 1)
        kind = draw.choice(("row", "row", "array", "number"))
        if kind == "row":
            row = _new(body, made.dtype, (made.dims[axis],))
            other = body.moved(Op.BROADCAST, [row], Shape(made.dtype, made.dims), dimensions=(axis,))
        else:
            other = _new(body, made.dtype, made.dims) if kind == "array" else body.splat(made)
        if op is Op.MAXIMUM:
            made = body.moved(op, [made, other])
        elif made.most < math.inf and other.most <= TAME:
            made = body.add(op, [made, other], **arithmetic_known(op, made, other))
    return made


def _placed(sizes: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    """The sizes of roles, in the order of dimensions. places: of each role."""
    found = [0] * len(sizes)
    for size, place in zip(sizes, places, strict=True):
        found[place] = size
    return tuple(found)
