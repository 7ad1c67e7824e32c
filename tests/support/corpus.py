"""The conformance corpus, where it is there: `TESTBED_CORPUS`, or `../shared/corpus` beside the checkout."""

import os
import random
from pathlib import Path

import pytest

CORPUS = Path(os.environ.get("TESTBED_CORPUS") or Path(__file__).absolute().parents[3] / "shared/corpus")
"""The folder of the suites, whether it exists or not."""


def corpus_root() -> Path:
    """The folder of the suites; skips the test where there is none."""
    if not CORPUS.is_dir():
        pytest.skip(f"no corpus at {CORPUS}: set TESTBED_CORPUS")
    return CORPUS


def sample(pattern: str, count: int | None = None, seed: int = 0) -> list[Path]:
    """`count` files of the corpus (all if None) that match a glob, the same ones for a seed."""
    files = sorted(corpus_root().glob(pattern))
    assert files, f"nothing in the corpus matches {pattern}"
    if count is None or count >= len(files):
        return files
    return sorted(random.Random(seed).sample(files, count))
