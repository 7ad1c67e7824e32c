"""Reductions into few columns, which are no power of two: their vectors have loops of their own on both stacks."""

import re

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...planning import partition
from ...planning.planner import plan
from ..support.check import check
from ..support.ranges import check_ranges_alone, check_threads, number_of_threads

WIDE = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512bw,+avx512vl,+fma", 512), False)
SHORT = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma", 256), ranges=False)
STACKS = pytest.mark.parametrize("stack", ["legacy", "mlir"])
STARTS = {"add": "0", "multiply": "1", "maximum": "-inf"}


def reduced(op: str, t: str, rows: int, length: int, columns: int) -> str:
    """Over the middle of three dimensions."""
    start = f"-{1 << 7 if t == 's8' else 1 << 31}" if op == "maximum" and t[0] == "s" else STARTS[op]
    return f"""HloModule m
f {{ a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT c = {t}[] {op}(a, b) }}
ENTRY e {{ x = {t}[{rows},{length},{columns}] parameter(0)
  z = {t}[] constant({"(0, 0)" if t[0] == "c" else start})
  ROOT r = {t}[{rows},{columns}] reduce(x, z), dimensions={{1}}, to_apply=f }}
"""


KINDS = [(op, t) for op in ("add", "maximum") for t in ("f32", "bf16", "f16", "s32", "s8", "f64")] + [("add", "c64")]


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"], indirect=True)
@pytest.mark.parametrize("op, dtype", KINDS)
@pytest.mark.parametrize("columns", [5, 6, 7, 9, 10, 12, 15, 31, 63])
def test_values(columns: int, op: str, dtype: str, cpu):
    for rows, length in ((7, 3), (2, 37)):
        check(reduced(op, dtype, rows, length, columns))


@STACKS
@pytest.mark.parametrize("op", ["maximum", "add"])
@pytest.mark.parametrize("columns", [7, 10, 13, 31])
def test_special_values_in_each_column(columns: int, op: str, stack: str):
    special = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 1e-40, 3e38, -3e38], np.float32)
    x = np.random.default_rng(0).choice(special, (50, 3, columns), p=[0.02, 0.3, 0.28, 0.1, 0.1, 0.1, 0.05, 0.05])
    check(reduced(op, "f32", 50, 3, columns), [x], stacks=("evaluator", stack))


@STACKS
@pytest.mark.parametrize("dtype", ["f32", "bf16", "s32"])
@pytest.mark.parametrize("columns", [10, 31])
def test_ranges(columns: int, dtype: str, stack: str, monkeypatch):
    monkeypatch.setattr(partition, "CHUNK", 1)
    with number_of_threads():
        module = parse_module(reduced("maximum" if dtype == "s32" else "add", dtype, 203, 3, columns))
        check_ranges_alone(check_threads(module, stack))


@STACKS
@pytest.mark.parametrize("op, dtype", [("maximum", "s32"), ("maximum", "bf16"), ("add", "s8"), ("add", "f16")])
@pytest.mark.parametrize("columns", [10, 12, 20, 31])
def test_accumulators_are_whole_vectors_in_registers(columns: int, op: str, dtype: str, stack: str):
    """What is written to memory as some vectors is never read back as others, or with a mask: it would have to arrive
    there first, which took most of the time.
    """
    module = parse_module(reduced(op, dtype, 1000, 3, columns))
    made = optimize(emitter(stack).emit(plan(module).emitted, WIDE).llvm_ir, WIDE)
    assert "llvm.masked" not in made and "alloca" not in made


@STACKS
@pytest.mark.parametrize("op, dtype", [("maximum", "s32"), ("add", "f32"), ("multiply", "f64"), ("add", "c64")])
@pytest.mark.parametrize("columns", [5, 6, 7])
def test_five_to_seven_columns_are_not_gathered(columns: int, op: str, dtype: str, stack: str):
    module = parse_module(reduced(op, dtype, 1, 20_000, columns))
    made = optimize(emitter(stack).emit(plan(module).emitted, WIDE).llvm_ir, WIDE)
    rows = 16 * columns  # of integers on mlir: a vector of each column's lanes
    assert "llvm.masked" not in made and re.search(rf"load <([48]|{rows}) x (i32|float|double)>", made)


@pytest.mark.parametrize("columns", [6, 7])
@pytest.mark.parametrize("op", ["add", "maximum"])
def test_few_columns_of_bf16_are_vectors_without_gathers(op: str, columns: int):
    """On processors of 256 bits, LLVM makes scalars of a nest over results on legacy: four times XLA's time."""
    module = parse_module(reduced(op, "bf16", 1000, 4, columns))
    made = optimize(emitter("legacy").emit(plan(module).emitted, SHORT).llvm_ir, SHORT)
    assert re.search(r"load <4 x i16>", made) and "alloca" not in made
