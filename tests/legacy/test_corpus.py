"""The legacy stack on the conformance corpora: one-op cases, and whole programs as JAX and as XLA wrote them."""

import pytest

from ...differential.corpus import Case, compare_leaves, load_case, read_suite
from ...migration import Flags, compile_module
from ..support.corpus import shared_root, suite_cases

DIVERGENCES = {
    "cbrt.bf16": "XLA gives -5.6e-16 for every subnormal operand, whatever its sign; ours counts it as zero",
}
"""One-op cases that differ from XLA on purpose. A case that agrees must be removed from this table."""


def agrees(case: Case) -> bool:
    program = load_case(case)
    assert program.inputs is not None and program.expected is not None
    results = compile_module(program.module, Flags.parse("legacy")).execute(program.inputs)
    return all(d.agrees for d in compare_leaves(case, results, program.expected))


def test_one_op_cases():
    wrong = [c.id for c in suite_cases("op_cases", 60, seed=7) if c.id not in DIVERGENCES and not agrees(c)]
    assert not wrong


def test_declared_divergences_still_diverge():
    declared = [c for c in read_suite(shared_root() / "op_cases") if c.id in DIVERGENCES]
    assert [c.id for c in declared if agrees(c)] == [] and len(declared) == len(DIVERGENCES)


@pytest.mark.deep
def test_all_one_op_cases():
    wrong = [c.id for c in suite_cases("op_cases") if agrees(c) == (c.id in DIVERGENCES)]
    assert not wrong


@pytest.mark.parametrize("file", ["module.hlo", "xla_optimized.hlo"])
def test_programs(file: str):
    """They agree with XLA; library calls among their kernels are the runtime's."""
    chosen = suite_cases("jax_programs", 12, seed=7)
    programs = [Case(c.id, c.hlo.replace("module.hlo", file), c.golden, None, c.atol, c.rtol) for c in chosen]
    assert [program.id for program in programs if not agrees(program)] == []
