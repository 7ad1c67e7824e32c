"""A product with few results and a long depth becomes products of parts of the depth, which threads may share, and the
sum of these.

A part of both operands stays in the caches while all its products are made: memory is read once, whether rows or
columns are contiguous. The parts depend on the shape only, so no result depends on the number of threads.
"""

from __future__ import annotations

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder

LARGE = 1 << 19
"""Elements of both operands from which a product is divided."""

FEW, DEEP = 1 << 12, 64
"""Results up to which it is, and how often the depth is the rows and the columns of a result, at least: other products
are shared by rows or columns.
"""

PARTS, LEAST_PARTS = 512, 16
"""Parts to aim at, and the fewest."""

LEAST_DEPTH = 256
"""The least depth of a part."""

SHARE = 32
"""Elements that are read for each that a part gives, at least: the sums of all parts are written and read again."""

WIDE = {DType.BF16: DType.F32, DType.F16: DType.F32}
"""Narrow results, which are rounded once, and the type of the parts."""

SUMMED = frozenset({DType.F32, DType.F64, DType.C64, DType.C128, DType.S32, DType.S64, DType.U32, DType.U64, *WIDE})


def product_in_parts(i: Instruction, b: Builder) -> Instruction | None:
    """The sum of products of parts; None for others."""
    lhs, rhs = i.operands[:2]
    batches = [tuple(i.attributes.get(f"{side}_batch_dims", ())) for side in ("lhs", "rhs")]
    contracted = [tuple(i.attributes.get(f"{side}_contracting_dims", ())) for side in ("lhs", "rhs")]
    if len(i.operands) != 2 or i.shape.dtype not in SUMMED or not i.shape.is_row_major or len(contracted[0]) != 1:
        return None
    if not lhs.shape.is_row_major or not rhs.shape.is_row_major:
        return None
    read = lhs.shape.size + rhs.shape.size
    depth, dtype = lhs.shape.dims[contracted[0][0]], WIDE.get(i.shape.dtype, i.shape.dtype)
    widest = max(lhs.shape.size, rhs.shape.size) // max(depth, 1)
    if read < LARGE or not 0 < i.shape.size <= FEW or depth < DEEP * widest:
        return None
    parts = parts_of(depth, read // (SHARE * i.shape.size))
    if parts is None:
        return None
    dims = [_divided(x.shape.dims, d, parts) for x, (d,) in zip((lhs, rhs), contracted, strict=True)]
    numbers = {}
    for side, batch, (d,) in zip(("lhs", "rhs"), batches, contracted, strict=True):
        numbers[f"{side}_batch_dims"] = (*(n + (n > d) for n in batch), d)
        numbers[f"{side}_contracting_dims"] = (d + 1,)
    attributes = {k: v for k, v in i.attributes.items() if k not in numbers} | numbers
    count = len(batches[0])
    shape = array(dtype, *i.shape.dims[:count], parts, *i.shape.dims[count:])
    product = b.op(Op.DOT, shape, b.reshape(lhs, dims[0]), b.reshape(rhs, dims[1]), **attributes)
    region = b.region("sum", [array(dtype)] * 2, lambda b, p: b.binary(Op.ADD, p[0], p[1]))
    start = b.constant(-0.0 if dtype.is_float else 0, dtype)
    total = b.op(Op.REDUCE, array(dtype, *i.shape.dims), product, start, dimensions=(count,), to_apply=region)
    return b.convert(total, i.shape.dtype)


def _divided(dims: tuple[int, ...], d: int, parts: int) -> tuple[int, ...]:
    return (*dims[:d], parts, dims[d] // parts, *dims[d + 1 :])


def parts_of(depth: int, most: int) -> int | None:
    """Into how many equal parts a depth is divided, `most` of them at most; None if it stays whole."""
    most = min(2 * PARTS, most, depth // LEAST_DEPTH)
    even = [n for n in range(LEAST_PARTS, most + 1) if depth % n == 0]
    return min(even, key=lambda n: abs(n - PARTS), default=None)
