"""Reductions whose chunks are pieces of the rows of a large array: pieces of the next rows are fetched ahead."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ... import legacy, mlir_emitters
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...planning.planner import plan
from ..support.check import check

STACKS = {"legacy": legacy, "mlir": mlir_emitters}

EXTREMUM = """HloModule m

f {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT c = {t}[] {op}(a, b)
}}

ENTRY e {{
  x = {t}[{dims}] parameter(0)
  start = {t}[] constant({start})
  ROOT r = {t}[{columns}] reduce(x, start), dimensions={{0}}, to_apply=f
}}
"""


def extremum(rows: int, columns: int, op: str = "maximum", t: str = "f32", start: str = "-inf") -> str:
    return EXTREMUM.format(t=t, op=op, dims=f"{rows},{columns}", columns=columns, start=start)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("rows", "columns", "fetched"), [(700, 1024, True), (1030, 256, False), (200, 1024, False)])
def test_pieces_of_large_rows_are_fetched(stack: str, rows: int, columns: int, fetched: bool):
    """Whole rows are in order, as hardware foresees; a small array is in a cache already."""
    kernels = plan(parse_module(extremum(rows, columns))).kernels
    text = STACKS[stack].emit(kernels, EmitOptions(Target.level("x86-64-v4"), ranges=True)).llvm_ir.replace('"', "")
    assert ("call void @llvm.prefetch" in text) == fetched


@pytest.mark.parametrize("rows", [515, 1027])
@pytest.mark.parametrize(
    ("op", "t", "start"),
    [
        ("maximum", "f32", "-inf"),
        ("minimum", "f64", "inf"),
        ("maximum", "bf16", "-inf"),
        ("maximum", "s8", "-128"),
        ("multiply", "f32", "1"),
        ("add", "f32", "0"),
        ("add", "f64", "-0"),
        ("add", "s32", "7"),
    ],
)
def test_values_are_right(rows: int, op: str, t: str, start: str):
    """Rows that no pass divides; NaN, zeros of both signs and infinities among floats."""
    text = extremum(rows, 2048, op, t, start)
    rng = np.random.default_rng(rows)
    dtype = np.dtype({"f32": "f4", "f64": "f8", "bf16": "f4", "s8": "i1", "s32": "i4"}[t])
    if dtype.kind == "i":
        x = rng.integers(-100, 100, (rows, 2048)).astype(dtype)
    else:
        x = (rng.normal(size=(rows, 2048)) * (0.01 if op == "multiply" else 1) + (op == "multiply")).astype(dtype)
        x[:, 5], x[3, 5] = 0.0, -0.0
        x[:, 6] = -0.0
        if op != "multiply":
            x[rows - 1, 7], x[0, 8], x[4, 9], x[rows // 2, 2047] = np.nan, np.nan, np.inf, np.nan
    if t == "bf16":
        import ml_dtypes

        x = x.astype(ml_dtypes.bfloat16)
    assert re.search(rf"{t}\[{rows},2048\]", text)
    check(text, [x])
