"""Shapes of opcodes that move data: broadcast, reshape, slice, pad, concatenate, gather, scatter, …"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from .attributes import PadDim
from .dtypes import DType
from .ir import Instruction
from .opcodes import Op
from .shape_rules import (
    arrays,
    broken,
    called,
    dims_in_range,
    higher,
    is_dynamic,
    make,
    merged_dynamic,
    one_dimension,
    same_dims,
    same_dtype,
    same_size,
)
from .shapes import UNBOUNDED, Shape, tuple_shape


def copy(i: Instruction) -> Shape:
    return i.operands[0].shape


def bitcast(i: Instruction) -> Shape:
    """BITCAST1: array to array of the same number of bits (padding of tiled layouts may change it)."""
    x = i.operands[0].shape
    if x.is_array != i.shape.is_array:
        broken(i, "BITCAST1", f"cannot see {x} as {i.shape}")
    tiled = any(s.layout is not None and s.layout.tiles for s in (x, i.shape))
    known = x.is_array and UNBOUNDED not in x.dims + i.shape.dims and not x.is_dynamic and not i.shape.is_dynamic
    bits = x.size * x.dtype.bits == i.shape.size * i.shape.dtype.bits
    if known and not tiled and not bits and x.bytes != i.shape.bytes:
        broken(i, "BITCAST1", f"{x} and {i.shape} differ in size")
    return i.shape


def broadcast(i: Instruction) -> Shape:
    """BROADCAST1: array. BROADCAST2: one entry of `dimensions` per operand dimension. BROADCAST3: distinct, in range.
    BROADCAST4: equal sizes."""
    (x,) = arrays(i, "BROADCAST1")
    if not i.shape.is_array:
        broken(i, "BROADCAST1", f"cannot broadcast to {i.shape}")
    dims = i.dimensions
    if len(dims) != x.rank:
        broken(i, "BROADCAST2", f"dimensions={dims} must have one entry for each of the {x.rank} dimensions of {x}")
    dims_in_range(i, "BROADCAST3", "dimensions", dims, i.shape.rank)
    for d, to in enumerate(dims):
        if not same_size(x.dims[d], i.shape.dims[to]):
            broken(
                i,
                "BROADCAST4",
                f"dimension {d} of {x} has size {x.dims[d]}, but it maps to dimension {to} of size {i.shape.dims[to]}",
                "a dimension of size 1 is not stretched: reshape it away first",
            )
    return replace(i.shape, dtype=x.dtype)


def inferred_broadcast(i: Instruction) -> Shape:
    """A broadcast whose text gives no shape: XLA's older form, where `dimensions` are the new sizes in front."""
    x = i.operands[0].shape
    return make(x.dtype, (*i.dimensions, *x.dims))


def inferred_transpose(i: Instruction) -> Shape:
    """A transpose whose text gives no shape: XLA moves the operand's layout along, so that nothing moves in memory."""
    shape = transpose(i)
    place = {d: k for k, d in enumerate(i.dimensions)}
    return shape.with_layout(tuple(place[d] for d in i.operands[0].shape.minor_to_major))


def iota(i: Instruction) -> Shape:
    """IOTA1: the result is an array of numbers. IOTA2: iota_dimension is one of its dimensions."""
    if not i.shape.is_array or i.shape.dtype is DType.PRED:
        broken(i, "IOTA1", f"cannot count in {i.shape}")
    if not 0 <= i.attributes["iota_dimension"] < i.shape.rank:
        broken(i, "IOTA2", f"iota_dimension {i.attributes['iota_dimension']} is no dimension of {i.shape}")
    return i.shape


def reshape(i: Instruction) -> Shape:
    """RESHAPE1: arrays. RESHAPE2: the same number of elements."""
    (x,) = arrays(i, "RESHAPE1")
    if not i.shape.is_array:
        broken(i, "RESHAPE1", f"cannot reshape to {i.shape}")
    if UNBOUNDED not in x.dims + i.shape.dims and x.size != i.shape.size:
        broken(i, "RESHAPE2", f"{x} has {x.size} elements and {i.shape} has {i.shape.size}")
    return replace(i.shape, dtype=x.dtype)


