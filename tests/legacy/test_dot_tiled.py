"""Tiled products of the legacy stack: what is fetched ahead, and that the sums of a tile stay in registers."""

import re

import numpy as np
import pytest

from ...benchmarks.dot_shapes import Product
from ...codegen.optimize import assembly
from ...codegen.options import EmitOptions, EmittedModule, Target
from ...formats.text.parser import parse_module
from ...legacy import emit
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for

LINES = 9
"""The argument of a tile's function: how many cache lines of a row it fetches for writing."""


def emitted(product: Product, options: EmitOptions) -> EmittedModule:
    return emit(plan(parse_module(product.module_text())).kernels, options)


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
    module = emitted(Product(dtype, layout, size, size, size), EmitOptions(Target.level("x86-64-v4")))
    calls = [line.split(", ") for line in module.llvm_ir.splitlines() if 'call void @"legacy.tile' in line]
    text = "".join((module.llvm_ir, *module.helpers))
    fetched = re.search(r'call void @"llvm\.prefetch\.p0"\(ptr [^,]+, i32 0', text)
    assert (fetched is not None, any(call[LINES] != "i64 0" for call in calls)) == (reads, writes)


@pytest.mark.parametrize(("level", "reads"), [("x86-64-v3", False), ("x86-64-v4", True)])
def test_short_steps_fetch_nothing_of_the_left_operand(level, reads):
    """A step of a tile that is two vectors wide has no room for the instructions."""
    module = emitted(Product("f32", "nn", 512, 512, 512), EmitOptions(Target.level(level)))
    tiles = [text for text in module.helpers if "legacy.tile" in text]
    fetched = [re.search(r'call void @"llvm\.prefetch\.p0"\(ptr [^,]+, i32 0', text) is not None for text in tiles]
    assert len(tiles) == 2 and any(fetched) == reads


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_sums_stay_in_registers(dtype, level):
    """A loop that stores sums to the stack takes twice as long."""
    options = EmitOptions(Target.level(level))
    code = "".join(assembly(t, options) for t in emitted(Product(dtype, "nn", 1024, 1024, 1024), options).helpers)
    loops = [body for body in re.findall(r"\.LBB\w+:\n((?:\t(?!j|\.).*\n)+)\tj", code) if body.count("vfmadd") >= 8]
    assert loops
    assert not [line for body in loops for line in body.splitlines() if re.search(r"mm\d+, -?\d*\(%rsp\)", line)]


@pytest.mark.parametrize("layout", ["nn", "nt", "tn", "tt"])
@pytest.mark.parametrize("dtype", ["f32", "bf16"])
def test_large_products(dtype, layout):
    """Sizes that leave a rest of rows, of columns and of the depth, and whose operands are fetched ahead."""
    product = Product(dtype, layout, 263, 517, 330)
    generator = np.random.default_rng(0)
    shapes = [p.shape for p in parse_module(product.module_text()).entry.parameters]
    inputs = [generator.integers(-2, 3, s.dims).astype(s.dtype.numpy) for s in shapes]
    check(product.module_text(), inputs, ("evaluator", "legacy", "mlir"))


@pytest.mark.parametrize("dtype", ["f32", "bf16", "f64"])
def test_a_kernel_has_no_tile_of_its_own(dtype):
    """Its module is a few loops around calls; the functions called have the same text for other sizes."""
    options = EmitOptions(Target.level("x86-64-v4"))
    modules = [emitted(Product(dtype, "nn", size, size, size), options) for size in (512, 1024)]
    assert modules[0].helpers and set(modules[0].helpers) & set(modules[1].helpers)
    for module in modules:
        assert "fmul" not in module.llvm_ir and "x float>" not in module.llvm_ir
        assert "call void @llvm.prefetch" not in module.llvm_ir.replace('"', "")  # nor does it pack panels
        assert dtype not in ("f32", "f64") or not re.search(r"^ +store ", module.llvm_ir, re.MULTILINE)


