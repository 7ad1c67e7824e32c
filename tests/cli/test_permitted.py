"""diff and opt --evaluate-each do not call a difference what XLA's float rules permit on these inputs, and say so."""

import json
from pathlib import Path

import numpy as np
import pytest

from ...cli.main import main
from ...cli.status import heaviest
from ...differential.preserving import Meaning
from ...evaluator.evaluator import evaluate
from ...formats.program import save_io
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
    assert "golden and evaluator differ in 1 elements, as XLA's float rules permit: more runs" in words
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


def test_what_takes_too_long_is_undecided(diff):
    status, text = diff(-np.inf, "--patience", "1e-9")
    words = " ".join(text.split())
    assert status == 3 and "differ in 1 of 1 elements, undecided" in words
    assert "verdict: undecided: 1 of 1 results differ beyond their bounds" in words
    assert "was not found out: 24 more runs" in words and "--patience" in words and "suspect" not in words
    status, text = diff(-np.inf, "--patience", "1e-9", "--json")
    (iteration,) = json.loads(text)["programs"][0]["iterations"]
    assert status == 3 and iteration["undecided"] and not iteration["agrees"]
    assert "24 more runs" in iteration["permitted_skipped"]


NORMALISED = """HloModule normalised
ENTRY e {
  x = f32[8,64] parameter(0)
  y = f32[64,8] parameter(1)
  g = f32[8,8] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  gg = f32[8,8] multiply(g, g)
  s = f32[8,8] sqrt(gg)
  eps = f32[] constant(1e-08)
  e = f32[8,8] broadcast(eps), dimensions={}
  d = f32[8,8] add(s, e)
  ROOT q = f32[8,8] divide(g, d)
}
"""
"""On products that cancel, it gives the sign of their rounding errors."""


@pytest.fixture
def cancelling(tmp_path):
    draw, order = np.random.default_rng(0), np.random.default_rng(1).permutation(64)
    x, y = (draw.standard_normal(dims).astype(np.float32) for dims in ((8, 32), (32, 8)))
    (tmp_path / "module.hlo").write_text(NORMALISED)
    np.savez(tmp_path / "io.npz", in0=np.concatenate([x, -x], 1)[:, order], in1=np.concatenate([y, y])[order])
    return str(tmp_path)


@pytest.mark.parametrize("command", ["bisect", "reduce"])
def test_an_undecided_case_is_neither_bisected_nor_reduced(command, cancelling, capsys):
    status = main([command, cancelling, "--stacks", "evaluator:mlir", "--patience", "1e-9"])
    out = " ".join(capsys.readouterr().out.split())
    assert status == 3 and f"nothing to {command}" in out and "undecided: 1 of 1 results" in out
    assert main([command, cancelling, "--stacks", "evaluator:mlir"]) == 1
    assert "agree" in capsys.readouterr().out


def test_a_case_of_a_corpus_may_be_undecided(cancelling, capsys):
    folder = Path(cancelling)
    given = np.load(folder / "io.npz")
    expected = evaluate(parse_module(NORMALISED), [given["in0"], given["in1"]])
    save_io(folder / "io.npz", [given["in0"], given["in1"]], expected)
    (folder / "manifest.jsonl").write_text('{"id": "signs", "hlo": "module.hlo", "golden": "io.npz"}\n')
    assert main(["conform", cancelling, "--stacks", "mlir", "--jobs", "1"]) == 0
    capsys.readouterr()
    assert main(["conform", cancelling, "--stacks", "mlir", "--jobs", "1", "--patience", "1e-9"]) == 3
    assert "undecided  mlir  signs" in capsys.readouterr().out


def test_what_is_wrong_hides_what_is_undecided():
    assert heaviest((0, 3, 1)) == 1 and heaviest((0, 3)) == 3 and heaviest((3, 1, 2)) == 2 and heaviest(()) == 0


def test_a_pass_that_makes_what_is_permitted_changes_nothing():
    meaning = Meaning.of(parse_module(SUM), [OVERFLOWING])

    def constant(value: str) -> str | None:
        text = f"HloModule m\nENTRY e {{ x = f32[1,4] parameter(0)\n ROOT r = f32[1] constant({{{value}}}) }}"
        return meaning.change(parse_module(text))

    assert [constant(value) for value in ("0", "inf", "-inf", "nan")] == [None] * 4
    assert "1 elements differ" in (constant("3e38") or "")
