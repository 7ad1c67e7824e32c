"""Each row of the opset: its facts are those of the second table, and the verifier holds instructions to them."""

from typing import NamedTuple

import pytest

from ...hlo.dtypes import DType
from ...hlo.errors import VerificationError
from ...hlo.grammar import ALLOWED, COMMON
from ...hlo.ir import Instruction
from ...hlo.opcodes import BY_NAME, Op
from ...hlo.opset import OPSET
from ...hlo.shapes import array
from ...hlo.verify.infer import INFER
from ...hlo.verify.verifier import verify_instruction
from ..cases.opset_facts import FACTS

CLASSES = {
    "pred": "pred",
    "signed": "s1 s2 s4 s8 s16 s32 s64",
    "unsigned": "u1 u2 u4 u8 u16 u32 u64",
    "float": "f16 bf16 f32 f64 f8e5m2 f8e4m3 f8e4m3fn f8e4m3b11fnuz f8e5m2fnuz f8e4m3fnuz f8e3m4 f8e8m0fnu f4e2m1fn",
    "complex": "c64 c128",
}
CLASSES["any"] = " ".join(CLASSES.values())


class Facts(NamedTuple):
    low: int
    high: int | None
    dtypes: frozenset[DType]
    elementwise: bool
    ulp: int
    required: tuple[str, ...]
    optional: frozenset[str]
    family: str


def read_facts() -> dict[Op, Facts]:
    found, family = {}, ""
    for line in FACTS.replace("\n    ", " ").strip().splitlines():
        if line.startswith("#"):
            family = line[2:]
            continue
        name, operands, dtypes, elementwise, ulp, attributes = (field.strip() for field in line.split("|"))
        low = int(operands.removesuffix("+"))
        names = [n for word in dtypes.split() for n in CLASSES.get(word, word).split()]
        keys = attributes.split()
        found[BY_NAME[name]] = Facts(
            low,
            None if operands.endswith("+") else low,
            frozenset(map(DType, names)),
            elementwise == "elementwise",
            int(ulp),
            tuple(k[:-1] for k in keys if k.endswith("!")),
            frozenset(k for k in keys if not k.endswith("!")),
            family,
        )
    return found


ROWS = read_facts()


def test_both_tables_have_all_opcodes():
    assert set(ROWS) == set(OPSET) == set(Op)


@pytest.mark.parametrize("op", ROWS, ids=lambda o: o.value)
def test_the_row_has_the_facts_of_the_second_table(op: Op):
    row, facts = OPSET[op], ROWS[op]
    assert row.dtypes == facts.dtypes
    assert (row.family.value, row.elementwise, row.ulp) == (facts.family, facts.elementwise, facts.ulp)
    assert (row.required, frozenset(row.optional)) == (facts.required, facts.optional)
    assert ALLOWED[op] == {*facts.required, *facts.optional, *COMMON}


def instruction(op: Op, count: int, without: str = "") -> Instruction:
    """An instruction with this number of operands, and all required attributes but one."""
    operands = tuple(Instruction(Op.PARAMETER, f"p{n}", array(DType.F32)) for n in range(count))
    attributes = {key: () for key in ROWS[op].required if key != without}
    return Instruction(op, "r", array(DType.F32), operands, attributes)


def complaint(i: Instruction, monkeypatch) -> str:
    """What the verifier has against an instruction before it asks the shape rule."""
    monkeypatch.setitem(INFER, i.opcode, lambda i: i.shape)
    try:
        verify_instruction(i)
    except VerificationError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("op", ROWS, ids=lambda o: o.value)
def test_the_verifier_counts_operands(op: Op, monkeypatch):
    low, high = ROWS[op].low, ROWS[op].high
    for count in (low, low + 7 if high is None else high):
        assert "[ARITY1]" not in complaint(instruction(op, count), monkeypatch)
    for count in (low - 1, low + 1 if high is not None else -1):
        assert count < 0 or "[ARITY1]" in complaint(instruction(op, count), monkeypatch)


@pytest.mark.parametrize(("op", "key"), [(op, key) for op in ROWS for key in ROWS[op].required], ids=str)
def test_the_verifier_asks_for_required_attributes(op: Op, key: str, monkeypatch):
    assert f"needs the attribute '{key}' [ATTR1]" in complaint(instruction(op, ROWS[op].low, without=key), monkeypatch)
