"""Expand select-and-scatter: find the chosen position of each window tap by tap, then scatter the source once.

A tap is one position within a window. A window that covers padding only chooses no position; its index is out of
bounds, which the scatter ignores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from ...hlo.attributes import PadDim, SliceDim, Window
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder, apply_pointwise, is_pointwise
from ..expansion import expand_ops

NOWHERE = -1

UNROLLED = 32
"""Maximum number of taps for which the taps are unrolled; a loop iterates over more."""


def expand_select_and_scatter(module: Module) -> Module:
    """Replace select-and-scatter outside kernels by the choice and a scatter, if its select region is elementwise."""
    return expand_ops(module, {Op.SELECT_AND_SCATTER: select_then_scatter})


def select_then_scatter(
    i: Instruction, b: Builder, there: Instruction | None = None, chosen: Instruction | None = None
) -> Instruction | None:
    """Expand one select-and-scatter; None if its select region is not elementwise.

    there: the elements that may be chosen, a pred array like the operand. chosen: the windows that choose, a pred array
    like the source.
    """
    x, source, init = map(b.plain, i.operands)
    if not is_pointwise(i.attributes["select"]):
        return None
    start = b.broadcast(init, i.shape.dims)
    if not source.shape.size or not x.shape.size:
        return start
    rank, count = x.shape.rank, source.shape.size
    places = _places(i, b, x, source.shape.dims, there)
    if chosen is not None:
        places = b.select(chosen, places, b.constant(NOWHERE, places.shape.dtype, places.shape.dims))
    places = b.reshape(places, (count, 1))
    flat = array(x.shape.dtype, x.shape.size)
    scattered = b.op(
        Op.SCATTER, flat, b.broadcast(init, flat.dims), places, b.reshape(source, (count,)),
        update_window_dims=(), inserted_window_dims=(0,), scatter_dims_to_operand_dims=(0,), index_vector_dim=1,
        to_apply=i.attributes["scatter"],
    )  # fmt: skip
    return b.reshape(scattered, i.shape.dims) if rank != 1 else scattered


def _places(i: Instruction, b: Builder, x: Instruction, dims: Sequence[int], there: Instruction | None) -> Instruction:
    """For each window the row-major position of the element that it chooses, or NOWHERE."""
    window, select = i.attributes.get("window", Window(())), i.attributes["select"]
    kind = DType.S32 if x.shape.size < 2**31 else DType.S64
    padding = padding_of(window)
    numbers = b.reshape(b.iota(kind, (x.shape.size,), 0), x.shape.dims)
    if there is not None:
        numbers = b.select(there, numbers, b.constant(NOWHERE, kind, x.shape.dims))
    padded = [
        b.pad(x, b.constant(0, x.shape.dtype), padding),
        b.pad(numbers, b.constant(NOWHERE, kind), padding),
    ]
    best = [b.constant(0, x.shape.dtype, dims), b.constant(NOWHERE, kind, dims)]
    reach = [(n - 1) * w.stride + 1 for w, n in zip(window.dims, dims, strict=True)]

    def choose(b: Builder, met: Sequence[Instruction], best: Sequence[Instruction]) -> list[Instruction]:
        (keep,) = apply_pointwise(b, select, [best[0], met[0]])
        better = b.binary(Op.OR, b.compare(best[1], "LT", 0), b.unary(Op.NOT, keep))
        take = b.binary(Op.AND, b.compare(met[1], "GE", 0), better)
        return [b.select(take, new, old) for new, old in zip(met, best, strict=True)]

    sizes = [w.size for w in window.dims]
    if math.prod(sizes) <= UNROLLED:
        for position in product(*map(range, sizes)):
            at = [(w.size - 1 - p if w.reverse else p) * w.rhs_dilate for w, p in zip(window.dims, position)]
            taken = [SliceDim(p, p + n, w.stride) for p, n, w in zip(at, reach, window.dims, strict=True)]
            best = choose(b, [b.slice(v, taken) for v in padded], best)
        return best[1]

    def step(b: Builder, k: Instruction, values: list[Instruction]) -> list[Instruction]:
        starts = position_of(b, k, window)
        strided = [SliceDim(0, n, w.stride) for n, w in zip(reach, window.dims, strict=True)]
        met = [b.slice(b.dynamic_slice(v, starts, reach), strided) for v in values[:2]]
        return [*values[:2], *choose(b, met, values[2:])]

    return b.counted(math.prod(sizes), [*padded, *best], step)[3]


def padding_of(window: Window) -> list[PadDim]:
    return [PadDim(w.pad_low, w.pad_high, w.lhs_dilate - 1) for w in window.dims]


def position_of(b: Builder, k: Instruction, window: Window) -> list[Instruction]:
    """The position in the padded array of tap k (row-major) of each window."""
    starts: list[Instruction] = []
    for w in reversed(window.dims):
        position = b.binary(Op.REMAINDER, k, w.size)
        k = b.binary(Op.DIVIDE, k, w.size)
        if w.reverse:
            position = b.binary(Op.SUBTRACT, b.constant(w.size - 1, k.shape.dtype), position)
        starts.insert(0, b.binary(Op.MULTIPLY, position, w.rhs_dilate))
    return starts
