"""Pads that make short rows longer write whole rows, as pixels that get a fourth channel."""

import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...legacy import emit
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for
from ..support.ranges import check_ranges_alone, check_threads, number_of_threads, split_kernels


def padded(dtype: str, before: str, after: str, padding: str) -> str:
    zero = "(0, 0)" if dtype.startswith("c") else "7"
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
    assert stores(padded("s4", "500,3", "500,4", "0_0x0_1")) == 1
    for others in (("500,9", "500,10", "0_0x0_1"), ("500,3", "502,3", "1_1x0_0"), ("500,3", "500,6", "0_0x0_1_1")):
        assert stores(padded("s4", *others)) == 2


ROWS = [
    ("3", "4", "0_1"),
    ("3", "5", "1_1"),
    ("7", "16", "8_1"),
    ("1", "3", "0_2"),
    ("5", "6", "1_0"),
    ("6", "12", "0_6"),
]


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["s8", "f8e5m2", "bf16", "f32", "f64", "c64", "c128"])
def test_rows_in_vectors(dtype, level):
    """One load and one store for each vector of the result; the last rows, whose vectors would be read beyond the
    operand, are written by element. XLA took a quarter of the time of a loop over pixels of c64.
    """
    with code_for(level):
        for before, after, low_high in ROWS:
            text = padded(dtype, f"1391,{before}", f"1391,{after}", f"0_0x{low_high}")
            module = emit(plan(parse_module(text)).kernels, EmitOptions(Target.level(level)))
            assert "shufflevector" in module.llvm_ir and "phi" in module.llvm_ir
            check(text.replace("HloModule m", f"HloModule m_{level.replace('-', '_')}"))


def test_the_padding_value_may_be_an_operand():
    for dtype in ("bf16", "c128"):
        text = padded(dtype, "41,50,3", "41,50,4", "0_0x0_0x0_1").replace("constant(7)", "parameter(1)")
        check(text.replace("constant((0, 0))", "parameter(1)"))
    check(padded("f32", "3,1500", "4,1500", "0_1x0_0").replace("1500]", "1500]{0,1}"))  # rows along the other dimension


@pytest.mark.parametrize(("before", "after"), [("1024", "1024"), ("1,1024", "3,1024")])
def test_other_pads_are_not_rows_in_vectors(before, after):
    text = padded("f32", f"{before},3", f"{after},4", ("1_1x" if "," in before else "") + "0_0x0_1")
    vectors = "shufflevector" in emit(plan(parse_module(text)).kernels, EmitOptions(Target.level("x86-64-v3"))).llvm_ir
    assert vectors == ("," not in before)


def test_rows_that_double_are_left_to_llvm():
    for level, dtype, found in (("x86-64-v3", "s8", False), ("x86-64-v4", "s8", True), ("x86-64-v3", "c64", True)):
        text = padded(dtype, "3000,2", "3000,4", "0_0x0_2")
        module = emit(plan(parse_module(text)).kernels, EmitOptions(Target.level(level)))
        assert ("shufflevector" in module.llvm_ir) == found


def test_threads_write_the_same_bits():
    with number_of_threads():
        executable = check_threads(parse_module(padded("c64", "20,2500,3", "20,2500,5", "0_0x0_0x1_1")), "legacy")
        assert split_kernels(executable)
        check_ranges_alone(executable)
