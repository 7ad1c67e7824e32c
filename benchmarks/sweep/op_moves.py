"""Programs of the suite `ops` that move elements: transposes, slices, pads, copies, gathers, scatters."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from .op_text import PROGRAMS, add, array, braces, reducer

N = 1 << 18

# --- movement

PERMUTATIONS = (
    ([1024, 1024], [1, 0]),
    ([1000, 333], [1, 0]),
    ([100_000, 3], [1, 0]),
    ([3, 100_000], [1, 0]),
    ([64, 64, 64], [2, 1, 0]),
    ([64, 64, 64], [0, 2, 1]),
    ([64, 64, 64], [1, 0, 2]),
    ([8, 28, 28, 64], [0, 3, 1, 2]),
    ([8, 64, 28, 28], [0, 2, 3, 1]),
    ([12, 128, 64], [1, 0, 2]),
    ([4, 8, 16, 32, 16], [4, 2, 0, 3, 1]),
    ([17, 19, 23, 29], [3, 1, 2, 0]),
)
for dtype, (dims, order) in itertools.product(("s8", "bf16", "f32", "f64", "c128"), PERMUTATIONS):
    out = [dims[d] for d in order]
    add(
        f"transpose {dtype} {dims} {order}",
        [array(dtype, dims)],
        f"r = {array(dtype, out)} transpose(p0), dimensions={braces(order)}",
    )
for dtype, dims in itertools.product(("s8", "bf16", "f32", "f64"), ([N], [512, 512], [100_000, 3], [8, 28, 28, 64])):
    for axes in ([0], [len(dims) - 1], list(range(len(dims)))):
        if f"reverse {dtype} {dims} {axes}" not in PROGRAMS:
            s = array(dtype, dims)
            add(f"reverse {dtype} {dims} {axes}", [s], f"r = {s} reverse(p0), dimensions={braces(axes)}")
PADS = (
    ([512, 512], [514, 514], "1_1x1_1"),
    ([512, 512], [1023, 1023], "0_0_1x0_0_1"),
    ([512, 512], [510, 510], "-1_-1x-1_-1"),
    ([8, 28, 28, 64], [8, 30, 30, 64], "0_0x1_1x1_1x0_0"),
    ([8, 64, 28, 28], [8, 64, 30, 30], "0_0x0_0x1_1x1_1"),
    ([100_000, 3], [100_000, 4], "0_0x0_1"),
)
for dtype, (dims, out_dims, padding) in itertools.product(("s8", "bf16", "f32", "f64"), PADS):
    add(
        f"pad {dtype} {dims} {padding}",
        [array(dtype, dims)],
        f"z = {dtype}[] constant(0)",
        f"r = {array(dtype, out_dims)} pad(p0, z), padding={padding}",
    )
SLICES = (
    ([1024, 1024], "[0:1024:2], [0:1024:2]", [512, 512]),
    ([1024, 1024], "[1:1023], [1:1023]", [1022, 1022]),
    ([1024, 1024], "[0:1024], [0:1024:4]", [1024, 256]),
    ([1 << 20], "[5:1048576:3]", [349_524]),
    ([64, 64, 256], "[0:64], [10:50], [3:200]", [64, 40, 197]),
)
for dtype, (dims, bounds, out_dims) in itertools.product(("s8", "bf16", "f32", "f64"), SLICES):
    add(f"slice {dtype} {bounds}", [array(dtype, dims)], f"r = {array(dtype, out_dims)} slice(p0), slice={{{bounds}}}")
for dtype in ("s8", "bf16", "f32", "f64"):
    for dims, axis in (([512, 512], 0), ([512, 512], 1), ([100_000, 3], 1), ([1000, 1, 64], 1)):
        out = [2 * n if d == axis else n for d, n in enumerate(dims)]
        add(
            f"concatenate {dtype} {dims} {axis}",
            [array(dtype, dims)] * 2,
            f"r = {array(dtype, out)} concatenate(p0, p1), dimensions={{{axis}}}",
        )
    for dims, axes, out in (
        ([512], [0], [512, 512]),
        ([512], [1], [512, 512]),
        ([64, 64], [0, 2], [64, 64, 64]),
        ([1000], [0], [1000, 3]),
        ([3], [1], [100_000, 3]),
    ):
        add(
            f"broadcast {dtype} {dims} {axes} {out}",
            [array(dtype, dims)],
            f"r = {array(dtype, out)} broadcast(p0), dimensions={braces(axes)}",
        )
    for dims, a, b in (([512, 512], [1, 0], [0, 1]), ([8, 28, 28, 64], [3, 2, 1, 0], [2, 1, 3, 0])):
        add(f"copy {dtype} {dims} {b}", [array(dtype, dims, a)], f"r = {array(dtype, dims, b)} copy(p0)")
    add(f"iota {dtype}", [], f"r = {array(dtype, [512, 512])} iota(), iota_dimension=1")
    add(f"reshape {dtype}", [array(dtype, [512, 512], [0, 1])], f"r = {array(dtype, [1 << 18])} reshape(p0)")

# --- gathers, scatters, slices at computed places


def gathered(dims: Sequence[int], count: int, sizes: Sequence[int]) -> tuple[list[int], str]:
    """(result dims, attributes) of a gather of slices along the first dimension."""
    offsets = list(range(1, len(dims)))
    attributes = (
        f"offset_dims={braces(offsets)}, collapsed_slice_dims={{0}}, start_index_map={{0}}, "
        f"index_vector_dim=1, slice_sizes={braces([1, *sizes])}"
    )
    return [count, *sizes], attributes


for dtype in ("s8", "bf16", "f32", "f64"):
    for dims, count in (
        ([1 << 16], 1 << 16),
        ([1000, 64], 4096),
        ([1000, 3], 30_000),
        ([512, 512], 512),
        ([50, 20, 20], 500),
    ):
        out, attributes = gathered(dims, count, dims[1:])
        add(
            f"gather {dtype} {dims} {count}",
            [array(dtype, dims), array("s32", [count, 1])],
            f"r = {array(dtype, out)} gather(p0, p1), {attributes}",
        )
        for op in ("add", "maximum", "second"):
            body = (
                reducer(op, dtype)
                if op != "second"
                else (f"f {{\n  a = {dtype}[] parameter(0)\n  ROOT b = {dtype}[] parameter(1)\n}}\n")
            )
            add(
                f"scatter {op} {dtype} {dims} {count}",
                [array(dtype, dims), array("s32", [count, 1]), array(dtype, out)],
                f"r = {array(dtype, dims)} scatter(p0, p1, p2), update_window_dims={braces([*range(1, len(dims))])}, "
                "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f",
                before=body,
            )
    s = array(dtype, [512, 512])
    add(
        f"gather elements {dtype}",
        [s, array("s32", [1 << 16, 2])],
        f"r = {array(dtype, [1 << 16])} gather(p0, p1), offset_dims={{}}, collapsed_slice_dims={{0,1}}, "
        "start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}",
    )
    add(
        f"dynamic-slice {dtype}",
        [s, "s32[]", "s32[]"],
        f"r = {array(dtype, [256, 300])} dynamic-slice(p0, p1, p2), dynamic_slice_sizes={{256,300}}",
    )
    add(
        f"dynamic-update-slice {dtype}",
        [s, array(dtype, [256, 300]), "s32[]", "s32[]"],
        f"r = {s} dynamic-update-slice(p0, p1, p2, p3)",
    )
