"""Every elementwise opcode × dtype on evaluator, legacy and MLIR, with special values; derived from the opset."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .check import check
from .elementwise_cases import Case, cases, random_values, special_values

CASES = list(cases())
COUNT = 1024
"""Elements of each operand: enough for all pairs of special values, and for the vectorised loop and its tail."""

BASE_EXAMPLES = 3


def examples() -> int:
    return max(BASE_EXAMPLES, settings().max_examples // 10)


def operands(case: Case, seed: int) -> list[np.ndarray]:
    """All special values (for two operands all pairs; for three random triples), then random ones."""
    rng = np.random.default_rng(seed)
    lists = [special_values(d) for d in case.operands]
    if len(lists) == 1:
        special = lists
    elif len(lists) == 2:
        special = [x.reshape(-1) for x in np.meshgrid(*lists)]
    else:
        special = [rng.choice(x, COUNT // 2) for x in lists]
    rest = COUNT - min(COUNT, len(special[0]))
    return [np.concatenate([s[:COUNT], random_values(rng, d, rest)]) for s, d in zip(special, case.operands)]


@pytest.mark.parametrize("case", CASES, ids=[c.id for c in CASES])
def test_elementwise(case: Case):
    text = case.text(COUNT)

    @settings(max_examples=examples())
    @given(st.integers(0, 2**32 - 1))
    def holds(seed: int) -> None:
        check(text, operands(case, seed), one_op=case.op.value)

    holds()


def test_every_elementwise_row_has_a_case():
    from ..hlo.opset import ELEMENTWISE

    assert {c.op for c in CASES} == ELEMENTWISE
    assert len(CASES) > 450
