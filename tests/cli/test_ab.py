"""`testbed ab`: comparisons on the command line, their history, and what is refused before anything is measured."""

import json
from dataclasses import asdict, replace

import pytest

from ...benchmarks import ab_history
from ...benchmarks.ab_history import Record, by_series, drift_of
from ...benchmarks.compare import Comparison
from ...benchmarks.rounds import Block
from ...cli.main import main
from ..cases.modules import ADD

QUICK = ["--seconds", "0.01", "--width", "9"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "add.hlo").write_text(ADD)
    return tmp_path


def comparison(low, ratio, high):
    blocks = (Block((1.0, 1.0), (ratio, ratio), (5, 6)),)
    return Comparison("legacy", "mlir", ratio, low, high, 1.5, 1.0, (1.0, ratio), (0.1, 0.15), (None, 7), False, blocks)


@pytest.fixture
def measured(monkeypatch):
    """What compare returns, in turn; the calls."""
    calls, results = [], []

    def compare(program, a, b, inputs, settings, **options):
        calls.append((a, b, settings.seed, options["planted"]))
        return results.pop(0)

    monkeypatch.setattr("testbed.benchmarks.compare.compare", compare)
    return calls, results


def test_three_stacks_are_compared_and_the_history_holds_it(folder, capsys):
    assert main(["ab", "add.hlo", "--b", "mlir,add=legacy", "--c", "evaluator", "--history", "h.jsonl", *QUICK]) == 0
    out = capsys.readouterr().out
    assert "mlir,add=legacy" in out and "evaluator" in out and "run time" in out
    records = ab_history.read_history(folder / "h.jsonl")
    assert [(r.program, r.b) for r in records] == [("add.hlo", "mlir,add=legacy"), ("add.hlo", "evaluator")]
    assert main(["ab", "--history", "h.jsonl", "--plot", "p.svg"]) == 0
    assert f"add.hlo: evaluator / legacy on machine {records[0].machine}" in capsys.readouterr().out
    assert b"evaluator / legacy" in (folder / "p.svg").read_bytes() or (folder / "p.svg").stat().st_size > 5000


def test_a_ratio_that_is_surely_above_the_limit_fails(folder, measured, capsys):
    calls, results = measured
    results += [comparison(1.12, 1.2, 1.3), comparison(1.05, 1.2, 1.3)]
    assert main(["ab", "add.hlo", "--fail-above", "1.1"]) == 1
    assert main(["ab", "add.hlo", "--fail-above", "1.1", "--order", "3"]) == 0
    assert "1 of 1: the time was over before the interval was narrow" in capsys.readouterr().out.replace("\n  ", " ")
    assert calls == [("legacy", "mlir", 0, 1.0), ("legacy", "mlir", 3, 1.0)]


@pytest.mark.parametrize(("planted", "right", "status"), [("1", 2, 1), ("1.05", 1, 1)])
def test_a_calibration_counts_what_is_right(folder, measured, capsys, planted, right, status):
    calls, results = measured
    results += [comparison(0.99, 1.0, 1.01), comparison(1.01, 1.05, 1.06), comparison(0.98, 0.99, 1.0)]
    assert main(["ab", "add.hlo", "--a", "mlir", "--calibrate", "3", "--planted", planted, "--json"]) == status
    (program,) = json.loads(capsys.readouterr().out)["programs"]
    assert program["calibration"] == {"planted": float(planted), "runs": 3, "right": right}
    assert calls == [("mlir", "mlir", seed, float(planted)) for seed in range(3)]
    results += [comparison(0.99, 1.0, 1.01)] * 9 + [comparison(1.01, 1.02, 1.03)]
    assert main(["ab", "add.hlo", "--calibrate", "10"]) == 0


def test_changes_over_time_are_marked_on_the_same_machine():
    def record(machine, low, high):
        return Record("2026-11-22T10:00:00", "abc", machine, "m.hlo", "d", "legacy", "mlir", low, low, high, 1.0, 1.0)

    records = [record("one", 1.0, 1.1), record("two", 2.0, 2.1), record("one", 1.05, 1.2), record("one", 1.3, 1.4)]
    assert [len(series) for series in by_series(records)] == [3, 1]
    lines = ab_history.table(records).splitlines()
    assert [n for n, line in enumerate(lines) if "*" in line] == [4, 5] and "1.300 [1.300, 1.400]*" in lines[4]
    assert lines[5] == "since abc: 1.300 [1.182, 1.400]*"


def test_small_steps_add_up_to_a_drift():
    middles = [1.0 + n / 100 for n in range(9)]
    first = Record("w", "c0", "m", "p", "d", "a", "b", 1.0, 0.97, 1.03, 1.0, 1.0)
    records = [replace(first, commit=f"c{n}", ratio=r, low=r - 0.03, high=r + 0.03) for n, r in enumerate(middles)]
    lines = ab_history.table(records).splitlines()
    assert not [line for line in lines[:-1] if "*" in line] and lines[-1] == "since c0: 1.080 [1.019, 1.144]*"
    assert drift_of(records[:1]) is None and not drift_of(records[:3]).is_sure


def test_bad_input_is_one_line(folder, capsys):
    good = Record("w", "c", "m", "p", "d", "a", "b", 1.0, 0.9, 1.1, 1.0, 1.0)
    (folder / "bad.jsonl").write_text(json.dumps(asdict(good)) + "\n{}\n")
    (folder / "text.jsonl").write_text("a report\n")
    (folder / "types.jsonl").write_text(json.dumps(asdict(good) | {"ratio": "1"}) + "\n")
    (folder / "empty.jsonl").write_text("")
    for arguments, message in (
        ([], "give a MODULE, or --history FILE to print"),
        (["add.hlo", "--plot", "p.svg"], "--plot draws a history: add --history FILE"),
        (["add.hlo", "--planted", "1.05"], "--planted needs --calibrate N"),
        (["add.hlo", "--b", "llvm"], "unknown stack 'llvm' in 'llvm'"),
        (["add.hlo", "--history", "bad.jsonl"], "bad.jsonl:2: no comparison of testbed ab: KeyError: 'when'"),
        (["--history", "text.jsonl"], "text.jsonl:1: no comparison of testbed ab: JSONDecodeError"),
        (["--history", "types.jsonl"], "types.jsonl:1: no comparison of testbed ab: TypeError: ratio is '1'"),
        (["--history", "gone.jsonl"], "gone.jsonl: no such file"),
        (["--history", "empty.jsonl", "--plot", "p.svg"], "nothing to plot: the history is empty"),
        (["add.hlo", "--history", "new.jsonl", "--plot", "p.txt"], "p.txt: not a format for plots"),
        (["add.hlo", "--pin", "100000"], "--pin 100000: no such CPU"),
    ):
        assert main(["ab", *arguments]) == 2
        error = capsys.readouterr().err
        assert message in error and "Traceback" not in error and error.startswith("testbed: error: "), error
    assert not (folder / "new.jsonl").exists() and (folder / "bad.jsonl").read_text().count("\n") == 2