def dynamic_reshape(i: Instruction) -> Shape:
    """DYNRESHAPE1: the same number of elements. DYNRESHAPE2: one scalar s32 size for each dimension."""
    x, *sizes = arrays(i, "DYNRESHAPE1")
    if math.prod(x.dims) != math.prod(i.shape.dims):
        broken(i, "DYNRESHAPE1", f"{x} has {x.size} elements and {i.shape} has {i.shape.size}")
    if len(sizes) != i.shape.rank or any(s.rank or s.dtype is not DType.S32 for s in sizes):
        broken(i, "DYNRESHAPE2", f"needs one scalar s32 size for each of the {i.shape.rank} dimensions")
    return replace(i.shape, dtype=x.dtype)


def reverse(i: Instruction) -> Shape:
    """REVERSE1: array. REVERSE2: distinct dimensions in range."""
    (x,) = arrays(i, "REVERSE1")
    dims_in_range(i, "REVERSE2", "dimensions", i.dimensions, x.rank)
    return x


def transpose(i: Instruction) -> Shape:
    """TRANSPOSE1: array. TRANSPOSE2: `dimensions` is a permutation."""
    (x,) = arrays(i, "TRANSPOSE1")
    if sorted(i.dimensions) != list(range(x.rank)):
        broken(i, "TRANSPOSE2", f"dimensions={i.dimensions} is no permutation of the {x.rank} dimensions of {x}")
    return make(x.dtype, [x.dims[d] for d in i.dimensions], [x.dynamic[d] for d in i.dimensions] if x.dynamic else ())


