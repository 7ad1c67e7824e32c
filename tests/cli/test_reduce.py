"""The command reduce: a planted fault becomes a small finding, which it takes again; what is no finding is said."""

from __future__ import annotations

import json
from functools import partial

import pytest

from ...cli import reduce as command
from ...cli.main import main
from ...differential.child import Child
from ...differential.finding import read_finding
from ...differential.outcome import OutcomeKind
from ...differential.planted.table import FAULTS, plant
from ...differential.reduce import driver

NAME = "legacy-subtract-swapped"


@pytest.fixture
def faulty(monkeypatch, tmp_path):
    """A module on which the children's legacy stack is wrong."""
    monkeypatch.setattr(driver, "Child", lambda begin=None: Child(partial(plant, NAME)))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.hlo").write_text(FAULTS[NAME].text)
    return tmp_path


def test_a_small_finding_is_written_and_taken_again(faulty, capsys):
    assert main(["reduce", "m.hlo", "--jobs", "1", "--seconds", "600"]) == 0
    out = capsys.readouterr().out
    assert "subtract(" in out and "6 instructions became 3" in out and "suspect legacy" in out
    found = read_finding(faulty / "m.hlo.reduced")
    assert (found.kind, found.blamed) == (OutcomeKind.DIFFER, ("legacy",)) and "subtract" in found.text
    assert main(["reduce", "m.hlo.reduced", "-o", "again", "--seconds", "600", "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert (read["before"], read["after"], read["blamed"], read["folder"]) == (3, 3, ["legacy"], "again")
    assert read["complete"] and read["hlo"] == found.text


def test_an_interrupt_leaves_the_best_so_far(faulty, monkeypatch, capsys):
    def stop(progress):
        if progress.kept == 2:
            raise KeyboardInterrupt
        return ""

    monkeypatch.setattr(command, "_line", stop)
    assert main(["reduce", "m.hlo", "--jobs", "1", "--seconds", "600"]) == 130
    assert "it may become smaller" in capsys.readouterr().out
    assert read_finding(faulty / "m.hlo.reduced").blamed == ("legacy",)


def test_nothing_to_reduce(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.hlo").write_text(FAULTS[NAME].text)
    assert main(["reduce", "m.hlo", "--jobs", "1"]) == 1
    assert "nothing to reduce, all stacks agree" in capsys.readouterr().out
    assert not (tmp_path / "m.hlo.reduced").exists()


@pytest.mark.parametrize("arguments, message", [
    (["gone.hlo"], "no such file"),
    (["m.hlo", "-o", "full"], "not an empty folder"),
    (["m.hlo", "--stacks", "legacy"], "two stacks"),
    (["m.hlo", "--stacks", "legacy:mlri"], "mlri"),
    (["odd"], "case.json: not a case"),
    (["m.hlo", "--seconds", "0"], "--seconds"),
])  # fmt: skip
def test_one_line_with_the_remedy(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.hlo").write_text(FAULTS[NAME].text)
    for folder, file in (("full", "x"), ("odd", "case.json")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / file).write_text("{}")
    assert main(["reduce", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
