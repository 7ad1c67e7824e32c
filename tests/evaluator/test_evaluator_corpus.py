"""The evaluator against the corpora's goldens: the small corpus whole, the shared ones sampled (whole in a deep run).

Declared divergences must go on failing.
"""

import pytest

from ...differential.corpus import Case, compare_leaves, load_case, select
from ...evaluator.evaluator import evaluate
from ...hlo.errors import InputError, UnsupportedError
from ..cases.evaluator_divergences import DIVERGENCES, ELIDED, ENDLESS, SLOW
from ..support.corpus import DEEP, shared_cases, small_cases


def cases(suite: str, count: int) -> list[Case]:
    """The small corpus; of the shared one a sample (all if deep) without endless ones, and every divergence."""
    everything = [c for c in shared_cases(suite) if c.id not in ENDLESS and c.id not in SLOW]
    chosen = {c.id for c in select(everything, None, None if DEEP else count, 0)} if everything else set()
    shared = [c for c in everything if c.id in chosen or c.id in DIVERGENCES or c.id in ELIDED]
    return small_cases(suite) + shared


def agrees(case: Case) -> bool:
    try:
        program = load_case(case)
    except InputError:  # a golden that does not fit its module is a declared divergence
        return False
    results = evaluate(program.module, program.inputs)
    return all(d.agrees for d in compare_leaves(case, results, program.expected or ()))


@pytest.mark.parametrize("suite", ["op_cases", "jax_programs", "xla_modules"])
def test_goldens(suite: str):
    count = {"op_cases": 483, "jax_programs": 20, "xla_modules": 200}[suite]
    chosen = cases(suite, count)
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
    """The results are the same with XLA's fusions, bitcasts and layouts."""
    chosen = [c for c in cases("jax_programs", 12) if c.id not in DIVERGENCES]
    for case in chosen:
        program = load_case(case)
        optimised = load_case(
            Case(case.id, case.hlo.replace("module.hlo", "xla_optimized.hlo"), case.golden, None, None, None)
        )
        differences = compare_leaves(case, evaluate(optimised.module, program.inputs), program.expected or ())
        assert all(d.agrees for d in differences), (case.id, [d for d in differences if not d.agrees])
