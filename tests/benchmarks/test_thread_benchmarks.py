"""The benchmarks of threads: what they compare is equal, and a wrong result or a growth is status 1."""

import pytest

from ...benchmarks import many_callers, thread_cost
from ...benchmarks.many_callers import Outcome


@pytest.mark.parametrize("emitters", ["legacy", "mlir"])
def test_callers_get_their_own_results(emitters):
    found = many_callers.measure(callers=3, calls=200, count=2, emitters=emitters)
    assert found.calls == 600 and not found.wrong


@pytest.mark.parametrize(
    "outcome, status",
    [
        (Outcome(2, 1.0, (1000, 900), (5, 5)), 0),
        (Outcome(2, 1.0, (1000, 1000), (5, 5), (("rows", 1),)), 1),
        (Outcome(2, 1.0, (0, 1 << 20), (5, 5)), 1),
        (Outcome(2, 1.0, (0, 0), (0, 1 << 20)), 1),
    ],
)
def test_the_status_says_whether_it_is_well(outcome, status, monkeypatch, capsys):
    monkeypatch.setattr(many_callers, "measure", lambda *_: outcome)
    assert many_callers.main([]) == status
    assert f"wrong results: {len(outcome.wrong)}" in capsys.readouterr().out


def test_a_program_of_the_suite_is_compared_with_constant_bounds():
    row = thread_cost.measure("sum_rows_4096x4096", "legacy", count=2, rounds=1, compiles=1)
    assert row.split == "1/1" and row.equal and row.rest == 0
