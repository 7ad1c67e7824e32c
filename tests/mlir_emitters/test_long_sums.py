"""Long sums on the MLIR stack: exact to a few roundings on every processor, in blocks that the stack itself emits."""

import re

import ml_dtypes
import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...codegen.options import LEVELS, EmitOptions, Target
from ...formats.program import Program
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ...migration.stacks import prepare
from ...mlir_emitters import emit
from ...mlir_emitters.reductions.long_sums import LANES, MINIMUM_BLOCK_ELEMENTS
from ...planning.planner import plan
from ..support.check import check

ADD = "add {{ a = {t}[] parameter(0) b = {t}[] parameter(1) ROOT c = {t}[] add(a, b) }}"


def sums(shape: str, result: str, dimensions: str, *lines: str, dtype: str = "f32") -> str:
    """A module that sums `v`, which the lines make of `x`, or x² without lines."""
    made = lines or (f"v = {dtype}[{shape}] multiply(x, x)",)
    body = [f"x = {dtype}[{shape}] parameter(0)", f"zero = {dtype}[] constant(0)", *made]
    body.append(f"ROOT r = {dtype}[{result}] reduce(v, zero), dimensions={{{dimensions}}}, to_apply=add")
    return "\n".join(["HloModule sums", ADD.format(t=dtype), "ENTRY main {", *("  " + line for line in body), "}"])


HOST = set(Target.of("host").features.split(","))
RUN = [level for level in LEVELS if set(Target.level(level).features.split(",")) <= HOST] or ["host"]
"""Levels of the x86-64 psABI whose code this machine runs; on another architecture, the machine itself."""


def on(level: str) -> EmitOptions:
    return EmitOptions(Target.of(level))


def run(text: str, inputs: list[np.ndarray], options: EmitOptions | None = None) -> np.ndarray:
    wanted = CompileOptions(options or EmitOptions.host(), cache=None)
    made = compile_module(parse_module(text), Flags.parse("mlir"), wanted)
    return np.asarray(made.execute(inputs)[0])


def error(text: str, options: EmitOptions, axes: tuple[int, ...]) -> float:
    """The largest relative error of sums of x², for x in [0, 1)."""
    shape = parse_module(text).entry.parameters[0].shape
    x = np.random.default_rng(7).random(shape.dims, np.float32).astype(shape.dtype.numpy)
    wanted = (x.astype(np.float64) ** 2).sum(axes)
    return float(np.abs(run(text, [x], options) / wanted - 1).max())


@pytest.mark.parametrize("level", RUN)
@pytest.mark.parametrize(
    ("shape", "result", "dimensions"),
    [
        ("1048576", "", "0"),
        ("1024,1024", "", "0,1"),
        ("4,262144", "4", "1"),
        ("262144,4", "4", "0"),
        ("2048,300", "300", "0"),
        ("700,16,90", "16", "0,2"),
        ("64,70,80,3", "3", "0,1,2"),
        ("1024,1000,1", "", "0,1,2"),
    ],
)
def test_long_sums_are_right_to_a_few_units(shape, result, dimensions, level):
    """2²⁰ squares in one chain of vectors are off by 7e-6, 2²⁴ by 1e-3."""
    axes = tuple(int(d) for d in dimensions.split(","))
    assert error(sums(shape, result, dimensions), on(level), axes) < 3e-7


@pytest.mark.parametrize("level", RUN)
@pytest.mark.parametrize("rows", [64, 128, 1024, 2048])
def test_columns_of_few_rows_are_as_exact_as_long_ones(rows, level):
    """So are the parts of a split sum added. Root mean squares: one chain of 16 additions 6.3e-8, rounding 2.5e-8."""
    x = np.random.default_rng(5).standard_normal((rows, 4000)).astype(np.float32)
    found = run(sums(f"{rows},4000", "4000", "0"), [x], on(level))
    wanted = (x.astype(np.float64) ** 2).sum(0)
    assert np.sqrt(np.mean((found / wanted - 1) ** 2)) < 5.3e-8


