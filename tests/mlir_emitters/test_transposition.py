"""Pure transposes in blocks through vector registers, of every width of vectors and elements."""

import re
from dataclasses import replace

import pytest

from ...codegen.optimize import assembly
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...passes.pipeline import optimize
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for

WIDTHS = {"x86-64-v2": 128, "x86-64-v3": 256, "x86-64-v4": 512}
TYPES = {"f32": 4, "s32": 4, "f64": 8, "u64": 8, "bf16": 2, "s8": 1, "pred": 1, "s4": 1}


def transpose(dtype: str, dims: str = "128,192", result: str = "192,128", order: str = "1,0", name: str = "m") -> str:
    body = f"  p = {dtype}[{dims}] parameter(0)\n  ROOT r = {dtype}[{result}] transpose(p), dimensions={{{order}}}"
    return f"HloModule {name}\nENTRY e {{\n{body}\n}}\n"


def kernel(text: str, bits: int) -> str:
    target = Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+fma", bits)
    (request,) = plan(optimize(parse_module(text))).kernels
    return dict(emitter("mlir").emit([request], EmitOptions(target, keep_stages=True)).stages)["mlir"]


@pytest.mark.parametrize("level", WIDTHS)
@pytest.mark.parametrize("dtype", TYPES)
def test_values(dtype, level):
    with code_for(level):
        check(transpose(dtype, name=f"m_{level.replace('-', '_')}"))
        check(transpose(dtype, "3,64,80", "3,80,64", "0,2,1", f"n_{level.replace('-', '_')}"))
        check(transpose(dtype, "203,301", "301,203", "1,0", f"o_{level.replace('-', '_')}"))
        check(transpose(dtype, "32,5,33", "33,5,32", "2,1,0", f"p_{level.replace('-', '_')}"))
        check(transpose(dtype, "17,16", "16,17", "1,0", f"q_{level.replace('-', '_')}"))
        check(transpose(dtype, "40,300", "300,40", "1,0", f"r_{level.replace('-', '_')}"))


MIXED = (("4,8,16,32,16", "16,16,4,32,8", "4,2,0,3,1"), ("3,9,5,7,16", "16,5,3,7,9", "4,2,0,3,1"))
MORE = (*MIXED, ("2,12,40,16", "40,2,16,12", "2,0,3,1"), ("8,5,24", "24,5,8", "2,1,0"))


@pytest.mark.parametrize("level", WIDTHS)
@pytest.mark.parametrize("dtype", TYPES)
def test_values_of_short_rows(dtype, level):
    with code_for(level):
        for k, dims in enumerate(MORE):
            check(transpose(dtype, *dims, name=f"u{k}_{level.replace('-', '_')}"))


@pytest.mark.parametrize("dtype", ["s8", "bf16", "f32", "f64"])
def test_rows_of_one_block_are_written_one_after_another(dtype):
    """After eight rows of the result the next positions along it come first, not eight more that are as far apart."""
    text = kernel(transpose(dtype, *MIXED[0]), 512).split("vector.load")[0]
    steps = re.findall(r"scf\.for .* step %c(\d+)", text)
    assert steps[-2:] == ["8", "1"]


@pytest.mark.parametrize("level", WIDTHS)
def test_large_values(level):
    with code_for(level):
        check(transpose("f64", "1030,1022", "1022,1030", "1,0", f"s_{level.replace('-', '_')}"))
        check(transpose("f64", "1024,1043", "1043,1024", "1,0", f"t_{level.replace('-', '_')}"))


