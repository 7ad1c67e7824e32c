"""Products whose right operand is stored by columns: squares of it are transposed in registers as it is packed."""

import ml_dtypes
import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ...migration.choose import emitter
from ...planning.planner import plan

NUMPY = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "s8": np.int8,
    "s16": np.int16,
}
SIZES = [
    (20, 64, 64),  # whole squares
    (17, 261, 200),  # remainders of rows, columns and the depth
    (33, 1031, 70),  # more than a block of the depth
    (8, 7, 128),  # a depth below a vector
]


def product(dtype: str, m: int, k: int, n: int, result: str) -> str:
    return f"""HloModule m
ENTRY e {{ a = {dtype}[{m},{k}] parameter(0)
  b = {dtype}[{n},{k}] parameter(1)
  ROOT d = {result}[{m},{n}] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{1}} }}
"""


def result_of(dtype: str) -> str:
    return "s32" if dtype in ("s8", "s16") else "f64" if dtype == "f64" else "f32"


@pytest.mark.parametrize("cpu", ["host", *Target.levels()], indirect=True)
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_sums_of_whole_numbers_are_exact(stack, cpu):
    generator = np.random.default_rng(0)
    for dtype in NUMPY:
        for m, k, n in SIZES:
            module = parse_module(product(dtype, m, k, n, result_of(dtype)))
            a, b = (generator.integers(-9, 10, p.shape.dims).astype(NUMPY[dtype]) for p in module.entry.parameters)
            (result,) = compile_module(module, Flags.parse(stack), CompileOptions(cache=None)).execute([a, b])
            wanted = a.astype(np.float64) @ b.astype(np.float64).T
            np.testing.assert_array_equal(np.asarray(result), wanted, f"{dtype} {m} {k} {n}")


SERVER = Target(
    "x86_64-unknown-linux-gnu", "znver4", Target.level("x86-64-v4").features + ",+avx512vnni,+avx512bf16", 512
)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize(
    ("target", "dtype", "vector"),
    [
        (SERVER, "bf16", "<16 x float>"),
        (SERVER, "f32", "<16 x float>"),
        (SERVER, "f16", "<16 x float>"),
        (SERVER, "s8", "<16 x i32>"),
        (Target.level("x86-64-v3"), "f32", "<8 x float>"),
        (Target.level("x86-64-v3"), "bf16", "<8 x float>"),
        (Target.level("x86-64-v3"), "f64", "<4 x double>"),
    ],
)
def test_a_panel_is_packed_by_shuffles(stack, target, dtype, vector):
    kernels = plan(parse_module(product(dtype, 64, 256, 256, result_of(dtype)))).kernels
    helpers = emitter(stack).emit(kernels, EmitOptions(target)).helpers
    (pack,) = [text for text in helpers if ".pack." in text]
    assert f"shufflevector {vector}" in pack
