"""Products in tiles on the MLIR stack: every depth, dtype and layout; sums in blocks of the contracting dimension."""

import re

import ml_dtypes
import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...benchmarks.dot_shapes import Product
from ...codegen.optimize import assembly
from ...codegen.options import EmitOptions, EmittedModule, Target
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ...mlir_emitters import emit
from ...mlir_emitters.products.dot_registers import best_tile
from ...planning.planner import plan

DTYPES = ("bf16", "f16", "f32", "f64", "s8", "s4", "u8", "s16", "u16", "f8e5m2", "f8e4m3fn")


def emitted(text: str, target: Target | None = None) -> EmittedModule:
    options = EmitOptions(target) if target else EmitOptions.host()
    return emit(plan(parse_module(text)).kernels, options)


def llvm_ir(text: str, target: Target | None = None) -> str:
    """The texts of the kernels and of the tiles that they call."""
    module = emitted(text, target)
    return "\n".join((module.llvm_ir, *module.helpers))


def run(text: str, inputs: list[np.ndarray]) -> np.ndarray:
    (result,) = compile_module(parse_module(text), Flags.parse("mlir"), CompileOptions(cache=None)).execute(inputs)
    return np.asarray(result)


def small_integers(text: str, seed: int = 0) -> list[np.ndarray]:
    generator = np.random.default_rng(seed)
    shapes = [p.shape for p in parse_module(text).entry.parameters]
    return [generator.integers(-2, 3, s.dims).astype(s.dtype.numpy) for s in shapes]


def exact(product: Product, inputs: list[np.ndarray]) -> np.ndarray:
    """The result for small integers, of which the sums are exact in every dtype that they are made in."""
    a, b, *bias = (x.astype(np.int64) for x in inputs)
    total = (a.T if product.layout[0] == "t" else a) @ (b.T if product.layout[1] == "t" else b)
    dtype = inputs[0].dtype
    if dtype.kind in "iu" or dtype.name.startswith("int"):
        bits = ml_dtypes.iinfo(dtype).bits
        total = total + (bias[0] if bias else 0)
        wrapped = total % (1 << bits)
        return wrapped - (1 << bits) * (wrapped >= 1 << (bits - 1)) if dtype.name.startswith("int") else wrapped
    if dtype.name == "float8_e5m2" or dtype.name == "float8_e4m3fn":
        total = total.astype(np.float16)
    rounded = total.astype(dtype)
    return (rounded.astype(np.float64) + bias[0]).astype(dtype) if bias else rounded


