"""Exhaustive runs: which rows there are, that inputs are all of them, and that one wrong result is found."""

import numpy as np
import pytest

from ...differential.exhaustive import EIGHT, SIXTEEN, Row, parts_of, rows, run_part, run_parts
from ...hlo.dtypes import DType
from ...hlo.opcodes import Op
from ...hlo.opset import BINARY, OPSET, UNARY


def test_there_is_a_row_for_each_op_and_type():
    found = {(row.op, row.dtype) for row in rows((*SIXTEEN, *EIGHT))}
    for op in UNARY | {Op.CONVERT}:
        assert {d for o, d in found if o is op} == {d for d in (*SIXTEEN, *EIGHT) if d in OPSET[op].dtypes}
    for op in BINARY - {Op.COMPLEX}:
        assert {d for o, d in found if o is op} == {d for d in EIGHT if d in OPSET[op].dtypes}
    assert {row.op for row in rows([DType.F32])} >= {Op.TANH, Op.CONVERT} and Op.ADD not in {
        row.op for row in rows([DType.F32])
    }


def test_inputs_are_all_bits_once():
    (x,) = Row(Op.TANH, DType.BF16).inputs(0)
    assert np.array_equal(np.sort(x.view(np.uint16)), np.arange(1 << 16))
    a, b = Row(Op.ADD, DType.S8).inputs(0)
    assert len({*zip(a.tolist(), b.tolist())}) == 1 << 16
    row = Row(Op.SINE, DType.F32)
    assert row.parts == 256
    (last,) = row.inputs(255)
    assert last.size == 1 << 24 and last.view(np.uint32)[-1] == (1 << 32) - 1
    assert len(parts_of([row, Row(Op.ADD, DType.S8)])) == 257
    assert len(parts_of([row], frozenset({(row.name, 3)}))) == 255


@pytest.mark.parametrize(
    "row",
    [Row(Op.NEGATE, DType.S16), Row(Op.CONVERT, DType.F16, DType.F8E4M3FN), Row(Op.MULTIPLY, DType.U8)],
    ids=lambda row: row.name,
)
def test_rows_agree(row):
    found = run_part(row, 0)
    assert (found.status, found.cases, found.failures) == ("agree", 1 << 16, 0)
    assert found.worst.keys() == {"legacy", "mlir"}


def test_one_wrong_input_of_all_is_found(monkeypatch):
    from ...evaluator import rules

    usual = rules.RULES[Op.NEGATE]

    def wrong(x):
        return np.where(x == 1234, x.dtype.type(5), usual.function(x))

    monkeypatch.setitem(rules.RULES, Op.NEGATE, rules.numpy(wrong))
    found = run_part(Row(Op.NEGATE, DType.S16), 0)
    assert (found.status, found.failures, found.inputs) == ("differ", 1, ("1234",))


def test_processes_give_each_result_and_stop_when_told():
    seen = []
    chosen = [Row(Op.NOT, DType.U8), Row(Op.NEGATE, DType.S8), Row(Op.ABS, DType.S8)]
    run_parts(parts_of(chosen), 1, ("evaluator", "legacy"), seen.append)
    assert sorted(r.row for r in seen) == ["abs s8", "negate s8", "not u8"]
    assert {r.status for r in seen} == {"agree"} and all(r.cases == 256 for r in seen)
    run_parts(parts_of(chosen), 1, ("evaluator", "legacy"), seen.append, stop=lambda: True)
    assert len(seen) == 3
