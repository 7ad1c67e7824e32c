"""Products with few rows on the MLIR stack: each element of B is used in one or two tiles, and is read in place."""

import numpy as np
import pytest

from ...benchmarks.dot_shapes import Product
from ...codegen.options import EmitOptions, EmittedModule, Target
from ...formats.text.parser import parse_module
from ...mlir_emitters import emit
from ...planning.planner import plan
from ..support.check import check


def emitted(product: Product, level: str) -> EmittedModule:
    return emit(plan(parse_module(product.module_text())).kernels, EmitOptions(Target.level(level)))


@pytest.mark.parametrize(
    ("level", "rows", "copied"),
    [
        ("x86-64-v4", 12, False),
        ("x86-64-v4", 16, False),
        ("x86-64-v4", 32, False),
        ("x86-64-v4", 33, True),
        ("x86-64-v3", 14, False),
        ("x86-64-v3", 29, True),
    ],
)
def test_few_rows_need_no_copy(level, rows, copied):
    """The copy of a matrix that 16 rows are multiplied by takes a quarter of the time."""
    module = emitted(Product("f32", "nn", rows, 256, 512), level)
    assert ("mlir.pack" in module.llvm_ir) == copied


@pytest.mark.parametrize(("rows", "copied"), [(8, False), (16, False), (17, True)])
def test_short_pieces_of_a_matrix_far_apart_are_copied(rows, copied):
    """A line of each of many rows that are pages apart takes as long to read as four: tiles of 16 rows are of 8."""
    module = emitted(Product("f32", "nn", rows, 1024, 4096), "x86-64-v4")
    assert ("mlir.pack" in module.llvm_ir) == copied


def test_eight_columns_are_a_short_vector():
    module = emitted(Product("f32", "nn", 8, 512, 8), "x86-64-v4")
    assert "8x8x8." in module.llvm_ir and "mlir.pack" not in module.llvm_ir


@pytest.mark.parametrize(("side", "tiled"), [(2, False), (3, False), (4, True)])
def test_the_smallest_products_are_no_tiles(side, tiled):
    """A tile of 2 x 2 uses two of its sixteen lanes; in plain loops, vectors are along the batch."""
    array = f"f32[1000,{side},{side}]"
    text = (
        f"HloModule m\nENTRY e {{\n p = {array} parameter(0)\n q = {array} parameter(1)\n ROOT r = {array} dot(p, q), "
        "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}\n}\n"
    )
    module = emit(plan(parse_module(text)).kernels, EmitOptions(Target.level("x86-64-v4")))
    assert ("mlir.tile" in module.llvm_ir) == tiled
    check(text)


@pytest.mark.parametrize(("columns", "fetched"), [(2048, True), (64, False)])
def test_what_lies_beyond_the_caches_is_fetched(columns, fetched):
    module = emitted(Product("f32", "nn", 4, 512, columns), "x86-64-v4")
    assert any("@llvm.prefetch.p0(ptr %" in text and "i32 0, i32 2" in text for text in module.helpers) == fetched


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"),
    [(8, 300, 8), (9, 33, 4), (12, 1024, 24), (16, 1024, 70), (17, 700, 16), (28, 257, 33), (31, 1024, 64)],
)
@pytest.mark.parametrize("epilogue", [False, True])
def test_all_stacks_agree(dtype, rows, depth, columns, epilogue):
    """One tile of rows and two, with a rest; depths of one block and several; rows that share lines of the cache."""
    product = Product(dtype, "nn", rows, depth, columns, epilogue)
    generator = np.random.default_rng(0)
    shapes = [p.shape for p in parse_module(product.module_text()).entry.parameters]
    inputs = [generator.standard_normal(s.dims).astype(s.dtype.numpy) for s in shapes]
    check(product.module_text(), inputs)


def test_signs_of_zeros_infinities_and_nans():
    a, b = np.zeros((9, 70), np.float32), np.ones((70, 12), np.float32)
    a[1, 3], a[2, 4], a[3, 5], b[5, 7] = np.inf, np.nan, -0.0, -np.inf
    check(Product("f32", "nn", 9, 70, 12).module_text(), [a, b])


def test_large_matrices_are_read_in_blocks():
    """Several rows: a block of few rows of B, along all columns."""
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(dims).astype(np.float32) for dims in ((3, 530), (530, 2100))]
    check(Product("f32", "nn", 3, 530, 2100).module_text(), inputs)
