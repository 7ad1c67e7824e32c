"""Reductions of arrays that no second cache holds: what lies ahead along memory, or of the next rows, is fetched."""

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

REDUCTION = """HloModule m

f {{
  a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT c = {t}[] {op}(a, b)
}}

ENTRY e {{
  x = {t}[{dims}] parameter(0)
  start = {t}[] constant({start})
  ROOT r = {t}[{kept}] reduce(x, start), dimensions={{{over}}}, to_apply=f
}}
"""

COLUMNS, ROWS, ALL = (0,), (1,), (0, 1)

OPERATIONS = [
    ("maximum", "f32", "-inf"),
    ("minimum", "f64", "inf"),
    ("maximum", "bf16", "-inf"),
    ("maximum", "s8", "-128"),
    ("multiply", "f32", "1"),
    ("add", "f32", "0"),
    ("add", "f64", "-0"),
    ("add", "s32", "7"),
]


def reduction(
    rows: int, columns: int, over: tuple[int, ...], op: str = "maximum", t: str = "f32", start: str = "-inf"
) -> str:
    kept = [n for d, n in enumerate((rows, columns)) if d not in over]
    texts = [",".join(map(str, numbers)) for numbers in ((rows, columns), kept, over)]
    return REDUCTION.format(t=t, op=op, start=start, **dict(zip(("dims", "kept", "over"), texts, strict=True)))


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(
    ("rows", "columns", "over", "op", "fetched"),
    [
        (700, 1024, COLUMNS, "maximum", True),
        (1030, 256, COLUMNS, "maximum", False),  # whole rows are in order
        (70_000, 8, COLUMNS, "multiply", False),
        (200, 1024, COLUMNS, "maximum", False),  # such an array is in a cache already
        (256, 1024, ROWS, "add", True),
        (256, 1024, ROWS, "minimum", True),
        (250, 1024, ROWS, "add", False),
        (250, 1024, ROWS, "minimum", False),
        (256, 1024, ALL, "add", True),
        (256, 1024, ALL, "maximum", True),
    ],
)
def test_large_arrays_are_fetched(stack: str, rows: int, columns: int, over: tuple[int, ...], op: str, fetched: bool):
    kernels = plan(parse_module(reduction(rows, columns, over, op, start="1"))).kernels
    options = EmitOptions(Target.level("x86-64-v4"), ranges=True)
    module = STACKS[stack].emit(kernels, options)
    text = "".join((module.llvm_ir, *module.helpers)).replace('"', "")
    assert ("call void @llvm.prefetch" in text) == fetched


@pytest.mark.parametrize(
    ("rows", "columns", "over"),
    [(515, 2048, COLUMNS), (1027, 2048, COLUMNS), (64, 16421, ROWS), (3, 400_003, ROWS), (1031, 1031, ALL)],
)
@pytest.mark.parametrize(("op", "t", "start"), OPERATIONS)
def test_values_are_right(rows: int, columns: int, over: tuple[int, ...], op: str, t: str, start: str):
    """Lengths that no step divides; NaN, zeros of both signs and infinities among floats."""
    rng = np.random.default_rng(rows)
    dtype = np.dtype({"f32": "f4", "f64": "f8", "bf16": "f4", "s8": "i1", "s32": "i4"}[t])
    if dtype.kind == "i":
        x = rng.integers(-100, 100, (rows, columns)).astype(dtype)
    elif op == "multiply":
        x = rng.choice([1, -1], (rows, columns)).astype(dtype)  # the errors of that many products would hide any other
    else:
        x = rng.normal(size=(rows, columns)).astype(dtype)
        if over == ROWS:
            x[2] = np.where(x[2] > 0, -0.0, -np.abs(x[2]) if op == "maximum" else np.abs(x[2]))
            x[0, columns - 1] = np.nan
            x[1, 70] = np.inf
        elif over == COLUMNS:
            x[:, 5], x[:, 6] = 0.0, -0.0
            x[3, 5] = -0.0
            x[rows - 1, 7], x[0, 8], x[4, 9], x[rows // 2, columns - 1] = np.nan, np.nan, np.inf, np.nan
    if t == "bf16":
        import ml_dtypes

        x = x.astype(ml_dtypes.bfloat16)
    check(reduction(rows, columns, over, op, t, start), [x])


IMAGES = """HloModule m

f {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] {op}(a, b)
}}

ENTRY e {{
  x = f32[{dims}]{{{layout}}} parameter(0)
  q = f32[{dims}]{{{layout}}} multiply(x, x)
  start = f32[] constant(0)
  ROOT r = f32[{kept}] reduce({of}, start), dimensions={{{over}}}, to_apply=f
}}
"""


@pytest.mark.parametrize("stack", STACKS)
def test_adjacent_dimensions_are_one_loop(stack: str):
    text = IMAGES.format(op="add", dims="16,32,41,42", layout="3,2,1,0", kept="32", of="q", over="0,2,3")
    options = EmitOptions(Target.level("x86-64-v4"), ranges=True)
    emitted = STACKS[stack].emit(plan(parse_module(text)).kernels, options).llvm_ir
    assert not re.search(r"icmp [su]lt i64 [^,]+, (41|42)\b", emitted)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize(("dims", "fetched"), [("8,32,64,64", False), ("8,32,128,128", True)])
def test_what_is_behind_short_runs_is_not_fetched(stack: str, dims: str, fetched: bool):
    """The images of a channel are apart: what lies ahead is another channel's."""
    text = IMAGES.format(op="add", dims=dims, layout="3,2,1,0", kept=dims.split(",")[1], of="x", over="0,2,3")
    options = EmitOptions(Target.level("x86-64-v4"), ranges=True)
    emitted = STACKS[stack].emit(plan(parse_module(text)).kernels, options).llvm_ir.replace('"', "")
    assert ("call void @llvm.prefetch" in emitted) == fetched


@pytest.mark.parametrize("op", ["add", "maximum"])
@pytest.mark.parametrize("of", ["x", "q"])
@pytest.mark.parametrize(
    ("dims", "layout", "over"),
    [
        ((16, 8, 40, 57), "3,2,1,0", (0, 2, 3)),
        ((16, 8, 40, 57), "3,2,1,0", (1, 2, 3)),
        ((40, 57, 16, 8), "1,0,3,2", (0, 1, 2)),
        ((3, 6, 5, 3300), "3,2,1,0", (0, 1, 3)),
        ((4, 1, 300, 257), "3,2,1,0", (1, 2, 3)),
    ],
)
def test_values_of_images_are_right(op: str, of: str, dims: tuple[int, ...], layout: str, over: tuple[int, ...]):
    kept = [n for d, n in enumerate(dims) if d not in over]
    texts = [",".join(map(str, numbers)) for numbers in (dims, kept, over)]
    text = IMAGES.format(op=op, of=of, layout=layout, **dict(zip(("dims", "kept", "over"), texts, strict=True)))
    check(text, [np.random.default_rng(0).normal(size=dims).astype(np.float32)])
