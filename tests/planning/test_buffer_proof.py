"""The checker accepts the plans of the corpora (a sample; all in a deep run) and of random programs with donation."""

import dataclasses
from random import Random

import numpy as np
from hypothesis import given

from ...evaluator.evaluator import evaluate
from ...hlo.attributes import Alias
from ...hlo.ir import Module
from ...planning.assignment_checker import check_assignment
from ...planning.plan import AllocationKind, Plan
from ...planning.planner import plan
from ..generators.random_programs import Programs
from ..support.choices import CHOICES
from ..support.hlo_corpus import each
from ..support.passes import agree
from ..support.plan_interpreter import run_plan


def proved(module: Module) -> Plan:
    made = plan(module)
    check_assignment(made)
    return made


@each("jax_programs", 8, biggest=60_000, seed=21)
def test_plans_of_programs(case):
    proved(case.module())


@each("jax_programs", 4, biggest=40_000, seed=22)
def test_plans_of_programs_that_xla_has_scheduled(case):
    proved(case.module(optimized=True))


@each("op_cases", 60, seed=23)
def test_plans_of_ops(case):
    proved(case.module())


@each("xla_modules", 60, biggest=30_000, seed=24)
def test_plans_of_modules_of_xlas_tests(case):
    proved(case.module())


def donating(programs: Programs) -> Module:
    """The module with some parameters aliased to results of the same shape."""
    module, draw = programs.module, programs.random
    results = [(index, shape) for index, shape in module.result_shape.leaves()]
    draw.shuffle(results)
    aliases = []
    for number, shape in enumerate(module.parameter_shapes):
        fitting = [index for index, s in results if s == shape]
        if fitting and draw.random() < 0.7:
            aliases.append(Alias(fitting[0], number, (), draw.choice(["may-alias", "must-alias"])))
            results = [(index, s) for index, s in results if index != fitting[0]]
    return dataclasses.replace(module, attributes={**module.attributes, "input_output_alias": tuple(aliases)})


@given(CHOICES)
def test_random_programs_that_give_parameters_to_results(choices: Random):
    programs = Programs(choices, choices.randint(3, 13), choices.randint(0, 3))
    module = donating(programs)
    made = proved(module)
    wanted = len(module.attributes["input_output_alias"])
    given_up = [a for a in made.assignment.allocations if a.kind is AllocationKind.PARAMETER and a.result >= 0]
    assert len(given_up) == wanted
    expected = evaluate(module, programs.inputs)
    agree(module, expected, run_plan(made, [np.array(x) for x in programs.inputs]))
