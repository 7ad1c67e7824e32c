"""Reshapes of arrays with dynamic sizes: an unmerged dimension keeps its size, other elements are rearranged."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from itertools import accumulate, pairwise

from ...hlo.dtypes import DType
from ...hlo.errors import UnsupportedError
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder
from .values import Sized, plain, present, sizes_of


def reshape(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    """Keep the sizes of unmerged dimensions; otherwise rearrange the present elements in order."""
    (x,), dims = xs, i.shape.dims
    after: list[Instruction] = [b.constant(n, DType.S32) for n in dims]
    found, moves = {}, False
    for from_, to in blocks(x.dims, dims):
        if not to or all(x.of(d) is None for d in from_):
            continue
        unknown = sized_dimension(i, to)
        size = product(b, [present(b, x, d) for d in from_])
        rest = math.prod(dims[d] for d in to if d != unknown)
        if rest:
            after[unknown] = size if rest == 1 else b.binary(Op.DIVIDE, size, rest)
        found[unknown] = after[unknown]
        moves = moves or not _keep_places(x, dims, from_, to, unknown)
    if not moves:
        return plain(i, b, xs, found)
    before = [present(b, x, d) for d in range(len(x.dims))]
    return Sized(laid_out(b, x.value, before, after, dims), sizes_of(found))


Block = tuple[Sequence[int], Sequence[int]]
"""Adjacent dimensions of the operand and of the result that hold the same elements."""


def blocks(source: Sequence[int], target: Sequence[int]) -> list[Block]:
    """The finest split of all dimensions into blocks; a block ends where products of leading dimensions are equal."""
    if list(source) == list(target):
        return [((d,), (d,)) for d in range(len(source))]
    if math.prod(source) == 0:
        return [(range(len(source)), range(len(target)))]
    before, after = (list(accumulate(dims, operator.mul)) for dims in (source, target))
    ends = [(0, 0)]
    while ends[-1][0] < len(source) and ends[-1][1] < len(target):
        s, t = ends[-1]
        met = next(n for n in range(s, len(source)) if before[n] in after[t:])
        ends.append((met + 1, after.index(before[met], t) + 1))
    ends[max(len(ends) - 1, 1) :] = [(len(source), len(target))]  # remaining dimensions of 1 join the last block
    return [(range(s, s_end), range(t, t_end)) for (s, t), (s_end, t_end) in pairwise(ends)]


def sized_dimension(i: Instruction, to: Sequence[int]) -> int:
    """The result dimension of a block whose size is known at run time only.

    This is the one that the shape declares dynamic, else `inferred_dimension`, else the one larger than 1. Raises
    UnsupportedError if several qualify.
    """
    declared = {d for d in to if i.shape.dynamic and i.shape.dynamic[d]}
    inferred = {i.attributes.get("inferred_dimension", -1)}.intersection(to)
    chosen = declared or inferred or {d for d in to if i.shape.dims[d] != 1} or {to[0]}
    if len(chosen) > 1:
        raise UnsupportedError(
            "pad-dynamic",
            f"dynamic dimensions (reshape): {i.shape} has several of {i.operands[0].shape}",
            location=i.location,
            remedy="make one dimension of the result dynamic, or write a dynamic-reshape",
        )
    return chosen.pop()


def _keep_places(x: Sized, dims: Sequence[int], from_: Sequence[int], to: Sequence[int], unknown: int) -> bool:
    """Whether elements of a block keep their positions: only the outermost dimension larger than 1 has a size."""
    first = next((d for d in from_ if x.dims[d] != 1), from_[0])
    ones = all(dims[d] == 1 for d in to if d < unknown)
    return ones and all(x.of(d) is None for d in from_ if d != first)


def dynamic_reshape(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized:
    x, *sizes = xs
    after = [b.convert(s.value, DType.S32) for s in sizes]
    before = [present(b, x, d) for d in range(len(x.dims))]
    dynamic = i.shape.dynamic or (False,) * i.shape.rank
    known = {d: s for d, s in enumerate(after) if dynamic[d]}
    return Sized(laid_out(b, x.value, before, after, i.shape.dims), sizes_of(known))


def product(b: Builder, sizes: Sequence[Instruction]) -> Instruction:
    whole = b.constant(1, DType.S32)
    for size in sizes:
        whole = b.binary(Op.MULTIPLY, whole, size)
    return whole


def laid_out(
    b: Builder, x: Instruction, before: Sequence[Instruction], after: Sequence[Instruction], dims: Sequence[int]
) -> Instruction:
    """x rearranged: its present elements in the same order, in an array with the bounds `dims`.

    before, after: present sizes of the dimensions of x and of the result.
    """
    source, count = x.shape.dims, math.prod(dims)
    if not count:
        return b.constant(0, x.shape.dtype, dims)
    number = b.constant(0, DType.S32, dims)
    for d in range(len(dims)):
        step = product(b, after[d + 1 :])
        number = b.binary(Op.ADD, number, b.binary(Op.MULTIPLY, b.iota(DType.S32, dims, d), step))
    place = b.constant(0, DType.S32, dims)
    for d in reversed(range(len(source))):
        size = b.binary(Op.MAXIMUM, before[d], 1)
        along = b.binary(Op.REMAINDER, number, size)
        number = b.binary(Op.DIVIDE, number, b.broadcast(size, dims))
        place = b.binary(Op.ADD, place, b.binary(Op.MULTIPLY, along, math.prod(source[d + 1 :])))
    flat = b.reshape(b.plain(x), (math.prod(source),))
    taken = b.op(
        Op.GATHER, array(x.shape.dtype, count), flat, b.reshape(place, (count, 1)), offset_dims=(),
        collapsed_slice_dims=(0,), start_index_map=(0,), index_vector_dim=1, slice_sizes=(1,),
    )  # fmt: skip
    return b.reshape(taken, dims)
