"""`testbed run --emitters shadow`: cost, refusals and findings, in words and in the document."""

import json
from dataclasses import replace
from importlib import import_module

import pytest

from ...backends.base import Emitter
from ...cli.main import main
from ...differential.finding import read_finding
from ...hlo.opcodes import Op

choose = import_module(f"{__package__.rpartition('.tests')[0]}.migration.choose")  # the package names its function so

PROGRAM = """HloModule m
ENTRY e { x = f32[5000] parameter(0)
  ROOT t = f32[5000] tanh(x) }
"""


@pytest.fixture
def run(tmp_path, capsys):
    (tmp_path / "m.hlo").write_text(PROGRAM)

    def run(*arguments):
        folder = str(tmp_path / "found")
        status = main(["run", str(tmp_path / "m.hlo"), "--seed", "3", "--findings", folder, *arguments])
        return status, capsys.readouterr().out

    return run


@pytest.fixture
def broken(monkeypatch):
    """mlir computes sines where tanh is asked for."""
    whole = choose.emitter

    def emitter(name):
        made = whole(name)
        if made.shadow is None:
            return made

        def emit(requests, options):
            turned = [replace(r, instruction=r.instruction.replace(opcode=Op.SINE)) for r in requests]
            return made.shadow.emit(turned, options)

        return replace(made, shadow=Emitter("shadow", emit, made.shadow.unsupported))

    monkeypatch.setattr(choose, "emitter", emitter)


def test_agreement_and_cost_are_said(run, tmp_path):
    status, text = run("--emitters", "shadow")
    words = " ".join(text.split())
    assert status == 0 and "shadow: 1 kernels ran on both stacks; " in words and " times the run time" in words
    assert "shadow: no result differs beyond its bounds" in words
    assert not (tmp_path / "found").exists() and max(map(len, text.splitlines())) <= 80


def test_a_difference_is_a_finding_on_disk(run, broken, tmp_path):
    status, text = run("--emitters", "shadow")
    (place,) = (tmp_path / "found").iterdir()
    assert status == 1 and str(place) in "".join(text.split()) and "suspect mlir" in " ".join(text.split())
    assert read_finding(place).blamed == ("mlir",)
    status, text = run("--emitters", "shadow", "--json")
    found = json.loads(text)["programs"][0]["iterations"][0]["shadow"]
    assert status == 1 and found["finding"] == str(place) and (found["kernels"], found["differing"]) == (1, 1)
    assert [*(tmp_path / "found").iterdir()] == [place] and found["limit"] == 4
    (group,) = found["groups"]
    assert group["calls"] == 1 and [pair["finding"] for pair in group["pairs"]] == [str(place)]
    assert "1 call differs, all kept" in " ".join(run("--emitters", "shadow")[1].split())


@pytest.mark.parametrize(("options", "message"), [
    (["--emitters", "shadow", "--profile"], "shadow kernels need a program of their own"),
    (["--emitters", "shadow", "--debug", "nan"], "shadow kernels need a program of their own"),
    (["--emitters", "shadoww"], "did you mean 'shadow'?"),
])  # fmt: skip
def test_what_cannot_be_had_is_refused(tmp_path, capsys, options, message):
    (tmp_path / "m.hlo").write_text(PROGRAM)
    assert main(["run", str(tmp_path / "m.hlo"), *options]) == 2
    assert message in capsys.readouterr().err
