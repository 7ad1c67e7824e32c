"""Expand ragged-dots, scaled-dots, and dots with a contraction of size 1.

A ragged-dot becomes one dot per group of rows, with all other rows zero; a scaled-dot the dot of the scaled arrays; a
dot without a sum, in any layout, a multiply. A loop iterates over the groups, so that no array is larger than an
operand or the result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..algebra.dot import dot_outer
from ..building import Builder
from ..expansion import expand_ops


def expand_dots(module: Module) -> Module:
    """Replace ragged-dots and scaled-dots outside kernels by plain dots, and dots without a sum by multiply."""
    return expand_ops(module, {Op.RAGGED_DOT: ragged_dot, Op.SCALED_DOT: scaled_dot, Op.DOT: single_products})


def single_products(i: Instruction, b: Builder) -> Instruction | None:
    """Apply `dot_outer` of the algebra in any layout: a kernel's sum starts at +0 and would turn -0 into +0."""
    return dot_outer(i.replace(operands=tuple(map(b.plain, i.operands))), b)


DIMENSIONS = ("lhs_batch_dims", "rhs_batch_dims", "lhs_contracting_dims", "rhs_contracting_dims")


def _dot(b: Builder, x: Instruction, y: Instruction, dtype: DType, dims: Mapping[str, Sequence[int]]) -> Instruction:
    """The dot of two arrays. dims: the attributes named in DIMENSIONS."""
    batch, joined = dims["lhs_batch_dims"], dims["lhs_contracting_dims"]
    free = [n for d, n in enumerate(x.shape.dims) if d not in (*batch, *joined)]
    taken = (*dims["rhs_batch_dims"], *dims["rhs_contracting_dims"])
    sizes = [x.shape.dims[d] for d in batch] + free + [n for d, n in enumerate(y.shape.dims) if d not in taken]
    attributes: dict[str, Any] = {k: tuple(v) for k, v in dims.items() if v or "contracting" in k}
    return b.op(Op.DOT, array(dtype, *sizes), x, y, **attributes)


def _dimensions(i: Instruction) -> dict[str, tuple[int, ...]]:
    return {k: tuple(i.attributes.get(k, ())) for k in DIMENSIONS}


# --- ragged-dot ------------------------------------------------------------------------------------------------------


def ragged_dot(i: Instruction, b: Builder) -> Instruction:
    """Expand by the kind of the ragged dimension.

    Batch: one plain dot. Contracting: one dot per group. Free: the sum of one dot per group.
    """
    x, y, sizes = map(b.plain, i.operands)
    ragged, dims, dtype = i.attributes["lhs_ragged_dims"][0], _dimensions(i), i.shape.dtype
    if ragged in dims["lhs_batch_dims"]:
        return _dot(b, x, y, dtype, dims)
    groups, zero = sizes.shape.dims[-1], b.constant(0, dtype, i.shape.dims)
    if not groups or not i.shape.size:
        return zero
    ends = _running_sums(b, b.convert(sizes, DType.S64 if sizes.shape.dtype.bits == 64 else DType.S32))
    inner = ragged in dims["lhs_contracting_dims"]
    group_dim = None if inner else i.attributes["rhs_group_dims"][0]
    leading = [*dims["lhs_batch_dims"], *(d for d in range(ragged) if d not in dims["lhs_batch_dims"])]
    leading = leading[: sizes.shape.rank - 1]

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        x, y, starts, ends, out = values
        rows = _rows(b, x, ragged, leading, starts, ends, k)
        mine = b.select(rows, x, b.constant(0, x.shape.dtype, x.shape.dims))
        if group_dim is None:
            product = _dot(b, mine, y, dtype, dims)
            update = b.reshape(product, (1, *product.shape.dims))
            zero = b.constant(0, k.shape.dtype)
            out = b.dynamic_update_slice(out, update, [k, *[zero] * product.shape.rank])
        else:
            product = _dot(b, mine, _chosen(b, y, group_dim, k), dtype, _without(dims, group_dim))
            out = b.binary(Op.ADD, out, product)
        return [x, y, starts, ends, out]

    starts = b.binary(Op.SUBTRACT, ends, b.convert(sizes, ends.shape.dtype))
    return b.counted(groups, [x, y, starts, ends, zero], step)[-1]


def _running_sums(b: Builder, x: Instruction) -> Instruction:
    """Inclusive prefix sums along the last dimension, in log₂ n steps."""
    last, length, shift = x.shape.rank - 1, x.shape.dims[-1], 1
    while shift < length:
        later = b.binary(Op.ADD, b.slice_in(x, last, shift, length), b.slice_in(x, last, 0, length - shift))
        x = b.concatenate([b.slice_in(x, last, 0, shift), later], last)
        shift *= 2
    return x


def _rows(
    b: Builder,
    x: Instruction,
    ragged: int,
    leading: Sequence[int],
    starts: Instruction,
    ends: Instruction,
    k: Instruction,
) -> Instruction:
    """A pred array: the elements of x that belong to group k. starts, ends: [leading…, groups]."""
    place = b.iota(ends.shape.dtype, x.shape.dims, ragged)

    def bound(bounds: Instruction) -> Instruction:
        return b.broadcast(_chosen(b, bounds, bounds.shape.rank - 1, k), x.shape.dims, leading)

    return b.binary(Op.AND, b.compare(place, "GE", bound(starts)), b.compare(place, "LT", bound(ends)))


def _chosen(b: Builder, x: Instruction, dimension: int, k: Instruction) -> Instruction:
    """Element k along one dimension, which is dropped."""
    zero, dims = b.constant(0, k.shape.dtype), x.shape.dims
    starts = [k if d == dimension else zero for d in range(len(dims))]
    taken = b.dynamic_slice(x, starts, [1 if d == dimension else n for d, n in enumerate(dims)])
    return b.reshape(taken, [n for d, n in enumerate(dims) if d != dimension])


def _without(dims: Mapping[str, Sequence[int]], group_dim: int) -> dict[str, Sequence[int]]:
    """The dimension numbers of a dot after its right operand has dropped the group dimension."""
    return {k: tuple(d - (d > group_dim) for d in v) if k.startswith("rhs") else v for k, v in dims.items()}


# --- scaled-dot ------------------------------------------------------------------------------------------------------


def scaled_dot(i: Instruction, b: Builder) -> Instruction:
    """The dot of both sides times their scales in f32 (f64 if a type is f64); each scale applies to its block."""
    x, y, x_scale, y_scale = map(b.plain, i.operands)
    wide = DType.F64 if DType.F64 in (x.shape.dtype, y.shape.dtype, i.shape.dtype) else DType.F32
    left, right = _scaled(b, x, x_scale, wide), _scaled(b, y, y_scale, wide)
    product = _dot(b, left, right, wide, _dimensions(i))
    if i.shape.dtype in (DType.F8E5M2, DType.F8E4M3FN):  # XLA:CPU rounds results of these types through f16
        product = b.convert(product, DType.F16)
    return b.convert(product, i.shape.dtype)


def _scaled(b: Builder, x: Instruction, scale: Instruction, wide: DType) -> Instruction:
    factor, dims = b.convert(scale, wide), x.shape.dims
    if factor.shape.dims != dims and factor.shape.rank:
        blocks = [(s, n // max(s, 1)) for s, n in zip(factor.shape.dims, dims, strict=True)]
        kept = range(0, 2 * len(dims), 2)
        spread = b.broadcast(factor, [n for block in blocks for n in block], tuple(kept))
        factor = b.reshape(spread, dims)
    return b.binary(Op.MULTIPLY, b.convert(x, wide), factor)
