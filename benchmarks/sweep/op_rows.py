"""Programs of the suite `ops`: rows of few elements and of broadcast operands, conversions beside an operation, middle
dimensions, windows of integers, keys with payloads.
"""

from __future__ import annotations

import itertools

from .op_text import add, array, braces, reducer
from .op_values import compared, start

N = 1 << 18

# --- rows of few elements, with operands that are broadcast

for dtype, n in itertools.product(("f32", "bf16", "f16", "s8", "f64"), (3, 5, 10, 12, 20, 33, 100)):
    rows = N // n
    s, row, column = array(dtype, [rows, n]), array(dtype, [n]), array(dtype, [rows])
    add(
        f"rows plus a row {dtype} {n}",
        [s, row],
        f"b = {s} broadcast(p1), dimensions={{1}}",
        f"r = {s} add(p0, b)",
    )
    add(
        f"rows times a column {dtype} {n}",
        [s, column],
        f"b = {s} broadcast(p1), dimensions={{0}}",
        f"r = {s} multiply(p0, b)",
    )
    if dtype in ("s8", "f64"):
        continue
    narrow = dtype in ("bf16", "f16")  # JAX adds up narrow floats in f32
    wide = "f32" if narrow else dtype
    total = [f"w = {array(wide, [rows, n])} convert(e)"] if narrow else []
    total += [
        f"o = {wide}[] constant(0)",
        f"v = {array(wide, [rows])} reduce({'w' if narrow else 'e'}, o), dimensions={{1}}, to_apply=f",
    ]
    peak = [
        f"z = {dtype}[] constant(-inf)",
        f"m = {column} reduce(p0, z), dimensions={{1}}, to_apply=g",
        f"b = {s} broadcast(m), dimensions={{0}}",
        f"d = {s} subtract(p0, b)",
        f"e = {s} exponential(d)",
        *total,
        f"t = {column} {'convert' if narrow else 'copy'}(v)",
    ]
    both = reducer("maximum", dtype, "g") + reducer("add", wide)
    add(
        f"softmax of rows {dtype} {n}",
        [s],
        *peak,
        f"u = {s} broadcast(t), dimensions={{0}}",
        f"r = {s} divide(e, u)",
        before=both,
    )
    add(
        f"log softmax of rows {dtype} {n}",
        [s],
        *peak,
        f"l = {column} log(t)",
        f"u = {s} broadcast(l), dimensions={{0}}",
        f"r = {s} subtract(d, u)",
        before=both,
    )
for dtype, (kind, axes) in itertools.product(
    ("s8", "bf16", "f32", "f64"), (("rows", [0]), ("columns", [1]), ("one", []))
):
    s, p = array(dtype, [512, 512]), array("pred", [512] * len(axes))
    add(
        f"select by a broadcast {dtype} {kind}",
        [p, s, s],
        f"b = pred[512,512] broadcast(p0), dimensions={braces(axes)}",
        f"r = {s} select(b, p1, p2)",
    )
    add(
        f"compare with a broadcast {dtype} {kind}",
        [s, array(dtype, [512] * len(axes))],
        f"b = {s} broadcast(p1), dimensions={braces(axes)}",
        "r = pred[512,512] compare(p0, b), direction=LE",
    )
for dtype in ("s8", "s32", "bf16", "f16", "f32"):
    s = array(dtype, [N])
    bounds = [f"{n} = {s} broadcast(p{k}), dimensions={{}}" for k, n in ((1, "l"), (2, "h"))]
    add(f"clamp by scalars {dtype}", [s, f"{dtype}[]", f"{dtype}[]"], *bounds, f"r = {s} clamp(l, p0, h)")
for dtype, divisor in itertools.product(("s8", "u8", "s32", "u32", "s64"), (3, 10, 64)):
    s = array(dtype, [N])
    for op in ("divide", "remainder"):
        add(
            f"{op} by {divisor} {dtype}",
            [s],
            f"c = {dtype}[] constant({divisor})",
            f"b = {s} broadcast(c), dimensions={{}}",
            f"r = {s} {op}(p0, b)",
        )
for dtype, exponent in itertools.product(("f32", "bf16", "f64"), ("2", "3", "0.5", "-1", "2.5")):
    s = array(dtype, [N])
    add(
        f"power to {exponent} {dtype}",
        [s],
        f"a = {s} abs(p0)",
        f"c = {dtype}[] constant({exponent})",
        f"b = {s} broadcast(c), dimensions={{}}",
        f"r = {s} power(a, b)",
    )

# --- conversions beside an operation

for dtype in ("s8", "u8", "s16", "s4", "u4", "bf16", "f16", "f8e4m3fn", "pred"):
    add(
        f"scaled from {dtype}",
        [array(dtype, [512, 512]), "f32[512]"],
        "c = f32[512,512] convert(p0)",
        "b = f32[512,512] broadcast(p1), dimensions={0}",
        "r = f32[512,512] multiply(c, b)",
    )
    if dtype != "pred":
        add(
            f"scaled to {dtype}",
            ["f32[512,512]", "f32[512]"],
            "b = f32[512,512] broadcast(p1), dimensions={1}",
            "c = f32[512,512] multiply(p0, b)",
            "e = f32[512,512] round-nearest-even(c)",
            f"r = {array(dtype, [512, 512])} convert(e)",
        )
