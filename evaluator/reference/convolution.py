"""convolution with any dimension labels, windows, dilations, feature groups and batch groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...hlo.attributes import ConvolutionDims, PadDim, Window
from ...hlo.errors import InputError
from ...hlo.ir import Instruction
from ...hlo.records import replace
from .context import Context
from .convert import narrow
from .linalg import accumulation_type, matmul
from .region import dilated_padding, taps, window_counts
from .shape import pad_array

Array = np.ndarray


def convolution(instruction: Instruction, operands: Sequence[Array], _context: Context) -> Array:
    """The sum over kernel positions of a matrix product of input and kernel at that position."""
    wide = accumulation_type(*[o.shape.dtype for o in instruction.operands], instruction.shape.dtype)
    x, kernel = (given.astype(wide) for given in operands)
    return narrow(convolve(instruction, x, kernel, matmul), instruction.shape.dtype)


def convolve(instruction: Instruction, x: Array, kernel: Array, matmul: Callable[[Array, Array], Array]) -> Array:
    """A convolution of arrays of the type in which products are summed."""
    a, wide = instruction.attributes, x.dtype
    dims: ConvolutionDims = a["dim_labels"]
    window: Window = a.get("window", Window(()))
    x = x.transpose(dims.input_batch, *dims.input_spatial, dims.input_feature)
    kernel = kernel.transpose(*dims.kernel_spatial, dims.kernel_input_feature, dims.kernel_output_feature)
    if any(o.shape.is_dynamic for o in instruction.operands):
        x, kernel, window = _present(x, kernel, window, a)
    counts = window_counts(window, x.shape[1:-1])
    padded = pad_array(x, np.zeros((), wide), [PadDim(0, 0), *dilated_padding(window), PadDim(0, 0)])
    product = _grouped(a.get("feature_group_count", 1), a.get("batch_group_count", 1), matmul)
    finite = kernel.dtype.kind in "iu" or bool(np.isfinite(kernel).all())
    real = pad_array(np.ones(x.shape[1:-1], bool), np.zeros((), bool), dilated_padding(window))
    out = None
    for position, where in taps(window, counts):
        part = product(padded[(slice(None), *where, slice(None))], kernel[position])
        if not finite:  # an infinite or NaN weight times the zero of padding or of a hole would give NaN
            part = np.where(real[where][None, ..., None], part, 0)
        out = part if out is None else out + part
    sizes = (x.shape[0] // a.get("batch_group_count", 1), *counts, kernel.shape[-1])
    if out is None:
        out = np.zeros(sizes, wide)
    order = (dims.output_batch, *dims.output_spatial, dims.output_feature)
    result = np.empty([n for _, n in sorted(zip(order, sizes, strict=True))], wide)
    result.transpose(order)[...] = out
    return result


def _present(x: Array, kernel: Array, window: Window, attributes: Mapping[str, Any]) -> tuple[Array, Array, Window]:
    """Operands of dynamic shape: cut to the features that both have, with a window of the kernel's present size.

    Raises InputError if the present sizes are not multiples of the group counts.
    """
    groups = attributes.get("feature_group_count", 1)
    if groups == 1:
        least = min(x.shape[-1], kernel.shape[-2])
        x, kernel = x[..., :least], kernel[..., :least, :]
    elif x.shape[-1] != kernel.shape[-2] * groups or kernel.shape[-1] % groups:
        raise InputError(f"{x.shape[-1]} input and {kernel.shape[-1]} output features do not fit {groups} groups")
    if x.shape[0] % attributes.get("batch_group_count", 1):
        raise InputError(f"a batch of {x.shape[0]} is not a multiple of batch_group_count")
    sized = tuple(replace(w, size=n) for w, n in zip(window.dims, kernel.shape, strict=False))
    return x, kernel, Window(sized)


def _grouped(feature_groups: int, batch_groups: int, matmul: Callable[[Array, Array], Array]):
    """A function: [batch, spatial…, in] × [in / groups, out] → [batch / batch groups, spatial…, out]."""

    def product(x: Array, weights: Array) -> Array:
        groups = max(feature_groups, batch_groups)
        if groups == 1:
            return matmul(x.reshape(math.prod(x.shape[:-1]), x.shape[-1]), weights).reshape(
                *x.shape[:-1], weights.shape[-1]
            )
        outs = weights.shape[-1] // groups
        if batch_groups > 1:
            # lhs batch index = group · (batch / groups) + b
            batch, spatial = x.shape[0] // groups, x.shape[1:-1]
            left = x.reshape(groups, batch * math.prod(spatial), x.shape[-1])
        else:
            batch, spatial = x.shape[0], x.shape[1:-1]
            left = x.reshape(batch * math.prod(spatial), groups, x.shape[-1] // groups).swapaxes(0, 1)
        right = weights.reshape(weights.shape[0], groups, outs).swapaxes(0, 1)
        out = matmul(left, right)  # [groups, batch·spatial, outs]
        return out.swapaxes(0, 1).reshape(batch, *spatial, groups * outs)

    return product
