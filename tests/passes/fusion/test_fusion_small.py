"""Horizontal fusion: small independent kernels become one; results and trip counts stay; large ones stay apart."""

import re

import numpy as np
import pytest

from ....backends.base import CompileOptions
from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.analysis.kernel_forms import MOST_RESULTS
from ....hlo.ir import Module
from ....hlo.opcodes import Op
from ....hlo.verify.verifier import verify
from ....migration import Flags, compile_module
from ....passes.fusion.small import fuse_small
from ....passes.pipeline import OPTIMIZE, PipelineOptions, optimize
from ....planning.assignment_checker import check_assignment
from ....planning.plan import CopyStep, KernelStep, Plan, WhileStep
from ....planning.planner import PlanOptions, plan
from ...support.hlo_corpus import each
from ...support.passes import agree
from ...support.plan_interpreter import run_plan

PREPARED = ("flatten", "untuple", "dce", "layouts", "fuse")


def joined(text: str) -> Module:
    """The verified module after loop fusion and this pass."""
    module = fuse_small(optimize(parse_module(text), PipelineOptions(PREPARED)))
    verify(module)
    return module


def results(module: Module) -> list[int]:
    """The number of results of each kernel of the entry."""
    return [len(list(i.shape.leaves())) for i in module.entry.instructions if i.opcode is Op.FUSION]


INDEPENDENT = """HloModule m
ENTRY e { x = f32[64] parameter(0)
  i = s32[4] parameter(1)
  a = f32[64] sine(x)
  b = s32[4] negate(i)
  c = f32[64] tanh(x)
  d = f32[64] add(a, a)
  ROOT t = (f32[64], s32[4], f32[64], f32[64]) tuple(a, b, c, d) }
"""


def test_kernels_without_a_path_between_them_join():
    module = joined(INDEPENDENT)
    assert results(module) == [3] and [i.name for i in module.entry.instructions if i.opcode is Op.ADD] == ["d"]


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_both_stacks_compute_every_result(stack):
    module = parse_module(INDEPENDENT)
    x, i = np.linspace(-3, 3, 64, dtype=np.float32), np.arange(4, dtype=np.int32)
    executable = compile_module(module, Flags.parse(stack))
    assert len(executable.kernels) == 2
    agree(module, evaluate(module, [x, i]), executable.execute([x, i]))


def test_large_results_stay_alone():
    assert results(joined(INDEPENDENT.replace("64", "4096"))) == []


def test_groups_are_limited():
    lines = [f"  v{n} = f32[8] {('sine', 'tanh', 'exponential', 'negate')[n % 4]}(p{n})" for n in range(30)]
    parameters = [f"  p{n} = f32[8] parameter({n})" for n in range(30)]
    names = ", ".join(f"v{n}" for n in range(30))
    root = f"  ROOT t = ({', '.join(['f32[8]'] * 30)}) tuple({names})"
    found = results(joined("HloModule m\nENTRY e {\n" + "\n".join([*parameters, *lines, root]) + "\n}"))
    assert max(found) == MOST_RESULTS and sum(found) == 30


def test_a_control_dependence_keeps_kernels_apart():
    text = INDEPENDENT.replace("c = f32[64] tanh(x)", "c = f32[64] tanh(x), control-predecessors={a}")
    assert results(joined(text)) == []


LOOP = """HloModule m
c { s = (s32[], f32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(7)
  ROOT l = pred[] compare(i, n), direction=LT }
b { s = (s32[], f32[], s32[]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[] get-tuple-element(s), index=1
  y = f32[] sine(x)
  k = s32[] get-tuple-element(s), index=2
  m = s32[] multiply(k, j)
  ROOT t = (s32[], f32[], s32[]) tuple(j, y, m) }
ENTRY e { z = s32[] constant(0)
  h = f32[] constant(0.5)
  o = s32[] constant(1)
  t = (s32[], f32[], s32[]) tuple(z, h, o)
  ROOT w = (s32[], f32[], s32[]) while(t), condition=c, body=b }
"""


def test_a_constant_that_starts_a_loop_waits_for_no_kernel_that_it_joins():
    """A pass that expands an op with a control dependency gives it to all that it makes, constants too."""
    tied = "v = f32[8] parameter(0)\n  a = f32[8] negate(v)\n  z = s32[] constant(0), control-predecessors={a}"
    text = LOOP.replace("ENTRY e { z = s32[] constant(0)", f"ENTRY e {{ {tied}").replace("ROOT w =", "w =")
    text = text.replace("body=b }", "body=b\n  ROOT r = ((s32[], f32[], s32[]), f32[8]) tuple(w, a) }")
    module = parse_module(text)
    verify(fuse_small(module))
    x = [np.arange(8, dtype=np.float32)]
    agree(module, evaluate(module, x), compile_module(module, Flags.parse("legacy")).execute(x))


