"""benchmarks/parity_race.py: the interval of ratios, the peak of memory, what a round times."""

import math

import numpy as np
import pytest

from ...benchmarks.parity_race import Race, geometric_mean, interval, run_rounds, start_race
from ...formats.text.parser import parse_module
from ..cases.modules import ADD


def test_the_geometric_mean_and_its_interval():
    middle, low, high = geometric_mean([[2.0] * 9, [0.5] * 9])
    assert (middle, low, high) == pytest.approx((1, 1, 1))
    random = np.random.default_rng(0)
    middle, low, high = geometric_mean([np.exp(random.normal(0.1, 0.05, 40)) for _ in range(4)])
    assert low < middle < high and low < math.exp(0.1) < high and high - low < 0.1


def test_an_outlier_hardly_counts():
    middle, low, high = interval([1.0] * 20 + [50.0])
    assert (middle, low, high) == (1, 1, 1)


def test_a_round_times_both_and_warms_each():
    calls = []
    race = Race(lambda: calls.append("old"), lambda: calls.append("new"), 1.0, 1.0, 1.0)
    (ratios,) = run_rounds([race], 4)
    assert len(ratios) == 4 and all(r > 0 for r in ratios)
    assert {"old", "new"} == set(calls)


def test_a_program_races_on_both_stacks():
    race = start_race(parse_module(ADD), [np.float32([1, 2])])
    for run in (race.old, race.new):
        (result,) = run()
        assert result.tolist() == [2, 4]
    assert race.compile_ms > 0 and race.compile_ratio > 0 and race.memory_ratio > 0
