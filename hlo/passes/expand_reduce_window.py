"""Reduce-window → slices and elementwise ops, one dimension after the other; wide windows by doubling.

A window of n along one dimension takes about log2(n) steps: sums of 1, 2, 4, … neighbours, put together by n's bits.
Regions that are no single associative op are unrolled tap by tap, or looped where there are many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from ..attributes import PadDim, SliceDim, Window, WindowDim
from ..dtypes import DType
from ..ir import Instruction, Module
from ..opcodes import Op
from .building import COMMUTATIVE, Builder, apply_pointwise, identity_of, is_pointwise, sole_binary
from .expansion import expand_ops

DIRECT = 4
"""Elements of a window along one dimension up to which each is a slice of its own."""

UNROLLED = 32
"""Taps of a window up to which a general region is unrolled."""


def expand_reduce_window(module: Module) -> Module:
    """Replace every reduce-window outside kernels whose region is pointwise."""
    return expand_ops(module, {Op.REDUCE_WINDOW: reduce_window_slices})


def reduce_window_slices(i: Instruction, b: Builder) -> Instruction | None:
    region = i.attributes["to_apply"]
    window = i.attributes.get("window", Window(()))
    many = len(i.operands) // 2
    arrays, inits = i.operands[:many], i.operands[many:]
    dims = i.shape.elements[0].dims if i.shape.is_tuple else i.shape.dims
    if not is_pointwise(region):
        return None
    if 0 in dims or not arrays[0].shape.size or any(w.size == 0 for w in window.dims):
        return _starts(i, b, inits, dims)
    opcode = sole_binary(region)
    if many == 1 and opcode in COMMUTATIVE and identity_of(opcode, i.shape.dtype) is not None:
        return _separable(b, opcode, b.plain(arrays[0]), inits[0], window, dims)
    results = _general(i, b, [b.plain(x) for x in arrays], inits, window, dims)
    return b.tuple(results) if i.shape.is_tuple else results[0]


def _starts(i: Instruction, b: Builder, inits: Sequence[Instruction], dims: Sequence[int]) -> Instruction:
    """Windows that meet nothing hold the initial values."""
    filled = [b.broadcast(b.plain(init), dims) for init in inits]
    return b.tuple(filled) if i.shape.is_tuple else filled[0]


def padding_of(window: Window) -> list[PadDim]:
    return [PadDim(w.pad_low, w.pad_high, w.lhs_dilate - 1) for w in window.dims]


# --- one associative op ----------------------------------------------------------------------------------------------


def _separable(
    b: Builder, opcode: Op, x: Instruction, init: Instruction, window: Window, dims: Sequence[int]
) -> Instruction:
    neutral = identity_of(opcode, x.shape.dtype)
    assert neutral is not None
    x = b.pad(x, b.constant(neutral, x.shape.dtype), padding_of(window))
    for d, (w, count) in enumerate(zip(window.dims, dims, strict=True)):
        x = _along(b, opcode, x, d, w, count)
    return b.binary(opcode, b.broadcast(init, dims), x)


def _along(b: Builder, opcode: Op, x: Instruction, d: int, w: WindowDim, count: int) -> Instruction:
    """Windows along dimension d, combined."""
    if w.size <= DIRECT:
        reach = (count - 1) * w.stride + 1
        parts = [b.slice_in(x, d, p * w.rhs_dilate, p * w.rhs_dilate + reach, w.stride) for p in range(w.size)]
        whole = parts[0]
        for part in parts[1:]:
            whole = b.binary(opcode, whole, part)
        return whole
    if w.rhs_dilate == 1 and (w.stride == w.size or count == 1):
        return _disjoint(b, opcode, x, d, w.size, count)
    x = _doubled(b, opcode, x, d, w.size, w.rhs_dilate)
    return b.slice_in(x, d, 0, (count - 1) * w.stride + 1, w.stride)


def _disjoint(b: Builder, opcode: Op, x: Instruction, d: int, size: int, count: int) -> Instruction:
    """Windows that do not overlap: a reduce of a reshape."""
    x = b.slice_in(x, d, 0, size * count)
    dims = x.shape.dims
    x = b.reshape(x, (*dims[:d], count, size, *dims[d + 1 :]))
    start = identity_of(opcode, x.shape.dtype)
    assert start is not None
    return b.reduce(x, opcode, start, (d + 1,))


def _doubled(b: Builder, opcode: Op, x: Instruction, d: int, size: int, dilation: int) -> Instruction:
    """All windows of `size` elements, `dilation` apart, at stride 1."""
    count = x.shape.dims[d] - (size - 1) * dilation
    whole, covered, power = None, 0, 1
    run = x  # at each place the combination of `power` elements
    while True:
        if size & power:
            at = covered * dilation
            piece = b.slice_in(run, d, at, at + count)
            whole = piece if whole is None else b.binary(opcode, whole, piece)
            covered += power
        power *= 2
        if power > size:
            assert whole is not None
            return whole
        shift = power // 2 * dilation
        length = run.shape.dims[d] - shift
        run = b.binary(opcode, b.slice_in(run, d, 0, length), b.slice_in(run, d, shift, shift + length))


# --- any region ------------------------------------------------------------------------------------------------------


def _general(
    i: Instruction,
    b: Builder,
    arrays: Sequence[Instruction],
    inits: Sequence[Instruction],
    window: Window,
    dims: Sequence[int],
) -> list[Instruction]:
    """Tap by tap in order; places outside the arrays take no part."""
    region, padding, many = i.attributes["to_apply"], padding_of(window), len(arrays)
    padded = [b.pad(x, init, padding) for x, init in zip(arrays, inits, strict=True)]
    truth = b.constant(True, DType.PRED, arrays[0].shape.dims)
    padded.append(b.pad(truth, b.constant(False, DType.PRED), padding))
    results = [b.broadcast(init, dims) for init in inits]
    reach = [(n - 1) * w.stride + 1 for w, n in zip(window.dims, dims, strict=True)]

    def combine(b: Builder, met: Sequence[Instruction], results: Sequence[Instruction]) -> list[Instruction]:
        new = apply_pointwise(b, region, [*results, *met[:many]])
        return [b.select(met[many], n, r) for n, r in zip(new, results, strict=True)]

    sizes = [w.size for w in window.dims]
    if math.prod(sizes) <= UNROLLED:
        for position in product(*[range(n) for n in sizes]):
            at = [_place(w, p) for w, p in zip(window.dims, position, strict=True)]
            taken = [SliceDim(p, p + n, w.stride) for p, n, w in zip(at, reach, window.dims, strict=True)]
            results = combine(b, [b.slice(x, taken) for x in padded], results)
        return results

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        starts = position_of(b, k, window)
        strided = [SliceDim(0, n, w.stride) for n, w in zip(reach, window.dims, strict=True)]
        met = [b.slice(b.dynamic_slice(x, starts, reach), strided) for x in values[: many + 1]]
        return [*values[: many + 1], *combine(b, met, values[many + 1 :])]

    return b.counted(math.prod(sizes), [*padded, *results], step)[many + 1 :]


def _place(w: WindowDim, position: int) -> int:
    return (w.size - 1 - position if w.reverse else position) * w.rhs_dilate


def position_of(b: Builder, k: Instruction, window: Window) -> list[Instruction]:
    """Where tap number k (row-major) meets the padded array."""
    starts: list[Instruction] = []
    for w in reversed(window.dims):
        position = b.binary(Op.REMAINDER, k, w.size)
        k = b.binary(Op.DIVIDE, k, w.size)
        if w.reverse:
            position = b.binary(Op.SUBTRACT, b.constant(w.size - 1, k.shape.dtype), position)
        starts.insert(0, b.binary(Op.MULTIPLY, position, w.rhs_dilate))
    return starts
