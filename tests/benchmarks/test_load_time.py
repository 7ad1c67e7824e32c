"""The benchmark of loading measures processes that run the program, and prints what they take."""

import subprocess

import pytest

from ...benchmarks import load_time


def test_each_contestant_runs_and_is_in_the_table(capsys):
    assert load_time.main(["--rounds", "1", "--host-program", "compiled"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 9
    for line, name in zip(lines[1:], load_time.commands("add.tbx"), strict=True):
        assert line.startswith(name)
        median, least, *_ = map(float, line.removeprefix(name).split())
        assert 0 < least <= median


def test_differences_are_paired_by_round():
    times = {load_time.PASS: [10.0, 30.0, 20.0], load_time.NUMPY: [90.0, 100.0, 95.0], "x": [111.0, 131.0, 120.0]}
    assert load_time.table(times).splitlines()[3].split() == ["x", "120.0", "111.0", "101.0", "25.0"]


def test_a_process_that_fails_ends_it():
    with pytest.raises(subprocess.CalledProcessError):
        load_time.measure({"exit": ["-c", "import sys; sys.exit(3)"]}, 1)
