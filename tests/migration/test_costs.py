"""What an option of the plan costs, from the evidence of its rows."""

import math
from dataclasses import replace

from ...migration.costs import costs_of
from ...migration.ledger import judge, new_ledger
from ..support.ledgers import BAD, GOOD


def test_costs_are_means_over_the_rows_with_evidence():
    ledger = judge(new_ledger(2), "dot.float", replace(GOOD, ratio=0.5, compile_ratio=1.0, memory_ratio=1.1))
    ledger = judge(ledger, "dot.half", replace(BAD, ratio=2.0, compile_ratio=4.0, memory_ratio=math.inf))
    found = costs_of(list(ledger.rows.values()))
    assert (found.rows, found.on, found.memory) == (50, 1, 1.1)
    assert math.isclose(found.run, 1.0) and math.isclose(found.compile, 2.0) and math.isclose(found.compile_ms, 12.5)


def test_nothing_is_known_without_evidence():
    assert costs_of([]) == costs_of([]) and costs_of([]).rows == 0
    found = costs_of(list(new_ledger().rows.values()))
    assert (found.rows, found.on, found.run, found.compile, found.memory) == (50, 0, None, None, None)
    failed = judge(new_ledger(), "dot.float", replace(BAD, ratio=math.inf, compile_ratio=math.inf))
    assert costs_of(list(failed.rows.values())).run is None
