"""Kernels of short rows compute many rows at once; no row's result depends on its place, or on how rows are split."""

import re

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ...migration.choose import emitter
from ...passes.pipeline import optimize as optimize_module
from ...planning import partition
from ...planning.planner import plan
from ..support.check import check
from ..support.ranges import check_ranges_alone, check_threads, number_of_threads

WIDE = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512bw,+avx512vl,+fma", 512), False)
SHORT = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma", 256), ranges=False)
BOTH = pytest.mark.parametrize("cpu", ["host", "x86-64-v3"], indirect=True)


@pytest.fixture(autouse=True)
def restored_threads():
    with number_of_threads():
        yield


def program(dtype: str, rows: int, length: int, lines: str, parameters: tuple[str, ...] = (), header: str = "") -> str:
    """Lines with S for the rows' shape, R for that of one number a row, C for that of a row; f adds, g is a maximum."""
    given = "\n  ".join(f"p{k} = {shape} parameter({k})" for k, shape in enumerate(("S", *parameters)))
    regions = "\n".join(
        f"{name} {{ a = {t}[] parameter(0)\n  b = {t}[] parameter(1)\n  ROOT c = {t}[] {op}(a, b) }}"
        for name, t, op in (("f", "f32", "add"), ("g", dtype, "maximum"))
    )
    body = f"{given}\n  o = f32[] constant(0)\n  z = {dtype}[] constant(-inf)\n  {lines.strip()}"
    for name, shape in (("S", f"{dtype}[{rows},{length}]"), ("R", f"{dtype}[{rows}]"), ("C", f"{dtype}[{length}]")):
        body = re.sub(rf"\b{name}\b", shape, body)
    body = body.replace("W[", f"f32[{rows},{length}][").replace("W ", f"f32[{rows},{length}] ")
    body = body.replace("V ", f"f32[{rows}] ")
    return f"HloModule m{header}\n{regions}\nENTRY e {{\n  {body}\n}}\n"


SUMS_OF_EXPONENTIALS = """m = R reduce(p0, z), dimensions={1}, to_apply=g
  b = S broadcast(m), dimensions={0}
  d = S subtract(p0, b)
  e = S exponential(d)
  w = W convert(e)
  v = V reduce(w, o), dimensions={1}, to_apply=f
  t = R convert(v)
  """

SOFTMAX = f"""{SUMS_OF_EXPONENTIALS}u = S broadcast(t), dimensions={{0}}
  ROOT r = S divide(e, u)"""

LOG_SOFTMAX = f"""{SUMS_OF_EXPONENTIALS}k = dtype[ROWS,1] reshape(t)
  l = dtype[ROWS,1] log(k)
  h = R reshape(l)
  u = S broadcast(h), dimensions={{0}}
  ROOT r = S subtract(d, u)"""
"""As JAX writes it: the sums keep a dimension of one element."""

NORM = """w = W convert(p0)
  q = W multiply(w, w)
  v = V reduce(q, o), dimensions={1}, to_apply=f
  i = V rsqrt(v)
  j = R convert(i)
  k = R multiply(j, p2)
  u = S broadcast(k), dimensions={0}
  x = S multiply(p0, u)
  y = S broadcast(p1), dimensions={1}
  s = S multiply(x, y)
  ROOT r = (S, R, S) tuple(s, j, x)"""

CENTRED = """v = f32[ROWS] reduce(p0, o), dimensions={1}, to_apply=f
  n = S broadcast(v), dimensions={0}
  d = S subtract(p0, n)
  a = S abs(d)
  c = pred[ROWS,LENGTH] compare(p0, n), direction=LT
  m = R reduce(a, z), dimensions={1}, to_apply=g
  b = S broadcast(m), dimensions={0}
  h = S select(c, b, d)
  w = V reduce(h, o), dimensions={1}, to_apply=f
  ROOT r = (S, R, R) tuple(h, m, w)"""


def log_softmax(dtype: str, rows: int) -> str:
    return LOG_SOFTMAX.replace("dtype", dtype).replace("ROWS", str(rows))


