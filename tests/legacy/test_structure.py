"""Ops of the legacy stack that are not elementwise, against the evaluator: shapes, layouts, fusions, reduce, dot."""

import ml_dtypes
import numpy as np
import pytest

from ..support.check import check

STACKS = ("evaluator", "legacy")

ADD = "add { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = f32[] add(x, y) }\n"


def run(body: str, *inputs: np.ndarray, regions: str = "", **bounds: float) -> None:
    """One ENTRY computation, its lines separated by semicolons."""
    lines = "\n".join(f"  {line.strip()}" for line in body.split(";") if line.strip())
    check(f"HloModule m\n{regions}ENTRY e {{\n{lines}\n}}\n", list(inputs) or None, STACKS, **bounds)


MOVES = {
    "broadcast": "p = f32[3,5] parameter(0); ROOT r = f32[4,3,2,5] broadcast(p), dimensions={1,3}",
    "broadcast scalar": "p = f32[] parameter(0); ROOT r = f32[4,3] broadcast(p), dimensions={}",
    "broadcast ones": "p = f32[3,1] parameter(0); ROOT r = f32[3,1,7] broadcast(p), dimensions={0,1}",
    "reshape split": "p = f32[6,20] parameter(0); q = f32[20,6] transpose(p), dimensions={1,0}; "
    "ROOT r = f32[4,5,3,2] reshape(q)",
    "reshape merge": "p = f32[2,3,4,5] parameter(0); n = f32[2,3,4,5] negate(p); q = f32[6,20] reshape(n); "
    "ROOT r = f32[20,6] transpose(q), dimensions={1,0}",
    "reshape ones": "p = f32[1,6,1] parameter(0); n = f32[1,6,1] negate(p); ROOT r = f32[3,1,2] reshape(n)",
    "reshape crossed": "p = f32[6,10] parameter(0); n = f32[10,6] transpose(p), dimensions={1,0}; "
    "ROOT r = f32[4,15] reshape(n)",
    "reshape layout": "p = f32[6,10]{0,1} parameter(0); ROOT r = f32[4,15]{0,1} reshape(p)",
    "bitcast layout": "p = f32[6,10]{0,1} parameter(0); ROOT r = f32[10,6]{1,0} bitcast(p)",
    "copy layout": "p = f32[70,80]{0,1} parameter(0); ROOT r = f32[70,80]{1,0} copy(p)",
    "transpose": "p = f32[70,90] parameter(0); ROOT r = f32[90,70] transpose(p), dimensions={1,0}",
    "transpose inner": "p = f32[3,70,66] parameter(0); ROOT r = f32[3,66,70] transpose(p), dimensions={0,2,1}",
    "transpose small": "p = f32[2,3,4] parameter(0); ROOT r = f32[4,2,3] transpose(p), dimensions={2,0,1}",
    "slice": "p = f32[20,9] parameter(0); ROOT r = f32[5,3] slice(p), slice={[2:17:3], [1:7:2]}",
    "reverse": "p = f32[4,5,6] parameter(0); ROOT r = f32[4,5,6] reverse(p), dimensions={0,2}",
    "concatenate": "p = f32[3,4] parameter(0); q = f32[3,0] parameter(1); s = f32[3,7] parameter(2); "
    "ROOT r = f32[3,15] concatenate(p, q, s, p), dimensions={1}",
    "rotation": "p = f32[5,4] parameter(0); n = f32[5,4] negate(p); a = f32[2,4] slice(n), slice={[3:5], [0:4]}; "
    "b = f32[3,4] slice(n), slice={[0:3], [0:4]}; c = f32[5,4] concatenate(a, b), dimensions={0}; "
    "d = f32[5,3] slice(c), slice={[0:5], [1:4]}; e = f32[5,1] slice(c), slice={[0:5], [0:1]}; "
    "f = f32[5,4] concatenate(d, e), dimensions={1}; ROOT r = f32[5,4] subtract(f, c)",
    "slices joined": "p = f32[9,4] parameter(0); a = f32[3,2] slice(p), slice={[0:9:3], [0:4:2]}; "
    "b = f32[2,2] slice(p), slice={[4:6], [0:4:2]}; c = f32[3,2] slice(p), slice={[0:9:3], [1:4:2]}; "
    "d = f32[5,2] concatenate(a, b), dimensions={0}; e = f32[3,4] concatenate(a, c), dimensions={1}; "
    "s = f32[5,2] negate(d); t = f32[3,4] negate(e); ROOT r = (f32[5,2], f32[3,4]) tuple(s, t)",
    "concatenate below": "p = f32[3,4] parameter(0); s = f32[2,4] parameter(1); c = f32[5,4] concatenate(p, s), "
    "dimensions={0}; n = f32[5,4] exponential(c); ROOT r = f32[5,4] add(n, c)",
    "pad": "p = f32[3,4] parameter(0); v = f32[] parameter(1); ROOT r = f32[9,4] pad(p, v), padding=1_3_1x1_-1",
    "pad negative": "p = f32[7] parameter(0); v = f32[] parameter(1); ROOT r = f32[14] pad(p, v), padding=-3_4_1",
    "pad interior below": "p = f32[3,4] parameter(0); v = f32[] parameter(1); "
    "q = f32[6,10] pad(p, v), padding=2_-1_1x0_0_2; ROOT r = f32[6,10] negate(q)",
    "pad nothing": "p = f32[3,0] parameter(0); v = f32[] parameter(1); ROOT r = f32[3,2] pad(p, v), padding=0_0x1_1",
    "iota": "ROOT r = f32[3,5,2] iota(), iota_dimension=1",
    "constant": "c = s32[2,3]{0,1} constant({{1,2,3},{4,5,6}}); p = s32[2,3] parameter(0); ROOT r = s32[2,3] add(p, c)",
    "map": "p = f32[3,4] parameter(0); q = f32[3,4] parameter(1); "
    "ROOT r = f32[3,4] map(p, q), dimensions={0,1}, to_apply=add",
}


