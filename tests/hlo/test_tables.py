"""The tables of opcodes are consistent: every opcode has its rows, and facts in two tables agree."""

import re
from pathlib import Path

import pytest

from ...evaluator.rules import RULES
from ...hlo.opcodes import Op
from ...hlo.opset import OPSET
from ...hlo.verify.infer import INFER
from ...lhlo.table import OP_FORMS

# The real checkout, also from inside Bazel's sandbox.
ROOT = Path(__file__).resolve().parents[2]

# While and conditional are lhlo.while and lhlo.case, which have control flow of their own; a parameter is an argument.
NO_LHLO_ROW = {Op.WHILE, Op.CONDITIONAL, Op.PARAMETER}

# The evaluator binds a computation's parameters to arguments itself.
NO_RULE = {Op.PARAMETER}


@pytest.mark.parametrize(
    ("table", "without"),
    [(OPSET, set()), (INFER, set()), (RULES, NO_RULE), (OP_FORMS, NO_LHLO_ROW)],
    ids=["opset", "shape inference", "evaluator", "lhlo"],
)
def test_every_opcode_has_a_row(table, without):
    assert set(Op) - set(table) == without


def test_the_tables_stand_where_the_guide_says():
    guide = (ROOT / "docs/adding-an-op.md").read_text(encoding="utf-8")
    named = re.findall(r"`([A-Z_]{4,})` (?:of|in) `([\w/.]+\.py)`", guide)
    assert {name for name, _ in named} >= {"OPSET", "INFER", "RULES", "OP_FORMS", "SCRATCH"}
    for name, file in named:
        assert re.search(rf"^{name}\b", (ROOT / file).read_text(encoding="utf-8"), re.M), f"no {name} in {file}"
