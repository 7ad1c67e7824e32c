"""sort: on the evaluator and both stacks, any comparator, dimension, layout and dtype."""

import numpy as np
import pytest
from hypothesis import given

from ...backends.base import CompileOptions
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.opcodes import Op
from ...migration import Flags, compile_module
from ...planning.assignment_checker import check_assignment
from ...planning.plan import KernelStep
from ...planning.planner import plan
from ...planning.scratch import ON_STACK, scratch_bytes
from ..cases.sort_cases import sorts
from ..support.check import check
from ..support.passes import agree
from ..support.plan_interpreter import run_plan


@given(sorts())
def test_sort(case):
    check(*case)


def argsort(length: int, rows: int = 1, dimension: int = 1, before: str = "") -> str:
    dims = f"{rows},{length}" if dimension else f"{length},{rows}"
    return f"""HloModule m
by {{ p = f32[] parameter(0)
  q = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT s = pred[] compare(p, q), direction=LT, type=TOTALORDER }}
ENTRY e {{ x = f32[{dims}] parameter(0)
  y = f32[{dims}] {before}(x)
  i = s32[{dims}] iota(), iota_dimension={dimension}
  ROOT s = (f32[{dims}], s32[{dims}]) sort(y, i), dimensions={{{dimension}}}, to_apply=by }}"""


@pytest.mark.parametrize("dimension", [0, 1])
@pytest.mark.parametrize("length", [700, 5000])
def test_long_rows_take_scratch_memory_and_keep_their_bounds(length, dimension):
    text = argsort(length, 3, dimension, before="negate")
    x = np.random.default_rng(length).integers(-99, 99, (3, length)).astype(np.float32)
    x = x if dimension else np.ascontiguousarray(x.T)
    module = parse_module(text)
    (sort,) = (i for i in module.instructions() if i.opcode is Op.SORT)
    assert scratch_bytes(sort) > ON_STACK
    expected = evaluate(module, [x])
    made = plan(module)
    check_assignment(made)
    for stack in ("legacy", "mlir"):
        options = CompileOptions(cache=None, red_zones=True)
        for a, b in zip(compile_module(module, Flags.parse(stack), options).execute([x]), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_sort_of_a_dying_array_is_in_place():
    text = """HloModule m
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = pred[] compare(p, q), direction=LT }
ENTRY e { x = f32[4,90] parameter(0)
  d = f32[4,90] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  w = f32[90,90] parameter(1)
  s = f32[4,90] sort(d), dimensions={1}, to_apply=less
  ROOT e = f32[4,90] dot(s, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
    lines = text.splitlines()
    lines[5], lines[6] = lines[6], lines[5]
    made = plan(parse_module("\n".join(lines)))
    check_assignment(made)
    (step,) = (s for s in made.walk() if isinstance(s, KernelStep) and s.instruction.opcode is Op.SORT)
    assert step.kernel.results == step.kernel.operands
    inputs = [np.random.default_rng(0).normal(size=s).astype(np.float32) for s in ((4, 90), (90, 90))]
    agree(made.module, evaluate(made.module, inputs), run_plan(made, inputs))
    check("\n".join(lines), inputs)


ODD = {
    "always": "ROOT r = pred[] constant(true)",
    "never": "ROOT r = pred[] constant(false)",
    "different": "ROOT r = pred[] compare(p, q), direction=NE",
    "next": "n = s32[] constant(-3)\n  a = s32[] add(p, n)\n  ROOT r = pred[] compare(a, q), direction=LT",
    "bits": """m = s32[] constant(1103515245)
  a = s32[] multiply(p, m)
  b = s32[] subtract(a, q)
  z = s32[] constant(0)
  ROOT r = pred[] compare(b, z), direction=LT""",
}


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("name", ODD)
def test_a_comparator_that_is_no_order_permutes_each_row_within_its_bounds(name, stack):
    text = f"""HloModule m
odd {{ p = s32[] parameter(0)
  q = s32[] parameter(1)
  {ODD[name]} }}
ENTRY e {{ x = s32[3,2000] parameter(0)
  ROOT s = s32[3,2000] sort(x), dimensions={{1}}, to_apply=odd }}"""
    x = np.random.default_rng(0).integers(-1000, 1000, (3, 2000)).astype(np.int32)
    options = CompileOptions(cache=None, red_zones=True)
    (result,) = compile_module(parse_module(text), Flags.parse(stack), options).execute([x])
    np.testing.assert_array_equal(np.sort(result, axis=1), np.sort(x, axis=1))
    assert name != "never" or np.array_equal(result, x)


def test_code_does_not_grow_with_the_array():
    sizes = []
    for length in (600, 600_000):
        module = parse_module(argsort(length, before="negate"))
        options = CompileOptions(cache=None, keep_stages=True)
        stages = compile_module(module, Flags.parse("mlir"), options).stages
        sizes.append(sum(text.count("\n") for name, text in stages if name.endswith(".ll")))
    assert sizes[1] <= sizes[0] + 4


def test_rows_of_one_element_are_no_kernel():
    made = plan(parse_module(argsort(1, 5, before="copy")))
    assert all(k.instruction.opcode is not Op.SORT for k in made.kernels)
    check(argsort(1, 5, before="copy"))


FUSED = """HloModule m
by { p = f32[] parameter(0)
  q = f32[] parameter(1)
  i = s32[] parameter(2)
  j = s32[] parameter(3)
  ROOT s = pred[] compare(p, q), direction=LT, type=TOTALORDER }
ENTRY e { x = f32[LENGTH,4] parameter(0)
  w = f32[4,4] parameter(1)
  d = f32[LENGTH,4] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  i = s32[LENGTH,4] iota(), iota_dimension=0
  n = f32[LENGTH,4] negate(d)
  t = f32[4] exponential(v)
  v = f32[4] parameter(2)
  b = f32[LENGTH,4] broadcast(t), dimensions={1}
  a = f32[LENGTH,4] FIRST(n, b)
  s = (f32[LENGTH,4], s32[LENGTH,4]) sort(SORTED, i), dimensions={0}, to_apply=by
  k = f32[LENGTH,4] get-tuple-element(s), index=0
  o = s32[LENGTH,4] get-tuple-element(s), index=1
  f = f32[LENGTH,4] dot(k, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = (f32[LENGTH,4], s32[LENGTH,4]) tuple(f, o) }"""


@pytest.mark.parametrize("key", ["a", "d"])
@pytest.mark.parametrize("length", [9, 200, 400, 1500])
def test_what_only_a_sort_reads_is_computed_on_its_way_into_it(key, length):
    lines = FUSED.replace("LENGTH", str(length)).replace("FIRST", "add").replace("SORTED", key).splitlines()
    at = next(n for n, line in enumerate(lines) if " exponential(" in line)
    lines[at], lines[at + 1] = lines[at + 1], lines[at]
    text = "\n".join(lines)
    made = plan(parse_module(text))
    check_assignment(made)
    assert all(k.instruction.opcode is not Op.IOTA for k in made.kernels)
    (step,) = (s for s in made.walk() if isinstance(s, KernelStep) and "sort" in s.instruction.name)
    assert (step.kernel.results[0] in step.kernel.operands) == (key == "d")
    inputs = [np.random.default_rng(1).integers(-3, 3, s).astype(np.float32) for s in ((length, 4), (4, 4), (4,))]
    agree(parse_module(text), evaluate(parse_module(text), inputs), run_plan(made, inputs))
    check(text, inputs)