@pytest.mark.parametrize("bits", WIDTHS.values())
@pytest.mark.parametrize("dtype", TYPES)
def test_blocks_are_as_wide_as_vectors(dtype, bits):
    size = TYPES[dtype]
    side, high = bits // (8 * size), 16 // size if size <= 2 else min(16, bits // (8 * size))
    text = kernel(transpose(dtype), bits)
    if side < min(8, 32 // size):  # of four, if these are numbers of 64 bits
        assert "vector." not in text and "linalg.generic" in text
        return
    assert f"vector<{side}x" in text and f"vector<{side + 1}x" not in text
    assert text.count("vector.load") == side and text.count("vector.store") == high
    assert "linalg.generic" not in text
    assert ("vector.transpose" in text) == (side == 16 and size == 4)


@pytest.mark.parametrize(
    ("dtype", "side", "half_lines", "lines"),
    [("bf16", 2048, 8, 8), ("s16", 2048, 8, 8), ("s8", 4096, 0, 16), ("f64", 1024, 4, 8)],
)
def test_streaming_stores_write_lines_or_few_rows(dtype, side, half_lines, lines):
    """Of half lines in sixteen rows at once they took twice as long."""
    for level, stores in (("x86-64-v3", ["ymm"] * half_lines), ("x86-64-v4", ["zmm"] * lines)):
        (request,) = plan(optimize(parse_module(transpose(dtype, f"{side},{side}", f"{side},{side}")))).kernels
        options = EmitOptions(Target.level(level), ranges=False)
        code = assembly(emitter("mlir").emit([request], options).llvm_ir, options)
        found = re.findall(r"vmovnt\w+\s+%(\wmm)", code)
        assert set(found) == set(stores) and len(found) % max(len(stores), 1) == 0  # the loop may be unrolled
        assert dtype == "f64" or not re.search(r"vpblend|vperm|vpsll|vpsrl", code)


@pytest.mark.parametrize(
    ("dtype", "bits", "side"),
    [
        ("f32", 256, 8),
        ("bf16", 256, 8),
        ("s8", 256, 16),
        ("f32", 512, 8),
        ("f64", 512, 8),
        ("bf16", 512, 8),
        ("s8", 512, 16),
    ],
)
def test_a_block_is_the_least_that_goes_through_registers(dtype, bits, side):
    for rows, columns in ((side, side), (side, 200), (3 * side, side), (side - 1, 200), (200, side - 1), (7, 200)):
        text = kernel(transpose(dtype, f"{rows},4,{columns}", f"{columns},4,{rows}", "2,1,0"), bits)
        fits = columns >= side and rows >= 8  # rows of the result of half a lane are blocks of their own
        assert ("vector.load" in text) == fits, (rows, columns)


def test_what_blocks_leave_over_is_moved_by_element():
    text = kernel(transpose("f32", "300,190", "190,300"), 256)
    assert text.count("vector.load") == 8 and text.count("linalg.generic") == 2
    assert kernel(transpose("f32", "288,190", "190,288"), 256).count("linalg.generic") == 1


def test_of_small_arrays_blocks_overlap_and_leave_nothing():
    for rows, columns in ((100, 190), (96, 190), (100, 192), (9, 8)):
        text = kernel(transpose("f32", f"{rows},{columns}", f"{columns},{rows}"), 256)
        assert text.count("vector.load") == 8 and "linalg.generic" not in text
        assert text.count("arith.minsi") == (rows % 8 > 0) + (columns % 8 > 0)


def test_the_last_band_of_blocks_may_be_lower():
    assert "arith.minsi" in kernel(transpose("f32", "128,320", "320,128"), 256)
    assert "arith.minsi" not in kernel(transpose("f32", "128,512", "512,128"), 256)


def test_large_results_are_written_past_the_caches():
    assert "nontemporal = true" in kernel(transpose("f32", "2048,2048", "2048,2048"), 256)
    assert "nontemporal" not in kernel(transpose("f32"), 256)


@pytest.mark.parametrize(
    ("dtype", "side", "bits", "steps"),
    [
        ("bf16", 512, 512, [256, 256, 16, 32, 8]),  # half a line of the source for each line of the result
        ("s8", 512, 256, [256, 512, 32, 64, 16, 32]),
        ("f32", 512, 256, [256, 128, 16, 16, 8, 8]),
        ("f32", 512, 512, [256, 128, 16, 16]),  # blocks read whole lines
        ("f32", 2048, 512, [256, 16, 16]),  # non-temporal: a line at a time
        ("f32", 2048, 256, [256, 32, 8, 8]),  # of half lines: two
        ("bf16", 4096, 512, [256, 32, 32, 32, 8]),
    ],
)
def test_blocks_that_read_the_same_lines_follow_each_other(dtype, side, bits, steps):
    """Of rows a power of two apart, lines do not stay in the caches: bf16 [2048,2048] took three times as long."""
    text = kernel(transpose(dtype, f"{side},{side}", f"{side},{side}"), bits)
    assert re.findall(r"scf\.for .* step %c(\d+)", text) == [str(s) for s in steps]


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["s8", "bf16", "f32", "f64"])
def test_values_of_rows_a_power_of_two_apart(dtype, level):
    name = level.replace("-", "_")
    with code_for(level):
        for rows, columns in ((256, 512), (1024, 96), (64, 1024)):
            check(transpose(dtype, f"{rows},{columns}", f"{columns},{rows}", "1,0", f"w{rows}_{name}"))
        check(transpose(dtype, "3,256,128", "3,128,256", "0,2,1", f"v_{name}"))


