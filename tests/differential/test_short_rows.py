"""Reductions of short rows: LLVM must not unroll their loops before it makes vectors, and join scalars instead."""

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