def test_the_constants_that_enter_a_loop_are_made_in_place_by_one_kernel_and_the_trip_count_is_still_known():
    made = plan(parse_module(LOOP), PlanOptions(PipelineOptions((*PREPARED, "dce", "fuse-small", "dce"))))
    check_assignment(made)
    first, loop = made.steps
    assert isinstance(first, KernelStep) and len(first.arguments) == 3
    assert isinstance(loop, WhileStep) and loop.trip_count == 7
    agree(made.module, evaluate(made.module, []), run_plan(made, []))


@each("jax_programs", 3, biggest=60_000, seed=7)
def test_programs_keep_their_results_and_never_run_more_kernels(case):
    module, inputs = case.module(), case.inputs()
    without = plan(module, PlanOptions(PipelineOptions(_passes(small=False))))
    made = plan(module, PlanOptions(PipelineOptions(_passes(small=True))))
    check_assignment(made)
    assert _steps(made) <= _steps(without)
    for expected, actual in zip(run_plan(without, inputs), run_plan(made, inputs), strict=True):
        np.testing.assert_array_equal(actual, expected)


def _passes(small: bool) -> tuple[str, ...]:
    return OPTIMIZE if small else tuple(p for p in OPTIMIZE if p != "fuse-small")


def _steps(made: Plan) -> int:
    return sum(isinstance(s, (KernelStep, CopyStep)) for s in made.walk())


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_results_of_one_shape_share_a_loop_and_what_they_share_is_computed_once(stack):
    text = """HloModule m
      f { p = f32[512] parameter(0)
        e = f32[512] sqrt(p)
        a = f32[512] add(e, p)
        b = f32[512] subtract(e, p)
        ROOT t = (f32[512], f32[512]) tuple(a, b) }
      ENTRY e { x = f32[512] parameter(0)
        ROOT r = (f32[512], f32[512]) fusion(x), kind=kLoop, calls=f }"""
    executable = compile_module(parse_module(text), Flags.parse(stack), CompileOptions(cache=None, keep_stages=True))
    emitted = next(t for name, t in executable.stages if re.fullmatch(rf"{stack}(\.\d+)?\.ll", name))
    assert len(re.findall(r"call .*@\"?llvm\.sqrt", emitted)) == 1
    assert len(re.findall(r"= icmp .*\n\s+br i1", emitted)) == 1  # one loop


IN_PLACE = """HloModule m
ENTRY e { x = f32[64,64] parameter(0)
  s = f32[8,8] slice(x), slice={[0:8], [0:8]}
  u = f32[8,8] dot(s, s), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  d = f32[8,8] dot(s, s), lhs_contracting_dims={0}, rhs_contracting_dims={0}
  k = f32[8,8] opt-barrier(u)
  v = f32[8,8] opt-barrier(d)
  a = f32[8,8] sine(k)
  b = f32[8,8] EXPRESSION
  p = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT q = f32[8,8] dot(b, p), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""


@pytest.mark.parametrize(
    ("expression", "in_place"),
    [("cosine(v)", 2), ("add(v, k)", 2), ("reverse(k), dimensions={0}", 0), ("subtract(v, a)", 0)],
)
def test_results_may_take_over_operands_that_they_alone_read_in_place(expression, in_place):
    text = IN_PLACE.replace("EXPRESSION", expression)
    passes = (*PREPARED, "dce", "fuse-small", "dce")
    made = plan(parse_module(text), PlanOptions(PipelineOptions(passes)))
    check_assignment(made)
    x = np.random.default_rng(0).uniform(-1, 1, (64, 64)).astype(np.float32)
    found = [s.kernel for s in made.walk() if isinstance(s, KernelStep) and len(s.kernel.results) > 1]
    if in_place:
        assert [len(set(k.operands) & set(k.results)) for k in found] == [0, in_place]  # the dots, then a and b
    agree(parse_module(text), evaluate(parse_module(text), [x]), run_plan(made, [x]))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("expression", ["cosine(v)", "add(v, u)"])
def test_both_stacks_compute_several_results_in_place(stack, expression):
    module = parse_module(IN_PLACE.replace("EXPRESSION", expression))
    x = np.random.default_rng(0).uniform(-1, 1, (64, 64)).astype(np.float32)
    results = compile_module(module, Flags.parse(stack)).execute([x])
    agree(module, evaluate(module, [x]), results)
