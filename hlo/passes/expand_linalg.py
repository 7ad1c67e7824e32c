"""Cholesky, triangular-solve and LAPACK's potrf, trsm and getrf → loops over columns, for stacks without a library.

Matrices are [batch, rows, columns]; one turn of a loop does one row or column with a dot or elementwise work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from ..dtypes import DType
from ..ir import Instruction, Module
from ..opcodes import Op
from ..reference.lapack import options
from ..shapes import array
from .building import Builder
from .expansion import expand_ops


def expand_linalg(module: Module) -> Module:
    """Replace every cholesky, triangular-solve and LAPACK call for them or for LU, outside kernels."""
    return expand_ops(module, {Op.CHOLESKY: cholesky, Op.TRIANGULAR_SOLVE: triangular_solve, Op.CUSTOM_CALL: _call})


def _call(i: Instruction, b: Builder) -> Instruction | None:
    target = str(i.attributes.get("custom_call_target", ""))
    rule = CALLS.get(target[len("lapack_") + 1 : -len("_ffi")]) if target.startswith("lapack_") else None
    return rule(i, b) if rule is not None and all(o.shape.size for o in i.operands) else None


# --- pieces ----------------------------------------------------------------------------------------------------------


def _matrices(b: Builder, x: Instruction) -> Instruction:
    """[batch, rows, columns], whatever the number of batch dimensions."""
    dims = x.shape.dims
    return b.reshape(b.plain(x), (math.prod(dims[:-2]), *dims[-2:]))


def _conjugate(b: Builder, x: Instruction) -> Instruction:
    if not x.shape.dtype.is_complex:
        return x
    part = x.shape.dtype.component
    return b.op(Op.COMPLEX, x.shape, b.unary(Op.REAL, x, part), b.unary(Op.NEGATE, b.unary(Op.IMAG, x, part)))


def _turned(b: Builder, x: Instruction, *, conjugate: bool = False) -> Instruction:
    x = b.transpose(x, (0, 2, 1))
    return _conjugate(b, x) if conjugate else x


def _triangle(b: Builder, x: Instruction, *, lower: bool, diagonal: bool = True) -> Instruction:
    """Which elements lie in a triangle."""
    dims = x.shape.dims
    row, column = b.iota(DType.S32, dims, 1), b.iota(DType.S32, dims, 2)
    return b.compare(row, ("GE" if diagonal else "GT") if lower else ("LE" if diagonal else "LT"), column)


def _zeros(b: Builder, x: Instruction, dims: Sequence[int] | None = None) -> Instruction:
    return b.constant(0, x.shape.dtype, x.shape.dims if dims is None else dims)


def _dot(b: Builder, x: Instruction, y: Instruction) -> Instruction:
    """Batched product of matrices."""
    shape = array(x.shape.dtype, *x.shape.dims[:2], y.shape.dims[2])
    return b.op(
        Op.DOT, shape, x, y,
        lhs_batch_dims=(0,), rhs_batch_dims=(0,), lhs_contracting_dims=(2,), rhs_contracting_dims=(1,),
    )  # fmt: skip


def _row(b: Builder, x: Instruction, k: Instruction) -> Instruction:
    zero = b.constant(0, DType.S32)
    return b.dynamic_slice(x, [zero, k, zero], (x.shape.dims[0], 1, x.shape.dims[2]))


def _column(b: Builder, x: Instruction, k: Instruction) -> Instruction:
    zero = b.constant(0, DType.S32)
    return b.dynamic_slice(x, [zero, zero, k], (*x.shape.dims[:2], 1))


def _spread(b: Builder, x: Instruction, dims: Sequence[int]) -> Instruction:
    """[batch, rows or 1, columns or 1] over a matrix."""
    kept = [d for d in range(3) if x.shape.dims[d] == dims[d] and (d == 0 or x.shape.dims[d] != 1 or dims[d] == 1)]
    return b.broadcast(b.reshape(x, [x.shape.dims[d] for d in kept]), dims, kept)


def _at(b: Builder, dims: Sequence[int], dimension: int, direction: str, k: Instruction) -> Instruction:
    """Elements of a matrix whose row (1) or column (2) compares so with k."""
    return b.compare(b.iota(DType.S32, dims, dimension), direction, b.broadcast(k, dims))


# --- triangular solve ------------------------------------------------------------------------------------------------


def triangular_solve(i: Instruction, b: Builder) -> Instruction | None:
    if not all(o.shape.size for o in i.operands):
        return None
    a = i.attributes
    return _solve(
        b, *i.operands, left=a.get("left_side", False), lower=a.get("lower", False),
        unit=a.get("unit_diagonal", False), transpose=a.get("transpose_a", "NO_TRANSPOSE")[0],
    )  # fmt: skip


def trsm(i: Instruction, b: Builder) -> Instruction:
    o = options(i)
    return _solve(
        b, *i.operands, left=o.get("side", "L") == "L", lower=o.get("uplo") == "L",
        unit=o.get("diag") == "U", transpose={"C": "A"}.get(o.get("trans_x", "N"), o.get("trans_x", "N")),
    )  # fmt: skip


def _solve(
    b: Builder, a: Instruction, right: Instruction, *, left: bool, lower: bool, unit: bool, transpose: str
) -> Instruction:
    """op(a)·x = right, or x·op(a) = right. transpose: N, T or A (the conjugate transpose)."""
    dims = right.shape.dims
    a, right = _matrices(b, a), _matrices(b, right)
    turn = (transpose == "N") is not left  # x·op(a) = right ⇔ op(a)ᵀ·xᵀ = rightᵀ
    if transpose == "A":
        a = _conjugate(b, a)
    if turn:
        a, lower = _turned(b, a), not lower
    x = _turned(b, right) if not left else right
    x = _forward(b, _lower_form(b, a, lower, unit), _flipped(b, x, lower))
    x = _flipped(b, x, lower)
    return b.reshape(_turned(b, x) if not left else x, dims)


def _flipped(b: Builder, x: Instruction, lower: bool) -> Instruction:
    """Rows in reverse order, which makes an upper triangle's system a lower one's."""
    return x if lower else b.op(Op.REVERSE, x.shape, x, dimensions=(1,))


def _lower_form(b: Builder, a: Instruction, lower: bool, unit: bool) -> Instruction:
    """A lower triangular matrix with zeros above."""
    if not lower:
        a = b.op(Op.REVERSE, a.shape, a, dimensions=(1, 2))
    a = b.select(_triangle(b, a, lower=True, diagonal=not unit), a, _zeros(b, a))
    if unit:
        strict = _triangle(b, a, lower=True, diagonal=False)
        diagonal = b.binary(Op.AND, b.unary(Op.NOT, strict), _triangle(b, a, lower=True))
        a = b.select(diagonal, b.constant(1, a.shape.dtype, a.shape.dims), a)
    return a


def _forward(b: Builder, a: Instruction, right: Instruction) -> Instruction:
    """Forward substitution; a is lower triangular."""

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        a, right, x = values
        zero = b.constant(0, DType.S32)
        row = _row(b, a, k)
        rest = b.binary(Op.SUBTRACT, _row(b, right, k), _dot(b, row, x))
        solved = b.binary(Op.DIVIDE, rest, _spread(b, _column(b, row, k), rest.shape.dims))
        return [a, right, b.dynamic_update_slice(x, solved, [zero, k, zero])]

    return b.counted(a.shape.dims[1], [a, right, _zeros(b, right)], step)[2]


# --- Cholesky --------------------------------------------------------------------------------------------------------


def cholesky(i: Instruction, b: Builder) -> Instruction | None:
    """NaN all over where a matrix is not positive definite."""
    if not i.shape.size:
        return None
    lower = i.attributes.get("lower", False)
    factor, failed = _factor(b, i.operands[0], lower)
    nan = b.constant(math.nan, i.shape.dtype, factor.shape.dims)
    bad = b.broadcast(b.compare(failed, "NE", 0), factor.shape.dims, (0,))
    return b.reshape(b.select(bad, nan, factor), i.shape.dims)


def potrf(i: Instruction, b: Builder) -> Instruction:
    """(factor, with the operand's other triangle; 0, or the number of the first leading minor that failed)."""
    lower = options(i).get("uplo") == "L"
    factor, failed = _factor(b, i.operands[0], lower)
    whole = b.select(_triangle(b, factor, lower=lower), factor, _matrices(b, i.operands[0]))
    results = [whole, failed]
    return b.tuple([b.reshape(x, s.dims) for x, s in zip(results, i.shape.elements, strict=True)])


def _factor(b: Builder, a: Instruction, lower: bool) -> tuple[Instruction, Instruction]:
    """(the triangle with zeros beside it, per matrix 0 or the number of the column that failed)."""
    a = _matrices(b, a)
    if not lower:
        a = _turned(b, a, conjugate=True)
    size, batch = a.shape.dims[1], a.shape.dims[0]

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        a, factor, failed = values
        zero = b.constant(0, DType.S32)
        against = _turned(b, _row(b, factor, k), conjugate=True)
        column = b.binary(Op.SUBTRACT, _column(b, a, k), _dot(b, factor, against))
        square = _real(b, b.reshape(_row(b, column, k), (batch,)))
        root = b.unary(Op.SQRT, square)
        good = b.compare(square, "GT", 0)
        number = b.broadcast(b.binary(Op.ADD, k, 1), (batch,))
        first = b.binary(Op.AND, b.compare(failed, "EQ", 0), b.unary(Op.NOT, good))
        deep = _complex(b, b.broadcast(root, column.shape.dims, (0,)), column.shape.dtype)
        scaled = b.select(_at(b, column.shape.dims, 1, "EQ", k), deep, b.binary(Op.DIVIDE, column, deep))
        scaled = b.select(_at(b, column.shape.dims, 1, "LT", k), _zeros(b, column), scaled)
        factor = b.dynamic_update_slice(factor, scaled, [zero, zero, k])
        return [a, factor, b.select(first, number, failed)]

    _, factor, failed = b.counted(size, [a, _zeros(b, a), b.constant(0, DType.S32, (batch,))], step)
    return (factor if lower else _turned(b, factor, conjugate=True)), failed


def _real(b: Builder, x: Instruction) -> Instruction:
    return b.unary(Op.REAL, x, x.shape.dtype.component) if x.shape.dtype.is_complex else x


def _complex(b: Builder, x: Instruction, dtype: DType) -> Instruction:
    if not dtype.is_complex:
        return x
    return b.op(Op.COMPLEX, array(dtype, *x.shape.dims), x, b.constant(0, x.shape.dtype, x.shape.dims))


# --- LU --------------------------------------------------------------------------------------------------------------


def getrf(i: Instruction, b: Builder) -> Instruction:
    """(factors L and U in one matrix, rows swapped with rows 0, 1, … counted from 1, 0 or the first zero pivot)."""
    a = _matrices(b, i.operands[0])
    batch, rows, columns = a.shape.dims
    count = min(rows, columns)

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        a, pivots, failed = values
        best = _pivot(b, _column(b, a, k), k)
        a = _swapped(b, a, k, best)
        head = b.reshape(_row(b, _column(b, a, k), k), (batch,))
        dead = b.compare(head, "EQ", 0)
        number = b.broadcast(b.binary(Op.ADD, k, 1), (batch,))
        first = b.binary(Op.AND, b.compare(failed, "EQ", 0), dead)
        pivots = b.dynamic_update_slice(
            pivots, b.reshape(b.binary(Op.ADD, best, 1), (batch, 1)), [b.constant(0, DType.S32), k]
        )
        return [_eliminated(b, a, k, head, dead), pivots, b.select(first, number, failed)]

    start = [a, b.constant(0, DType.S32, (batch, count)), b.constant(0, DType.S32, (batch,))]
    results = b.counted(count, start, step)
    return b.tuple([b.reshape(x, s.dims) for x, s in zip(results, i.shape.elements, strict=True)])


def _pivot(b: Builder, column: Instruction, k: Instruction) -> Instruction:
    """Per matrix the row, from k on, of the first largest element, by LAPACK's measure."""
    dims, real = column.shape.dims, column.shape.dtype.component
    if column.shape.dtype.is_complex:
        parts = [b.unary(Op.ABS, b.unary(o, column, real)) for o in (Op.REAL, Op.IMAG)]
        size = b.binary(Op.ADD, *parts)
    else:
        size = b.unary(Op.ABS, column)
    size = b.select(_at(b, dims, 1, "LT", k), b.constant(-1, real, dims), size)
    largest = b.reduce(size, Op.MAXIMUM, -1, (1, 2))
    row = b.iota(DType.S32, dims, 1)
    hit = b.compare(size, "EQ", b.broadcast(largest, dims, (0,)))
    found = b.reduce(b.select(hit, row, b.constant(dims[1], DType.S32, dims)), Op.MINIMUM, dims[1], (1, 2))
    lost = b.compare(found, "EQ", dims[1])  # a NaN is the largest: no element equals it
    return b.select(lost, b.broadcast(k, found.shape.dims), found)


def _swapped(b: Builder, a: Instruction, k: Instruction, other: Instruction) -> Instruction:
    """Row k and row `other`, which each matrix has of its own, change places."""
    dims = a.shape.dims
    here, row = _at(b, dims, 1, "EQ", k), b.iota(DType.S32, dims, 1)
    there = b.compare(row, "EQ", b.broadcast(other, dims, (0,)))
    picked = b.reduce(b.select(there, a, _zeros(b, a)), Op.ADD, 0, (1,))
    upper = b.broadcast(picked, dims, (0, 2))
    lower = _spread(b, _row(b, a, k), dims)
    return b.select(here, upper, b.select(there, lower, a))


def _eliminated(b: Builder, a: Instruction, k: Instruction, head: Instruction, dead: Instruction) -> Instruction:
    """Column k below the pivot divided by it, and its multiples of row k taken from the rows below."""
    dims = a.shape.dims
    column, row = _column(b, a, k), _row(b, a, k)
    narrow = column.shape.dims
    quotient = b.binary(Op.DIVIDE, column, b.broadcast(head, narrow, (0,)))
    quotient = b.select(b.broadcast(dead, narrow, (0,)), column, quotient)
    factor = _spread(b, quotient, dims)
    below, right, at = _at(b, dims, 1, "GT", k), _at(b, dims, 2, "GT", k), _at(b, dims, 2, "EQ", k)
    less = b.binary(Op.SUBTRACT, a, b.binary(Op.MULTIPLY, factor, _spread(b, row, dims)))
    inner = b.select(b.binary(Op.AND, below, right), less, a)
    return b.select(b.binary(Op.AND, below, at), factor, inner)


CALLS: dict[str, Callable[[Instruction, Builder], Instruction]] = {"potrf": potrf, "trsm": trsm, "getrf": getrf}
"""By LAPACK's name without its type letter."""
