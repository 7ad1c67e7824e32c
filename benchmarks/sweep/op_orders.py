"""Programs of the suite `ops` that read memory in two orders, with rows a power of two apart, where the lines of a
column fall into few sets of a cache, and not.
"""

from __future__ import annotations

import itertools

from .op_text import add, array, braces, reducer

SIDES = (1000, 1024)

for dtype, n in itertools.product(("s32", "bf16", "f32", "f64"), SIDES):
    s, row = array(dtype, [n, n]), array(dtype, [n])
    turned = f"t = {s} transpose(p0), dimensions={{1,0}}"
    product, zero = f"m = {s} multiply(p0, t)", f"z = {dtype}[] constant(0)"
    add(f"add of a transpose {dtype} {n}", [s], turned, f"r = {s} add(p0, t)")
    add(
        f"select by a transpose {dtype} {n}",
        [s],
        turned,
        f"c = pred[{n},{n}] compare(p0, t), direction=LT",
        f"r = {s} select(c, p0, t)",
    )
    for axis in (0, 1):
        reduced = f"r = {row} reduce(m, z), dimensions={{{axis}}}, to_apply=f"
        add(
            f"sums of a product with a transpose {dtype} {n} {axis}",
            [s],
            turned,
            product,
            zero,
            reduced,
            before=reducer("add", dtype),
        )
    window = f"r = {array(dtype, [n // 2, n // 2])} reduce-window(m, z), window={{size=2x2 stride=2x2}}, to_apply=f"
    add(
        f"windows of a product with a transpose {dtype} {n}",
        [s],
        turned,
        product,
        zero,
        window,
        before=reducer("add", dtype),
    )
    sides = "lhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_batch_dims={1}, rhs_contracting_dims={0}"
    add(f"dot of rows and columns {dtype} {n}", [s, s], f"r = {row} dot(p0, p1), {sides}")

for dtype, dims in itertools.product(
    ("c64", "c128"), ([256, 256], [360, 360], [512, 512], [1024, 1024], [64, 64, 64], [60, 60, 60])
):
    s = array(dtype, dims)
    add(f"fft of all dimensions {dtype} {dims}", [s], f"r = {s} fft(p0), fft_type=FFT, fft_length={braces(dims)}")
