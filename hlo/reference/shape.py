"""Data movement: nothing is computed, elements change place. Each rule gets (instruction, operands, context)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..attributes import PadDim
from ..ir import Instruction
from .context import Context, Value

Array = np.ndarray


def broadcast(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """`dimensions[i]` is the result dimension of operand dimension i."""
    (x,), shape, dims = operands, instruction.shape, instruction.dimensions
    if not dims:
        return np.broadcast_to(x, shape.dims)
    order = np.argsort(dims, kind="stable")
    spread = [1] * shape.rank
    result = list(shape.dims)
    for position, d in enumerate(dims):
        spread[d] = x.shape[position]
        if shape.dynamic and shape.dynamic[d]:
            result[d] = x.shape[position]
    return np.broadcast_to(x.transpose(order).reshape(spread), result)


def reshape(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """Same elements in row-major order. One dynamic dimension takes what the others leave."""
    (x,), shape = operands, instruction.shape
    if any(shape.dynamic) and x.size != shape.size:
        return x.reshape(_dynamic_dims(instruction, x))
    return x.reshape(shape.dims)


def _dynamic_dims(instruction: Instruction, x: Array) -> list[int]:
    shape = instruction.shape
    dims = list(shape.dims)
    unknown = [i for i, d in enumerate(shape.dynamic) if d]
    if len(unknown) > 1:  # sizes that came through unchanged keep their place
        before = {
            s: p
            for s, p, d in zip(
                instruction.operands[0].shape.dims,
                x.shape,
                instruction.operands[0].shape.dynamic or (False,) * x.ndim,
                strict=True,
            )
            if d
        }
        for i in list(unknown[:-1]):
            dims[i] = before.get(dims[i], dims[i])
            unknown.remove(i)
    rest = 1
    for i, d in enumerate(dims):
        if i != unknown[0]:
            rest *= d
    dims[unknown[0]] = x.size // max(rest, 1)
    return dims


def dynamic_reshape(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """The sizes come as scalar operands."""
    x, *sizes = operands
    return x.reshape([int(s) for s in sizes])


def transpose(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    return operands[0].transpose(instruction.dimensions)


def reverse(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    return np.flip(operands[0], instruction.dimensions) if instruction.dimensions else operands[0]


def slice_(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    return operands[0][tuple(slice(s.start, s.limit, s.stride) for s in instruction.attributes.get("slice", ()))]


def concatenate(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    return np.concatenate(operands, axis=instruction.dimensions[0])


def pad(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    x, value = operands
    return pad_array(x, value, instruction.attributes.get("padding", ()))


def pad_array(x: Array, value: Array, padding: Sequence[PadDim]) -> Array:
    """Interior padding first, then edges; a negative edge cuts."""
    if not padding:
        return x
    dims = [max(0, n + max(n - 1, 0) * p.interior + p.low + p.high) for n, p in zip(x.shape, padding, strict=True)]
    out = np.full(dims, value, x.dtype)
    into, source = [], []
    for size, n, p in zip(dims, x.shape, padding, strict=True):
        step = p.interior + 1
        first = max(0, -(p.low // step)) if p.low < 0 else 0
        last = min(n, (size - 1 - p.low) // step + 1) if size else 0
        last = max(last, first)
        start = p.low + first * step
        source.append(slice(first, last))
        into.append(slice(start, start + (last - first - 1) * step + 1, step) if last > first else slice(0, 0))
    out[tuple(into)] = x[tuple(source)]
    return out


def iota(instruction: Instruction, _operands: Sequence[Array], _context: Context) -> Array:
    shape, dim = instruction.shape, instruction.attributes.get("iota_dimension", 0)
    if shape.rank == 0:
        return np.zeros((), shape.dtype.numpy)
    count = np.arange(shape.dims[dim])
    line = (count.astype(np.float32) if shape.dtype.is_float else count).astype(shape.dtype.numpy)
    spread = [1] * shape.rank
    spread[dim] = shape.dims[dim]
    return np.broadcast_to(line.reshape(spread), shape.dims)


def copy(_instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    """Values are immutable here, so a copy is the value itself."""
    return operands[0]


def _starts(x: Array, sizes: Sequence[int], indices: Sequence[Array]) -> list[int]:
    if len(indices) == 1 and indices[0].ndim == 1:  # the old form: one vector of indices
        indices = list(indices[0])
    return [max(0, min(int(i), n - s)) for i, n, s in zip(indices, x.shape, sizes, strict=True)]


def dynamic_slice(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """Start indices are clamped so that the slice lies inside."""
    x, *indices = operands
    sizes = instruction.attributes.get("dynamic_slice_sizes", ())
    return x[tuple(slice(s, s + n) for s, n in zip(_starts(x, sizes, indices), sizes, strict=True))]


def dynamic_update_slice(_instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    x, update, *indices = operands
    out = x.copy()
    starts = _starts(x, update.shape, indices)
    out[tuple(slice(s, s + n) for s, n in zip(starts, update.shape, strict=True))] = update
    return out


def get_dimension_size(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    return np.array(operands[0].shape[instruction.dimensions[0]], np.int32)


def set_dimension_size(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """Cuts to the given size, or grows (with zeros, where XLA promises nothing) up to the bound."""
    x, size = operands
    (dim,) = instruction.dimensions
    if not any(instruction.shape.dynamic):  # the result's type says that the size is fixed
        return x
    present = min(int(size), instruction.shape.dims[dim])
    if present <= x.shape[dim]:
        return x[tuple(slice(0, present) if d == dim else slice(None) for d in range(x.ndim))]
    padding = [PadDim(0, present - n if d == dim else 0) for d, n in enumerate(x.shape)]
    return pad_array(x, np.zeros((), x.dtype), padding)
