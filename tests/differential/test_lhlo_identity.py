"""Programs written as LHLO are the programs that they were, and the comparison that says so can fail."""

from __future__ import annotations

import pytest

from testbed.differential import lhlo_identity
from testbed.differential.case_runner import run_case
from testbed.differential.corpus import LHLO, read_suite, select
from testbed.formats.program import Program
from testbed.formats.text.parser import parse_module
from testbed.lhlo import to_plan as to_plan_module

from ..support.corpus import SMALL

TEXT = "HloModule m\nENTRY e { x = f32[8] parameter(0)\n y = f32[8] negate(x)\n ROOT r = f32[8] exponential(y) }"


def test_cases_of_the_small_corpus():
    cases = select(read_suite(SMALL), None, 6, 4)
    rows = [run_case(case, LHLO) for case in cases]
    assert [(r.id, r.status, r.reason) for r in rows] == [(c.id, "passed", "") for c in cases]


@pytest.mark.parametrize("what", ["the LLVM IR of kernel", "the thunks from text differ"])
def test_a_difference_is_seen(what, monkeypatch):
    program = Program("m", TEXT, parse_module(TEXT))
    assert lhlo_identity.difference(program) is None
    if what.startswith("the LLVM"):
        count = iter(range(100))
        monkeypatch.setattr(lhlo_identity, "_ir", lambda _, requests: [next(count) for _ in requests])
    else:
        monkeypatch.setattr(to_plan_module._Steps, "block", lambda *_: ())
    assert what in (lhlo_identity.difference(program) or "")
