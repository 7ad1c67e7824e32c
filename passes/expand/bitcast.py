"""Expand a bitcast to wider or narrower elements into a bitcast-convert between bitcasts of equal width.

Elements narrower than a byte are stored one per byte, so such a bitcast moves bytes.
"""

from __future__ import annotations

from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.layouts import changes_elements
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder
from ..expansion import expand_ops


def expand_bitcast(module: Module) -> Module:
    """Replace bitcasts outside kernels that change the number of elements by bitcast-converts."""
    return expand_ops(module, {Op.BITCAST: convert_bits})


def convert_bits(i: Instruction, b: Builder) -> Instruction | None:
    """The bits in memory order, as elements of the other width; None if the bitcast keeps the number of elements."""
    x, source, target = i.operands[0], i.operands[0].shape, i.shape
    if not changes_elements(i) or source.size * source.dtype.bits != target.size * target.dtype.bits:
        return None
    if DType.PRED in (source.dtype, target.dtype) or source.dtype.is_complex or target.dtype.is_complex:
        return None
    ratio = max(source.size, target.size) // min(source.size, target.size)
    narrower = source if source.size > target.size else target
    parts = array(narrower.dtype, narrower.size // ratio, ratio)
    whole = array((target if narrower is source else source).dtype, narrower.size // ratio)
    before, after = (parts, whole) if narrower is source else (whole, parts)
    return b.op(Op.BITCAST, target, b.op(Op.BITCAST_CONVERT, after, b.op(Op.BITCAST, before, x)))
