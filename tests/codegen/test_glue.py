"""Kernels that are loops around calls of shared functions: LLVM does less for them, and the results are the same."""

import re
from dataclasses import replace

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...codegen.glue import kernels_of, modules_of
from ...codegen.open_module import amount
from ...codegen.optimize import assembly, object_key, optimize
from ...codegen.options import EmitOptions, EmittedModule, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emit_for
from ...migration.compile import compile_module
from ...migration.flags import STACK_NAMES, Flags
from ...planning.planner import plan

HOST = EmitOptions.host()
V3 = EmitOptions(Target.level("x86-64-v3"), ranges=True)

TWO = """
@table = internal constant [2 x float] [float 1.0, float 2.0]
declare void @shared(ptr, i64)

define void @"calls"(ptr %p, i64 %n) {
  br label %loop

loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  call void @shared(ptr %p, i64 %i)
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %end

end:
  ret void
}

define internal float @inner(float %x) {
  ret float %x
}

define void @sums(ptr %p) {
  %x = load float, ptr @table
  %y = call float @inner(float %x)
  store float %y, ptr %p
  ret void
}
"""


def test_some_kernels_of_a_module():
    text = kernels_of(TWO, {"sums", "elsewhere"})
    assert text is not None and "@sums" in text and '@"calls"' not in text and "define internal float @inner" in text
    assert kernels_of(TWO, {"calls", "sums"}) == TWO and kernels_of(TWO, {"elsewhere", "inner"}) is None


def test_kernels_of_an_emitter_that_writes_them_another_way():
    text = "define dso_local void @one() {\n  ret void\n}\n\ndefine noundef i32 @two() {\n  ret i32 0\n}"
    one, two = (kernels_of(text, {name}) or "" for name in ("one", "two"))
    assert "@one" in one and "@two" not in one and "@one" not in two and two.endswith("\n}")


def test_kernels_that_are_glue_are_a_module_of_their_own():
    (first, glue), (second, others) = modules_of(EmittedModule(TWO, glue=frozenset({"calls"})), HOST)
    assert glue.glue and not others.glue and replace(glue, glue=False) == others
    assert "@sums" not in first and '@"calls"' in first and '@"calls"' not in second and "@sums" in second
    assert all("define internal float @inner" in text and "@table =" in text for text in (first, second))
    assert "@inner" not in optimize(first, glue) and "call void @shared" in optimize(first, glue)


def test_lean_kernels_are_a_module_of_their_own_too():
    made = modules_of(EmittedModule(TWO, glue=frozenset({"calls"}), lean=frozenset({"sums"})), HOST)
    assert [(options.glue, options.lean) for _, options in made] == [(True, False), (False, True)]
    assert "@sums" not in made[0][0] and '@"calls"' not in made[1][0]
    assert modules_of(EmittedModule(TWO, lean=frozenset({"calls", "sums"})), HOST) == [(TWO, replace(HOST, lean=True))]
    aarch64 = EmitOptions(Target("aarch64-unknown-linux-gnu", "generic", "+neon", 128), lean=True)
    assert amount(replace(V3, lean=True)) == "lean" and amount(aarch64) == "all"
    assert object_key(TWO, HOST) != object_key(TWO, replace(HOST, lean=True))


@pytest.mark.parametrize("stack", STACK_NAMES)
def test_long_rows_that_are_added_up_are_lean(stack):
    columns = """HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
ENTRY e { p = f32[700,SIZE] parameter(0)
  zero = f32[] constant(0)
  ROOT r = f32[SIZE] reduce(p, zero), dimensions={0}, to_apply=add }"""
    lean = [bool(emitted(columns.replace("SIZE", size), stack, HOST).lean) for size in ("1024", "200")]
    assert lean == [True, False]


def test_a_module_of_one_kind_stays_as_it_is():
    assert modules_of(EmittedModule(TWO), HOST) == [(TWO, HOST)]
    both = EmittedModule(TWO, glue=frozenset({"calls", "sums"}))
    assert modules_of(both, HOST) == [(TWO, replace(HOST, glue=True))]
    plain = replace(HOST, optimized=False)
    assert modules_of(both, plain) == [(TWO, plain)]


