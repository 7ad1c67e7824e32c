"""Opcodes that apply a computation of scalars to arrays: map, reduce, reduce-window, select-and-scatter, scan.

`Context.vectorise` runs such a computation on whole arrays, so loops here are only over positions in a window or over
reduced elements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from ...hlo.attributes import PadDim, Window, WindowDim
from ...hlo.ir import Computation, Instruction
from ...hlo.opcodes import Op
from . import elementwise as ew
from .context import Context, Value
from .shape import crop, pad_array

Array = np.ndarray

SEQUENTIAL_LIMIT = 1024
"""A float reduction of at most this many elements is folded in order in its own type, a longer one in f64 or pairwise.
"""
NARROW_LIMIT = 32
"""The same limit for f16, bf16 and narrower types, in which errors accumulate sooner, and small terms are lost: 54 ones
in f8e5m2 make 8."""

UFUNCS = {
    Op.ADD: np.add,
    Op.MULTIPLY: np.multiply,
    Op.MAXIMUM: np.maximum,
    Op.MINIMUM: np.minimum,
    Op.AND: np.bitwise_and,
    Op.OR: np.bitwise_or,
    Op.XOR: np.bitwise_xor,
}


def single_ufunc(computation: Computation, context: Context) -> np.ufunc | None:
    """The ufunc of a region that is one operation on its two parameters, of one of NumPy's own types; or None."""
    shape = computation.root.shape
    return narrow_ufunc(computation, context) if shape.is_array and shape.dtype.numpy.isbuiltin == 1 else None


def narrow_ufunc(computation: Computation, context: Context) -> np.ufunc | None:
    """The ufunc of a region that is one operation on its two parameters of one type, whichever type it is; or None."""
    root = computation.root
    if not context.has_ufuncs or len(computation.instructions) != 3 or len(root.operands) != 2:
        return None
    numbers = {o.parameter_number for o in root.operands if o.opcode is Op.PARAMETER}
    if numbers != {0, 1} or any(o.shape.dtype is not root.shape.dtype for o in root.operands):
        return None
    if root.shape.dtype.is_complex and root.opcode in (Op.MAXIMUM, Op.MINIMUM):
        return None  # np.maximum treats NaN otherwise
    return UFUNCS.get(root.opcode)


def values_of(result: Value, count: int) -> list[Array]:
    """The `count` arrays of a region's result."""
    return [result] if count == 1 and not isinstance(result, tuple) else list(result)


def map_(instruction: Instruction, operands: Sequence[Array], context: Context) -> Array:
    operands = crop(operands)
    out = context.vectorise(instruction.attributes["to_apply"], operands)
    return np.broadcast_to(out, operands[0].shape)


# --- reduce ----------------------------------------------------------------------------------------------------------


def reduce(instruction: Instruction, operands: Sequence[Array], context: Context) -> Value:
    """N arrays and N init values, reduced over `dimensions`; the limits above determine order and precision."""
    count = len(operands) // 2
    arrays, inits = crop(operands[:count]), operands[count:]
    region, dims = instruction.attributes["to_apply"], instruction.dimensions
    ufunc = single_ufunc(region, context) if count == 1 else None
    if ufunc is not None:
        return _reduce_ufunc(ufunc, arrays[0], inits[0], tuple(dims))
    length = math.prod(arrays[0].shape[d] for d in dims)
    ufunc = narrow_ufunc(region, context) if count == 1 and length > NARROW_LIMIT else None
    if ufunc is not None and region.root.shape.dtype.is_float:  # compute in f64 and round once
        once, times = _once(arrays[0], tuple(dims))
        x, init = once.astype(np.float64), inits[0].astype(np.float64)
        result = ufunc(init, _repeated(ufunc, ufunc.reduce(x, axis=tuple(dims)), times))
        return _signed_zeros(ufunc, result, init, x, tuple(dims)).astype(arrays[0].dtype)
    kept = [d for d in range(arrays[0].ndim) if d not in dims]
    rest = tuple(arrays[0].shape[d] for d in kept)
    stacked = [x.transpose(*dims, *kept).reshape(length, *rest) for x in arrays]
    results = fold(region, stacked, inits, context)
    leaves = tuple(np.broadcast_to(r, rest) for r in results)
    return leaves if instruction.shape.is_tuple else leaves[0]


