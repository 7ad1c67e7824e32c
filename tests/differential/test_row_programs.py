"""Programs of the ledger's rows: each holds its row, verifies, and no healthy one is found wrong."""

import numpy as np
import pytest

from ...differential import row_check
from ...differential.filled_inputs import filled_inputs
from ...differential.row_check import check_row, compare_stacks, holds
from ...differential.row_programs import CASES, WORKLOADS, cases_of, workloads_of
from ...formats.text.parser import parse_module
from ...hlo.errors import UnsupportedError
from ...hlo.verify.verifier import verify
from ...migration.parity import Compared, shortfalls
from ...migration.units import CLASSES, UNITS
from ..cases.modules import ADD
from ..support import planted

ROWS = [(unit, dtypes) for unit in UNITS for dtypes in CLASSES]


def test_every_unit_has_programs():
    assert CASES.keys() == WORKLOADS.keys() == UNITS.keys()


@pytest.mark.parametrize(("unit", "dtypes"), ROWS, ids=[".".join(row) for row in ROWS])
def test_programs_hold_their_row(unit, dtypes):
    for text in (*cases_of(unit, dtypes, 4 * len(CLASSES[dtypes])), *workloads_of(unit, dtypes)):
        module = parse_module(text)
        verify(module)
        assert holds(module, unit, dtypes)


@pytest.mark.parametrize("unit", UNITS)
def test_no_false_alarm(unit):
    for dtypes in CLASSES:
        found = check_row(unit, dtypes, 5)
        assert (found.cases, found.wrong, found.refused, found.seeds) == (5, (), 0, "0-4")


def test_a_wrong_stack_is_found(monkeypatch):
    planted.plant(monkeypatch, planted.wrong)
    found = check_row("reduce", "float", 6)
    assert len(found.wrong) == 2 and found.wrong[0].startswith("case 0: mlir is ")


def test_a_stack_that_refuses_alone_is_wrong_and_both_are_not_counted(monkeypatch):
    module = parse_module(ADD)
    inputs = filled_inputs(module, "random")

    def refuse(requests, options):
        raise UnsupportedError("mlir_emitters", "add(f32)")

    monkeypatch.setattr("testbed.mlir_emitters.emit", refuse)
    complaints, _, ulp = compare_stacks(module, inputs)
    assert complaints == ["mlir refuses it: add(f32)"] and ulp == 0
    monkeypatch.setattr("testbed.legacy.emit", refuse)
    with pytest.raises(UnsupportedError):
        compare_stacks(module, inputs)
    found = check_row("dot", "float", 3)
    assert (found.cases, found.refused) == (0, 3)


def test_modules_of_a_suite_count_where_they_hold_the_row(tmp_path):
    (tmp_path / "add.hlo").write_text(ADD)
    np.savez(tmp_path / "add.npz", in0=np.float32([1, 2]), out0=np.float32([2, 4]))
    (tmp_path / "manifest.jsonl").write_text('{"id": "add", "hlo": "add.hlo", "golden": "add.npz"}\n')
    assert check_row("elemental", "float", 2, [tmp_path]).cases == 3
    assert check_row("dot", "float", 2, [tmp_path]).cases == 2


def test_a_gate_refuses_what_is_undecided(monkeypatch):
    module = parse_module("HloModule m\nENTRY e {\n  p = f32[4] parameter(0)\n  ROOT r = f32[4] sine(p)\n}\n")
    x = [np.array([0.5, 1, 2, 3], np.float32)]
    off = lambda module, stack: type("Off", (), {"execute": lambda self, x: [np.sin(x[0]) + np.float32(1)]})()  # noqa: E731
    monkeypatch.setattr(row_check, "_executable", off)
    wrong, undecided, _ = row_check.compare_stacks(module, x, budget=0.0)
    assert not wrong and len(undecided) == 2 and "--patience" in undecided[0]
    compared = Compared(40, "0-39", 0.0, undecided=tuple(undecided))
    assert any(phrase.startswith("undecided in 2 of 40 cases") for phrase in shortfalls(compared, [], (1, 1, 1), 1))
    assert len(row_check.compare_stacks(module, x)[0]) == 2
