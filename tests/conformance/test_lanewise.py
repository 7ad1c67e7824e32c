"""What stacks write so that LLVM has less to do: plain operations behind convolutions are vectors, loops over
many columns are not copied.
"""

import re

import pytest

from ...codegen.glue import modules_of
from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, parsed

BEHIND = {
    "nothing": "ROOT r = T[1,9,11,64] copy(c)",
    "a maximum": "ROOT r = T[1,9,11,64] maximum(c, zeros)",
    "a residual": "s = T[1,9,11,64] add(c, given)\n  ROOT r = T[1,9,11,64] maximum(s, zeros)",
    "a row": "s = T[1,9,11,64] add(rows, c)\n  ROOT r = T[1,9,11,64] minimum(s, given)",
    "a scale": "s = T[1,9,11,64] multiply(c, rows)\n  t = T[1,9,11,64] subtract(given, s)\n"
    "  ROOT r = T[1,9,11,64] add(t, rows)",
    "itself": "ROOT r = T[1,9,11,64] multiply(c, c)",
}

OTHERWISE = {
    "an exponential": "ROOT r = T[1,9,11,64] exponential(c)",
    "a row of places": "p = T[11] slice(row), slice={[0:11]}\n  q = T[1,9,11,64] broadcast(p), dimensions={2}\n"
    "  ROOT r = T[1,9,11,64] add(c, q)",
    "an array of another layout": "t = T[1,9,11,64]{1,2,3,0} parameter(4)\n  ROOT r = T[1,9,11,64] add(c, t)",
    "a comparison": "l = pred[1,9,11,64] compare(c, given), direction=LT\n  ROOT r = T[1,9,11,64] select(l, c, given)",
}


def text_of(dtype: str, behind: str, outs: int = 64, ins: int = 64) -> str:
    text = """HloModule m
ENTRY e {
  x = T[1,9,11,INS] parameter(0)
  w = T[3,3,INS,64] parameter(1)
  given = T[1,9,11,64] parameter(2)
  row = T[64] parameter(3)
  rows = T[1,9,11,64] broadcast(row), dimensions={3}
  zero = T[] constant(0)
  zeros = T[1,9,11,64] broadcast(zero), dimensions={}
  c = T[1,9,11,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  BEHIND
}"""
    text = text.replace("BEHIND", behind).replace(",64]", f",{outs}]").replace("[64]", f"[{outs}]")
    return text.replace("INS", str(ins)).replace("T[", f"{dtype}[")


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("behind", [*BEHIND, *OTHERWISE])
def test_few_operations(behind, dtype):
    check(text_of(dtype, (BEHIND | OTHERWISE)[behind]))


@pytest.mark.parametrize("outs", [24, 37, 128, 193])
@pytest.mark.parametrize("behind", ["a residual", "a scale"])
def test_features_that_fill_no_vector_or_several(behind, outs):
    check(text_of("f32", BEHIND[behind], outs))


@pytest.mark.parametrize("ins", [3, 16, 400])
def test_sums_of_few_and_many_terms(ins):
    check(text_of("f32", BEHIND["a row"], ins=ins))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("behind", BEHIND)
def test_no_single_element_is_computed(behind, dtype, stack):
    program = plan(parsed(text_of(dtype, BEHIND[behind])))
    module = emitter(stack).emit(program.kernels, EmitOptions(Target.level("x86-64-v4")))
    kind = {"f32": "float", "f64": "double"}[dtype]
    operations = re.findall(rf" = (?:f(?:add|sub|mul) [a-z ]*|call ){kind} .*", module.llvm_ir)
    assert not operations and f"x {kind}>" in module.llvm_ir


SUMS = """HloModule m
add { x = f32[] parameter(0)
  y = f32[] parameter(1)
  ROOT s = f32[] add(x, y) }
ENTRY e { p = f32[4096,4096] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[4096] reduce(p, z), dimensions={0}, to_apply=add }"""


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_loops_over_many_columns_are_not_unrolled_where_sums_are_in_memory_anyway(stack):
    options = EmitOptions(Target.level("x86-64-v4"), ranges=True)
    ((text, few),) = modules_of(emitter(stack).emit(plan(parsed(SUMS)).kernels, options), options)
    assert few.lean and optimize(text, few).count(" = fadd ") <= 16
