"""`testbed exhaustive`: exit statuses, going on from a file, messages."""

import json

import pytest

from ...cli.main import main

SMALL = ["exhaustive", "--ops", "not,negate", "--dtypes", "s8", "--jobs", "1", "--stacks", "evaluator,legacy"]


def test_rows_run_once_and_a_file_goes_on(tmp_path, capsys):
    file = str(tmp_path / "results.json")
    assert main([*SMALL, "-o", file]) == 0
    assert "2 of 2 parts, 512 inputs: 2 agree, 0 refused, 0 wrong" in capsys.readouterr().out
    stored = json.loads((tmp_path / "results.json").read_text())
    stored["results"][0] |= {"status": "differ", "failures": 1, "inputs": ["7"], "reason": "suspect legacy"}
    (tmp_path / "results.json").write_text(json.dumps(stored))
    assert main([*SMALL, "-o", file]) == 1
    assert "1 of 256 elements at (7); suspect legacy" in " ".join(capsys.readouterr().out.split())
    assert main([*SMALL, "-o", file, "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["parts"], found["left"], len(found["results"])) == (2, 0, 2)
    assert found["stacks"] == stored["stacks"] == ["evaluator", "legacy"]
    assert main([*SMALL, "--stacks", "evaluator,mlir", "-o", file]) == 2
    assert "other stacks (give --stacks evaluator,legacy," in " ".join(capsys.readouterr().err.split())


def test_a_file_may_hold_other_rows(tmp_path, capsys):
    file = str(tmp_path / "results.json")
    assert main([*SMALL, "-o", file]) == 0
    stored = json.loads((tmp_path / "results.json").read_text())
    stored["results"][0]["status"] = "differ"
    (tmp_path / "results.json").write_text(json.dumps(stored))
    capsys.readouterr()
    assert main([*SMALL, "--ops", "abs", "-o", file]) == 0
    assert "1 of 1 parts, 256 inputs: 1 agree, 0 refused, 0 wrong" in capsys.readouterr().out
    assert main([*SMALL, "--ops", "abs", "-o", file, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["parts"], found["left"], [r["row"] for r in found["results"]]) == (1, 0, ["abs s8"])
    assert len(json.loads((tmp_path / "results.json").read_text())["results"]) == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--ops", "nott"], "did you mean 'not'?"),
        (["--dtypes", "s64"], "is not among them"),
        (["--stacks", "mlir"], "two stacks or more"),
    ],
)
def test_bad_usage(arguments, says, capsys):
    assert main(["exhaustive", *arguments]) == 2
    assert says in " ".join(capsys.readouterr().err.split())


def test_a_file_of_something_else_is_refused(tmp_path, capsys):
    (tmp_path / "other.json").write_text("[]")
    assert main([*SMALL, "-o", str(tmp_path / "other.json")]) == 2
    assert "no results of testbed exhaustive" in capsys.readouterr().err
