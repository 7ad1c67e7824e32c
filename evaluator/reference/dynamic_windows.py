"""Custom calls whose windows XLA pads by the present sizes: convolutions, reduce-window, select-and-scatter.

padding_type=PADDING_SAME: the window has ceil(size / stride) positions; half of the padding that these need, rounded
down, comes before the first element. PADDING_VALID: no padding. A static dimension keeps the padding of the window.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...hlo.attributes import Window, WindowDim
from ...hlo.ir import Instruction
from ...hlo.records import replace
from ...hlo.shapes import Shape
from . import region
from .context import Context, Value
from .convolution import convolution

Array = np.ndarray


def is_same(instruction: Instruction) -> bool:
    return instruction.attributes.get("padding_type") == "PADDING_SAME"


def reach_of(w: WindowDim) -> int:
    """Number of elements that a window spans, with its dilation."""
    return (w.size - 1) * w.rhs_dilate + 1


def forward(size: int, reach: int, stride: int) -> tuple[int, int]:
    """(number of window positions with PADDING_SAME, padding before the first element)."""
    count = -(-size // stride)
    return count, max((count - 1) * stride + reach - size, 0) // 2


def is_dynamic(shape: Shape, d: int) -> bool:
    return bool(shape.dynamic) and shape.dynamic[d]


def _same(w: WindowDim, size: int) -> WindowDim:
    count, before = forward(size, reach_of(w), w.stride)
    return replace(w, pad_low=before, pad_high=(count - 1) * w.stride + reach_of(w) - size - before)


def _with_window(i: Instruction, dims: Sequence[WindowDim], **attributes: object) -> Instruction:
    return i.replace(attributes={**i.attributes, "window": Window(tuple(dims)), **attributes})


def convolution_forward(i: Instruction, operands: Sequence[Array], context: Context) -> Array:
    labels, shape = i.attributes["dim_labels"], i.operands[0].shape
    dims = [
        _same(w, operands[0].shape[d]) if is_same(i) and is_dynamic(shape, d) else w
        for d, w in zip(labels.input_spatial, i.attributes["window"].dims, strict=True)
    ]
    return convolution(_with_window(i, dims), operands, context)


def convolution_input_grad(i: Instruction, operands: Sequence[Array], context: Context) -> Array:
    """Operands: sizes of the result, gradient, kernel. lhs_dilate is the stride of the forward convolution."""
    sizes, gradient, kernel = operands
    labels, dims = i.attributes["dim_labels"], []
    for d, to, w in zip(labels.input_spatial, labels.output_spatial, i.attributes["window"].dims, strict=True):
        if is_dynamic(i.operands[1].shape, d) or is_dynamic(i.shape, to):
            size, met = int(sizes[to]), gradient.shape[d]
            low = reach_of(w) - 1 - (forward(size, reach_of(w), w.lhs_dilate)[1] if is_same(i) else 0)
            spread = (met - 1) * w.lhs_dilate + 1 if met else 0
            w = replace(w, pad_low=low, pad_high=size - 1 + reach_of(w) - spread - low)
        dims.append(w)
    return convolution(_with_window(i, dims).replace(operands=i.operands[1:]), [gradient, kernel], context)


def convolution_kernel_grad(i: Instruction, operands: Sequence[Array], context: Context) -> Array:
    """Operands: activations, gradient. rhs_dilate is the stride of the forward convolution."""
    x, gradient = operands
    labels, dims = i.attributes["dim_labels"], []
    spatial = zip(labels.input_spatial, labels.kernel_spatial, labels.output_spatial, strict=True)
    for (d, k, to), w in zip(spatial, i.attributes["window"].dims, strict=True):
        if is_dynamic(i.operands[0].shape, d) or is_dynamic(i.operands[1].shape, k):
            taken = (i.shape.dims[to] - 1) * w.stride
            low = forward(x.shape[d], taken + 1, w.rhs_dilate)[1] if is_same(i) else 0
            met = gradient.shape[k]
            reach = (met - 1) * w.rhs_dilate + 1 if met else 0
            w = replace(w, pad_low=low, pad_high=taken + reach - x.shape[d] - low)
        dims.append(w)
    return convolution(_with_window(i, dims), operands, context)


def _by_operand(i: Instruction, x: Array) -> list[WindowDim]:
    flags = [is_dynamic(i.operands[0].shape, d) for d in range(x.ndim)]
    return [_same(w, n) if f else w for w, n, f in zip(i.attributes["window"].dims, x.shape, flags, strict=True)]


def reduce_window(i: Instruction, operands: Sequence[Array], context: Context) -> Value:
    return region.reduce_window(_with_window(i, _by_operand(i, operands[0]), to_apply=i.called()[0]), operands, context)


def select_and_scatter(i: Instruction, operands: Sequence[Array], context: Context) -> Array:
    select, scatter = i.called()
    dims = _by_operand(i, operands[0])
    return region.select_and_scatter(_with_window(i, dims, select=select, scatter=scatter), operands, context)


TARGETS = {
    "DynamicConvolutionForward": convolution_forward,
    "DynamicConvolutionInputGrad": convolution_input_grad,
    "DynamicConvolutionKernelGrad": convolution_kernel_grad,
    "DynamicReduceWindowSamePadding": reduce_window,
    "DynamicSelectAndScatterSamePadding": select_and_scatter,
}
