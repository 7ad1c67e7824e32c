"""Rows of 9 to 15 narrow elements in front of dimensions of size 1: what is next to the result stays as it is."""

import pytest

from ...backends.base import CompileOptions
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ..support.check import make_inputs
from ..support.processors import code_for

SHAPES = [
    ((9, 1, 1), ""),
    ((12, 1), ""),
    ((3, 15, 1), ""),
    ((2, 1, 10, 1), ""),
    ((15, 3), "{0,1}"),
    ((1, 11, 1), "{1,2,0}"),
    ((4, 9, 1), "{0,2,1}"),
    ((10,), ""),
]


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("dtype", ["bf16", "s8", "f16", "f32"])
def test_nothing_is_written_beside(dtype, stack, level):
    """Loops of eight elements and of the rest went over the last dimension, of one element, for each of the row."""
    with code_for(level):
        for dims, layout in SHAPES:
            many, some = ",".join(str(2 * n) for n in dims), ",".join(map(str, dims))
            places = ", ".join(f"[0:{2 * n}:2]" for n in dims)
            text = f"""HloModule m
ENTRY e {{
  x = {dtype}[{many}]{layout} parameter(0)
  ROOT s = {dtype}[{some}]{layout} slice(x), slice={{{places}}}
}}"""
            module = parse_module(text)
            inputs = make_inputs(module, 0)
            executable = compile_module(module, Flags.parse(stack), CompileOptions(cache=None, red_zones=True))
            assert executable.execute(inputs)[0].tobytes() == evaluate(module, inputs)[0].tobytes()
