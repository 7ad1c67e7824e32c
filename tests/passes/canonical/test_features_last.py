"""Convolutions of images whose pixels are adjacent are transposed; results do not change."""

import pytest

from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.opcodes import Op
from ....migration import Flags, compile_module
from ....passes.canonical import features_last
from ....planning.planner import plan
from ...support.passes import agree, fill, run, same

PASSES = ("flatten", "features-last", "dce")


def text(x: str, kernel: str, result: str, window: str, labels: str, more: str = "") -> str:
    return f"""HloModule m
ENTRY e {{ x = {x} parameter(0)
  k = {kernel} parameter(1)
  ROOT r = {result} convolution(x, k), window={{{window}}}, dim_labels={labels}{more} }}
"""


PLAIN = text("f32[2,3,9,7]", "f32[8,3,3,3]", "f32[2,8,9,7]", "size=3x3 pad=1_1x1_1", "bf01_oi01->bf01")
CASES = {
    "nchw": PLAIN,
    "other orders": text("f32[3,2,9,7]", "f32[3,3,8,3]", "f32[8,2,9,7]", "size=3x3 pad=1_1x1_1", "fb01_0io1->fb01"),
    "pixels exchanged": text(
        "f32[2,3,9,7]", "f32[8,3,2,3]", "f32[2,8,6,9]", "size=3x2 pad=1_1x0_0", "bf01_oi10->bf10",
    ),
    "strides": text(
        "f32[2,3,9,7]", "f32[8,3,3,3]", "f32[2,8,5,3]", "size=3x3 stride=2x2 pad=1_1x0_0", "bf01_oi01->bf01",
    ),
    "dilated": text(
        "f32[2,3,4,5]", "f32[8,3,3,2]", "f32[2,8,5,8]", "size=3x2 lhs_dilate=2x2 rhs_dilate=1x1 rhs_reversal=1x0",
        "bf01_oi01->bf01",
    ),
    "one dimension": text("f32[2,3,50]", "f32[8,3,5]", "f32[2,8,46]", "size=5", "bf0_oi0->bf0"),
    "three dimensions": text("f32[1,2,4,5,6]", "f32[8,2,2,2,2]", "f32[1,8,3,4,5]", "size=2x2x2", "bf012_oi012->bf012"),
}  # fmt: skip


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(features_last, "LEAST_PRODUCTS", 1)
    monkeypatch.setattr(features_last, "LEAST_USES", 1)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_results_stay(small, case: str):
    changed = same(case, fill(parse_module(case), 1, high=3), *PASSES, exact=True)
    made = next(i for i in changed.entry.instructions if i.opcode is Op.CONVOLUTION)
    labels = made.attributes["dim_labels"]
    assert labels.input_feature == labels.output_feature == made.shape.rank - 1
    assert labels.kernel_output_feature == made.shape.rank - 1 and changed.entry.root.opcode is Op.TRANSPOSE


@pytest.mark.parametrize(
    "x, kernel, result, window, labels",
    [
        ("f32[1,40,9,7]", "f32[48,40,3,3]", "f32[1,48,9,7]", "size=3x3 pad=1_1x1_1", "bf01_oi01->bf01"),
        ("f32[1,40,9,7]", "f32[48,40,3,5]", "f32[1,48,7,7]", "size=5x3 pad=1_1x1_1", "bf01_oi10->bf10"),
        ("f32[1,40,30]", "f32[64,40,9]", "f32[1,64,22]", "size=9", "bf0_oi0->bf0"),
    ],
)  # fmt: skip
def test_large_weights_are_turned_in_two_steps(small, x: str, kernel: str, result: str, window: str, labels: str):
    """In one, each line of them is read as often as the window has positions."""
    case = text(x, kernel, result, window, labels)
    changed = same(case, fill(parse_module(case), 1, high=3), *PASSES, exact=True)
    assert sum(i.opcode is Op.TRANSPOSE for i in changed.entry.instructions) == 4
    steps = [s.instruction for s in plan(parse_module(case)).steps]
    assert [i.opcode for i in steps].count(Op.TRANSPOSE) == 4  # none is part of another one's kernel


@pytest.mark.parametrize(
    "case",
    [
        PLAIN.replace("8", "6"),  # fewer features than a vector has
        text("f32[2,9,7,3]", "f32[3,3,3,8]", "f32[2,9,7,8]", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"),
        text("f32[2,9,7,3]", "f32[3,3,3,8]", "f32[2,8,9,7]", "size=3x3 pad=1_1x1_1", "b01f_01io->bf01"),
        text("f32[2,3,9,7]", "f32[8,3,3,3]", "f32[2,9,7,8]", "size=3x3 pad=1_1x1_1", "bf01_oi01->b01f"),
        text("f32[2,16,9,7]", "f32[16,1,3,3]", "f32[2,16,9,7]", "size=3x3 pad=1_1x1_1", "bf01_oi01->bf01",
             ", feature_group_count=16"),
    ],
)  # fmt: skip
def test_stays(small, case: str):
    assert Op.TRANSPOSE not in {i.opcode for i in run(case, *PASSES).entry.instructions}


def test_small_ones_stay():
    assert Op.TRANSPOSE not in {i.opcode for i in run(PLAIN, *PASSES).entry.instructions}


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "s32"])
def test_stacks_take_it(stack: str, dtype: str):
    case = text("f32[1,32,9,11]", "f32[16,32,3,3]", "f32[1,16,9,11]", "size=3x3 pad=1_1x1_1", "bf01_oi01->bf01")
    module = parse_module(case.replace("f32", dtype))
    inputs = fill(module, 1, high=3)
    executable = compile_module(module, Flags.parse(stack))
    assert len(executable.kernels) > 1
    agree(module, evaluate(module, inputs), executable.execute(inputs))
