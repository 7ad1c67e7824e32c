"""Convolutions and pooling."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from ..workload import Case, Draw, Register, fold_text, jax, lax, module_text, shape_text

CONVOLUTIONS = Register("convolutions")
POOLING = Register("pooling")


def _convolution(
    image: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: int = 1,
    dilation: int = 1,
    groups: int = 1,
    dtype: str = "f32",
    nchw: bool = False,
) -> Callable[[], Case]:
    """image: batch, sizes, channels. kernel: sizes, channels of a group, features. Padded to keep size / stride.

    nchw: the same with features in front of the sizes, in the kernel too.
    """

    def make() -> Case:
        sizes, window = image[1:-1], kernel[:-2]
        spatial = "012"[: len(sizes)]
        pads = [(dilation * (w - 1) // 2, dilation * (w - 1) - dilation * (w - 1) // 2) for w in window]
        out = [-(-n // stride) for n in sizes]
        fields = [f"size={'x'.join(map(str, window))}"]
        if stride > 1:
            fields.append("stride=" + "x".join([str(stride)] * len(window)))
        if any(map(any, pads)):
            fields.append("pad=" + "x".join(f"{a}_{b}" for a, b in pads))
        if dilation > 1:
            fields.append("rhs_dilate=" + "x".join([str(dilation)] * len(window)))
        grouped = f", feature_group_count={groups}" if groups > 1 else ""
        labels = f"bf{spatial}_oi{spatial}->bf{spatial}" if nchw else f"b{spatial}f_{spatial}io->b{spatial}f"
        result = (image[0], kernel[-1], *out) if nchw else (image[0], *out, kernel[-1])
        body = f"""
            ROOT r = {shape_text(dtype, result)} convolution(x, w), \
window={{{" ".join(fields)}}}, dim_labels={labels}{grouped}"""
        draw = Draw()
        scale = prod(kernel[:-1]) ** -0.5
        x, w = (image[0], image[-1], *sizes), (*kernel[:-3:-1], *window)
        if not nchw:
            x, w = image, kernel
        return Case(
            (draw.normal(*x, dtype=dtype), draw.normal(*w, scale=scale, dtype=dtype)),
            module_text([("x", shape_text(dtype, x)), ("w", shape_text(dtype, w))], body),
        )

    return make


CONVOLUTIONS.hlo("conv_3x3_64", _convolution((1, 56, 56, 64), (3, 3, 64, 64)))
CONVOLUTIONS.hlo("conv_3x3_256", _convolution((1, 14, 14, 256), (3, 3, 256, 256)))
CONVOLUTIONS.hlo("conv_3x3_bf16", _convolution((1, 56, 56, 32), (3, 3, 32, 32), dtype="bf16"))
CONVOLUTIONS.hlo("conv_1x1_256_64", _convolution((1, 56, 56, 256), (1, 1, 256, 64)))
CONVOLUTIONS.hlo("conv_7x7_stride_2", _convolution((1, 224, 224, 3), (7, 7, 3, 64), stride=2))
CONVOLUTIONS.hlo("conv_3x3_stride_2", _convolution((1, 56, 56, 64), (3, 3, 64, 128), stride=2))
CONVOLUTIONS.hlo("conv_3x3_dilated_2", _convolution((1, 56, 56, 32), (3, 3, 32, 32), dilation=2))
CONVOLUTIONS.hlo("conv_grouped_8", _convolution((1, 56, 56, 64), (3, 3, 8, 64), groups=8))
CONVOLUTIONS.hlo("conv_depthwise_128", _convolution((1, 112, 112, 128), (3, 3, 1, 128), groups=128))
CONVOLUTIONS.hlo("conv_3x3_odd", _convolution((2, 27, 29, 33), (3, 3, 33, 65)))
CONVOLUTIONS.hlo("conv_one_feature", _convolution((1, 65, 67, 16), (3, 3, 16, 1)))
CONVOLUTIONS.hlo("conv_nchw_64", _convolution((1, 28, 28, 64), (3, 3, 64, 64), nchw=True))
CONVOLUTIONS.hlo("conv_nchw_256", _convolution((1, 14, 14, 256), (3, 3, 256, 256), nchw=True))
CONVOLUTIONS.hlo("conv_nchw_bf16", _convolution((1, 28, 28, 64), (3, 3, 64, 64), dtype="bf16", nchw=True))
CONVOLUTIONS.hlo("conv_nchw_7x7_stride_2", _convolution((1, 112, 112, 3), (7, 7, 3, 64), stride=2, nchw=True))
CONVOLUTIONS.hlo("conv_1d_k9", _convolution((4, 4096, 64), (9, 64, 64)))
CONVOLUTIONS.hlo("conv_1d_causal_depthwise", _convolution((4, 2048, 256), (4, 1, 256), groups=256))
CONVOLUTIONS.hlo("conv_3d_3x3x3", _convolution((1, 16, 28, 28, 16), (3, 3, 3, 16, 32)))


@CONVOLUTIONS.jax("conv_gradient")
def _gradient() -> Case:
    def convolve(x, w):
        return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))

    draw = Draw()
    inputs = draw.normal(2, 28, 28, 64), draw.normal(3, 3, 64, 64, scale=1 / 24), draw.normal(2, 28, 28, 64)
    return Case(inputs, function=lambda x, w, seed: jax.vjp(convolve, x, w)[1](seed))


@CONVOLUTIONS.jax("conv_transposed")
def _transposed() -> Case:
    draw = Draw()
    return Case(
        (draw.normal(1, 28, 28, 64), draw.normal(4, 4, 64, 32, scale=1 / 32)),
        function=lambda x, w: lax.conv_transpose(x, w, (2, 2), "SAME"),
    )


def _pool(op: str, image: tuple[int, ...], size: int, stride: int) -> Callable[[], Case]:
    def make() -> Case:
        batch, height, width, channels = image
        out = (batch, (height - size) // stride + 1, (width - size) // stride + 1, channels)
        start = {"maximum": "-inf", "add": "0"}[op]
        body = f"""
            start = f32[] constant({start})
            ROOT r = {shape_text("f32", out)} reduce-window(x, start), \
window={{size=1x{size}x{size}x1 stride=1x{stride}x{stride}x1}}, to_apply=fold"""
        text = module_text([("x", shape_text("f32", image))], body, fold_text("fold", "f32", op))
        return Case((Draw().uniform(*image),), text)

    return make


POOLING.hlo("max_pool_3x3_stride_2", _pool("maximum", (1, 113, 113, 64), 3, 2))
POOLING.hlo("max_pool_2x2", _pool("maximum", (8, 56, 56, 64), 2, 2))
POOLING.hlo("max_pool_5x5_33", _pool("maximum", (2, 57, 59, 33), 5, 1))
POOLING.hlo("sum_pool_7x7", _pool("add", (1, 56, 56, 64), 7, 1))


@POOLING.jax("max_pool_gradient")
def _pool_gradient() -> Case:
    def pool(x):
        return lax.reduce_window(x, -np.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")

    draw = Draw()
    return Case(
        (draw.uniform(4, 56, 56, 64), draw.uniform(4, 28, 28, 64)),
        function=lambda x, seed: jax.vjp(pool, x)[1](seed)[0],
    )
