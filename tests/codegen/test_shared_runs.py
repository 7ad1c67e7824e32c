"""Sums of runs of memory, and softmaxes of rows, are functions that the kernels of all programs share."""

import numpy as np
import pytest

from ...codegen.options import EmitOptions, EmittedModule, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emit_for
from ...migration.flags import STACK_NAMES, Flags
from ...planning.planner import plan
from ..support.check import check

HOST = EmitOptions.host()
REGIONS = """HloModule m
sum { a = T[] parameter(0)
  b = T[] parameter(1)
  ROOT c = T[] add(a, b) }
most { d = f32[] parameter(0)
  e = f32[] parameter(1)
  ROOT f = f32[] maximum(d, e) }
"""


def program(lines: str, dtype: str = "f32") -> str:
    return (REGIONS + f"ENTRY e {{\n{lines}\n}}\n").replace("T[", f"{dtype}[")


def emitted(text: str, stack: str, options: EmitOptions = HOST) -> EmittedModule:
    requests = plan(parse_module(text)).kernels
    (emitter,) = {emit_for(Flags.parse(stack))(request) for request in requests}
    return emitter.emit(requests, options)


FORMS = {
    "x": "q = T[N] copy(x)",
    "xx": "q = T[N] multiply(x, x)",
    "xy": "q = T[N] multiply(x, y)",
    "xxy": "p = T[N] multiply(x, x)\n q = T[N] multiply(y, p)",
}


def summed(form: str, count: int, dtype: str = "f32") -> str:
    lines = f"""x = T[N] parameter(0)
  y = T[N] parameter(1)
  z = T[] constant(2)
  {FORMS[form]}
  ROOT r = T[] reduce(q, z), dimensions={{0}}, to_apply=sum"""
    return program(lines.replace("[N]", f"[{count}]"), dtype)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("count", "dtype"), [(64, "f32"), (1000, "f32"), (20_003, "f32"), (77, "f64"), (9000, "f64")])
def test_sums_of_each_form_are_right_and_calls(form, count, dtype):
    """With lines that are full and not, in one block and several."""
    text = summed(form, count, dtype)
    check(text)
    for stack in STACK_NAMES:
        made = emitted(text, stack)
        assert made.glue and any(f"{stack}.sum.{form}.{dtype}" in helper for helper in made.helpers)


@pytest.mark.parametrize("stack", STACK_NAMES)
def test_other_sums_stay_in_their_kernels(stack):
    """Of few elements, of elements that are computed, and in strict programs, where nothing is reordered."""
    short, expensive = summed("x", 48), summed("x", 1000).replace("copy(x)", "tanh(x)")
    assert not any(emitted(text, stack).helpers for text in (short, expensive))
    assert not emitted(summed("x", 1000), stack, EmitOptions.host(strict=True)).helpers


@pytest.mark.parametrize("count", [256, 8200])
def test_products_of_two_runs_are_one(count):
    lines = f"""x = f32[5,{count}] parameter(0)
  y = f32[5,{count}] parameter(1)
  ROOT r = f32[5] dot(x, y), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, \
lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}}"""
    check(program(lines))
    assert all(emitted(program(lines), stack).glue for stack in STACK_NAMES)


NORM = """x = f32[7,N] parameter(0)
  z = f32[] constant(0)
  t = f32[7] reduce(x, z), dimensions={1}, to_apply=sum
  k = f32[] constant(0.001)
  kb = f32[7] broadcast(k), dimensions={}
  m = f32[7] multiply(t, kb)
  mb = f32[7,N] broadcast(m), dimensions={0}
  d = f32[7,N] subtract(x, mb)
  q = f32[7,N] multiply(d, d)
  v = f32[7] reduce(q, z), dimensions={1}, to_apply=sum
  vb = f32[7,N] broadcast(v), dimensions={0}
  ROOT r = f32[7,N] divide(d, vb)"""


@pytest.mark.parametrize("count", [256, 1000])
def test_rows_of_a_norm_have_a_call_for_each_sum(count):
    text = program(NORM.replace("N]", f"{count}]"))
    check(text, [np.random.default_rng(0).normal(size=(7, count)).astype(np.float32)])
    assert all(emitted(text, stack).glue and len(emitted(text, stack).helpers) == 2 for stack in STACK_NAMES)


