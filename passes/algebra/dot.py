"""Rules for products: dots over no elements, of zeros, of ones, with vectors; slices of dots; convolutions."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.attributes import ConvolutionDims, SliceDim, Window
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder
from ..cleanup.constant_folding import number_of
from .reduce import NARROW, REASSOCIATED
from .rule import holds, is_number, is_zero, rule, spread_over

SMALL_DOT = 1 << 10
"""Maximum number of multiplications for which a dot with a vector becomes multiply and reduce, which can fuse."""

LARGE_ACROSS = 1 << 14
"""Minimum multiplications at which a dot that reads one operand across the order of memory is multiply and reduce."""

MOST_ACROSS = 1 << 28
"""Bytes of the products, at most: they are stored."""

SIGNED_ZERO = "a dot starts at +0, so that a sum of -0 is +0"


def dot_of_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """dot with an empty contraction → 0."""
    x = i.operands[0]
    empty = any(x.shape.dims[d] == 0 for d in i.attributes.get("lhs_contracting_dims", ()))
    return b.constant(0, i.shape.dtype, i.shape.dims) if empty else None


def dot_of_zeros(i: Instruction, b: Builder) -> Instruction | None:
    """dot with zeros → 0 for integers."""
    zeros = i.shape.dtype.is_integer and any(o.shape.dtype.is_integer and is_zero(o) for o in i.operands)
    return b.constant(0, i.shape.dtype, i.shape.dims) if zeros else None


def dot_outer(i: Instruction, b: Builder) -> Instruction | None:
    """dot with a contraction of size 1 → multiply of broadcasts."""
    if _summands(i) != 1 or not (_simple(i) or _is_complex(i)):
        return None
    x, y = _operand(b, i, 0, i.shape.dtype), _operand(b, i, 1, i.shape.dtype)
    return b.binary(Op.MULTIPLY, x, y)


def dot_of_one_number(i: Instruction, b: Builder) -> Instruction | None:
    """dot(x, splat 1) → broadcast(reduce(x)); dot(x, splat c) → broadcast(reduce(x)) · c for integers."""
    if not _simple(i):
        return None
    for side, o in enumerate(i.operands):
        factor = number_of(o)
        if factor is None or not (i.shape.dtype.is_integer or is_number(o, 1)):
            continue
        other, dtype = 1 - side, i.shape.dtype
        wide = DType.F32 if dtype in NARROW else dtype
        x, batch, kept = _in_order(b, i, other, wide)
        total = b.convert(b.reduce(x, Op.ADD, 0, range(kept, x.shape.rank)), dtype)
        if not is_number(o, 1):
            total = b.binary(Op.MULTIPLY, total, int(factor))
        return spread_over(b, total, i.shape.dims, _places(i, other, batch, kept - batch))
    return None


def dot_of_columns(i: Instruction, b: Builder) -> Instruction | None:
    """dot without free dimensions, whose batch is the fastest in memory → reduce(multiply): sums of columns."""
    summands, (x, y) = _summands(i), i.operands[:2]
    if summands <= 1 or not _simple(i) or x.shape.dims != y.shape.dims or _free(i, 0):
        return None
    (batch, summed), theirs = ([i.attributes.get(key, ()) for key in side] for side in _SIDES)
    same = [(*batch,), (*summed,)] == [(*d,) for d in theirs] and list(batch) == sorted(batch)
    if not same or not all(o.shape.is_row_major for o in (i, x, y)):
        return None
    if max((d for d, size in enumerate(x.shape.dims) if size != 1), default=-1) not in batch:
        return None
    wide = DType.F32 if i.shape.dtype in NARROW else i.shape.dtype
    return _summed(i, b, b.convert(x, wide), b.convert(y, wide), summed)


def dot_across(i: Instruction, b: Builder) -> Instruction | None:
    """A large dot without free dimensions of arrays whose summands lie beside each other in one, and not in the other →
    reduce(multiply): the products are a kernel that reads both in tiles.
    """
    summands, operands = _summands(i), i.operands[:2]
    if summands <= 1 or not _simple(i) or _free(i, 0) or _free(i, 1) or i.shape.size * summands <= LARGE_ACROSS:
        return None
    if not all(o.shape.is_row_major for o in (i, *operands)):
        return None
    last = [max(d for d, size in enumerate(o.shape.dims) if size != 1) for o in operands]
    if len({d in i.attributes.get(side[1], ()) for d, side in zip(last, _SIDES, strict=True)}) == 1:
        return None
    wide = DType.F32 if i.shape.dtype in NARROW else i.shape.dtype
    if i.shape.size * summands * wide.bytes > MOST_ACROSS:
        return None
    (x, _, kept), (y, _, _) = (_in_order(b, i, side, wide) for side in (0, 1))
    return _summed(i, b, x, y, range(kept, x.shape.rank))


def dot_with_vector(i: Instruction, b: Builder) -> Instruction | None:
    """A small dot with a vector on one or both sides → multiply and reduce."""
    summands = _summands(i)
    if summands <= 1 or not _simple(i) or i.shape.size * summands > SMALL_DOT:
        return None
    free = [math.prod(o.shape.dims[d] for d in _free(i, n)) for n, o in enumerate(i.operands)]
    if 1 not in free:
        return None
    wide = DType.F32 if i.shape.dtype in NARROW else i.shape.dtype
    x, y = (_operand(b, i, n, wide, contracted=True) for n in (0, 1))
    return _summed(i, b, x, y, range(i.shape.rank, max(x.shape.rank, y.shape.rank)))


def _summed(i: Instruction, b: Builder, x: Instruction, y: Instruction, dims: Sequence[int]) -> Instruction:
    """The result of a dot by the sums of products along some dimensions."""
    return b.convert(b.reduce(b.binary(Op.MULTIPLY, x, y), Op.ADD, 0, dims), i.shape.dtype)


def _summands(i: Instruction) -> int:
    return math.prod(i.operands[0].shape.dims[d] for d in i.attributes.get("lhs_contracting_dims", ()))


def _simple(i: Instruction) -> bool:
    """Whether a dot is non-empty, real or integer, not sparse, and only widens its operands."""
    dtype = i.shape.dtype
    plain = dtype in (DType.F16, DType.BF16, DType.F32, DType.F64) or (dtype.is_integer and dtype.bits >= 8)
    same = all(o.shape.dtype.is_float == dtype.is_float and holds(dtype, o.shape.dtype) for o in i.operands)
    return plain and same and len(i.operands) == 2 and bool(i.shape.size)


def _is_complex(i: Instruction) -> bool:
    """Whether a dot is non-empty, not sparse, and of complex numbers of one dtype."""
    dtypes = {i.shape.dtype, *(o.shape.dtype for o in i.operands)}
    return i.shape.dtype.is_complex and len(dtypes) == 1 and len(i.operands) == 2 and bool(i.shape.size)


_SIDES = (("lhs_batch_dims", "lhs_contracting_dims"), ("rhs_batch_dims", "rhs_contracting_dims"))


def _free(i: Instruction, side: int) -> list[int]:
    used = {d for key in _SIDES[side] for d in i.attributes.get(key, ())}
    return [d for d in range(i.operands[side].shape.rank) if d not in used]


def _operand(b: Builder, i: Instruction, side: int, dtype: DType, *, contracted: bool = False) -> Instruction:
    """An operand broadcast to the dimensions of the result, followed by the contracted ones if `contracted`."""
    x, batch, kept = _in_order(b, i, side, dtype)
    places, dims = _places(i, side, batch, kept - batch), [*i.shape.dims]
    if contracted:
        places += range(i.shape.rank, i.shape.rank + x.shape.rank - kept)
        dims += x.shape.dims[kept:]
    else:
        x = b.reshape(x, x.shape.dims[:kept])
    return spread_over(b, x, dims, places)


def _in_order(b: Builder, i: Instruction, side: int, dtype: DType) -> tuple[Instruction, int, int]:
    """(operand with dimensions ordered batch, free, contracted; number of batch; number of batch and free)."""
    batch, summed = (i.attributes.get(key, ()) for key in _SIDES[side])
    free = _free(i, side)
    x = b.transpose(b.convert(i.operands[side], dtype), [*batch, *free, *summed])
    return x, len(batch), len(batch) + len(free)


def _places(i: Instruction, side: int, batch: int, free: int) -> list[int]:
    """Positions in the result of the first `batch` batch and the first `free` free dimensions of a side."""
    first = batch + (len(_free(i, 0)) if side else 0)
    return [*range(batch), *range(first, first + free)]


def slice_of_dot(i: Instruction, b: Builder) -> Instruction | None:
    """slice(dot(x, y)) → dot(slice(x), slice(y)), if the dot has no other use and at most half of it is read."""
    dot = i.operands[0]
    if dot.opcode is not Op.DOT or len(dot.operands) != 2 or not b.is_sole(dot) or not i.shape.size:
        return None
    if 2 * i.shape.size > dot.shape.size:
        return None
    operands = []
    for side, x in enumerate(dot.operands):
        batch = dot.attributes.get(_SIDES[side][0], ())
        free = _free(dot, side)
        taken: list[SliceDim | None] = [None] * x.shape.rank
        for d, place in zip((*batch, *free), _places(dot, side, len(batch), len(free))):
            taken[d] = i.attributes["slice"][place]
        operands.append(b.slice(x, taken))
    kept = {k: v for k, v in dot.attributes.items() if k not in ("metadata", "sharding")}
    return b.op(Op.DOT, i.shape.without_layout(), *operands, **kept)


def convolution_of_single_places(i: Instruction, b: Builder) -> Instruction | None:
    """convolution → reshape(convolution) without spatial dimensions of size 1 in input, window and result."""
    d: ConvolutionDims = i.attributes["dim_labels"]
    window: Window = i.attributes.get("window", Window(()))
    x, kernel = i.operands
    single = [
        k
        for k, w in enumerate(window.dims)
        if w.size == 1 and x.shape.dims[d.input_spatial[k]] == i.shape.dims[d.output_spatial[k]] == 1
        if not w.pad_low and not w.pad_high
    ]
    if not single:
        return None
    dropped = [{places[k] for k in single} for places in (d.input_spatial, d.kernel_spatial, d.output_spatial)]
    dims = [
        tuple(n for k, n in enumerate(shape.dims) if k not in gone)
        for shape, gone in zip((x.shape, kernel.shape, i.shape), dropped)
    ]
    kept = {k: v for k, v in i.attributes.items() if k not in ("metadata", "sharding", "window", "dim_labels")}
    rest = [k for k in range(len(window.dims)) if k not in single]
    made = b.op(
        Op.CONVOLUTION,
        array(i.shape.dtype, *dims[2]),
        b.reshape(x, dims[0]),
        b.reshape(kernel, dims[1]),
        window=Window(tuple(window.dims[k] for k in rest)),
        dim_labels=_renumbered(d, rest, *dropped),
        **kept,
    )
    return b.reshape(made, i.shape.dims)


def _renumbered(d: ConvolutionDims, rest: list[int], *dropped: set[int]) -> ConvolutionDims:
    """The dimension labels with only the spatial dimensions `rest`.

    dropped: dimensions removed from input, kernel and result.
    """

    def place(side: int, old: int) -> int:
        return old - sum(k < old for k in dropped[side])

    def places(side: int, old: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(place(side, old[k]) for k in rest)

    return ConvolutionDims(
        *(place(0, d.input_batch), place(0, d.input_feature), places(0, d.input_spatial)),
        *(place(1, d.kernel_input_feature), place(1, d.kernel_output_feature), places(1, d.kernel_spatial)),
        *(place(2, d.output_batch), place(2, d.output_feature), places(2, d.output_spatial)),
    )


RULES = (
    rule(Op.DOT, dot_of_nothing),
    rule(Op.DOT, dot_of_zeros),
    rule(Op.DOT, dot_outer),
    rule(Op.DOT, dot_of_one_number, f"{REASSOCIATED}, and {SIGNED_ZERO}", 8),
    rule(Op.DOT, dot_of_columns, f"{REASSOCIATED}, and {SIGNED_ZERO}", 8),
    rule(Op.DOT, dot_across, f"{REASSOCIATED}, and {SIGNED_ZERO}", 8),
    rule(Op.DOT, dot_with_vector, f"{REASSOCIATED}, and {SIGNED_ZERO}", 8),
    rule(Op.SLICE, slice_of_dot, REASSOCIATED, 8),
    rule(Op.CONVOLUTION, convolution_of_single_places),
)
