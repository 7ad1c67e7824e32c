"""How often a program is run for its time."""

import pytest

from ...migration.stacks import LONG, SHORT, TIMED_RUNS, Prepared, run_prepared


@pytest.mark.parametrize(
    ("kernels", "first", "later", "runs"),
    [
        ((), SHORT / 100, SHORT / 100, 1 + TIMED_RUNS),
        ((), SHORT, SHORT / 100, 1),  # the evaluator compiles nothing in its first run
        ((("k", "mlir"),), SHORT, SHORT / 100, 2 + TIMED_RUNS),
        ((("k", "mlir"),), SHORT, SHORT * 2, 2),
        ((("k", "mlir"),), LONG, SHORT / 100, 1),
    ],
)
def test_a_first_run_that_compiles_is_not_the_time(kernels, first, later, runs):
    given = iter([first, *[later] * 10])
    times = []

    def once(_):
        times.append(next(given))
        return []

    found = run_prepared(Prepared(once, kernels=kernels, timer=lambda: times[-1]), [])
    assert len(times) == runs and found.run_seconds == min(times)
