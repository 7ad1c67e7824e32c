"""Random programs of nearly every op, type, rank and control structure, and reduced programs that showed bugs."""

import random

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...differential.bounds import Bound
from ...differential.permitted import Permitted
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...formats.text.printer import print_module
from ...hlo.dtypes import DType
from ...hlo.ir import Module
from ...hlo.opcodes import Op
from ...hlo.verify.verifier import verify
from ...migration import Flags, compile_module
from ...passes.pipeline import OPTIMIZE, PASSES, complete, run_pipeline, select
from ...planning.assignment_checker import check_assignment
from ...planning.planner import plan
from ..generators.fuzzed_modules import FUZZED
from ..generators.random_wide import Wide, inputs_of
from ..support.passes import difference, fill
from ..support.plan_interpreter import run_plan
from ..support.seeds import seeds


def agree(
    module: Module, inputs: list[np.ndarray], given: list[np.ndarray], wanted: list[np.ndarray], exact: bool
) -> None:
    """exact: of a program whose sums have no error, whatever the order; only subnormals may be flushed."""
    bounds = [Bound(flush=True)] * len(wanted) if exact else None
    wrong = difference(module, wanted, given, bounds, Permitted(module, inputs, rounding=not exact))
    assert not wrong, wrong


def program(seed: int, size: int = 12) -> tuple[Module, list[np.ndarray], list[np.ndarray]]:
    module = parse_module(Wide(seed, size).text)
    verify(module)
    inputs = inputs_of(module, seed)
    return module, inputs, evaluate(module, inputs)


def passed(module: Module, *names: str) -> Module:
    after = run_pipeline(module, complete(select(names)))
    verify(after)
    verify(parse_module(print_module(after)))
    return after


def on_stack(module: Module, stack: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    check_assignment(plan(module))
    executable = compile_module(module, Flags.parse(stack), CompileOptions(cache=None, red_zones=True))
    return executable.execute([x.copy() for x in inputs])


def test_programs_have_what_they_are_made_for():
    modules = [parse_module(Wide(seed).text) for seed in range(150)]
    made = [i for m in modules for i in m.instructions()]
    assert not {*WANTED} - {i.opcode for i in made}
    arrays = [i.shape for i in made if i.shape.is_array]
    assert {s.rank for s in arrays} == {*range(9)}
    assert {s.dtype for s in arrays} >= {d for d in DType if d.is_array} - NEVER
    assert any(not s.size for s in arrays) and any(s.minor_to_major != tuple(range(s.rank))[::-1] for s in arrays)


NEVER = {DType.S1, DType.U1, DType.F8E8M0FNU}
WANTED = (
    *(Op.TOPK, Op.SCAN, Op.MAP, Op.SORT, Op.SCATTER, Op.GATHER, Op.SELECT_AND_SCATTER, Op.REDUCE_WINDOW, Op.DOT),
    *(Op.CONVOLUTION, Op.RAGGED_DOT, Op.FFT, Op.CHOLESKY, Op.TRIANGULAR_SOLVE, Op.BATCH_NORM_INFERENCE, Op.CALL),
    *(Op.FUSION, Op.WHILE, Op.CONDITIONAL, Op.OPT_BARRIER, Op.ALL_REDUCE, Op.COPY_START, Op.ADD_DEPENDENCY),
    *(Op.CUSTOM_CALL, Op.RNG_BIT_GENERATOR, Op.STOCHASTIC_CONVERT, Op.REDUCE_PRECISION, Op.BITCAST_CONVERT),
    *(Op.DYNAMIC_SLICE, Op.DYNAMIC_UPDATE_SLICE, Op.MULHI, Op.SHIFT_LEFT, Op.COMPLEX, Op.CLAMP),
)


@pytest.mark.parametrize("seed", seeds(0, 40))
def test_passes_in_their_order(seed):
    module, inputs, wanted = program(seed)
    agree(module, inputs, evaluate(passed(module, *OPTIMIZE), inputs), wanted, seed % 2 == 0)


@pytest.mark.parametrize("seed", seeds(10000, 15))
def test_some_passes_in_any_order(seed):
    module, inputs, wanted = program(seed)
    names = random.Random(seed).sample(sorted(PASSES), random.Random(seed).randint(1, len(PASSES)))
    agree(module, inputs, evaluate(passed(module, *names), inputs), wanted, seed % 2 == 0)


@pytest.mark.parametrize("seed", seeds(20000, 15))
def test_memory(seed):
    module, inputs, wanted = program(seed)
    made = plan(module)
    check_assignment(made)
    agree(module, inputs, run_plan(made, inputs), wanted, seed % 2 == 0)


@pytest.mark.parametrize("seed", seeds(30000, 8))
def test_both_stacks_between_red_zones(seed):
    module, inputs, wanted = program(seed, 8)
    agree(module, inputs, on_stack(module, ("legacy", "mlir")[seed // 2 % 2], inputs), wanted, seed % 2 == 0)


@pytest.mark.parametrize("name", FUZZED)
def test_what_random_programs_found(name):
    module = parse_module(FUZZED[name])
    verify(module)
    for seed in (1, 3):
        inputs = fill(module, seed, special=seed == 3)
        wanted = evaluate(module, inputs)
        agree(module, inputs, evaluate(passed(module, *OPTIMIZE), inputs), wanted, False)
        agree(module, inputs, run_plan(plan(module), inputs), wanted, False)
        for stack in ("legacy", "mlir"):
            agree(module, inputs, on_stack(module, stack, inputs), wanted, False)
