"""Products with few rows on the legacy stack: each element of B is used in one or two tiles, and is read in place."""

import re

import numpy as np
import pytest

from ...benchmarks.dot_shapes import Product
from ...codegen.options import EmitOptions, EmittedModule, Target
from ...formats.text.parser import parse_module
from ...legacy import emit
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for


def emitted(product: Product, level: str) -> EmittedModule:
    return emit(plan(parse_module(product.module_text())).kernels, EmitOptions(Target.level(level)))


@pytest.mark.parametrize(
    ("level", "rows", "columns", "copied"),
    [
        ("x86-64-v4", 12, 512, False),
        ("x86-64-v4", 16, 512, False),
        ("x86-64-v4", 32, 512, False),
        ("x86-64-v4", 33, 512, True),
        ("x86-64-v4", 17, 4096, True),  # lines of rows that are pages apart, beyond the caches
        ("x86-64-v3", 14, 512, False),
        ("x86-64-v3", 8, 1024, False),
        ("x86-64-v3", 17, 2048, True),
    ],
)
def test_few_rows_need_no_copy(level, rows, columns, copied):
    """The copy of a matrix that 16 rows are multiplied by takes a quarter of the time."""
    module = emitted(Product("f32", "nn", rows, 1040, columns), level)
    assert ("legacy.pack" in module.llvm_ir) == copied


@pytest.mark.parametrize(("level", "tile"), [("x86-64-v3", "8x1x8"), ("x86-64-v4", "8x2x16")])
def test_far_rows_are_read_along_all_columns(level, tile):
    """A few rows of B after the other, by tiles of 8 rows: over the whole depth, tiles read too short pieces."""
    text = emitted(Product("f32", "nn", 16, 1100, 4096), level).llvm_ir.replace('"', "")
    assert f"legacy.tile.f32.{tile}." in text and "legacy.pack" not in text
    assert len(re.findall(r"call void @legacy\.tile", text)) == 2  # 68 blocks of 16 rows of B, and 12 rows
    assert "legacy.pack" in emitted(Product("f32", "nn", 16, 1100, 4096, epilogue=True), level).llvm_ir


@pytest.mark.parametrize(
    ("level", "rows", "columns", "copied"),
    [
        ("x86-64-v4", 5, 1024, False),
        ("x86-64-v4", 15, 1024, False),
        ("x86-64-v4", 16, 1024, True),  # of each row of B, tiles of 16 rows read one vector
        ("x86-64-v4", 16, 4096, False),  # of memory: tiles of 8 rows
        ("x86-64-v3", 7, 1024, False),
        ("x86-64-v3", 8, 1024, True),
    ],
)
def test_columns_of_few_rows_need_no_copy(level, rows, columns, copied):
    """A tile reads A column by column, as it lies: the copy of B took up to half of the time."""
    module = emitted(Product("f32", "tn", rows, 1040, columns), level)
    assert ("legacy.pack" in module.llvm_ir) == copied


def test_rows_that_share_lines_of_the_cache_are_copied():
    """16 rows that are a page apart take twice the time: the first cache has eight lines at such distances."""
    for depth, copied in ((1024, True), (1000, False)):
        module = emitted(Product("f32", "nn", 16, depth, 64), "x86-64-v4")
        assert (f"[{16 * (depth + 16)} x float]" in module.llvm_ir) == copied


def test_eight_columns_are_a_short_vector():
    module = emitted(Product("f32", "nn", 8, 512, 8), "x86-64-v4")
    assert "legacy.tile.f32.8x1x8." in module.llvm_ir


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn"])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(4, 1030, 4096), (9, 517, 4096), (16, 300, 8192), (5, 1100, 4112)]
)
@pytest.mark.parametrize("epilogue", [False, True])
def test_large_matrices_are_right(dtype, layout, rows, depth, columns, epilogue):
    """The last block of the depth is shorter; two tiles of rows, the second one lower; columns that no tile divides."""
    text = Product(dtype, layout, rows, depth, columns, epilogue).module_text()
    rng = np.random.default_rng(rows)
    shapes = re.findall(r"= f\d+\[([\d,]+)\]\S* parameter", text)
    check(text, [rng.normal(size=tuple(map(int, s.split(",")))).astype(f"f{int(dtype[1:]) // 8}") for s in shapes])


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(4, 64, 40), (5, 1000, 130), (12, 257, 512), (24, 300, 96)])
def test_products_with_columns_of_few_rows_are_right(dtype, level, rows, depth, columns):
    for epilogue in (False, True):
        text = Product(dtype, "tn", rows, depth, columns, epilogue).module_text()
        with code_for(level):
            check(text.replace("HloModule product", f"HloModule product_{level.replace('-', '_')}"))
