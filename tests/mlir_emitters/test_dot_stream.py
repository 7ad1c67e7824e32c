"""A row times a matrix that comes from the memory, on the MLIR stack: some rows of it at a time, page by page."""

import numpy as np
import pytest

from ...benchmarks.dot_shapes import Product
from ...codegen.options import EmitOptions, EmittedModule, Target
from ...formats.text.parser import parse_module
from ...mlir_emitters import emit
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for

PAGES = "mlir.stream."


def emitted(product: Product, level: str = "x86-64-v3") -> EmittedModule:
    return emit(plan(parse_module(product.module_text())).kernels, EmitOptions(Target.level(level)))


@pytest.mark.parametrize(
    ("product", "found"),
    [
        (Product("f32", "nn", 1, 4096, 4096), True),
        (Product("f32", "nn", 1, 4096, 700), False),  # in the third cache
        (Product("f32", "nn", 2, 4096, 4096), False),
        (Product("f32", "nt", 1, 4096, 4096), False),  # its columns lie along memory
    ],
)
def test_rows_are_read_along_a_page(product, found):
    """Tiles of 64 columns read 256 bytes of each row: 1.33 of XLA's time."""
    assert (PAGES in emitted(product).llvm_ir) is found


def test_the_next_rows_are_fetched_into_the_second_cache():
    """The nearest one has eight places for lines that are pages apart, which the current rows have."""
    (text,) = (text for text in emitted(Product("f32", "nn", 1, 4096, 4096)).helpers if PAGES in text)
    fetches = [line for line in text.splitlines() if "call void @llvm.prefetch" in line]
    assert len(fetches) == 8 and all("i32 0, i32 2, i32 1" in line for line in fetches)


def test_as_many_rows_are_added_up_with_many_registers():
    """Further rows are further chains of pages, of which processors follow some ten; sums have the same bits."""
    for level in ("x86-64-v3", "x86-64-v4"):
        code = emitted(Product("f32", "nn", 1, 4099, 4096), level).llvm_ir
        assert (
            f"{PAGES}f32.f32.f32.8x" in code
            and f"{PAGES}f32.f32.f32.3x" in code
            and f"{PAGES}f32.f32.f32.16x" not in code
        )


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
@pytest.mark.parametrize(
    ("depth", "columns", "epilogue"), [(1030, 6200, False), (1547, 4099, True), (17, 400_003, False)]
)
def test_all_stacks_agree(level, dtype, depth, columns, epilogue):
    """Remainders of rows and of vectors; the last page is shorter; totals on the stack."""
    product = Product(dtype, "nn", 1, depth, columns, epilogue)
    generator = np.random.default_rng(0)
    text = product.module_text().replace("HloModule ", f"HloModule {level.replace('-', '_')}_", 1)
    shapes = [p.shape for p in parse_module(text).entry.parameters]
    with code_for(level):
        check(text, [generator.standard_normal(s.dims).astype(s.dtype.numpy) for s in shapes])
