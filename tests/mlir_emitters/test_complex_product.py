"""Products of complex numbers in tiles on the MLIR stack, on processors with registers of 256 and of 512 bits."""

from collections.abc import Iterator

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...benchmarks.dot_shapes import Product
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ...mlir_emitters import emit
from ...mlir_emitters.products.dot_registers import best_tile, flat_tile
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for


@pytest.fixture(params=["x86-64-v3", "x86-64-v4"])
def processor(request) -> Iterator[str]:
    with code_for(request.param):
        yield request.param


def compare(processor: str, product: Product, inputs: list[np.ndarray]) -> None:
    """Of all stacks, within the bounds of the module, which is named for the processor."""
    name = f"HloModule product_{processor.replace('-', '_')}"
    check(product.module_text().replace("HloModule product", name), inputs)


def product_inputs(product: Product, seed: int = 0) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    shapes = [p.shape for p in parse_module(product.module_text()).entry.parameters]
    return [
        (generator.standard_normal(s.dims) + 1j * generator.standard_normal(s.dims)).astype(s.dtype.numpy)
        for s in shapes
    ]


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [(1, 300, 40), (3, 2, 9), (7, 513, 20), (16, 16, 16), (17, 255, 33), (33, 600, 70), (50, 257, 1), (129, 40, 31)],
)
def test_all_layouts_and_odd_sizes(processor, dtype, layout, rows, depth, columns):
    """One row, few of them, tiles and remainders; parts of a vector; depths on both sides of a block."""
    product = Product(dtype, layout, rows, depth, columns, epilogue=rows % 2 == 0)
    compare(processor, product, product_inputs(product))


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("depth", [7, 8, 9, 31, 33, 64, 100, 1000, 40_001])
def test_rows_along_memory(processor, dtype, depth):
    """No vector of a row, some, and all; each piece of what is left; several blocks."""
    product = Product(dtype, "nt", 3, depth, 5)
    a, b = product_inputs(product)
    compare(processor, product, [a, b])
    a[0, 3], a[1, depth - 1], b[4, 2] = complex(np.inf, 1), complex(0, np.nan), complex(-1, -np.inf)
    compare(processor, product, [a, b])


def test_rows_along_memory_are_multiplied_as_they_are_loaded():
    """A loop that parts real from imaginary numbers takes twice as long."""
    options = EmitOptions(Target.level("x86-64-v4"), keep_stages=True)
    module = emit(plan(parse_module(Product("c64", "nt", 1, 1024, 64).module_text())).kernels, options)
    text = dict(module.stages)["mlir"]
    loop = text[text.index("vector.load") :]
    assert "memref.load" not in loop[: loop.index("scf.yield")] and "vector<16xf32>" in loop


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize(
    ("left", "right", "numbers"),
    [
        ("4,3,20", "5,3,20", "lhs_contracting_dims={1,2}, rhs_contracting_dims={1,2}"),  # one run
        ("4,3,20", "3,5,20", "lhs_contracting_dims={1,2}, rhs_contracting_dims={0,2}"),  # a run for each of three
        ("4,3,9", "5,9,3", "lhs_contracting_dims={1,2}, rhs_contracting_dims={2,1}"),  # none
    ],
)
def test_several_dimensions_along_memory(processor, dtype, left, right, numbers):
    check(f"""HloModule m_{processor.replace("-", "_")}
ENTRY e {{
  a = {dtype}[{left}] parameter(0)
  b = {dtype}[{right}] parameter(1)
  ROOT r = {dtype}[4,5] dot(a, b), {numbers}
}}
""")


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("rows", [9, 40])
def test_infinities_nans_and_signs_of_zeros(processor, dtype, rows):
    product = Product(dtype, "nn", rows, 70, 12)
    a, b = product_inputs(product)
    a[1, 3], a[2, 4], a[3, :], b[5, 7] = complex(np.inf, 1), complex(0, np.nan), complex(-0.0, 0.0), complex(2, -np.inf)
    a[4, 6], b[:, 9] = complex(np.inf, np.inf), complex(-0.0, -0.0)
    compare(processor, product, [a, b])


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_a_sum_of_one_product_keeps_the_sign_of_zero(processor, dtype):
    product = Product(dtype, "nn", 40, 1, 24)
    a, b = product_inputs(product)
    a[:8], b[:, :8] = complex(-0.0, 0.0), complex(0.0, -0.0)
    compare(processor, product, [a, b])


@pytest.mark.parametrize("epilogue", [False, True])
@pytest.mark.parametrize("rows", [8, 40])
def test_long_products_are_right_to_a_few_units(processor, rows, epilogue):
    """One chain of a hundred thousand additions is off by 1e-5 and more."""
    product = Product("c64", "nn", rows, 100_000, 16, epilogue)
    generator = np.random.default_rng(0)
    shapes = [p.shape.dims for p in parse_module(product.module_text()).entry.parameters]
    inputs = [(generator.random(dims) + 0.25j * generator.random(dims)).astype(np.complex64) for dims in shapes]
    a, b, *bias = (x.astype(np.complex128) for x in inputs)
    wanted = a @ b + (bias[0] if bias else 0)
    (result,) = compile_module(
        parse_module(product.module_text()), Flags.parse("mlir"), CompileOptions(cache=None)
    ).execute(inputs)
    assert np.abs(np.asarray(result) / wanted - 1).max() < 3e-7


@pytest.mark.parametrize(("result", "op"), [("f32", "abs"), ("c64", "negate"), ("f32", "imag")])
def test_ops_that_follow_are_computed_on_tiles(processor, result, op):
    name = f"{op}_{processor.replace('-', '_')}"
    check(f"""HloModule {name}
ENTRY e {{
  a = c64[37,70] parameter(0)
  b = c64[70,45] parameter(1)
  d = c64[37,45] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT r = {result}[37,45] {op}(d)
}}
""")


def test_tiles_have_both_sums_of_an_element_in_registers():
    assert best_tile(32, parts=2) == (3, 4) and best_tile(16, parts=2) == (3, 2)
    assert flat_tile(32, 8, 16, parts=2) == (8, 1) and flat_tile(16, 3, 16, parts=2) == (3, 2)
