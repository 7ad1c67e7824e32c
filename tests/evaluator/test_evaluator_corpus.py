"""The evaluator against the corpus's goldens: sampled, whole in a deep run. Declared divergences must go on failing."""

import pytest

from ...differential.corpus import Case, compare_leaves, load_case, read_suite, select
from ...evaluator.evaluator import evaluate
from ...hlo.errors import InputError, UnsupportedError
from ..cases.evaluator_divergences import DIVERGENCES, ELIDED, ENDLESS, SLOW
from ..support.hlo_corpus import CORPUS, DEEP


def cases(suite: str, count: int) -> list[Case]:
    """A sample (all if deep), without endless and slow ones, plus every declared divergence."""
    if not (CORPUS / suite / "manifest.jsonl").exists():
        return []
    everything = [c for c in read_suite(CORPUS / suite) if c.id not in ENDLESS and c.id not in SLOW]
    chosen = {c.id for c in select(everything, None, None if DEEP else count, 0)}
    return [c for c in everything if c.id in chosen or c.id in DIVERGENCES or c.id in ELIDED]


def agrees(case: Case) -> bool:
    try:
        program = load_case(case)
    except InputError:  # a golden that does not fit its module
        return False
    results = evaluate(program.module, program.inputs)
    return all(d.agrees for d in compare_leaves(case, results, program.expected or ()))


@pytest.mark.parametrize("suite", ["op_cases", "jax_programs", "xla_modules"])
def test_goldens(suite: str):
    count = {"op_cases": 483, "jax_programs": 20, "xla_modules": 200}[suite]
    chosen = cases(suite, count)
    if not chosen:
        pytest.skip(f"no corpus at {CORPUS / suite} (set TESTBED_CORPUS)")
    wrong, healed = [], []
    for case in chosen:
        if case.id in ELIDED:
            with pytest.raises(UnsupportedError, match=r"constant\(\{\.\.\.\}\)"):
                agrees(case)
        elif agrees(case) == (case.id in DIVERGENCES):
            (healed if case.id in DIVERGENCES else wrong).append(case.id)
    assert not wrong, f"differ from their goldens: {wrong}"
    assert not healed, f"agree now: take them out of DIVERGENCES: {healed}"


def test_programs_as_xla_optimised_them():
    """Fusions, bitcasts and layouts included: the same results."""
    chosen = [c for c in cases("jax_programs", 12) if c.id not in DIVERGENCES]
    if not chosen:
        pytest.skip(f"no corpus at {CORPUS} (set TESTBED_CORPUS)")
    for case in chosen:
        program = load_case(case)
        optimised = load_case(
            Case(case.id, case.hlo.replace("module.hlo", "xla_optimized.hlo"), case.golden, None, None, None)
        )
        differences = compare_leaves(case, evaluate(optimised.module, program.inputs), program.expected or ())
        assert all(d.agrees for d in differences), (case.id, [d for d in differences if not d.agrees])
