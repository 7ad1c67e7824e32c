"""Windows of a reduce-window: how much they overlap, and those that grow by one element from each to the next."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..attributes import Window, WindowDim
from ..ir import Instruction
from ..opcodes import Op

ASSOCIATIVE = frozenset({Op.ADD, Op.MULTIPLY, Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR, Op.XOR})


@dataclass(frozen=True, slots=True)
class Running:
    """Along `dimension`, result i is the combination of elements [0, i], or if backward [i, size)."""

    dimension: int
    backward: bool


def window_of(i: Instruction) -> tuple[WindowDim, ...]:
    """The window's dimensions, those that the text leaves out too."""
    window = i.attributes.get("window", Window(()))
    return window.dims or (WindowDim(1),) * i.operands[0].shape.rank


def taps(i: Instruction) -> int:
    """Elements of a window."""
    return math.prod(w.size for w in window_of(i))


def result_dims(i: Instruction) -> tuple[int, ...]:
    return next(shape.dims for _, shape in i.shape.leaves())


def running(i: Instruction) -> Running | None:
    """How a cumulative reduce-window runs along its one dimension, if it is one (a prefix sum, say).

    Backward, the order of elements is not the window's: only for one associative and commutative op.
    """
    dims, counts = i.operands[0].shape.dims, result_dims(i)
    wide = [d for d, (w, n, count) in enumerate(zip(window_of(i), dims, counts)) if not _is_trivial(w, n, count)]
    if len(wide) != 1 or 0 in dims:
        return None
    (d,) = wide
    w, size, count = window_of(i)[d], dims[d], counts[d]
    if w.stride != 1 or w.lhs_dilate != 1 or w.rhs_dilate != 1 or w.reverse or min(count, w.size) < 2 or count > size:
        return None
    if w.pad_low == w.size - 1 and w.size >= count:
        return Running(d, backward=False)
    return Running(d, backward=True) if not w.pad_low and w.size >= size and single_op(i) is not None else None


def _is_trivial(w: WindowDim, size: int, count: int) -> bool:
    return w.size == 1 and w.stride == 1 and not w.pad_low and not w.pad_high and size == count


def single_op(i: Instruction) -> Op | None:
    """The one associative op on both parameters that the computation consists of, if so."""
    region = i.attributes["to_apply"]
    root = region.root
    if root.opcode not in ASSOCIATIVE or len(region.parameters) != 2:
        return None
    return root.opcode if set(root.operands) == set(region.parameters) else None
