"""Reductions of integers over a few columns: vectors of several rows, whose lanes are combined at the end."""

from dataclasses import replace

import numpy as np
import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...migration.choose import emitter
from ...passes.pipeline import optimize
from ...planning.planner import plan
from ..support.check import check

FIXED = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+fma", 512), ranges=True)
STARTS = {"add": 5, "maximum": 3, "minimum": 3, "and": 119, "or": 8, "xor": 1}


def text_of(op: str, dtype: str, dims: tuple[int, ...], axes: tuple[int, ...], after: str = "copy(v)") -> str:
    made = ",".join(str(n) for d, n in enumerate(dims) if d not in axes)
    return f"""HloModule m
f {{
  a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT c = {dtype}[] {op}(a, b)
}}
ENTRY e {{
  p = {dtype}[{",".join(map(str, dims))}] parameter(0)
  z = {dtype}[] constant({STARTS[op]})
  v = {dtype}[{made}] reduce(p, z), dimensions={{{",".join(map(str, axes))}}}, to_apply=f
  ROOT r = {dtype}[{made}] {after}
}}
"""


def stage(text: str, name: str) -> str:
    (request,) = plan(optimize(parse_module(text))).kernels
    return dict(emitter("mlir").emit([request], replace(FIXED, keep_stages=True)).stages)[name]


def extremes(dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
    """Any numbers of an integer type, its least and greatest among them."""
    info = np.iinfo(dtype.numpy)
    found = np.random.default_rng(1).integers(info.min, info.max, shape, dtype.numpy, endpoint=True)
    found.reshape(-1)[::7], found.reshape(-1)[3::11] = info.min, info.max
    return found


@pytest.mark.parametrize("op", STARTS)
@pytest.mark.parametrize("dtype", ["s8", "u8", "s16", "s32", "u32", "s64", "u64"])
def test_values(op, dtype):
    """Of 1,001 rows, whatever the vectors, some are left."""
    for width in (2, 3, 4, 7):
        given = extremes(DType(dtype), (2, 1001, width))
        found = check(text_of(op, dtype, given.shape, (1,)), [given])[0]
        assert found.shape == (2, width)


@pytest.mark.parametrize("rows", [128, 129, 191, 255, 1023])
def test_every_row_counts_once(rows):
    given = extremes(DType.S32, (3, rows, 4))
    check(text_of("add", "s32", given.shape, (1,), "negate(v)"), [given])
    check(text_of("add", "s32", (rows, 3, 4), (0, 1)), [given.transpose(1, 0, 2).copy()])


@pytest.mark.parametrize(("dims", "axes", "lanes"), [((64, 256, 4), (1,), 64), ((9000, 3), (0,), 48)])
def test_a_vector_has_several_rows(dims, axes, lanes):
    text = stage(text_of("add", "s32", dims, axes), "mlir")
    assert f": vector<{lanes}xi32>" in text


@pytest.mark.parametrize(("dtype", "dims"), [("s32", (64, 256, 8)), ("s32", (64, 16, 4)), ("s4", (64, 256, 4))])
def test_wide_rows_and_few_are_as_before(dtype, dims):
    assert "vector.shuffle" not in stage(text_of("add", dtype, dims, (1,)), "mlir")
