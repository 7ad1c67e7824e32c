"""Data movement: elements change place, and nothing is computed. Each rule takes (instruction, operands, context)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...hlo.attributes import PadDim
from ...hlo.errors import InputError, UnsupportedError
from ...hlo.ir import Instruction
from .context import Context, Value

Array = np.ndarray


def crop(arrays: Sequence[Array]) -> tuple[Array, ...]:
    """Arrays cut to the smallest size in each dimension. Scalars, and arrays of different ranks, are unchanged."""
    shapes = {x.shape for x in arrays if x.ndim}
    if len(shapes) < 2 or len({len(s) for s in shapes}) > 1:
        return tuple(arrays)
    window = tuple(slice(0, min(sizes)) for sizes in zip(*shapes, strict=True))
    return tuple(x[window] if x.ndim else x for x in arrays)


def broadcast(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """`dimensions[i]` is the result dimension of operand dimension i."""
    (x,), shape, dims = operands, instruction.shape, instruction.dimensions
    if not dims:
        return np.broadcast_to(x, shape.dims)
    order = np.argsort(dims, kind="stable")
    spread = [1] * shape.rank
    result = list(shape.dims)
    for position, d in enumerate(dims):
        spread[d] = result[d] = x.shape[position]
    return np.broadcast_to(x.transpose(order).reshape(spread), result)


def reshape(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """The same elements in row-major order.

    If an operand dimension is smaller than its bound, one dimension of the result gets its present size from the
    number of elements. Raises InputError if the elements do not fill the result.
    """
    (x,), shape, source = operands, instruction.shape, instruction.operands[0].shape
    if x.shape == source.dims:
        return x.reshape(shape.dims)
    dims = list(shape.dims)
    for from_, to, unknown in reshape_groups(instruction, [n != m for n, m in zip(x.shape, source.dims, strict=True)]):
        if unknown is not None:
            rest = math.prod(shape.dims[d] for d in to if d != unknown)
            dims[unknown] = math.prod(x.shape[d] for d in from_) // rest if rest else shape.dims[unknown]
    if math.prod(dims) != x.size:
        got = ",".join(map(str, x.shape))
        raise InputError(f"[{got}] does not fill a reshape from {source} to {shape}", location=instruction.location)
    return x.reshape(dims)


Group = tuple[tuple[int, ...], tuple[int, ...], int | None]


def reshape_groups(instruction: Instruction, sized: Sequence[bool]) -> list[Group]:
    """(dimensions of the operand, dimensions of the result, the result dimension that is dynamic or None), in order.

    Each group is the shortest with equally many elements on both sides. sized: whether each operand dimension is
    dynamic. If several result dimensions of a group could be dynamic, the result's shape or `inferred_dimension`
    decides, as in XLA. Raises UnsupportedError if they do not decide.
    """
    source, target = instruction.operands[0].shape.dims, instruction.shape.dims
    dynamic = instruction.shape.dynamic or (False,) * len(target)
    inferred = instruction.attributes.get("inferred_dimension", -1)
    groups: list[Group] = []
    for from_, to in _factors(source, target):
        found: list[int] = []
        if any(sized[d] for d in from_):
            choices = (
                [d for d in to if dynamic[d]],
                [d for d in to if d == inferred],
                [d for d in to if target[d] != 1],
            )
            found = next((c for c in choices if c), list(to[:1]))
        if len(found) > 1:
            what = f"dynamic dimensions (reshape): {instruction.shape} has several of {instruction.operands[0].shape}"
            remedy = "make one dimension of the result dynamic, or write a dynamic-reshape"
            raise UnsupportedError("evaluator", what, location=instruction.location, remedy=remedy)
        groups.append((from_, to, found[0] if found else None))
    return groups


def _factors(source: Sequence[int], target: Sequence[int]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The shortest runs of dimensions, from left to right, that have equally many elements on both sides."""
    if tuple(source) == tuple(target):
        return [((d,), (d,)) for d in range(len(source))]
    if 0 in (*source, *target):
        return [(tuple(range(len(source))), tuple(range(len(target))))]
    runs, s, t = [], 0, 0
    while s < len(source) and t < len(target):
        ends, left, right = [s + 1, t + 1], source[s], target[t]
        while left != right:
            if left < right:
                left, ends[0] = left * source[ends[0]], ends[0] + 1
            else:
                right, ends[1] = right * target[ends[1]], ends[1] + 1
        runs.append((range(s, ends[0]), range(t, ends[1])))
        s, t = ends
    last = runs.pop() if runs else (range(0), range(0))  # the last run takes the remaining dimensions, of size 1
    runs.append((range(last[0].start, len(source)), range(last[1].start, len(target))))
    return [(tuple(a), tuple(b)) for a, b in runs]


