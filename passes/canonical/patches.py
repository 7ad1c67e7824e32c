"""Convolutions of narrow integers as products of patches, whose rows hold all elements that a position's window meets.

Processors multiply neighbours along the depth of narrow integers and add the products up in one instruction. Products
use it in tiles of registers; the patches cost a copy of each element for each position of the window.
"""

from __future__ import annotations

import itertools
import math

from ...hlo.attributes import PadDim, SliceDim, WindowDim
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder
from ..expansion import expand_ops

DTYPES = frozenset({DType.S8, DType.U8})

LEAST_PRODUCTS = 1 << 18
"""Products of a convolution from which a second kernel costs nothing."""

LEAST_FEATURES = 16
"""Output features, at least: the number of products that share the copy of an element of a patch."""

LEAST_DEPTH = 8
"""Input features, at least: shorter runs are not copied by vectors."""

LEAST_POSITIONS = 64
"""Minimum positions of the result that make transposing the kernel cheap compared with the convolution."""

MOST_TAPS = 27
"""Positions of a window, at most: each is an operand of the concatenation."""

MOST_BYTES = 1 << 26
"""Bytes of the patches, at most: they are memory that the convolution itself does not need."""


def integer_patches(module: Module) -> Module:
    """Make such convolutions products."""
    return expand_ops(module, {Op.CONVOLUTION: as_product})


def as_product(i: Instruction, b: Builder) -> Instruction | None:
    """The product of patches that is a convolution of narrow integers; None if it does not pay."""
    if not _is_plain(i):
        return None
    d, window = i.attributes["dim_labels"], i.attributes["window"].dims
    x, kernel = i.operands
    last, depth, features = i.shape.rank - 1, x.shape.dims[-1], i.shape.dims[-1]
    taps = math.prod(w.size for w in window)
    positions = i.shape.size // max(features, 1)
    patches = positions * taps * depth
    if not patches * features >= LEAST_PRODUCTS or patches > MOST_BYTES or not 1 < taps <= MOST_TAPS:
        return None
    if features < LEAST_FEATURES or depth < LEAST_DEPTH or positions < LEAST_POSITIONS:
        return None
    border = [PadDim(0, 0), *(PadDim(w.pad_low, w.pad_high) for w in window), PadDim(0, 0)]
    padded = b.pad(x, b.constant(0, x.shape.dtype), border)
    parts = []
    for tap in itertools.product(*(range(w.size) for w in window)):
        along = zip(window, tap, i.shape.dims[1:last], strict=True)
        parts.append(b.slice(padded, [None, *(_met(w, t, count) for w, t, count in along), None]))
    order = [*d.kernel_spatial, d.kernel_input_feature, d.kernel_output_feature]
    weights = b.reshape(b.transpose(kernel, order), [taps * depth, features])
    return b.op(
        Op.DOT, array(i.shape.dtype, *i.shape.dims), b.concatenate(parts, last), weights,
        lhs_contracting_dims=(last,), rhs_contracting_dims=(0,),
    )  # fmt: skip


def _met(w: WindowDim, tap: int, count: int) -> SliceDim:
    """The elements along a dimension that meet a position of the window, one for each of `count` results."""
    start = (w.size - 1 - tap if w.reverse else tap) * w.rhs_dilate
    return SliceDim(start, start + (count - 1) * w.stride + 1, w.stride)


def _is_plain(i: Instruction) -> bool:
    """Whether it is one group of narrow integers with the features last in all arrays but the kernel, and no holes."""
    d, last = i.attributes["dim_labels"], i.shape.rank - 1
    groups = max(i.attributes.get(f"{side}_group_count", 1) for side in ("feature", "batch"))
    middle = tuple(range(1, last))
    order = (d.input_batch, d.input_spatial, d.input_feature, d.output_batch, d.output_spatial, d.output_feature)
    if groups > 1 or not middle or order != (0, middle, last, 0, middle, last):
        return False
    x, kernel = i.operands
    if any(o.shape.is_dynamic or not o.shape.is_row_major for o in (i, x, kernel)):
        return False
    if x.shape.dtype not in DTYPES or kernel.shape.dtype is not x.shape.dtype or not x.shape.size:
        return False
    return i.shape.dtype in (DType.S32, DType.U32, x.shape.dtype) and all(
        w.lhs_dilate == 1 and n + w.pad_low + w.pad_high > 0
        for w, n in zip(i.attributes["window"].dims, x.shape.dims[1:last], strict=True)
    )
