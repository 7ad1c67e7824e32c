"""Kernels of convolutions to few features are transposed; results do not change."""

import pytest

from ....formats.text.parser import parse_module
from ....hlo.opcodes import Op
from ...support.passes import fill, run, same

PASSES = ("flatten", "depth-last", "dce")


def text(x: str, kernel: str, result: str, window: str, labels: str, more: str = "") -> str:
    return f"""HloModule m
ENTRY e {{ x = {x} parameter(0)
  k = {kernel} parameter(1)
  ROOT r = {result} convolution(x, k), window={{{window}}}, dim_labels={labels}{more} }}
"""


PLAIN = text("f32[1,17,16,20]", "f32[3,3,20,3]", "f32[1,17,16,3]", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f")
CASES = {
    "hwio": PLAIN,
    "ihwo": text("f32[1,17,16,20]", "f32[20,3,3,3]", "f32[1,17,16,3]", "size=3x3 pad=1_1x1_1", "b01f_i01o->b01f"),
    "exchanged": text(
        "f32[1,17,16,20]", "f32[2,3,20,3]", "f32[1,16,18,3]", "size=3x2 stride=1x1 pad=1_1x1_1 rhs_reversal=1x0",
        "b10f_10io->b01f",
    ),
    "one dimension": text("bf16[2,200,32]", "bf16[5,32,2]", "bf16[2,196,2]", "size=5", "b0f_0io->b0f"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_results_stay(case: str):
    changed = same(case, fill(parse_module(case), 1, high=3), *PASSES, exact=True)
    made = next(i for i in changed.entry.instructions if i.opcode is Op.CONVOLUTION)
    labels, last = made.attributes["dim_labels"], made.shape.rank - 1
    assert made.operands[1].opcode is Op.TRANSPOSE and labels.kernel_input_feature == last
    assert labels.kernel_output_feature == 0 and changed.entry.root is made


@pytest.mark.parametrize(
    "case",
    [
        PLAIN.replace("f32[3,3,20,3]", "f32[3,3,20,8]").replace("16,3]", "16,8]"),  # features fill a vector
        PLAIN.replace("f32[3,3,20,3]", "f32[3,3,20,1]").replace("16,3]", "16,1]"),  # nothing to transpose
        PLAIN.replace("20", "12"),  # too shallow
        PLAIN.replace("17,16", "5,6"),  # too few positions
        PLAIN.replace("f32", "s32"),
        PLAIN.replace("f32", "bf16"),  # elements that need masks
        CASES["hwio"].replace("f32[1,17,16,20]", "f32[20,17,16,1]").replace("b01f_", "f01b_"),
    ],
)
def test_others_stay(case: str):
    changed = run(case, *PASSES)
    assert not any(i.opcode is Op.TRANSPOSE for i in changed.entry.instructions)
