"""Every MLIR sample of docs/lhlo.md parses, verifies and prints back."""

import re
from pathlib import Path

import pytest

from ...lhlo import parse_text

PAGE = Path(__file__).resolve().parents[2] / "docs/lhlo.md"
SAMPLES = re.findall(r"```mlir\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_page_has_samples():
    assert len(SAMPLES) == 4


@pytest.mark.parametrize("sample", SAMPLES)
def test_sample_verifies_and_round_trips(sample):
    text = parse_text(sample, "docs/lhlo.md").to_text()
    assert parse_text(text).to_text() == text
