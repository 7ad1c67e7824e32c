"""Sums of a few integers beside each other in memory on the MLIR stack: vectors of one row."""

from dataclasses import replace

import numpy as np
import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...mlir_emitters import emit
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for

OPTIONS = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+fma", 512))


def text_of(dtype: str, dims: str, reduced: str = "1", layout: str = "") -> str:
    kept = [n for d, n in enumerate(dims.split(",")) if str(d) not in reduced.split(",")]
    return f"""HloModule m
add {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT s = {dtype}[] add(b, a)
}}
ENTRY e {{
  x = {dtype}[{dims}]{layout} parameter(0)
  z = {dtype}[] constant(7)
  ROOT r = {dtype}[{",".join(kept)}] reduce(x, z), dimensions={{{reduced}}}, to_apply=add
}}
"""


def drawn(dtype: str, dims: str) -> np.ndarray:
    info = np.iinfo(DType(dtype).numpy)
    return np.random.default_rng(0).integers(
        info.min, info.max, [*map(int, dims.split(","))], info.dtype, endpoint=True
    )


def are_vectors(text: str) -> bool:
    """Whether halves of a row's sum are added up."""
    stages = dict(emit(plan(parse_module(text)).kernels, replace(OPTIONS, keep_stages=True)).stages)
    return "vector.shuffle" in stages["mlir"]


@pytest.mark.parametrize("processor", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["s16", "u16", "s32", "u32", "s64", "u64"])
def test_rows_of_any_length(processor, dtype):
    """They wrap."""
    with code_for(processor):
        for length in (7, 8, 9, 10, 11, 13, 15, 16):
            given = drawn(dtype, f"33,{length}")
            given[3] = np.iinfo(given.dtype).max
            check(text_of(dtype, f"33,{length}"), [given], stacks=("evaluator", "mlir"))


@pytest.mark.parametrize(
    ("dims", "reduced", "layout"),
    [("6,3,4", "1,2", ""), ("6,5,9", "2,0", ""), ("6,5,9", "0,2", "{2,0,1}"), ("9", "0", "")],
)
def test_dimensions(dims, reduced, layout):
    check(text_of("s32", dims, reduced, layout), [drawn("s32", dims)], stacks=("evaluator", "mlir"))


@pytest.mark.parametrize(("dtype", "length"), [("s32", 9), ("u16", 15), ("s64", 8), ("u32", 12)])
def test_rows_are_vectors(dtype, length):
    assert are_vectors(text_of(dtype, f"70,{length}"))


@pytest.mark.parametrize(("dtype", "length"), [("s32", 8), ("s32", 16), ("s8", 9), ("f32", 9)])
def test_other_rows_are_not(dtype, length):
    assert not are_vectors(text_of(dtype, f"70,{length}"))
