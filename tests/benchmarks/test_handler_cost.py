"""The benchmark of calls of handlers runs, and its handler is called as often as its program says."""

from __future__ import annotations

import math

import pytest

from ...backends.xla import installed
from ...benchmarks.handler_cost import EACH, TARGET, handler, measure, program
from ...ffi import registry


@pytest.fixture
def nothing():
    code = handler()
    yield code
    registry.unregister(TARGET)


def test_a_row_has_both_times(nothing):
    row = measure(3, 1, calls=80, rounds=1)
    assert math.isfinite(row.ours) and math.isfinite(row.xla) is installed()
    assert row.cells()[0] == "4"


def test_a_body_holds_its_calls():
    assert program(8, 4, 800, EACH).count("custom-call(x, x, x, x, x, x, x, x)") == EACH
    assert "constant(100)" in program(0, 0, 800, 0) and "custom-call" not in program(0, 0, 800, 0)
