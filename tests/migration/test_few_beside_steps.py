"""Steps over several dimensions with a few elements in each, on both stacks: rows that are interleaved in vectors."""

import math

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...codegen.threads import set_threads, threads
from ...formats.text.parser import parse_module
from ...migration.choose import emitter, present
from ...planning.planner import plan
from ..support.check import check


def interleaved(dtype: str, count: int, outer: str, row: int) -> str:
    dims = f"{outer},{row}"
    order = ",".join(str(d + 1) for d in range(dims.count(",") + 1))
    return f"""HloModule m
ENTRY e {{ x = {dtype}[{count},{dims}] parameter(0)
  ROOT r = {dtype}[{dims},{count}] transpose(x), dimensions={{{order},0}} }}
"""


@pytest.mark.parametrize("stack", present())
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("dtype", "bits"), [("bf16", 16), ("f32", 32)])
def test_rows_are_interleaved_in_vectors(stack, level, dtype, bits):
    """Element by element, two rows of bf16 took three times as long as XLA."""
    module, options = parse_module(interleaved(dtype, 2, "2", 65536)), EmitOptions(Target.level(level), ranges=True)
    kernels = plan(module).kernels
    assert len(kernels[0].partition.dimensions) == 2
    lines = optimize(emitter(stack).emit(kernels, options).llvm_ir, options).splitlines()
    assert any("shufflevector <" in line and f" x i{bits}>" in line for line in lines)


@pytest.mark.parametrize("dtype", ["pred", "s4", "s8", "bf16", "f16", "f32", "s64", "c64", "c128"])
def test_values_whatever_a_call_computes(dtype):
    before = threads()
    try:
        for count in (1, 2):
            set_threads(count)
            for few, outer, row in ((2, "2", 65536), (3, "5", 13109), (8, "3,7", 1000), (4, "300", 65), (2, "900", 63)):
                text = interleaved(dtype, few, outer, row).replace("HloModule m", f"HloModule m{count}")
                x = np.arange(1, 1 + few * row * math.prod(map(int, outer.split(","))))
                shape = (few, *map(int, outer.split(",")), row)
                check(text, [x.reshape(shape)] if dtype == "s64" else None)
    finally:
        set_threads(before)
