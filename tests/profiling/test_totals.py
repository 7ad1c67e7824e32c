"""Totals: sums of intervals, the cost of marks taken off, own times that add up to the run."""

import numpy as np
import pytest

from ...profiling.totals import MOST_COST, parents_of, times_of, totals

COST = 10.0


def events(*pairs):
    marks, times = zip(*pairs)
    return np.array(marks, np.uint64), np.array(times, np.uint64)


def run_of(loop, steps, start=0):
    """A run with a loop (id 1), `loop` by itself, that holds steps (id 2) of these lengths; each mark costs COST."""
    pairs, now = [], float(start)

    def note(mark):
        nonlocal now
        pairs.append((mark, now))
        now += COST

    note(0)
    note(2)
    for length in steps:
        note(4)
        now += length
        note(5)
    now += loop
    note(3)
    note(1)
    return pairs


def test_lengths_calls_and_marks_within():
    found = totals(*events(*run_of(30, [5, 7])), 3)
    assert (found.runs, found.calls.tolist()) == (1, [1, 1, 2])
    assert found.events.tolist() == [7, 5, 2]
    assert found.times.tolist() == [30 + 12 + 7 * COST, 30 + 12 + 5 * COST, 12 + 2 * COST]
    assert found.least.tolist() == [112, 92, 5 + COST]


def test_runs_behind_each_other_are_counted():
    found = totals(*events(*run_of(30, [5, 7]), *run_of(30, [5], start=1000)), 3)
    assert found.runs == 2 and found.calls.tolist() == [2, 2, 3]


@pytest.mark.parametrize(
    "kept, calls", [(8, [1, 1, 2]), (7, [0, 1, 2]), (6, [0, 0, 2]), (5, [0, 0, 1]), (1, [0, 0, 0])]
)
def test_an_interval_without_its_end_does_not_count(kept, calls):
    assert totals(*events(*run_of(30, [5, 7])[:kept]), 3).calls.tolist() == calls


def test_the_cost_of_marks_is_taken_off_and_the_rest_adds_up():
    burst = totals(*events(*run_of(30, [5, 7])), 3)
    times = times_of([burst], [-1, 0], run=42.0, event=COST)
    assert times.own.tolist() == pytest.approx([30, 12])
    assert times.total.tolist() == pytest.approx([42, 12])
    assert times.between == pytest.approx(0) and times.scale == pytest.approx(1) and times.event == COST
    assert times.least.tolist() == pytest.approx([82, 5])


def test_what_a_mark_costs_in_the_program_is_found_from_the_run():
    burst = totals(*events(*run_of(30, [5, 7])), 3)
    times = times_of([burst], [-1, 0], run=42.0, event=4.0)
    assert times.event == pytest.approx(COST)
    assert times.own.sum() + times.between == pytest.approx(42)


@pytest.mark.parametrize("run", [0.5, 21.0, 84.0])
def test_a_run_that_fits_badly_scales_the_steps(run):
    burst = totals(*events(*run_of(30, [5, 7])), 3)
    times = times_of([burst], [-1, 0], run=run, event=1.0)
    assert 1.0 <= times.event <= MOST_COST
    assert times.own.sum() + times.between == pytest.approx(run)
    assert times.total[0] == pytest.approx(times.own.sum())


def test_an_interruption_of_one_burst_does_not_count():
    quiet, loud = (totals(*events(*run_of(30, [5, 7 + extra])), 3) for extra in (0, 10_000))
    times = times_of([quiet, loud, quiet], [-1, 0], run=42.0, event=COST)
    assert times.total.tolist() == pytest.approx([42, 12])


def test_a_run_whose_end_is_lost_is_scaled_to_the_run():
    cut = totals(*events(*run_of(30, [5, 7, 9])[:6]), 3)  # two steps of the loop, which does not end
    assert cut.runs == 1 and cut.calls.tolist() == [0, 0, 2]
    times = times_of([cut], [-1, 0], run=120.0, event=COST)
    assert times.own.tolist() == pytest.approx([0, 120]) and times.total.tolist() == pytest.approx([120, 120])


def test_no_runs_and_no_steps():
    nothing = totals(*(np.zeros(0, np.uint64),) * 2, 3)
    assert nothing.runs == 0
    times = times_of([nothing], [-1, 0], run=42.0, event=COST)
    assert (times.own.tolist(), times.between) == ([0, 0], 42)
    empty = totals(*events((0, 0), (1, 50)), 1)
    times = times_of([empty], [], run=40.0, event=COST)
    assert (len(times.own), times.between) == (0, pytest.approx(40))


def test_parents():
    assert parents_of([0, 1, 1, 2, 1, 0, 1]) == [-1, 0, 0, 2, 0, -1, 5]
