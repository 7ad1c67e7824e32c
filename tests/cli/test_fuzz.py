"""`testbed fuzz`: exit statuses, messages, JSON, blobs, Ctrl-C and going on."""

import json
import signal
import subprocess
import sys
import time
from functools import partial

import pytest

from ...cli.fuzz import _each_minute, summary
from ...cli.main import main
from ...differential.campaign import campaign
from ...differential.campaign.coverage import by_family, reached
from ...differential.campaign.state import STATE_FILE, State, read_state
from ...differential.campaign.task import Orders, draw_task
from ...differential.child import Child
from ...differential.finding import read_finding
from ...differential.generate.program import Limits
from ...differential.generate.source import Seeded
from ...hlo.opcodes import Op
from ...migration.forms import form_tables
from ...tools.changed_ops import Wanted
from ..support.planted_tanh import plant

SMALL = ["--profile", "ci", "--jobs", "1", "--ops", "tanh", "--dtypes", "f32", "--stacks", "evaluator,legacy"]

SCALARS = {"folder", "seed", "cases", "refused", "seconds", "cases_per_second"}
DOCUMENT, LISTS = (
    {"schema", "version", "command", "status"},
    {"findings", "unrepeated", "undecided", "coverage", "forms"},
)


def test_a_planted_bug_is_found_and_the_status_is_1(tmp_path, monkeypatch, capsys):
    planted = partial(campaign.Campaign, begin=partial(plant, "wrong"))
    monkeypatch.setattr(campaign, "Campaign", planted)
    status = main(["fuzz", *SMALL, "--seconds", "300", "--first", "-o", str(tmp_path / "f"), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert status == 1 and found["status"] == 1
    assert found.keys() - DOCUMENT == SCALARS | LISTS | {"options", "reached", "focus", "examples"}
    one = {"name", "kind", "blamed", "reason", "units", "count", "flaky", "sentence", "blob", "culprit"}
    assert found["findings"][0].keys() == one
    assert [f["units"] for f in found["findings"]] == [["tanh f32"]]
    assert main(["diff", str(tmp_path / "f" / "findings" / found["findings"][0]["name"])]) == 0
    capsys.readouterr()
    assert found["findings"][0]["culprit"] is None
    assert main(["fuzz", "--jobs", "1", "--seconds", "1", "--resume", "--bisect", "-o", str(tmp_path / "f")]) == 1
    shown = capsys.readouterr().out
    assert "differ, legacy" in shown and "culprit: thunks" in shown  # all but the oracle, which is wrong
    small = tmp_path / "f/findings" / found["findings"][0]["name"] / "small"
    files = {"module.hlo", "io.npz", "case.json", "verdict.txt", "rerun", "test_case.py", "bisect.json"}
    assert files <= {f.name for f in small.iterdir()}
    assert {f.name for f in (small / "stages").iterdir()} == {"legacy"}
    told = json.loads((small / "bisect.json").read_text())
    assert told["culprit"] == "thunks" and told["after"] == len(read_finding(small).module.entry.instructions)
    assert read_state(tmp_path / "f").causes[0].culprit == told["culprit"]
    blob = found["findings"][0]["blob"]
    options = "--profile ci --ops tanh --dtypes f32 --stacks evaluator,legacy"
    assert f"./testbed fuzz {options} --blob {blob}\n" in shown


def test_without_findings_the_status_is_0(tmp_path, capsys):
    assert main(["fuzz", *SMALL, "--seconds", "1", "-o", str(tmp_path / "f")]) == 0
    assert "causes: 0" in capsys.readouterr().out
    assert main(["fuzz", *SMALL, "--seconds", "1", "-o", str(tmp_path / "f")]) == 2
    assert "--resume goes on with it" in capsys.readouterr().err


def test_a_campaign_goes_on_with_what_it_draws(tmp_path, capsys):
    folder = str(tmp_path / "f")
    assert main(["fuzz", *SMALL, "--optimized", "40", "--seconds", "1", "-o", folder, "--json"]) == 0
    begun = json.loads(capsys.readouterr().out)
    assert begun["options"]["optimized"] == 40 and begun["options"]["ops"] == "tanh"
    assert main(["fuzz", "--resume", "--jobs", "1", "--seconds", "1", "-o", folder, "--json"]) == 0
    gone_on = json.loads(capsys.readouterr().out)
    assert gone_on["options"] == begun["options"] and gone_on["seconds"] > begun["seconds"]
    assert main(["fuzz", "--resume", "--optimized", "90", "-o", folder]) == 2
    assert "begun with 40" in " ".join(capsys.readouterr().err.split())


def test_a_campaign_without_a_terminal_says_where_it_stands(monkeypatch, capsys):
    monkeypatch.setattr("testbed.cli.fuzz.LINE_SECONDS", 0.0)
    tell = _each_minute()
    tell(State(0, cases=90, seconds=3.0))
    assert "90 cases in 3 s (30.0 a second)" in capsys.readouterr().err


def test_what_did_not_run_is_named():
    orders = Orders(Limits(8, ops=frozenset({Op.TANH, Op.ADD})))
    state = State(0, cases=2000, seconds=100.0)
    state.coverage.update({("tanh", "f32", "mlir"): 5, ("tanh", "f16", "mlir"): 2, ("copy", "f32", "mlir"): 1})
    assert "mlir 1/2 opcodes, 2 pairs" in summary(state, orders)
    assert "did not run on some stack: add\n" in summary(state, orders)
    families = by_family(state.coverage, orders)
    assert families["unary"]["mlir"].left == () and families["binary"]["mlir"].left == ("add",)
    assert reached(state.coverage, orders)["mlir"].to_json() == {"pairs": 2, "opcodes": 1, "wanted": 2, "left": ["add"]}


def test_forms_that_no_kernel_had_are_named():
    """Of the tables of the stacks that ran, but for those of devices."""
    state, tables = State(0, cases=2000, seconds=100.0), form_tables()
    state.coverage["tanh", "f32", "mlir"] = 5
    host = [row.name for row in tables["mlir"] if not row.for_devices]
    state.forms.update({("mlir", name): 2 for name in host[2:]} | {("legacy", "scatter"): 1})
    shown = summary(state, Orders())
    assert f"forms of mlir: {len(host) - 2}/{len(host)}\n  not reached: {host[0]}, {host[1]}\n" in shown
    assert "forms of legacy" not in shown and "groups/" not in shown


def test_a_campaign_counts_forms_and_keeps_them(tmp_path, capsys):
    folder = tmp_path / "f"
    assert main(["fuzz", *SMALL, "--seconds", "4", "-o", str(folder), "--json"]) == 0
    forms = {(stack, form): count for stack, form, count in json.loads(capsys.readouterr().out)["forms"]}
    assert forms["legacy", "nest/linear"] > 0 and {stack for stack, _ in forms} == {"legacy"}
    assert read_state(folder).forms == forms


def test_a_blob_runs_again(capsys):
    orders = Orders(Limits(8))
    task = draw_task(Seeded(4), orders)
    assert main(["fuzz", "--profile", "ci", "--blob", task.blob]) == 0
    shown = capsys.readouterr().out
    assert "ENTRY main" in shown and "agree" in shown
    assert main(["fuzz", "--profile", "ci", "--blob", task.blob, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kind"] == "agree"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ops", "tanhh"], "did you mean 'tanh'?"),
        (["--dtypes", "f33"], "is not among them"),
        (["--ops", ","], "give a name or more"),
        (["--stacks", "mlir"], "two stacks or more"),
        (["--stacks", "mlir,nothing"], "unknown stack"),
        (["--blob", "nonsense"], "no blob"),
        (["--seconds", "0"], "--seconds"),
        (["--resume", "-o", "/nowhere/at/all"], "leave out --resume"),
        (["-o", "/proc/no"], "give a writable folder"),
        (["--corpus", "/nowhere/at/all"], "no module to edit"),
        (["--since", "HEAD", "--focus", "tanh"], "give one of them"),
        (["--since", "HEAD", "--resume"], "for a new campaign"),
    ],
)
def test_bad_usage(arguments, says, capsys):
    assert main(["fuzz", *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_what_is_found_is_kept_and_tried_first(tmp_path, monkeypatch, capsys):
    planted, usual = partial(campaign.Campaign, begin=partial(plant, "wrong")), campaign.Campaign
    examples = ["--found", str(tmp_path / "found")]
    monkeypatch.setattr(campaign, "Campaign", planted)
    assert main(["fuzz", *SMALL, *examples, "--seconds", "300", "--first", "-o", str(tmp_path / "a")]) == 1
    assert "kept as an example" in capsys.readouterr().out and len(list((tmp_path / "found").iterdir())) == 1
    monkeypatch.setattr(campaign, "Campaign", usual)
    assert main(["fuzz", *SMALL, *examples, "--seconds", "1", "-o", str(tmp_path / "b")]) == 0
    assert "1 examples of earlier runs" in capsys.readouterr().out
    monkeypatch.setattr("testbed.differential.found.Child", lambda begin: Child(partial(plant, "wrong")))
    assert main(["fuzz", *SMALL, *examples, "--seconds", "1", "-o", str(tmp_path / "c"), "--json"]) == 1
    assert len(json.loads(capsys.readouterr().out)["examples"]["failing"]) == 1


def test_the_focus_is_on_what_changed(tmp_path, monkeypatch, capsys):
    changed = Wanted({"dot", "constant"}, {("legacy", "dot/tiled")}, ["legacy/products/dot_micro.py: …"])
    monkeypatch.setattr("testbed.tools.changed_ops.wanted_since", lambda revision: changed)
    assert main(["fuzz", "--since", "HEAD", *SMALL[:4], "--seconds", "3", "-o", str(tmp_path / "f")]) in (0, 3)
    shown = capsys.readouterr().out
    assert "seed 0\nlegacy/products/dot_micro.py" in shown and "focus: dot\n" in shown
    assert "not drawn by itself: constant" in shown and "forms that changed: kernels had" in shown
    assert json.loads((tmp_path / "f" / STATE_FILE).read_text())["options"]["focus"] == "dot"
    changed = Wanted(everything=True, why=["everything: passes/dot.py"])
    monkeypatch.setattr("testbed.tools.changed_ops.wanted_since", lambda revision: changed)
    assert main(["fuzz", "--since", "HEAD", *SMALL, "--seconds", "1", "-o", str(tmp_path / "g")]) == 0
    assert "everything: passes/dot.py" in capsys.readouterr().out
    assert json.loads((tmp_path / "g" / STATE_FILE).read_text())["options"]["focus"] is None


def test_ctrl_c_leaves_a_state_that_goes_on(tmp_path):
    folder = tmp_path / "f"
    command = [sys.executable, "-m", "testbed", "fuzz", *SMALL, "-o", str(folder)]
    running = subprocess.Popen([*command, "--seconds", "3000"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while not (folder / STATE_FILE).exists() and running.poll() is None:
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=120)
    assert running.returncode == 130 and b"interrupted" in said
    state = json.loads((folder / STATE_FILE).read_text())
    assert state["schema"] == 1 and State(0).to_json().keys() == state.keys()
    again = subprocess.run([*command, "--seconds", "1", "--resume"], capture_output=True, timeout=300)
    assert again.returncode == 0, again.stderr