@pytest.mark.parametrize("name", MOVES)
def test_movement(name: str):
    run(MOVES[name], regions=ADD if "to_apply" in MOVES[name] else "")


@pytest.mark.parametrize("starts", [(0, 0), (2, 1), (-5, 100), (2**31 - 1, -(2**31))])
def test_dynamic_slices_clamp(starts: tuple[int, int]):
    rng = np.random.default_rng(0)
    x, u = rng.normal(size=(6, 7)).astype(np.float32), rng.normal(size=(3, 2)).astype(np.float32)
    i, j = (np.int32(s) for s in starts)
    run(
        "p = f32[6,7] parameter(0); i = s32[] parameter(1); j = s32[] parameter(2); "
        "ROOT r = f32[3,2] dynamic-slice(p, i, j), dynamic_slice_sizes={3,2}",
        x,
        i,
        j,
    )
    for root in (
        "ROOT r = f32[6,7] dynamic-update-slice(p, u, i, j)",
        "d = f32[6,7] dynamic-update-slice(p, u, i, j); ROOT r = f32[6,7] negate(d)",
        "n = f32[6,7] negate(p); ROOT r = f32[6,7] dynamic-update-slice(n, u, i, j)",
    ):
        run(
            "p = f32[6,7] parameter(0); u = f32[3,2] parameter(1); i = s32[] parameter(2); j = s32[] parameter(3); "
            + root,
            x,
            u,
            i,
            j,
        )


def test_dynamic_slice_with_unsigned_starts():
    x = np.arange(10, dtype=np.float32)
    for dtype, start in (("u8", np.uint8(255)), ("u32", np.uint32(2**32 - 1)), ("u64", np.uint64(2**64 - 1))):
        run(
            f"p = f32[10] parameter(0); i = {dtype}[] parameter(1); "
            "ROOT r = f32[3] dynamic-slice(p, i), dynamic_slice_sizes={3}",
            x,
            start,
        )


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("f32[5]", "u8[5,4]"),
        ("u8[5,4]", "f32[5]"),
        ("s16[3,2]", "f32[3]"),
        ("f64[3]", "s16[3,4]"),
        ("u32[4,2]", "f64[4]"),
        ("s8[6]", "s4[6,2]"),
        ("u4[6,2]", "u8[6]"),
    ],
)
def test_bitcast_convert_of_other_widths(source: str, target: str):
    run(f"p = {source} parameter(0); ROOT r = {target} bitcast-convert(p)")


SUMS = {
    "row": ("f32[7,133]", "f32[7]", "{1}"),
    "column": ("f32[133,300]", "f32[300]", "{0}"),
    "column remainder": ("f32[5,259]", "f32[259]", "{0}"),
    "middle": ("f32[4,9,70]", "f32[4,70]", "{1}"),
    "outer two": ("f32[4,9,70]", "f32[70]", "{0,1}"),
    "ends": ("f32[4,9,70]", "f32[9]", "{0,2}"),
    "all": ("f32[4,9,70]", "f32[]", "{0,1,2}"),
    "none": ("f32[4,9]", "f32[4,9]", "{}"),
    "empty": ("f32[4,0]", "f32[4]", "{1}"),
    "row in columns": ("f32[40,50]{0,1}", "f32[40]", "{1}"),
    "column in columns": ("f32[40,50]{0,1}", "f32[50]", "{0}"),
}


