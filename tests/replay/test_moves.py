"""What a gate says of moving from version to version, and `testbed history --suite replay` around it."""

import json

import numpy as np
import pytest

from ...backends.xla import versions
from ...backends.xla.versions import Ran, XlaVersion
from ...cli.main import main
from ...differential.replay import measure as measuring
from ...differential.replay.gate import Replay, sentence
from ...differential.replay.measure import Cost, Measured
from ...differential.replay.page import page
from ...differential.replay.suite import SUITE
from ...evaluator.evaluator import evaluate

RIGHT = Measured(costs=[Cost(1, 0.1), Cost(1, 0.1)])
WRONG = Measured(wrong=["size 4: result 0 has 1 wrong elements"])
DEAD = Measured(refused=["size 2: XLA crashed"])
SLOW = Measured(costs=[Cost(1, 0.1), Cost(8, 0.1)])

PROGRAMS = {name: next(p for p in SUITE if p.name == name) for name in ("thin-sums", "small-updates.480", "gate-scan")}


def replayed(*cases):
    """A replay of versions 1, 2, …: of a value, an update and a scan each."""
    measured = {str(n): dict(zip(PROGRAMS, case, strict=True)) for n, case in enumerate(cases, 1)}
    return Replay(measured, suite=list(PROGRAMS.values()))


def said(*cases):
    return [sentence(move) for move in replayed(*cases).moves()]


@pytest.mark.parametrize(("old", "new", "answer"), [
    ((RIGHT, RIGHT, RIGHT), (RIGHT, RIGHT, RIGHT), "passed"),
    ((RIGHT, RIGHT, RIGHT), (WRONG, RIGHT, RIGHT),
     "refused; brings thin-sums (wrong: size 4: result 0 has 1 wrong elements)"),
    ((DEAD, RIGHT, RIGHT), (DEAD, RIGHT, RIGHT), "refused; keeps thin-sums"),
    ((RIGHT, RIGHT, RIGHT), (RIGHT, SLOW, RIGHT),
     "refused; brings small-updates.480 (cost: 8.0 times as long at 8 times the size, for 1 times the work)"),
    ((RIGHT, SLOW, RIGHT), (RIGHT, SLOW, RIGHT), "passed"),
    ((WRONG, SLOW, RIGHT), (RIGHT, RIGHT, RIGHT), "passed; mends thin-sums, small-updates.480"),
    ((RIGHT, RIGHT, RIGHT), (RIGHT, RIGHT, SLOW), "refused; brings gate-scan (speed: 8.0 times as long)"),
    ((RIGHT, RIGHT, SLOW), (RIGHT, RIGHT, RIGHT), "passed"),
])  # fmt: skip
def test_a_move_that_brings_a_fault_is_refused(old, new, answer):
    assert said(old, new) == [f"1 → 2: {answer}"]


def test_each_move_is_judged():
    answers = said((RIGHT, RIGHT, RIGHT), (WRONG, RIGHT, RIGHT), (RIGHT, RIGHT, RIGHT))
    assert [a.split(": ")[1].split(";")[0] for a in answers] == ["refused", "passed"]


def test_the_page_has_a_row_a_program_and_a_line_a_move():
    text = page(replayed((RIGHT, RIGHT, RIGHT), (WRONG, RIGHT, RIGHT)), "old")
    assert "| thin-sums | jax#39257, #40412 | 0.10.2, 0.11.0 | 1e+03 ms | **wrong: size 4" in text
    assert "- 1 → 2: refused; brings thin-sums" in text and "--emitters old" in text


@pytest.fixture
def jaxlibs(monkeypatch, tmp_path):
    """In place of jaxlib: version 0.9.0 is wrong in the last element, others are right."""
    monkeypatch.setattr(versions, "provided", lambda version, *_: XlaVersion(version, tmp_path, "python"))

    def run(version, module, inputs, runs, flags, limit):
        with np.errstate(all="ignore"):
            results = [np.array(x) for x in evaluate(module, inputs)]
        if version.version == "0.9.0":
            results[0].flat[-1] += 1
        return Ran(0.1, 0.001, tuple(results), 0)

    monkeypatch.setattr(measuring, "run_with", run)


COMMAND = ["history", "--suite", "replay", "--only", "matvec-squares.f64"]


def test_the_command_refuses_a_move(jaxlibs, capsys, tmp_path):
    file = tmp_path / "page.md"
    assert main([*COMMAND, "--jaxlib", "0.8.0,0.9.0", "-o", str(file)]) == 1
    out = " ".join(capsys.readouterr().out.split())
    assert "0.8.0 -> 0.9.0: refused; brings matvec-squares.f64 (wrong: size 16385" in out.replace("→", "->")
    assert "**wrong: size 16385" in file.read_text()
    assert main([*COMMAND, "--jaxlib", "0.8.0"]) == 0
    capsys.readouterr()
    assert main([*COMMAND, "--jaxlib", "0.9.0,0.8.0", "--json"]) == 0
    (move,) = json.loads(capsys.readouterr().out)["moves"]
    assert move["mends"] == ["matvec-squares.f64"] and not move["refused"]


def test_a_version_that_lacks_the_emitters_says_so(jaxlibs, monkeypatch, capsys):
    class Done:
        returncode, stdout = 1, ""
        stderr = "F0101 00:00:00 1 flags.cc:1] Unknown flag in XLA_FLAGS: --xla_cpu_use_fusion_emitters=false"

    monkeypatch.setattr(versions.subprocess, "run", lambda *_, **__: Done)
    assert main([*COMMAND, "--jaxlib", "0.12.0", "--emitters", "old"]) == 2
    assert "jaxlib 0.12.0 has the new emitters alone" in capsys.readouterr().err


@pytest.mark.parametrize(("arguments", "what"), [
    (["history"], "give MODULEs, or --suite"),
    (["history", "m.hlo", "--suite", "replay"], "give MODULEs, or --suite"),
    (["history", "m.hlo", "--emitters", "old"], "are those of --suite"),
    ([*COMMAND, "--only", "nothing", "--jaxlib", "0.8.0"], "no program of the suite is named 'nothing'"),
])  # fmt: skip
def test_what_is_refused_is_one_line(arguments, what, capsys, jaxlibs):
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert what in line