for a, b in itertools.permutations(("bf16", "f32", "f16"), 2):
    add(
        f"sum of {a} and {b} as {b}",
        [array(a, [N]), array(b, [N])],
        f"c = {array(b, [N])} convert(p0)",
        f"r = {array(b, [N])} add(c, p1)",
    )
for a, dims, b, out in (
    ("f32", [N], "s32", [N]),
    ("s32", [N], "s8", [N, 4]),
    ("s8", [N, 4], "s32", [N]),
    ("f64", [N], "u32", [N, 2]),
    ("bf16", [N, 2], "f32", [N]),
    ("u64", [N], "f64", [N]),
):
    add(f"bitcast-convert {a} {b}", [array(a, dims)], f"r = {array(b, out)} bitcast-convert(p0)")
for dtype, part in (("c64", "f32"), ("c128", "f64")):
    s, p = array(dtype, [N]), array(part, [N])
    add(f"real {dtype}", [s], f"r = {p} real(p0)")
    add(f"imag {dtype}", [s], f"r = {p} imag(p0)")
    add(f"complex {dtype}", [p, p], f"r = {s} complex(p0, p1)")
    add(
        f"conjugate {dtype}",
        [s],
        f"a = {p} real(p0)",
        f"b = {p} imag(p0)",
        f"n = {p} negate(b)",
        f"r = {s} complex(a, n)",
    )

# --- reductions of middle dimensions and of few elements

MIDDLES = (
    ([64, 3, 4096], [1]),
    ([4096, 3, 64], [1]),
    ([2048, 4, 16], [1]),
    ([10_000, 5, 7], [1]),
    ([20_000, 4, 3], [1]),
    ([128, 32, 64], [1]),
    ([100_000, 2], [1]),
    ([2, 100_000], [0]),
    ([20_000, 16], [1]),
    ([256, 256, 4], [0, 1]),
    ([256, 256, 4], [1]),
    ([32, 8, 8, 128], [0, 2]),
    ([8, 8, 8, 8, 64], [1, 3]),
    ([8, 8, 8, 8, 64], [0, 2, 4]),
    ([16, 64, 16, 16], [2, 3]),
    ([16, 64, 16, 16], [0, 2, 3]),
)
for (op, dtype), (dims, axes) in itertools.product(
    (
        *itertools.product(("add", "maximum"), ("f32", "bf16", "f16", "s32", "s8", "f64")),
        ("or", "pred"),
        ("minimum", "f32"),
    ),
    MIDDLES,
):
    out = [n for d, n in enumerate(dims) if d not in axes]
    add(
        f"reduce {op} {dtype} {dims} {axes}",
        [array(dtype, dims)],
        f"z = {dtype}[] constant({start(op, dtype)})",
        f"r = {array(dtype, out)} reduce(p0, z), dimensions={braces(axes)}, to_apply=f",
        before=reducer(op, dtype),
    )
COUNTED = (([1 << 20], [0]), ([1024, 1024], [0]), ([1024, 1024], [1]), ([30_000, 33], [1]), ([64, 64, 256], [1]))
for (a, b), (dims, axes) in itertools.product(
    (("pred", "s32"), ("u8", "s32"), ("s8", "f32"), ("bf16", "f32"), ("f32", "f64"), ("f16", "f32")), COUNTED
):
    out = [n for d, n in enumerate(dims) if d not in axes]
    add(
        f"reduce add of {a} in {b} {dims} {axes}",
        [array(a, dims)],
        f"z = {b}[] constant(0)",
        f"c = {array(b, dims)} convert(p0)",
        f"r = {array(b, out)} reduce(c, z), dimensions={braces(axes)}, to_apply=f",
        before=reducer("add", b),
    )
TWO = """f {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  c = {t}[] parameter(2)
  d = {t}[] parameter(3)
  s = {t}[] add(a, c)
  m = {t}[] maximum(b, d)
  ROOT r = ({t}[], {t}[]) tuple(s, m)
}}
"""
for dtype, (dims, axes) in itertools.product(("f32", "bf16", "s32"), COUNTED):
    made = array(dtype, [n for d, n in enumerate(dims) if d not in axes])
    add(
        f"reduce sum and maximum {dtype} {dims} {axes}",
        [array(dtype, dims)],
        f"z = {dtype}[] constant(0)",
        f"r = ({made}, {made}) reduce(p0, p0, z, z), dimensions={braces(axes)}, to_apply=f",
        before=TWO.format(t=dtype),
    )

# --- windows of integers and along other dimensions

