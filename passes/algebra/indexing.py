"""Rules for dynamic-slice, dynamic-update-slice, gather and scatter with known, single or consecutive starts."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...hlo.attributes import PadDim, SliceDim
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..building import Builder, apply_pointwise, is_pointwise
from ..cleanup.constant_folding import splat_of
from .convert import range_of_type
from .ranges import known_starts, range_of, type_range
from .rule import rule, spread_over


def dynamic_slice_at_known(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice at known starts → slice."""
    starts = known_starts(i, 1)
    if any(s is None for s in starts):
        return None
    return b.slice(i.operands[0], [SliceDim(s or 0, (s or 0) + n) for s, n in zip(starts, i.shape.dims)])


def dynamic_slice_of_splat(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice of a broadcast scalar → a smaller broadcast."""
    x = i.operands[0]
    splat = x.opcode is Op.BROADCAST and not x.operands[0].shape.rank
    return b.broadcast(x.operands[0], i.shape.dims) if splat and i.shape.rank else None


def dynamic_slice_of_broadcast(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(broadcast(x)) → broadcast(dynamic-slice(x))."""
    x = i.operands[0]
    if x.opcode is not Op.BROADCAST or not x.operands[0].shape.rank or len(i.operands) != 1 + x.shape.rank:
        return None
    source, places = x.operands[0], x.dimensions
    sizes = [i.shape.dims[d] for d in places]
    if list(sizes) != list(source.shape.dims):
        source = b.dynamic_slice(source, [i.operands[1 + d] for d in places], sizes)
    if source.shape.dims == i.shape.dims and tuple(places) == tuple(range(i.shape.rank)):
        return source
    return b.op(Op.BROADCAST, i.shape.without_layout(), source, dimensions=places)


def dynamic_slice_of_iota(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(iota) → iota + the clamped start; the start alone if one element of the iota dimension is read."""
    x = i.operands[0]
    if x.opcode is not Op.IOTA or len(i.operands) != 1 + x.shape.rank or not i.shape.size:
        return None
    d, dtype = x.attributes["iota_dimension"], i.shape.dtype
    if not dtype.is_integer and x.shape.dims[d] - 1 > range_of_type(dtype):
        return None
    start = b.convert(_clamped(b, i.operands[1 + d], x.shape.dims[d] - i.shape.dims[d]), dtype)
    start = b.broadcast(start, i.shape.dims)
    return start if i.shape.dims[d] == 1 else b.binary(Op.ADD, b.iota(dtype, i.shape.dims, d), start)


def _clamped(b: Builder, index: Instruction, most: int) -> Instruction:
    """An index clamped to 0 … `most`, as dynamic-slice does."""
    (low, high), (_, limit) = range_of(index), type_range(index.shape.dtype)
    if low >= 0 and high <= most:
        return index
    bounds = [b.constant(n, index.shape.dtype) for n in (0, min(most, limit))]
    return b.op(Op.CLAMP, index.shape.without_layout(), bounds[0], index, bounds[1])


def dynamic_slice_twice(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-slice(dynamic-slice(x, s), t) → dynamic-slice(x, s + t), both clamped, if the inner has no other use."""
    inner = i.operands[0]
    if inner.opcode is not Op.DYNAMIC_SLICE or not b.is_sole(inner):
        return None
    x, rank = inner.operands[0], i.shape.rank
    if len(i.operands) != 1 + rank or len(inner.operands) != 1 + rank:
        return None
    starts = []
    for s, t, n, m, k in zip(inner.operands[1:], i.operands[1:], x.shape.dims, inner.shape.dims, i.shape.dims):
        if s.shape.dtype is not t.shape.dtype or n - k > type_range(s.shape.dtype)[1]:
            return None
        starts.append(t if n == m else s if m == k else b.binary(Op.ADD, _clamped(b, s, n - m), _clamped(b, t, m - k)))
    return b.dynamic_slice(x, starts, i.shape.dims)


def update_of_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-update-slice with an empty update → the array."""
    return i.operands[0] if not i.operands[1].shape.size else None


def update_by_itself(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-update-slice(x, dynamic-slice(x, s), s) → x."""
    x, update = i.operands[:2]
    same = update.opcode is Op.DYNAMIC_SLICE and update.operands[0] is x and update.operands[1:] == i.operands[2:]
    return x if same else None


def update_twice(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-update-slice(dynamic-update-slice(x, u, s), v, s) → dynamic-update-slice(x, v, s), of equal sizes."""
    inner = i.operands[0]
    if inner.opcode is not Op.DYNAMIC_UPDATE_SLICE or inner.operands[2:] != i.operands[2:]:
        return None
    if inner.operands[1].shape.dims != i.operands[1].shape.dims:
        return None
    return b.op(i.opcode, i.shape.without_layout(), inner.operands[0], *i.operands[1:])


def update_of_splat(i: Instruction, b: Builder) -> Instruction | None:
    """dynamic-update-slice of a broadcast scalar at known starts → pad."""
    x, update = i.operands[:2]
    if x.opcode is not Op.BROADCAST or x.operands[0].shape.rank or not update.shape.size:
        return None
    starts = known_starts(i, 2)
    if any(s is None for s in starts):
        return None
    dims = zip(starts, x.shape.dims, update.shape.dims)
    return b.pad(update, x.operands[0], [PadDim(s or 0, n - m - (s or 0)) for s, n, m in dims])


# --- gather and scatter ----------------------------------------------------------------------------------------------


def _batch(i: Instruction, indices: Instruction) -> list[int]:
    d = i.attributes["index_vector_dim"]
    return [n for k, n in enumerate(indices.shape.dims) if k != d]


def _columns(i: Instruction, indices: Instruction, key: str) -> int:
    d = i.attributes["index_vector_dim"]
    columns = indices.shape.dims[d] if d < indices.shape.rank else 1
    return columns if columns == len(i.attributes.get(key, ())) else -1


def _single(b: Builder, indices: Instruction, dims: Sequence[int], rank: int) -> list[Instruction]:
    """The starts of a single slice: one scalar per dimension of the operand, 0 where it is not indexed."""
    flat = b.reshape(indices, (len(dims),))
    dtype = indices.shape.dtype
    by_dim = {d: b.reshape(b.slice_in(flat, 0, n, n + 1), ()) for n, d in enumerate(dims)}
    return [by_dim[d] if d in by_dim else b.constant(0, dtype) for d in range(rank)]


def gather_of_one(i: Instruction, b: Builder) -> Instruction | None:
    """gather of one slice → dynamic-slice, which clamps in the same way."""
    x, indices = i.operands
    a = i.attributes
    if math.prod(_batch(i, indices)) != 1 or a.get("operand_batching_dims") or not math.prod(a["slice_sizes"]):
        return None
    if _columns(i, indices, "start_index_map") < 1:
        return None
    part = b.dynamic_slice(x, _single(b, indices, a["start_index_map"], x.shape.rank), a["slice_sizes"])
    return b.reshape(part, i.shape.dims)


def gather_of_whole(i: Instruction, b: Builder) -> Instruction | None:
    """gather of slices that span the indexed dimensions, so that they can only start at 0 → broadcast(slice)."""
    x, a = i.operands[0], i.attributes
    sizes = a["slice_sizes"]
    if a.get("operand_batching_dims") or not i.shape.size or _columns(i, i.operands[1], "start_index_map") < 1:
        return None
    if 0 in sizes:  # the result may still have elements; expand-gather handles that case
        return None
    if any(x.shape.dims[d] != sizes[d] for d in a["start_index_map"]):
        return None
    collapsed = a.get("collapsed_slice_dims", ())
    part = b.slice(x, [SliceDim(0, n) for n in sizes])
    part = b.reshape(part, [n for d, n in enumerate(sizes) if d not in collapsed])
    return spread_over(b, part, i.shape.dims, sorted(a.get("offset_dims", ())))


def _consecutive(i: Instruction, indices: Instruction) -> tuple[int, int, int] | None:
    """(first, step, count) of the starts along one dimension, if they are consecutive with step > 0; else None."""
    batch = [n for n in _batch(i, indices) if n != 1]
    if len(batch) != 1:
        return None
    at = indices
    while at.opcode is Op.RESHAPE:
        at = at.operands[0]
    if at.opcode is Op.IOTA:
        along = at.shape.dims[at.attributes["iota_dimension"]]
        return (0, 1, batch[0]) if [n for n in at.shape.dims if n != 1] == batch and along == batch[0] else None
    if at.opcode is not Op.CONSTANT or at.literal.is_elided or at.shape.size != batch[0]:
        return None
    numbers = [int(n) for n in at.literal.array.flat]
    step = numbers[1] - numbers[0]
    regular = step > 0 and numbers == list(range(numbers[0], numbers[0] + step * len(numbers), step))
    return (numbers[0], step, len(numbers)) if regular else None


def gather_of_consecutive(i: Instruction, b: Builder) -> Instruction | None:
    """gather of rows a, a + s, a + 2 · s, … within bounds, with a known s > 0 → slice."""
    x, indices = i.operands
    a = i.attributes
    found = _consecutive(i, indices)
    if found is None or a.get("operand_batching_dims") or 0 in a["slice_sizes"]:
        return None
    if _columns(i, indices, "start_index_map") != 1 or tuple(a.get("collapsed_slice_dims", ())) != a["start_index_map"]:
        return None
    (first, step, count), d = found, a["start_index_map"][0]
    last = first + step * (count - 1)
    if first < 0 or last >= x.shape.dims[d]:
        return None
    taken = [SliceDim(first, last + 1, step) if k == d else SliceDim(0, n) for k, n in enumerate(a["slice_sizes"])]
    part = b.slice(x, taken)
    rest = [k for k in range(x.shape.rank) if k != d]
    offsets = list(a.get("offset_dims", ()))
    where = next(k for k in range(i.shape.rank) if k not in offsets and i.shape.dims[k] == count)
    kept = [k for k in range(i.shape.rank) if k in offsets or k == where]
    order = [rest[sum(o < k for o in offsets)] if k in offsets else d for k in kept]
    return b.reshape(b.transpose(part, order), i.shape.dims)


def scatter_of_nothing(i: Instruction, b: Builder) -> Instruction | None:
    """scatter without updates → the array."""
    many = len(i.operands) // 2
    if i.operands[-1].shape.size or i.shape.is_tuple:
        return None
    return i.operands[0] if many == 1 else None


def scatter_at_known(i: Instruction, b: Builder) -> Instruction | None:
    """scatter of one update at a known start within bounds → dynamic-update-slice."""
    if len(i.operands) != 3 or i.attributes.get("input_batching_dims"):
        return None
    x, indices, update = i.operands
    a, region = i.attributes, i.attributes["to_apply"]
    start = indices if indices.opcode is Op.CONSTANT else splat_of(indices)
    if start is None or start.literal.is_elided or not is_pointwise(region):
        return None
    if math.prod(_batch(i, indices)) != 1 or not update.shape.size or not x.shape.size:
        return None
    columns = a.get("scatter_dims_to_operand_dims", ())
    if _columns(i, indices, "scatter_dims_to_operand_dims") < 1:
        return None
    window = iter([update.shape.dims[d] for d in a.get("update_window_dims", ())])
    inserted = a.get("inserted_window_dims", ())
    extent = [1 if d in inserted else next(window) for d in range(x.shape.rank)]
    starts = [0] * x.shape.rank
    for d, value in zip(columns, np.broadcast_to(start.literal.array, indices.shape.dims).flat):
        starts[d] = int(value)
    if any(not 0 <= s <= n - m for s, n, m in zip(starts, x.shape.dims, extent)):
        return None
    old = b.slice(x, [SliceDim(s, s + n) for s, n in zip(starts, extent)])
    new = apply_pointwise(b, region, [old, b.reshape(update, extent)])[0]
    return b.dynamic_update_slice(x, new, [b.constant(s, DType.S32) for s in starts])


def scatter_of_consecutive(i: Instruction, b: Builder) -> Instruction | None:
    """scatter of updates to rows a, a + 1, a + 2, … within bounds → dynamic-update-slice."""
    a, region = i.attributes, i.attributes["to_apply"]
    if len(i.operands) != 3 or a.get("input_batching_dims") or not is_pointwise(region):
        return None
    x, indices, update = i.operands
    found = _consecutive(i, indices)
    if found is None or not update.shape.size or _columns(i, indices, "scatter_dims_to_operand_dims") != 1:
        return None
    (first, step, count), d = found, a["scatter_dims_to_operand_dims"][0]
    if step != 1 or first < 0 or first + count > x.shape.dims[d] or tuple(a.get("inserted_window_dims", ())) != (d,):
        return None
    window = list(a.get("update_window_dims", ()))
    where = next(k for k in range(update.shape.rank) if k not in window and update.shape.dims[k] == count)
    rows = b.reshape(update, [n for k, n in enumerate(update.shape.dims) if k in window or k == where])
    order = sorted(window)
    order[d:d] = [where]
    kept = sorted(order)
    rows = b.transpose(rows, [kept.index(k) for k in order])
    starts = [first if k == d else 0 for k in range(x.shape.rank)]
    old = b.slice(x, [SliceDim(s, s + n) for s, n in zip(starts, rows.shape.dims)])
    new = apply_pointwise(b, region, [old, rows])[0]
    return b.dynamic_update_slice(x, new, [b.constant(s, DType.S32) for s in starts])


RULES = (
    rule(Op.DYNAMIC_SLICE, dynamic_slice_at_known),
    rule(Op.DYNAMIC_SLICE, dynamic_slice_of_splat),
    rule(Op.DYNAMIC_SLICE, dynamic_slice_of_broadcast),
    rule(Op.DYNAMIC_SLICE, dynamic_slice_of_iota),
    rule(Op.DYNAMIC_SLICE, dynamic_slice_twice),
    rule(Op.DYNAMIC_UPDATE_SLICE, update_of_nothing),
    rule(Op.DYNAMIC_UPDATE_SLICE, update_by_itself),
    rule(Op.DYNAMIC_UPDATE_SLICE, update_twice),
    rule(Op.DYNAMIC_UPDATE_SLICE, update_of_splat),
    rule(Op.GATHER, gather_of_whole),
    rule(Op.GATHER, gather_of_one),
    rule(Op.GATHER, gather_of_consecutive),
    rule(Op.SCATTER, scatter_of_nothing),
    rule(Op.SCATTER, scatter_at_known),
    rule(Op.SCATTER, scatter_of_consecutive),
)
