"""Convolutions whose positions make no whole tiles: the last tile lies over the one before, and stores its own only."""

import re

import pytest

from ...codegen.options import EmitOptions, Target
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, parsed
from ..support.processors import code_for


def text_of(name: str, size: int, stride: int, pad: str, ins: int, outs: int, dtype: str = "f32") -> str:
    """A convolution, and a sum with an array in whose memory the result may be."""
    low, high = map(int, pad.split("_"))
    n = (size + low + high - 3) // stride + 1
    window = f"size=3x3 stride={stride}x{stride} pad={pad}x{pad}"
    return f"""HloModule {name}
less {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT
}}
ENTRY e {{
  x = {dtype}[1,{size},{size},{ins}] parameter(0)
  k = {dtype}[3,3,{ins},{outs}] parameter(1)
  p = {dtype}[1,{n},{n},{outs}] parameter(2)
  s = {dtype}[1,{n},{n},{outs}] sort(p), dimensions={{3}}, to_apply=less
  c = {dtype}[1,{n},{n},{outs}] convolution(x, k), window={{{window}}}, dim_labels=b01f_01io->b01f
  ROOT r = {dtype}[1,{n},{n},{outs}] add(c, s)
}}
"""


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    "size, stride, pad", [(56, 2, "1_1"), (29, 1, "1_1"), (29, 1, "0_0"), (13, 1, "3_0"), (7, 1, "1_1")]
)
@pytest.mark.parametrize("dtype, ins, outs", [("f32", 40, 64), ("f32", 130, 128), ("bf16", 64, 33)])
def test_values(level, size, stride, pad, dtype, ins, outs):
    with code_for(level):
        name = f"{dtype}_{size}_{ins}_{level.replace('-', '_')}_{pad}"
        check(text_of(name, size, stride, pad, ins, outs, dtype), None, ("evaluator", "legacy", "mlir"))


@pytest.mark.parametrize("stack, tile", [("legacy", "4x64"), ("mlir", "4x64x64")])
def test_as_few_positions_as_possible_are_computed(stack, tile):
    """Of 27 positions, seven tiles of 4 compute 28. Five at a time, two are left: one alone takes as long as two."""
    text = text_of("m", 56, 2, "1_1", 64, 128)
    kernels = [k for k in plan(parsed(text)).kernels if "conv" in k.name or "add" in k.name or "c_" in k.name]
    helpers = emitter(stack).emit(kernels, EmitOptions(Target.level("x86-64-v4"))).helpers
    names = "".join(re.findall(r"define void @\"?(\S+?)\"?\(", "".join(helpers)))
    assert f"{stack}.window.f32.f32.f32.{tile}." in names
