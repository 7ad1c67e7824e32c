"""Operands whose dimensions of one role are not one in memory are copied; results do not change."""

import pytest

from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.opcodes import Op
from ....migration import Flags, compile_module
from ....passes.canonical import copy_dot_operands
from ....passes.canonical.copy_dot_operands import are_one
from ....planning.planner import plan
from ...support.passes import agree, fill, run, same

PASSES = ("flatten", "copy-dot-operands", "dce")


def text(left: str, right: str, result: str, contracted: str, batch: str = "") -> str:
    (a, c), names = contracted.split(":"), ("lhs", "rhs")
    numbers = [f"{n}_contracting_dims={{{d}}}" for n, d in zip(names, (a, c), strict=True)]
    numbers += [f"{n}_batch_dims={{{d}}}" for n, d in zip(names, batch.split(":"), strict=True)] if batch else []
    return f"""HloModule m
ENTRY e {{ x = {left} parameter(0)
  y = {right} parameter(1)
  ROOT r = {result} dot(x, y), {", ".join(numbers)} }}
"""


CASES = {
    "the left one": (text("f32[9,4,8,5]", "f32[4,5,16]", "f32[9,8,16]", "1,3:0,1"), (9, 8, 4, 5)),
    "pairs in another order": (text("f32[9,4,8,5]", "f32[5,4,16]", "f32[9,8,16]", "3,1:0,1"), (9, 8, 5, 4)),
    "the right one": (text("f32[9,4,5]", "f32[4,16,5]", "f32[9,16]", "1,2:0,2"), (16, 4, 5)),
    "neither": (text("f32[9,4,5]", "f32[4,5,16]", "f32[9,16]", "2,1:1,0"), None),
    "pairs that cross": (text("f32[2,64,6,8]", "f32[2,64,8,6]", "f32[2,64,64]", "2,3:3,2", "0:0"), (2, 64, 6, 8)),
    "both": (text("f32[4,16,5]", "f32[4,16,5]", "f32[16,16]", "0,2:0,2"), (16, 4, 5)),
    "by columns": (text("f32[4,16,5,8]", "f32[4,5,32]", "f32[16,8,32]", "0,2:0,1"), (4, 5, 16, 8)),
    "a layout": (text("f32[9,4,8,5]{2,3,1,0}", "f32[5,4,16]", "f32[9,8,16]", "1,3:1,0"), (4, 5, 16)),
    "with a size of 1": (text("f32[9,4,8,1,5]", "f32[4,5,16,1]", "f32[9,8,16]", "1,3,4:0,3,1"), (9, 8, 4, 1, 5)),
}


@pytest.mark.parametrize("case, copy", CASES.values(), ids=CASES)
def test_a_copy_is_a_matrix(monkeypatch, case: str, copy: tuple[int, ...] | None):
    monkeypatch.setattr(copy_dot_operands, "LEAST_PRODUCTS", 1)
    changed = same(case, fill(parse_module(case), 1, high=3), *PASSES, exact=True)
    copies = [i for i in changed.entry.instructions if i.opcode is Op.TRANSPOSE]
    dot = changed.entry.root
    assert (copy in [i.shape.dims for i in copies]) if copy else not copies
    for side, operand in zip(("lhs", "rhs"), dot.operands, strict=True):
        assert are_one(operand.shape, dot.attributes[f"{side}_contracting_dims"]) or not copies


FREE = text("f32[16,64,8]", "f32[64,32]", "f32[16,8,32]", "1:0")
FAR = text("f32[16,16,64]", "f32[16,16,64]", "f32[64,16,16]", "1:0", "2:2")
NEAR = text("f32[16,16,8]", "f32[16,16,8]", "f32[8,16,16]", "1:0", "2:2")


@pytest.mark.parametrize("case, copies", [(FREE, 1), (FAR, 2), (NEAR, 0)])
def test_free_and_batch_dimensions_of_large_products(monkeypatch, case: str, copies: int):
    monkeypatch.setattr(copy_dot_operands, "LARGE", 1 << 20)
    assert Op.TRANSPOSE not in {i.opcode for i in run(case, *PASSES).entry.instructions}
    monkeypatch.setattr(copy_dot_operands, "LARGE", 1)
    changed = same(case, fill(parse_module(case), 1, high=3), *PASSES, exact=True)
    assert [i.opcode for i in changed.entry.instructions].count(Op.TRANSPOSE) == copies