@pytest.mark.parametrize(("level", "epilogue"), [("x86-64-v2", True), ("x86-64-v3", False), ("x86-64-v4", True)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_deep_products_are_tiled(dtype, epilogue, level):
    """Values that are vectors of the target's width, or several, are multiplied and added, whatever the depth."""
    target = Target.level(level)
    bits = target.vector_bits // (64 if dtype == "f64" else 32)
    text = llvm_ir(Product(dtype, "nn", 8, 4096, 64, epilogue).module_text(), target)
    kind = "i32" if dtype in ("s8", "s4", "u8") else "double" if dtype == "f64" else "float"
    widths = re.findall(rf"(?:fmul|mul|@llvm\.fma\.\w+\(|@llvm\.x86\.\S*pmadd\S*\().*<(\d+) x (?:{kind}|i16)>", text)
    assert any(int(width) % bits == 0 for width in widths)


@pytest.mark.parametrize(
    ("dtype", "layout", "rows", "depth", "columns"),
    [
        ("bf16", "nn", 1, 520, 35),
        ("f32", "nn", 40, 1030, 130),
        ("f64", "nt", 30, 515, 70),
        ("f32", "nt", 5, 255, 16),
        ("s8", "tn", 33, 700, 70),
        ("f8e5m2", "tt", 20, 513, 1),
        ("f8e4m3fn", "nn", 3, 520, 20),
        ("s4", "nt", 9, 530, 16),
        ("f16", "tn", 2, 600, 32),
        ("u8", "tt", 2, 520, 64),
        ("f64", "nn", 9, 514, 9),
        ("bf16", "nt", 2, 300, 9),
    ],
)
def test_depths_on_both_sides_of_a_block(dtype, layout, rows, depth, columns):
    """One row, few rows and several tiles of them; vectors of columns and a rest; one block, two, and more."""
    product = Product(dtype, layout, rows, depth, columns, epilogue=rows % 2 == 0)
    inputs = small_integers(product.module_text())
    np.testing.assert_array_equal(
        run(product.module_text(), inputs).astype(np.float64), exact(product, inputs).astype(np.float64)
    )


@pytest.mark.parametrize(("level", "depth"), [("x86-64-v4", 512), ("x86-64-v3", 256)])
def test_how_deep_blocks_are(level, depth):
    """With large second caches totals are read and written half as often: 2% of the time."""
    text = emitted(Product("f32", "nn", 256, 1024, 256).module_text(), Target.level(level)).llvm_ir
    packs = re.findall(r'call void @"?mlir\.pack[^(]*"?\((.*)\)', text)
    assert len(packs) == 1 and f"i64 {depth}," in packs[0]


def test_bands_of_rows():
    """More rows than have totals on the stack, and more blocks than are added up in f32."""
    product = Product("bf16", "nn", 301, 4500, 17, epilogue=True)
    inputs = small_integers(product.module_text())
    np.testing.assert_array_equal(
        run(product.module_text(), inputs).astype(np.float64), exact(product, inputs).astype(np.float64)
    )


@pytest.mark.parametrize("epilogue", [False, True])
def test_long_products_are_right_to_a_few_units(epilogue):
    """8 × 10⁶ × 8 in one chain of additions is off by 2e-4."""
    product = Product("f32", "nn", 8, 500_000, 8, epilogue)
    shapes = [p.shape.dims for p in parse_module(product.module_text()).entry.parameters]
    generator = np.random.default_rng(0)
    a, b, *bias = (generator.random(dims, np.float32) for dims in shapes)
    wanted = a.astype(np.float64) @ b + (bias[0] if bias else 0)
    error = np.abs(run(product.module_text(), [a, b, *bias]) / wanted - 1).max()
    assert error < 2e-7


@pytest.mark.parametrize(("rows", "columns", "layout"), [(1, 64, "nt"), (64, 1, "nn"), (64, 1, "nt"), (2, 64, "nn")])
def test_a_matrix_that_is_used_once_is_read_where_it_lies(rows, columns, layout):
    """A transposed copy of the matrix, for one use of each element, takes twenty times as long."""
    text = llvm_ir(Product("bf16", layout, rows, 512, columns).module_text())
    copies = [int(n) for n in re.findall(r"alloca float, i64 (\d+)", text)]
    assert all(n < 512 * 8 for n in copies)


@pytest.mark.parametrize(
    ("dtype", "layout", "size", "reads", "writes"),
    [
        ("f32", "nn", 64, False, False),
        ("f32", "nn", 512, True, True),
        ("f32", "tt", 512, True, True),  # A is read across its rows, and B along its columns
        ("bf16", "nn", 512, True, False),  # sums are wider than the result
    ],
)
def test_what_is_fetched_ahead(dtype, layout, size, reads, writes):
    module = emitted(Product(dtype, layout, size, size, size).module_text(), Target.level("x86-64-v4"))
    calls = [re.findall(r"i64 (%?\w+)", line) for line in module.llvm_ir.splitlines() if "call void @mlir.tile" in line]
    text = "\n".join((module.llvm_ir, *module.helpers))
    fetched = re.search(r"call void @llvm\.prefetch\.p0\(ptr [^,]+, i32 0", text)
    assert (fetched is not None, any(call[-1] != "0" for call in calls)) == (reads, writes)


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "c64", "c128"])
def test_sums_stay_in_registers(dtype, level):
    """A loop that stores sums to the stack takes twice as long."""
    target = Target.level(level)
    helpers = emitted(Product(dtype, "nn", 1024, 1024, 1024).module_text(), target).helpers
    code = "".join(assembly(text, EmitOptions(target)) for text in helpers)
    loops = [body for body in re.findall(r"\.LBB\w+:\n((?:\t(?!j|\.).*\n)+)\tj", code) if body.count("vfmadd") >= 8]
    assert loops
    assert not [line for body in loops for line in body.splitlines() if re.search(r"mm\d+, -?\d*\(%rsp\)", line)]


