"""Pads that make short rows longer write whole rows, as pixels that get a fourth channel."""

import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...legacy import emit
from ...planning.planner import plan
from ..support.check import check


def padded(dtype: str, before: str, after: str, padding: str) -> str:
    zero = "(0, 0)" if dtype == "c64" else "7"
    return f"""HloModule m
ENTRY e {{ x = {dtype}[{before}] parameter(0)
  z = {dtype}[] constant({zero})
  ROOT r = {dtype}[{after}] pad(x, z), padding={padding} }}
"""


def stores(text: str) -> int:
    return emit(plan(parse_module(text)).kernels, EmitOptions(Target.level("x86-64-v3"))).llvm_ir.count("store ")


@pytest.mark.parametrize("dtype", ["pred", "s4", "s8", "bf16", "f16", "f32", "f64", "c64"])
def test_values(dtype: str):
    text = padded(dtype, "500,3", "500,4", "0_0x0_1")
    check(text.replace("constant(7)", "constant(true)") if dtype == "pred" else text)
    if dtype != "pred":
        check(padded(dtype, "7,5,2", "9,3,5", "1_1x-1_-1x2_1"))
        check(padded(dtype, "30,0", "30,3", "0_0x1_2"))
        check(padded(dtype, "40,3", "40,7", "0_0x1_1_1"))


def test_whole_rows_are_written_once():
    assert stores(padded("s8", "500,3", "500,4", "0_0x0_1")) == 1
    for others in (("500,9", "500,10", "0_0x0_1"), ("500,3", "502,3", "1_1x0_0"), ("500,3", "500,6", "0_0x0_1_1")):
        assert stores(padded("s8", *others)) == 2
    assert stores(padded("c64", "500,3", "500,4", "0_0x0_1")) == 4
