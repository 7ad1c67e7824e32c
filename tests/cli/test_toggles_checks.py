"""The checks of a row's gate: each refuses a fault that is planted for it, and none refuses the stacks as they are.

The faults are a whole power or a wrong sign, so that a loaded machine changes no outcome.
"""

from functools import partial

import numpy as np
import pytest

from ...benchmarks.gate.growth import best, slope
from ...cli.main import main
from ...cli.toggles_checks import CHECKS, Orders, named_checks, run_checks
from ...cli.toggles_gate import run_gate
from ...codegen.options import assumed_host
from ...differential.gate import drawn
from ...differential.gate.accuracy import rounding_of
from ...differential.gate.aliasing import donated
from ...differential.gate.drawn import drawn_cases, limits_of
from ...differential.gate.processors import runnable
from ...differential.gate.scales import LENGTHS, RANKS, lengthened, ranked, scaled
from ...differential.outcome import Outcome, OutcomeKind
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...hlo.verify.verifier import verify
from ...migration.ledger import judge, new_ledger
from ...migration.ledger_file import ledger_text, parse_ledger
from ...migration.parity import Parity
from ...migration.units import CLASSES, UNITS
from ..support import planted_gate as faults
from ..support.ledgers import GOOD, ledger_file
from ..support.planted_gate import QUICK

STACKS = ("legacy", "mlir")
FEW = Orders(drawn=24)
LEDGER = new_ledger()

PLANTED = {
    "scaling": (faults.quadratic, "reduce.float", "run time grows"),
    "aliasing": (faults.wrong_in_place, "elemental.float", "mlir gives other bits"),
    "rank": (faults.slow_by_rank, "transpose.float", "at rank 8"),
    "length": (faults.slow_by_length, "elemental.float", "compile time grows"),
    "accuracy": (faults.inexact, "reduce.float", "the error of mlir in result 0 is"),
    "x86-64-v3": (faults.wrong_on_level_3, "reduce.float", "x86-64-v3: case"),
    "x86-64-v4": (faults.wrong_on_level_4, "reduce.float", "x86-64-v4: case"),
}


def needs_level(name):
    if name.startswith("x86-64") and not runnable(name):
        pytest.skip(f"needs a processor of the level {name}")


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_fault_is_refused(name, monkeypatch):
    needs_level(name)
    fault, row, why = PLANTED[name]
    before = assumed_host()
    faults.plant(monkeypatch, fault)
    ran, (said,) = run_checks([CHECKS[name]], LEDGER.row(row), STACKS, FEW)
    assert ran == [name] and said.startswith(f"{name}: ") and why in said
    assert assumed_host() is before


@pytest.mark.parametrize("name", PLANTED)
def test_without_it_the_row_passes(name):
    needs_level(name)
    assert run_checks([CHECKS[name]], LEDGER.row(PLANTED[name][1]), STACKS, FEW) == ([name], [])


def test_drawn_cases_find_a_fault_that_fixed_cases_do_not_have():
    begin = partial(faults.plant_in_child, faults.wrong_with_many_ops)
    found = drawn_cases("reduce", "float", STACKS, 200, begin=begin)
    assert found and all("mlir" in said for said in found) and len(found) <= drawn.MOST_FINDINGS
    assert run_checks([CHECKS["drawn"]], LEDGER.row("reduce.float"), STACKS, FEW) == (["drawn 24"], [])


