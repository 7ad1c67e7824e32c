"""How often a program is run for its time, and that cold runs are no part of it."""

import pytest

from ...migration.stacks import LEAST_RUNS, LONG, MOST_RUNS, SECONDS, Prepared, run_prepared

SHORT = SECONDS / LEAST_RUNS
KERNELS = (("k", "mlir"),)


@pytest.mark.parametrize(
    ("kernels", "cold", "later", "runs"),
    [
        ((), [SHORT], 1e-6, 1 + 1 + MOST_RUNS),
        ((), [SHORT], SHORT / 2, 1 + 1 + LEAST_RUNS),
        ((), [SHORT], SHORT * 1.5, 2),
        (KERNELS, [SHORT, SHORT * 2], 1e-6, 2 + 1 + MOST_RUNS),  # the second one compiles the entry
        (KERNELS, [SHORT, SHORT * 2], SHORT * 1.5, 3),
        (KERNELS, [LONG], 1e-6, 1),
        ((), [LONG], 1e-6, 1),
    ],
)
def test_cold_runs_are_not_the_time(kernels, cold, later, runs):
    given, times = iter([*cold, *[later] * 200]), []

    def once(_):
        times.append(next(given))
        return []

    found = run_prepared(Prepared(once, kernels=kernels, timer=lambda: times[-1]), [])
    assert len(times) == runs and found.run_seconds == times[-1]


def test_the_time_is_the_median_of_the_others():
    times = [0.05, 0.05] + [0.01, 0.03, 0.02] * 100
    given, last = iter(times), [0.0]

    def once(_):
        last[0] = next(given)
        return []

    assert run_prepared(Prepared(once, timer=lambda: last[0]), []).run_seconds == 0.02
