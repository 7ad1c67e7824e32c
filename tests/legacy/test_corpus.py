"""The legacy stack on the conformance corpus: one-op cases, and whole programs as JAX and as XLA wrote them."""

import pytest

from ...differential.corpus import Case, compare_leaves, load_case, read_suite, select
from ...hlo.errors import UnsupportedError
from ...migration import compile_module
from ..support.corpus import corpus_root

DIVERGENCES = {
    "cbrt.bf16": "XLA gives -5.6e-16 for every subnormal operand, whatever its sign; ours counts it as zero",
}
"""One-op cases that differ from XLA on purpose. They must differ: one that agrees leaves this table."""


def cases(suite: str, count: int) -> tuple[Case, ...]:
    return select(read_suite(corpus_root() / suite), None, count, seed=7)


def agrees(case: Case) -> bool:
    program = load_case(case)
    assert program.inputs is not None and program.expected is not None
    results = compile_module(program.module).execute(program.inputs)
    return all(d.agrees for d in compare_leaves(case, results, program.expected))


def test_one_op_cases():
    wrong = [c.id for c in cases("op_cases", 90) if c.id not in DIVERGENCES and not agrees(c)]
    assert not wrong


def test_declared_divergences_still_diverge():
    declared = [c for c in cases("op_cases", 483) if c.id in DIVERGENCES]
    assert [c.id for c in declared if agrees(c)] == [] and len(declared) == len(DIVERGENCES)


@pytest.mark.deep
def test_all_one_op_cases():
    wrong = [c.id for c in cases("op_cases", 483) if agrees(c) == (c.id in DIVERGENCES)]
    assert not wrong


@pytest.mark.parametrize("file", ["module.hlo", "xla_optimized.hlo"])
def test_programs(file: str):
    """Those that need nothing but this stack's opcodes agree with XLA."""
    ran = 0
    for case in cases("jax_programs", 16):
        program = Case(case.id, case.hlo.replace("module.hlo", file), case.golden, None, case.atol, case.rtol)
        try:
            assert agrees(program), f"{case.id} differs"
            ran += 1
        except UnsupportedError:
            continue
    assert ran >= 4
