"""Products with few rows on the legacy stack: each element of B is used in one or two tiles, and is read in place."""

import pytest

from ...benchmarks.dot_shapes import Product
from ...codegen.options import EmitOptions, EmittedModule, Target
from ...formats.text.parser import parse_module
from ...legacy import emit
from ...planning.planner import plan


def emitted(product: Product, level: str) -> EmittedModule:
    return emit(plan(parse_module(product.module_text())).kernels, EmitOptions(Target.level(level)))


@pytest.mark.parametrize(
    ("level", "rows", "columns", "copied"),
    [
        ("x86-64-v4", 12, 512, False),
        ("x86-64-v4", 16, 512, False),
        ("x86-64-v4", 32, 512, False),
        ("x86-64-v4", 33, 512, True),
        ("x86-64-v4", 16, 4096, True),  # lines of rows that are pages apart, beyond the caches
        ("x86-64-v3", 14, 512, False),
        ("x86-64-v3", 8, 1024, False),
        ("x86-64-v3", 8, 2048, True),
    ],
)
def test_few_rows_need_no_copy(level, rows, columns, copied):
    """The copy of a matrix that 16 rows are multiplied by takes a quarter of the time."""
    module = emitted(Product("f32", "nn", rows, 1040, columns), level)
    assert ("legacy.pack" in module.llvm_ir) == copied


def test_rows_that_share_lines_of_the_cache_are_copied():
    """16 rows that are a page apart take twice the time: the first cache has eight lines at such distances."""
    for depth, copied in ((1024, True), (1000, False)):
        module = emitted(Product("f32", "nn", 16, depth, 64), "x86-64-v4")
        assert (f"[{16 * (depth + 16)} x float]" in module.llvm_ir) == copied


def test_eight_columns_are_a_short_vector():
    module = emitted(Product("f32", "nn", 8, 512, 8), "x86-64-v4")
    assert "legacy.tile.f32.8x1x8." in module.llvm_ir
