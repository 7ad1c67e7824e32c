"""Convolutions whose input has holes, in tiles of positions so far apart that they meet the same window positions."""

import re

import pytest

from ...codegen.options import EmitOptions, Target
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, parsed

Axis = tuple[int, int, int, int, int, int, int, int]
"""Of one dimension: input, window, stride, padding low and high, holes, dilation of the window, reversal."""


def count(axis: Axis) -> int:
    size, window, stride, low, high, holes, dilation, _ = axis
    return ((size - 1) * holes + low + high - (window - 1) * dilation) // stride + 1


def text_of(dtype: str, axes: tuple[Axis, Axis], batch: int, ins: int, outs: int) -> str:
    names = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")
    values = [(w, s, f"{low}_{high}", h, d, r) for _, w, s, low, high, h, d, r in axes]
    window = " ".join(f"{name}={v}x{w}" for name, v, w in zip(names, *values, strict=True))
    (y, x), (ky, kx), (ry, rx) = [a[0] for a in axes], [a[1] for a in axes], map(count, axes)
    return f"""HloModule m
ENTRY e {{
  x = {dtype}[{batch},{y},{x},{ins}] parameter(0)
  k = {dtype}[{ky},{kx},{ins},{outs}] parameter(1)
  ROOT c = {dtype}[{batch},{ry},{rx},{outs}] convolution(x, k), window={{{window}}}, dim_labels=b01f_01io->b01f
}}
"""


AXES = {
    "a transposed convolution": (15, 4, 1, 2, 2, 2, 1, 0),
    "a rest of each phase": (17, 5, 1, 3, 1, 3, 1, 1),
    "phases that meet nothing": (29, 3, 1, 1, 2, 4, 2, 0),
    "a stride that divides the holes": (31, 4, 2, 1, 1, 4, 1, 0),
    "a stride and holes without a common divisor": (25, 4, 3, 2, 0, 2, 1, 0),
    "a stride of all holes": (33, 5, 2, 2, 2, 2, 1, 0),
    "positions that are cut off": (30, 4, 1, -3, -2, 2, 3, 1),
    "windows in the padding": (9, 3, 1, 5, 6, 1, 1, 0),
    "few positions": (3, 4, 1, 2, 2, 2, 1, 0),
}


@pytest.mark.parametrize("other", [(5, 2, 1, 1, 1, 1, 1, 0), (7, 3, 1, 1, 2, 2, 1, 0)])
@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_positions_of_a_tile_have_others_between_them(dtype, axis, other):
    check(text_of(dtype, (other, AXES[axis]), 2, 96, 32), None, ("evaluator", "legacy", "mlir"))
    check(text_of(dtype, (AXES[axis], other), 1, 400, 16), None, ("evaluator", "legacy", "mlir"))


@pytest.mark.parametrize("stack, tile", [("legacy", "5x16"), ("mlir", "6x16x16")])
def test_a_transposed_convolution_is_in_tiles(stack, tile):
    """One position at a time has too few sums to keep a processor busy."""
    text = text_of("f32", ((28, 4, 1, 2, 2, 2, 1, 0),) * 2, 1, 64, 32)
    helpers = emitter(stack).emit(plan(parsed(text)).kernels, EmitOptions(Target.level("x86-64-v3"))).helpers
    assert re.search(rf"{stack}\.window\.f32\.f32\.f32\.{tile}\.", "".join(helpers))