@pytest.mark.parametrize("level", LEVELS)
def test_partial_sums_do_not_depend_on_the_target(level):
    """Each element has its place among LANES partial sums, a block ends with a tree, and a total is in f64."""
    module = emit(plan(parse_module(sums("262144", "", "0"))).kernels, EmitOptions(Target.level(level)))
    text = "\n".join([module.llvm_ir, *module.helpers])
    assert f"alloca float, i64 {LANES}," in text
    assert "reassoc" not in text
    assert len(re.findall(r"load <16 x float>", text)) >= LANES // 16
    assert len(re.findall(r"fadd <16 x float>", text)) >= LANES // 16 - 1
    assert len(re.findall(r"shufflevector <8 x float>", text)) >= 2
    assert re.search(r"fadd(?: contract)? double", text)


def test_the_same_bits_on_every_processor():
    """Only sums: a product before a sum may be one operation on one processor and two on another."""
    text = sums("3,100000", "3", "1", "v = f32[3,100000] copy(x)")
    x = np.random.default_rng(1).random((3, 100_000), np.float32)
    results = [run(text, [x], on(level)) for level in RUN]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


@pytest.mark.parametrize(
    "length",
    [MINIMUM_BLOCK_ELEMENTS - 1, MINIMUM_BLOCK_ELEMENTS, MINIMUM_BLOCK_ELEMENTS + 65, 1 << 14, (1 << 14) + 321, 40_000],
)
def test_every_element_counts_once(length):
    """Ones, in rows around the sizes of turns and blocks."""
    text = sums(f"2,{length}", "2", "1", f"v = f32[2,{length}] copy(x)")
    x = np.ones((2, length), np.float32)
    x[:, -1], x[1, 0] = 3, 5
    np.testing.assert_array_equal(run(text, [x]), [length + 2, length + 6])


@pytest.mark.parametrize(
    ("rows", "columns"), [(127, 3), (128, 40), (129, 520), (255, 1), (1025, 3), (1291, 9), (5003, 5)]
)
def test_every_row_counts_once(rows, columns):
    text = sums(f"{rows},{columns}", f"{columns}", "0", f"v = f32[{rows},{columns}] copy(x)")
    x = np.random.default_rng(0).integers(-8, 9, (rows, columns)).astype(np.float32)
    np.testing.assert_array_equal(run(text, [x]), x.sum(0))


@pytest.mark.parametrize("dtype", ["f64", "c64", "c128", "bf16", "f16"])
@pytest.mark.parametrize(
    ("shape", "result", "dimensions"), [("5,1500", "5", "1"), ("600,10", "10", "0"), ("18,7,30", "7", "0,2")]
)
def test_sums_of_every_type(dtype, shape, result, dimensions):
    check(sums(shape, result, dimensions, dtype=dtype), stacks=("evaluator", "mlir"))


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_zeros_keep_their_sign(sign):
    """Partial sums and totals begin at −0, the sum at its initial value."""
    text = sums("40000", "", "0", "v = f32[40000] copy(x)").replace("constant(0)", "constant(-0)")
    result = run(text, [np.full(40_000, sign * 0.0, np.float32)])
    assert np.signbit(result) == (sign < 0)


def test_a_strict_sum_is_one_chain():
    """Reordering is not allowed there."""
    text = sums("40000", "", "0", "v = f32[40000] copy(x)")
    x = np.random.default_rng(3).random(40_000, np.float32)
    wanted = np.add.accumulate(x, dtype=np.float32)[-1]
    assert run(text, [x], EmitOptions.host(strict=True)) == wanted


def test_a_sum_beside_a_maximum():
    """One walk over each row for both: the sum is a chain in blocks, the maximum is carried through them."""
    text = """HloModule both
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] maximum(a, b) }
ENTRY main {
  x = f32[3,20000] parameter(0)
  zero = f32[] constant(0)
  least = f32[] constant(-inf)
  s = f32[3] reduce(x, zero), dimensions={1}, to_apply=add
  m = f32[3] reduce(x, least), dimensions={1}, to_apply=max
  ROOT r = f32[3] add(s, m)
}"""
    x = np.random.default_rng(5).integers(-50, 50, (3, 20_000)).astype(np.float32)
    np.testing.assert_array_equal(run(text, [x]), x.sum(1) + x.max(1))


