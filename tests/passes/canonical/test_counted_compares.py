"""Comparisons of positions become comparisons of floats; results do not change."""

import numpy as np
import pytest

from ....backends.base import CompileOptions
from ....formats.text.parser import parse_module
from ....hlo.dtypes import DType
from ....hlo.opcodes import Op
from ....migration import Flags, compile_module
from ...support.passes import run, same

PASSES = ("flatten", "counted-compares", "dce")


def text(x: str, y: str, direction: str = "GE", shape: str = "s32[6,33]", more: str = "") -> str:
    """A comparison of two expressions, with a parameter p at hand."""
    return f"""HloModule m
ENTRY e {{ p = {shape} parameter(0)
  rows = {shape} iota(), iota_dimension=0
  columns = {shape} iota(), iota_dimension=1
  n = {shape.split("[")[0]}[] constant(2)
  two = {shape} broadcast(n), dimensions={{}}
  {more}
  x = {shape} {x}
  y = {shape} {y}
  ROOT r = {shape.replace(shape.split("[")[0], "pred")} compare(x, y), direction={direction} }}
"""


CASES = {
    **{d: text("add(rows, two)", "subtract(columns, two)", d) for d in ("LT", "LE", "GT")},
    **{d: text("add(columns, two)", "subtract(rows, two)", d) for d in ("GE", "EQ", "NE")},
    "a number": text("add(columns, columns)", "add(two, two)"),
    "a number first": text("add(two, two)", "subtract(rows, columns)"),
    "unsigned": text("add(rows, two)", "add(columns, two)", shape="u32[6,33]"),
    "64 bits": text("subtract(rows, two)", "subtract(two, columns)", shape="s64[6,33]"),
    "signed": text("add(rows, two)", "add(columns, two)").replace("direction=GE", "direction=GE, type=SIGNED"),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_results_stay(case: str):
    module = parse_module(case)
    inputs = [np.zeros(p.shape.dims, p.shape.dtype.numpy) for p in module.entry.parameters]
    changed = same(case, inputs, *PASSES, exact=True)
    (compare,) = (i for i in changed.entry.instructions if i.opcode is Op.COMPARE)
    assert [o.shape.dtype for o in compare.operands] == [DType.F32] * 2


@pytest.mark.parametrize(
    "case",
    [
        text("add(rows, p)", "add(columns, two)"),  # numbers of memory
        text("subtract(rows, two)", "add(columns, two)", shape="u32[6,33]"),  # it wraps
        text("add(rows, two)", "add(columns, two)", shape="s16[6,33]"),
        text("add(rows, two)", "add(columns, two)").replace("compare(x, y)", "compare(two, two)"),  # no position
        text("multiply(rows, two)", "add(columns, two)"),
        text("add(rows, two)", "add(columns, two)", shape="s32[2,16777217]"),  # a sum that is not exact
        text("add(columns, m)", "add(rows, two)", more="k = s32[] constant(16777216)\n m = s32[6,33] broadcast(k)"),
    ],
)
def test_others_are_left(case: str):
    (compare,) = (i for i in run(case, *PASSES).entry.instructions if i.opcode is Op.COMPARE)
    assert DType.F32 not in {o.shape.dtype for o in compare.operands}


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"], indirect=True)
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_mask_in_a_row_kernel_is_compared_in_vectors_of_32_bits(stack: str, cpu):
    """A softmax below a diagonal: no vector of 64-bit positions is left."""
    source = """HloModule m
max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT m = f32[] maximum(a, b) }
ENTRY e { p = f32[64,256] parameter(0)
  rows = s32[64,256] iota(), iota_dimension=0
  columns = s32[64,256] iota(), iota_dimension=1
  below = pred[64,256] compare(rows, columns), direction=GE
  k = f32[] constant(-1e9)
  low = f32[64,256] broadcast(k), dimensions={}
  s = f32[64,256] select(below, p, low)
  least = f32[] constant(-inf)
  m = f32[64] reduce(s, least), dimensions={1}, to_apply=max
  w = f32[64,256] broadcast(m), dimensions={0}
  d = f32[64,256] subtract(s, w)
  ROOT r = f32[64,256] exponential(d) }
"""
    options = CompileOptions(cache=None, keep_stages=True)
    stages = dict(compile_module(parse_module(source), Flags.parse(stack), options).stages)
    optimized = "\n".join(value for name, value in stages.items() if "optimized" in name)
    assert "fcmp" in optimized and "x float>" in optimized
    assert not any("icmp" in line and "x i64>" in line for line in optimized.splitlines())
