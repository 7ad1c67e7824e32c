"""Programs of the suite `ops`: indices along other dimensions, parts of fusions, products in other orders, convolutions
and transforms in less usual forms, loops that write and read rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from .op_text import add, array, braces, reducer

N = 1 << 18

# --- indices along other dimensions

for dtype, index in itertools.product(("s8", "bf16", "f32", "s64"), ("s32", "s64", "u8")):
    add(
        f"gather of columns {dtype} {index}",
        [array(dtype, [512, 512]), array(index, [256, 1])],
        f"r = {array(dtype, [512, 256])} gather(p0, p1), offset_dims={{0}}, collapsed_slice_dims={{1}}, "
        "start_index_map={1}, index_vector_dim=1, slice_sizes={512,1}",
    )
    for kind, dims, out, axis in (
        ("rows", [512, 512], [512, 256], 1),
        ("columns", [512, 512], [256, 512], 0),
        ("one of a row", [16_384, 32], [16_384, 1], 1),
    ):
        other = 1 - axis
        ones = "{" + "1,1" + "}"
        add(
            f"take along {kind} {dtype} {index}",
            [array(dtype, dims), array(index, [*out, 1])],
            f"r = {array(dtype, out)} gather(p0, p1), offset_dims={{}}, collapsed_slice_dims={{{axis}}}, "
            f"start_index_map={{{axis}}}, operand_batching_dims={{{other}}}, start_indices_batching_dims={{{other}}}, "
            f"index_vector_dim=2, slice_sizes={ones}",
        )
    add(
        f"gather of windows {dtype} {index}",
        [array(dtype, [256, 256]), array(index, [500, 2])],
        f"r = {array(dtype, [500, 8, 8])} gather(p0, p1), offset_dims={{1,2}}, collapsed_slice_dims={{}}, "
        "start_index_map={0,1}, index_vector_dim=1, slice_sizes={8,8}",
    )
    if index == "u8":
        continue
    for op in ("add", "maximum"):
        add(
            f"scatter {op} to columns {dtype} {index}",
            [array(dtype, [512, 512]), array(index, [256, 1]), array(dtype, [512, 256])],
            f"r = {array(dtype, [512, 512])} scatter(p0, p1, p2), update_window_dims={{0}}, "
            "inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=f",
            before=reducer(op, dtype),
        )
        add(
            f"scatter {op} along rows {dtype} {index}",
            [array(dtype, [512, 512]), array(index, [512, 256, 1]), array(dtype, [512, 256])],
            f"r = {array(dtype, [512, 512])} scatter(p0, p1, p2), update_window_dims={{}}, inserted_window_dims={{1}}, "
            "scatter_dims_to_operand_dims={1}, input_batching_dims={0}, scatter_indices_batching_dims={0}, "
            "index_vector_dim=2, to_apply=f",
            before=reducer(op, dtype),
        )
        add(
            f"scatter {op} of elements {dtype} {index}",
            [array(dtype, [512, 512]), array(index, [50_000, 2]), array(dtype, [50_000])],
            f"r = {array(dtype, [512, 512])} scatter(p0, p1, p2), update_window_dims={{}}, "
            "inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=f",
            before=reducer(op, dtype),
        )
for dtype, index, (n, depth) in itertools.product(
    ("f32", "bf16", "s8", "s32"), ("s32", "u8"), ((4096, 64), (20_000, 10), (300, 1000))
):
    dims = [n, depth]
    add(
        f"one hot {dtype} {index} {n} x {depth}",
        [array(index, [n])],
        f"i = {array(index, dims)} iota(), iota_dimension=1",
        f"b = {array(index, dims)} broadcast(p0), dimensions={{0}}",
        f"e = {array('pred', dims)} compare(i, b), direction=EQ",
        f"r = {array(dtype, dims)} convert(e)",
    )

# --- movement: many operands, parts of fusions, other layouts

for dtype in ("s8", "bf16", "f32", "f64"):
    add(
        f"concatenate of eight {dtype}",
        [array(dtype, [256, n]) for n in (1, 2, 3, 5, 8, 13, 64, 128)],
        f"r = {array(dtype, [256, 224])} concatenate(p0, p1, p2, p3, p4, p5, p6, p7), dimensions={{1}}",
    )
    add(
        f"add to a concatenation {dtype}",
        [array(dtype, [512, 256]), array(dtype, [512, 100]), array(dtype, [512, 356])],
        f"c = {array(dtype, [512, 356])} concatenate(p0, p1), dimensions={{1}}",
        f"r = {array(dtype, [512, 356])} add(c, p2)",
    )
    add(
        f"rotated halves {dtype}",
        [array(dtype, [2048, 64]), array(dtype, [2048, 64]), array(dtype, [2048, 64])],
        f"a = {array(dtype, [2048, 32])} slice(p0), slice={{[0:2048], [0:32]}}",
        f"b = {array(dtype, [2048, 32])} slice(p0), slice={{[0:2048], [32:64]}}",
        f"n = {array(dtype, [2048, 32])} negate(b)",
        f"c = {array(dtype, [2048, 64])} concatenate(n, a), dimensions={{1}}",
        f"d = {array(dtype, [2048, 64])} multiply(c, p1)",
        f"e = {array(dtype, [2048, 64])} multiply(p0, p2)",
        f"r = {array(dtype, [2048, 64])} add(d, e)",
    )
    for n in (3, 10, 20):
        s, k = array(dtype, [N // n, n]), array(dtype, [N // n, n, 2])
        add(
            f"interleaved rows {dtype} {n}",
            [s, s],
            f"a = {array(dtype, [N // n, n, 1])} reshape(p0)",
            f"b = {array(dtype, [N // n, n, 1])} reshape(p1)",
            f"r = {k} concatenate(a, b), dimensions={{2}}",
        )
        add(
            f"rows beside each other {dtype} {n}",
            [s, s],
            f"r = {array(dtype, [N // n, 2 * n])} concatenate(p0, p1), dimensions={{1}}",
        )
        add(
            f"first of rows {dtype} {n}",
            [s],
            f"r = {array(dtype, [N // n, 1])} slice(p0), slice={{[0:{N // n}], [0:1]}}",
        )
        add(
            f"rows without the last {dtype} {n}",
            [s],
            f"r = {array(dtype, [N // n, n - 1])} slice(p0), slice={{[0:{N // n}], [0:{n - 1}]}}",
        )
    for dims, axes in (([64, 64, 64], [1]), ([64, 64, 64], [0, 2]), ([10_000, 5, 5], [1]), ([50_000, 4], [1])):
        s = array(dtype, dims)
        add(f"reverse {dtype} {dims} {axes} of many", [s], f"r = {s} reverse(p0), dimensions={braces(axes)}")
    for dims, order in (
        ([128, 3, 32, 32], [0, 2, 3, 1]),
        ([128, 32, 32, 3], [0, 3, 1, 2]),
        ([8, 128, 12, 64], [0, 2, 1, 3]),
        ([8, 12, 128, 64], [0, 1, 3, 2]),
        ([10_000, 5, 5], [0, 2, 1]),
        ([2, 2, 65_536], [1, 2, 0]),
        ([20, 13_000], [1, 0]),
    ):
        out = [dims[d] for d in order]
        add(
            f"transpose {dtype} {dims} {order}",
            [array(dtype, dims)],
            f"r = {array(dtype, out)} transpose(p0), dimensions={braces(order)}",
        )
    s = array(dtype, [512, 512])
    add(
        f"stencil {dtype}",
        [s],
        *(
            f"x{a}{b} = {array(dtype, [510, 510])} slice(p0), slice={{[{a}:{510 + a}], [{b}:{510 + b}]}}"
            for a, b in ((0, 1), (1, 0), (1, 2), (2, 1))
        ),
        f"a = {array(dtype, [510, 510])} add(x01, x10)",
        f"b = {array(dtype, [510, 510])} add(x12, x21)",
        f"r = {array(dtype, [510, 510])} add(a, b)",
    )
    for kind, axis in (("rows", 1), ("columns", 0)):
        parts = ([f"[0:512], [{a}:{b}]", f"[{a}:{b}], [0:512]"][1 - axis] for a, b in ((505, 512), (0, 505)))
        halves = [[512, n] if axis else [n, 512] for n in (7, 505)]
        add(
            f"roll of {kind} {dtype}",
            [s],
            *(f"x{n} = {array(dtype, halves[n])} slice(p0), slice={{{part}}}" for n, part in enumerate(parts)),
            f"r = {s} concatenate(x0, x1), dimensions={{{axis}}}",
        )
    add(
        f"triangle {dtype}",
        [s],
        "i = s32[512,512] iota(), iota_dimension=0",
        "j = s32[512,512] iota(), iota_dimension=1",
        "c = pred[512,512] compare(i, j), direction=GE",
        f"z = {dtype}[] constant(0)",
        f"b = {s} broadcast(z), dimensions={{}}",
        f"r = {s} select(c, p0, b)",
    )

# --- products in other orders and of other types

ORDERS = (
    ("batch last", [64, 32, 16], [32, 64, 16], [2], [2], [1], [0], [16, 64, 64]),
    ("batch middle", [64, 16, 32], [32, 16, 64], [1], [1], [2], [0], [16, 64, 64]),
    ("heads", [4, 128, 8, 32], [4, 128, 8, 32], [0, 2], [0, 2], [3], [3], [4, 8, 128, 128]),
    ("heads back", [4, 8, 128, 128], [4, 128, 8, 32], [0, 1], [0, 2], [3], [1], [4, 8, 128, 32]),
    ("two contracted", [64, 16, 32], [16, 32, 64], [], [], [1, 2], [0, 1], [64, 64]),
    ("two contracted crossing", [16, 64, 32], [32, 64, 16], [], [], [0, 2], [2, 0], [64, 64]),
    ("matrix vector", [1000, 1000], [1000], [], [], [1], [0], [1000]),
    ("vector matrix", [1000], [1000, 1000], [], [], [0], [0], [1000]),
    ("batch of vectors", [256, 32, 64], [256, 64], [0], [0], [2], [1], [256, 32]),
    ("vectors", [4096, 64], [4096, 64], [0], [0], [1], [1], [4096]),
    ("columns", [64, 4096], [64, 4096], [1], [1], [0], [0], [4096]),
    ("outer", [1000], [1000], [], [], [], [], [1000, 1000]),
    ("batch of outer", [1000, 16], [1000, 16], [0], [0], [], [], [1000, 16, 16]),
    ("2 x 2", [10_000, 2, 2], [10_000, 2, 2], [0], [0], [2], [1], [10_000, 2, 2]),
    ("3 x 3", [10_000, 3, 3], [10_000, 3, 3], [0], [0], [2], [1], [10_000, 3, 3]),
    ("2 x 2 last", [2, 2, 10_000], [2, 2, 10_000], [2], [2], [1], [0], [10_000, 2, 2]),
    ("points times 3 x 3", [50_000, 3], [3, 3], [], [], [1], [0], [50_000, 3]),
    ("ten classes", [256, 784], [784, 10], [], [], [1], [0], [256, 10]),
    ("gradient of ten classes", [256, 784], [256, 10], [], [], [0], [0], [784, 10]),
)
for (left, right, made), (kind, x, y, bx, by, cx, cy, dims) in itertools.product(
    (
        ("f32", "f32", "f32"),
        ("bf16", "bf16", "bf16"),
        ("bf16", "bf16", "f32"),
        ("f16", "f16", "f32"),
        ("f64", "f64", "f64"),
        ("u8", "s8", "s32"),
        ("s8", "s8", "s32"),
        ("s16", "s16", "s32"),
        ("s32", "s32", "s32"),
        ("c64", "c64", "c64"),
        ("f8e4m3fn", "f8e4m3fn", "f32"),
    ),
    ORDERS,
):
    contracted = ", ".join(
        f"{side}_{what}_dims={braces(found)}"
        for side, what, found in (
            ("lhs", "batch", bx),
            ("rhs", "batch", by),
            ("lhs", "contracting", cx),
            ("rhs", "contracting", cy),
        )
        if found
    )
    add(
        f"dot {kind} {left} {right} {made}",
        [array(left, x), array(right, y)],
        f"r = {array(made, dims)} dot(p0, p1)" + (", " if contracted else "") + contracted,
    )
for dtype, (rows, depth, columns) in itertools.product(("s8", "s4", "u4", "s16"), ((1, 1024, 1024), (64, 512, 256))):
    for wide in ("bf16", "f32"):
        add(
            f"dot with weights of {dtype} in {wide} {rows}x{depth}x{columns}",
            [array(wide, [rows, depth]), array(dtype, [depth, columns])],
            f"w = {array(wide, [depth, columns])} convert(p1)",
            f"r = {array(wide, [rows, columns])} dot(p0, w), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}",
        )

CONVOLUTIONS: Sequence[tuple[str, list[int], list[int], list[int], str, str, str]] = (
    ("patches 16", [1, 112, 112, 3], [16, 16, 3, 64], [1, 7, 7, 64], "size=16x16 stride=16x16", "b01f_01io->b01f", ""),
    ("1x1 stride 2", [2, 28, 28, 64], [1, 1, 64, 64], [2, 14, 14, 64], "size=1x1 stride=2x2", "b01f_01io->b01f", ""),
    (
        *("causal", [4, 512, 64], [4, 1, 64], [4, 512, 64], "size=4 pad=3_0", "b0f_0io->b0f"),
        ", feature_group_count=64",
    ),
    (
        "causal nct",
        [4, 64, 512],
        [64, 1, 4],
        [4, 64, 512],
        "size=4 pad=3_0",
        "bf0_oi0->bf0",
        ", feature_group_count=64",
    ),
    ("1d dilated", [2, 1000, 16], [3, 16, 32], [2, 1000, 32], "size=3 pad=8_8 rhs_dilate=8", "b0f_0io->b0f", ""),
    ("1d nct", [2, 16, 1000], [32, 16, 9], [2, 32, 1000], "size=9 pad=4_4", "bf0_oi0->bf0", ""),
    ("1d stride 4", [2, 4000, 1], [16, 1, 32], [2, 997, 32], "size=16 stride=4", "b0f_0io->b0f", ""),
    (
        *("multiplied", [2, 28, 28, 32], [3, 3, 1, 64], [2, 28, 28, 64], "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"),
        ", feature_group_count=32",
    ),
    (
        *("batch groups", [8, 14, 14, 16], [3, 3, 16, 32], [2, 14, 14, 32], "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"),
        ", batch_group_count=4",
    ),
    (
        *("transposed 4x4", [2, 16, 16, 32], [4, 4, 32, 16], [2, 32, 32, 16]),
        *("size=4x4 pad=2_2x2_2 lhs_dilate=2x2", "b01f_01io->b01f", ""),
    ),
    ("reversed", [2, 28, 28, 16], [3, 3, 16, 16], [2, 26, 26, 16], "size=3x3 rhs_reversal=1x1", "b01f_01io->b01f", ""),
    (
        *("3d depthwise", [1, 16, 16, 16, 16], [3, 3, 3, 1, 16], [1, 14, 14, 14, 16], "size=3x3x3"),
        *("b012f_012io->b012f", ", feature_group_count=16"),
    ),
    ("image", [1, 256, 256, 1], [5, 5, 1, 1], [1, 252, 252, 1], "size=5x5", "b01f_01io->b01f", ""),
    (
        "two groups",
        [2, 14, 14, 32],
        [3, 3, 16, 32],
        [2, 14, 14, 32],
        "size=3x3 pad=1_1x1_1",
        "b01f_01io->b01f",
        ", feature_group_count=2",
    ),
    ("no pixels", [64, 256], [256, 64], [64, 64], "", "bf_io->bf", ""),
)
for (dtype, made), (kind, x, w, out_dims, window, labels, more) in itertools.product(
    (("f32", "f32"), ("bf16", "bf16"), ("f16", "f16"), ("s8", "s32"), ("s16", "s32"), ("s32", "s32"), ("f64", "f64")),
    CONVOLUTIONS,
):
    shape = f"window={{{window}}}, " if window else ""
    add(
        f"convolution {dtype} {kind}",
        [array(dtype, x), array(dtype, w)],
        f"r = {array(made, out_dims)} convolution(p0, p1), {shape}dim_labels={labels}{more}",
    )

# --- transforms, factors, loops

for kind, dtype, dims, out_dims, length in (
    ("RFFT", "f32", [64, 1024], [64, 513], [1024]),
    ("RFFT", "f32", [1000, 100], [1000, 51], [100]),
    ("RFFT", "f64", [64, 1024], [64, 513], [1024]),
    ("RFFT", "f32", [8, 64, 64], [8, 64, 33], [64, 64]),
    ("IRFFT", "c64", [64, 513], [64, 1024], [1024]),
    ("IRFFT", "c64", [1000, 51], [1000, 100], [100]),
    ("IRFFT", "c64", [8, 64, 33], [8, 64, 64], [64, 64]),
    ("IFFT", "c64", [64, 1024], [64, 1024], [1024]),
    ("FFT", "c64", [20_000, 4], [20_000, 4], [4]),
    ("FFT", "c64", [10_000, 8], [10_000, 8], [8]),
    ("FFT", "c64", [2000, 60], [2000, 60], [60]),
    ("FFT", "c64", [2000, 31], [2000, 31], [31]),
    ("FFT", "c64", [500, 101], [500, 101], [101]),
    ("FFT", "c64", [1, 1 << 16], [1, 1 << 16], [1 << 16]),
    ("FFT", "c64", [1, 65_537], [1, 65_537], [65_537]),
):
    result = {"RFFT": {"f32": "c64", "f64": "c128"}.get(dtype), "IRFFT": "f32"}.get(kind, dtype)
    add(
        f"{kind} {dtype} {dims} {length}",
        [array(dtype, dims)],
        f"r = {array(str(result), out_dims)} fft(p0), fft_type={kind}, fft_length={braces(length)}",
    )
for dtype, (batch, n) in itertools.product(("f32", "f64"), ((1000, 4), (16, 32), (1, 200))):
    s = array(dtype, [batch, n, n])
    add(
        f"cholesky {dtype} {batch} x {n}",
        [s],
        f"i = {array('s32', [batch, n, n])} iota(), iota_dimension=1",
        f"j = {array('s32', [batch, n, n])} iota(), iota_dimension=2",
        f"e = {array('pred', [batch, n, n])} compare(i, j), direction=EQ",
        f"c = {dtype}[] constant(999)",
        f"d = {s} broadcast(c), dimensions={{}}",
        f"a = {s} select(e, d, p0)",
        f"r = {s} cholesky(a), lower=true",
    )
BODY = """body {{
  t = (s32[], {s}, {u}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = {s} get-tuple-element(t), index=1
  u = {u} get-tuple-element(t), index=2
  z = s32[] constant(0)
  one = s32[] constant(1)
  j = s32[] add(i, one)
{lines}
  ROOT r = (s32[], {s}, {u}) tuple(j, y, v)
}}
cond {{
  t = (s32[], {s}, {u}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant({trips})
  ROOT c = pred[] compare(i, n), direction=LT
}}
"""
for dtype, (n, width) in itertools.product(("f32", "bf16", "s8"), ((256, 64), (1000, 8), (100, 1024))):
    s, u, row = array(dtype, [n, width]), array(dtype, [width]), array(dtype, [1, width])
    for kind, lines in (
        (
            "rows written",
            (
                f"v = {u} add(u, u)",
                f"w = {row} reshape(v)",
                f"y = {s} dynamic-update-slice(x, w, i, z)",
            ),
        ),
        (
            "rows read",
            (
                f"w = {row} dynamic-slice(x, i, z), dynamic_slice_sizes={{1,{width}}}",
                f"k = {u} reshape(w)",
                f"v = {u} add(u, k)",
                f"y = {s} copy(x)",
            ),
        ),
        (
            "running sum",
            (
                f"w = {row} dynamic-slice(x, i, z), dynamic_slice_sizes={{1,{width}}}",
                f"k = {u} reshape(w)",
                f"v = {u} add(u, k)",
                f"q = {row} reshape(v)",
                f"y = {s} dynamic-update-slice(x, q, i, z)",
            ),
        ),
    ):
        add(
            f"loop: {kind} {dtype} {n} x {width}",
            [s, u],
            "z = s32[] constant(0)",
            f"t = (s32[], {s}, {u}) tuple(z, p0, p1)",
            f"w = (s32[], {s}, {u}) while(t), condition=cond, body=body",
            f"a = {s} get-tuple-element(w), index=1",
            f"b = {u} get-tuple-element(w), index=2",
            f"r = ({s}, {u}) tuple(a, b)",
            before=BODY.format(s=s, u=u, lines="\n".join("  " + line for line in lines), trips=n),
        )
