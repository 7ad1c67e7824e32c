"""Loops over short rows and few columns: where LLVM unrolled them before it makes vectors, code was bad."""

import re

import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...passes.pipeline import optimize as optimize_module
from ...planning.planner import plan
from ..support.check import check

FIXED = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512vl,+fma", 512), ranges=False)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("op, start", [("maximum", "-inf"), ("minimum", "inf")])
@pytest.mark.parametrize("length", [16, 32, 48, 64])
def test_an_extremum_reads_each_vector_once(stack: str, op: str, start: str, length: int):
    module = parse_module(f"""HloModule m
f {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] {op}(a, b) }}
ENTRY e {{ x = f32[100,{length}] parameter(0)
  z = f32[] constant({start})
  ROOT r = f32[100] reduce(x, z), dimensions={{1}}, to_apply=f }}
""")
    made = optimize(emitter(stack).emit(plan(module).emitted, FIXED).llvm_ir, FIXED)
    reads = re.findall(r"= load (<\d+ x float>|\w+)", made)
    assert reads == ["<16 x float>"] * (length // 16) and "insertelement" not in made


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("columns", [8, 16, 24])
def test_a_product_of_few_columns_is_read_along_memory(stack: str, columns: int):
    """LLVM may reorder a product: with the columns unrolled, it would make vectors of rows, with gathers."""
    module = parse_module(f"""HloModule m
f {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] multiply(a, b) }}
ENTRY e {{ x = f32[1000,{columns}] parameter(0)
  one = f32[] constant(1)
  ROOT r = f32[{columns}] reduce(x, one), dimensions={{0}}, to_apply=f }}
""")
    made = optimize(emitter(stack).emit(plan(module).emitted, FIXED).llvm_ir, FIXED)
    assert "llvm.masked.gather" not in made and re.search(r"load <(8|16) x float>", made)


WITHOUT_MASKS = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma", 256), ranges=False)


def with_bias(dtype: str, length: int, dimension: int) -> str:
    """Rows plus a row (dimension 1), or plus a column (0)."""
    rows = f"{dtype}[3000,{length}]"
    return f"""HloModule m
ENTRY e {{ x = {rows} parameter(0)
  y = {dtype}[{(3000, length)[dimension]}] parameter(1)
  b = {rows} broadcast(y), dimensions={{{dimension}}}
  ROOT r = {rows} add(x, b) }}
"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("length", [9, 10, 12, 15, 20, 33])
def test_no_vector_goes_across_rows(stack: str, length: int, dimension: int):
    module = optimize_module(parse_module(with_bias("f32", length, dimension)))
    made = optimize(emitter(stack).emit(plan(module).emitted, FIXED).llvm_ir, FIXED)
    assert not re.search(r"llvm\.masked\.(gather|scatter)", made) and re.search(r"fadd [\w ]*<\d+ x float>", made)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "s8"])
@pytest.mark.parametrize("length", [9, 10, 12, 15])
def test_no_row_is_masked_where_masks_are_slow(stack: str, dtype: str, length: int):
    module = optimize_module(parse_module(with_bias(dtype, length, 1)))
    made = optimize(emitter(stack).emit(plan(module).emitted, WITHOUT_MASKS).llvm_ir, WITHOUT_MASKS)
    assert "llvm.masked" not in made and not re.search(r"icmp \w+ <\d+ x i64>", made)


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"], indirect=True)
@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("dtype, length", [("f32", 9), ("bf16", 10), ("s8", 12), ("f64", 15), ("f16", 20)])
def test_short_rows(dtype: str, length: int, dimension: int, cpu):
    check(with_bias(dtype, length, dimension))


def pooled(dtype: str, op: str, image: str, axes: str) -> str:
    start = "0" if op == "add" else "-inf"
    return f"""HloModule m
f {{ a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT c = {dtype}[] {op}(a, b) }}
ENTRY e {{ x = {dtype}[40,{image}] parameter(0)
  z = {dtype}[] constant({start})
  ROOT r = {dtype}[40] reduce(x, z), dimensions={{{axes}}}, to_apply=f }}
"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("dtype, op", [("bf16", "maximum"), ("f16", "maximum"), ("f32", "add"), ("f64", "add")])
def test_dimensions_that_are_one_run_have_the_loops_of_one(stack: str, dtype: str, op: str):
    def loops(image: str, axes: str) -> int:
        module = parse_module(pooled(dtype, op, image, axes))
        return emitter(stack).emit(plan(module).emitted, FIXED).llvm_ir.count("phi ")

    assert loops("16,16", "1,2") <= loops("256", "1")  # fewer where a function adds up the run
    check(pooled(dtype, op, "16,16", "1,2"))


def matrix_times_vector(dtype: str, batch: int, rows: int, length: int) -> str:
    return f"""HloModule m
ENTRY e {{ x = {dtype}[{batch},{rows},{length}] parameter(0)
  y = {dtype}[{batch},{length},1] parameter(1)
  ROOT r = {dtype}[{batch},{rows},1] dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}},
    lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}} }}
"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize(
    "dtype, rows, length", [("f32", 8, 9), ("f32", 33, 16), ("f32", 33, 24), ("f64", 33, 16), ("bf16", 9, 16)]
)
def test_products_of_short_rows_are_added_up_along_them(stack: str, dtype: str, rows: int, length: int):
    """With the loop over a row unrolled, vectors were of several rows, gathered: four times XLA's time."""
    module = parse_module(matrix_times_vector(dtype, 100, rows, length))
    made = optimize(emitter(stack).emit(plan(module).emitted, FIXED).llvm_ir, FIXED)
    assert "llvm.masked.gather" not in made
    assert "mlir.slim" in made or "llvm.vector.reduce.fadd" in made


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("length, along", [(9, False), (16, True)])
def test_rows_that_are_no_whole_vectors_are_unrolled_where_masks_are_missing(stack: str, length: int, along: bool):
    """What is left of a row would be a loop: four times as long as single products."""
    module = parse_module(matrix_times_vector("f32", 100, 8, length))
    made = optimize(emitter(stack).emit(plan(module).emitted, WITHOUT_MASKS).llvm_ir, WITHOUT_MASKS)
    assert ("llvm.vector.reduce.fadd" in made) == along


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3", "x86-64-v2"], indirect=True)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
def test_products_of_short_rows(dtype: str, cpu):
    for rows, length in ((5, 8), (8, 9), (33, 12), (16, 16), (17, 23), (20, 31)):
        check(matrix_times_vector(dtype, 7, rows, length))