for (op, dtype), (kind, dims, out_dims, window) in itertools.product(
    (
        ("maximum", "u8"),
        ("maximum", "s16"),
        ("maximum", "s32"),
        ("maximum", "bf16"),
        ("maximum", "f16"),
        ("add", "s8"),
        ("add", "f32"),
        ("minimum", "f32"),
        ("add", "f16"),
    ),
    (
        ("cumulative middle", [64, 64, 64], [64, 64, 64], "size=1x64x1 pad=0_0x63_0x0_0"),
        ("cumulative outer", [64, 64, 64], [64, 64, 64], "size=64x1x1 pad=63_0x0_0x0_0"),
        ("cumulative of 16", [16_384, 16], [16_384, 16], "size=1x16 pad=0_0x15_0"),
        ("cumulative reversed", [256, 1024], [256, 1024], "size=1x1024 pad=0_0x0_1023"),
        ("pool 2 nchw", [4, 32, 64, 64], [4, 32, 32, 32], "size=1x1x2x2 stride=1x1x2x2"),
        ("pool 3 stride 2", [4, 65, 65, 32], [4, 32, 32, 32], "size=1x3x3x1 stride=1x2x2x1"),
        ("pool 1d", [16, 1024, 16], [16, 512, 16], "size=1x2x1 stride=1x2x1"),
        ("channels", [4, 32, 32, 64], [4, 32, 32, 64], "size=1x1x1x5 pad=0_0x0_0x0_0x2_2"),
        ("rows of 3", [1024, 256], [1024, 256], "size=3x1 pad=1_1x0_0"),
        ("31 x 31", [128, 128], [98, 98], "size=31x31"),
    ),
):
    low = "0" if op == "maximum" and dtype.startswith("u") else start(op, dtype)
    add(
        f"window {op} {dtype} {kind}",
        [array(dtype, dims)],
        f"z = {dtype}[] constant({low})",
        f"r = {array(dtype, out_dims)} reduce-window(p0, z), window={{{window}}}, to_apply=f",
        before=reducer(op, dtype),
    )

# --- sorts with payloads, by two keys, and along other dimensions

for dtype, payload, (kind, dims, axis) in itertools.product(
    ("bf16", "s8", "u32", "u16", "f32"),
    ("bf16", "s64", "s8"),
    (
        ("long", [1 << 15], 0),
        ("rows of 4", [16_384, 4], 1),
        ("rows of 32", [2048, 32], 1),
        ("rows of 300", [200, 300], 1),
        ("middle", [32, 64, 32], 1),
        ("outer", [64, 1024], 0),
    ),
):
    s, t = array(dtype, dims), array(payload, dims)
    add(
        f"sort {dtype} with {payload} {kind}",
        [s, t],
        f"r = ({s}, {t}) sort(p0, p1), dimensions={{{axis}}}, is_stable=true, to_apply=less",
        before=compared([dtype, payload], "LT"),
    )
KEYS = """less {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  c = {u}[] parameter(2)
  d = {u}[] parameter(3)
  l = pred[] compare(a, b), direction=LT
  e = pred[] compare(a, b), direction=EQ
  m = pred[] compare(c, d), direction=LT
  n = pred[] and(e, m)
  ROOT r = pred[] or(l, n)
}}
"""
for (a, b), (kind, dims, axis) in itertools.product(
    (("s32", "f32"), ("s8", "s32"), ("f32", "f32")),
    (("long", [1 << 15], 0), ("rows of 32", [2048, 32], 1), ("rows of 300", [200, 300], 1), ("outer", [64, 1024], 0)),
):
    s, t = array(a, dims), array(b, dims)
    add(
        f"sort by {a} and {b} {kind}",
        [s, t],
        f"r = ({s}, {t}) sort(p0, p1), dimensions={{{axis}}}, is_stable=true, to_apply=less",
        before=KEYS.format(t=a, u=b),
    )
for dtype, (kind, dims, axis) in itertools.product(
    ("f32", "bf16", "s32", "u8"),
    (("long", [1 << 15], 0), ("rows of 10", [10_000, 10], 1), ("rows of 128", [512, 128], 1), ("outer", [128, 512], 0)),
):
    s, i = array(dtype, dims), array("s32", dims)
    add(
        f"argsort {dtype} {kind}",
        [s],
        f"i = {i} iota(), iota_dimension={axis}",
        f"t = ({s}, {i}) sort(p0, i), dimensions={{{axis}}}, is_stable=true, to_apply=less",
        f"r = {i} get-tuple-element(t), index=1",
        before=compared([dtype, "s32"], "LT"),
    )
for dtype, (rows, size, k) in itertools.product(
    ("f16", "s8", "u32", "f64"), ((64, 1000, 1), (64, 1000, 10), (1000, 64, 8), (1, 50_000, 100))
):
    s, i = array(dtype, [rows, k]), array("s32", [rows, k])
    add(
        f"top-k {dtype} {rows} x {size}, {k}",
        [array(dtype, [rows, size])],
        f"r = ({s}, {i}) topk(p0), k={k}, largest=true",
    )
