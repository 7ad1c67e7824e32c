"""migration/parity.py: each limit refuses what lies beyond it, in words, and nothing else."""

from dataclasses import replace

import pytest

from ...migration.parity import PARITY, Compared, Speed, shortfalls

FINE = Speed("dot of f32[16,16]", 1.0, 0.99, 1.01, 20.0, 1.2, 1.0)
RAN = Compared(PARITY.cases, "0-39", 2.0)


def verdict(compared=RAN, speeds=(FINE, FINE), mean=(1.0, 0.99, 1.01), compiling=1.2):
    return shortfalls(compared, speeds, mean, compiling)


def test_parity_passes():
    assert verdict() == []
    assert verdict(mean=(1.0, 0.9, PARITY.mean), compiling=PARITY.compile) == []
    edge = replace(FINE, low=PARITY.each, memory_ratio=PARITY.memory)
    assert verdict(speeds=(edge,)) == []


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"compared": replace(RAN, wrong=("case 3: mlir is 9 ulp off",))}, "wrong in 1 of 40 cases: case 3: mlir"),
        ({"compared": replace(RAN, cases=39)}, "only 39 cases ran, of 40 that parity needs"),
        ({"speeds": ()}, "no program was timed"),
        ({"mean": (1.2, 1.15, 1.25)}, "1.20 times as slow on average (at most 1.05)"),
        (
            {"mean": (1.04, 0.9, 1.2)},
            "cannot tell whether it is at most 1.05 times as slow: the interval is [0.90, 1.20]",
        ),
        ({"speeds": (FINE, replace(FINE, ratio=1.3, low=1.11))}, "dot of f32[16,16] takes 1.30 times as long"),
        ({"compiling": 1.6}, "compiling takes 1.60 times as long (at most 1.50)"),
        ({"speeds": (FINE, replace(FINE, memory_ratio=1.3))}, "takes 1.30 times the memory (at most 1.25)"),
    ],
)
def test_each_limit_refuses(changes, why):
    (found,) = verdict(**changes)
    assert why in found