def test_values_kept_between_walks_are_those_of_their_place():
    """A softmax of rows that are no multiple of a turn: exponentials are stored as they are added."""
    check(
        """HloModule softmax
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
ENTRY main {
  x = f32[3,1111] parameter(0)
  zero = f32[] constant(0)
  e = f32[3,1111] exponential(x)
  s = f32[3] reduce(e, zero), dimensions={1}, to_apply=add
  b = f32[3,1111] broadcast(s), dimensions={0}
  ROOT r = f32[3,1111] divide(e, b)
}""",
        stacks=("evaluator", "mlir"),
    )


@pytest.mark.parametrize(
    ("left", "right", "result", "numbers"),
    [
        ("200000", "200000", "", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        (
            "3,200000",
            "3,200000",
            "3",
            "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        ),
        ("200000,3", "200000,2", "3,2", "lhs_contracting_dims={0}, rhs_contracting_dims={0}"),
        ("300,2,700", "300,700", "2", "lhs_contracting_dims={0,2}, rhs_contracting_dims={0,1}"),
    ],
)
@pytest.mark.parametrize("dtype", ["f32", "c64"])
def test_long_dots(left, right, result, numbers, dtype):
    text = (
        f"HloModule m\nENTRY main {{\n  a = {dtype}[{left}] parameter(0)\n  b = {dtype}[{right}] parameter(1)\n"
        f"  ROOT d = {dtype}[{result}] dot(a, b), {numbers}\n}}"
    )
    generator = np.random.default_rng(2)
    a, b = (generator.random([int(n) for n in dims.split(",")], np.float32) for dims in (left, right))
    lists = dict(re.findall(r"(\w+)=\{([\d,]*)\}", numbers))
    batch = len(lists.get("lhs_batch_dims", ""))
    names = iter("opqr")
    letters = ["z" * batch + "kl"[: a.ndim - batch] for _ in range(2)]
    if not batch:
        contracting = [[int(d) for d in lists[f"{side}_contracting_dims"].split(",")] for side in ("lhs", "rhs")]
        letters = [
            "".join("kl"[dims.index(d)] if d in dims else next(names) for d in range(x.ndim))
            for x, dims in zip((a, b), contracting, strict=True)
        ]
    free = "".join(c for word in letters for c in word if c not in "kl")
    out = "z" if batch else free
    wanted = np.einsum(f"{letters[0]},{letters[1]}->{out}", a.astype(np.float64), b.astype(np.float64))
    inputs = [a, b] if dtype == "f32" else [a.astype(np.complex64), (1j * b).astype(np.complex64)]
    found = run(text, inputs)
    found = found if dtype == "f32" else found.imag
    assert np.abs(found / wanted - 1).max() < 4e-7


def test_long_columns_of_complex_products():
    text = """HloModule m
ENTRY main {
  a = c64[2,50001] parameter(0)
  b = c64[50001,9] parameter(1)
  ROOT d = c64[2,9] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
    generator = np.random.default_rng(2)
    a, b = (generator.random(s) + 1j * generator.random(s) for s in ((2, 50_001), (50_001, 9)))
    a, b = a.astype(np.complex64), b.astype(np.complex64)
    wanted = a.astype(np.complex128) @ b
    assert (np.abs(run(text, [a, b]) - wanted) / np.abs(wanted)).max() < 4e-7


CONVOLUTIONS = {
    "a long window": ("1,1,4008", "1,1,4001", "1,1,8", "size=4001", "bf0_oi0->bf0"),
    "many features": ("1,4,4,701", "3,3,701,5", "1,2,2,5", "size=3x3", "b01f_01io->b01f"),
    "a border": ("1,6,6,100", "3,3,100,9", "1,6,6,9", "size=3x3 pad=1_1x1_1", "b01f_01io->b01f"),
    "dilated": ("1,9,9,50", "3,3,50,9", "1,7,7,9", "size=3x3 pad=1_1x1_1 rhs_dilate=2x2", "b01f_01io->b01f"),
    "holes": ("1,5,5,60", "3,3,60,9", "1,9,9,9", "size=3x3 pad=1_1x1_1 lhs_dilate=2x2", "b01f_01io->b01f"),
    "a window of one": ("1,3,3,1025", "1,1,1025,9", "1,3,3,9", "size=1x1", "b01f_01io->b01f"),
}


@pytest.mark.parametrize(("name", "dtype"), [*((name, "f32") for name in CONVOLUTIONS), ("a border", "c64")])
def test_long_convolutions(name, dtype):
    """Small integers, of which every sum is exact: each product counts once in chains, totals and borders."""
    left, right, result, window, labels = CONVOLUTIONS[name]
    text = (
        f"HloModule m\nENTRY main {{\n  a = {dtype}[{left}] parameter(0)\n  b = {dtype}[{right}] parameter(1)\n"
        f"  ROOT d = {dtype}[{result}] convolution(a, b), window={{{window}}}, dim_labels={labels}\n}}"
    )
    generator = np.random.default_rng(2)
    inputs = [
        generator.integers(-3, 4, [int(n) for n in dims.split(",")]).astype({"f32": "f4", "c64": "c8"}[dtype])
        for dims in (left, right)
    ]
    check(text, inputs, stacks=("evaluator", "mlir"), rtol=0.0)


def test_a_long_convolution_is_right_to_a_few_units():
    text = """HloModule m
ENTRY main {
  a = f32[1,1,40007] parameter(0)
  b = f32[1,1,40000] parameter(1)
  ROOT d = f32[1,1,8] convolution(a, b), window={size=40000}, dim_labels=bf0_oi0->bf0
}"""
    generator = np.random.default_rng(2)
    a, b = (generator.random(n, np.float32) for n in (40_007, 40_000))
    wanted = np.correlate(a.astype(np.float64), b.astype(np.float64))
    assert np.abs(run(text, [a.reshape(1, 1, -1), b.reshape(1, 1, -1)]).ravel() / wanted - 1).max() < 4e-7


@pytest.mark.parametrize(("shape", "dimensions"), [("64,16", "0"), ("16,64", "1"), ("16,33", "1")])
def test_sums_of_more_than_32_narrow_floats_are_rounded_once(shape, dimensions):
    """Rounded at each step, 64 f16 are off by five units."""
    text = sums(shape, "16", dimensions, f"v = f16[{shape}] copy(x)", dtype="f16")
    x = np.random.default_rng(4).random([int(n) for n in shape.split(",")], np.float32).astype(np.float16)
    exact = x.astype(np.float64).sum(int(dimensions))
    assert np.max(np.abs(run(text, [x]) / exact - 1)) <= 2**-11 + 1e-6


def test_a_long_window_of_one_feature():
    """Chains of 256 products are off by 4e-7."""
    text = """HloModule window
ENTRY main {
  x = f32[16,1,519] parameter(0)
  w = f32[1,1,512] parameter(1)
  ROOT r = f32[16,1,8] convolution(x, w), window={size=512}, dim_labels=bf0_oi0->bf0
}"""
    generator = np.random.default_rng(6)
    x, w = generator.random((16, 1, 519), np.float32), generator.random((1, 1, 512), np.float32)
    exact = np.stack([np.correlate(row.astype(np.float64), w[0, 0].astype(np.float64)) for row in x[:, 0]])
    assert np.max(np.abs(run(text, [x, w])[:, 0] / exact - 1)) <= 3e-7


@pytest.mark.parametrize("count, total", [(32, 8), (33, 32), (54, 56)])
@pytest.mark.parametrize("stack", ["evaluator", "legacy", "mlir"])
def test_a_sum_of_more_than_32_narrow_floats_is_rounded_once(stack, count, total):
    """Rounded at each step, 8 and 1 are 8 in f8e5m2."""
    text = NARROW_SUM.format(n=count)
    ones = [np.ones(count).astype(ml_dtypes.float8_e5m2)]
    (result,) = prepare(stack, Program("narrow", text, parse_module(text))).run(ones)
    assert float(result) == total


NARROW_SUM = """HloModule m
add {{ a = f8e5m2[] parameter(0)
  b = f8e5m2[] parameter(1)
  ROOT r = f8e5m2[] add(a, b) }}
ENTRY e {{ x = f8e5m2[{n}] parameter(0)
  z = f8e5m2[] constant(0)
  ROOT r = f8e5m2[] reduce(x, z), dimensions={{0}}, to_apply=add }}
"""
