"""Edited modules of the corpus have the same results after the passes and on both stacks."""

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...differential.fake_inputs import fake_inputs
from ...differential.generate.corpus import edited
from ...differential.generate.edits import EDITS, Edit
from ...differential.generate.source import Seeded
from ...differential.permitted import Permitted
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.errors import VerificationError
from ...hlo.ir import Module
from ...hlo.verify.verifier import verify
from ...migration import Flags, compile_module
from ...passes.pipeline import optimize
from ...planning.assignment_checker import check_assignment
from ...planning.planner import plan
from ..support.hlo_corpus import DEEP, CorpusCase, each, evaluable
from ..support.passes import difference
from ..support.plan_interpreter import run_plan
from ..support.seeds import FIRST

TEXT = """HloModule m
ENTRY e { x = f32[2,3] parameter(0)
  y = f32[2,3] parameter(1)
  k = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}})
  a = f32[2,3] add(x, y)
  b = f32[2,3] multiply(a, k)
  c = pred[2,3] compare(a, b), direction=LT
  d = f32[2,3] reverse(x), dimensions={1}
  ROOT r = f32[2,3] select(c, a, d) }
"""


def changed(edit: Edit) -> Module:
    """A module after an edit, by the first seed with which it finds anything and makes something valid."""
    refused: list[Exception] = []
    while len(refused) < 40:
        try:
            after = edit(parse_module(TEXT), Seeded(len(refused)))
            verify(after)
            return after
        except (LookupError, VerificationError) as error:
            refused.append(error)
    raise AssertionError(f"{edit.__name__} is always refused: {refused[-1]}")


@pytest.mark.parametrize("edit", dict.fromkeys(EDITS), ids=lambda e: e.__name__)
def test_every_edit_changes_a_module_and_keeps_it_whole(edit):
    text = print_module(changed(edit))
    verify(parse_module(text))
    assert text != print_module(parse_module(TEXT))


def editable(case: CorpusCase) -> bool:
    """Whether there is anything but parameters and tuples of them."""
    text = case.text
    return evaluable(case) and text.count(" = ") > text.count(" parameter(") + text.count(" tuple(")


def program(case: CorpusCase, seed: int) -> tuple[Module, list[np.ndarray], list[np.ndarray]]:
    text = print_module(edited(case.module(), Seeded(seed), 3))
    module = parse_module(text)
    verify(module)
    inputs = case.inputs() if module.parameter_shapes == case.module().parameter_shapes else fake_inputs(module)
    return module, inputs, evaluate(module, inputs)


def agree(module: Module, inputs: list[np.ndarray], given: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    wrong = difference(module, wanted, given, permitted=Permitted(module, inputs))
    assert not wrong, f"{wrong}\n{print_module(module)}"


MUTATIONS = range(FIRST, FIRST + (20 if DEEP else 1))


@each("xla_modules", 60, biggest=8_000, seed=11, where=editable)
def test_xla_modules(case):
    for seed in MUTATIONS:
        module, inputs, wanted = program(case, seed)
        agree(module, inputs, evaluate(optimize(module), inputs), wanted)
        made = plan(module)
        check_assignment(made)
        if not any(i.shape.is_dynamic for i in module.instructions()):  # run_plan does not convert dynamic sizes
            agree(module, inputs, run_plan(made, inputs), wanted)


@each("op_cases", 20, seed=12)
def test_op_cases(case):
    for seed in MUTATIONS:
        module, inputs, wanted = program(case, seed)
        agree(module, inputs, evaluate(optimize(module), inputs), wanted)


@each("jax_programs", 3, biggest=20_000, seed=13, where=editable)
def test_jax_programs(case):
    for seed in MUTATIONS:
        module, inputs, wanted = program(case, seed)
        agree(module, inputs, evaluate(optimize(module), inputs), wanted)


@each("xla_modules", 8, biggest=4_000, seed=14, where=editable)
def test_both_stacks_between_red_zones(case):
    for seed in MUTATIONS:
        module, inputs, wanted = program(case, seed)
        for stack in ("legacy", "mlir"):
            executable = compile_module(module, Flags.parse(stack), CompileOptions(cache=None, red_zones=True))
            agree(module, inputs, executable.execute([x.copy() for x in inputs]), wanted)


ENDLESS = """HloModule m
inner_condition { s = (s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  ten = s32[] constant(10)
  ROOT more = pred[] compare(ten, n), direction=LT }
inner_body { s = (s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  m = s32[] add(n, n)
  ROOT t = (s32[]) tuple(m) }
condition { s = (s32[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  ten = s32[] constant(10)
  ROOT more = pred[] compare(n, ten), direction=LT }
body { s = (s32[]) parameter(0)
  ROOT w = (s32[]) while(s), condition=inner_condition, body=inner_body }
ENTRY e { s = (s32[]) parameter(0)
  ROOT w = (s32[]) while(s), condition=condition, body=body }
"""
"""Below 10, the inner loop does not run, and the outer one changes nothing."""


def test_a_loop_that_changes_nothing_ends_in_the_interpreter_of_plans_as_in_the_evaluator():
    module, inputs = parse_module(ENDLESS), [np.int32(4)]
    agree(module, inputs, run_plan(plan(module), inputs), evaluate(module, inputs))