@pytest.mark.parametrize("name", SUMS)
def test_sums(name: str):
    source, result, dimensions = SUMS[name]
    run(
        f"p = {source} parameter(0); i = f32[] parameter(1); "
        f"ROOT r = {result} reduce(p, i), dimensions={dimensions}, to_apply=add",
        regions=ADD,
    )
    run(
        f"p = {source} parameter(0); i = f32[] parameter(1); e = {source} exponential(p); "
        f"s = {result} reduce(e, i), dimensions={dimensions}, to_apply=add; ROOT r = {result} log(s)",
        regions=ADD,
    )


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16", "s8", "u16", "s64", "pred"])
@pytest.mark.parametrize("op", ["maximum", "minimum", "add", "multiply"])
def test_reduce_of_every_kind(dtype: str, op: str):
    region = f"f {{ x = {dtype}[] parameter(0)\n y = {dtype}[] parameter(1)\n ROOT z = {dtype}[] {op}(x, y) }}\n"
    for dims, kept in (("{1}", "12"), ("{0}", "100")):
        run(
            f"p = {dtype}[12,100] parameter(0); i = {dtype}[] parameter(1); "
            f"ROOT r = {dtype}[{kept}] reduce(p, i), dimensions={dims}, to_apply=f",
            regions=region,
        )


@pytest.mark.parametrize("dims", ["{0}", "{1}"])
def test_maximum_keeps_nan_and_infinities(dims: str):
    x = np.zeros((33, 33), np.float32)
    x[3, 4], x[7, 7], x[8, 8], x[20, :] = np.nan, np.inf, -np.inf, -np.inf
    region = "f { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT z = f32[] maximum(x, y) }\n"
    run(
        f"p = f32[33,33] parameter(0); i = f32[] constant(-inf); ROOT r = f32[33] reduce(p, i), dimensions={dims}, "
        "to_apply=f",
        x,
        regions=region,
    )


ARGMAX = """argmax {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  c = pred[] compare(a, b), direction=GE
  m = f32[] select(c, a, b)
  k = s32[] select(c, i, j)
  ROOT t = (f32[], s32[]) tuple(m, k)
}
"""


@pytest.mark.parametrize("dims,kept", [("{1}", 37), ("{0}", 41)])
def test_reduce_of_pairs(dims: str, kept: int):
    run(
        f"p = f32[37,41] parameter(0); q = s32[37,41] iota(), iota_dimension={dims[1]}; i = f32[] constant(-inf); "
        f"j = s32[] constant(0); ROOT r = (f32[{kept}], s32[{kept}]) reduce(p, q, i, j), dimensions={dims}, "
        "to_apply=argmax",
        regions=ARGMAX,
    )


FUSIONS = {
    "two results": """f {
  a = f32[6,9] parameter(0)
  b = f32[9] parameter(1)
  c = f32[6,9] broadcast(b), dimensions={1}
  d = f32[6,9] multiply(a, c)
  e = f32[6,9] negate(d)
  ROOT t = (f32[6,9], f32[6,9]) tuple(d, e)
}
ENTRY e {
  p = f32[6,9] parameter(0)
  q = f32[9] parameter(1)
  ROOT r = (f32[6,9], f32[6,9]) fusion(p, q), kind=kLoop, calls=f
}
""",
    "results of different shapes": ADD
    + """f {
  a = f32[6,90] parameter(0)
  z = f32[] constant(0)
  n = f32[6,90] negate(a)
  s = f32[90] reduce(n, z), dimensions={0}, to_apply=add
  ROOT t = (f32[90], f32[6,90]) tuple(s, n)
}
ENTRY e {
  p = f32[6,90] parameter(0)
  ROOT r = (f32[90], f32[6,90]) fusion(p), kind=kInput, calls=f
}
""",
    "softmax in one": ADD
    + """f {
  a = f32[6,33] parameter(0)
  z = f32[] constant(0)
  n = f32[6,33] exponential(a)
  s = f32[6] reduce(n, z), dimensions={1}, to_apply=add
  b = f32[6,33] broadcast(s), dimensions={0}
  ROOT d = f32[6,33] divide(n, b)
}
ENTRY e {
  p = f32[6,33] parameter(0)
  ROOT r = f32[6,33] fusion(p), kind=kLoop, calls=f
}
""",
    "dot with an end": """f {
  a = f32[9,40] parameter(0)
  b = f32[40,33] parameter(1)
  c = f32[33] parameter(2)
  d = f32[9,33] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[9,33] broadcast(c), dimensions={1}
  g = f32[9,33] add(d, e)
  ROOT t = f32[9,33] tanh(g)
}
ENTRY e {
  p = f32[9,40] parameter(0)
  q = f32[40,33] parameter(1)
  s = f32[33] parameter(2)
  ROOT r = f32[9,33] fusion(p, q, s), kind=kOutput, calls=f
}
""",
    "update in place": """f {
  a = f32[8,4] parameter(0)
  b = f32[1,4] parameter(1)
  i = s32[] parameter(2)
  z = s32[] constant(0)
  o = f32[1,4] dynamic-slice(a, i, z), dynamic_slice_sizes={1,4}
  n = f32[1,4] add(o, b)
  ROOT u = f32[8,4] dynamic-update-slice(a, n, i, z)
}
ENTRY e {
  p = f32[8,4] parameter(0)
  q = f32[1,4] parameter(1)
  i = s32[] parameter(2)
  c = f32[8,4] negate(p)
  ROOT r = f32[8,4] fusion(c, q, i), kind=kLoop, calls=f
}
""",
    "fusion in a fusion": """g {
  a = f32[7] parameter(0)
  ROOT n = f32[7] negate(a)
}
f {
  a = f32[7] parameter(0)
  b = f32[7] fusion(a), kind=kLoop, calls=g
  ROOT c = f32[7] add(a, b)
}
ENTRY e {
  p = f32[7] parameter(0)
  ROOT r = f32[7] fusion(p), kind=kLoop, calls=f
}
""",
}


