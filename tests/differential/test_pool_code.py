"""Maxima of narrow blocks are vectors in the code of both stacks."""

import re

import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...passes import pipeline
from ...planning.planner import plan

V4 = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512vl,+fma", 512))
V3 = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma", 256))

POOL = """HloModule m
fold { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] maximum(a, b) }
ENTRY e { x = f32[2,57,59,FEATURES] parameter(0)
  z = f32[] constant(-inf)
  ROOT q = f32[2,55,57,FEATURES] reduce-window(x, z), window={size=1x3x3x1}, to_apply=fold }
"""


@pytest.mark.parametrize("features", [16, 32, 33, 48, 64])
@pytest.mark.parametrize("options", [V3, V4], ids=["v3", "v4"])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_maxima_of_features_are_vectors(stack: str, options: EmitOptions, features: int):
    """LLVM unrolled loops over fewer than 64 features first, and made vectors of the positions in a window: gathers."""
    module = pipeline.optimize(parse_module(POOL.replace("FEATURES", str(features))))
    code = optimize(emitter(stack).emit(plan(module).emitted, options).llvm_ir, options)
    assert re.search(r"@llvm\.maximum\.v\d+f32", code)
    assert "gather" not in code and "vector.reduce" not in code
