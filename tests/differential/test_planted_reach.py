"""How many cases it takes to catch each planted fault: marks of the lines that a case runs, and the counts."""

import math

import numpy as np
import pytest

from ...differential.campaign.task import Orders
from ...differential.generate.program import Limits
from ...differential.outcome import outcome
from ...differential.planted.fault import Edit, planted
from ...differential.planted.marks import RAN, mark, may_show
from ...differential.planted.reach import ENOUGH, Reach, Reached, measure
from ...differential.planted.table import FAULTS
from ...differential.setting import Setting
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op

REVERSE, SHIFT = "legacy-reverse-forgotten", "mlir-sign-of-unsigned-shift"
DIVIDE, START = "legacy-divide-by-zero", "pass-algebra-minimum-of-broadcast"
MODULE = "HloModule m\nENTRY e {{ x = s32[4] parameter(0)\n y = s32[4] parameter(1)\n ROOT r = s32[4] {}(x, y) }}\n"


@pytest.fixture
def marked():
    """All lines that faults change are marked."""
    end = mark(FAULTS.values())
    yield
    end()


def run(opcode):
    RAN.clear()
    module = parse_module(MODULE.format(opcode))
    inputs = [np.arange(4, dtype=np.int32) for _ in module.entry.parameters]
    found = outcome(module, inputs, setting=Setting(cache=False))
    return module, found


def test_marks_say_whose_lines_ran(marked):
    module, found = run("divide")
    assert not found.is_finding and DIVIDE in RAN and START not in RAN
    assert may_show(FAULTS[DIVIDE], module, RAN) and not may_show(FAULTS[REVERSE], module, RAN)
    module, found = run("add")
    assert not found.is_finding and DIVIDE not in RAN and not may_show(FAULTS[DIVIDE], module, RAN)
    with planted(FAULTS[DIVIDE]):
        assert not run("add")[1].is_finding
    assert DIVIDE not in RAN and run("divide")[1].kind.value == "agree" and DIVIDE in RAN


def test_marks_are_taken_back():
    edits = [spot for fault in FAULTS.values() for spot in fault.spots if isinstance(spot, Edit)]
    before = [edit.found().__code__ for edit in edits]
    end = mark(FAULTS.values())
    assert all(edit.found().__code__ is not code for edit, code in zip(edits, before, strict=True))
    end()
    assert [edit.found().__code__ for edit in edits] == before


def test_a_fault_rests_when_it_was_caught_often_enough_and_one_that_is_not_drawn_is_never_reached():
    few = Orders(Limits(3, ops=frozenset({Op.REVERSE}), dtypes=(DType.F32,)), mixed=False)
    found = measure([REVERSE, SHIFT], 80, 1, few)
    reverse, shift = found.rows[REVERSE], found.rows[SHIFT]
    assert reverse.caught == ENOUGH <= reverse.reached <= reverse.cases < 80
    assert (shift.cases, shift.reached, shift.caught) == (80, 0, 0)
    assert (found.cases, found.alarms) == (80, []) and found.rate > 0


def test_expectations():
    rare, never = Reached("rare", 1000, 10, 2), Reached("never", 1000)
    assert rare.expected == 500 and never.expected == math.inf
    assert rare.chance(500) == pytest.approx(1 - 1 / math.e) and never.chance(10**6) == 0
    found = Reach({"rare": rare, "never": never}, 1000, busy=100.0)
    assert found.rate == 10 and found.found_in(25, 2) == pytest.approx(1 - 1 / math.e)
