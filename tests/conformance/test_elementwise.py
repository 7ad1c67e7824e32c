"""Every elementwise opcode × dtype on evaluator, legacy and MLIR, with special values; derived from the opset."""

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ...codegen.options import LEVELS
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
from ..support.check import check
from ..support.processors import code_for

CASES = list(cases())
COUNT = 1024
"""Elements per operand: enough for all pairs of special values, and for a vectorised loop with its remainder."""

EXAMPLES = max(3, settings().max_examples // 10)

DIVERGENCES: dict[str, str] = {}
"""Case → why its stacks may differ. A case that agrees again fails, so that the list only shrinks."""


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
    return [np.concatenate([s[:COUNT], random_values(rng, d, rest)]) for s, d in zip(special, case.operands)]


def is_complex_function(case: Case) -> bool:
    """Whether parts of the value may cancel, and libraries disagree on its special values."""
    return case.dtype.is_complex and (
        OPSET[case.op].ulp != EXACT or case.op in (Op.MULTIPLY, Op.DIVIDE, Op.SIGN, Op.SQRT)
    )


def check_case(case: Case, seed: int) -> None:
    check(case.text(COUNT), operands(case, seed))


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


@pytest.mark.parametrize("level", LEVELS)
def test_the_smallest_normals_on_every_processor(level: str):
    """Without a fused operation, x + x·c has a subnormal product, which is flushed."""
    lines, inputs = [], []
    for i, dtype in enumerate((DType.BF16, DType.F32, DType.F64)):
        ordinary = np.array([2.0**-126 if dtype is not DType.F64 else 2.0**-1022])
        sizes = np.concatenate([ordinary * f for f in (1, 1.5, 3, 17, 2.0**20)] + [[1e-9, 0.125, 0.5, 1, 1.5]])
        inputs.append(np.concatenate([sizes, -sizes]).astype(dtype.numpy))
        shape = f"{dtype.value}[{len(inputs[-1])}]"
        lines += [f"  p{i} = {shape} parameter({i})", f"  r{i} = {shape} erf(p{i})"]
    shapes = ", ".join(f"{d}[{len(inputs[0])}]" for d in ("bf16", "f32", "f64"))
    root = f"  ROOT r = ({shapes}) tuple(r0, r1, r2)"
    with code_for(level):
        check("\n".join([f"HloModule for.{level}", "ENTRY e {", *lines, root, "}", ""]), inputs)


def test_every_elementwise_row_has_a_case():
    assert {c.op for c in CASES} == ELEMENTWISE
    bits_only = {(Op.BITCAST_CONVERT, d) for d in DType if d is DType.PRED or d.is_complex}
    scope = {(op, d) for op in ELEMENTWISE for d in [*WHOLE, *COMPLEX, *(NARROW if op in TAKES_NARROW else [])]}
    assert {(c.op, c.dtype) for c in CASES} == {(op, d) for op, d in scope if d in OPSET[op].dtypes} - bits_only
    assert set(DIVERGENCES) <= {c.id for c in CASES}
