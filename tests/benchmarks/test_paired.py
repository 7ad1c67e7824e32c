"""Paired timing: bookkeeping and statistics (never a speed)."""

import gc

import numpy as np
import pytest

from ...benchmarks import paired
from ...benchmarks.paired import Timing, race, ratio, table


def test_contestants_take_turns_and_the_collector_comes_back():
    calls = []
    result = race({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, rounds=4, seconds=1e-9)
    assert set(result) == {"a", "b"} and all(len(t.rounds) == 4 for t in result.values())
    measured = calls[4:]  # after two calls of each that find the number of repeats
    starts = [name for i, name in enumerate(measured) if i == 0 or measured[i - 1] != name]
    assert starts == ["a", "b", "a", "b"] or starts[:2] == ["a", "b"]
    assert gc.isenabled()


def test_a_contestant_that_fails_stops_the_race_and_restores_the_collector():
    def fail():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        race({"a": fail}, rounds=3)
    assert gc.isenabled()


def test_the_ratio_is_paired_by_round():
    drift = np.linspace(1, 10, 9)  # a machine that becomes ten times slower during the run
    r = ratio(Timing(tuple(0.5 * drift)), Timing(tuple(drift)))
    assert (r.median, r.low, r.high) == pytest.approx((0.5, 0.5, 0.5))
    noisy = ratio(Timing((1.0, 2.0, 3.0)), Timing((1.0, 1.0, 1.0)))
    assert noisy.low <= noisy.median == 2.0 <= noisy.high and noisy.low < noisy.high


def test_the_table_names_all_and_the_base():
    text = table({"legacy": Timing((0.001,)), "mlir": Timing((0.002,))}, {"mlir": 0.25})
    assert "ratio to legacy" in text and "2.000 [2.000, 2.000]" in text and "0.250" in text


def test_a_contestant_that_has_used_its_budget_sits_out_and_ratios_pair_the_rounds_of_both(monkeypatch):
    clock = [0.0]

    def take(seconds):
        clock[0] += seconds

    monkeypatch.setattr(paired.time, "perf_counter", lambda: clock[0])
    result = race({"slow": lambda: take(4.0), "fast": lambda: take(1.0)}, rounds=6, seconds=1.0, budget=10.0)
    assert result["slow"].rounds == (4.0,) * 3 and result["fast"].rounds == (1.0,) * 6
    assert ratio(Timing((2.0, 2.0)), Timing((1.0, 1.0, 9.0))).median == 2.0
