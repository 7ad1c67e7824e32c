"""How reports write numbers and lines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable

WIDTH = 80
"""Columns of a report."""


def digits(value: float | None) -> str:
    """A number in three significant digits without an exponent, as long as that is short; '-' for None."""
    if value is None or math.isnan(value):
        return "-"
    if value == 0 or math.isinf(value):
        return "0" if value == 0 else "inf"
    if not 1e-5 <= abs(value) < 1e7:
        return f"{value:.1e}"
    return f"{value:.{max(0, 2 - math.floor(math.log10(abs(value))))}f}"


def geomean(values: Iterable[float | None]) -> float | None:
    """Of the values that are known; None if there is none."""
    logs = [math.log(v) for v in values if v is not None and v > 0]
    return math.exp(sum(logs) / len(logs)) if logs else None


def wrap(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_on_hyphens=False)