@pytest.mark.parametrize("name", FUSIONS)
def test_fusion(name: str):
    check("HloModule m\n" + FUSIONS[name], None, STACKS)


PRODUCTS = {
    "small": ("[3,4]", "[4,5]", "[3,5]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "tiles": ("[13,300]", "[300,70]", "[13,70]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "deep": ("[7,600]", "[600,130]", "[7,130]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "transposed right": ("[20,30]", "[33,30]", "[20,33]", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    "transposed left": ("[30,20]", "[30,33]", "[20,33]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "batch": (
        "[3,20,30]",
        "[3,30,33]",
        "[3,20,33]",
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}",
    ),
    "heads": (
        "[4,9,2,30]",
        "[4,6,2,30]",
        "[4,2,9,6]",
        "lhs_batch_dims={0,2}, rhs_batch_dims={0,2}, lhs_contracting_dims={3}, rhs_contracting_dims={3}",
    ),
    "two contracted": (
        "[8,6,10,12]",
        "[12,10,32]",
        "[8,6,32]",
        "lhs_contracting_dims={2,3}, rhs_contracting_dims={1,0}",
    ),
    "vector right": ("[40,30]", "[30]", "[40]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "vector left": ("[30]", "[30,40]", "[40]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "tall": ("[30,40]", "[30]", "[40]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "inner": ("[30]", "[30]", "[]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    "outer": ("[9]", "[33]", "[9,33]", "lhs_contracting_dims={}, rhs_contracting_dims={}"),
    "nothing contracted": ("[9,0]", "[0,8]", "[9,8]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    "columns first": (
        "[20,30]{0,1}",
        "[30,33]{0,1}",
        "[20,33]{0,1}",
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
}


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "s32"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_dot(name: str, dtype: str):
    a, b, c, attributes = PRODUCTS[name]
    run(
        f"p = {dtype}{a} parameter(0); q = {dtype}{b} parameter(1); ROOT r = {dtype}{c} dot(p, q), {attributes}",
    )


@pytest.mark.parametrize("dtype", ["pred", "s8", "u8", "s64", "f16", "c64", "c128"])
def test_dot_of_other_kinds(dtype: str):
    for b, dims in (("[30,20]", "{0}"), ("[20,30]", "{1}")):
        run(
            f"p = {dtype}[9,30] parameter(0); q = {dtype}{b} parameter(1); "
            f"ROOT r = {dtype}[9,20] dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={dims}",
        )


def test_mixed_dot_sums_in_floats():
    x = np.array([[0.25, 0.5, 0.75]], ml_dtypes.bfloat16)
    run(
        "p = bf16[1,3] parameter(0); q = bf16[3,1] parameter(1); "
        "ROOT r = s32[1,1] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        x,
        x.T.copy() * 4,
    )


@pytest.mark.parametrize(
    "dtype",
    [
        "s4",
        "u4",
        "s2",
        "u2",
        "f8e5m2",
        "f8e4m3fn",
        "f8e4m3",
        "f8e3m4",
        "f8e4m3b11fnuz",
        "f8e4m3fnuz",
        "f8e5m2fnuz",
        "c64",
    ],
)
def test_narrow_types_move(dtype: str):
    run(
        f"p = {dtype}[4,6] parameter(0); t = {dtype}[6,4] transpose(p), dimensions={{1,0}}; "
        f"ROOT r = {dtype}[3,4] slice(t), slice={{[0:6:2], [0:4]}}"
    )