@pytest.mark.parametrize(
    ("dtype", "layout"), [("f32", "nn"), ("f32", "nt"), ("f32", "tn"), ("f16", "nn"), ("f16", "tn"), ("bf16", "tt")]
)
def test_large_products(dtype, layout):
    """Sizes that leave a rest of rows, of columns and of the depth, and whose operands are fetched ahead."""
    product = Product(dtype, layout, 263, 517, 330)
    inputs = small_integers(product.module_text())
    np.testing.assert_array_equal(
        run(product.module_text(), inputs).astype(np.float64), exact(product, inputs).astype(np.float64)
    )


def test_tiles_of_narrow_floats_leave_registers_for_their_constants():
    """With sums in all registers, LLVM kept six of them on the stack: a product of f8 took half as long again."""
    assert best_tile(32) == (6, 4) and best_tile(32, narrow=True) == (4, 4)
    assert best_tile(16, narrow=True) == best_tile(16)


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64", "s8"])
def test_a_kernel_has_no_tile_of_its_own(dtype):
    """Its module is a few loops around calls; the functions called have the same text for other sizes."""
    modules = [emitted(Product(dtype, "nn", size, size, size).module_text()) for size in (512, 1024)]
    assert modules[0].helpers and set(modules[0].helpers) & set(modules[1].helpers)
    for module in modules:
        vectors = [line for line in module.llvm_ir.splitlines() if re.search(r"<\d+ x ", line)]
        assert not [line for line in vectors if dtype != "s8" or "mul" in line]  # s8: what sums begin with
        prefetches = module.llvm_ir.replace('"', "").count("call void @llvm.prefetch")
        assert prefetches == 0  # nor does it pack panels
        assert dtype not in ("f32", "f64") or not re.search(r"^ +store ", module.llvm_ir, re.MULTILINE)


def test_words_of_bytes_are_copied_as_vectors():
    """Word by word, the copy of four rows took half as long as their products."""
    target = Target("x86_64-unknown-linux-gnu", "znver4", Target.level("x86-64-v4").features + ",+avx512vnni", 512)
    code = assembly(emitted(Product("s8", "nn", 512, 512, 512).module_text(), target).llvm_ir, EmitOptions(target))
    assert re.search(r"vpxor[dq]\t.*%zmm", code) and not re.search(r"xorl\t%e(?!(\w+), %e\1\b)", code)


@pytest.mark.parametrize(("dtype", "columns"), [("f32", 16), ("f64", 8), ("bf16", 16)])
def test_rows_are_packed_as_vectors(dtype, columns):
    """One by one, for lack of a proof that panel and source do not overlap, twelve rows took twice as long."""
    target = Target.level("x86-64-v3")
    module = emitted(Product(dtype, "nn", 512, 512, columns).module_text(), target)
    (pack,) = [text for text in module.helpers if "define void @mlir.pack" in text.replace('"', "")]
    code = assembly(pack, EmitOptions(target))
    assert "ymm" in code
    assert not re.search(r"vmovs[sd]|movzwl", code)


def test_factors_of_bf16_are_broadcast_from_memory():
    """Where factors pass from memory through two registers to a vector, a product takes 1.4 times as long."""
    target = Target.level("x86-64-v3")
    helpers = emitted(Product("bf16", "nn", 512, 512, 512).module_text(), target).helpers
    code = "".join(assembly(text, EmitOptions(target)) for text in helpers)
    loops = [body for body in re.findall(r"\.LBB\w+:\n((?:\t(?!j|\.).*\n)+)\tj", code) if body.count("vfmadd") >= 8]
    assert loops
    for body in loops:
        assert re.search(r"vpbroadcastd\t\(", body)
        assert not re.search(r"vmovd|movzwl|%rsp", body)