def test_steps_are_whole_blocks():
    (request,) = plan(optimize(parse_module(transpose("f32", "1024,1024", "1024,1024")))).kernels
    assert request.partition is not None
    options = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v3", "+avx2,+fma", 256), ranges=True)
    emitted = emitter("mlir").emit([request], replace(options, keep_stages=True))
    assert emitted.ranged and "vector.shuffle" in dict(emitted.stages)["mlir"]


@pytest.mark.parametrize(
    ("dims", "result", "order", "ranged"),
    [
        ("17,31,29,63", "17,29,63,31", "0,2,3,1", True),  # steps number no side of a block
        ("7,11,13,17,19", "19,13,7,17,11", "4,2,0,3,1", True),  # they would number one, and others
    ],
)
def test_steps_do_not_keep_from_blocks(dims: str, result: str, order: str, ranged: bool):
    (request,) = plan(optimize(parse_module(transpose("f32", dims, result, order)))).kernels
    assert request.partition is not None and len(request.partition.dimensions) > 1
    options = EmitOptions(Target.level("x86-64-v4"), ranges=True, keep_stages=True)
    emitted = emitter("mlir").emit([request], options)
    assert bool(emitted.ranged) == ranged and "vector.load" in dict(emitted.stages)["mlir"]


SIDES = ((1, 9), (3, 7), (7, 8), (8, 9), (9, 17), (15, 16), (17, 31), (63, 65), (71, 127))


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", ["s8", "bf16", "f32", "f64", "c128"])
def test_values_of_sides_around_blocks(dtype: str, level: str):
    name = level.replace("-", "_")
    with code_for(level):
        for rows, columns in SIDES:
            for a, b in ((rows, columns), (columns, rows)):
                check(transpose(dtype, f"5,{a},7,{b}", f"5,7,{b},{a}", "0,2,3,1", f"b{a}_{b}_{name}"))


def test_steps_of_rows_of_any_length_divide_for_each_row_alone():
    """Not for each element, which LLVM would not vectorise."""
    body = "p = f32[5,100003] parameter(0)\n  ROOT r = f32[5,100003] reverse(p), dimensions={0}"
    (request,) = plan(optimize(parse_module(f"HloModule m\nENTRY e {{\n  {body}\n}}\n"))).kernels
    options = EmitOptions(Target.level("x86-64-v4"), ranges=True, keep_stages=True)
    emitted = emitter("mlir").emit([request], options)
    assert emitted.ranged
    text = dict(emitted.stages)["mlir"]
    assert len(re.findall(r"arith\.div[us]i", text)) == 2 and "arith.rem" not in text


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_few_long_rows_are_made_together(stack: str):
    """Each vector of the operand is read once: row by row, all of it was read for each of them."""
    (request,) = plan(optimize(parse_module(transpose("f32", "100000,3", "3,100000")))).kernels
    options = EmitOptions(Target.level("x86-64-v4"), ranges=True)
    emitted = emitter(stack).emit([request], options)
    code = assembly(emitted.llvm_ir, options)
    loops = [body for body in re.findall(r"\.LBB\w+:\n((?:\t(?!j|\.).*\n)+)\tj", code) if "zmm" in body]
    assert emitted.ranged and loops
    for body in loops:
        stores = re.findall(r"vmov\w+\t%zmm\d+, .*\(", body)
        assert len(stores) % 3 == 0 and len(re.findall(r"vmov\w+\t[^%]\S*\(.*\), %zmm|vpermt2\w+\t\S*\(", body)) <= len(
            stores
        )


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
def test_values_of_a_few_long_rows(level: str):
    name = level.replace("-", "_")
    with code_for(level):
        for rows in (2, 3, 7):
            check(transpose("f32", f"131075,{rows}", f"{rows},131075", "1,0", f"l{rows}_{name}"))
