"""Programs of the suite `ops` that compute: elementwise, reductions, windows, sorts, products, convolutions, loops."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from .op_text import ALL_FLOATS, FLOATS, INTEGERS, TYPES, add, array, braces, reducer

# --- elementwise

N = 1 << 18
UNARY = [
    "abs",
    "cbrt",
    "ceil",
    "cosine",
    "erf",
    "exponential",
    "exponential-minus-one",
    "floor",
    "is-finite",
    "log",
    "log-plus-one",
    "logistic",
    "negate",
    "round-nearest-afz",
    "round-nearest-even",
    "rsqrt",
    "sign",
    "sine",
    "sqrt",
    "tan",
    "tanh",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atanh",
    "cosh",
    "sinh",
]
for op, dtype in itertools.product(UNARY, FLOATS):
    out = "pred" if op == "is-finite" else dtype
    add(f"{op} {dtype}", [array(dtype, [N])], f"r = {array(out, [N])} {op}(p0)")
for op, dtype in itertools.product(("abs", "negate", "not", "popcnt", "count-leading-zeros", "sign"), INTEGERS):
    if not (dtype.startswith("u") and op in ("abs", "negate", "sign")):
        add(f"{op} {dtype}", [array(dtype, [N])], f"r = {array(dtype, [N])} {op}(p0)")
for op, dtype in itertools.product(
    ("add", "multiply", "divide", "remainder", "maximum", "minimum", "power", "atan2", "subtract"), FLOATS
):
    add(f"{op} {dtype}", [array(dtype, [N])] * 2, f"r = {array(dtype, [N])} {op}(p0, p1)")
for op, dtype in itertools.product(
    ("add", "multiply", "divide", "remainder", "maximum", "power", "shift-left", "shift-right-arithmetic", "and"),
    INTEGERS,
):
    add(f"{op} {dtype}", [array(dtype, [N])] * 2, f"r = {array(dtype, [N])} {op}(p0, p1)")
for op, dtype in itertools.product(
    ("exponential", "log", "sqrt", "tanh", "cosine", "abs", "logistic"), ("c64", "c128")
):
    out = {"c64": "f32", "c128": "f64"}[dtype] if op == "abs" else dtype
    add(f"{op} {dtype}", [array(dtype, [N // 4])], f"r = {array(out, [N // 4])} {op}(p0)")
for op, dtype in itertools.product(("add", "multiply", "divide", "power", "atan2"), ("c64", "c128")):
    add(f"{op} {dtype}", [array(dtype, [N // 4])] * 2, f"r = {array(dtype, [N // 4])} {op}(p0, p1)")
for a, b in itertools.permutations((*TYPES, *ALL_FLOATS), 2):
    add(f"convert {a} {b}", [array(a, [N])], f"r = {array(b, [N])} convert(p0)")
for dtype in ("s8", "s32", "f16", "bf16", "f32", "f64"):
    s, p = array(dtype, [N]), array("pred", [N])
    add(f"select {dtype}", [p, s, s], f"r = {s} select(p0, p1, p2)")
    add(f"clamp {dtype}", [s] * 3, f"r = {s} clamp(p0, p1, p2)")
    add(f"compare {dtype}", [s] * 2, f"r = {p} compare(p0, p1), direction=LT")
add(
    "reduce-precision f32",
    [array("f32", [N])],
    f"r = {array('f32', [N])} reduce-precision(p0), exponent_bits=5, mantissa_bits=7",
)

# --- reductions

ROWS = (
    ("all", [1 << 20], [0], []),
    ("rows", [1024, 1024], [1], [1024]),
    ("columns", [1024, 1024], [0], [1024]),
    ("short rows", [100_000, 7], [1], [100_000]),
    ("rows of 33", [30_000, 33], [1], [30_000]),
    ("few columns", [100_000, 7], [0], [7]),
    ("one column of three", [300_000, 3], [0], [3]),
    ("long rows", [7, 100_000], [1], [7]),
    ("short columns", [7, 100_000], [0], [100_000]),
    ("outer and inner", [64, 64, 256], [0, 2], [64]),
    ("middle", [64, 64, 256], [1], [64, 256]),
    ("outer two", [64, 64, 256], [0, 1], [256]),
    ("inner two", [64, 64, 256], [1, 2], [64]),
    ("of four", [8, 28, 28, 64], [1, 2], [8, 64]),
    ("odd", [37, 129, 211], [0, 2], [129]),
)
START = {"add": "0", "multiply": "1", "maximum": "-inf", "minimum": "inf", "and": "true", "or": "false"}
KINDS = (
    *itertools.product(("add", "maximum"), (*FLOATS, "s32", "s8", "s64")),
    ("multiply", "f32"),
    ("multiply", "s32"),
    ("minimum", "f32"),
    ("and", "pred"),
    ("or", "pred"),
    ("add", "c64"),
)


def start(op: str, dtype: str) -> str:
    if op == "maximum" and dtype[0] in "su":
        return str(-(1 << int(dtype[1:]) - 1))
    return "(0, 0)" if dtype.startswith("c") else START[op]


for (op, dtype), (kind, dims, axes, out_dims) in itertools.product(KINDS, ROWS):
    add(
        f"reduce {op} {dtype} {kind}",
        [array(dtype, dims)],
        f"z = {dtype}[] constant({start(op, dtype)})",
        f"r = {array(dtype, out_dims)} reduce(p0, z), dimensions={braces(axes)}, to_apply=f",
        before=reducer(op, dtype),
    )

ARG = """f {{
  a = {t}[] parameter(0)
  i = s32[] parameter(1)
  b = {t}[] parameter(2)
  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GT
  n = pred[] compare(a, a), direction=NE
  p = pred[] or(g, n)
  e = pred[] compare(a, b), direction=EQ
  l = pred[] compare(i, j), direction=LT
  t = pred[] and(e, l)
  q = pred[] or(p, t)
  v = {t}[] select(p, a, b)
  k = s32[] select(q, i, j)
  ROOT r = ({t}[], s32[]) tuple(v, k)
}}
"""
for dtype, (kind, dims, axes, out_dims) in itertools.product(("f32", "bf16", "s32"), ROWS):
    if len(axes) == 1:
        out = f"({array(dtype, out_dims)}, {array('s32', out_dims)})"
        add(
            f"arg max {dtype} {kind}",
            [array(dtype, dims)],
            f"i = {array('s32', dims)} iota(), iota_dimension={axes[0]}",
            f"z = {dtype}[] constant({start('maximum', dtype)})",
            "n = s32[] constant(0)",
            f"r = {out} reduce(p0, i, z, n), dimensions={braces(axes)}, to_apply=f",
            before=ARG.format(t=dtype),
        )

# --- windows

WINDOWS = (
    ("cumulative", [1 << 14], [1 << 14], "size=16384 pad=16383_0"),
    ("cumulative rows", [256, 1024], [256, 1024], "size=1x1024 pad=0_0x1023_0"),
    ("cumulative columns", [1024, 256], [1024, 256], "size=1024x1 pad=1023_0x0_0"),
    ("five", [1 << 18], [1 << 18], "size=5 pad=2_2"),
    ("64", [1 << 16], [1 << 16], "size=64 pad=63_0"),
    ("pool 2", [4, 64, 64, 32], [4, 32, 32, 32], "size=1x2x2x1 stride=1x2x2x1"),
    ("pool 3", [4, 64, 64, 32], [4, 64, 64, 32], "size=1x3x3x1 pad=0_0x1_1x1_1x0_0"),
    ("pool 3 nchw", [4, 32, 64, 64], [4, 32, 64, 64], "size=1x1x3x3 pad=0_0x0_0x1_1x1_1"),
    ("dilated", [512, 512], [512, 508], "size=1x3 rhs_dilate=1x2"),
    ("base dilated", [256, 256], [256, 511], "size=1x1 lhs_dilate=1x2"),
    ("3d", [2, 16, 32, 32, 8], [2, 16, 32, 32, 8], "size=1x3x3x3x1 pad=0_0x1_1x1_1x1_1x0_0"),
)
for (op, dtype), (kind, dims, out_dims, window) in itertools.product(
    (
        ("add", "f32"),
        ("maximum", "f32"),
        ("add", "bf16"),
        ("maximum", "s8"),
        ("add", "s32"),
        ("add", "f64"),
        ("multiply", "f32"),
    ),
    WINDOWS,
):
    add(
        f"window {op} {dtype} {kind}",
        [array(dtype, dims)],
        f"z = {dtype}[] constant({start(op, dtype)})",
        f"r = {array(dtype, out_dims)} reduce-window(p0, z), window={{{window}}}, to_apply=f",
        before=reducer(op, dtype),
    )
for dtype in ("f32", "s32", "bf16"):
    add(
        f"select-and-scatter {dtype}",
        [array(dtype, [4, 32, 32, 16]), array(dtype, [4, 16, 16, 16])],
        f"z = {dtype}[] constant(0)",
        f"r = {array(dtype, [4, 32, 32, 16])} select-and-scatter(p0, p1, z), "
        "window={size=1x2x2x1 stride=1x2x2x1}, select=ge, scatter=f",
        before=reducer("add", dtype)
        + f"ge {{\n  a = {dtype}[] parameter(0)\n  b = {dtype}[] parameter(1)\n"
        + "  ROOT c = pred[] compare(a, b), direction=GE\n}\n",
    )

# --- sorts


def compared(types: Sequence[str], direction: str) -> str:
    lines = [f"  {k}{n} = {t}[] parameter({2 * n + (k == 'b')})" for n, t in enumerate(types) for k in "ab"]
    return "\n".join(["less {", *lines, f"  ROOT c = pred[] compare(a0, b0), direction={direction}", "}", ""])


for dtype, (kind, dims, axis) in itertools.product(
    ("f32", "s32", "bf16", "f64", "u8", "s64", "f16", "pred"),
    (
        ("long", [1 << 16], 0),
        ("rows of 8", [1 << 14, 8], 1),
        ("rows of 100", [1000, 100], 1),
        ("rows of 1000", [100, 1000], 1),
        ("columns", [1000, 100], 0),
        ("columns of 16", [16, 4096], 0),
    ),
):
    s = array(dtype, dims)
    add(
        f"sort {dtype} {kind}",
        [s],
        f"r = {s} sort(p0), dimensions={{{axis}}}, to_apply=less",
        before=compared([dtype], "LT"),
    )
    add(
        f"sort pairs {dtype} {kind}",
        [s, array("s32", dims)],
        f"r = ({s}, {array('s32', dims)}) sort(p0, p1), dimensions={{{axis}}}, is_stable=true, to_apply=less",
        before=compared([dtype, "s32"], "GT"),
    )
for dtype, (rows, size, k) in itertools.product(
    ("f32", "bf16", "s32"),
    ((64, 16384, 32), (1, 100_000, 10), (1000, 100, 5), (16, 4096, 1), (16, 4096, 2048), (4, 50257, 50)),
):
    s, i = array(dtype, [rows, k]), array("s32", [rows, k])
    add(
        f"top-k {dtype} {rows} x {size}, {k}",
        [array(dtype, [rows, size])],
        f"r = ({s}, {i}) topk(p0), k={k}, largest=true",
    )

# --- products and convolutions

SIZES = (
    (128, 128, 128),
    (1, 1024, 1024),
    (1024, 1024, 1),
    (1024, 1, 1024),
    (7, 300, 13),
    (64, 2048, 8),
    (33, 65, 129),
    (256, 64, 1000),
    (1, 100_000, 1),
)
DOTS = (
    ("f32", "f32"),
    ("f64", "f64"),
    ("bf16", "bf16"),
    ("bf16", "f32"),
    ("f16", "f16"),
    ("s8", "s32"),
    ("s32", "s32"),
    ("u8", "s32"),
    ("s16", "s32"),
    ("s64", "s64"),
    ("c64", "c64"),
    ("c128", "c128"),
)
for (dtype, out), (m, k, n), (left, right) in itertools.product(DOTS, SIZES, ((1, 0), (1, 1), (0, 0))):
    x = [m, k] if left else [k, m]
    y = [n, k] if right else [k, n]
    add(
        f"dot {dtype} {out} {'nt'[1 - left]}{'nt'[right]} {m}x{k}x{n}",
        [array(dtype, x), array(dtype, y)],
        f"r = {array(out, [m, n])} dot(p0, p1), lhs_contracting_dims={{{left}}}, rhs_contracting_dims={{{right}}}",
    )
for dtype, (batch, m, k, n) in itertools.product(
    ("f32", "bf16", "f64", "s8"),
    ((1000, 4, 4, 4), (100, 16, 16, 16), (12, 128, 64, 128), (64, 1, 64, 256), (10_000, 3, 3, 1)),
):
    add(
        f"dot batch {dtype} {batch} {m}x{k}x{n}",
        [array(dtype, [batch, m, k]), array(dtype, [batch, k, n])],
        f"r = {array('s32' if dtype == 's8' else dtype, [batch, m, n])} dot(p0, p1), "
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
    )
CONVOLUTIONS = (
    ("3x3", [2, 28, 28, 32], [3, 3, 32, 64], [2, 28, 28, 64], "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", ""),
    ("3x3 few", [2, 64, 64, 3], [3, 3, 3, 16], [2, 64, 64, 16], "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", ""),
    ("3x3 to one", [2, 64, 64, 16], [3, 3, 16, 1], [2, 64, 64, 1], "size=3x3 pad=1_1x1_1", "b01f_01io->b01f", ""),
    ("nchw", [2, 32, 28, 28], [64, 32, 3, 3], [2, 64, 28, 28], "size=3x3 pad=1_1x1_1", "bf01_oi01->bf01", ""),
    ("1x1", [2, 28, 28, 64], [1, 1, 64, 64], [2, 28, 28, 64], "size=1x1", "b01f_01io->b01f", ""),
    ("7x7", [1, 56, 56, 3], [7, 7, 3, 32], [1, 28, 28, 32], "size=7x7 stride=2x2 pad=3_3x3_3", "b01f_01io->b01f", ""),
    (
        "depthwise",
        [2, 28, 28, 64],
        [3, 3, 1, 64],
        [2, 28, 28, 64],
        "size=3x3 pad=1_1x1_1",
        "b01f_01io->b01f",
        ", feature_group_count=64",
    ),
    (
        "depthwise nchw",
        [2, 64, 28, 28],
        [64, 1, 3, 3],
        [2, 64, 28, 28],
        "size=3x3 pad=1_1x1_1",
        "bf01_oi01->bf01",
        ", feature_group_count=64",
    ),
    (
        "groups",
        [2, 28, 28, 32],
        [3, 3, 8, 32],
        [2, 28, 28, 32],
        "size=3x3 pad=1_1x1_1",
        "b01f_01io->b01f",
        ", feature_group_count=4",
    ),
    ("dilated", [2, 28, 28, 32], [3, 3, 32, 32], [2, 24, 24, 32], "size=3x3 rhs_dilate=2x2", "b01f_01io->b01f", ""),
    (
        "transposed",
        [2, 14, 14, 32],
        [3, 3, 32, 32],
        [2, 29, 29, 32],
        "size=3x3 pad=2_2x2_2 lhs_dilate=2x2",
        "b01f_01io->b01f",
        "",
    ),
    ("1d", [4, 1000, 32], [5, 32, 32], [4, 1000, 32], "size=5 pad=2_2", "b0f_0io->b0f", ""),
    ("1d signal", [1, 50_000, 1], [65, 1, 1], [1, 49_936, 1], "size=65", "b0f_0io->b0f", ""),
    (
        "3d",
        [1, 16, 16, 16, 8],
        [3, 3, 3, 8, 16],
        [1, 16, 16, 16, 16],
        "size=3x3x3 pad=1_1x1_1x1_1",
        "b012f_012io->b012f",
        "",
    ),
    ("weights", [28, 8, 28, 32], [28, 8, 28, 32], [3, 32, 3, 32], "size=28x28 pad=1_1x1_1", "0f1b_0i1o->0b1f", ""),
)
for dtype, (kind, x, w, out_dims, window, labels, more) in itertools.product(
    ("f32", "bf16", "f64", "s8", "f16"), CONVOLUTIONS
):
    out = "s32" if dtype == "s8" else dtype
    add(
        f"convolution {dtype} {kind}",
        [array(dtype, x), array(dtype, w)],
        f"r = {array(out, out_dims)} convolution(p0, p1), window={{{window}}}, dim_labels={labels}{more}",
    )

# --- others

for dtype, n in itertools.product(("f32", "f64"), (4, 32, 200)):
    batch = max(1, 4096 // n**2)
    s = array(dtype, [batch, n, n])
    add(
        f"triangular-solve {dtype} {n}",
        [s, s],
        f"i = {array('s32', [batch, n, n])} iota(), iota_dimension=1",
        f"j = {array('s32', [batch, n, n])} iota(), iota_dimension=2",
        f"e = {array('pred', [batch, n, n])} compare(i, j), direction=EQ",
        f"c = {dtype}[] constant(9)",
        f"d = {s} broadcast(c), dimensions={{}}",
        f"a = {s} select(e, d, p0)",
        f"r = {s} triangular-solve(a, p1), left_side=true, lower=true, transpose_a=NO_TRANSPOSE",
    )
for dtype, n in itertools.product(("c64", "c128"), (64, 1000, 1009, 4096)):
    s = array(dtype, [50_000 // n, n])
    add(f"fft {dtype} {n}", [s], f"r = {s} fft(p0), fft_type=FFT, fft_length={{{n}}}")
for algorithm, dtype in itertools.product(("rng_default", "rng_three_fry", "rng_philox"), ("u8", "u16", "u32", "u64")):
    state = "u64[2]" if algorithm != "rng_philox" else "u64[3]"
    add(
        f"{algorithm} {dtype}",
        [state],
        f"r = ({state}, {array(dtype, [N])}) rng-bit-generator(p0), algorithm={algorithm}",
    )
LOOP = """body {{
  t = (s32[], {s}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  x = {s} get-tuple-element(t), index=1
  one = s32[] constant(1)
  j = s32[] add(i, one)
  y = {s} {op}(x{more})
  ROOT r = (s32[], {s}) tuple(j, y)
}}
cond {{
  t = (s32[], {s}) parameter(0)
  i = s32[] get-tuple-element(t), index=0
  n = s32[] constant({trips})
  ROOT c = pred[] compare(i, n), direction=LT
}}
"""
for op, n, trips in (("sine", 8, 1000), ("sine", 1, 1000), ("add", 4096, 1000), ("multiply", 100_000, 100)):
    s = array("f32", [n])
    add(
        f"while {op} {n} x {trips}",
        [s],
        "z = s32[] constant(0)",
        f"t = (s32[], {s}) tuple(z, p0)",
        f"w = (s32[], {s}) while(t), condition=cond, body=body",
        f"r = {s} get-tuple-element(w), index=1",
        before=LOOP.format(s=s, op=op, more="" if op == "sine" else ", x", trips=trips),
    )