def slice_(i: Instruction) -> Shape:
    """SLICE1: array. SLICE2: one range per dimension. SLICE3: 0 ≤ start ≤ limit ≤ size. SLICE4: stride ≥ 1."""
    (x,) = arrays(i, "SLICE1")
    ranges = i.attributes["slice"]
    if len(ranges) != x.rank:
        broken(i, "SLICE2", f"{len(ranges)} ranges for {x}", "give one [start:limit] per dimension")
    sizes = []
    for d, r in enumerate(ranges):
        if not (0 <= r.start <= r.limit and (r.limit <= x.dims[d] or x.dims[d] == UNBOUNDED)):
            broken(i, "SLICE3", f"range [{r.start}:{r.limit}] of dimension {d} is outside [0:{x.dims[d]}]")
        if r.stride < 1:
            broken(i, "SLICE4", f"stride {r.stride} of dimension {d} is not positive")
        sizes.append(-(-(r.limit - r.start) // r.stride))
    whole = [is_dynamic(x, d) for d in range(x.rank)]
    return make(x.dtype, sizes, whole)


def pad(i: Instruction) -> Shape:
    """PAD1: arrays. PAD2: the value is a scalar. PAD3: of the operand's type. PAD4: one row of padding per dimension.
    PAD5: interior padding is not negative. PAD6: no negative size."""
    x, value = arrays(i, "PAD1")
    rows = i.attributes["padding"]
    if value.rank:
        broken(i, "PAD2", f"the padding value has shape {value}, but must be a scalar")
    if not same_dtype(x.dtype, value.dtype):
        broken(i, "PAD3", f"the padding value has type {value.dtype.value}, not {x.dtype.value}")
    if x.rank == 0 and all(r == PadDim(0, 0, 0) for r in rows):
        return x
    if len(rows) != x.rank:
        broken(i, "PAD4", f"{len(rows)} rows of padding for {x}", "give low_high per dimension, joined by x")
    sizes = []
    for d, (size, row) in enumerate(zip(x.dims, rows, strict=True)):
        if row.interior < 0:
            broken(i, "PAD5", f"interior padding {row.interior} of dimension {d} is negative")
        new = UNBOUNDED if size == UNBOUNDED else size + row.low + row.high + max(size - 1, 0) * row.interior
        if new < 0 and size != UNBOUNDED:
            broken(i, "PAD6", f"padding leaves dimension {d} with the negative size {new}")
        sizes.append(new)
    return make(x.dtype, sizes, x.dynamic)


def concatenate(i: Instruction) -> Shape:
    """CONCAT1: at least one array. CONCAT2: one dimension in range. CONCAT3: one rank. CONCAT4: one element type.
    CONCAT5: equal sizes in all other dimensions."""
    shapes = arrays(i, "CONCAT1")
    if not shapes:
        broken(i, "CONCAT1", "needs at least one operand")
    first = shapes[0]
    d = one_dimension(i, "CONCAT2", first.rank)
    for s in shapes[1:]:
        if s.rank != first.rank:
            broken(i, "CONCAT3", f"ranks of {first} and {s} differ")
        if not same_dtype(s.dtype, first.dtype):
            broken(i, "CONCAT4", f"element types of {first} and {s} differ")
        if any(not same_size(a, b) for k, (a, b) in enumerate(zip(s.dims, first.dims, strict=True)) if k != d):
            broken(i, "CONCAT5", f"{first} and {s} differ in more than dimension {d}")
    dims = list(first.dims)
    sizes = [s.dims[d] for s in shapes]
    dims[d] = UNBOUNDED if UNBOUNDED in sizes else sum(sizes)
    dtype = first.dtype
    for s in shapes[1:]:
        dtype = higher(dtype, s.dtype)
    return make(dtype, dims, merged_dynamic(*shapes))


def _starts(i: Instruction, label: str, x: Shape, starts: tuple[Shape, ...]) -> None:
    """Start indices: one integer scalar per dimension, or (older) one vector of them."""
    if len(starts) == 1 and starts[0].rank == 1:
        if not same_size(starts[0].dims[0], x.rank):
            broken(i, label, f"the start indices {starts[0]} must have one element per dimension of {x}")
    elif len(starts) != x.rank:
        broken(i, label, f"{len(starts)} start indices for the {x.rank} dimensions of {x}")
    elif any(s.rank for s in starts):
        broken(i, label, "start indices must be scalars")
    for s in starts:
        if not s.dtype.is_integer:
            broken(i, label, f"start indices must be integers, not {s.dtype.value}")
        if s.dtype is not starts[0].dtype:
            broken(i, label, "start indices must have one type")


def dynamic_slice(i: Instruction) -> Shape:
    """DYNSLICE1: arrays. DYNSLICE2: the start indices. DYNSLICE3: one size per dimension. DYNSLICE4: 0 ≤ size ≤
    bound.
    """
    x, *starts = arrays(i, "DYNSLICE1")
    _starts(i, "DYNSLICE2", x, tuple(starts))
    sizes = i.attributes["dynamic_slice_sizes"]
    if len(sizes) != x.rank:
        broken(i, "DYNSLICE3", f"{len(sizes)} sizes for {x}")
    for d, (size, bound) in enumerate(zip(sizes, x.dims, strict=True)):
        if size < 0 or (size > bound and bound != UNBOUNDED):
            broken(i, "DYNSLICE4", f"size {size} of dimension {d} is outside [0, {bound}]")
    return make(x.dtype, sizes, [is_dynamic(x, d) and sizes[d] == x.dims[d] for d in range(x.rank)])


def dynamic_update_slice(i: Instruction) -> Shape:
    """DUS1: arrays. DUS2: the start indices. DUS3: the update has the operand's rank and type. DUS4: it fits."""
    x, update, *starts = arrays(i, "DUS1")
    _starts(i, "DUS2", x, tuple(starts))
    if update.rank != x.rank or not same_dtype(update.dtype, x.dtype):
        broken(i, "DUS3", f"the update {update} must have the rank and the type of {x}")
    if any(u > b and UNBOUNDED not in (u, b) for u, b in zip(update.dims, x.dims, strict=True)):
        broken(i, "DUS4", f"the update {update} does not fit in {x}")
    return x


def get_dimension_size(i: Instruction) -> Shape:
    """GETDIM1: array. GETDIM2: one dimension in range."""
    (x,) = arrays(i, "GETDIM1")
    one_dimension(i, "GETDIM2", x.rank)
    return make(DType.S32, ())


def set_dimension_size(i: Instruction) -> Shape:
    """SETDIM1: arrays. SETDIM2: one dimension in range. SETDIM3: the size is a scalar s32."""
    x, size = arrays(i, "SETDIM1")
    d = one_dimension(i, "SETDIM2", x.rank)
    if size.rank or size.dtype is not DType.S32:
        broken(i, "SETDIM3", f"the size must be a scalar s32, not {size}")
    dynamic = [is_dynamic(x, k) or k == d for k in range(x.rank)]
    return make(x.dtype, x.dims, dynamic)


def _index_dims(i: Instruction, label: str, indices: Shape) -> list[int]:
    """The sizes of the index array without its vector dimension; a trailing dimension of size 1 may be implied."""
    at = i.attributes["index_vector_dim"]
    if not indices.dtype.is_integer:
        broken(i, label, f"indices must be integers, not {indices.dtype.value}")
    if not 0 <= at <= indices.rank:
        broken(i, label, f"index_vector_dim {at} is outside [0, {indices.rank}]")
    return [s for d, s in enumerate(indices.dims) if d != at]


def gather(i: Instruction) -> Shape:
    """GATHER1: arrays. GATHER2: integer indices, index_vector_dim in range. GATHER3: offset_dims sorted, distinct, in
    range. GATHER4: start_index_map has one distinct entry per index component. GATHER5: collapsed and batching dims
    distinct, in range, sorted. GATHER6: slice sizes, one per dimension, 1 where collapsed or batching, ≤ bound.
    GATHER7: batching dims pair up. GATHER8: offset dims are the slice dims that remain."""
    x, indices = arrays(i, "GATHER1")
    a = i.attributes
    batch = _index_dims(i, "GATHER2", indices)
    offset, collapsed, sizes = a["offset_dims"], a["collapsed_slice_dims"], a["slice_sizes"]
    batching, index_batching = a.get("operand_batching_dims", ()), a.get("start_indices_batching_dims", ())
    rank = len(batch) + len(offset)
    dims_in_range(i, "GATHER3", "offset_dims", offset, rank)
    if list(offset) != sorted(offset):
        broken(i, "GATHER3", f"offset_dims {offset} are not sorted")
    _index_map(i, "GATHER4", "start_index_map", indices, x.rank)
    dims_in_range(i, "GATHER5", "collapsed_slice_dims and operand_batching_dims", (*collapsed, *batching), x.rank)
    if list(collapsed) != sorted(collapsed) or list(batching) != sorted(batching):
        broken(i, "GATHER5", "collapsed_slice_dims and operand_batching_dims must be sorted")
    if len(sizes) != x.rank or not all(isinstance(size, int) for size in sizes):
        broken(i, "GATHER6", f"{len(sizes)} slice sizes for {x}")
    for d, (size, bound) in enumerate(zip(sizes, x.dims, strict=True)):
        gone = d in collapsed or d in batching
        if size < 0 or (size > bound and bound != UNBOUNDED) or (gone and size > 1):
            broken(
                i,
                "GATHER6",
                f"slice size {size} of dimension {d} does not suit its bound {bound}"
                + (" and its being collapsed" if gone else ""),
            )
    _batching_pairs(i, "GATHER7", x, indices, batching, index_batching)
    window = [s for d, s in enumerate(sizes) if d not in collapsed and d not in batching]
    if len(window) != len(offset):
        broken(i, "GATHER8", f"{len(offset)} offset_dims for {len(window)} slice dimensions that remain")
    batch_sizes, window_sizes = iter(batch), iter(window)
    return make(x.dtype, [next(window_sizes) if d in offset else next(batch_sizes) for d in range(rank)])


def _index_map(i: Instruction, label: str, key: str, indices: Shape, rank: int) -> None:
    mapping, at = i.attributes[key], i.attributes["index_vector_dim"]
    components = indices.dims[at] if at < indices.rank else 1
    if not same_size(len(mapping), components):
        broken(i, label, f"{key} has {len(mapping)} entries for {components} index components")
    dims_in_range(i, label, key, mapping, rank)


def _batching_pairs(
    i: Instruction, label: str, x: Shape, indices: Shape, dims: tuple[int, ...], index_dims: tuple[int, ...]
) -> None:
    if len(dims) != len(index_dims):
        broken(i, label, f"{len(dims)} operand and {len(index_dims)} index batching dimensions")
    dims_in_range(i, label, "index batching dimensions", index_dims, indices.rank)
    for d, e in zip(dims, index_dims, strict=True):
        if e == i.attributes["index_vector_dim"] or not same_size(x.dims[d], indices.dims[e]):
            broken(i, label, f"batching dimension {d} of {x} does not match dimension {e} of {indices}")


def scatter(i: Instruction) -> Shape:
    """SCATTER1: arrays, N operands of one shape, indices, N updates. SCATTER2: integer indices, index_vector_dim in
    range. SCATTER3: update_window_dims sorted, distinct, in range. SCATTER4: scatter_dims_to_operand_dims. SCATTER5:
    inserted and batching dims distinct, in range, sorted. SCATTER6: window and inserted dims make up the
    operand. SCATTER7: windows fit. SCATTER8: the other update dims are the index dims. SCATTER9: batching
    pairs. SCATTER10: the update computation.
    """
    shapes = arrays(i, "SCATTER1")
    if len(shapes) % 2 == 0:
        broken(i, "SCATTER1", f"takes operands, indices and as many updates, not {len(shapes)} operands")
    n = len(shapes) // 2
    xs, indices, updates = shapes[:n], shapes[n], shapes[n + 1 :]
    a, x = i.attributes, shapes[0]
    if not all(same_dims(other, x) for other in xs):
        broken(i, "SCATTER1", "the operands must have one shape")
    batch = _index_dims(i, "SCATTER2", indices)
    window, inserted = a["update_window_dims"], a["inserted_window_dims"]
    batching = a.get("input_batching_dims", ())
    _index_map(i, "SCATTER4", "scatter_dims_to_operand_dims", indices, x.rank)
    dims_in_range(i, "SCATTER5", "inserted_window_dims and input_batching_dims", (*inserted, *batching), x.rank)
    if list(inserted) != sorted(inserted) or list(batching) != sorted(batching):
        broken(i, "SCATTER5", "inserted_window_dims and input_batching_dims must be sorted")
    if len(window) + len(inserted) + len(batching) != x.rank:
        broken(
            i,
            "SCATTER6",
            f"{len(window)} window, {len(inserted)} inserted and {len(batching)} batching dimensions do "
            f"not make up {x}",
        )
    _batching_pairs(i, "SCATTER9", x, indices, batching, a.get("scatter_indices_batching_dims", ()))
    for operand, update in zip(xs, updates, strict=True):
        _scatter_update(i, operand, update, batch, window, (*inserted, *batching))
    _scatter_region(i, xs, updates)
    return xs[0] if n == 1 else tuple_shape(*xs)


def _scatter_update(
    i: Instruction, x: Shape, update: Shape, batch: list[int], window: tuple[int, ...], gone: tuple[int, ...]
) -> None:
    dims_in_range(i, "SCATTER3", "update_window_dims", window, update.rank)
    if list(window) != sorted(window):
        broken(i, "SCATTER3", f"update_window_dims {window} are not sorted")
    if not same_dtype(x.dtype, update.dtype):
        broken(i, "SCATTER1", f"the update {update} must have the type of {x}")
    bounds = [s for d, s in enumerate(x.dims) if d not in gone]
    for d, bound in zip(window, bounds, strict=True):
        if update.dims[d] > bound and UNBOUNDED not in (update.dims[d], bound):
            broken(i, "SCATTER7", f"dimension {d} of the update {update} exceeds the operand's {bound}")
    rest = [s for d, s in enumerate(update.dims) if d not in window]
    if len(rest) != len(batch) or not all(map(same_size, rest, batch)):
        broken(i, "SCATTER8", f"the update's other sizes {rest} must be those of the indices, {batch}")


def _scatter_region(i: Instruction, xs: tuple[Shape, ...], updates: tuple[Shape, ...]) -> None:
    region = called(i, "to_apply", "SCATTER10")
    parameters = region.parameters
    want = [s.dtype for s in (*xs, *updates)]
    if len(parameters) != len(want):
        broken(i, "SCATTER10", f"'{region.name}' takes {len(parameters)} parameters, not {len(want)}")
    for p, dtype in zip(parameters, want, strict=True):
        if p.shape.rank or not same_dtype(p.shape.dtype, dtype):
            broken(i, "SCATTER10", f"parameter '{p.name}' of '{region.name}' must be {dtype.value}[], not {p.shape}")
    results = [leaf for _, leaf in region.root.shape.leaves()]
    if len(results) != len(xs) or any(
        r.rank or not same_dtype(r.dtype, x.dtype) for r, x in zip(results, xs, strict=True)
    ):
        broken(i, "SCATTER10", f"'{region.name}' returns {region.root.shape}, not a scalar for each operand")


INFER: dict[Op, Callable[[Instruction], Shape]] = {
    Op.COPY: copy,
    Op.BITCAST: bitcast,
    Op.BROADCAST: broadcast,
    Op.IOTA: iota,
    Op.RESHAPE: reshape,
    Op.DYNAMIC_RESHAPE: dynamic_reshape,
    Op.REVERSE: reverse,
    Op.TRANSPOSE: transpose,
    Op.SLICE: slice_,
    Op.PAD: pad,
    Op.CONCATENATE: concatenate,
    Op.DYNAMIC_SLICE: dynamic_slice,
    Op.DYNAMIC_UPDATE_SLICE: dynamic_update_slice,
    Op.GET_DIMENSION_SIZE: get_dimension_size,
    Op.SET_DIMENSION_SIZE: set_dimension_size,
    Op.GATHER: gather,
    Op.SCATTER: scatter,
}
