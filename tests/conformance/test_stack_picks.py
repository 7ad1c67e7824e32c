"""Gathers from stacks of a few arrays, as numpy.choose makes them, and arg maxima of such stacks, as numpy.select does:
one kernel, which computes what it picks from.
"""

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...migration.choose import emitter
from ...passes import pipeline
from ...planning.plan import KernelStep
from ...planning.planner import plan
from ..support.check import check

WIDE = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512vl,+fma", 512), ranges=False)


def choose(count: int, of: int, dtype: str = "f32", index: str = "s32", made: str = "multiply(x, x)") -> str:
    """Element n is that of one of `of` arrays at n: x, what is `made` of it, that and x, and so on."""
    more = "xor" if dtype == "pred" else "add"
    lines = ["copy(x)", made, *(f"{more}(y{k - 1}, x)" for k in range(2, of))]
    stacked = [f"  y{k} = {dtype}[{count}] {line}\n" for k, line in enumerate(lines[:of])]
    stacked += [f"  z{k} = {dtype}[1,{count}] reshape(y{k})\n" for k in range(of)]
    return f"""HloModule m
ENTRY e {{ x = {dtype}[{count}] parameter(0)
  i = {index}[{count}] parameter(1)
{"".join(stacked)}  s = {dtype}[{of},{count}] concatenate({", ".join(f"z{k}" for k in range(of))}), dimensions={{0}}
  a = {index}[{count},1] reshape(i)
  n = {index}[{count}] iota(), iota_dimension=0
  b = {index}[{count},1] reshape(n)
  c = {index}[{count},2] concatenate(a, b), dimensions={{1}}
  ROOT r = {dtype}[{count}] gather(s, c), offset_dims={{}}, collapsed_slice_dims={{0,1}}, start_index_map={{0,1}},
    index_vector_dim=1, slice_sizes={{1,1}} }}
"""


def inputs(count: int, of: int, dtype: str, index: str) -> list[np.ndarray]:
    """Some indices are outside: they are clamped."""
    draw = np.random.default_rng(of)
    low = 0 if index[0] == "u" else -2
    x = draw.integers(0, 9, count).astype(DType(dtype).numpy)
    if DType(dtype).is_float:
        x[::9] = np.nan
        x[1::9] = -0.0
    return [x, draw.integers(low, of + 2, count).astype(DType(index).numpy)]


@pytest.mark.parametrize("of", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("index", ["s32", "u64", "s8"])
def test_each_element_is_of_the_array_that_its_index_names(of, index):
    check(choose(100, of, index=index), inputs(100, of, "f32", index))


@pytest.mark.parametrize("dtype", ["bf16", "c64", "s8", "f8e4m3fn"])
def test_elements_of_each_kind(dtype):
    check(choose(300, 3, dtype), inputs(300, 3, dtype, "s32"))


def test_preds():
    check(choose(300, 3, "pred", made="not(x)"), inputs(300, 3, "pred", "s32"))


def test_an_iota_beyond_the_stack_is_clamped():
    """The positions are those of more elements than there are places."""
    text = choose(600, 3).replace("f32[600]", "f32[500]").replace("f32[1,600]", "f32[1,500]")
    text = text.replace("f32[3,600]", "f32[3,500]").replace("ROOT r = f32[500]", "ROOT r = f32[600]")
    x, i = inputs(600, 3, "f32", "s32")
    check(text, [x[:500], i])


def test_a_gather_that_slides_over_a_stack():
    """A window of two of three arrays begins at an index: it is no pick of one array."""
    text = """HloModule m
ENTRY e { x = f32[40] parameter(0)
  i = s32[70,2] parameter(1)
  y = f32[40] negate(x)
  a = f32[1,40] reshape(x)
  b = f32[1,40] reshape(y)
  s = f32[3,40] concatenate(a, b, a), dimensions={0}
  ROOT r = f32[70,2,3] gather(s, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0,1},
    index_vector_dim=1, slice_sizes={2,3} }
"""
    draw = np.random.default_rng(7)
    check(text, [draw.normal(size=40).astype(np.float32), draw.integers(-2, 45, (70, 2)).astype(np.int32)])


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_choice_is_one_kernel_of_vectors(stack):
    planned = plan(pipeline.optimize(parse_module(choose(65536, 4, made="negate(x)"))))
    assert sum(isinstance(step, KernelStep) for step in planned.walk()) == 1
    made = optimize(emitter(stack).emit(planned.emitted, WIDE).llvm_ir, WIDE)
    assert "select <16 x i1>" in made and "masked.gather" not in made


def test_a_choice_among_many_reads_what_is_stored():
    planned = plan(pipeline.optimize(parse_module(choose(65536, 9))))
    assert sum(isinstance(step, KernelStep) for step in planned.walk()) == 2


def test_the_first_condition_that_holds_is_found_beside_what_it_selects():
    """numpy.select: the number of the condition is the arg max of their stack."""
    text = """HloModule m
f { a = pred[] parameter(0)
  i = s32[] parameter(1)
  b = pred[] parameter(2)
  j = s32[] parameter(3)
  g = pred[] compare(a, b), direction=GE
  k = pred[] select(g, a, b)
  n = s32[] select(g, i, j)
  ROOT t = (pred[], s32[]) tuple(k, n) }
ENTRY e { x = f32[65536] parameter(0)
  l = f32[] constant(-1)
  ls = f32[65536] broadcast(l), dimensions={}
  h = f32[] constant(1)
  hs = f32[65536] broadcast(h), dimensions={}
  a = pred[65536] compare(x, ls), direction=LT
  b = pred[65536] compare(x, hs), direction=LT
  no = pred[] constant(false)
  none = pred[1,65536] broadcast(no), dimensions={}
  a1 = pred[1,65536] reshape(a)
  b1 = pred[1,65536] reshape(b)
  s = pred[3,65536] concatenate(none, a1, b1), dimensions={0}
  n = s32[3,65536] iota(), iota_dimension=0
  z = s32[] constant(0)
  t = (pred[65536], s32[65536]) reduce(s, n, no, z), dimensions={0}, to_apply=f
  k = s32[65536] get-tuple-element(t), index=1
  f = f32[65536] convert(k)
  ROOT r = f32[65536] multiply(f, x) }
"""
    x = np.random.default_rng(3).normal(size=65536).astype(np.float32)
    x[:3] = np.nan, -0.0, -1
    check(text, [x])
    planned = plan(pipeline.optimize(parse_module(text)))
    assert sum(isinstance(step, KernelStep) for step in planned.walk()) == 1
