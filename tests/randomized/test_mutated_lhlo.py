"""Damaged LHLO is refused with its place, or runs between red zones: nothing ends a process, no error lacks a place.

50,000 mutants: .venv/bin/python3 -m testbed.tests.support.lhlo_campaign
"""

from __future__ import annotations

from collections import Counter

import pytest

from ...formats.text.parser import parse_module
from ...lhlo import from_kernels
from ...planning.planner import plan
from ..support import lhlo_campaign
from ..support.corpus import DEEP
from ..support.lhlo_mutants import bases, findings, judge
from ..support.seeds import FIRST

CASES = 60 if DEEP else 10
"""Of one op, whose LHLO is damaged."""

TEXTS, EACH = (80, 500) if DEEP else (1, 60)
BYTECODES, EACH_BYTECODE = (20, 500) if DEEP else (1, 10)
"""Numbers of tests, and of mutants in each."""


def check(first: int, count: int, bytecode: bool) -> Counter[str]:
    found = findings(bases(CASES), range(FIRST + first, FIRST + first + count), bytecode=bytecode)
    assert not found.wrong, "\n".join(f"seed {seed}: {reason}" for seed, reason in found.wrong)
    assert count / 4 < found.counts["refused"]
    return found.counts


@pytest.mark.parametrize("chunk", range(TEXTS))
def test_damaged_text_is_refused_with_its_place_or_runs(chunk):
    counts = check(chunk * EACH, EACH, bytecode=False)
    assert counts["ran"] > EACH / 10


@pytest.mark.parametrize("chunk", range(BYTECODES))
def test_damaged_bytecode_is_refused_with_its_place_or_runs(chunk):
    check(chunk * EACH_BYTECODE, EACH_BYTECODE, bytecode=True)


def test_the_command_counts_and_sums_up(capsys):
    assert lhlo_campaign.main(["--count", "10", "--seed", "3", "--jobs", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].startswith("10 mutants (8 text, 2 bytecode) from seed 3000000: 0 wrong; ran ")


@pytest.mark.parametrize("position", [-1, 100, 2**34, 2**62])
def test_a_convolutions_dimension_beyond_any_array_is_refused_at_once(position):
    """Seeds 1024324 and 1038822: the text of such a label was written, character by character."""
    text = """HloModule m
ENTRY e { x = f32[2,6,6,3] parameter(0)
  w = f32[3,3,3,4] parameter(1)
  ROOT r = f32[2,4,4,4] convolution(x, w), window={size=3x3}, dim_labels=b01f_01io->b01f }
"""
    lhlo = from_kernels(plan(parse_module(text)).kernels).to_text()
    damaged = lhlo.replace("kernel_spatial = array<i64: 0, 1>", f"kernel_spatial = array<i64: {position}, 1>")
    assert damaged != lhlo
    assert judge(damaged.encode(), "mutant.lhlo.mlir", optimized=False) == ("refused", "")
