"""Products of complex numbers on tiles of real ones."""

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

STACKS = ("evaluator", "legacy", "mlir")
LEVELS = ["x86-64-v3", "x86-64-v4"]


def emitted(text: str, **options) -> EmittedModule:
    target = Target.level(options.pop("level", "x86-64-v3"))
    return emit(plan(parse_module(text)).kernels, EmitOptions(target, **options))


def checked(text: str, small: bool = True) -> None:
    """With small integers, whose sums are exact in any order, unless they may be anything."""
    generator = np.random.default_rng(0)

    def drawn(shape):
        parts = generator.integers(-3, 4, (2, *shape.dims)) if small else generator.normal(size=(2, *shape.dims))
        return (parts[0] + 1j * parts[1]).astype(shape.dtype.numpy)

    check(text, [drawn(p.shape) for p in parse_module(text).entry.parameters], STACKS)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
def test_products_are_tiles_of_their_parts(layout, level):
    module = emitted(Product("c64", layout, 64, 64, 64).module_text(), level=level)
    names = [text for text in module.helpers if '@"legacy.tile.f32' in text or '@"legacy.pack.c64.f32' in text]
    assert len(names) >= 2 and "fmul" not in module.llvm_ir


def test_strict_sums_are_not():
    """Their order is by complex products."""
    assert not emitted(Product("c64", "nn", 64, 64, 64).module_text(), strict=True).helpers


@pytest.mark.parametrize("epilogue", [False, True])
@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_layouts(dtype, layout, epilogue):
    """Sizes that leave a rest of rows, columns and the depth."""
    checked(Product(dtype, layout, 45, 67, 51, epilogue).module_text())


@pytest.mark.parametrize(("rows", "depth", "columns"), [(4, 2, 300), (257, 1031, 9), (33, 5000, 40), (70, 2, 3)])
def test_sizes(rows, depth, columns):
    """Few and many blocks of the depth, and more products than one chain adds up."""
    checked(Product("c64", "nn", rows, depth, columns).module_text())
    checked(Product("c64", "tn", rows, depth, columns, True).module_text(), small=False)


@pytest.mark.parametrize("dtype", ["c64", "c128"])
@pytest.mark.parametrize("level", LEVELS)
def test_a_block_of_the_depth_has_whole_elements(level, dtype):
    """A panel of three vectors would have an odd number of rows, of which the last one was never written."""
    with code_for(level):
        text = Product(dtype, "nn", 7, 513, 24 if dtype == "c64" else 12).module_text()
        checked(text.replace("HloModule product", f"HloModule product_{level.replace('-', '_')}"))


def test_batches_and_infinities():
    text = """HloModule m
ENTRY e {
  a = c64[3,20,24] parameter(0)
  b = c64[3,24,20] parameter(1)
  ROOT r = c64[3,20,20] dot(a, b), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, \
rhs_contracting_dims={1}
}
"""
    checked(text)
    check(text, None, STACKS)


@pytest.mark.parametrize("level", LEVELS)
def test_columns_of_the_left_operand_are_converted_as_vectors(level):
    """Its rows, one by one, took twice as long as the tiles that read them (gradients of a layer's weights)."""
    module = emitted(Product("c64", "tn", 784, 256, 10).module_text(), level=level)
    assert re.search(r"legacy\.tile\.f32\.\w+\.\d+\.m", module.llvm_ir)
    assert "shufflevector" in module.llvm_ir


COLUMNS = """HloModule m
ENTRY e {{ a = {t}[{k},{n}] parameter(0)
  b = {t}[{k},{n}] parameter(1)
  ROOT r = {t}[{n}] dot(a, b), lhs_batch_dims={{1}}, rhs_batch_dims={{1}}, lhs_contracting_dims={{0}}, \
rhs_contracting_dims={{0}} }}
"""


@pytest.mark.parametrize("dtype", ["c64", "c128"])
def test_columns_times_columns_are_read_along_memory(dtype):
    """One sum after the other read a line for each of its elements, 3 times XLA's time."""
    texts = [emitted(COLUMNS.format(t=dtype, k=64, n=n)).llvm_ir for n in (1000, 7)]
    most = [max(map(int, re.findall(r"alloca \[(\d+) x", text))) for text in texts]
    assert most[0] >= 512 > most[1]  # the sums of a block of columns
    for k, n in ((64, 1000), (3, 9), (70, 8), (200, 300)):
        checked(COLUMNS.format(t=dtype, k=k, n=n))
    check(COLUMNS.format(t=dtype, k=5, n=20), None, STACKS)
