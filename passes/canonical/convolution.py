"""Fold ops around a convolution into it.

A transpose changes its dimension labels, a reversed kernel its window's reversal, a pad its window's padding. A
convolution with a window of one element becomes a dot. A kernel whose output features are not adjacent in memory is
transposed where that pays off. Operands of f16 and of 8 bits are converted to f32 once, not for each product.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...hlo.attributes import ConvolutionDims, PadDim, Window
from ...hlo.dtypes import DType
from ...hlo.ir import Instruction, Module
from ...hlo.opclasses import CONTROL_PREDECESSORS
from ...hlo.opcodes import Op
from ...hlo.records import replace
from ..building import Builder
from ..expansion import expand_ops
from ..rewriting import with_attributes
from .dot import SHORT, single_users
from .normalize_floats import NARROW, in_f32

MANY = 256
"""Minimum number of result positions for which the cost of transposing the kernel first is negligible."""

SEVERAL = 4
"""Minimum output features of a group for which an operand is converted before the products."""

LARGE = 1 << 14
"""Number of elements from which an operand's transpose is kept if it changes the fastest dimension."""


def canonicalize_convolutions(module: Module) -> Module:
    """Fold pads, reversals and transposes into convolutions; windows of one element become dots."""
    if Op.CONVOLUTION not in module.opcodes:
        return module
    alone = single_users(module)

    def of_transpose(i: Instruction, b: Builder) -> Instruction | None:
        source = i.operands[0]
        if source.opcode is not Op.CONVOLUTION or source.name not in alone or CONTROL_PREDECESSORS in source.attributes:
            return None
        return _labelled_result(i, source, b)

    return expand_ops(module, {Op.CONVOLUTION: canonical_convolution, Op.TRANSPOSE: of_transpose})


def canonical_convolution(i: Instruction, b: Builder) -> Instruction | None:
    changed = i
    for _ in range(8):  # operands may nest: a pad of a transpose of a pad …
        better = _input(changed) or _kernel(changed)
        if better is None:
            break
        changed = better
    dot = as_dot(changed, b)
    if dot is not None:
        return dot
    changed = _with_features_last(changed, b)
    if _converts_often(changed):
        return in_f32(changed, b)
    return b.add(changed) if changed is not i else None


def _converts_often(i: Instruction) -> bool:
    """Whether operands that take instructions to convert are read for many products. bf16 takes a shift, or none."""
    dtypes = {o.shape.dtype for o in i.operands}
    kernel, d = i.operands[1].shape, i.attributes["dim_labels"]
    features = kernel.dims[d.kernel_output_feature] // i.attributes.get("feature_group_count", 1)
    return not dtypes.isdisjoint(NARROW - {DType.BF16}) and features >= SEVERAL


def _input(i: Instruction) -> Instruction | None:
    source = i.operands[0]
    if source.opcode is Op.TRANSPOSE and _keeps_fastest(source):
        d: ConvolutionDims = i.attributes["dim_labels"]
        at = source.dimensions
        spatial = tuple(at[k] for k in d.input_spatial)
        labels = replace(d, input_batch=at[d.input_batch], input_feature=at[d.input_feature], input_spatial=spatial)
        return with_attributes(i, dim_labels=labels).replace(operands=(source.operands[0], *i.operands[1:]))
    return _pad(i, source) if source.opcode is Op.PAD else None


def _kernel(i: Instruction) -> Instruction | None:
    source = i.operands[1]
    d: ConvolutionDims = i.attributes["dim_labels"]
    if source.opcode is Op.TRANSPOSE and _keeps_fastest(source):
        at = source.dimensions
        labels = replace(
            d,
            kernel_input_feature=at[d.kernel_input_feature],
            kernel_output_feature=at[d.kernel_output_feature],
            kernel_spatial=tuple(at[k] for k in d.kernel_spatial),
        )
        return with_attributes(i, dim_labels=labels).replace(operands=(i.operands[0], source.operands[0]))
    if source.opcode is Op.REVERSE and set(source.dimensions) <= set(d.kernel_spatial):
        dims = [
            replace(w, reverse=w.reverse != (k in source.dimensions))
            for w, k in zip(i.attributes["window"].dims, d.kernel_spatial, strict=True)
        ]
        return with_attributes(i, window=Window(tuple(dims))).replace(operands=(i.operands[0], source.operands[0]))
    return None


def _keeps_fastest(transpose: Instruction) -> bool:
    """Whether reading the operand instead of its transpose has negligible cost."""
    if transpose.shape.size < LARGE:
        return True
    fastest = transpose.operands[0].shape.minor_to_major[0]
    return transpose.shape.minor_to_major[0] == transpose.dimensions.index(fastest)


