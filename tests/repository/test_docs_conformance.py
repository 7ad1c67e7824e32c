"""docs/conformance.md lists each deviation of the evaluator, says which side is right, and counts them."""

import re
from pathlib import Path

import pytest

from ...differential.corpus import read_suite
from ..cases.evaluator_divergences import MISSES
from ..support.corpus import shared_root

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/conformance.md").read_text(encoding="utf-8")


def test_the_page_lists_each_miss():
    listed = {}
    suite = ""
    for line in PAGE.splitlines():
        heading = re.match(r"## `(\w+)`", line)
        suite = heading[1] if heading else suite
        row = re.match(r"\| (`.+?`(?:, `.+?`)*) \| (.+?) \| (.+?) \|$", line)
        if row and suite:
            listed |= dict.fromkeys(re.findall(r"`([^`]+)`", row[1]), (suite, row[2], row[3]))
    assert listed == {name: (miss.suite, miss.what, miss.right.value) for name, miss in MISSES.items()}


@pytest.mark.parametrize("suite", ["op_cases", "xla_modules", "jax_programs"])
def test_the_page_counts(suite: str):
    row = re.search(rf"^\| `{suite}` \| (\d+) of (\d+) \|", PAGE, re.M)
    assert row is not None
    missed = sum(miss.suite == suite for miss in MISSES.values())
    assert int(row[1]) == int(row[2]) - missed
    assert len(read_suite(shared_root() / suite)) == int(row[2])
