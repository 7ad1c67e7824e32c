"""Transpose large convolutions of images whose pixels are adjacent (NCHW) so that features are (NHWC), as XLA:CPU does.

A vector holds features of one position: both stacks would read images of the first kind element by element.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...hlo.attributes import ConvolutionDims
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.shapes import array
from ..building import Builder
from ..expansion import expand_ops
from ..rewriting import with_attributes

LEAST_PRODUCTS = 1 << 18
"""Products of a convolution from which its operands and its result are transposed."""

LEAST_USES = 16
"""In how many products an element of an operand or of the result is, at least: a transposition reads and writes it."""

TWICE = 1 << 14
"""Minimum elements of weights for which two transpositions take less time than one, of rows as short as the window."""

LEAST_FEATURES = 8
"""Output features, at least: fewer fill no vector."""


def features_last(module: Module) -> Module:
    """Transpose such convolutions outside kernels."""
    return expand_ops(module, {Op.CONVOLUTION: with_features_last})


def with_features_last(i: Instruction, b: Builder) -> Instruction | None:
    """The transposed convolution of transposed operands; None if it has features last, or if that does not pay."""
    d: ConvolutionDims = i.attributes["dim_labels"]
    x, kernel = i.operands
    groups = max(i.attributes.get(f"{side}_group_count", 1) for side in ("feature", "batch"))
    if groups > 1 or not d.input_spatial or any(o.shape.is_dynamic for o in (i, x, kernel)):
        return None
    if x.shape.minor_to_major[0] not in d.input_spatial or i.shape.minor_to_major[0] not in d.output_spatial:
        return None
    window = math.prod(kernel.shape.dims[k] for k in d.kernel_spatial)
    inputs, outputs = kernel.shape.dims[d.kernel_input_feature], kernel.shape.dims[d.kernel_output_feature]
    products = i.shape.size * window * inputs
    moved = x.shape.size + kernel.shape.size + i.shape.size
    if outputs < LEAST_FEATURES or products < LEAST_PRODUCTS or products < LEAST_USES * moved:
        return None
    n = len(d.input_spatial)
    middle = tuple(range(1, n + 1))
    labels = ConvolutionDims(0, n + 1, middle, n, n + 1, tuple(range(n)), 0, n + 1, middle)
    images = b.transpose(x, [d.input_batch, *d.input_spatial, d.input_feature])
    weights = _turned(b, kernel, [*d.kernel_spatial, d.kernel_input_feature, d.kernel_output_feature])
    order = [d.output_batch, *d.output_spatial, d.output_feature]
    shape = array(i.shape.dtype, *(i.shape.dims[k] for k in order))
    changed = with_attributes(i, dim_labels=labels)
    made = b.add(changed.replace(name=b.names.fresh(i.name), operands=(images, weights), shape=shape))
    return b.op(Op.TRANSPOSE, i.shape, made, dimensions=tuple(order.index(k) for k in range(len(order))))


def _turned(b: Builder, kernel: Instruction, order: Sequence[int]) -> Instruction:
    """The weights in another order of dimensions. Of those with the window innermost and output features outermost, a
    matrix is transposed first, whose rows are long; then rows of output features are moved.
    """
    *_, inputs, outputs = order
    dims, shape = kernel.shape.dims, kernel.shape
    window = math.prod(dims[k] for k in order[:-2])
    last = sorted(order[:-2]) == list(range(2, len(dims)))
    if (outputs, inputs) != (0, 1) or not last or window == 1 or shape.size < TWICE or not shape.is_row_major:
        return b.transpose(kernel, order)
    spatial = [k - 2 for k in order[:-2]]
    matrix = b.reshape(kernel, [dims[0], dims[1] * window])
    rows = b.reshape(b.transpose(matrix, [1, 0]), [*dims[1:], dims[0]])
    return b.transpose(rows, [*(1 + k for k in spatial), 0, len(dims) - 1])
