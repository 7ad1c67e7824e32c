"""Kernels of the MLIR stack that need more than one loop nest: products, reductions, updates, transposes, reshapes."""

import re

import numpy as np
import pytest

from ... import legacy, mlir_emitters
from ...codegen.options import EmitOptions
from ...formats.text.parser import parse_module
from ...hlo.dtypes import BY_NAME
from ...planning.planner import plan
from ..support.check import check

STACKS = ("evaluator", "mlir")


def entry(*lines: str, computations: str = "") -> str:
    return "\n".join(["HloModule m", computations, "ENTRY e {", *("  " + line for line in lines), "}", ""])


def region(name: str, dtype: str, opcode: str) -> str:
    return (
        f"{name} {{\n  x = {dtype}[] parameter(0)\n  y = {dtype}[] parameter(1)\n"
        f"  ROOT z = {dtype}[] {opcode}(x, y)\n}}\n"
    )


MATRIX = "lhs_contracting_dims={1}, rhs_contracting_dims={0}"


def product(rows: int, columns: int, depth: int, dtype: str, result: str | None = None) -> str:
    return entry(
        f"a = {dtype}[{rows},{depth}] parameter(0)",
        f"b = {dtype}[{depth},{columns}] parameter(1)",
        f"ROOT r = {result or dtype}[{rows},{columns}] dot(a, b), {MATRIX}",
    )


@pytest.mark.parametrize(
    "shape",
    [
        (1, 1, 1),
        (5, 7, 3),
        (6, 64, 8),
        (13, 65, 70),
        (1, 100, 300),
        (7, 130, 1025),
        (31, 33, 256),
        (3, 16, 600),
        (100, 8, 513),
        (2, 9, 2),
        (8, 32, 16),
        (20, 70, 40),
    ],
)
def test_products(shape):
    check(product(*shape, "f32"), stacks=STACKS)


@pytest.mark.parametrize("emit", [legacy.emit, mlir_emitters.emit])
def test_a_tile_of_few_rows_is_there_once(emit):
    """24 rows are two iterations of one tile of twelve, 36 are six of one of six; 33 rows need a second tile."""

    def multiplications(rows: int) -> int:
        made = plan(parse_module(product(rows, 64, 32, "f32")))
        module = emit(made.kernels, EmitOptions.host())
        return len(re.findall(r"= fmul <|= call .*@llvm\.fm", "".join((module.llvm_ir, *module.helpers))))

    assert multiplications(24) == multiplications(12) == 12
    assert multiplications(36) == 6 < multiplications(33)


@pytest.mark.parametrize("dtype", ["f64", "bf16", "f16", "s8", "s16", "s32", "s64", "u8", "u32", "c64", "pred"])
def test_products_of_every_type(dtype):
    check(product(13, 37, 41, dtype, {"s8": "s32"}.get(dtype)), stacks=STACKS)


def test_product_of_floats_as_integers():
    check(product(9, 12, 33, "bf16", "s32"), stacks=STACKS)


