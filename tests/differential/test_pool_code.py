"""Pools are vectors in the code of both stacks: of narrow blocks of features, and along rows with strides."""

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


ROWS = """HloModule m
fold { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT m = f32[] OPCODE(a, b) }
ENTRY e { x = f32[8,3,34,66] parameter(0)
  z = f32[] constant(0)
  ROOT q = f32[8,3,32,32] reduce-window(x, z), window={size=1x1x3x3 stride=1x1x1x2}, to_apply=fold }
"""


@pytest.mark.parametrize("opcode", ["maximum", "add"])
@pytest.mark.parametrize("options", [V3, V4], ids=["v3", "v4"])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_windows_that_are_strides_apart_along_rows_are_vectors(stack: str, options: EmitOptions, opcode: str):
    """Each of the nine window positions was a loop with a stride, mostly of scalars: 10 to 144 of them. What is left
    is the column that only the last window meets.
    """
    module = pipeline.optimize(parse_module(ROWS.replace("OPCODE", opcode)))
    code = optimize(emitter(stack).emit(plan(module).emitted, options).llvm_ir, options)
    vector, scalar = {
        "maximum": (r"@llvm\.maximum\.v\d+f32\(<", r"@llvm\.maximum\.f32\(f"),
        "add": (r"fadd [a-z ]*<\d+ x float>", r"fadd [a-z ]*float "),
    }[opcode]
    assert len(re.findall(vector, code)) >= 3 + 2
    assert len(re.findall(scalar, code)) < 8
    assert "gather" not in code
