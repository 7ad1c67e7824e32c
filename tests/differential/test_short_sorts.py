"""Sorts of short rows with NaN under a partial comparison: any permutation is right, but all processors give one."""

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...codegen.options import Target
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ..support.processors import code_for


def text(dtype: str, length: int, payloads: int) -> str:
    """A sort of one operand, and as many others of numbers of its elements."""
    shape, others = f"{dtype}[40,{length}]", [f"s32[40,{length}]"] * payloads
    parameters = "".join(f"\n  c{n} = s32[] parameter({n})" for n in range(2, 2 + 2 * payloads))
    result = f"({', '.join([shape, *others])})" if payloads else shape
    return f"""HloModule m
less {{ a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1){parameters}
  ROOT r = pred[] compare(a, b), direction=LT }}
ENTRY e {{ x = {shape} parameter(0)
  i = s32[40,{length}] iota(), iota_dimension=1
  ROOT s = {result} sort({", ".join(["x", *["i"] * payloads])}), dimensions={{1}}, to_apply=less }}
"""


@pytest.mark.parametrize("payloads", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_nans_lie_where_they_lie_on_any_processor(stack: str, dtype: str, payloads: int):
    for length in (2, 7, 16, 30, 50, 63, 64, 100, 129, 200):
        rng = np.random.default_rng(length)
        x = rng.choice(np.array([np.nan, -np.nan, 0.0, -0.0, 1.0, -2.0, 3.0]), (40, length))
        x = x.astype({"f16": "f2", "f32": "f4", "f64": "f8"}[dtype])
        module, found = parse_module(text(dtype, length, payloads)), set()
        for level in Target.levels():
            with code_for(level):
                made = compile_module(module, Flags.parse(stack), CompileOptions(cache=None)).execute([x])
            found.add(b"".join(result.tobytes() for result in made))
        assert len(found) == 1, length
