"""Verdicts name the stack to suspect."""

import numpy as np
import pytest

from ...differential.bounds import Bound
from ...differential.verdict import judge

RIGHT, WRONG = [np.float32([1, 2])], [np.float32([1, 3])]


@pytest.mark.parametrize(
    ("results", "agrees", "sentence"),
    [
        ({"evaluator": RIGHT, "legacy": RIGHT, "mlir": RIGHT}, True, "evaluator, legacy, mlir agree"),
        (
            {"evaluator": RIGHT, "legacy": RIGHT, "mlir": WRONG},
            False,
            "mlir differs from evaluator, legacy: suspect mlir",
        ),
        (
            {"evaluator": WRONG, "legacy": RIGHT, "mlir": RIGHT},
            False,
            "evaluator differs from legacy, mlir; legacy and mlir share much, and count as one: testbed bisect",
        ),
        ({"evaluator": RIGHT, "legacy": WRONG}, False, "legacy differs from evaluator: testbed bisect"),
        (
            {"legacy": RIGHT, "mlir": RIGHT, "a": WRONG, "b": WRONG + WRONG},
            False,
            "a, b differ from legacy, mlir; legacy and mlir share much, and count as one: testbed bisect",
        ),
        ({"evaluator": RIGHT, "legacy": []}, False, "legacy differs from evaluator: testbed bisect"),
    ],
)
def test_the_odd_one_out_is_suspected(results, agrees, sentence):
    verdict = judge(results, [Bound()] * 2)
    assert verdict.agrees == agrees
    assert verdict.sentence.startswith(sentence)


def test_every_pair_and_leaf_is_compared():
    verdict = judge({"evaluator": RIGHT * 2, "legacy": RIGHT * 2, "mlir": [RIGHT[0], WRONG[0]]}, [Bound()] * 2)
    assert [(c.left, c.right, c.leaf) for c in verdict.comparisons] == [
        (a, b, i) for a, b in [("evaluator", "legacy"), ("evaluator", "mlir"), ("legacy", "mlir")] for i in (0, 1)
    ]
    assert [c.difference.max_abs for c in verdict.comparisons] == [0, 0, 0, 1, 0, 1]
