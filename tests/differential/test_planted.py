"""Planted faults: each shows on its module and is blamed on what holds it; taken back, nothing of it stays."""

from __future__ import annotations

import numpy as np
import pytest

from ...differential.outcome import OutcomeKind, outcome
from ...differential.planted.fault import Edit, planted
from ...differential.planted.table import FAULTS, case_of_fault, plant
from ...differential.setting import Setting
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...passes.pipeline import PASSES

UNCACHED = Setting(cache=False)


SHOWN = {name: fault for name, fault in FAULTS.items() if fault.text}
"""Faults with a module on which they show."""


@pytest.mark.parametrize("fault", SHOWN.values(), ids=SHOWN)
def test_a_fault_shows_and_is_blamed_on_what_holds_it(fault):
    case = case_of_fault(fault)
    with planted(fault):
        found = outcome(case.module, case.inputs, setting=UNCACHED)
    assert (found.kind, found.blamed) == (OutcomeKind.DIFFER, fault.blamed)
    healthy = outcome(case.module, case.inputs, setting=UNCACHED)
    assert healthy.kind is OutcomeKind.AGREE


OF_MEMORY = {
    "legacy-reverse-from-before": "depends on the byte at offset -1 of argument 0 (f32[7], 28 bytes), which is outside",
    "mlir-reverse-past-the-end": "depends on the byte at offset 28 of argument 0 (f32[7], 28 bytes), which is outside",
    "legacy-last-column-unwritten": "element [0,5] of argument 1 (f32[5,6], 120 bytes) and 4 more elements not written",
    "legacy-sort-last-run-unwritten": "depend on what was in argument 2 (scratch memory",
    "mlir-sort-last-run-unwritten": "depend on what was in argument 2 (scratch memory",
}


@pytest.mark.parametrize("optimized", [True, False])
@pytest.mark.parametrize("name", OF_MEMORY)
def test_a_slip_with_memory_is_named_in_the_checking_mode(name, optimized):
    fault = FAULTS[name]
    case = case_of_fault(fault)
    setting = Setting(cache=False, memory=True, optimized=optimized)
    with planted(fault):
        found = outcome(case.module, case.inputs, setting=setting)
    assert (found.kind, found.blamed) == (OutcomeKind.CRASH, fault.blamed)
    assert OF_MEMORY[name] in found.sentence
    assert outcome(case.module, case.inputs, setting=setting).kind is OutcomeKind.AGREE


def test_each_slip_with_memory_is_asked_for():
    assert OF_MEMORY.keys() == {name for name, fault in FAULTS.items() if fault.family == "memory"}


def test_faults_of_each_part_are_there():
    parts = {name.partition("-")[0] for name in FAULTS}
    assert len(FAULTS) >= 60 and parts == {"legacy", "mlir", "pass", "plan", "thunk", "host"}
    assert all(fault.sentence and fault.culprits and fault.family for fault in FAULTS.values())


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_is_planted_where_its_row_says_and_taken_back(fault):
    """A line of source that an edit names stands there, once, and changes the code of its function."""
    edits = [spot for spot in fault.spots if isinstance(spot, Edit)]
    before = [edit.found().__code__ for edit in edits]
    with planted(fault):
        assert all(edit.found().__code__ is not code for edit, code in zip(edits, before, strict=True))
    assert [edit.found().__code__ for edit in edits] == before


def test_an_update_that_does_not_look_for_readers_shows():
    """Two conditions keep an array from such an update; with the slip in one only, no plan changed."""
    module = parse_module("""HloModule m, is_scheduled=true
ENTRY e { a = f32[8] parameter(0)
  x = f32[8] reverse(a), dimensions={0}
  y = f32[8] negate(x)
  z = f32[8] reverse(x), dimensions={0}
  ROOT t = (f32[8], f32[8]) tuple(y, z) }
""")
    fault, inputs = FAULTS["plan-reads-after-update"], [np.arange(8, dtype=np.float32)]
    with planted(fault):
        assert outcome(module, inputs, setting=UNCACHED).blamed == fault.blamed
    assert outcome(module, inputs, setting=UNCACHED).kind is OutcomeKind.AGREE


def test_a_line_that_does_not_stand_there_is_an_error():
    with pytest.raises(ValueError, match=r"divide holds 'no such line' 0 times, not once"):
        Edit("legacy.numerics.integer", "divide", "no such line", "x").swap()


def test_what_was_replaced_comes_back_whatever_happens():
    before = PASSES["algebra"]
    with pytest.raises(KeyError), planted(FAULTS["pass-algebra-forgets-a-square"]):
        assert PASSES["algebra"] is not before
        raise KeyError
    assert PASSES["algebra"] is before


def test_an_unknown_fault_is_an_error():
    with pytest.raises(InputError, match="no fault named 'x'"):
        plant("x")
