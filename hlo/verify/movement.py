"""Shape inference for opcodes that move data: broadcast, reshape, slice, pad, concatenate, dynamic-slice, …"""

from __future__ import annotations

import math
from collections.abc import Callable

from ..attributes import PadDim
from ..dtypes import DType
from ..ir import Instruction
from ..opcodes import Op
from ..records import replace
from ..shapes import UNBOUNDED, Shape
from .rules import (
    arrays,
    broken,
    dims_in_range,
    higher,
    is_dynamic,
    make,
    merged_dynamic,
    one_dimension,
    same_dtype,
    same_size,
)


def copy(i: Instruction) -> Shape:
    return i.operands[0].shape


def bitcast(i: Instruction) -> Shape:
    """BITCAST1: operand and result are arrays with the same number of bits, unless a layout is tiled (padding)."""
    x = i.operands[0].shape
    if x.is_array != i.shape.is_array:
        broken(i, "BITCAST1", f"cannot bitcast {x} to {i.shape}")
    tiled = any(s.layout is not None and s.layout.tiles for s in (x, i.shape))
    known = x.is_array and UNBOUNDED not in x.dims + i.shape.dims and not x.is_dynamic and not i.shape.is_dynamic
    bits = x.size * x.dtype.bits == i.shape.size * i.shape.dtype.bits
    if known and not tiled and not bits and x.bytes != i.shape.bytes:
        broken(i, "BITCAST1", f"{x} and {i.shape} differ in size")
    return i.shape


def broadcast(i: Instruction) -> Shape:
    """BROADCAST1: operand and result are arrays. BROADCAST2: `dimensions` has one entry per operand dimension.
    BROADCAST3: its entries are distinct and in range. BROADCAST4: each operand dimension has the size of the result
    dimension that it maps to.
    """
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
    """A broadcast whose text states no shape: an older form of XLA, where `dimensions` are the sizes put in front."""
    x = i.operands[0].shape
    return make(x.dtype, (*i.dimensions, *x.dims))


def inferred_transpose(i: Instruction) -> Shape:
    """A transpose whose text states no shape: XLA transposes the layout too, so that no element moves in memory."""
    shape = transpose(i)
    place = {d: k for k, d in enumerate(i.dimensions)}
    return shape.with_layout(tuple(place[d] for d in i.operands[0].shape.minor_to_major))


def iota(i: Instruction) -> Shape:
    """IOTA1: the result is an array of numbers. IOTA2: iota_dimension is one of its dimensions."""
    if not i.shape.is_array or i.shape.dtype is DType.PRED:
        broken(i, "IOTA1", f"the result must be an array of numbers, not {i.shape}")
    if not 0 <= i.attributes["iota_dimension"] < i.shape.rank:
        broken(i, "IOTA2", f"iota_dimension {i.attributes['iota_dimension']} is no dimension of {i.shape}")
    return i.shape


def reshape(i: Instruction) -> Shape:
    """RESHAPE1: operand and result are arrays. RESHAPE2: they have the same number of elements."""
    (x,) = arrays(i, "RESHAPE1")
    if not i.shape.is_array:
        broken(i, "RESHAPE1", f"cannot reshape to {i.shape}")
    if UNBOUNDED not in x.dims + i.shape.dims and x.size != i.shape.size:
        broken(i, "RESHAPE2", f"{x} has {x.size} elements and {i.shape} has {i.shape.size}")
    return replace(i.shape, dtype=x.dtype)


def dynamic_reshape(i: Instruction) -> Shape:
    """DYNRESHAPE1: operand and result are arrays with the same number of elements. DYNRESHAPE2: there is one scalar s32
    size per result dimension.
    """
    x, *sizes = arrays(i, "DYNRESHAPE1")
    if math.prod(x.dims) != math.prod(i.shape.dims):
        broken(i, "DYNRESHAPE1", f"{x} has {x.size} elements and {i.shape} has {i.shape.size}")
    if len(sizes) != i.shape.rank or any(s.rank or s.dtype is not DType.S32 for s in sizes):
        broken(i, "DYNRESHAPE2", f"needs one scalar s32 size for each of the {i.shape.rank} dimensions")
    return replace(i.shape, dtype=x.dtype)


def reverse(i: Instruction) -> Shape:
    """REVERSE1: the operand is an array. REVERSE2: `dimensions` are distinct and in range."""
    (x,) = arrays(i, "REVERSE1")
    dims_in_range(i, "REVERSE2", "dimensions", i.dimensions, x.rank)
    return x


def transpose(i: Instruction) -> Shape:
    """TRANSPOSE1: the operand is an array. TRANSPOSE2: `dimensions` is a permutation."""
    (x,) = arrays(i, "TRANSPOSE1")
    if sorted(i.dimensions) != list(range(x.rank)):
        broken(i, "TRANSPOSE2", f"dimensions={i.dimensions} is no permutation of the {x.rank} dimensions of {x}")
    return make(x.dtype, [x.dims[d] for d in i.dimensions], [x.dynamic[d] for d in i.dimensions] if x.dynamic else ())


def slice_(i: Instruction) -> Shape:
    """SLICE1: the operand is an array. SLICE2: there is one range per dimension. SLICE3: 0 ≤ start ≤ limit ≤ size.
    SLICE4: stride ≥ 1.
    """
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
    """PAD1: the operands are arrays. PAD2: the padding value is a scalar. PAD3: it has the operand's type. PAD4: there
    is one row of padding per dimension. PAD5: interior padding is not negative. PAD6: no size becomes negative.
    """
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
    """CONCAT1: there is at least one operand; all are arrays. CONCAT2: `dimensions` names one dimension. CONCAT3: all
    have one rank. CONCAT4: all have one element type. CONCAT5: sizes are equal in all other dimensions.
    """
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
    """Checks start indices: one integer scalar per dimension, or in older text one vector of them."""
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
    """DYNSLICE1: the operands are arrays. DYNSLICE2: the start indices are valid (_starts). DYNSLICE3: there is one
    size per dimension. DYNSLICE4: 0 ≤ size ≤ bound.
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
    """DUS1: the operands are arrays. DUS2: the start indices are valid (_starts). DUS3: the update has the operand's
    rank and type. DUS4: no dimension of the update is larger than the operand's.
    """
    x, update, *starts = arrays(i, "DUS1")
    _starts(i, "DUS2", x, tuple(starts))
    if update.rank != x.rank or not same_dtype(update.dtype, x.dtype):
        broken(i, "DUS3", f"the update {update} must have the rank and the type of {x}")
    if any(u > b and UNBOUNDED not in (u, b) for u, b in zip(update.dims, x.dims, strict=True)):
        broken(i, "DUS4", f"the update {update} does not fit in {x}")
    return x


def get_dimension_size(i: Instruction) -> Shape:
    """GETDIM1: the operand is an array. GETDIM2: `dimensions` names one dimension."""
    (x,) = arrays(i, "GETDIM1")
    one_dimension(i, "GETDIM2", x.rank)
    return make(DType.S32, ())


def set_dimension_size(i: Instruction) -> Shape:
    """SETDIM1: operands are arrays. SETDIM2: `dimensions` names one dimension. SETDIM3: the size is an s32 scalar."""
    x, size = arrays(i, "SETDIM1")
    d = one_dimension(i, "SETDIM2", x.rank)
    if size.rank or size.dtype is not DType.S32:
        broken(i, "SETDIM3", f"the size must be a scalar s32, not {size}")
    dynamic = [is_dynamic(x, k) or k == d for k in range(x.rank)]
    return make(x.dtype, x.dims, dynamic)


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
}
