"""The conformance corpus, where it is there: `TESTBED_CORPUS`, or `../shared/corpus` beside the checkout."""

import os
import random
from pathlib import Path

import pytest


def corpus_root() -> Path:
    """The folder of the suites; skips the test where there is none."""
    root = Path(os.environ.get("TESTBED_CORPUS") or Path(__file__).absolute().parents[2] / "shared/corpus")
    if not root.is_dir():
        pytest.skip(f"no corpus at {root}: set TESTBED_CORPUS")
    return root


def sample(pattern: str, count: int | None = None, seed: int = 0) -> list[Path]:
    """`count` files of the corpus (all if None) that match a glob, the same ones for a seed."""
    files = sorted(corpus_root().glob(pattern))
    assert files, f"nothing in the corpus matches {pattern}"
    if count is None or count >= len(files):
        return files
    return sorted(random.Random(seed).sample(files, count))