SHAPES = [(32, 10), (31, 10), (16, 4), (17, 5), (50, 12), (100, 20), (65, 33), (70, 16)]


@BOTH
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("rows, length", SHAPES)
def test_softmax(rows: int, length: int, dtype: str, cpu):
    check(program(dtype, rows, length, SOFTMAX))


@BOTH
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("rows, length", SHAPES)
def test_log_softmax(rows: int, length: int, dtype: str, cpu):
    check(program(dtype, rows, length, log_softmax(dtype, rows)))


@BOTH
@pytest.mark.parametrize("dtype", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("rows, length", SHAPES)
def test_numbers_of_rows_and_columns(rows: int, length: int, dtype: str, cpu):
    check(program(dtype, rows, length, NORM, ("C", "R")))


@BOTH
@pytest.mark.parametrize("rows, length", SHAPES)
def test_levels_of_reductions(rows: int, length: int, cpu):
    check(program("f32", rows, length, CENTRED.replace("ROWS", str(rows)).replace("LENGTH", str(length))))


@BOTH
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_a_result_takes_the_place_of_its_operand(dtype: str, stack: str, cpu):
    text = program(dtype, 45, 10, SOFTMAX, header=", input_output_alias={ {}: (0, {}, may-alias) }")
    kernels = plan(optimize_module(parse_module(text))).kernels
    assert any(set(kernel.operands) & set(kernel.results) for kernel in kernels)
    check(text, stacks=("evaluator", stack))


@BOTH
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("dtype, length", [("f32", 10), ("bf16", 20), ("f16", 12), ("f32", 33)])
def test_equal_rows_have_equal_results_at_all_places(dtype: str, length: int, stack: str, cpu):
    text = program(dtype, 77, length, SOFTMAX)
    module = parse_module(text)
    row = np.random.default_rng(3).normal(0, 3, length).astype(module.entry.parameters[0].shape.dtype.numpy)
    (found,) = compile_module(module, Flags.parse(stack)).execute([np.tile(row, (77, 1))])
    assert len({x.tobytes() for x in found}) == 1
    (other,) = compile_module(parse_module(program(dtype, 64, length, SOFTMAX)), Flags.parse(stack)).execute(
        [np.tile(row, (64, 1))]
    )
    assert other[0].tobytes() == found[0].tobytes()


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("lines, parameters", [(SOFTMAX, ()), (NORM, ("C", "R"))], ids=["softmax", "norm"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_ranges_of_any_rows(dtype: str, lines: str, parameters: tuple[str, ...], stack: str, monkeypatch):
    monkeypatch.setattr(partition, "CHUNK", 1)
    text = program(dtype, 203, 10, lines, parameters)
    check_ranges_alone(check_threads(parse_module(text), stack))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("options, lanes", [(WIDE, 16), (SHORT, 8)], ids=["512 bits", "256 bits"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
@pytest.mark.parametrize("length", [9, 10, 12, 20, 33])
@pytest.mark.parametrize("of", [lambda *_: SOFTMAX, log_softmax], ids=["softmax", "log-softmax"])
def test_all_that_is_computed_is_whole_vectors(length, dtype, options, lanes, stack, of):
    module = optimize_module(parse_module(program(dtype, 1000, length, of(dtype, 1000))))
    made = optimize(emitter(stack).emit(plan(module).emitted, options).llvm_ir, options)
    computed = set(re.findall(r"= f(?:sub|mul|add|div) (?:reassoc |contract )*(<\d+ x float>|float)", made))
    assert computed == {f"<{lanes} x float>"}
    assert "llvm.masked" not in made and "llvm.vector.reduce" not in made


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("rows, length, turned", [(32, 10, True), (31, 10, False), (32, 33, True), (32, 34, False)])
def test_few_rows_and_long_ones_are_computed_one_by_one(rows: int, length: int, turned: bool, stack: str):
    module = optimize_module(parse_module(program("f32", rows, length, SOFTMAX)))
    assert ("load <4 x float>" in emitter(stack).emit(plan(module).emitted, WIDE).llvm_ir) == turned
