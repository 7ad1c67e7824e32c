"""Every elementwise opcode × dtype on evaluator, legacy and MLIR, with special values; derived from the opset."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ...hlo.dtypes import DType
from ...hlo.opclasses import ELEMENTWISE
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.opset_rows import EXACT
from ..cases.elementwise_cases import (
    COMPLEX,
    NARROW,
    TAKES_NARROW,
    WHOLE,
    Case,
    cases,
    moderate_values,
    random_values,
    special_values,
)
from ..support.check import STACKS, check, run_stack

CASES = list(cases())
COUNT = 1024
"""Elements per operand: enough for all pairs of special values, and for a vectorised loop with its remainder."""

EXAMPLES = max(3, settings().max_examples // 10)

DIVERGENCES: dict[str, str] = {}
"""Case → why its stacks may differ. A case that agrees again fails, so that the list only shrinks."""

FLUSHED = {Op.POWER: "XLA:CPU calls pow, which does not flush what our inline power does"}
"""Opcodes that are tested without subnormal operands, with the reason."""


def operands(case: Case, seed: int) -> list[np.ndarray]:
    """All special values (all pairs for two operands, random triples for three), then random ones."""
    rng = np.random.default_rng(seed)
    if is_complex_function(case):
        return [moderate_values(rng, d, COUNT, axes=len(case.operands) == 1) for d in case.operands]
    lists = [special_values(d) for d in case.operands]
    if len(lists) == 1:
        special = lists
    elif len(lists) == 2:
        special = [x.reshape(-1) for x in np.meshgrid(*lists)]
    else:
        special = [rng.choice(x, COUNT // 2) for x in lists]
    rest = COUNT - min(COUNT, len(special[0]))
    found = [np.concatenate([s[:COUNT], random_values(rng, d, rest)]) for s, d in zip(special, case.operands)]
    return [without_subnormals(x) for x in found] if case.op in FLUSHED and case.dtype.is_float else found


def without_subnormals(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < ml_dtypes.finfo(x.dtype).smallest_normal, x * 0, x)


def is_complex_function(case: Case) -> bool:
    """Whether parts of the value may cancel, and libraries disagree on its special values: see `check_near`."""
    return case.dtype.is_complex and (OPSET[case.op].ulp != EXACT or case.op in (Op.MULTIPLY, Op.DIVIDE, Op.SIGN))


def check_near(text: str, inputs: list[np.ndarray], epsilon: float) -> None:
    """Check that the stacks agree within a distance in the complex plane, relative to max(|value|, 1)."""
    results = {stack: run_stack(text, stack, inputs)[0] for stack in STACKS}
    expected = results[STACKS[0]]
    for stack in STACKS[1:]:
        distance = np.abs(results[stack].astype(np.complex128) - expected)
        wrong = ~(distance <= epsilon * np.maximum(np.abs(expected), 1))
        at = int(np.argmax(wrong))
        values = [x[at] for x in inputs]
        assert not wrong.any(), f"{stack}({values}) is {results[stack][at]}, {STACKS[0]}'s is {expected[at]}\n{text}"


def check_case(case: Case, seed: int) -> None:
    inputs, text = operands(case, seed), case.text(COUNT)
    if is_complex_function(case):
        check_near(text, inputs, 1e-4 if case.dtype.bits == 64 else 1e-9)
    else:
        check(text, inputs, one_op=case.op.value)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)
def test_elementwise(case: Case):
    if case.id in DIVERGENCES:
        with pytest.raises(AssertionError):
            for seed in range(10):
                check_case(case, seed)
        return

    @settings(max_examples=EXAMPLES, phases=[Phase.explicit, Phase.generate])  # a smaller seed is no simpler example
    @given(st.integers(0, 2**32 - 1))
    def holds(seed: int) -> None:
        check_case(case, seed)

    holds()


def test_every_elementwise_row_has_a_case():
    assert {c.op for c in CASES} == ELEMENTWISE
    bits_only = {(Op.BITCAST_CONVERT, d) for d in DType if d is DType.PRED or d.is_complex}
    scope = {(op, d) for op in ELEMENTWISE for d in [*WHOLE, *COMPLEX, *(NARROW if op in TAKES_NARROW else [])]}
    assert {(c.op, c.dtype) for c in CASES} == {(op, d) for op, d in scope if d in OPSET[op].dtypes} - bits_only
    assert set(DIVERGENCES) <= {c.id for c in CASES} and set(FLUSHED) <= ELEMENTWISE
