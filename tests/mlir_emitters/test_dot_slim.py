"""Products of a tall matrix and a few columns on the MLIR stack: dot products of vectors, several rows at once."""

import numpy as np
import pytest

from ...benchmarks.dot_shapes import Product
from ...codegen.options import EmitOptions, EmittedModule, Target
from ...formats.text.parser import parse_module
from ...mlir_emitters import emit
from ...planning.planner import plan
from ..support.check import check


def emitted(text: str, level: str = "x86-64-v4") -> EmittedModule:
    return emit(plan(parse_module(text)).kernels, EmitOptions(Target.level(level)))


@pytest.mark.parametrize(
    ("level", "product", "shape"),
    [
        ("x86-64-v4", Product("f32", "nn", 5000, 300, 3), "f32.f32.5x3x16"),
        ("x86-64-v3", Product("f32", "nn", 5000, 300, 3), "f32.f32.3x3x8"),
        ("x86-64-v4", Product("f32", "nn", 5000, 300, 1), "f32.f32.8x1x16"),
        ("x86-64-v4", Product("f32", "nt", 3, 300, 5000), "f32.f32.5x3x16"),
        ("x86-64-v4", Product("f64", "nt", 500, 300, 8), "f64.f64.2x8x8"),
        ("x86-64-v3", Product("bf16", "nn", 500, 300, 2), "bf16.f32.4x2x8"),
        ("x86-64-v4", Product("f32", "nn", 500, 24, 1), "f32.f32.8x1x8"),
        ("x86-64-v4", Product("f32", "nn", 500, 12, 1), "f32.f32.8x1x4"),
        ("x86-64-v4", Product("f64", "nn", 500, 6, 1), "f64.f64.8x1x2"),
        ("x86-64-v3", Product("bf16", "nn", 500, 16, 1), "bf16.f32.7x1x4"),
    ],
)
def test_rows_are_multiplied_with_all_columns(level, product, shape):
    """The tile of large products takes 1.65 of XLA's time for 5000×300×3, three lanes of its vectors."""
    assert f"mlir.slim.{shape}" in emitted(product.module_text(), level).llvm_ir


@pytest.mark.parametrize(
    "product",
    [
        Product("f32", "nn", 5000, 300, 9),
        Product("f32", "nn", 5000, 32, 3),  # two vectors: the sum over their lanes would take longer
        Product("f32", "nn", 500, 11, 1),
        Product("f32", "nn", 15, 300, 3),
        Product("f32", "tn", 500, 300, 3),  # rows that are apart
        Product("s8", "nn", 500, 300, 3),
    ],
)
def test_others_are_not(product):
    assert "mlir.slim" not in emitted(product.module_text()).llvm_ir


@pytest.mark.parametrize(("level", "found"), [("x86-64-v3", False), ("x86-64-v4", True)])
def test_eight_columns_are_a_vector_of_eight_lanes(level, found):
    """Of a tile that reads the rows where they lie. One that would copy them, as they are its B, takes longer."""
    assert ("mlir.slim" in emitted(Product("f32", "nn", 500, 300, 8).module_text(), level).llvm_ir) == found
    assert "mlir.slim" in emitted(Product("f32", "nt", 8, 300, 500).module_text(), level).llvm_ir


def test_rows_beyond_the_caches_are_fetched():
    """Into the second cache: of rows a page apart, the nearest one holds eight lines, those of the current rows."""
    for rows, depth, fetched in ((5000, 1024, True), (5000, 300, False), (1500, 1024, False)):
        module = emitted(Product("f32", "nn", rows, depth, 1).module_text(), "x86-64-v4")
        assert any("llvm.prefetch" in text for text in module.helpers) == fetched
        assert any("i32 0, i32 2, i32 1" in text for text in module.helpers) == fetched
        assert "mlir.slim.f32.f32.8x1x16" in module.llvm_ir


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize(
    ("layout", "rows", "depth", "columns"),
    [("nn", 99, 100, 2), ("nt", 18, 80, 7), ("nn", 23, 4099, 1), ("nt", 4, 1600, 21), ("nn", 34, 1003, 5)],
)
@pytest.mark.parametrize("epilogue", [False, True])
def test_all_stacks_agree(dtype, layout, rows, depth, columns, epilogue):
    """Remainders of rows and of vectors; several blocks of the depth, the last one shorter than a vector."""
    text = Product(dtype, layout, rows, depth, columns, epilogue).module_text()
    check(text, _inputs(text))


FORMS = {
    "batches": "a = f32[3,40,100] parameter(0)\n b = f32[3,100,2] parameter(1)\n"
    " ROOT d = f32[3,40,2] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
    "rhs_contracting_dims={1}",
    "two free dimensions": "a = f32[4,10,100] parameter(0)\n b = f32[100,3,2] parameter(1)\n"
    " d = f32[4,10,3,2] dot(a, b), lhs_contracting_dims={2}, rhs_contracting_dims={0}\n"
    " ROOT e = f32[4,10,3,2] exponential(d)",
    "a result by columns": "a = f32[40,100] parameter(0)\n b = f32[100,3] parameter(1)\n c = f32[40]{0} parameter(2)\n"
    " d = f32[40,3]{0,1} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
    " e = f32[40,3]{0,1} broadcast(c), dimensions={0}\n ROOT f = f32[40,3]{0,1} add(d, e)",
    "a vector": "a = f32[40,1500] parameter(0)\n b = f32[1500] parameter(1)\n"
    " ROOT d = f32[40] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
}


@pytest.mark.parametrize("form", FORMS)
def test_other_forms(form):
    text = f"HloModule product\nENTRY main {{\n {FORMS[form]}\n}}\n"
    assert "mlir.slim" in emitted(text).llvm_ir
    check(text, _inputs(text))


@pytest.mark.parametrize("depth", [100, 1503])
def test_infinities_stay_in_their_rows(depth):
    """Lanes that were counted before, or that no element fills, are zeros of both operands."""
    text = Product("f32", "nn", 37, depth, 3).module_text()
    a, b = _inputs(text)
    a[5, depth - 9], a[7, 3], a[9, depth - 1], b[depth - 2, 1] = np.inf, np.nan, -np.inf, np.inf
    check(text, [a, b])


def _inputs(text: str) -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    shapes = [p.shape for p in parse_module(text).entry.parameters]
    return [generator.standard_normal(s.dims).astype(s.dtype.numpy) for s in shapes]