@pytest.mark.parametrize(("rows", "depth", "columns"), [(7, 512, 24), (12, 514, 40), (33, 517, 19), (2, 64, 32)])
def test_pairs_of_bf16(rows, depth, columns):
    """Even and odd depths, remainders of rows and of columns: special values stay with their own products."""
    product = Product("bf16", "nn", rows, depth, columns)
    inputs = small_integers(product.module_text())
    inputs[0][rows - 1, depth - 1] = np.inf
    inputs[0][0, 1] = np.nan
    inputs[1][...] = np.where(inputs[1] == 0, 1, inputs[1])
    with np.errstate(all="ignore"):
        wanted = inputs[0].astype(np.float64) @ inputs[1].astype(np.float64)
    found = run(product.module_text(), inputs)
    np.testing.assert_array_equal(found.astype(np.float64), wanted.astype(found.dtype).astype(np.float64))


def test_one_row_reads_few_rows_of_a_wide_matrix_at_a_time():
    """With four lines of each of many pages at a time, and sums in f64, one row took twice as long."""
    target = Target.level("x86-64-v3")
    module = emitted(Product("f32", "nn", 1, 768, 3072).module_text(), target)
    assert "double" not in "".join(module.helpers)
    (call,) = [line for line in module.llvm_ir.splitlines() if "call void @mlir.tile" in line.replace('"', "")]
    assert "i64 8," in call


@pytest.mark.parametrize(("size", "depth", "fetched"), [(512, 64, False), (1536, 16, True)])
def test_one_row_fetches_what_is_far(size, depth, fetched):
    """What the caches hold is read without: a fetch takes the place of a load."""
    module = emitted(Product("f32", "nn", 1, size, size).module_text(), Target.level("x86-64-v4"))
    calls = [line for line in module.llvm_ir.splitlines() if "call void @mlir.tile" in line.replace('"', "")]
    assert len(calls) == 1 and f"i64 {depth}," in calls[0]
    assert any("i32 0, i32 2" in text for text in module.helpers) == fetched


@pytest.mark.parametrize(("level", "lanes"), [("x86-64-v3", 8), ("x86-64-v4", 16)])
@pytest.mark.parametrize("columns", [136, 333])
def test_one_row_with_an_epilogue_streams_too(columns, level, lanes):
    """Totals of all columns are on the stack: panel by panel, each row of the matrix is read from as many pages."""
    product = Product("bf16", "nn", 1, 773, columns, True)
    module = emitted(product.module_text(), Target.level(level))
    totals = [int(n) for n in re.findall(r"alloca float, i64 (\d+)", module.llvm_ir)]
    assert -(-columns // lanes) * lanes in totals
    inputs = small_integers(product.module_text())
    np.testing.assert_array_equal(
        run(product.module_text(), inputs).astype(np.float64), exact(product, inputs).astype(np.float64)
    )


@pytest.mark.parametrize(("operand", "result"), [("s16", "s16"), ("u16", "u16"), ("s8", "s16"), ("u8", "u16")])
def test_sums_that_wrap_at_sixteen_bits_are_as_short(operand, result):
    """In lanes of 32 bits, a small product took 2.2 times as long as on legacy."""
    text = f"""HloModule m
ENTRY e {{
  p = {operand}[55,37] parameter(0)
  q = {operand}[37,200] parameter(1)
  ROOT r = {result}[55,200] dot(p, q), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
}}"""
    level = Target.level("x86-64-v4")
    assert re.search(r"mul <32 x i16>", llvm_ir(text, level))
    generator = np.random.default_rng(5)
    limits = ml_dtypes.iinfo({"s": "int", "u": "uint"}[operand[0]] + operand[1:])
    inputs = [generator.integers(limits.min, limits.max + 1, d).astype(limits.dtype) for d in ((55, 37), (37, 200))]
    found = run(text, inputs)
    expected = inputs[0].astype(np.int64) @ inputs[1].astype(np.int64)
    np.testing.assert_array_equal(found, expected.astype(found.dtype))