RESULTS = {
    "columns between rows": ("f32[32,8,48]", "{0}", "f32[40,32]", "{1}", "f32[8,48,40]{1,2,0}"),
    "rows apart in the result": ("f32[6,40,32]", "{2}", "f32[32,24]", "{0}", "f32[6,40,24]{2,0,1}"),
    "rows apart, three of them": ("f32[3,5,12,32]", "{3}", "f32[24,32]", "{1}", "f32[3,5,12,24]{3,0,2,1}"),
    "complex numbers": ("c64[6,40,32]", "{2}", "c64[32,24]", "{0}", "c64[6,40,24]{2,0,1}"),
}
"""Operands and contracted dimensions, and a result in whose memory the left operand's free dimensions are not one."""


def apart(case: str) -> str:
    left, inner, right, summed, result = RESULTS[case]
    return f"""HloModule m, entry_computation_layout={{({left}, {right})->{result}}}
ENTRY e {{
  a = {left} parameter(0)
  b = {right} parameter(1)
  ROOT r = {result} dot(a, b), lhs_contracting_dims={inner}, rhs_contracting_dims={summed}
}}
"""


@pytest.mark.parametrize("case", RESULTS)
def test_free_dimensions_that_are_not_one_have_loops_around_tiles(case):
    module = parse_module(apart(case))
    helpers = emit(plan(module).kernels, EmitOptions(Target.level("x86-64-v3"))).helpers
    assert any("legacy.tile" in text for text in helpers)
    check(apart(case))


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["s32", "u32", "s64", "u64"])
def test_integers_wrap_in_tiles(dtype, level):
    """Sizes that leave remainders, a depth beyond the partial sums of floats, and an op on each finished tile."""
    kind = np.dtype(f"{'ui'[dtype[0] == 's']}{int(dtype[1:]) // 8}")
    generator, info = np.random.default_rng(0), np.iinfo(kind)
    for rows, depth, columns, contracted in (
        (63, 517, 45, "1,0"),
        (64, 2048, 8, "1,0"),
        (19, 700, 40, "0,1"),
        (40, 5001, 72, "1,0"),
    ):
        left, right = ((rows, depth), (depth, columns)) if contracted == "1,0" else ((depth, rows), (columns, depth))
        shapes = [f"{dtype}[{a},{b}]" for a, b in (left, right)]
        of = contracted.split(",")
        product = f"dot(p, q), lhs_contracting_dims={{{of[0]}}}, rhs_contracting_dims={{{of[1]}}}"
        result = f"{dtype}[{rows},{columns}]"
        for last in (f"ROOT r = {result} {product}", f"d = {result} {product}\n ROOT r = {result} xor(d, d2)"):
            extra = f"d2 = {result} parameter(2)\n " if "d2" in last else ""
            text = f"HloModule i_{level[-2:]}\nENTRY e {{ p = {shapes[0]} parameter(0)\n q = {shapes[1]} parameter(1)\n"
            dims = [left, right, (rows, columns)][: 3 if extra else 2]
            inputs = [generator.integers(info.min, info.max, d, kind, endpoint=True) for d in dims]
            with code_for(level):
                check(f"{text} {extra}{last} }}", inputs, ("evaluator", "legacy"))


def test_integers_of_few_columns_are_tiles():
    """As sums of columns on the stack, 64 × 2048 × 8 took five times as long as XLA's."""
    assert "legacy.tile.s32" in emitted(Product("s32", "nn", 64, 2048, 8), EmitOptions.host()).llvm_ir


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_narrow_columns_of_the_left_operand_are_converted_as_vectors(dtype):
    """Element by element, they took half of the time of an aᵀb whose depth is odd; XLA's was 1.5 times as fast."""
    options = EmitOptions(Target.level("x86-64-v3"))
    for layout, along in (("tn", "m"), ("nn", "k")):
        module = emitted(Product(dtype, layout, 128, 1001, 128), options)
        assert re.search(rf'@"legacy\.tile\.f32\.\w+\.\d+\.{along}\w*"', module.llvm_ir)
        assert (" x i16>, " in module.llvm_ir or " x half>, " in module.llvm_ir) == (layout == "tn")
    check(Product(dtype, "tn", 45, 67, 51).module_text())