def test_what_is_done_for_them_depends_on_the_processor_and_is_in_the_key():
    aarch64 = Target("aarch64-unknown-linux-gnu", "generic", "+neon", 128)
    assert amount(replace(V3, glue=True)) == "glue" and amount(EmitOptions(aarch64, glue=True)) == "all"
    assert amount(replace(V3, glue=True, optimized=False)) == "none"
    assert object_key(TWO, HOST) != object_key(TWO, replace(HOST, glue=True))


SUM = """
define void @scaled(ptr %x, ptr %y, float %a) {
  br label %loop

loop:
  %i = phi i64 [ 0, %0 ], [ %next, %loop ]
  %p = getelementptr float, ptr %x, i64 %i
  %q = getelementptr float, ptr %y, i64 %i
  %v = load float, ptr %p
  %w = load float, ptr %q
  %m = fmul float %v, %a
  %s = fadd float %m, %w
  store float %s, ptr %q
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, 64
  br i1 %again, label %loop, label %end

end:
  ret void
}
"""


def test_products_and_sums_are_joined_loops_are_vectors_and_values_stay_in_registers():
    code = assembly(SUM, replace(V3, glue=True))
    assert re.search(r"vfmadd\d+ps.*ymm", code) and "vmulps" not in code and "vaddps" not in code
    assert "(%rsp)" not in code
    strict = assembly(SUM, replace(V3, glue=True, strict=True))
    assert "vfmadd" not in strict and "mulps" in strict.replace("vmulss", "mulps")


CONVOLUTION = """HloModule m
ENTRY main {
  x = f32[1,12,12,64] parameter(0)
  w = f32[3,3,64,64] parameter(1)
  c = f32[1,12,12,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  s = f32[] constant(0.5)
  b = f32[1,12,12,64] broadcast(s), dimensions={}
  m = f32[1,12,12,64] multiply(c, b)
  ROOT r = f32[1,12,12,64] EPILOGUE
}"""
DOT = """HloModule m
ENTRY main {
  x = f32[96,256] parameter(0)
  w = f32[256,128] parameter(1)
  ROOT r = f32[96,128] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
SHORT = DOT.replace("256", "32")
HEADS = DOT.replace("256", "64").replace("128", "512")
TALL = DOT.replace("256", "64").replace("128", "16")


def emitted(text: str, stack: str, options: EmitOptions) -> EmittedModule:
    requests = plan(parse_module(text, "m")).kernels
    emitters = {emit_for(Flags.parse(stack))(request) for request in requests}
    (emitter,) = emitters
    return emitter.emit(requests, options)


@pytest.mark.parametrize("stack", STACK_NAMES)
@pytest.mark.parametrize("options", [HOST, V3], ids=["host", "v3"])
def test_the_loops_around_tiles_are_glue_but_not_dear_or_short_kernels(stack, options):
    cheap, expensive = (CONVOLUTION.replace("EPILOGUE", e) for e in ("add(m, b)", "tanh(m)"))
    glue = [bool(emitted(text, stack, options).glue) for text in (cheap, DOT, HEADS, expensive, SHORT, TALL)]
    assert glue == [True, True, True, False, False, False]


@pytest.mark.parametrize("stack", STACK_NAMES)
def test_the_results_are_those_of_a_strict_program_to_rounding(stack):
    random = np.random.default_rng(0)
    inputs = [random.standard_normal(s, np.float32) for s in ((1, 12, 12, 64), (3, 3, 64, 64))]
    module = parse_module(CONVOLUTION.replace("EPILOGUE", "add(m, b)"), "m")
    (found,) = compile_module(module, Flags.parse(stack), CompileOptions()).execute(inputs)
    exact = CompileOptions(EmitOptions(Target.host(), strict=True))
    (expected,) = compile_module(module, Flags.parse(stack), exact).execute(inputs)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