def _reduce_ufunc(ufunc: np.ufunc, x: Array, init: Array, dims: tuple[int, ...]) -> Array:
    if not dims:
        return _combined(ufunc, init, x)
    if x.dtype.kind in "fc" and ufunc in (np.add, np.multiply):
        return _reduce_float(ufunc, x, init, dims)
    if x.size == 0:
        return _empty(x, init, dims)
    if ufunc in (np.maximum, np.minimum):
        x, _ = _once(x, dims)
    return _signed_zeros(ufunc, ufunc(init, ufunc.reduce(x, axis=dims, dtype=x.dtype)), init, x, dims)


def _signed_zeros(ufunc: np.ufunc, result: Array, init: Array, x: Array, dims: tuple[int, ...]) -> Array:
    """`result` with the right signs of zeros: a maximum is +0 if any zero is +0, a minimum is -0 if any zero is -0.

    NumPy may return either.
    """
    if ufunc not in (np.maximum, np.minimum) or x.dtype.kind != "f" or not (result == 0).any():
        return result
    wanted = ufunc is np.minimum
    found = ((x == 0) & (np.signbit(x) == wanted)).any(axis=dims) | (init == 0) & (np.signbit(init) == wanted)
    zero = np.where(found == wanted, x.dtype.type(-0.0), x.dtype.type(0))
    return np.where(result == 0, zero, result)


def _empty(x: Array, init: Array, dims: tuple[int, ...]) -> Array:
    return np.full([n for d, n in enumerate(x.shape) if d not in dims], init, x.dtype)


def _reduce_float(ufunc: np.ufunc, x: Array, init: Array, dims: tuple[int, ...]) -> Array:
    if x.size == 0:
        return _empty(x, init, dims)
    length = math.prod(x.shape[d] for d in dims)
    kept = [d for d in range(x.ndim) if d not in dims]
    if length <= (NARROW_LIMIT if x.dtype == np.float16 else SEQUENTIAL_LIMIT):
        stacked = x.transpose(*dims, *kept).reshape(length, *[x.shape[d] for d in kept])
        # accumulate adds the elements in order; reduce does not
        return ufunc.accumulate(np.concatenate([np.broadcast_to(init, (1, *stacked.shape[1:])), stacked]), axis=0)[-1]
    wide = {"f": np.float64, "c": np.complex128}[x.dtype.kind]
    once, times = _once(x, dims)
    # Along contiguous memory NumPy adds pairs of sums, along any other axis one term after the other.
    terms = np.ascontiguousarray(once.transpose(*kept, *dims).reshape(*[x.shape[d] for d in kept], -1), wide)
    return ufunc(init.astype(wide), _repeated(ufunc, ufunc.reduce(terms, axis=-1), times)).astype(x.dtype)


def _once(x: Array, dims: tuple[int, ...]) -> tuple[Array, int]:
    """(x without what repeats along `dims`, how often it repeats): a broadcast may have more elements than memory."""
    repeats = [d in dims and stride == 0 for d, stride in enumerate(x.strides)]
    times = math.prod(n for n, again in zip(x.shape, repeats, strict=True) if again)
    return x[tuple(slice(0, 1) if again else slice(None) for again in repeats)], times


def _repeated(ufunc: np.ufunc, result: Array, times: int) -> Array:
    """What a fold of some terms becomes if each is there `times` times."""
    if times == 1 or ufunc not in (np.add, np.multiply):
        return result
    return result * times if ufunc is np.add else result**times


def fold(region: Computation, stacked: Sequence[Array], inits: Sequence[Array], context: Context) -> list[Array]:
    """Fold axis 0 of all arrays together: in order up to SEQUENTIAL_LIMIT elements, else neighbouring pairs first."""
    length, count = stacked[0].shape[0], len(stacked)
    stacked = list(stacked)
    while length > SEQUENTIAL_LIMIT:
        even = length // 2 * 2
        paired = values_of(
            context.vectorise(region, [x[0:even:2] for x in stacked] + [x[1:even:2] for x in stacked]), count
        )
        stacked = [np.concatenate([p, x[even:]]) for p, x in zip(paired, stacked, strict=True)]
        length = stacked[0].shape[0]
    accumulated = list(inits)
    for i in range(length):
        accumulated = values_of(context.vectorise(region, accumulated + [x[i] for x in stacked]), count)
    return accumulated


# --- windows ---------------------------------------------------------------------------------------------------------


