"""Reductions of short rows and few columns: where LLVM unrolled their loops before it makes vectors, code was bad."""

import re

import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...planning.planner import plan

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
