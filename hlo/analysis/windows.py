"""Windows of a reduce-window: their size, and cumulative ones, where each window adds one element to the one before."""

from __future__ import annotations

import math

from ..attributes import Window, WindowDim
from ..ir import Instruction
from ..opcodes import Op
from ..records import dataclass

ASSOCIATIVE = frozenset({Op.ADD, Op.MULTIPLY, Op.MAXIMUM, Op.MINIMUM, Op.AND, Op.OR, Op.XOR})


@dataclass(frozen=True, slots=True)
class Running:
    """A cumulative reduction: result i along `dimension` combines elements [0, i], or [i, size) if `backward`."""

    dimension: int
    backward: bool


def window_of(i: Instruction) -> tuple[WindowDim, ...]:
    """The window's dimensions, one per dimension of the operand, also where the text has no window."""
    window = i.attributes.get("window", Window(()))
    return window.dims or (WindowDim(1),) * i.operands[0].shape.rank


def taps(i: Instruction) -> int:
    """Number of elements of one window."""
    return math.prod(w.size for w in window_of(i))


def result_dims(i: Instruction) -> tuple[int, ...]:
    return next(shape.dims for _, shape in i.shape.leaves())


def running(i: Instruction) -> Running | None:
    """The dimension and direction of a cumulative reduce-window, e.g. a prefix sum; None for other reduce-windows.

    A backward one combines the elements in another order than the window's, so its computation must be a single
    associative and commutative op.
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
    """The associative op if the computation is just that op on its two parameters; else None."""
    region = i.attributes["to_apply"]
    root = region.root
    if root.opcode not in ASSOCIATIVE or len(region.parameters) != 2:
        return None
    return root.opcode if set(root.operands) == set(region.parameters) else None
