"""Draws products, transforms, solvers and batch norms."""

from __future__ import annotations

import math
from typing import Any

from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape, tuple_shape
from .convolutions import convolution
from .program import MOST_RANK, Body
from .values import COMPLEX, MULTIPLIED, Value, summed_known

D = DType
TRANSFORMED = (D.F32, D.F64, *COMPLEX)
SOLVED = (D.F32, D.F64)


ROWS, COLUMNS, DEPTHS = (8, 4, 5, 17, 33), (17, 16, 33, 40, 65), (16, 17, 33, 48, 65, 130, 259)
"""Of products of more than a tile: multiples of the widths of vectors and tiles, and others."""

LEAST_TILED = 16**3
"""Products of rows, columns and depth that are worth tiles."""


def dot(body: Body, op: Op) -> Value | None:
    """With batch and contracting dimensions at any positions; one of four has more than a tile, one of four reads a
    transpose.
    """
    kind = body.source.integer(0, 7)
    if kind >= 6:
        return _tiled_dot(body)
    least = 3 if kind >= 4 else 0
    v = body.operand(lambda v: v.smooth and least <= len(v.dims) <= 5 and v.size <= 1500, (*MULTIPLIED, D.PRED))
    if kind >= 4:
        order = tuple(body.source.sample(range(len(v.dims)), len(v.dims))[::-1])
        v = body.moved(Op.TRANSPOSE, [v], Shape(v.dtype, tuple(v.dims[d] for d in order)), dimensions=order)
    return _dot(body, v)


def _tiled_dot(body: Body) -> Value:
    """A product of matrices that have more than a tile, sometimes several of them, each side in one of two orders."""
    draw = body.source
    kinds = [d for d in body.program.types if d in MULTIPLIED] or [D.F32]
    dtype = draw.choice((kinds[0], D.F32, *kinds[1:])) if D.F32 in body.program.limits.dtypes else kinds[0]
    rows, columns = draw.choice(ROWS), draw.choice(COLUMNS)
    depth = draw.choice([n for n in DEPTHS if n * rows * columns >= LEAST_TILED])
    batch = [draw.choice((2, 3))] if draw.chance(25) else []
    turned = [draw.chance(40) for _ in range(2)]
    left, right = ((b, a) if t else (a, b) for (a, b), t in zip(((rows, depth), (depth, columns)), turned))
    v, w = (body.of(dtype, (*batch, *dims), lambda w: w.smooth) for dims in (left, right))
    first = len(batch)
    return body.add(
        Op.DOT,
        [v, w],
        Shape(dtype, (*batch, rows, columns)),
        **summed_known(v, w, depth),
        lhs_batch_dims=tuple(range(first)),
        lhs_contracting_dims=(first + (not turned[0]),),
        rhs_batch_dims=tuple(range(first)),
        rhs_contracting_dims=(first + turned[1],),
    )


def _dot(body: Body, v: Value) -> Value | None:
    """A product of v, of up to two contracting and two batch dimensions."""
    draw, rank = body.source, len(v.dims)
    order = draw.sample(range(rank), rank)
    contract = order[: draw.integer(min(1, rank), min(2, rank))]
    batch = order[len(contract) : len(contract) + draw.integer(0, 2)]
    free = [draw.choice((3, 1, 2, 5, 16, 17)) for _ in range(draw.integer(0, 2))]
    roles = [*(("b", n) for n in range(len(batch))), *(("c", n) for n in range(len(contract)))]
    roles += [("f", n) for n in range(len(free))]
    roles = draw.sample(roles, len(roles))
    size = {"b": [v.dims[d] for d in batch], "c": [v.dims[d] for d in contract], "f": free}
    w = body.of(v.dtype, [size[kind][n] for kind, n in roles], lambda w: w.smooth)
    at = {role: d for d, role in enumerate(roles)}
    left = [n for d, n in enumerate(v.dims) if d not in batch and d not in contract]
    dims = (*size["b"], *left, *(free[n] for kind, n in roles if kind == "f"))
    if math.prod(dims) > 3000 or len(dims) > MOST_RANK:
        return None
    return body.add(
        Op.DOT,
        [v, w],
        Shape(v.dtype, dims),
        **summed_known(v, w, math.prod(size["c"])),
        lhs_batch_dims=tuple(batch),
        lhs_contracting_dims=tuple(contract),
        rhs_batch_dims=tuple(at["b", n] for n in range(len(batch))),
        rhs_contracting_dims=tuple(at["c", n] for n in range(len(contract))),
    )


def ragged_dot(body: Body, op: Op) -> Value:
    kinds = tuple(d for d in MULTIPLIED if not d.is_complex)
    v = body.operand(lambda v: v.smooth and len(v.dims) == 2 and 0 < v.size <= 1000, kinds)
    if len(v.dims) != 2:
        v = body.whole(v.dtype, (4, 3))
    groups, out = body.source.integer(1, 3), body.source.choice((4, 1))
    w = body.of(v.dtype, (groups, v.dims[1], out), lambda w: w.smooth)
    sizes = body.constant(D.S32, (groups,), [1] * groups)
    return body.add(
        op,
        [v, w, sizes],
        Shape(v.dtype, (v.dims[0], out)),
        **summed_known(v, w, v.dims[1]),
        lhs_contracting_dims=(1,),
        rhs_contracting_dims=(1,),
        lhs_ragged_dims=(0,),
        rhs_group_dims=(0,),
    )


