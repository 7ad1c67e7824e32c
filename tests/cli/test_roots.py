"""Root causes in what `fuzz --bisect` and `conform --roots` print, and in `planted --together`."""

import json
import re
from functools import partial

from ...cli.conform_roots import print_roots
from ...cli.fuzz import groups_of
from ...cli.main import main
from ...differential.campaign.cause import Cause
from ...differential.campaign.state import Known, State
from ...differential.corpus import Case
from ...differential.finding import read_finding
from ...differential.report import CaseResult
from ..support.planted_tanh import plant

TANH = """HloModule tanh

ENTRY e {
  p = f32[4] parameter(0)
  n = f32[4] negate(p)
  ROOT r = f32[4] tanh(n)
}
"""


def test_findings_of_a_campaign_are_listed_by_root_causes(tmp_path):
    causes = [Cause("differ", ("mlir",), "", (f"{op} f32",)) for op in ("dot", "add", "tanh")]
    state = State(0)
    state.causes = [
        Known(causes[0], "b", "s", root="mlir form dot/tiled", size=9),
        Known(causes[1], "b", "s", root="mlir form dot/tiled", size=3),
        Known(causes[2], "b", "s"),
    ]
    lines = groups_of(state, tmp_path)
    assert lines[0] == "root causes: 1 of 2 findings" and "2 × mlir form dot/tiled" in lines[1]
    assert str(causes[1].folder(tmp_path) / "small") in lines[1]
    assert groups_of(State(0), tmp_path) == []


def test_failures_of_a_suite_have_one_module_a_root_cause(tmp_path, capsys):
    (tmp_path / "a.hlo").write_text(TANH)
    cases = [Case(name, str(tmp_path / "a.hlo"), None, None, None, None) for name in ("a", "b", "c")]
    failures = [
        CaseResult("a", "legacy", "failed"),
        CaseResult("b", "legacy", "failed"),
        CaseResult("c", "c", "failed"),
    ]
    print_roots(cases, failures, tmp_path / "roots", 1, 10.0, partial(plant, "wrong"))
    shown = capsys.readouterr().out
    assert "root causes: 1 of 2 cases" in shown and "2 x thunks: a, b" in shown
    (place,) = (tmp_path / "roots").iterdir()
    assert read_finding(place).sentence and read_finding(place).stacks == ("evaluator", "legacy")
    print_roots(cases, failures[:1], tmp_path / "none", 1, 10.0)
    assert "no root cause of a: the evaluator and legacy agree on it" in capsys.readouterr().out


def test_many_faults_are_grouped(capsys):
    status = main(["planted", "--together", "--faults", "legacy-iota-along-the-last", "--seconds", "20", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == status == 0 and found["planted"] == ["legacy-iota-along-the-last"]
    # In little time a group may be named by what holds the fault: "legacy: iota of u2".
    assert all(re.fullmatch("legacy rule iota|legacy: iota of .*", g["root"]) for g in found["groups"])
    assert found["cases"] > 0
    assert all(g["faults"] == ["legacy-iota-along-the-last"] for g in found["groups"])
