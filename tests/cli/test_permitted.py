"""diff and opt --evaluate-each do not call a difference what XLA's float rules permit on these inputs, and say so."""

import json

import numpy as np
import pytest

from ...cli.main import main
from ...differential import permitted
from ...differential.preserving import Meaning
from ...formats.text.parser import parse_module

SUM = """HloModule m
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY e { x = f32[1,4] parameter(0)
  z = f32[] constant(0)
  ROOT r = f32[1] reduce(x, z), dimensions={1}, to_apply=add }
"""
BIG = np.float32(3e38)
OVERFLOWING = np.array([[BIG, BIG, -BIG, -BIG]])
"""Its sum is 0, an infinity or NaN, whatever the order."""


@pytest.fixture
def diff(tmp_path, capsys):
    def run(result: float, *arguments: str) -> tuple[int, str]:
        (tmp_path / "m.hlo").write_text(SUM)
        np.savez(tmp_path / "io.npz", in0=OVERFLOWING, out0=np.float32([result]))
        given = ["diff", str(tmp_path / "m.hlo"), "--stacks", "evaluator,legacy", "--inputs", str(tmp_path / "io.npz")]
        return main([*given, *arguments]), capsys.readouterr().out

    return run


def test_what_is_permitted_is_no_difference(diff):
    status, text = diff(-np.inf)
    assert status == 0
    words = " ".join(text.split())
    assert "golden and evaluator differ in 1 elements, as XLA's float rules permit: 24 more runs" in words
    assert "where they differ beyond the bounds, the float rules permit both results" in words


def test_the_document_says_which_comparisons_are_permitted(diff):
    status, text = diff(-np.inf, "--json")
    (iteration,) = json.loads(text)["programs"][0]["iterations"]
    flags = {(c["left"], c["right"]): (c["agrees"], c["permitted"]) for c in iteration["comparisons"]}
    assert status == 0 and iteration["agrees"] and iteration["permitted_skipped"] is None
    assert flags["golden", "evaluator"] == (True, True) and flags["legacy", "evaluator"][0]


def test_a_wrong_result_stays_one(diff):
    status, text = diff(float(BIG))
    assert status == 1 and "golden and evaluator differ in 1 of 1" in " ".join(text.split())


def test_bounds_of_the_user_are_all_that_counts(diff):
    assert diff(-np.inf, "--atol", "1")[0] == 1


def test_a_program_that_takes_too_long_is_compared_by_its_bounds(diff, monkeypatch):
    monkeypatch.setattr(permitted, "BUDGET", 0.0)
    status, text = diff(-np.inf)
    assert status == 1 and "what else the float rules permit was not found out: 24 more runs" in " ".join(text.split())
    status, text = diff(-np.inf, "--json")
    assert "24 more runs" in json.loads(text)["programs"][0]["iterations"][0]["permitted_skipped"]


def test_a_pass_that_makes_what_is_permitted_changes_nothing():
    meaning = Meaning.of(parse_module(SUM), [OVERFLOWING])

    def constant(value: str) -> str | None:
        text = f"HloModule m\nENTRY e {{ x = f32[1,4] parameter(0)\n ROOT r = f32[1] constant({{{value}}}) }}"
        return meaning.change(parse_module(text))

    assert [constant(value) for value in ("0", "inf", "-inf", "nan")] == [None] * 4
    assert "1 elements differ" in (constant("3e38") or "")
