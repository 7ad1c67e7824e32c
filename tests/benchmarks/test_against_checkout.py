"""Programs compared with another checkout: here with this one itself."""

import json
import os

import pytest

from ...benchmarks.against_checkout import ROOT, Worker, compared, main, report, workers

EXAMPLE = ROOT / "examples" / "integer_hash"


@pytest.fixture
def checkout():
    if not (ROOT / ".venv" / "bin" / "python3").exists():
        pytest.skip("the tests run in another environment than the checkout's .venv")
    return ROOT


def test_both_sides_are_timed_on_each_stack(checkout, tmp_path, monkeypatch, capsys):
    file = tmp_path / "rows.json"
    arguments = [checkout, EXAMPLE, "--rounds", "2", "--seconds", "0.001", "--json", file]
    monkeypatch.setattr("sys.argv", ["against_checkout", *map(str, arguments)])
    assert main() == 0
    rows = json.loads(file.read_text())
    assert [row["stack"] for row in rows] == ["legacy", "mlir"]
    assert all(row["run"]["median"] > 0 and row["compile"] > 0 and not row["refused"] for row in rows)
    assert "mlir: 1 programs, geometric means: run time" in capsys.readouterr().out


def test_what_a_side_refuses_is_in_its_row(checkout):
    with workers(checkout, min(os.sched_getaffinity(0))) as pair:
        row = compared(pair, EXAMPLE, "no-such-stack", rounds=2, seconds=0.001)
    assert row.run is None and "no-such-stack" in row.refused
    assert "no-such-stack" in report([row])


def test_a_checkout_without_an_environment_is_named(tmp_path):
    with pytest.raises(SystemExit, match=r"has no \.venv"):
        Worker(tmp_path, 0)
