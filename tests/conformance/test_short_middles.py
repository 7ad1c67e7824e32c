"""Reductions over a short dimension beside a short one that stays: rows of a few columns."""

import re

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, parsed

STACKS = ("legacy", "mlir")
START = {"add": "0", "maximum": "-inf", "minimum": "inf", "multiply": "1"}


def text_of(dtype: str, op: str, dims: tuple[int, int, int], start: str | None = None) -> str:
    rows, count, width = dims
    return f"""HloModule m
f {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT c = {dtype}[] {op}(a, b)
}}
ENTRY e {{
  x = {dtype}[{rows},{count},{width}] parameter(0)
  z = {dtype}[] constant({start or START[op]})
  ROOT r = {dtype}[{rows},{width}] reduce(x, z), dimensions={{1}}, to_apply=f
}}
"""


def code_of(stack: str, dtype: str, op: str, dims: tuple[int, int, int]) -> str:
    options = EmitOptions(Target.level("x86-64-v4"))
    text = text_of(dtype, op, dims, "0")
    return optimize(emitter(stack).emit(plan(parsed(text)).emitted, options).llvm_ir, options)


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("dtype", ["f32", "s32", "f64", "s64"])
@pytest.mark.parametrize("dims", [(20000, 4, 3), (10000, 5, 7), (10000, 8, 4), (10000, 5, 9), (10000, 3, 11)])
def test_a_row_of_sums_is_a_vector_or_two(dims, dtype, stack):
    """With AVX-512, LLVM gathered elements of several rows, or had sums on the stack under masks: up to ten times as
    long.
    """
    code = code_of(stack, dtype, "add", dims)
    assert "masked" not in code and "alloca" not in code
    type_ = {"f32": "float", "f64": "double", "s32": "i32", "s64": "i64"}[dtype]
    assert re.search(rf"= f?add \D*<[248] x {type_}>", code)


@pytest.mark.parametrize("stack", STACKS)
def test_maxima_are_vectors(stack):
    assert "masked" not in code_of(stack, "f32", "maximum", (10000, 5, 7))


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"], indirect=True)
@pytest.mark.parametrize("dtype", ["f32", "f64", "f16"])
@pytest.mark.parametrize("op", ["add", "maximum", "minimum"])
@pytest.mark.parametrize("dims", [(1, 5, 7), (37, 4, 3), (19, 5, 9), (50, 2, 14), (3, 0, 5), (0, 3, 4)])
def test_values(dims, dtype, op, cpu):
    kind = {"f32": np.float32, "f64": np.float64, "f16": np.float16}[dtype]
    x = np.random.default_rng(5).standard_normal(dims).astype(kind)
    flat = x.reshape(-1)
    flat[::7], flat[3::11], flat[5::23] = -0.0, np.inf, np.nan
    check(text_of(dtype, op, dims), [x])


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"], indirect=True)
@pytest.mark.parametrize("dtype", ["s32", "u32", "s64", "s8"])
@pytest.mark.parametrize("op", ["add", "maximum", "multiply"])
@pytest.mark.parametrize("dims", [(1, 5, 7), (37, 4, 3), (19, 5, 9), (50, 2, 14), (3, 0, 5)])
def test_values_of_integers(dims, dtype, op, cpu):
    info = np.iinfo({"s": "int", "u": "uint"}[dtype[0]] + dtype[1:])
    x = np.random.default_rng(6).integers(info.min, info.max, dims, info.dtype, endpoint=True)
    check(text_of(dtype, op, dims, str(info.min) if op == "maximum" else None), [x])
