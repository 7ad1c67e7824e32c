"""Products of narrow elements with sums of 32 bits: words of elements, on each processor's instructions. Those of
integers are exact, and so are those of small whole numbers in bf16.
"""

import ml_dtypes
import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ...migration.choose import emitter
from ...planning.planner import plan

NUMPY = {"s4": ml_dtypes.int4, "s8": np.int8, "u8": np.uint8, "s16": np.int16}
HERE = ["host", *Target.levels()]


def product(left: str, right: str, m: int, k: int, n: int, layout: str, more: str = "", result: str = "s32") -> str:
    a, b = (m, k) if layout[0] == "n" else (k, m), (k, n) if layout[1] == "n" else (n, k)
    numbers = f"lhs_contracting_dims={{{int(layout[0] == 'n')}}}, rhs_contracting_dims={{{int(layout[1] == 't')}}}"
    return f"""HloModule m
ENTRY e {{ a = {left}[{a[0]},{a[1]}] parameter(0)
  b = {right}[{b[0]},{b[1]}] parameter(1)
  {"" if more else "ROOT "}d = {result}[{m},{n}] dot(a, b), {numbers}
  {more} }}
"""


def exact(a: np.ndarray, b: np.ndarray, layout: str) -> np.ndarray:
    a, b = a.astype(np.int64), b.astype(np.int64)
    return ((a.T if layout[0] == "t" else a) @ (b.T if layout[1] == "t" else b)).astype(np.int32)


