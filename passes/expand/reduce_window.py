"""Expand wide, overlapping reduce-windows: reduce one dimension at a time, wide ones by doubling.

A window of n along one dimension takes about log2(n) steps: combinations of 1, 2, 4, … neighbours, joined by the bits
of n. Narrow, disjoint and cumulative windows stay, because they are efficient kernels; so do those whose region is not
one associative op.
"""

from __future__ import annotations

from ...hlo.analysis.windows import result_dims, running, taps, window_of
from ...hlo.attributes import PadDim, Window, WindowDim
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder, identity_of, sole_binary
from ..expansion import expand_ops

MOST_TAPS = 32
"""Maximum number of window elements that are read one by one."""

MOST_READS = 8
"""How many times an element may be read before a wide window is worth doubling."""


def expand_reduce_window(module: Module) -> Module:
    """Split reduce-windows that would read each operand element too often into one per dimension."""
    return expand_ops(module, {Op.REDUCE_WINDOW: reduce_by_dimension})


def reduce_by_dimension(i: Instruction, b: Builder) -> Instruction | None:
    size = i.operands[0].shape.size
    if not i.shape.is_array or not i.shape.size or not size or running(i) is not None:
        return None
    if taps(i) <= MOST_TAPS or taps(i) * i.shape.size <= MOST_READS * size:
        return None
    opcode = sole_binary(i.attributes["to_apply"])
    neutral = identity_of(opcode, i.shape.dtype) if opcode is not None else None
    window = window_of(i)
    if opcode is None or neutral is None:
        return None
    x, init = b.plain(i.operands[0]), i.operands[1]
    start = b.constant(neutral, x.shape.dtype)
    wide = [d for d, w in enumerate(window) if _is_wide(x, d, w, result_dims(i)[d])]
    narrow = [d for d, w in enumerate(window) if d not in wide and w != WindowDim(1)]
    if not wide and len(narrow) < 2:
        return None
    for d in wide:
        w, count = window[d], result_dims(i)[d]
        rank = x.shape.rank
        padding = [PadDim(w.pad_low, w.pad_high, w.lhs_dilate - 1) if k == d else PadDim(0, 0) for k in range(rank)]
        x = _doubled(b, opcode, b.pad(x, start, padding), d, w.size, w.rhs_dilate)
        x = b.slice_in(x, d, 0, (count - 1) * w.stride + 1, w.stride)
    for d in narrow:
        x = _alone(b, i, x, init if d == narrow[-1] else start, d, window[d])
    return x if narrow else b.binary(opcode, b.broadcast(init, x.shape.dims), x)


def _alone(b: Builder, i: Instruction, x: Instruction, init: Instruction, d: int, w: WindowDim) -> Instruction:
    """The reduce-window along one dimension only."""
    dims = (*x.shape.dims[:d], result_dims(i)[d], *x.shape.dims[d + 1 :])
    window = Window(tuple(w if k == d else WindowDim(1) for k in range(x.shape.rank)))
    shape = array(x.shape.dtype, *dims)
    return b.op(Op.REDUCE_WINDOW, shape, x, init, window=window, to_apply=i.attributes["to_apply"])


def _is_wide(x: Instruction, d: int, w: WindowDim, count: int) -> bool:
    """Whether a window along one dimension is worth doubling."""
    cumulative = (
        (w.stride, w.lhs_dilate, w.rhs_dilate) == (1, 1, 1)
        and count <= x.shape.dims[d]
        and ((w.pad_low == w.size - 1 and w.size >= count) or (not w.pad_low and w.size >= x.shape.dims[d]))
    )
    return w.size > MOST_TAPS and not cumulative and w.size * count > MOST_READS * x.shape.dims[d]


def _doubled(b: Builder, opcode: Op, x: Instruction, d: int, size: int, dilation: int) -> Instruction:
    """Combinations of all windows of `size` elements, `dilation` apart, at stride 1."""
    count = x.shape.dims[d] - (size - 1) * dilation
    whole, covered, power = None, 0, 1
    run = x  # at each position the combination of `power` elements
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
