"""The suite of faults on our stacks: the evaluator's results, costs that grow as the work does, compiling too.

Times are of this process's processor, and a program is at fault only if each of TRIES says so.
"""

import numpy as np
import pytest

from ...differential.replay import measure as measuring
from ...differential.replay.measure import Cost, Measured, differences, faults, measure, on_stack, slower
from ...differential.replay.suite import SUITE, Look, Replayed
from ...evaluator.evaluator import evaluate
from ...hlo.errors import InputError
from ..support.check import check

TRIES = 4
BY_NAME = {program.name: program for program in SUITE}


@pytest.mark.parametrize("name", BY_NAME)
def test_results_are_the_evaluators(name):
    program = BY_NAME[name]
    for size in program.values:
        check(program.text(size), program.inputs(program.module(size)))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("name", [p.name for p in SUITE if p.timed is not None])
def test_costs_grow_as_the_work_does(name, stack):
    found: list[str] = []
    for _ in range(TRIES):
        measured = measure(BY_NAME[name], on_stack(stack))
        assert len(measured.costs) == 2
        found = faults(BY_NAME[name], measured)
        if not found:
            return
    pytest.fail("; ".join(found))


# -- the suite can find what it looks for -----------------------------------------------------------------------------
def planted(change):
    """The evaluator's results, changed, and the costs that `change` gives for a size."""

    def run(module, inputs, rounds):
        with np.errstate(all="ignore"):
            results = [np.array(x) for x in evaluate(module, inputs)] if rounds == 1 else []
        return change(int(module.name and inputs[0].size), results)

    return run


def right(size, results):
    return results, Cost(1.0, 0.1)


def wrong(size, results):
    results[0].flat[-1] += 1
    return results, Cost(1.0, 0.1)


def refused(size, results):
    raise InputError("XLA crashed on this module: signal 11")


@pytest.mark.parametrize(("change", "said"), [
    (right, []),
    (wrong, ["wrong: size 16385: result 0 has 1 wrong elements, first 60893.1 for 60892.1"]),
    (refused, ["refused: size 16385: XLA crashed on this module: signal 11"]),
])  # fmt: skip
def test_a_wrong_result_and_a_refusal_are_faults(change, said):
    program = BY_NAME["matvec-squares.f64"]
    assert faults(program, measure(program, planted(change))) == said


COSTS = [
    ("small-updates.480", (1.0, 1.2), []),
    ("small-updates.480", (1.0, 8.0), ["cost: 8.0 times as long at 8 times the size, for 1 times the work"]),
    ("picked-steps", (1.0, 9.0), []),
    ("picked-steps", (1.0, 64.0), ["cost: 64.0 times as long at 8 times the size, for 8 times the work"]),
    ("gate-scan", (1.0, 64.0), ["cost: 64.0 times as long at 8 times the size, for 8 times the work"]),
]


@pytest.mark.parametrize(("name", "runs", "said"), COSTS)
def test_a_cost_that_grows_by_a_power_more_is_a_fault(name, runs, said):
    assert faults(BY_NAME[name], Measured(costs=[Cost(run, 0.1) for run in runs])) == said


def test_compiling_that_grows_without_measure_is_a_fault():
    program = BY_NAME["high-rank"]
    assert program.look is Look.COMPILE
    assert faults(program, Measured(costs=[Cost(1, 0.1, 1 << 20), Cost(9, 0.9, 1 << 27)])) == []
    (slow,) = faults(program, Measured(costs=[Cost(1, 0.1), Cost(1, 30.0)]))
    assert slow.startswith("compiling: 0.10 s, and 30.00 s")
    (large,) = faults(program, Measured(costs=[Cost(1, 0.1, 1 << 20), Cost(1, 0.1, 4 << 30)]))
    assert large == "compiling: 4096 MiB at 2.66667 times the size"


def test_a_version_that_takes_much_longer_is_at_fault_against_the_one_before():
    program = BY_NAME["matrix-scan"]
    before = Measured(costs=[Cost(0.1, 1), Cost(0.8, 1)])
    assert slower(program, before, Measured(costs=[Cost(0.1, 1), Cost(1.2, 1)])) == ""
    assert slower(program, before, Measured(costs=[Cost(0.1, 1), Cost(8.0, 1)])) == "speed: 10.0 times as long"
    assert slower(program, Measured(), before) == ""


def test_what_the_float_rules_permit_is_no_difference():
    program = BY_NAME["difference-squares"]
    module = program.module(33)
    inputs = program.inputs(module)
    (value,) = evaluate(module, inputs)
    assert list(differences(module, inputs, [np.nextafter(value, np.float32(9e9))])) == []
    assert list(differences(module, inputs, [value * np.float32(1.1)])) != []


def test_each_program_names_its_report_and_has_a_name_of_its_own():
    assert len(BY_NAME) == len(SUITE)
    assert all(p.report and p.versions for p in SUITE if p.name != "running-sum")
    assert all(isinstance(p, Replayed) and p.values for p in SUITE)
    assert measuring.ROUNDS > 1
