"""Damaged LHLO is refused with its place, or runs between red zones: nothing ends a process, no error lacks a place.

50,000 mutants: TESTBED_DEEP=1 .venv/bin/python3 -m pytest tests/randomized/test_mutated_lhlo.py
"""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from ...formats.text.parser import parse_module
from ...hlo.errors import TestbedError
from ...lhlo import from_kernels, from_plan
from ...planning.planner import plan
from ...profiling.insert import profiled
from ..support.corpus import DEEP, sample
from ..support.lhlo_mutants import findings
from ..support.lhlo_programs import LOOP, SMALL_LOOP
from ..support.seeds import FIRST

BIGGEST = 5_000
"""Characters of the longest text that is damaged: in a longer one most damage is of the same few kinds."""

TEXTS, EACH = (80, 500) if DEEP else (1, 60)
BYTECODES, EACH_BYTECODE = (20, 500) if DEEP else (1, 10)
"""Numbers of tests, and of mutants in each. Bytecode under a right checksum takes a child process each."""


def forms(text: str) -> list[str]:
    """A module as a program and as kernels; nothing where it cannot be planned or written."""
    try:
        made = plan(parse_module(text))
        return [from_plan(made).to_text(), from_kernels(made.kernels).to_text()]
    except TestbedError:
        return []


@cache
def bases() -> tuple[str, ...]:
    """Programs and kernels of the small corpus, as LHLO, and one with a profiler."""
    found = [from_plan(profiled(plan(parse_module(SMALL_LOOP)))).to_text()]
    for text in (LOOP, *(p.read_text() for p in sample("op_cases/*.hlo", 60 if DEEP else 10, seed=5))):
        found += forms(text)
    return tuple(t for t in found if len(t) <= BIGGEST)


def check(first: int, count: int, bytecode: bool) -> Counter[str]:
    found = findings(bases(), range(FIRST + first, FIRST + first + count), bytecode=bytecode)
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
