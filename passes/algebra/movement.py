"""Rules for data movement: broadcast, slice, pad, concatenate, reverse, transpose, iota, reshape.

The rules in passes/cleanup/simplify.py, which apply to any layout, are not repeated here.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...hlo.attributes import PadDim, SliceDim
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..building import Builder
from ..cleanup.constant_folding import splat_of
from .ranges import known_starts
from .rule import is_zero, rule, spread_over


def _is_splat(x: Instruction) -> bool:
    return x.opcode is Op.BROADCAST and x.operands[0].shape.rank == 0


def _one(source: Instruction) -> Instruction | None:
    """The scalar that a broadcast repeats or that a constant is a splat of; None if there is none."""
    return source.operands[0] if _is_splat(source) else splat_of(source)


def _same_scalar(a: Instruction | None, c: Instruction | None) -> bool:
    if a is None or c is None:
        return False
    return a is c or (a.opcode is c.opcode is Op.CONSTANT and a.literal == c.literal)


# --- iota ------------------------------------------------------------------------------------------------------------


def iota_of_one(i: Instruction, b: Builder) -> Instruction | None:
    """iota along a dimension of size 1 → 0."""
    return b.constant(0, i.shape.dtype, i.shape.dims) if i.shape.dims[i.attributes["iota_dimension"]] == 1 else None


def broadcast_of_iota(i: Instruction, b: Builder) -> Instruction | None:
    """broadcast(iota) → iota."""
    x = i.operands[0]
    if x.opcode is not Op.IOTA:
        return None
    return b.iota(i.shape.dtype, i.shape.dims, i.dimensions[x.attributes["iota_dimension"]])


def transpose_of_iota(i: Instruction, b: Builder) -> Instruction | None:
    """transpose(iota) → iota."""
    x = i.operands[0]
    if x.opcode is not Op.IOTA:
        return None
    return b.iota(i.shape.dtype, i.shape.dims, i.dimensions.index(x.attributes["iota_dimension"]))


def slice_of_iota(i: Instruction, b: Builder) -> Instruction | None:
    """slice(iota) → iota, if the slice starts at 0 with stride 1 along the iota dimension."""
    x = i.operands[0]
    if x.opcode is not Op.IOTA:
        return None
    d = x.attributes["iota_dimension"]
    taken = i.attributes["slice"][d]
    return b.iota(i.shape.dtype, i.shape.dims, d) if taken.start == 0 and taken.stride == 1 else None


# --- slice -----------------------------------------------------------------------------------------------------------


def slice_of_concatenate(i: Instruction, b: Builder) -> Instruction | None:
    """slice(concatenate(x, y, …)) → slice of the operands it overlaps, concatenated, if it does not overlap all."""
    x = i.operands[0]
    if x.opcode is not Op.CONCATENATE or not i.shape.size:
        return None
    d, taken = x.dimensions[0], i.attributes["slice"]
    start, limit = taken[d].start, taken[d].limit
    if taken[d].stride != 1:
        limit = start + (i.shape.dims[d] - 1) * taken[d].stride + 1
    parts, reached, at = [], 0, 0
    for o in x.operands:
        low, high = max(start - at, 0), min(limit - at, o.shape.dims[d])
        if low < high:
            reached += 1
            stride = taken[d].stride if low == start - at and high == limit - at else 1
            parts.append(b.slice(o, [*taken[:d], SliceDim(low, high, stride), *taken[d + 1 :]]))
        at += o.shape.dims[d]
    if reached == len(x.operands) or (reached > 1 and taken[d].stride != 1):
        return None
    return b.concatenate(parts, d)


def slice_of_pad(i: Instruction, b: Builder) -> Instruction | None:
    """slice(pad(x)) → slice(x), if it lies within x; → the padding value, if it lies within the padding.

    Only if the pad has no other use, because otherwise x would stay live beside it.
    """
    x = i.operands[0]
    if (
        x.opcode is not Op.PAD
        or not b.is_sole(x)
        or not i.shape.size
        or any(p.interior for p in x.attributes["padding"])
    ):
        return None
    source, inside = x.operands[0], []
    for taken, p, n in zip(i.attributes["slice"], x.attributes["padding"], source.shape.dims):
        last = taken.start + (taken.limit - taken.start - 1) // taken.stride * taken.stride
        first, last = taken.start - p.low, last - p.low
        if last < 0 or first >= n:
            return b.broadcast(x.operands[1], i.shape.dims)
        inside.append(SliceDim(first, last + 1, taken.stride) if first >= 0 and last < n else None)
    if any(s is None for s in inside):
        return None
    return b.slice(source, inside)


def slice_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """slice(broadcast(x)) → broadcast(slice(x))."""
    x = i.operands[0]
    if x.opcode is not Op.BROADCAST:
        return None
    source = x.operands[0]
    taken = [i.attributes["slice"][d] for d in x.dimensions]
    return spread_over(b, b.slice(source, taken) if taken else source, i.shape.dims, x.dimensions)


def slice_of_transpose(i: Instruction, b: Builder) -> Instruction | None:
    """slice(transpose(x)) → transpose(slice(x)), if the transpose has no other use."""
    x = i.operands[0]
    if x.opcode is not Op.TRANSPOSE or not b.is_sole(x):
        return None
    taken: list[SliceDim | None] = [None] * i.shape.rank
    for d, s in zip(x.dimensions, i.attributes["slice"]):
        taken[d] = s
    return b.transpose(b.slice(x.operands[0], taken), x.dimensions)


def slice_of_reverse(i: Instruction, b: Builder) -> Instruction | None:
    """slice(reverse(x)) → reverse(slice(x)), if the reverse has no other use."""
    x = i.operands[0]
    if x.opcode is not Op.REVERSE or not b.is_sole(x) or not i.shape.size:
        return None
    taken: list[SliceDim | None] = []
    for d, (s, n) in enumerate(zip(i.attributes["slice"], x.shape.dims)):
        last = s.start + (i.shape.dims[d] - 1) * s.stride
        taken.append(SliceDim(n - 1 - last, n - s.start, s.stride) if d in x.dimensions else s)
    part = b.slice(x.operands[0], taken)
    return b.op(Op.REVERSE, part.shape.without_layout(), part, dimensions=x.dimensions)


def slice_of_update(i: Instruction, b: Builder) -> Instruction | None:
    """slice(dynamic-update-slice(x, u, known starts)) → slice(u) if within u; → slice(x) if disjoint from u.

    slice(x) only if the update has no other use, because the update is written in place.
    """
    x = i.operands[0]
    starts = known_starts(x, 2) if x.opcode is Op.DYNAMIC_UPDATE_SLICE and i.shape.size else [None]
    if any(s is None for s in starts):
        return None
    inside, outside = [], False
    for taken, n, low, m in zip(i.attributes["slice"], i.shape.dims, starts, x.operands[1].shape.dims):
        first = taken.start - (low or 0)
        last = first + (n - 1) * taken.stride
        outside = outside or last < 0 or first >= m
        inside.append(SliceDim(first, last + 1, taken.stride) if first >= 0 and last < m else None)
    if outside:
        return b.slice(x.operands[0], i.attributes["slice"]) if b.is_sole(x) else None
    return None if any(s is None for s in inside) else b.slice(x.operands[1], inside)


# --- concatenate -----------------------------------------------------------------------------------------------------


def concatenate_of_concatenates(i: Instruction, b: Builder) -> Instruction | None:
    """concatenate(concatenate(x, y), z) → concatenate(x, y, z), if the inner one has no other use."""
    d = i.dimensions

    def is_inner(o: Instruction) -> bool:
        return o.opcode is Op.CONCATENATE and o.dimensions == d and b.is_sole(o)

    if not any(map(is_inner, i.operands)):
        return None
    return b.concatenate([p for o in i.operands for p in (o.operands if is_inner(o) else (o,))], d[0])


def concatenate_of_slices(i: Instruction, b: Builder) -> Instruction | None:
    """concatenate(x[a:b], x[b:c]) → x[a:c]."""
    d, parts, joined = i.dimensions[0], list(i.operands[:1]), False
    for o in i.operands[1:]:
        both = _joined(parts[-1], o, d, b)
        joined = joined or both is not None
        if both is None:
            parts.append(o)
        else:
            parts[-1] = both
    return b.concatenate(parts, d) if joined else None


def _joined(x: Instruction, y: Instruction, d: int, b: Builder) -> Instruction | None:
    """One slice for two adjacent slices of one array along dimension d; None if they are not adjacent."""
    if x.opcode is not Op.SLICE or y.opcode is not Op.SLICE or x.operands[0] is not y.operands[0]:
        return None
    first, second = x.attributes["slice"], y.attributes["slice"]
    rest = all(s == t for k, (s, t) in enumerate(zip(first, second)) if k != d)
    if not rest or first[d].stride != 1 or second[d].stride != 1 or first[d].limit != second[d].start:
        return None
    return b.slice(x.operands[0], [*first[:d], SliceDim(first[d].start, second[d].limit), *first[d + 1 :]])


def concatenate_of_splats(i: Instruction, b: Builder) -> Instruction | None:
    """concatenate of equal splats → a splat; concatenate of one array and a splat → pad."""
    numbers = [_one(o) for o in i.operands]
    if any(n is None for n in numbers) and len(i.operands) > 2:
        return None
    if all(_same_scalar(numbers[0], n) for n in numbers):
        first = numbers[0]
        return b.broadcast(first, i.shape.dims) if first is not None else None
    if len(i.operands) != 2 or (numbers[0] is None) == (numbers[1] is None):
        return None
    d, (x, y) = i.dimensions[0], i.operands
    fill, source = (numbers[0], y) if numbers[0] is not None else (numbers[1], x)
    low, high = (x.shape.dims[d], 0) if source is y else (0, y.shape.dims[d])
    assert fill is not None
    return b.pad(source, fill, [PadDim(low, high) if k == d else PadDim(0, 0) for k in range(i.shape.rank)])


def concatenate_of_one(i: Instruction, b: Builder) -> Instruction | None:
    """concatenate(x, x, …) → reshape(broadcast(x))."""
    x, d, count = i.operands[0], i.dimensions[0], len(i.operands)
    if count < 2 or any(o is not x for o in i.operands) or not i.shape.size:
        return None
    dims = [*x.shape.dims[:d], count, *x.shape.dims[d:]]
    return b.reshape(spread_over(b, x, dims, [k for k in range(len(dims)) if k != d]), i.shape.dims)


# --- pad, reverse, transpose, broadcast, reshape ---------------------------------------------------------------------


def pad_of_splat(i: Instruction, b: Builder) -> Instruction | None:
    """pad of a splat by its own number, or of an empty array → a splat."""
    x, fill = i.operands
    same = _same_scalar(_one(x), fill)
    return b.broadcast(fill, i.shape.dims) if i.shape.rank and (same or not x.shape.size) else None


def pad_of_pad(i: Instruction, b: Builder) -> Instruction | None:
    """pad(pad(x)) → pad(x), if both pad by the same number, without negative and without interior padding."""
    x, fill = i.operands
    if x.opcode is not Op.PAD or not _same_scalar(x.operands[1], fill):
        return None
    inner, outer = x.attributes["padding"], i.attributes["padding"]
    if any(p.interior or min(p.low, p.high) < 0 for p in (*inner, *outer)):
        return None
    return b.pad(x.operands[0], fill, [PadDim(p.low + q.low, p.high + q.high) for p, q in zip(inner, outer)])


def pad_that_cuts(i: Instruction, b: Builder) -> Instruction | None:
    """pad by negative amounts only → slice."""
    padding, x = i.attributes["padding"], i.operands[0]
    if not i.shape.size or any(p.interior or p.low > 0 or p.high > 0 for p in padding):
        return None
    return b.slice(x, [SliceDim(-p.low, n + p.high) for p, n in zip(padding, x.shape.dims)])


def sum_of_pads(i: Instruction, b: Builder) -> Instruction | None:
    """pad(x) + pad(y), which fill each other's gaps → x and y beside each other or in turns, plus 0: -0 + 0 is 0.

    jax.lax.associative_scan joins its halves so, and the gradient of a split in two its parts.
    """
    x, y = i.operands
    fill = splat_of(x.operands[1]) if x.opcode is y.opcode is Op.PAD else None
    if fill is None or not is_zero(fill) or not _same_scalar(fill, splat_of(y.operands[1])):
        return None
    if not x.operands[0].shape.size or not y.operands[0].shape.size:
        return None
    pairs = list(zip(x.attributes["padding"], y.attributes["padding"], strict=True))
    padded = [d for d, pair in enumerate(pairs) if any((p.low, p.high, p.interior) != (0, 0, 0) for p in pair)]
    if len(padded) != 1:
        return None
    (d,) = padded
    if pairs[d][0].low:
        x, y = y, x
    p, q = x.attributes["padding"][d], y.attributes["padding"][d]
    x, y = x.operands[0], y.operands[0]
    n, m = x.shape.dims[d], y.shape.dims[d]
    if i.shape.dtype.is_float or i.shape.dtype.is_complex:
        x, y = (b.binary(Op.ADD, part, b.broadcast(fill, part.shape.dims)) for part in (x, y))
    if (p.low, p.high, p.interior, q.low, q.high, q.interior) == (0, m, 0, n, 0, 0):
        return b.concatenate([x, y], d)
    if (p.low, p.interior, q.low, q.interior) == (0, 1, 1, 1) and (p.high, q.high) in ((1, 0), (0, 1)):
        return _in_turns(b, x, y, d)
    return None


def _in_turns(b: Builder, x: Instruction, y: Instruction, d: int) -> Instruction:
    """x[0], y[0], x[1], … along a dimension. x may have one element more."""
    dims, m = x.shape.dims, y.shape.dims[d]
    pairs = [b.reshape(part, (*dims[:d], m, 1, *dims[d + 1 :])) for part in (b.slice_in(x, d, 0, m), y)]
    both = b.reshape(b.concatenate(pairs, d + 1), (*dims[:d], 2 * m, *dims[d + 1 :]))
    return both if dims[d] == m else b.concatenate([both, b.slice_in(x, d, m, m + 1)], d)


def reverse_of_reverse(i: Instruction, b: Builder) -> Instruction | None:
    """reverse(reverse(x)) → reverse(x) along the dimensions that only one of them reverses, or x."""
    x = i.operands[0]
    if x.opcode is not Op.REVERSE:
        return None
    return _reverse(b, x.operands[0], sorted(set(i.dimensions) ^ set(x.dimensions)))


def reverse_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """reverse(broadcast(x)) → reverse along dimensions of x only; dimensions of size 1 are left out too."""
    x = i.operands[0]
    kept = [d for d in i.dimensions if x.shape.dims[d] != 1 and (x.opcode is not Op.BROADCAST or d in x.dimensions)]
    return _reverse(b, x, kept) if len(kept) < len(i.dimensions) else None


def _reverse(b: Builder, x: Instruction, dimensions: Sequence[int]) -> Instruction:
    return b.op(Op.REVERSE, x.shape.without_layout(), x, dimensions=tuple(dimensions)) if dimensions else x


def transpose_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """transpose(broadcast(x)) → broadcast(x), if the dimensions of x keep their order."""
    x = i.operands[0]
    if x.opcode is not Op.BROADCAST:
        return None
    places = [i.dimensions.index(d) for d in x.dimensions]
    return spread_over(b, x.operands[0], i.shape.dims, places) if places == sorted(places) else None


def reshape_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """reshape(broadcast(x)) → broadcast(x), if it only adds or drops dimensions of size 1 that are not in x."""
    x = i.operands[0]
    if x.opcode is not Op.BROADCAST or not i.shape.size:
        return None
    old = [d for d, n in enumerate(x.shape.dims) if n != 1]
    new = [d for d, n in enumerate(i.shape.dims) if n != 1]
    if [x.shape.dims[d] for d in old] != [i.shape.dims[d] for d in new] or any(d not in old for d in x.dimensions):
        return None
    return spread_over(b, x.operands[0], i.shape.dims, [new[old.index(d)] for d in x.dimensions])


RULES = (
    rule(Op.IOTA, iota_of_one),
    rule(Op.BROADCAST, broadcast_of_iota),
    rule(Op.TRANSPOSE, transpose_of_iota),
    rule(Op.TRANSPOSE, transpose_of_broadcast),
    rule(Op.RESHAPE, reshape_of_broadcast),
    rule(Op.SLICE, slice_of_iota),
    rule(Op.SLICE, slice_of_concatenate),
    rule(Op.SLICE, slice_of_pad),
    rule(Op.SLICE, slice_of_broadcast),
    rule(Op.SLICE, slice_of_update),
    rule(Op.SLICE, slice_of_transpose),
    rule(Op.SLICE, slice_of_reverse),
    rule(Op.CONCATENATE, concatenate_of_concatenates),
    rule(Op.CONCATENATE, concatenate_of_one),
    rule(Op.CONCATENATE, concatenate_of_slices),
    rule(Op.CONCATENATE, concatenate_of_splats),
    rule(Op.PAD, pad_of_splat),
    rule(Op.PAD, pad_of_pad),
    rule(Op.PAD, pad_that_cuts),
    rule(Op.ADD, sum_of_pads),
    rule(Op.REVERSE, reverse_of_reverse),
    rule(Op.REVERSE, reverse_of_broadcast),
)
