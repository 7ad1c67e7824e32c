"""Maxima, minima, and, or along rows that end within a vector: the last vector counts some elements twice."""

import re

import numpy as np
import pytest

from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.ir import Module
from ...migration import Flags, compile_module
from ...migration.choose import emitter
from ...planning.planner import plan

WIDE = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+avx512bw,+avx512vl,+fma", 512), False)

LOWEST = {DType.S8: "-128", DType.U8: "0", DType.S16: "-32768", DType.S64: str(-(1 << 63))}
HIGHEST = {DType.S8: "127", DType.U8: "255", DType.S16: "32767", DType.S64: str((1 << 63) - 1)}


def module_of(t: DType, dims: list[int], reduced: list[int], op: str, start: str, made: str = "") -> Module:
    shape, left = ",".join(map(str, dims)), ",".join(str(n) for d, n in enumerate(dims) if d not in reduced)
    axes = ",".join(map(str, reduced))
    return parse_module(f"""HloModule m
f {{ a = {t.value}[] parameter(0)
  b = {t.value}[] parameter(1)
  ROOT c = {t.value}[] {op}(a, b) }}
ENTRY e {{ p = {t.value}[{shape}] parameter(0)
  x = {t.value}[{shape}] {made or "copy(p)"}
  z = {t.value}[] constant({start})
  ROOT r = {t.value}[{left}] reduce({"x" if made else "p"}, z), dimensions={{{axes}}}, to_apply=f }}
""")


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"], indirect=True)
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("op, start", [("maximum", "-inf"), ("minimum", "inf"), ("maximum", "-0")])
@pytest.mark.parametrize("dtype", [DType.F32, DType.F64, DType.BF16, DType.F16], ids=str)
@pytest.mark.parametrize("length", [17, 33, 211, 261, 300])
def test_a_special_value_at_each_place(stack: str, op: str, start: str, dtype: DType, length: int, cpu):
    """Rows of zeros of one sign with a zero of the other, of numbers with a NaN, and with an infinity."""
    specials = (-0.0, 0.0, np.nan, -np.nan, np.inf, -np.inf)
    x = np.empty((len(specials), length, length))
    x[0], x[1], x[2:] = 0.0, -0.0, np.random.default_rng(0).integers(-3, 4, (4, length, length))
    for group, special in enumerate(specials):
        np.fill_diagonal(x[group], special)
    module = module_of(dtype, [*x.shape], [2], op, start)
    (found,) = compile_module(module, Flags.parse(stack)).execute([x.astype(dtype.numpy)])
    everything = np.concatenate([np.full((len(specials), length, 1), float(start)), x], axis=2)
    signs = np.signbit(everything)
    with np.errstate(invalid="ignore"):
        wanted = everything.max(2) if op == "maximum" else everything.min(2)
    wanted = np.where(wanted == 0, np.where(signs.all(2) if op == "maximum" else signs.any(2), -0.0, 0.0), wanted)
    found = found.astype(np.float64)
    np.testing.assert_array_equal(found, wanted)
    real = ~np.isnan(wanted)
    assert np.array_equal(np.signbit(found[real]), np.signbit(wanted[real]))


@pytest.mark.parametrize("cpu", ["host", "x86-64-v3"], indirect=True)
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("op", ["maximum", "minimum", "and", "or"])
@pytest.mark.parametrize("dtype", [*LOWEST, DType.PRED], ids=str)
@pytest.mark.parametrize(
    "dims, reduced",
    [([40, 17], [1]), ([5, 6, 211], [0, 2]), ([3, 5, 64], [1, 2]), ([2, 1100], [1]), ([3, 4, 130], [0, 2])],
)
def test_integers(stack: str, op: str, dtype: DType, dims: list[int], reduced: list[int], cpu):
    if dtype is DType.PRED and op not in ("and", "or"):
        start = "false" if op == "maximum" else "true"
    elif dtype is DType.PRED:
        start = "true" if op == "and" else "false"
    else:
        start = {
            "maximum": LOWEST[dtype],
            "minimum": HIGHEST[dtype],
            "and": "-1" if dtype.is_signed else "255",
            "or": "0",
        }[op]
    bits = np.random.default_rng(1).integers(0, 256, (*dims, dtype.bytes), np.uint8)
    x = bits[..., 0] > (2 if op == "and" else 253) if dtype is DType.PRED else bits.view(dtype.numpy)[..., 0]
    ufunc = {"maximum": np.maximum, "minimum": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or}[op]
    (found,) = compile_module(module_of(dtype, dims, reduced, op, start), Flags.parse(stack)).execute([x])
    assert np.array_equal(found, ufunc.reduce(x, axis=tuple(reduced)))


def _compiled(stack: str, *module: object) -> str:
    return optimize(emitter(stack).emit(plan(module_of(*module)).emitted, WIDE).llvm_ir, WIDE)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize(
    "dtype, start, lanes", [(DType.S8, "-128", 64), (DType.F32, "-inf", 16), (DType.S64, "0", 8)], ids=str
)
@pytest.mark.parametrize("dims, reduced", [([100, 99], [1]), ([9, 100, 99], [0, 2])], ids=["rows", "outer"])
def test_no_element_is_read_alone(
    stack: str, dtype: DType, start: str, lanes: int, dims: list[int], reduced: list[int]
):
    made = _compiled(stack, dtype, dims, reduced, "maximum", start)
    reads = set(re.findall(r"= load (<\d+ x \w+>|\w+)", made))
    assert len(reads) == 1 and reads.pop().startswith(f"<{lanes} x ")


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_long_code_of_elements_is_not_repeated(stack: str):
    def length(size: int) -> int:
        module = module_of(DType.F32, [100, size], [1], "maximum", "-inf", "power(p, p)")
        return emitter(stack).emit(plan(module).emitted, WIDE).llvm_ir.count("\n")

    assert abs(length(99) - length(96)) < 10


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("length, fetches", [(33, False), (128, True), (200, True)])
def test_rows_from_memory_are_fetched_ahead(stack: str, length: int, fetches: bool):
    module = module_of(DType.F32, [60_000, length], [1], "maximum", "-inf")
    assert ("llvm.prefetch" in emitter(stack).emit(plan(module).emitted, WIDE).llvm_ir) == fetches
