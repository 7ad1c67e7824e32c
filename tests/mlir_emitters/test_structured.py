"""The form of the new stack's modules: which dialects they have."""

import re
from dataclasses import replace

import numpy as np
import pytest

from ...codegen.optimize import optimize as optimize_ir
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.library.calls import LIBRARY
from ...migration import Flags, compile_module
from ...migration.choose import emitter
from ...passes.pipeline import optimize
from ...planning.plan import KernelRequest
from ...planning.planner import plan
from ..support.corpus import DEEP, sample

FIXED = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+fma", 512))
DIALECTS = {"affine", "arith", "builtin", "cf", "complex", "func", "linalg", "math", "memref", "scf", "vector"}
INTRINSICS: set[str] = set()
"""Operations of the LLVM dialect that kernels may hold before the conversion."""

FILES = [
    path for suite in ("op_cases/*.hlo", "jax_programs/*/module.hlo") for path in sample(suite, None if DEEP else 8)
]


def requests_of(text: str) -> list[KernelRequest]:
    """The distinct kernels of a module that the stack emits."""
    found = [k for k in plan(optimize(parse_module(text))).kernels if k.instruction.opcode not in LIBRARY]
    return [k for k in found if not emitter("mlir").unsupported([k])]


def operations(text: str) -> set[str]:
    """The names of the operations in a module's text."""
    return set(re.findall(r'^\s*(?:%[^=]*= )?"?([a-z_]+\.[a-z_.]+)"?', text, re.M))


@pytest.mark.parametrize("by_element", [False, True], ids=["host", "device"])
@pytest.mark.parametrize("path", FILES, ids=lambda p: "-".join(p.parts[-2:]))
def test_kernels_are_in_standard_dialects(path, by_element):
    options = replace(FIXED, keep_stages=True, ranges=by_element, by_element=by_element)
    for request in requests_of(path.read_text()):
        stages = dict(emitter("mlir").emit([request], options).stages)
        names = operations(stages["mlir"])
        assert "func.func" in names
        assert {n.split(".")[0] for n in names - INTRINSICS} <= DIALECTS, names


def test_tiles_that_cross_memory_are_not_vectorised():
    """LLVM would scatter: it took ten times as long for complex numbers. The gate of transpose.complex found it."""
    body = "  p = c64[400,400] parameter(0)\n  ROOT r = c64[400,400] transpose(p), dimensions={1,0}"
    text = f"HloModule m\nENTRY e {{\n{body}\n}}\n"
    (request,) = requests_of(text)
    emitted = emitter("mlir").emit([request], replace(FIXED, keep_stages=True))
    assert "linalg.generic" in dict(emitted.stages)["mlir"]
    assert 'llvm.loop.vectorize.enable", i1 false' in emitted.llvm_ir
    assert "scatter" not in optimize_ir(emitted.llvm_ir, FIXED)


def test_a_pred_takes_a_byte_on_the_stack():
    """MLIR's lowering ends the process at a store of i1. The gate of reduce-window.integer found it."""
    text = """
HloModule m
c {
  x = pred[] parameter(0)
  y = pred[] parameter(1)
  ROOT r = pred[] and(x, y)
}
ENTRY e {
  p = pred[9,40] parameter(0)
  i = pred[] constant(true)
  ROOT r = pred[9,38] reduce-window(p, i), window={size=1x3}, to_apply=c
}
"""
    (request,) = requests_of(text)
    kernels = dict(emitter("mlir").emit([request], replace(FIXED, keep_stages=True)).stages)["mlir"]
    assert "memref.alloca" in kernels and "xi1>" not in kernels


def test_a_constant_array_is_read_along_the_axes():
    text = """
HloModule m
ENTRY e {
  p = f32[2,3] parameter(0)
  c = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}})
  t = f32[3,2] transpose(c), dimensions={1,0}
  q = f32[3,2] transpose(p), dimensions={1,0}
  ROOT r = f32[3,2] add(t, q)
}
"""
    found = compile_module(parse_module(text), Flags.parse("mlir")).execute([np.zeros((2, 3), np.float32)])
    assert found[0].tolist() == [[1, 4], [2, 5], [3, 6]]