def dilated_padding(window: Window) -> list[PadDim]:
    return [PadDim(w.pad_low, w.pad_high, w.lhs_dilate - 1) for w in window.dims]


def window_counts(window: Window, dims: Sequence[int]) -> list[int]:
    """The number of window positions along each dimension."""
    counts = []
    for w, n in zip(window.dims, dims, strict=True):
        padded = (max(n - 1, 0) * w.lhs_dilate + (1 if n else 0)) + w.pad_low + w.pad_high
        reach = (w.size - 1) * w.rhs_dilate + 1 if w.size else 0
        counts.append(max(0, (padded - reach) // w.stride + 1) if padded >= reach else 0)
    return counts


def _combined(ufunc: np.ufunc, x: Array, y: Array) -> Array:
    return ew.maximum(x, y) if ufunc is np.maximum else ew.minimum(x, y) if ufunc is np.minimum else ufunc(x, y)


def taps(window: Window, counts: Sequence[int]) -> Iterator[tuple[tuple[int, ...], tuple[slice, ...]]]:
    """(position in the window, slices of the padded array that are at that position), for each position, row-major."""
    for position in product(*[range(w.size) for w in window.dims]):
        yield position, tuple(_tap(w, p, n) for w, p, n in zip(window.dims, position, counts, strict=True))


def _tap(w: WindowDim, position: int, count: int) -> slice:
    at = (w.size - 1 - position if w.reverse else position) * w.rhs_dilate
    return slice(at, at + (count - 1) * w.stride + 1, w.stride) if count else slice(0, 0)


def reduce_window(instruction: Instruction, operands: Sequence[Array], context: Context) -> Value:
    """N arrays and N init values, reduced over each window position; elements of a window are combined row-major, long
    sums and products in a wider type.
    """
    count = len(operands) // 2
    arrays, inits = crop(operands[:count]), operands[count:]
    region, window = instruction.attributes["to_apply"], instruction.attributes.get("window", Window(()))
    dtype, length = arrays[0].dtype, math.prod(w.size for w in window.dims)
    wide = _wide_type(region, length, context) if count == 1 else None
    if wide is not None:
        arrays, inits = (arrays[0].astype(wide),), (inits[0].astype(wide),)
    padding = dilated_padding(window)
    padded = [pad_array(x, init, padding) for x, init in zip(arrays, inits, strict=True)]
    holes = any(p.low or p.high or p.interior for p in padding)
    real = pad_array(np.ones(arrays[0].shape, bool), np.array(False), padding) if holes else None
    counts = window_counts(window, arrays[0].shape)
    ufunc_of = single_ufunc if wide is None else narrow_ufunc
    ufunc = None if count > 1 else ufunc_of(region, context)
    results: list[Array] = [np.broadcast_to(init, counts) for init in inits]
    for _, where in taps(window, counts):
        met = [x[where] for x in padded]
        combined = (
            [_combined(ufunc, results[0], met[0])]
            if ufunc is not None
            else values_of(context.vectorise(region, [*results, *met]), count)
        )
        # XLA:CPU skips padding, so an init value that is no identity is counted once only
        results = (
            combined if real is None else [np.where(real[where], c, r) for c, r in zip(combined, results, strict=True)]
        )
    leaves = tuple(np.broadcast_to(r if wide is None else r.astype(dtype), counts) for r in results)
    return leaves if instruction.shape.is_tuple else leaves[0]


def _wide_type(region: Computation, length: int, context: Context) -> type[np.number] | None:
    """The type in which a fold of this many elements is computed, and rounded once, if it is a long sum or product; the
    limits are those of `reduce`.
    """
    if narrow_ufunc(region, context) not in (np.add, np.multiply):
        return None
    dtype = region.root.shape.dtype
    if length <= (NARROW_LIMIT if dtype.is_float and dtype.bits <= 16 else SEQUENTIAL_LIMIT):
        return None
    return np.complex128 if dtype.is_complex else np.float64 if dtype.is_float else None


def select_and_scatter(instruction: Instruction, operands: Sequence[Array], context: Context) -> Array:
    """Each window selects one element of the operand; the source element of the window is combined at its place."""
    x, source, init = operands
    select, scatter = instruction.attributes["select"], instruction.attributes["scatter"]
    window = instruction.attributes.get("window", Window(()))
    padding = dilated_padding(window)
    counts = window_counts(window, x.shape)
    places = pad_array(np.arange(x.size).reshape(x.shape), np.array(-1), padding)
    values = pad_array(x, np.zeros((), x.dtype), padding)
    best = np.zeros(counts, x.dtype)
    chosen = np.full(counts, -1)
    for _, where in taps(window, counts):
        candidate, place = values[where], places[where]
        keep = np.broadcast_to(context.vectorise(select, [best, candidate]), counts)
        take = (place >= 0) & ((chosen < 0) | ~keep)
        best, chosen = np.where(take, candidate, best), np.where(take, place, chosen)
    chosen, flat_source = chosen.reshape(-1), source.reshape(-1)
    valid = chosen >= 0
    out = np.full(x.size, init, x.dtype)
    combine_at(scatter, [out], chosen[valid], [flat_source[valid]], context)
    return out.reshape(x.shape)


def _combine_in_any_order(ufunc: np.ufunc, target: Array, places: Array, updates: Array) -> None:
    """Combine updates with the elements of `target` in place; zeros get the signs that `_signed_zeros` describes."""
    if ufunc not in (np.maximum, np.minimum) or target.dtype.kind != "f":
        ufunc.at(target, places, updates)
        return
    wanted = ufunc is np.minimum
    found = (target == 0) & (np.signbit(target) == wanted)
    np.logical_or.at(found, places, (updates == 0) & (np.signbit(updates) == wanted))
    ufunc.at(target, places, updates)
    zeros = target == 0
    target[zeros] = np.where(found[zeros] == wanted, target.dtype.type(-0.0), target.dtype.type(0))


def combine_at(
    region: Computation, targets: Sequence[Array], places: Array, updates: Sequence[Array], context: Context
) -> None:
    """For i in order: targets[…][places[i]] = region(targets[…][places[i]], updates[…][i]), in place on flat arrays."""
    ufunc = single_ufunc(region, context) if len(targets) == 1 else None
    if ufunc is not None:
        _combine_in_any_order(ufunc, targets[0], places, updates[0])
        return
    for turn in turns(places):
        at = places[turn]
        results = context.vectorise(region, [t[at] for t in targets] + [u[turn] for u in updates])
        for target, result in zip(targets, values_of(result=results, count=len(targets)), strict=True):
            target[at] = result


def turns(places: Array) -> Iterator[Array]:
    """Indices into `places`, in groups in which no place repeats: group k holds the k-th occurrence of each place."""
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else np.zeros(0, int)
    lengths = np.diff(np.r_[starts, len(ordered)])
    rank = np.arange(len(ordered)) - np.repeat(starts, lengths)
    by_rank = np.argsort(rank, kind="stable")
    bounds = np.cumsum(np.bincount(rank)) if len(rank) else []
    begin = 0
    for end in bounds:
        yield order[by_rank[begin:end]]
        begin = end


# --- scan ------------------------------------------------------------------------------------------------------------


def scan(instruction: Instruction, operands: Sequence[Array], context: Context) -> Value:
    """Applies to_apply(slices…, carries…) -> (outputs…, carries…) along one dimension and stacks the outputs."""
    carries_count = instruction.attributes.get("num_carries", len(operands) // 2)
    inputs, carries = list(operands[:-carries_count]), list(operands[-carries_count:])
    (dim,) = instruction.dimensions
    region = instruction.attributes["to_apply"]
    length = inputs[0].shape[dim]
    order = range(length - 1, -1, -1) if instruction.attributes.get("is_reverse") else range(length)
    outputs: list[list[Array]] = []
    for i in order:
        slices = [x.take(i, axis=dim) for x in inputs]
        result = context.call(region, [*slices, *carries])
        result = list(result) if isinstance(result, tuple) else [result]
        outputs.append(result[:-carries_count])
        carries = result[-carries_count:]
    if order.step < 0:
        outputs.reverse()
    stacked = _stack_outputs(instruction, outputs, dim, carries_count)
    return (*stacked, *carries) if instruction.shape.is_tuple else (*stacked, *carries)[0]


def _stack_outputs(instruction: Instruction, outputs: list[list[Array]], dim: int, carries: int) -> list[Array]:
    leaves = instruction.shape.elements[:-carries]
    if not outputs:
        return [np.zeros([0 if d == dim else n for d, n in enumerate(s.dims)], s.dtype.numpy) for s in leaves]
    return [np.stack([step[k] for step in outputs], axis=dim) for k in range(len(leaves))]
