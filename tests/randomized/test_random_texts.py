"""Random programs of many ops, types, shapes and layouts: equal results after passes, in memory and on both stacks."""

import random

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.ir import Module
from ...hlo.verify.verifier import verify
from ...migration import Flags, compile_module
from ...passes.pipeline import OPTIMIZE, PASSES, complete, run_pipeline, select
from ...planning.assignment_checker import check_assignment
from ...planning.planner import plan
from ..generators.random_texts import Texts
from ..support.passes import agree, fill
from ..support.plan_interpreter import run_plan
from ..support.seeds import seeds


def program(seed: int, size: int = 12) -> tuple[Module, list[np.ndarray], list[np.ndarray]]:
    """A module, inputs (with special values for every third seed), and the evaluator's results."""
    module = parse_module(Texts(seed, size).text)
    verify(module)
    inputs = fill(module, seed, special=seed % 3 == 0)
    return module, inputs, evaluate(module, inputs)


def passed(module: Module, *names: str) -> Module:
    after = run_pipeline(module, complete(select(names)))
    verify(after)
    verify(parse_module(print_module(after)))
    return after


@pytest.mark.parametrize("seed", seeds(0, 20))
def test_passes_in_their_order(seed):
    module, inputs, wanted = program(seed)
    agree(module, wanted, evaluate(passed(module, *OPTIMIZE), inputs), inputs)


@pytest.mark.parametrize("seed", seeds(10000, 10))
def test_some_passes_in_any_order(seed):
    module, inputs, wanted = program(seed)
    names = random.Random(seed).sample(sorted(PASSES), random.Random(seed).randint(1, len(PASSES)))
    agree(module, wanted, evaluate(passed(module, *names), inputs), inputs)


@pytest.mark.parametrize("seed", seeds(20000, 8))
def test_memory(seed):
    module, inputs, wanted = program(seed)
    made = plan(module)
    check_assignment(made)
    agree(module, wanted, run_plan(made, inputs), inputs)


@pytest.mark.parametrize("seed", seeds(30000, 4))
def test_both_stacks_between_red_zones(seed):
    module, inputs, wanted = program(seed, 8)
    stack = ("legacy", "mlir")[seed % 2]
    executable = compile_module(module, Flags.parse(stack), CompileOptions(cache=None, red_zones=True))
    agree(module, wanted, executable.execute(inputs), inputs)


DEAD = """HloModule m
most { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] maximum(a, b) }
two { a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  x = s32[] add(a, c)
  y = s32[] maximum(b, d)
  ROOT t = (s32[], s32[]) tuple(x, y) }
ENTRY e { x = s32[16] parameter(0)
  i = s32[16] iota(), iota_dimension=0
  z = s32[] constant(0)
  t = (s32[], s32[]) reduce(x, i, z, z), dimensions={0}, to_apply=two
  a = s32[] get-tuple-element(t), index=0
  b = s32[] get-tuple-element(t), index=1
  m = s32[] reduce(x, z), dimensions={0}, to_apply=most
  n = s32[] xor(m, b)
  ROOT r = s32[16] negate(x) }
"""


def test_kernels_that_nobody_reads_are_not_merged():
    module = parse_module(DEAD)
    after = passed(module, "fuse-rows")
    inputs = fill(module, 1)
    agree(module, evaluate(module, inputs), evaluate(after, inputs))