def extremes(dtype: str, dims: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    """Random values, of which many are the least or the largest."""
    info = ml_dtypes.iinfo(NUMPY[dtype])
    least, most = int(info.min), int(info.max)
    values = generator.integers(least, most + 1, dims)
    return np.select([generator.random(dims) < 0.3, generator.random(dims) < 0.3], [least, most], values).astype(
        NUMPY[dtype]
    )


@pytest.mark.parametrize("cpu", HERE, indirect=True)
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_products_are_exact(stack, cpu):
    """Remainders of rows, columns, words and blocks of the depth; sums that wrap; factors with and without a sign."""
    generator = np.random.default_rng(0)
    for left, right, m, k, n, layout in [
        ("s8", "s8", 65, 517, 70, "nn"),
        ("s8", "s8", 33, 2049, 70, "nt"),
        ("s8", "s8", 36, 716, 70, "nn"),  # whole words, of which the last make no vector
        ("u8", "s8", 33, 1100, 40, "nn"),
        ("u8", "s8", 16, 3000, 40, "tn"),
        ("s8", "u8", 50, 1030, 33, "tt"),
        ("u8", "u8", 12, 96, 64, "nn"),
        ("s4", "s8", 50, 301, 41, "nn"),
        ("s16", "s16", 64, 4097, 40, "nt"),
    ]:
        text = product(left, right, m, k, n, layout)
        module = parse_module(text)
        inputs = [extremes(d, p.shape.dims, generator) for d, p in zip((left, right), module.entry.parameters)]
        (result,) = compile_module(module, Flags.parse(stack), CompileOptions(cache=None)).execute(inputs)
        np.testing.assert_array_equal(np.asarray(result), exact(*inputs, layout), f"{left} {right} {layout}")


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize(("dtype", "result"), [("s8", "s8"), ("s8", "s16"), ("u8", "u8"), ("s4", "s4"), ("s16", "s16")])
def test_results_as_narrow_as_their_operands_wrap(stack, dtype, result):
    generator = np.random.default_rng(4)
    module = parse_module(product(dtype, dtype, 33, 517, 70, "nt", result=result))
    a, b = (extremes(dtype, p.shape.dims, generator) for p in module.entry.parameters)
    (found,) = compile_module(module, Flags.parse(stack), CompileOptions(cache=None)).execute([a, b])
    wanted = a.astype(np.int64) @ b.astype(np.int64).T
    bits = 4 if result == "s4" else 8 * np.dtype(NUMPY[result]).itemsize
    assert (np.asarray(found).astype(np.int64) - wanted & (1 << bits) - 1 == 0).all()


@pytest.mark.parametrize(("stack", "dtype"), [("legacy", "s8"), ("legacy", "s16"), ("mlir", "s8")])
def test_such_products_are_of_words_too(stack, dtype):
    """Those of MLIR with results of s16 have lanes of 16 bits instead."""
    kernels = plan(parse_module(product(dtype, dtype, 64, 256, 64, "nn", result=dtype))).kernels
    module = emitter(stack).emit(kernels, EmitOptions(Target.level("x86-64-v3")))
    assert "pmadd" in "".join((module.llvm_ir, *module.helpers))


def bf16_product(dims: tuple[int, int, int], batch: int, layout: str, result: str) -> str:
    """batch × (m × k by k × n); layout: n, or t for a transposed operand."""
    m, k, n = dims
    a, b = (m, k) if layout[0] == "n" else (k, m), (k, n) if layout[1] == "n" else (n, k)
    numbers = f"lhs_contracting_dims={{{1 + (layout[0] == 'n')}}}, rhs_contracting_dims={{{1 + (layout[1] == 't')}}}"
    return f"""HloModule m
ENTRY e {{ a = bf16[{batch},{a[0]},{a[1]}] parameter(0)
  b = bf16[{batch},{b[0]},{b[1]}] parameter(1)
  ROOT d = {result}[{batch},{m},{n}] dot(a, b), lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, {numbers} }}
"""


BF16 = [
    ((65, 517, 70), 1, "nn"),  # an odd depth: the last word has one element
    ((33, 2048, 70), 2, "nt"),
    ((64, 512, 64), 1, "nn"),  # A's words are read where they lie
    ((17, 96, 40), 3, "nn"),
    ((16, 3001, 40), 1, "tn"),
    ((50, 1030, 33), 2, "tt"),
    ((8, 5, 128), 3, "nn"),
]


@pytest.mark.parametrize("cpu", HERE, indirect=True)
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_products_of_bf16(stack, cpu):
    """Sums of whole numbers below 2²⁴, which are exact in f32. Each row of A but the first has an infinity and a NaN at
    its ends: neither may reach another row.
    """
    generator = np.random.default_rng(2)
    for dims, batch, layout in BF16:
        module = parse_module(bf16_product(dims, batch, layout, "f32"))
        a, b = (generator.integers(-9, 10, p.shape.dims).astype(ml_dtypes.bfloat16) for p in module.entry.parameters)
        rows, columns = (x.swapaxes(1, 2) if letter == "t" else x for x, letter in zip((a, b), layout))
        rows[:, 1::2, 0], rows[:, 1::2, -1] = np.inf, np.nan
        (result,) = compile_module(module, Flags.parse(stack), CompileOptions(cache=None)).execute([a, b])
        found = np.asarray(result)
        assert np.isnan(found[:, 1::2]).all()
        wanted = rows[:, ::2].astype(np.float64) @ columns.astype(np.float64)
        np.testing.assert_array_equal(found[:, ::2], wanted, f"{dims} {batch} {layout}")


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_products_of_bf16_are_as_near_as_those_of_f32(stack):
    """Sums of many products are partial sums: their error is that of f32, and not that of one long chain."""
    generator = np.random.default_rng(3)
    module = parse_module(bf16_product((32, 200_000, 64), 1, "nn", "f32"))
    a, b = (generator.random(p.shape.dims, np.float32).astype(ml_dtypes.bfloat16) for p in module.entry.parameters)
    (result,) = compile_module(module, Flags.parse(stack), CompileOptions(cache=None)).execute([a, b])
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    assert np.abs(np.asarray(result) / wanted - 1).max() < 2e-6


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_what_follows_and_more_depth_than_a_panel_has(stack):
    generator = np.random.default_rng(1)
    text = product("s8", "s8", 40, 70_001, 17, "nn", "ROOT r = s32[40,17] negate(d)")
    inputs = [extremes("s8", p.shape.dims, generator) for p in parse_module(text).entry.parameters]
    (result,) = compile_module(parse_module(text), Flags.parse(stack), CompileOptions(cache=None)).execute(inputs)
    np.testing.assert_array_equal(np.asarray(result), -exact(*inputs, "nn"))


FEATURES = Target.level("x86-64-v4").features + ",+avx512vnni,+avx512bf16"
SERVER = Target("x86_64-unknown-linux-gnu", "znver4", FEATURES, 512)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize(
    ("target", "dtype", "instruction"),
    [
        (SERVER, "s8", "llvm.x86.avx512.vpdpbusd.512"),
        (SERVER, "s16", "llvm.x86.avx512.pmaddw.d.512"),
        (Target.level("x86-64-v4"), "s8", "llvm.x86.avx512.pmaddw.d.512"),
        (Target.level("x86-64-v3"), "s8", "llvm.x86.avx2.pmadd.wd"),
        (Target.level("x86-64-v2"), "s8", "llvm.x86.sse2.pmadd.wd"),
        (Target("aarch64-unknown-linux-gnu", "neoverse-n1", "+neon", 128), "s8", None),
        (SERVER, "bf16", "llvm.x86.avx512bf16.dpbf16ps.512"),
        (Target.level("x86-64-v4"), "bf16", None),
        (Target.level("x86-64-v3"), "bf16", None),
    ],
)
def test_instructions_of_the_processor(stack, target, dtype, instruction):
    text = product(dtype, dtype, 64, 256, 64, "nn", result="f32" if dtype == "bf16" else "s32")
    kernels = plan(parse_module(text)).kernels
    module = emitter(stack).emit(kernels, EmitOptions(target))
    text = "".join((module.llvm_ir, *module.helpers))
    assert ("llvm.x86." in text) is (instruction is not None)
    assert instruction is None or instruction in text
