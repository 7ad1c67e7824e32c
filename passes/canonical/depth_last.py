"""Transpose the kernels of convolutions to few features so that its input features are neighbours, as in their input.

Few output features fill no vector. Both stacks then put elements along the depth into vectors, one feature at a time.
"""

from __future__ import annotations

from ...hlo.attributes import ConvolutionDims
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opcodes import Op
from ...hlo.records import replace
from ..building import Builder
from ..expansion import expand_ops
from ..rewriting import with_attributes

MOST_FEATURES = 7
"""Output features, at most."""

LEAST_DEPTH = 16
"""Input features, at least: a vector of f32 in 512 bits."""

LEAST_POSITIONS = 256
"""Minimum positions of the result that make transposing the kernel cheap compared with the convolution."""

DTYPES = frozenset({DType.F32, DType.F64, DType.BF16, DType.F16})
"""Those of which both stacks make vectors along the depth."""


def depth_last(module: Module) -> Module:
    """Transpose kernels of convolutions to few features so that input features are neighbours."""
    return expand_ops(module, {Op.CONVOLUTION: with_depth_last})


def with_depth_last(i: Instruction, b: Builder) -> Instruction | None:
    """The convolution with such a kernel; None if it has one, or if it does not pay."""
    d: ConvolutionDims = i.attributes["dim_labels"]
    x, kernel = i.operands
    groups = max(i.attributes.get(f"{side}_group_count", 1) for side in ("feature", "batch"))
    if (
        groups > 1
        or not d.input_spatial
        or any(o.shape.is_dynamic or o.shape.dtype not in DTYPES for o in (i, *i.operands))
    ):
        return None
    inputs, outputs = (kernel.shape.dims[k] for k in (d.kernel_input_feature, d.kernel_output_feature))
    apart = x.shape.minor_to_major[0] != d.input_feature or kernel.shape.minor_to_major[0] != d.kernel_output_feature
    if apart or not 1 < outputs <= MOST_FEATURES or i.shape.size < LEAST_POSITIONS * outputs:
        return None
    if inputs < LEAST_DEPTH or (inputs % LEAST_DEPTH and min(o.shape.dtype.bytes for o in i.operands) < 4):
        return None  # narrow elements fill whole vectors: registers of 256 bits have no masks for them
    order = [d.kernel_output_feature, *d.kernel_spatial, d.kernel_input_feature]
    spatial = tuple(range(1, len(order) - 1))
    labels = replace(d, kernel_output_feature=0, kernel_spatial=spatial, kernel_input_feature=len(order) - 1)
    return b.add(with_attributes(i, dim_labels=labels).replace(operands=(x, b.transpose(kernel, order))))