SOFTMAX = """x = f32[5,N] parameter(0)
  c = f32[] constant(0.125)
  cb = f32[5,N] broadcast(c), dimensions={}
  s = f32[5,N] FACTOR
  low = f32[] constant(-inf)
  m = f32[5] reduce(s, low), dimensions={1}, to_apply=most
  mb = f32[5,N] broadcast(m), dimensions={0}
  d = f32[5,N] subtract(s, mb)
  p = f32[5,N] exponential(d)
  z = f32[] constant(0)
  t = f32[5] reduce(p, z), dimensions={1}, to_apply=sum
  """
ENDS = {
    "softmax": "tb = f32[5,N] broadcast(t), dimensions={0}\n  ROOT r = f32[5,N] divide(p, tb)",
    "log_softmax": """l = f32[5] log(t)
  lb = f32[5,N] broadcast(l), dimensions={0}
  ROOT r = f32[5,N] subtract(d, lb)""",
}


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("factor", ["copy(x)", "multiply(x, cb)"])
@pytest.mark.parametrize("count", [512, 1000, 4160, 16_384])
def test_a_softmax_is_one_call_for_all_rows(kind, factor, count):
    text = program((SOFTMAX + ENDS[kind]).replace("FACTOR", factor).replace("N]", f"{count}]"))
    check(text)
    for stack in STACK_NAMES:
        made = emitted(text, stack)
        assert made.glue and len(made.helpers) == 1 and f"{stack}.{kind}.f32" in made.helpers[0]


@pytest.mark.parametrize(
    "change", [("constant(-inf)", "constant(0)"), ("divide(p, tb)", "divide(d, tb)"), ("512", "48")]
)
def test_what_is_almost_a_softmax_is_none(change):
    text = program((SOFTMAX + ENDS["softmax"]).replace("FACTOR", "copy(x)").replace("N]", "512]")).replace(*change)
    check(text, [np.random.default_rng(0).normal(size=(5, 48 if "48" in change else 512)).astype(np.float32)])
    assert not any("softmax.f32" in helper for stack in STACK_NAMES for helper in emitted(text, stack).helpers)


@pytest.mark.parametrize(
    ("shape", "result", "dimensions", "columns"),
    [
        ("300,16", "16", "0", 16),
        ("257,2", "2", "0", 2),
        ("3,100,7,4", "3,4", "1,2", 4),
        ("2,3,1000,64", "2,3,64", "2", 64),
        ("500,8,8", "8,8", "0", 64),
        ("5,1000,2,1,8", "5,2,1,8", "1", 16),
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_sums_of_few_columns_are_a_run_of_memory(shape, result, dimensions, columns, dtype):
    lines = f"""x = T[{shape}] parameter(0)
  z = T[] constant(2)
  s = T[{result}] reduce(x, z), dimensions={{{dimensions}}}, to_apply=sum
  ROOT r = T[{result}] multiply(s, s)"""
    text = program(lines, dtype)
    check(text)
    if 8 <= columns <= (64 if dtype == "f32" else 32):
        for stack in STACK_NAMES:
            assert any(f"{stack}.sum.x.{dtype}.{columns}" in helper for helper in emitted(text, stack).helpers)


def test_the_functions_give_the_same_bits_on_every_processor():
    """Each element has its place among the partial sums, whatever the vectors."""
    x = np.random.default_rng(1).random(30_011, np.float32)
    levels = [Target.level("x86-64-v2"), Target.level("x86-64-v3")]
    for stack in STACK_NAMES:
        texts = {emitted(summed("x", x.size), stack, EmitOptions(level)).helpers for level in levels}
        assert len(texts) == 1


GROUPS = """HloModule m
ENTRY e {
  x = f32[1,9,30,64] parameter(0)
  w = f32[3,3,8,64] parameter(1)
  ROOT r = f32[1,9,30,64] convolution(x, w), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f, \
feature_group_count=8
}"""


def test_small_tiles_of_groups_are_calls():
    """Of legacy whole kernels; MLIR's positions at the border."""
    check(GROUPS)
    assert emitted(GROUPS, "legacy").glue and "legacy.window" in emitted(GROUPS, "legacy").helpers[0]
    assert emitted(GROUPS, "mlir").lean and "mlir.window" in emitted(GROUPS, "mlir").helpers[0]
