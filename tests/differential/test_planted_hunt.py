"""Hunts for planted faults: what is caught is reduced and bisected; results are kept, and the next hunt goes on."""

import json
from dataclasses import replace
from functools import partial

import pytest

from ...differential.campaign.campaign import Campaign
from ...differential.campaign.task import Orders
from ...differential.child import Child
from ...differential.fake_inputs import fake_inputs
from ...differential.finding import finding_of, read_finding, write_finding
from ...differential.follow_up import SMALL, follow_up
from ...differential.generate.program import Limits
from ...differential.outcome import STACKS, OutcomeKind
from ...differential.planted import hunt
from ...differential.planted.hunt import RESULTS_FILE, Caught, Hunter, Hunts, Summary, read_hunts
from ...differential.planted.table import plant
from ...differential.setting import Setting
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.errors import InputError
from ...hlo.opcodes import Op

FEW = Orders(Limits(3, ops=frozenset({Op.REVERSE}), dtypes=(DType.F32,)), mixed=False)
REVERSE, SHIFT = "legacy-reverse-forgotten", "mlir-sign-of-unsigned-shift"


MEMORY_TEXT = """HloModule m
ENTRY e { x = f32[12] parameter(0)
  y = f32[12] cosine(x)
  z = f32[12] multiply(y, x)
  r = f32[12] reverse(z), dimensions={0}
  s = f32[12] sine(r)
  ROOT t = (f32[12], f32[12]) tuple(s, z) }
"""


def test_a_finding_of_the_checking_mode_keeps_it_when_it_is_made_small_and_bisected(tmp_path):
    begin, module = partial(plant, "legacy-reverse-from-before"), parse_module(MEMORY_TEXT)
    inputs, setting = fake_inputs(module, 0), Setting(memory=True, cache=False)
    with Child(begin) as child:
        found = child.outcome(module, inputs, STACKS, setting=setting)
    assert (found.kind, found.blamed) == (OutcomeKind.CRASH, ("legacy",)) and "MemoryCheckError" in found.sentence
    folder = write_finding(tmp_path / "f", finding_of(module, inputs, found, setting=setting), stages={})
    made = follow_up(folder, begin=begin, seconds=20.0, cache=False)
    assert made is not None and (made.kind, made.blamed) == ("crash", ("legacy",))
    assert "reverse" in made.culprit and made.after < made.before
    small = read_finding(folder / SMALL)
    assert small.setting.memory and "--debug memory" in (folder / SMALL / "rerun").read_text()


def test_a_fault_is_caught_small_and_one_that_is_not_drawn_is_not(tmp_path):
    hunter = Hunter(FEW, 1, 300.0, reduce_seconds=6.0)
    (row,) = hunter.hunt(Hunts(tmp_path, 1), [REVERSE])
    assert row.caught and row.cases > 0 and row.alarms == 0
    assert (row.kind, row.blamed, row.blame_right) == ("differ", ("legacy",), True)
    assert "reverse" in row.culprit and row.culprit_right and row.after <= row.before <= 12
    kept = read_hunts(tmp_path)
    assert kept.done == {REVERSE: row} and kept.seed == 1
    (other,) = replace(hunter, seconds=1.0).hunt(kept, [REVERSE, SHIFT])
    assert (other.name, other.caught, other.blamed) == (SHIFT, False, ())
    assert list(read_hunts(tmp_path).done) == [REVERSE, SHIFT]


def test_a_catch_that_does_not_come_again_does_not_end_the_hunt(tmp_path, monkeypatch):
    folders = []

    def unsteady(folder, **options):
        folders.append(folder)
        return None if len(folders) == 1 else follow_up(folder, **options)

    monkeypatch.setattr(hunt, "follow_up", unsteady)
    (row,) = Hunter(FEW, 1, 300.0, reduce_seconds=6.0).hunt(Hunts(tmp_path, 1), [REVERSE])
    assert len(folders) == 2 and row.folder == str(folders[1]) and row.blame_right


def test_what_ends_a_process_only_once_does_not_end_the_hunt(tmp_path, monkeypatch):
    run, calls = Campaign.run, []

    def unrepeated(self):
        calls.append(self)
        if len(calls) > 1:
            return run(self)
        self.state.unrepeated.append("t1.x")
        self.state.seconds += 1.0
        return self.state

    monkeypatch.setattr(Campaign, "run", unrepeated)
    (row,) = Hunter(FEW, 1, 300.0, reduce_seconds=6.0).hunt(Hunts(tmp_path, 1), [REVERSE])
    assert len(calls) == 2 and row.caught and row.seconds > 1.0


def test_a_summary_counts_and_takes_medians():
    rows = [
        Caught("a", True, 5, 1.0, blame_right=True, culprit_right=True, after=4, reducing=2.0, alarms=1),
        Caught("b", True, 5, 1.0, blame_right=False, culprit_right=True, after=8, reducing=4.0),
        Caught("c", False, 50, 9.0),
    ]
    assert Summary.of(rows) == Summary(3, 2, 1, 2, 6, 3.0, 1)
    assert Summary.of(rows[2:]) == Summary(1, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("text", "says"),
    [(None, "No such file"), ("{", "no results"), ('{"schema": 9}', "schema 9"), ('{"schema": 1}', "no results")],
)
def test_files_that_are_no_results(tmp_path, text, says):
    if text is not None:
        (tmp_path / RESULTS_FILE).write_text(text)
    with pytest.raises(InputError, match=says) as raised:
        read_hunts(tmp_path)
    assert raised.value.remedy


def test_results_of_faults_that_are_gone_are_left_out(tmp_path):
    Hunts(tmp_path, 0, {SHIFT: Caught(SHIFT, False, 1, 1.0)}).save()
    document = json.loads((tmp_path / RESULTS_FILE).read_text())
    document["faults"].append({**document["faults"][0], "name": "gone"})
    (tmp_path / RESULTS_FILE).write_text(json.dumps(document))
    assert list(read_hunts(tmp_path).done) == [SHIFT]