DOTS = [
    ("f32[33,40]", "f32[70,33]", "f32[70,40]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    ("f32[33,40]", "f32[33,70]", "f32[40,70]", "lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
    ("f32[33,40]{0,1}", "f32[33,70]", "f32[70,40]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("f32[33,40]", "f32[33,70]{0,1}", "f32[70,40]{0,1}", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    (
        "f32[2,3,17,19]",
        "f32[2,3,17,20]",
        "f32[2,3,19,20]",
        "lhs_batch_dims={0,1}, rhs_batch_dims={0,1}, lhs_contracting_dims={3}, rhs_contracting_dims={3}",
    ),
    (
        "f32[4,17,19]",
        "f32[4,17,20]",
        "f32[20,4,19]",
        "lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={0}",
    ),
    ("f32[9,20]", "f32[9,6,7]", "f32[6,7,20]", "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}"),
    ("f32[9,20]", "f32[9,6,7]", "f32[7,6,20]", "lhs_contracting_dims={1,2}, rhs_contracting_dims={1,0}"),
    ("f32[4,9,5,20]", "f32[4,9,12]", "f32[12,5,20]", "lhs_contracting_dims={2}, rhs_contracting_dims={0}"),
    ("f32[]", "f32[50]", "f32[50]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
    ("f32[40]", "f32[40,50]", "f32[50]", "lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
    ("f32[40]", "f32[50]", "f32[50,40]", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
]


@pytest.mark.parametrize("case", DOTS)
def test_dimensions_of_dot(case):
    result, lhs, rhs, attributes = case
    check(
        entry(f"a = {lhs} parameter(0)", f"b = {rhs} parameter(1)", f"ROOT r = {result} dot(a, b), {attributes}"),
        stacks=STACKS,
    )


REDUCTIONS = [
    ("37,65", "1", "37"),
    ("37,65", "0", "65"),
    ("700,3", "0", "3"),
    ("5,600,7", "1", "5,7"),
    ("5,6,700", "1", "5,700"),
    ("5,6,70", "0,2", "6"),
    ("5,6,70", "0,1", "70"),
    ("4,9,8,5", "0,2", "9,5"),
    ("64", "0", ""),
    ("1,600", "0", "600"),
    ("3,1,1030", "0,1", "1030"),
]


@pytest.mark.parametrize("case", REDUCTIONS)
@pytest.mark.parametrize("opcode", ["add", "maximum"])
def test_reductions(case, opcode):
    operand, dimensions, result = case
    text = entry(
        f"p = f32[{operand}] parameter(0)",
        "i = f32[] parameter(1)",
        f"ROOT r = f32[{result}] reduce(p, i), dimensions={{{dimensions}}}, to_apply=f",
        computations=region("f", "f32", opcode),
    )
    check(text, stacks=STACKS)


@pytest.mark.parametrize("dtype", ["f64", "bf16", "f16", "s8", "u16", "s64", "c64"])
@pytest.mark.parametrize("dimension", [0, 1])
def test_reductions_of_every_type(dtype, dimension):
    kept = (90, 40)[1 - dimension]
    text = entry(
        f"p = {dtype}[90,40] parameter(0)",
        f"i = {dtype}[] parameter(1)",
        f"ROOT r = {dtype}[{kept}] reduce(p, i), dimensions={{{dimension}}}, to_apply=f",
        computations=region("f", dtype, "add"),
    )
    check(text, stacks=STACKS)


@pytest.mark.parametrize("dimension", [0, 1])
def test_reduction_of_pred(dimension):
    text = entry(
        "p = pred[9,40] parameter(0)",
        "i = pred[] constant(false)",
        f"ROOT r = pred[{(40, 9)[dimension]}] reduce(p, i), dimensions={{{dimension}}}, to_apply=f",
        computations=region("f", "pred", "or"),
    )
    check(text, stacks=STACKS)


ARGMAX = """f {
  a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  c = pred[] compare(a, b), direction=GE
  x = f32[] select(c, a, b)
  k = s32[] select(c, i, j)
  ROOT t = (f32[], s32[]) tuple(x, k)
}
"""


@pytest.mark.parametrize("dimension", [0, 1])
def test_reduction_of_pairs(dimension):
    kept = (40, 30)[dimension]
    text = entry(
        "p = f32[30,40] parameter(0)",
        f"n = s32[30,40] iota(), iota_dimension={dimension}",
        "low = f32[] constant(-inf)",
        "zero = s32[] constant(0)",
        f"ROOT r = (f32[{kept}], s32[{kept}]) reduce(p, n, low, zero), dimensions={{{dimension}}}, to_apply=f",
        computations=ARGMAX,
    )
    check(text, stacks=STACKS)


def test_maximum_keeps_nan_and_infinity():
    text = entry(
        "p = f32[40,70] parameter(0)",
        "i = f32[] constant(-inf)",
        "a = f32[40] reduce(p, i), dimensions={1}, to_apply=f",
        "b = f32[70] reduce(p, i), dimensions={0}, to_apply=f",
        "ROOT r = (f32[40], f32[70]) tuple(a, b)",
        computations=region("f", "f32", "maximum"),
    )
    x = np.random.default_rng(0).uniform(-1, 1, (40, 70)).astype(np.float32)
    x[3, 5], x[6, 7], x[8, 9] = np.nan, np.inf, -np.inf
    rows, columns = check(text, [x], stacks=STACKS)
    assert np.isnan(rows[3]) and np.isnan(columns[5]) and rows[6] == np.inf


MOVES = {
    "transpose": ("f32[70,130]", "f32[130,70] transpose(p), dimensions={1,0}"),
    "transpose by blocks": ("f32[64,128]", "f32[128,64] transpose(p), dimensions={1,0}"),
    "transpose of three": ("f32[65,4,70]", "f32[70,65,4] transpose(p), dimensions={2,0,1}"),
    "layout": ("f32[70,130]", "f32[70,130]{0,1} copy(p)"),
    "reshape": ("f32[6,4,5]", "f32[2,3,20] reshape(p)"),
    "reshape of ones": ("f32[1,6,1,4]", "f32[6,1,4,1,1] reshape(p)"),
    "reverse": ("s8[5,9]", "s8[5,9] reverse(p), dimensions={0,1}"),
    "slice": ("bf16[10,20]", "bf16[4,7] slice(p), slice={[1:9:2], [0:20:3]}"),
    "pad": ("f32[5,6]", "f32[13,4] pad(p, z), padding=1_3_1x-1_-1"),
    "pad with negative edges": ("f32[9,6]", "f32[14,9] pad(p, z), padding=-2_-1_1x2_1"),
    "broadcast": ("f32[6]", "f32[5,6,7] broadcast(p), dimensions={1}"),
    "broadcast of a column": ("f32[6,1]", "f32[6,1,4] broadcast(p), dimensions={0,1}"),
}


@pytest.mark.parametrize("name", MOVES)
def test_data_movement(name):
    operand, move = MOVES[name]
    dtype = operand.partition("[")[0]
    check(entry(f"p = {operand} parameter(0)", f"z = {dtype}[] parameter(1)", f"ROOT r = {move}"), stacks=STACKS)


@pytest.mark.parametrize("name", [name for name, (operand, _) in MOVES.items() if operand.startswith("f32")])
def test_data_movement_in_a_fusion(name):
    """The moves of f32 with arithmetic before and after them, computed at an index of the result."""
    operand, move = MOVES[name]
    result = move.partition(" ")[0]
    body = entry(
        f"p0 = {operand} parameter(0)",
        "z = f32[] parameter(1)",
        f"p = {operand} negate(p0)",
        f"m = {move}",
        f"ROOT r = {result} multiply(m, m)",
    ).replace("HloModule m\n\nENTRY e", "HloModule m\nbody")
    text = body + "\n".join(
        [
            "ENTRY e {",
            f"  a = {operand} parameter(0)",
            "  b = f32[] parameter(1)",
            f"  ROOT f = {result} fusion(a, b), kind=kLoop, calls=body",
            "}",
        ]
    )
    check(text, stacks=STACKS)


@pytest.mark.parametrize("dimension", [0, 1])
def test_concatenate(dimension):
    shapes = [(3, 5), (1, 5), (4, 5)] if dimension == 0 else [(3, 2), (3, 1), (3, 7)]
    result = (8, 5) if dimension == 0 else (3, 10)
    lines = [f"p{i} = s16[{a},{b}] parameter({i})" for i, (a, b) in enumerate(shapes)]
    lines.append(f"ROOT r = s16[{result[0]},{result[1]}] concatenate(p0, p1, p2), dimensions={{{dimension}}}")
    check(entry(*lines), stacks=STACKS)


@pytest.mark.parametrize("start", [-5, 0, 3, 100])
@pytest.mark.parametrize("index", ["s32", "s64", "u32", "s8"])
def test_dynamic_slices_are_clamped(start, index):
    text = entry(
        "p = f32[7,9] parameter(0)",
        "u = f32[3,9] parameter(1)",
        f"i = {index}[] parameter(2)",
        f"z = {index}[] constant(0)",
        "s = f32[3,9] dynamic-slice(p, i, z), dynamic_slice_sizes={3,9}",
        "d = f32[7,9] dynamic-update-slice(p, u, i, z)",
        "ROOT r = (f32[3,9], f32[7,9]) tuple(s, d)",
    )
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((7, 9), (3, 9))]
    kind = BY_NAME[index].numpy
    low = 0 if kind.kind == "u" else start
    check(text, [*inputs, np.array(max(start, low), kind)], stacks=STACKS)


def test_update_of_a_computed_operand():
    text = entry(
        "p = f32[9] parameter(0)",
        "i = s32[] parameter(1)",
        "n = f32[9] negate(p)",
        "u = f32[2] slice(n), slice={[0:2]}",
        "ROOT r = f32[9] dynamic-update-slice(n, u, i)",
    )
    check(text, stacks=STACKS)


@pytest.mark.parametrize(
    "source", ["f64", "f32", "bf16", "f16", "f8e5m2", "f8e4m3fn", "f8e4m3b11fnuz", "s4", "u2", "pred"]
)
def test_constants_and_selects_keep_bits(source):
    zero = "false" if source == "pred" else "0"
    text = entry(
        f"p = {source}[40] parameter(0)",
        "c = pred[40] parameter(1)",
        f"z = {source}[] constant({zero})",
        f"b = {source}[40] broadcast(z), dimensions={{}}",
        f"ROOT r = {source}[40] select(c, p, b)",
    )
    check(text, stacks=STACKS)


def test_a_long_sum_keeps_its_small_terms():
    text = entry(
        "one = f32[] constant(1)",
        "p = f32[300,80000] broadcast(one), dimensions={}",
        "zero = f32[] constant(0)",
        "ROOT r = f32[] reduce(p, zero), dimensions={0,1}, to_apply=f",
        computations=region("f", "f32", "add"),
    )
    check(text, [], stacks=STACKS, rtol=1e-6)  # tighter than the bound for any order of the terms
