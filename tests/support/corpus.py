"""Corpora for tests: the small one in tests/corpus, always, and the shared ones where they are.

The shared ones lie in `TESTBED_CORPUS`, or in `../shared/corpus` beside the checkout.
"""

import os
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import pytest

from ...differential.corpus import Case, read_suite

T = TypeVar("T")

SMALL = Path(__file__).absolute().parents[1] / "corpus"

CORPUS = Path(os.environ.get("TESTBED_CORPUS") or Path(__file__).absolute().parents[3] / "shared/corpus")
"""The folder of the shared suites, whether it exists or not."""

DEEP = bool(os.environ.get("TESTBED_DEEP"))

SMALL_SUITE = {
    "op_cases": "op_cases",
    "jax_programs": "jax_programs",
    "xla_modules": "modules",
    "parse_only": "modules",
}
"""Which folder of the small corpus holds what a suite of the shared ones holds."""


def shared_root() -> Path:
    """The folder of the shared suites, for what is said of them alone; skips the test where there is none."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus at {CORPUS}: set TESTBED_CORPUS")
    return CORPUS


def some(items: Sequence[T], count: int | None, seed: int) -> list[T]:
    """`count` of the items (all if None), in their order; the same ones for a seed."""
    if count is None or count >= len(items):
        return list(items)
    return [items[n] for n in sorted(random.Random(seed).sample(range(len(items)), count))]


def sample(pattern: str, count: int | None = None, seed: int = 0) -> list[Path]:
    """The files of the small corpus that match a glob below a suite, and `count` (all if None) of the shared one's."""
    suite, _, below = pattern.partition("/")
    files = sorted((SMALL / SMALL_SUITE[suite]).glob(below))
    assert files, f"nothing in {SMALL} matches {pattern}"
    shared = sorted(CORPUS.glob(pattern))
    assert shared or not CORPUS.is_dir(), f"nothing in {CORPUS} matches {pattern}"
    return files + some(shared, count, seed)


def small_cases(suite: str) -> list[Case]:
    """The cases of the small corpus that stand for a suite."""
    folder = f"/{SMALL_SUITE[suite]}/"
    found = [case for case in read_suite(SMALL) if folder in case.hlo]
    assert found, f"no case of {suite} in {SMALL}"
    return found


def suite_cases(suite: str, count: int | None = None, seed: int = 0) -> list[Case]:
    """The small corpus' cases, and `count` of the shared suite's where it is there."""
    return small_cases(suite) + some(shared_cases(suite), None if DEEP else count, seed)


def shared_cases(suite: str) -> Sequence[Case]:
    """All cases of a shared suite; none where it is absent."""
    return read_suite(CORPUS / suite) if (CORPUS / suite).is_dir() else ()
