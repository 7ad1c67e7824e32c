"""What long commands say on standard error: a line that changes on a terminal, elsewhere a line a minute."""

import sys

import pytest

from ...benchmarks.compare import compare
from ...benchmarks.rounds import Settings
from ...cli import progress
from ...cli.main import main
from ...differential.fake_inputs import fake_inputs
from ...formats.program import load_program

TEXT = "HloModule m\nENTRY e {\n  p = f32[64] parameter(0)\n  ROOT r = f32[64] tanh(p)\n}\n"


@pytest.fixture
def case(tmp_path):
    (tmp_path / "m.hlo").write_text(TEXT)
    return str(tmp_path / "m.hlo")


def test_a_terminal_shows_one_line_that_ends_empty(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress.telling() as tell:
        tell("x" * 500)
        tell("second")
    parts = capsys.readouterr().err.split("\r")
    assert parts[1].strip("x") == "" and len(parts[1]) == len(parts[2]) == len(parts[3]) < 500
    assert parts[2].strip() == "second" and not parts[3].strip() and parts[4] == ""


def test_elsewhere_a_line_a_minute(capsys, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.telling() as tell:
        for second in range(0, 200, 10):
            now[0] = float(second)
            tell(f"at {second}")
    assert capsys.readouterr().err.splitlines() == ["at 60", "at 120", "at 180"]


@pytest.mark.parametrize("command, words", [
    (["bisect"], ["run 1: the case as it is, twice"]),
    (["reduce"], ["the case itself runs, twice"]),
    (["ab", "--seconds", "0.3"], ["legacy and mlir compile", "legacy and mlir run:", "blocks,"]),
])  # fmt: skip
def test_commands_say_what_they_do(command, words, case, monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    main([command[0], case, *command[1:]])
    error = capsys.readouterr().err
    assert all(word in error for word in words), error


def test_a_comparison_tells_its_best_so_far(case):
    said = []
    program = load_program(case)
    settings = Settings(width=1e-9, seconds=0.5, sample=1e-4, rounds=1, compiles=1)
    compare(program, "legacy", "mlir", fake_inputs(program.module, 0), settings, on_step=said.append)
    assert said[0] == "legacy and mlir compile, 2 times each"
    assert any("mlir / legacy" in line and "s left at most" in line for line in said)
