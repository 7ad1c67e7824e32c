"""Arrays that are read in falling order: MLIR's offsets have the flag nuw, so no stride of a memref is negative."""

import re

import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...passes.pipeline import optimize
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for

FUNCTIONS = """
  r = T[1,2,2,3] reverse(p), dimensions={1,2,3}
  a = T[1,2,2,3] atanh(r)
  n = T[1,2,2,3] negate(r)
  ROOT t = (T[1,2,2,3], T[1,2,2,3]) tuple(a, n)
"""
SLICES = """
  r = T[1,2,2,3] reverse(p), dimensions={3}
  s = T[1,2,1,2] slice(r), slice={[0:1], [0:2], [1:2], [0:3:2]}
  u = T[1,2,1,2] reverse(s), dimensions={1,3}
  ROOT n = T[1,2,1,2] negate(u)
"""
TURNED = """
  r = T[1,2,2,3] reverse(p), dimensions={1,2}
  t = T[3,2,1,2] transpose(r), dimensions={3,1,0,2}
  b = T[3,2,1,2] negate(t)
  ROOT m = T[3,2,1,2] multiply(b, t)
"""
PROGRAMS = {"functions": FUNCTIONS, "slices": SLICES, "turned": TURNED}


def module(name: str, dtype: str, title: str = "m") -> str:
    return f"HloModule {title}\nENTRY e {{\n  p = T[1,2,2,3] parameter(0)\n{PROGRAMS[name]}\n}}\n".replace(
        "T[", f"{dtype}["
    )


@pytest.mark.parametrize("dtype", ["f8e5m2", "f8e3m4", "f8e4m3fn", "bf16", "f16", "f32", "f64", "c64"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name, dtype):
    check(module(name, dtype))


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["f8e5m2", "f8e3m4"])
def test_values_on_each_processor(dtype, level):
    with code_for(level):
        check(module("functions", dtype, title=f"m_{level.replace('-', '_')}"))


def test_large_arrays():
    check(
        "HloModule m\nENTRY e {\n  p = f32[300,1000] parameter(0)\n  r = f32[300,1000] reverse(p), dimensions={0,1}\n"
        "  ROOT s = f32[300,1000] add(r, p)\n}\n"
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_stride_is_negative(name):
    (request,) = plan(optimize(parse_module(module(name, "f32")))).kernels
    options = EmitOptions(Target.level("x86-64-v3"), keep_stages=True)
    made = emitter("mlir").emit([request], options)
    assert "linalg.generic" in dict(made.stages)["mlir"] and "strided<[-" not in dict(made.stages)["mlir"]
    assert not re.search(r"mul nuw [a-z ]*i64 %\S+, -", made.llvm_ir)