def scaled_dot(body: Body, op: Op) -> Value:
    """A product whose operands are scaled by blocks."""
    draw = body.source
    dtype = draw.choice([d for d in (D.F32, D.BF16, D.F16) if d in body.program.limits.dtypes] or [D.F32])
    rows, inner, out = draw.choice((3, 1, 8)), draw.choice((4, 8, 12)), draw.choice((3, 1))
    blocks = [draw.choice((1, 2, 4)) for _ in range(2)]
    shapes = ((rows, inner), (inner, out), (rows, inner // blocks[0]), (inner // blocks[1], out))
    values = [body.of(dtype, dims, lambda w: w.most <= 4) for dims in shapes]
    return body.add(
        op, values, Shape(dtype, (rows, out)), exact=False, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,)
    )


def fft(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: v.most <= 4 and bool(v.dims) and 0 < v.size <= 1000, TRANSFORMED)
    if not v.dims:
        v = body.whole(v.dtype, (8,))
    n = v.dims[-1]
    if v.dtype.is_complex:
        kind, shape = body.source.choice(("FFT", "IFFT")), Shape(v.dtype, v.dims)
    else:
        kind, shape = "RFFT", Shape(D.C64 if v.dtype is D.F32 else D.C128, (*v.dims[:-1], n // 2 + 1))
    return body.add(op, [v], shape, exact=False, most=2 * n * v.most, fft_type=kind, fft_length=(n,))


def _definite(body: Body, dtype: DType, n: int) -> Value:
    """A well-conditioned positive definite matrix."""
    small = body.of(dtype, (n, n), lambda w: w.most <= 4)
    square = body.add(
        *(Op.DOT, [small, small], Shape(dtype, (n, n))),
        **summed_known(small, small, n),
        lhs_contracting_dims=(1,),
        rhs_contracting_dims=(1,),
    )
    numbers = [16 * n if row == column else 0 for row in range(n) for column in range(n)]
    return body.add(Op.ADD, [square, body.constant(dtype, (n, n), numbers)], exact=False, most=64.0 * n)


def _solvable(body: Body) -> tuple[DType, int]:
    allowed = [d for d in SOLVED if d in body.program.limits.dtypes]
    return body.source.choice(allowed or [D.F32]), body.source.integer(1, 5)


def cholesky(body: Body, op: Op) -> Value:
    dtype, n = _solvable(body)
    whole = _definite(body, dtype, n)
    return body.add(op, [whole], exact=False, most=16.0 * n, lower=not body.source.chance(50))


def triangular_solve(body: Body, op: Op) -> Value:
    dtype, n = _solvable(body)
    whole, lower, left = _definite(body, dtype, n), not body.source.chance(50), not body.source.chance(50)
    other = body.of(dtype, (n, 2) if left else (2, n), lambda w: w.most <= 4)
    return body.add(
        op,
        [whole, other],
        exact=False,
        most=64.0,
        left_side=left,
        lower=lower,
        unit_diagonal=False,
        transpose_a="TRANSPOSE" if body.source.chance(50) else "NO_TRANSPOSE",
    )


def batch_norm(body: Body, op: Op) -> Value:
    v = body.operand(lambda v: v.most <= 4 and bool(v.dims) and 0 < v.size <= 1000, SOLVED)
    if not v.dims:
        v = body.whole(v.dtype, (5,))
    axis = body.source.integer(0, len(v.dims) - 1)
    one = (v.dims[axis],)
    scale, offset, mean = (body.of(v.dtype, one, lambda w: w.most <= 4) for _ in range(3))
    positive = body.add(Op.ABS, [mean], **mean.known)
    rest: dict[str, Any] = {"epsilon": 0.5, "feature_index": axis}
    if op is Op.BATCH_NORM_INFERENCE:
        return body.add(op, [v, scale, offset, mean, positive], exact=False, **rest)
    operands = [v, scale, offset]
    if op is Op.BATCH_NORM_GRAD:
        operands = [v, scale, mean, positive, body.like(v, lambda w: w.most <= 4)]
    shape = tuple_shape(Shape(v.dtype, v.dims), Shape(v.dtype, one), Shape(v.dtype, one))
    made = body.instruction(op, [x.instruction for x in operands], shape, **rest)
    return body.parts(made, [None, None, None])[0]


LINEAR_RULES = {
    Op.DOT: dot,
    Op.RAGGED_DOT: ragged_dot,
    Op.SCALED_DOT: scaled_dot,
    Op.CONVOLUTION: convolution,
    Op.FFT: fft,
    Op.CHOLESKY: cholesky,
    Op.TRIANGULAR_SOLVE: triangular_solve,
    **dict.fromkeys((Op.BATCH_NORM_INFERENCE, Op.BATCH_NORM_TRAINING, Op.BATCH_NORM_GRAD), batch_norm),
}