@pytest.mark.parametrize(
    "case",
    [
        text("f32[3,2,4,2]", "f32[2,2,8]", "f32[3,4,8]", "1,3:0,1"),  # small
        text("f32[64,8,64]", "f32[64,64]", "f32[8]", "0,2:0,1"),  # each element is read once
        text("f32[64,8,64]", "f32[64,64,3]", "f32[8,3]", "0,2:0,1"),  # few times
        text("f32[64,<=8,64]", "f32[64,64,16]", "f32[<=8,16]", "0,2:0,1"),
    ],
)
def test_stays(case: str):
    assert Op.TRANSPOSE not in {i.opcode for i in run(case, *PASSES).entry.instructions}


@pytest.mark.parametrize(
    "case, copies, dims",
    [
        (text("s32[50,64]", "s32[64,3]", "s32[50,3]", "1:0"), 1, (3, 64)),
        (text("s32[2,50,64]", "s32[2,64,3]", "s32[2,50,3]", "2:1", "0:0"), 1, (2, 3, 64)),
        (text("s32[50,8,8]", "s32[8,8,7]", "s32[50,7]", "1,2:0,1"), 1, (7, 64)),
        (text("f32[50,40]", "f32[40,3]", "f32[50,3]", "1:0"), 1, (3, 40)),
        (text("f32[15,64]", "f32[64,3]", "f32[15,3]", "1:0"), 1, (3, 64)),
        (text("f32[50,64]", "f32[64,3]", "f32[50,3]", "1:0"), 0, (64, 3)),  # the product's kernel packs them
        (text("f32[50,8,8]", "f32[8,8,7]", "f32[50,7]", "1,2:0,1"), 0, (64, 7)),
        (text("f32[50,8,8]", "f32[8,8,9]", "f32[50,9]", "1,2:0,1"), 0, (64, 9)),  # a vector of columns
        (text("f32[64,50]", "f32[64,3]", "f32[50,3]", "0:0"), 0, (64, 3)),  # rows lie across
        (text("f32[50,64]", "f32[3,64]", "f32[50,3]", "1:1"), 0, (3, 64)),
        (text("f32[700,24]", "f32[24,3]", "f32[700,3]", "1:0"), 0, (24, 3)),  # short sums
        (text("f32[7,999]", "f32[999,3]", "f32[7,3]", "1:0"), 0, (999, 3)),  # few rows
    ],
)
def test_few_columns_lie_along_the_depth(monkeypatch, case: str, copies: int, dims: tuple[int, ...]):
    monkeypatch.setattr(copy_dot_operands, "LEAST_PRODUCTS", 1)
    changed = same(case, fill(parse_module(case), 1, high=3), *PASSES, exact=True)
    assert [i.opcode for i in changed.entry.instructions].count(Op.TRANSPOSE) == copies
    assert changed.entry.root.operands[1].shape.dims == dims


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "s32", "c64"])
def test_stacks_read_the_copies(stack: str, dtype: str):
    case = text("f32[33,6,8,7]", "f32[7,6,19]", "f32[33,8,19]", "1,3:1,0").replace("f32", dtype)
    module = parse_module(case)
    assert len(plan(module).kernels) == 2
    inputs = fill(module, 1, high=3)
    agree(module, evaluate(module, inputs), compile_module(module, Flags.parse(stack)).execute(inputs))


def test_numbers_of_one_dimension():
    shape = parse_module("HloModule m\nENTRY e { ROOT x = f32[2,3,1,4]{0,3,2,1} parameter(0) }").entry.root.shape
    assert are_one(shape, (1, 2, 3)) and are_one(shape, ()) and are_one(shape, (2, 0))
    assert not are_one(shape, (0, 1)) and not are_one(shape, (3, 1)) and not are_one(shape, (0, 3))
