"""`testbed planted`: the list of faults, statuses, the table, JSON, going on; the hunts themselves are replaced."""

import json

import pytest

from ...cli.main import main
from ...differential.planted.hunt import Caught, Hunter
from ...differential.planted.reach import Reach, Reached
from ...differential.planted.table import FAULTS

CAUGHT, MISSED = "legacy-reverse-forgotten", "plan-alias-of-a-transpose"


@pytest.fixture
def asked(monkeypatch):
    """The names of the faults that are hunted."""
    names = []

    def one(self, fault, folder, seed):
        names.append(fault.name)
        if fault.name == MISSED:
            return Caught(fault.name, False, 70, 9.0)
        right = {"blame_right": True, "culprit": "legacy: reverse of f32", "culprit_right": True}
        return Caught(
            fault.name, True, 7, 1.5, "differ", ("legacy",), **right, before=9, after=3, reducing=8.0, alarms=1
        )

    monkeypatch.setattr(Hunter, "one", one)
    return names


def test_the_list_has_a_row_a_fault(capsys):
    assert main(["planted", "--list", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["faults"]
    assert [row["name"] for row in rows] == list(FAULTS)
    assert rows[0].keys() == {"name", "family", "sentence", "where", "blamed", "culprits"}
    (slip,) = [row for row in rows if row["name"] == "mlir-slice-stride-of-start"]
    assert slip["where"] == ["mlir_emitters.movement.shape.slice_"] and slip["blamed"] == ["mlir"]
    assert main(["planted", "--list", "--faults", CAUGHT]) == 0
    assert "reverse copies" in capsys.readouterr().out


def test_statuses_lines_and_going_on(asked, tmp_path, capsys):
    folder = str(tmp_path / "p")
    assert main(["planted", "--faults", CAUGHT, "-o", folder]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "caught after 7 cases, 2 s; differ, blames legacy; culprit legacy: reverse of f32; 3 instructions" in shown
    assert "1 of 1 caught; blame is right in 1, bisect in 1; median of 3 instructions" in shown
    assert (tmp_path / "p" / ".gitignore").read_text() == "*\n"
    assert main(["planted", "--faults", CAUGHT, "-o", folder]) == 2
    assert "--resume goes on with them" in capsys.readouterr().err
    assert main(["planted", "--faults", f"{CAUGHT},{MISSED}", "--resume", "-o", folder, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert asked == [CAUGHT, MISSED]  # each once
    assert [row["caught"] for row in found["faults"]] == [True, False] and found["summary"]["caught"] == 1
    assert main(["planted", "--resume", "--faults", MISSED, "-o", folder]) == 1
    assert f"{MISSED} no 70 9" in " ".join(capsys.readouterr().out.split())


def test_expectations_stand_in_a_table_the_rarest_first(monkeypatch, tmp_path, capsys):
    def drawn(names, cases, *_):
        rows = [Reached(CAUGHT, cases, 9, 4), Reached(MISSED, cases, 3)]
        return Reach({row.name: row for row in rows}, cases, [17], 5.0)

    monkeypatch.setattr("testbed.differential.planted.reach.measure", drawn)
    monkeypatch.chdir(tmp_path)
    arguments = ["planted", "--expect", "100", "--faults", f"{CAUGHT},{MISSED}", "--jobs", "2"]
    assert main(arguments) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines if line.startswith(("legacy", "plan"))] == [
        [MISSED, "100", "3", "0", "more"],
        [CAUGHT, "100", "9", "4", "25"],
    ]
    assert "1.0 of 2 faults on average" in " ".join(" ".join(lines).split()) and not list(tmp_path.iterdir())
    assert main([*arguments, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["expected_caught"] == 1 and found["alarms"] == [17] and found["cases_per_second"] == 20
    assert [row["expected"] for row in found["faults"]] == [None, 25]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--faults", "legacy-revers-forgotten"], f"did you mean '{CAUGHT}'"),
        (["--faults", ","], "give a name or more"),
        (["--resume", "-o", "nowhere"], "leave out --resume to begin"),
        (["--seconds", "0"], "0 is not in the range"),
    ],
)
def test_bad_usage(arguments, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["planted", *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())
