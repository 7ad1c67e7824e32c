"""Convolutions of arrays with dynamic sizes: elements beyond a size count as zeros, like padding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...hlo.attributes import ConvolutionDims, Window
from ...hlo.ir import Instruction
from ...hlo.opcodes import Op
from ..building import Builder
from .values import DynamicRule, Sized, least, masked, plain, sizes_of, zero
from .windows import windowed

Sizes = Mapping[int, Instruction | None]


def convolution(i: Instruction, b: Builder, xs: Sequence[Sized]) -> Sized | None:
    """Expand a convolution with dynamic sizes; None if there is no rule for it.

    A window of dynamic size, as in the gradient of a filter, needs a static size of the result, which determines the
    window positions. Feature and batch groups divide a dimension at its bound, so a grouped dimension must have its
    full size.
    """
    x, kernel = xs
    labels: ConvolutionDims = i.attributes["dim_labels"]
    window = i.attributes.get("window", Window(()))
    feature = least(b, [x.of(labels.input_feature), kernel.of(labels.kernel_input_feature)])
    batch, out = x.of(labels.input_batch), kernel.of(labels.kernel_output_feature)
    groups = i.attributes.get("feature_group_count", 1), i.attributes.get("batch_group_count", 1)
    if (groups[0] > 1 and (feature or out)) or (groups[1] > 1 and (batch or out)):
        return None
    sizes = {labels.output_batch: batch, labels.output_feature: out}
    spatial = zip(labels.input_spatial, labels.kernel_spatial, labels.output_spatial, window.dims, strict=True)
    for s, k, to, w in spatial:
        size = x.of(s)
        if kernel.of(k) is not None:
            if i.shape.dynamic and i.shape.dynamic[to]:
                return None
        elif size is not None:
            sizes[to] = windowed(b, size, w)
    left = {labels.input_feature: feature} | {s: x.of(s) for s in labels.input_spatial}
    right = {labels.kernel_input_feature: feature} | {k: kernel.of(k) for k in labels.kernel_spatial}
    return plain(i, b, [_zeroed(b, x, left), _zeroed(b, kernel, right)], sizes)


def _zeroed(b: Builder, x: Sized, sizes: Sizes) -> Sized:
    known = sizes_of(sizes)
    return Sized(masked(b, Sized(x.value, known), [d for _, d in known], zero(b, x.value.shape.dtype)), {})


RULES: dict[Op, DynamicRule] = {Op.CONVOLUTION: convolution}
