"""Reductions of short rows alone: many rows side by side where the elements of one would wait for one another."""

import re

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...migration import Flags, compile_module
from ...migration.choose import emitter
from ...planning import partition
from ...planning.planner import plan
from ..support.check import check
from ..support.ranges import check_ranges_alone, check_threads, number_of_threads

WIDE = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512bw,+avx512vl,+fma", 512), False)
SHORT = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma", 256), ranges=False)
STACKS = pytest.mark.parametrize("stack", ["legacy", "mlir"])
BOTH = pytest.mark.parametrize("cpu", ["host", "x86-64-v3"], indirect=True)
STARTS = {"add": "0", "multiply": "1", "maximum": "-inf", "minimum": "inf"}


def reduced(op: str, t: str, rows: int, length: int, function: str = "") -> str:
    """Of rows, or of a function of them."""
    x = f"{t}[{rows},{length}]"
    made = f"y = {x} {function}(x)\n  " if function else ""
    return f"""HloModule m
f {{ a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT c = {t}[] {op}(a, b) }}
ENTRY e {{ x = {x} parameter(0)
  {made}z = {t}[] constant({STARTS[op]})
  ROOT r = {t}[{rows}] reduce({"y" if made else "x"}, z), dimensions={{1}}, to_apply=f }}
"""


@BOTH
@pytest.mark.parametrize("op, dtype", [(op, t) for op in STARTS for t in ("f32", "bf16", "f16")])
@pytest.mark.parametrize(
    "rows, length", [(2048, 9), (31, 10), (2077, 12), (2065, 15), (2050, 16), (2100, 20), (2113, 32), (65, 33)]
)
def test_values(rows: int, length: int, op: str, dtype: str, cpu):
    check(reduced(op, dtype, rows, length))
    check(reduced(op, dtype, rows, length, "negate"))


@BOTH
@STACKS
@pytest.mark.parametrize("op", ["maximum", "minimum", "add"])
@pytest.mark.parametrize("dtype", [DType.F32, DType.BF16, DType.F16], ids=str)
def test_special_values_at_each_place(dtype: DType, op: str, stack: str, cpu):
    special = np.array([np.nan, -0.0, 0.0, np.inf, -np.inf, 6e-8, 6e4, -6e4], np.float32)
    x = np.random.default_rng(1).choice(special, (2203, 10), p=[0.02, 0.4, 0.28, 0.05, 0.05, 0.1, 0.05, 0.05])
    check(reduced(op, dtype.value, 2203, 10), [x.astype(dtype.numpy)], stacks=("evaluator", stack))


@STACKS
@pytest.mark.parametrize("dtype, big", [(DType.BF16, 256), (DType.F16, 2048)], ids=str)
@pytest.mark.parametrize("length", [10, 16, 32])
def test_short_sums_of_narrow_floats_round_at_each_step(length: int, dtype: DType, big: int, stack: str):
    """As XLA:CPU does: a number whose neighbours are 2 apart, plus ones, stays as it is."""
    x = np.ones((2070, length), dtype.numpy)
    x[:, 0] = big
    module = parse_module(reduced("add", dtype.value, 2070, length))
    (found,) = compile_module(module, Flags.parse(stack)).execute([x])
    assert (found.astype(np.float32) == big).all()


@STACKS
@pytest.mark.parametrize("op, dtype", [("add", "bf16"), ("maximum", "f32"), ("minimum", "f16")])
def test_ranges_of_any_rows(op: str, dtype: str, stack: str, monkeypatch):
    monkeypatch.setattr(partition, "CHUNK", 1)
    with number_of_threads():
        check_ranges_alone(check_threads(parse_module(reduced(op, dtype, 2203, 10)), stack))


@STACKS
@pytest.mark.parametrize("options, lanes", [(WIDE, 16), (SHORT, 8)], ids=["512 bits", "256 bits"])
@pytest.mark.parametrize("op, dtype, length", [("add", "bf16", 16), ("add", "f16", 32), ("add", "bf16", 9)])
def test_steps_that_round_are_whole_vectors(op: str, dtype: str, length: int, options: EmitOptions, lanes: int, stack):
    module = parse_module(reduced(op, dtype, 3000, length))
    made = optimize(emitter(stack).emit(plan(module).emitted, options).llvm_ir, options)
    computed = set(re.findall(r"= fadd (?:reassoc |contract )*(<\d+ x |)(?:float|half)", made))
    assert computed == {f"<{lanes} x "}


@STACKS
@pytest.mark.parametrize(
    "op, dtype, length, turned",
    [
        ("maximum", "f32", 10, True),
        ("maximum", "f16", 15, True),
        ("maximum", "f32", 16, False),
        ("maximum", "bf16", 8, False),
        ("add", "f32", 10, False),
        ("add", "bf16", 32, True),
        ("add", "bf16", 33, False),
        ("add", "f16", 8, False),
    ],
)
def test_rows_go_side_by_side_where_elements_would_wait(op: str, dtype: str, length: int, turned: bool, stack: str):
    for rows, many in ((1000, False), (3000, True)):  # of few, the time that LLVM takes is more than what is gained
        made = emitter(stack).emit(plan(parse_module(reduced(op, dtype, rows, length))).emitted, WIDE).llvm_ir
        assert bool(re.search(r"load <4 x (float|i16)>", made)) == (turned and many)
