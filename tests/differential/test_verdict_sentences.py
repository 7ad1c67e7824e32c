"""Whom a verdict suspects: groups of stacks that share much do not outvote the oracle."""

import numpy as np
import pytest

from ...differential.bounds import Bound
from ...differential.verdict import judge

RIGHT, WRONG = [np.float32(1)], [np.float32(2)]


def sentence(right: str, wrong: str) -> str:
    results = dict.fromkeys(right.split(), RIGHT) | dict.fromkeys(wrong.split(), WRONG)
    order = ("evaluator", "optimized", "legacy", "mlir", "c", "xla", "golden")
    return judge({name: results[name] for name in order if name in results}, [Bound()]).sentence


@pytest.mark.parametrize("right, wrong, suspects", [
    ("evaluator legacy", "mlir", "mlir"),
    ("evaluator xla", "legacy mlir c", "c, legacy, mlir"),
    ("legacy mlir xla", "evaluator", "evaluator"),
    ("evaluator legacy mlir", "xla", "xla"),
    ("evaluator xla", "mlir", "mlir"),
    ("evaluator golden", "optimized legacy mlir", "legacy, mlir, optimized"),
])  # fmt: skip
def test_a_majority_of_independent_voices_decides(right, wrong, suspects):
    assert sentence(right, wrong).endswith(f": suspect {suspects}")


@pytest.mark.parametrize("right, wrong", [
    ("evaluator", "legacy mlir"),
    ("evaluator", "optimized legacy mlir c"),
    ("evaluator legacy", "mlir xla"),
    ("legacy", "mlir"),
])  # fmt: skip
def test_without_one_a_command_decides(right, wrong):
    text = sentence(right, wrong)
    assert "suspect" not in text and "testbed bisect" in text and "differ" in text


def test_stacks_that_share_much_are_named():
    assert "legacy and mlir share much, and count as one" in sentence("evaluator", "legacy mlir")
