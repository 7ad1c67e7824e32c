"""Kernels that read arrays in two orders of memory: which ops are such, and how large arrays have to be to matter."""

from __future__ import annotations

from ...hlo.ir import Instruction
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.shapes import Shape

LARGE_TRANSPOSE = 1 << 14
"""Elements from which a transpose that moves the minor dimension is stored: strided reads cost more than a pass."""

MOST_STORED = 1 << 28
"""Bytes of what such a kernel would store for the one that reduces it, at most: more memory is not taken for time."""

WITHOUT_ORDER = (Op.BROADCAST, Op.CONSTANT, Op.IOTA)


def order(shape: Shape) -> tuple[int, ...]:
    """The dimensions in the order of memory, the fastest first, but for those of size 1."""
    return tuple(d for d in shape.minor_to_major if shape.dims[d] != 1)


def fastest(shape: Shape) -> int | None:
    """The dimension whose elements are neighbours in memory; None if there are no two elements."""
    return next((d for d in shape.minor_to_major if shape.dims[d] != 1), None)


def mixes_orders(i: Instruction) -> bool:
    """Whether an elementwise op reads large arrays in two orders of memory: its own kernel takes them in tiles."""
    if i.opcode not in ELEMENTWISE or i.shape.size <= LARGE_TRANSPOSE or i.shape.bytes > MOST_STORED:
        return False
    read = [o.shape for o in i.operands if o.shape.dims == i.shape.dims and o.opcode not in WITHOUT_ORDER]
    return len({fastest(shape) for shape in (i.shape, *read)}) > 1