def test_a_quarter_of_the_drawn_cases_runs_in_the_checking_mode(monkeypatch):
    seen = []

    class Quiet:
        def __init__(self, begin):
            pass

        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def outcome(self, module, inputs, stacks, limit, setting):
            seen.append((setting.memory, stacks))
            return Outcome(OutcomeKind.AGREE, (), "all agree", {})

    monkeypatch.setattr(drawn, "Child", Quiet)
    assert drawn_cases("dot", "float", STACKS, 40) == []
    assert len(seen) == 40 and sum(memory for memory, _ in seen) == 10
    assert seen[0][1] == ("evaluator", *STACKS)
    assert limits_of("dot", "float", STACKS).focus == UNITS["dot"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("dtypes", CLASSES)
def test_programs_of_every_row_verify(unit, dtypes):
    for text in (
        *(scaled(unit, dtypes, n) for n in (1, 2)),
        *(ranked(unit, dtypes, n) for n in RANKS),
        *(lengthened(unit, dtypes, n) for n in LENGTHS[:2]),
    ):
        verify(parse_module(text))
    eight = parse_module(ranked(unit, dtypes, 8))
    assert eight.entry.parameters[0].shape.rank == 8
    longer, long = (parse_module(lengthened(unit, dtypes, n)).entry.instructions for n in (16, 8))
    assert len(longer) == len(long) + 8


def test_results_are_given_the_memory_of_parameters():
    module = donated(parse_module("HloModule m\nENTRY e { x = f32[4] parameter(0)\n ROOT r = f32[4] negate(x) }"))
    (alias,) = module.attributes["input_output_alias"]
    assert (alias.output, alias.parameter, alias.parameter_index) == ((), 0, ())
    verify(module)


def test_a_slope_is_an_exponent_and_rounds_go_on_until_it_fits():
    assert slope({1: 3.0, 2: 12.0, 4: 48.0}) == pytest.approx(2)
    rounds = iter([{1: 1.0, 2: 9.0}, {1: 2.0, 2: 2.0}, {1: 0.1, 2: 9.0}])
    assert best(lambda: next(rounds), lambda found: slope(found) <= 1.1) == {1: 1.0, 2: 2.0}
    assert best(lambda: {1: 1.0, 2: 9.0}, lambda found: False, tries=2) == {1: 1.0, 2: 9.0}


def test_checks_are_part_of_the_evidence_and_refuse_the_row(monkeypatch):
    faults.plant(monkeypatch, faults.inexact)
    wide = Parity(cases=2, mean=99, each=99, compile=99, memory=99)
    checks = [CHECKS["accuracy"], CHECKS["aliasing"]]
    evidence, _ = run_gate(LEDGER.row("reduce.float"), 2, [], wide, settings=QUICK, checks=checks)
    assert evidence.checks == "accuracy, aliasing" and evidence.refused.startswith("accuracy: ")
    text = ledger_text(judge(LEDGER, "reduce.float", evidence))
    assert parse_ledger(text, "f").row("reduce.float").evidence == evidence
    assert "checks = " not in ledger_text(judge(LEDGER, "reduce.float", GOOD))


@pytest.mark.parametrize(
    ("dtype", "rounding"), [("float16", 2**-11), ("float32", 2**-24), ("complex64", 2**-24), ("int32", 0.0)]
)
def test_the_best_result_of_a_type_is_accurate(dtype, rounding):
    """An f16 that is rounded as well as it can be is not refused beside one that happens to be nearer."""
    assert rounding_of(np.dtype(dtype)) == rounding


def test_xlas_stacks_have_the_checks_that_they_can_have(monkeypatch):
    for name in CHECKS:
        monkeypatch.setitem(CHECKS, name, CHECKS[name].__class__(name, lambda *_: [], CHECKS[name].xla))
    ran, _ = run_checks(list(CHECKS.values()), LEDGER.row("dot.float"), ("xla-old", "xla-new"), FEW)
    assert ran == ["drawn 24", "accuracy"]


def test_checks_have_names(tmp_path, capsys):
    assert named_checks("all") == list(CHECKS.values()) and named_checks("none") == []
    assert [c.name for c in named_checks("rank, drawn")] == ["rank", "drawn"]
    with pytest.raises(InputError, match="no check 'speed'"):
        named_checks("speed")
    path = ledger_file(tmp_path)
    assert main(["toggles", "--ledger", str(path), "promote", "dot.float", "--checks", "speed", "--dry-run"]) == 2
    assert "no check 'speed' (all, none, or of drawn, " in capsys.readouterr().err
