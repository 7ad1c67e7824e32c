"""Scatters whose indices and updates are computed for a block of positions at a time, before they are used."""

import re

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...migration.choose import emitter
from ...passes import pipeline
from ...planning.planner import plan
from ..support.check import check

WIDE = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512vl,+fma", 512), ranges=False)
COUNTS = [64, 65, 256, 257, 512, 700, 1024]
"""Batch positions: too few for blocks, one block that is not whole, whole ones, and a rest."""


def drawn(count: int, low: int, high: int) -> np.ndarray:
    return np.random.default_rng(count).integers(low, high, count).astype(np.int32)


def floats(*dims: int) -> np.ndarray:
    return np.random.default_rng(len(dims)).normal(size=dims).astype(np.float32)


def remainders(count: int, dtype: str = "f32", op: str = "add", update: str = "parameter(1)") -> str:
    """One update for each of `count` positions, at the remainder of an index: some are negative, so left out."""
    return f"""HloModule m
f {{ a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT s = {dtype}[] {op}(a, b) }}
ENTRY e {{ x = {dtype}[50] parameter(0)
  p = {dtype}[{count}] parameter(1)
  i = s32[{count}] parameter(2)
  k = s32[] constant(60)
  ks = s32[{count}] broadcast(k), dimensions={{}}
  j = s32[{count}] remainder(i, ks)
  u = {dtype}[{count}] {update}
  ROOT r = {dtype}[50] scatter(x, j, u), update_window_dims={{}}, inserted_window_dims={{0}},
    scatter_dims_to_operand_dims={{0}}, index_vector_dim=1, to_apply=f }}
""".replace(f"u = {dtype}[{count}] parameter(1)\n", "").replace("j, u)", "j, p)" if "(1)" in update else "j, u)")


@pytest.mark.parametrize("count", COUNTS)
def test_each_update_meets_its_place(count):
    given = [floats(50), floats(count), drawn(count, -300, 300)]
    given[1][::7] = [np.nan, -0.0, np.inf, 1e-40][count % 4]
    check(remainders(count, op="maximum"), given)


@pytest.mark.parametrize("dtype", ["bf16", "f64", "c64", "s8", "u32"])
def test_updates_that_are_computed(dtype):
    draw, kind = np.random.default_rng(1), DType(dtype).numpy
    x, u = (draw.integers(0, 50, n).astype(kind) for n in (50, 700))
    check(remainders(700, dtype, "add", "multiply(p, p)"), [x, u, drawn(700, -100, 100)])


def test_the_last_update_of_a_place_stays():
    text = remainders(700, "f32", "add", "negate(p)").replace("ROOT s = f32[] add(a, b)", "ROOT s = f32[] copy(b)")
    check(text, [floats(50), floats(700), drawn(700, -100, 100)])


def test_pairs_of_indices_in_rows_of_a_batch():
    """Blocks lie in a row of the batch; windows have several elements."""
    text = """HloModule m
f { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e { x = f32[20,30,4] parameter(0)
  i = s32[3,2,600] parameter(1)
  j = s32[3,2,600] not(i)
  u = f32[3,600,4] parameter(2)
  v = f32[3,600,4] negate(u)
  ROOT r = f32[20,30,4] scatter(x, j, v), update_window_dims={2}, inserted_window_dims={0,1},
    scatter_dims_to_operand_dims={1,0}, index_vector_dim=1, to_apply=f }
"""
    indices = drawn(3600, -30, 2).reshape(3, 2, 600)
    check(text, [floats(20, 30, 4), indices, floats(3, 600, 4)])


def test_indices_that_are_the_updates_too():
    text = """HloModule m
f { a = s32[] parameter(0)
  b = s32[] parameter(1)
  ROOT s = s32[] add(a, b) }
ENTRY e { x = s32[40] parameter(0)
  i = s32[300] parameter(1)
  j = s32[300] not(i)
  ROOT r = s32[40] scatter(x, j, j), update_window_dims={}, inserted_window_dims={0},
    scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=f }
"""
    check(text, [drawn(40, 0, 9), drawn(300, -45, 3)])


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_remainders_are_vectors(stack):
    module = pipeline.optimize(parse_module(remainders(5000, update="exponential(p)")))
    made = optimize(emitter(stack).emit(plan(module).emitted, WIDE).llvm_ir, WIDE)
    assert re.search(r"[su]rem <\d+ x i32>", made) and re.search(r"fmul[a-z ]* <\d+ x float>|fma\.v\d+f32", made)
