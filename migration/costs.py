"""What an option of the plan costs: the evidence of its rows, taken together."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from .ledger import Row


@dataclass(frozen=True, slots=True)
class Costs:
    """rows: how many; on: of these. Ratios are new emitters to old, compile_ms milliseconds: geometric means over the
    rows with evidence; memory: the largest. None where no row has any.
    """

    rows: int
    on: int
    run: float | None
    compile: float | None
    compile_ms: float | None
    memory: float | None


def costs_of(rows: Sequence[Row]) -> Costs:
    """The costs of some rows."""
    evidence = [row.evidence for row in rows if row.evidence is not None]
    return Costs(
        len(rows),
        sum(row.is_on for row in rows),
        _mean([e.ratio for e in evidence]),
        _mean([e.compile_ratio for e in evidence]),
        _mean([e.compile_ms for e in evidence]),
        max((e.memory_ratio for e in evidence if math.isfinite(e.memory_ratio)), default=None),
    )


def _mean(values: Sequence[float]) -> float | None:
    """The geometric mean of those that are finite and above 0; None if there are none."""
    known = [v for v in values if 0 < v < math.inf]
    return statistics.geometric_mean(known) if known else None