def _pad(i: Instruction, pad: Instruction) -> Instruction | None:
    """Fold a pad by zeros into the window's padding and dilation; None if that may change the result.

    A convolution skips its padding, while the zeros of a pad are multiplied. Infinite or NaN weights make a difference,
    so only weights known to be finite qualify.
    """
    d: ConvolutionDims = i.attributes["dim_labels"]
    padding: Sequence[PadDim] = pad.attributes["padding"]
    still = [padding[d.input_batch], padding[d.input_feature]]
    if any(p.low or p.high or p.interior for p in still) or not _is_zero(pad.operands[1]):
        return None
    if not _is_finite(i.operands[1]) or not pad.operands[0].shape.size:
        return None
    dims = []
    for w, k in zip(i.attributes["window"].dims, d.input_spatial, strict=True):
        p, holes = padding[k], w.lhs_dilate
        dims.append(
            replace(
                w,
                pad_low=w.pad_low + p.low * holes,
                pad_high=w.pad_high + p.high * holes,
                lhs_dilate=holes * (p.interior + 1),
            )
        )
    return with_attributes(i, window=Window(tuple(dims))).replace(operands=(pad.operands[0], *i.operands[1:]))


def _with_features_last(i: Instruction, b: Builder) -> Instruction:
    """The convolution with its kernel transposed so that output features are adjacent, where that pays off.

    The gradient of an input has a kernel with the output features apart. The transpose pays off if the result has its
    features adjacent and every weight is used for many elements.
    """
    d: ConvolutionDims = i.attributes["dim_labels"]
    kernel, out = i.operands[1], d.kernel_output_feature
    features = kernel.shape.dims[out] // max(
        i.attributes.get(f"{side}_group_count", 1) for side in ("feature", "batch")
    )
    if (
        not kernel.shape.is_row_major
        or out == kernel.shape.rank - 1
        or kernel.shape.strides[out] < SHORT
        or features < SHORT
        or i.shape.minor_to_major[0] != d.output_feature
        or i.shape.size < MANY * kernel.shape.dims[out]
    ):
        return i
    order = [*(k for k in range(kernel.shape.rank) if k != out), out]
    labels = replace(
        d,
        kernel_input_feature=order.index(d.kernel_input_feature),
        kernel_output_feature=order.index(out),
        kernel_spatial=tuple(order.index(k) for k in d.kernel_spatial),
    )
    turned = b.transpose(kernel, order)
    return with_attributes(i, dim_labels=labels).replace(operands=(i.operands[0], turned))


def _is_zero(i: Instruction) -> bool:
    return i.opcode is Op.CONSTANT and i.shape.size == 1 and not np.any(i.literal.array)


def _is_finite(i: Instruction) -> bool:
    if not (i.shape.dtype.is_float or i.shape.dtype.is_complex):
        return True
    return i.opcode is Op.CONSTANT and bool(np.isfinite(i.literal.array.astype(np.complex128)).all())


def as_dot(i: Instruction, b: Builder) -> Instruction | None:
    """The dot of a convolution with a window of one element that covers every element once; None for any other."""
    d: ConvolutionDims = i.attributes["dim_labels"]
    window: Window = i.attributes.get("window", Window(()))
    plain = all(
        w.size == 1 and w.stride == 1 and w.lhs_dilate == 1 and not w.pad_low and not w.pad_high for w in window.dims
    )
    groups = max(i.attributes.get(f"{side}_group_count", 1) for side in ("feature", "batch"))
    x, kernel = i.operands
    if not plain or groups > 1 or not i.shape.size or not x.shape.size or not kernel.shape.is_row_major:
        return None
    kept = sorted((d.kernel_input_feature, d.kernel_output_feature))
    flat = b.reshape(kernel, [kernel.shape.dims[k] for k in kept])
    sources = {d.input_batch: d.output_batch, **dict(zip(d.input_spatial, d.output_spatial, strict=True))}
    order = [sources[k] for k in sorted(sources)]  # the position in the result of each free dimension of the input
    last = [*order, d.output_feature]
    fastest = i.shape.minor_to_major[0]
    if last != sorted(last) and (fastest not in last[-2:] or i.shape.dims[fastest] < SHORT):
        return None  # the transpose of the dot would move bytes
    dims = [i.shape.dims[k] for k in last]
    shape = replace(i.shape, dims=tuple(dims), layout=None)
    dot = b.op(
        Op.DOT, shape, x, flat,
        lhs_contracting_dims=(d.input_feature,),
        rhs_contracting_dims=(kept.index(d.kernel_input_feature),),
    )  # fmt: skip
    return b.transpose(dot, [last.index(k) for k in range(i.shape.rank)])


def _labelled_result(i: Instruction, source: Instruction, b: Builder) -> Instruction | None:
    """The convolution that produces its transpose directly, if the same role stays the fastest dimension; else None."""
    order = i.dimensions
    if order[i.shape.minor_to_major[0]] != source.shape.minor_to_major[0]:
        return None
    d: ConvolutionDims = source.attributes["dim_labels"]
    labels = replace(
        d,
        output_batch=order.index(d.output_batch),
        output_feature=order.index(d.output_feature),
        output_spatial=tuple(order.index(k) for k in d.output_spatial),
    )
    return b.add(with_attributes(source, dim_labels=labels).replace(shape=i.shape))