def dynamic_reshape(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """A reshape whose sizes are scalar operands."""
    x, *sizes = operands
    return x.reshape([int(s) for s in sizes])


def transpose(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    return operands[0].transpose(instruction.dimensions)


def reverse(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    return np.flip(operands[0], instruction.dimensions) if instruction.dimensions else operands[0]


def slice_(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    return operands[0][tuple(slice(s.start, s.limit, s.stride) for s in instruction.attributes.get("slice", ()))]


def concatenate(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    (d,) = instruction.dimensions
    if (
        len({(x.shape[:d], x.shape[d + 1 :]) for x in operands}) > 1
    ):  # dynamic sizes: elements beyond the smallest are padding
        least = np.min([x.shape for x in operands], axis=0)
        cut = [slice(None) if k == d else slice(0, n) for k, n in enumerate(least)]
        operands = [x[tuple(cut)] for x in operands]
    return np.concatenate(operands, axis=d)


def pad(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    x, value = operands
    return pad_array(x, value, instruction.attributes.get("padding", ()))


def pad_array(x: Array, value: Array, padding: Sequence[PadDim]) -> Array:
    """Pads with interior padding first, then at the edges; negative padding at an edge removes elements."""
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
    """0, 1, 2, … along one dimension. Floats are converted from f32."""
    shape, dim = instruction.shape, instruction.attributes.get("iota_dimension", 0)
    if shape.rank == 0:
        return np.zeros((), shape.dtype.numpy)
    count = np.arange(shape.dims[dim])
    line = (count.astype(np.float32) if shape.dtype.is_float else count).astype(shape.dtype.numpy)
    spread = [1] * shape.rank
    spread[dim] = shape.dims[dim]
    return np.broadcast_to(line.reshape(spread), shape.dims)


def copy(_instruction: Instruction, operands: Sequence[Value], _context: Context) -> Value:
    """The operand itself, because values are never modified."""
    return operands[0]


def _starts(x: Array, sizes: Sequence[int], indices: Sequence[Array]) -> list[int]:
    if len(indices) == 1 and indices[0].ndim == 1:  # in older text: one vector of indices
        indices = list(indices[0])
    return [max(0, min(int(i), n - s)) for i, n, s in zip(indices, x.shape, sizes, strict=True)]


def dynamic_slice(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """A slice. Start indices are clamped so that it lies inside the operand."""
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
    """Cuts a dimension to the given size, or pads it up to its bound with zeros; XLA leaves the padding undefined."""
    x, size = operands
    (dim,) = instruction.dimensions
    if not any(instruction.shape.dynamic):  # the result's shape is static
        return x
    present = max(0, min(int(size), instruction.shape.dims[dim]))
    if present <= x.shape[dim]:
        return x[tuple(slice(0, present) if d == dim else slice(None) for d in range(x.ndim))]
    padding = [PadDim(0, present - n if d == dim else 0) for d, n in enumerate(x.shape)]
    return pad_array(x, np.zeros((), x.dtype), padding)
