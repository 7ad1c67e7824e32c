"""Convolutions of narrow integers become products of patches; results do not change."""

import numpy as np
import pytest

from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.ir import Module
from ....hlo.opcodes import Op
from ....migration import Flags, compile_module
from ...support.passes import opcodes, run, same

PASSES = ("flatten", "integer-patches", "dce")


def text(x: str, kernel: str, result: str, window: str, labels: str = "b01f_01io->b01f", more: str = "") -> str:
    return f"""HloModule m
ENTRY e {{ x = {x} parameter(0)
  k = {kernel} parameter(1)
  ROOT r = {result} convolution(x, k), window={{{window}}}, dim_labels={labels}{more} }}
"""


PLAIN = text("s8[2,12,12,16]", "s8[3,3,16,24]", "s32[2,12,12,24]", "size=3x3 pad=1_1x1_1")
CASES = {
    "padded": PLAIN,
    "narrow": PLAIN.replace("s32", "s8"),
    "unsigned": PLAIN.replace("s8", "u8").replace("s32", "u32"),
    "unsigned to signed": PLAIN.replace("s8", "u8"),
    "strides": text("s8[1,25,24,16]", "s8[3,2,16,24]", "s32[1,12,13,24]", "size=3x2 stride=2x2 pad=0_0x1_2"),
    "dilated, reversed": text(
        "s8[2,14,15,16]", "s8[2,3,16,17]", "s32[2,12,15,17]", "size=2x3 pad=0_0x2_2 rhs_dilate=2x2 rhs_reversal=1x1"
    ),
    "cut": text("s8[2,14,16,16]", "s8[2,3,16,32]", "s32[2,12,12,32]", "size=2x3 pad=-1_0x1_-3"),
    "one dimension": text("s8[3,70,8]", "s8[5,8,32]", "s32[3,70,32]", "size=5 pad=2_2", "b0f_0io->b0f"),
    "kernel of features first": text(
        "s8[2,12,12,16]", "s8[24,3,2,16]", "s32[2,12,12,24]", "size=2x3 pad=1_0x1_1", "b01f_o10i->b01f"
    ),
}


def extreme(module: Module) -> list[np.ndarray]:
    """Elements of which many are extreme: sums of two products of these are the largest."""
    draw, made = np.random.default_rng(3), []
    for parameter in module.entry.parameters:
        bits = draw.choice(np.array([0x80, 0x80, 0x7F, 0xFF, 0, 1, 0x55], np.uint8), parameter.shape.dims)
        made.append(bits.view(parameter.shape.dtype.numpy))
    return made


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_results_stay(case: str):
    changed = same(case, extreme(parse_module(case)), *PASSES, exact=True)
    assert Op.CONVOLUTION not in opcodes(changed) and changed.entry.root.opcode is Op.DOT


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"], indirect=True)
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_stacks_give_the_bits_of_the_convolution(stack: str, case: str, cpu):
    module = parse_module(case)
    inputs = extreme(module)
    (found,) = compile_module(module, Flags.parse(stack)).execute(inputs)
    (wanted,) = evaluate(module, inputs)
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    "case",
    [
        PLAIN.replace("s8", "s16"),
        PLAIN.replace("s8", "f32").replace("s32", "f32"),
        PLAIN.replace("24]", "8]"),  # few output features
        PLAIN.replace("2,12,12,16]", "2,12,12,4]").replace("3,3,16", "3,3,4"),  # short runs
        PLAIN.replace("2,12,12", "1,5,5"),  # few products
        PLAIN.replace("2,12,12", "300,40,40"),  # large patches
        PLAIN.replace("3,3,16,24", "3,3,8,24").replace("b01f }", "b01f, feature_group_count=2 }"),
        text("s8[2,12,12,16]", "s8[6,6,16,24]", "s32[2,7,7,24]", "size=6x6"),  # a large window
        text("s8[2,12,12,16]", "s8[1,1,16,24]", "s32[2,12,12,24]", "size=1x1"),
        text("s8[2,12,12,16]", "s8[3,3,16,24]", "s32[2,23,23,24]", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2"),
        text("s8[2,16,12,12]", "s8[3,3,16,24]", "s32[2,24,12,12]", "size=3x3 pad=1_1x1_1", "bf01_01io->bf01"),
    ],
)
def test_others_stay(case: str):
    assert Op.CONVOLUTION in opcodes(run(case, *PASSES))
