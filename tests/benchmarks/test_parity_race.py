"""benchmarks/parity_race.py: a program on both stacks, by the processor's time, with the memory of compiling."""

import time

import numpy as np

from ...benchmarks import parity_race
from ...benchmarks.parity_race import race
from ...benchmarks.rounds import Settings, interval
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ..cases.modules import ADD
from ..support import planted

QUICK = Settings(width=1.0, seconds=0.01, sample=1e-4, rounds=2, compiles=1)
INPUTS = (np.float32([1, 2]),)


def program():
    return Program("add of f32[2]", ADD, parse_module(ADD))


def test_a_program_races_on_both_stacks():
    speed, blocks = race(program(), INPUTS, QUICK)
    assert speed.name == "add of f32[2]" and speed.low <= speed.ratio <= speed.high
    assert speed.compile_ms > 0 and speed.compile_ratio > 0 and speed.memory_ratio > 0
    assert len(blocks) >= 2 and interval(blocks).median == speed.ratio


def test_times_are_the_processors(monkeypatch):
    clocks = []
    real = parity_race.compare

    def compare(*arguments, clock):
        clocks.append(clock)
        return real(*arguments, clock=clock)

    monkeypatch.setattr(parity_race, "compare", compare)
    race(program(), INPUTS, QUICK)
    assert clocks == [time.process_time]


def test_the_memory_of_compiling_counts(monkeypatch):
    planted.plant(monkeypatch, planted.hungry)
    speed, _ = race(program(), INPUTS, QUICK)
    assert speed.memory_ratio > 3
