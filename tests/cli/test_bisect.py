"""The command bisect: the culprit with its evidence, as text and as JSON; a healthy case; errors."""

from __future__ import annotations

import json
from functools import partial

import pytest

from ...cli.main import main
from ...differential import child
from ...differential.child import Child
from ...differential.planted.table import FAULTS, plant

NAME = "mlir-reverse-off-by-one"


@pytest.fixture
def module(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.hlo").write_text(FAULTS[NAME].text)
    return tmp_path


def test_the_culprit_is_named(module, monkeypatch, capsys):
    monkeypatch.setattr(child, "Child", lambda: Child(partial(plant, NAME)))
    assert main(["bisect", "m.hlo"]) == 0
    out = capsys.readouterr().out
    assert "culprit: mlir: reverse of f32" in out and "--emitters mlir,reverse=legacy" in out and "as it is" in out
    assert main(["bisect", "m.hlo", "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert read["culprit"] == "mlir: reverse of f32" and read["blamed"] == ["mlir"] and read["evidence"][0]["shows"]


def test_a_healthy_case_is_said(module, capsys):
    assert main(["bisect", "m.hlo"]) == 1
    assert "nothing to bisect: evaluator, legacy, mlir agree" in capsys.readouterr().out


@pytest.mark.parametrize("arguments, message", [(["gone"], "no such file"), (["m.hlo", "--stacks", "mlir"], "two")])
def test_one_line_with_the_remedy(arguments, message, module, capsys):
    assert main(["bisect", *arguments]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
