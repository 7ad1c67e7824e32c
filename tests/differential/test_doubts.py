"""A version of jaxlib with known faults is no oracle: it has no voice, and the verdict says why."""

import numpy as np
import pytest

from ...differential import doubts
from ...differential.bounds import Bound
from ...differential.doubts import doubted_stacks
from ...differential.outcome import OutcomeKind, Run, RunKind, concluded
from ...differential.replay.programs import matvec_squares
from ...differential.verdict import judge
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError

RIGHT, WRONG = [np.float32([1, 2])], [np.float32([1, 3])]
SUM = parse_module(matvec_squares("f32", 4))
PLAIN = parse_module("HloModule m\nENTRY e { x = f32[2] parameter(0)\n ROOT r = f32[2] negate(x) }")
STACKS = ("evaluator", "legacy", "mlir", "xla")


@pytest.fixture(autouse=True)
def jaxlib(monkeypatch):
    monkeypatch.setattr(doubts, "version", lambda: "0.10.2")


@pytest.mark.parametrize(("module", "stacks", "flags", "names"), [
    (SUM, STACKS, None, ["xla"]),
    (SUM, STACKS, "--xla_cpu_use_fusion_emitters=true", ["xla"]),
    (SUM, STACKS, "--xla_cpu_experimental_ynn_fusion_type=", []),
    (SUM, ("evaluator", "xla-new"), None, []),
    (PLAIN, STACKS, None, []),
])  # fmt: skip
def test_who_is_doubted(module, stacks, flags, names):
    assert list(doubted_stacks(module, stacks, flags)) == names


def test_other_versions_are_trusted(monkeypatch):
    monkeypatch.setattr(doubts, "version", lambda: "0.12.0.1")
    assert doubted_stacks(SUM, STACKS) == {}


def test_flags_that_are_none_are_refused():
    with pytest.raises(InputError):
        doubted_stacks(SUM, STACKS, "nonsense")


def test_a_doubted_stack_outvotes_nobody():
    """With a voice, it would decide against the oracle."""
    results = {"evaluator": RIGHT, "legacy": WRONG, "mlir": WRONG, "xla": WRONG}
    assert "suspect evaluator" in judge(results, [Bound()]).sentence
    sentence = judge(results, [Bound()], None, doubted_stacks(SUM, results)).sentence
    assert "suspect" not in sentence
    assert sentence.endswith("; xla: jaxlib 0.10.2 with YNN is no oracle for sums (jax#39103)")


def test_a_doubted_stack_is_suspected_by_the_oracle_alone():
    results = {"evaluator": RIGHT, "xla": WRONG}
    assert "suspect" not in judge(results, [Bound()]).sentence
    assert (
        "xla differs from evaluator: suspect xla; xla: jaxlib"
        in judge(results, [Bound()], None, doubted_stacks(SUM, results)).sentence
    )
    agreeing = judge({"evaluator": RIGHT, "xla": RIGHT}, [Bound()], None, doubted_stacks(SUM, STACKS))
    assert agreeing.sentence == "evaluator, xla agree"


def test_the_outcome_of_a_case_blames_by_voices():
    x, m = np.ones((4, 3), np.float32), np.eye(3, dtype=np.float32)
    right, wrong = (np.full(4, 3, np.float32),), (np.float32([3, 3, 3, 9]),)
    runs = {name: Run(RunKind.RAN, wrong if name == "xla" else right) for name in ("evaluator", "xla")}
    found = concluded(SUM, [x, m], runs)
    assert found.kind is OutcomeKind.DIFFER and found.blamed == ("xla",)
    assert found.verdict is not None and list(found.verdict.doubted) == ["xla"]
