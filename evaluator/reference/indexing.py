"""gather and scatter."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...hlo.dtypes import NUMPY
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from .context import Context, Value
from .region import combine_at

Array = np.ndarray


def _index_vectors(indices: Array, vector_dim: int) -> Array:
    """Start indices as int64 with the index vector last. A large u64 is clamped, so that it stays out of range."""
    if vector_dim == indices.ndim:
        indices = indices[..., None]
    if indices.dtype.kind == "u":
        indices = np.minimum(indices, indices.dtype.type(min(np.iinfo(indices.dtype).max, 2**62)))
    return np.moveaxis(indices, vector_dim, -1).astype(np.int64)


def _full_starts(
    vectors: Array,
    rank: int,
    index_map: Sequence[int],
    batching: Sequence[int],
    indices_batching: Sequence[int],
    vector_dim: int,
) -> Array:
    """An array [batch…, rank]: for each batch element, the index in the operand at which its slice starts."""
    starts = np.zeros((*vectors.shape[:-1], rank), np.int64)
    for position, d in enumerate(index_map):
        starts[..., d] = vectors[..., position]
    for d, batch in zip(batching, indices_batching, strict=True):
        axis = batch - (batch > vector_dim)
        spread = [1] * (vectors.ndim - 1)
        spread[axis] = -1
        starts[..., d] = np.arange(vectors.shape[axis]).reshape(spread)
    return starts


def gather(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """Slices of the operand. Start indices are clamped so that each slice lies inside the operand."""
    x, indices = operands
    a = instruction.attributes
    sizes, vector_dim = a.get("slice_sizes", ()), a["index_vector_dim"]
    sizes = [min(s, n) for s, n in zip(sizes, x.shape, strict=True)]  # smaller only if a dimension is dynamic
    dropped = {*a.get("collapsed_slice_dims", ()), *a.get("operand_batching_dims", ())}
    offsets = [d for d in range(x.ndim) if d not in dropped]
    if x.size == 0:  # no element to read
        dims = dict(zip(a.get("offset_dims", ()), (sizes[d] for d in offsets), strict=True))
        batch = iter(n for d, n in enumerate(indices.shape) if d != vector_dim)
        return np.zeros([dims[d] if d in dims else next(batch) for d in range(instruction.shape.rank)], x.dtype)
    starts = _full_starts(
        _index_vectors(indices, vector_dim),
        x.ndim,
        a.get("start_index_map", ()),
        a.get("operand_batching_dims", ()),
        a.get("start_indices_batching_dims", ()),
        vector_dim,
    )
    most = np.array(x.shape, np.int64) - np.maximum(np.array(sizes, np.int64), 1)
    starts = np.clip(starts, 0, most)
    batch = starts.shape[:-1]
    index: list[Array] = []
    for d in range(x.ndim):
        spread = [1] * len(offsets)
        steps = np.zeros(1, np.int64)
        if d in offsets:
            spread[offsets.index(d)] = -1
            steps = np.arange(sizes[d])
        index.append(starts[..., d].reshape((*batch, *[1] * len(offsets))) + steps.reshape(spread))
    picked = x[tuple(index)] if index else np.broadcast_to(x, batch)
    picked = np.broadcast_to(picked, (*batch, *[sizes[d] for d in offsets]))
    offset_dims = tuple(a.get("offset_dims", ()))
    return np.moveaxis(picked, range(len(batch), picked.ndim), offset_dims)


def scatter(instruction: Instruction, operands: Sequence[Array], context: Context) -> Value:
    """Updates apply in order. An update whose window is not completely inside the operand is skipped."""
    a = instruction.attributes
    count = len(operands) // 2
    arrays, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    first, vector_dim = arrays[0], a["index_vector_dim"]
    starts = _full_starts(
        _index_vectors(indices, vector_dim),
        first.ndim,
        a.get("scatter_dims_to_operand_dims", ()),
        a.get("input_batching_dims", ()),
        a.get("scatter_indices_batching_dims", ()),
        vector_dim,
    )
    window_dims = tuple(a.get("update_window_dims", ()))
    inserted = {*a.get("inserted_window_dims", ()), *a.get("input_batching_dims", ())}
    kept = [d for d in range(first.ndim) if d not in inserted]
    # updates as [batch…, window…], flattened to [batch, window]
    moved = [np.moveaxis(u, window_dims, range(u.ndim - len(window_dims), u.ndim)) for u in updates]
    window = moved[0].shape[moved[0].ndim - len(window_dims) :]
    flat_starts = starts.reshape(math.prod(starts.shape[:-1]), first.ndim)
    extent = np.ones(first.ndim, np.int64)
    extent[kept] = window
    inside = ((flat_starts >= 0) & (flat_starts <= np.array(first.shape, np.int64) - extent)).all(axis=1)
    strides = np.array([math.prod(first.shape[d + 1 :]) for d in range(first.ndim)], np.int64)
    within = np.zeros(window, np.int64)
    for position, d in enumerate(kept):
        spread = [1] * len(window)
        spread[position] = -1
        within = within + (np.arange(window[position]) * strides[d]).reshape(spread)
    places = ((flat_starts[inside] * strides).sum(axis=1)[:, None] + within.reshape(1, -1)).reshape(-1)
    width = math.prod(window)
    chosen = [u.reshape(len(flat_starts), width)[inside].reshape(-1) for u in moved]
    targets = [x.reshape(-1).copy() for x in arrays]
    _apply(a["to_apply"], targets, places, chosen, context)
    out = tuple(t.reshape(x.shape) for t, x in zip(targets, arrays, strict=True))
    return out if instruction.shape.is_tuple else out[0]


def _apply(
    region: Computation, targets: Sequence[Array], places: Array, updates: Sequence[Array], context: Context
) -> None:
    root = region.root
    replaces = root.opcode is Op.PARAMETER and root.parameter_number == 1 and len(targets) == 1
    if replaces and targets[0].dtype in NUMPY.values():
        targets[0][places] = updates[0]  # if a place occurs several times, the last update wins
        return
    combine_at(region, targets, places, updates, context)
