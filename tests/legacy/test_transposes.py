"""Large transposes: tiles that only move elements are written past the caches, a line at a time."""

import re
from dataclasses import replace

import pytest

from ... import legacy
from ...codegen.optimize import assembly
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...passes.pipeline import optimize
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for

LEVELS = {"x86-64-v3": "ymm", "x86-64-v4": "zmm"}


def transpose(dtype: str, rows: int, columns: int, more: str = "", name: str = "m") -> str:
    shape = f"{dtype}[{columns},{rows}]"
    last = f"  ROOT r = {shape} {more or 'copy'}(t)\n"
    body = f"  p = {dtype}[{rows},{columns}] parameter(0)\n  t = {shape} transpose(p), dimensions={{1,0}}\n{last}"
    return f"HloModule {name}\nENTRY e {{\n{body}}}\n"


def machine_code(text: str, level: str) -> str:
    options = EmitOptions(Target.level(level), ranges=False)
    return assembly(legacy.emit(plan(optimize(parse_module(text))).kernels, options).llvm_ir, options)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("dtype", "side"), [("f64", 1024), ("f32", 2048), ("bf16", 2048), ("s8", 4096)])
def test_large_results_are_written_past_the_caches(dtype: str, side: int, level: str):
    stores = re.findall(r"vmovnt\w+\s+%(\wmm)", machine_code(transpose(dtype, side, side), level))
    assert stores and set(stores) == {LEVELS[level]}


@pytest.mark.parametrize(
    ("rows", "columns", "more", "streams"),
    [(2048, 2056, "", True), (1024, 1024, "", False), (2052, 2048, "", False), (2048, 2048, "negate", False)],
)
def test_small_ones_and_parts_of_lines_are_not(rows: int, columns: int, more: str, streams: bool):
    assert ("vmovnt" in machine_code(transpose("f32", rows, columns, more), "x86-64-v4")) == streams


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(("dtype", "rows", "columns"), [("bf16", 2080, 2090), ("s8", 3200, 2699), ("f64", 1032, 1050)])
def test_values(dtype: str, rows: int, columns: int, level: str):
    with code_for(level):
        check(transpose(dtype, rows, columns, name=f"m_{level.replace('-', '_')}"), stacks=("evaluator", "legacy"))


def test_steps_of_large_results_are_written_past_the_caches():
    (request,) = plan(optimize(parse_module(transpose("f32", 2048, 2048)))).kernels
    options = replace(EmitOptions(Target.level("x86-64-v4")), ranges=True)
    made = legacy.emit([request], options)
    assert made.ranged and "vmovnt" in assembly(made.llvm_ir, options)


def test_blocks_have_no_more_rows_than_a_set_of_the_cache_has_lines():
    options = EmitOptions(Target.level("x86-64-v4"), ranges=False)
    text = legacy.emit(plan(optimize(parse_module(transpose("f32", 512, 512)))).kernels, options).llvm_ir
    assert "shufflevector <8 x float>" in text and "shufflevector <16 x float>" not in text


SIDES = ((1, 9), (3, 7), (7, 8), (8, 9), (9, 17), (15, 16), (17, 31), (63, 65), (64, 67), (71, 127), (5, 4099))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["s8", "bf16", "f32", "f64", "c128"])
def test_values_of_sides_around_blocks(dtype: str, level: str):
    name = level.replace("-", "_")
    with code_for(level):
        for rows, columns in SIDES:
            for a, b in ((rows, columns), (columns, rows)):
                check(batched(dtype, a, b, f"b{a}_{b}_{name}"), stacks=("evaluator", "legacy"))


def batched(dtype: str, rows: int, columns: int, name: str = "m") -> str:
    count = 4500 // (rows * columns) + 2
    shape = f"{dtype}[{count},{columns},{rows}]"
    body = f"  p = {dtype}[{count},{rows},{columns}] parameter(0)\n"
    return f"HloModule {name}\nENTRY e {{\n{body}  ROOT r = {shape} transpose(p), dimensions={{0,2,1}}\n}}\n"


@pytest.mark.parametrize(("rows", "columns", "blocks"), [(31, 63, True), (8, 9, True), (16, 8, True), (7, 63, False)])
def test_blocks_of_sides_that_they_do_not_divide_overlap(rows: int, columns: int, blocks: bool):
    options = EmitOptions(Target.level("x86-64-v4"), ranges=False)
    text = legacy.emit(plan(optimize(parse_module(batched("f32", rows, columns)))).kernels, options).llvm_ir
    assert (re.search("load <(8|16) x float>", text) is not None) == blocks


@pytest.mark.parametrize("rows", [1999, 2048])
def test_rows_that_lie_apart_are_written_from_registers(rows: int):
    """By way of the stack, 1999 × 2003 took 1.1 times XLA's time. Rows a power of two apart share places of caches."""
    code = machine_code(transpose("f32", rows, 515), "x86-64-v4")
    assert ("rsp" in code.split("ret")[0]) == (rows == 2048)


MIXED = (("[4,8,16,32,16]", "4,2,0,3,1"), ("[3,7,5,9,17]", "4,2,0,3,1"), ("[2,8,40,11]", "2,0,3,1"))


def mixed(dtype: str, dims: str, order: str, name: str = "m") -> str:
    sizes = [int(n) for n in dims[1:-1].split(",")]
    result = ",".join(str(sizes[int(d)]) for d in order.split(","))
    body = f"  p = {dtype}{dims} parameter(0)\n  ROOT r = {dtype}[{result}] transpose(p), dimensions={{{order}}}\n"
    return f"HloModule {name}\nENTRY e {{\n{body}}}\n"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("dtype", ["s8", "bf16", "f32", "f64"])
def test_values_of_rows_shorter_than_a_line(dtype: str, level: str):
    name = level.replace("-", "_")
    with code_for(level):
        for k, (dims, order) in enumerate(MIXED):
            check(mixed(dtype, dims, order, f"x{k}_{name}"), stacks=("evaluator", "legacy"))


@pytest.mark.parametrize(("dtype", "kind"), [("s8", "i8"), ("bf16", "i16")])
def test_rows_shorter_than_a_block_are_read_in_smaller_ones(dtype: str, kind: str):
    """By element, and sixteen rows of the result by turns, they took 3 to 5 times as long as XLA's."""
    options = EmitOptions(Target.level("x86-64-v4"), ranges=False)
    text = legacy.emit(plan(optimize(parse_module(mixed(dtype, *MIXED[0])))).kernels, options).llvm_ir
    assert f"load <8 x {kind}>" in text


def test_steps_of_rows_of_any_length_divide_for_each_row_alone():
    """Not for each element, which LLVM would not vectorise."""
    options = EmitOptions(Target.level("x86-64-v4"), ranges=True)
    made = legacy.emit(plan(optimize(parse_module(transpose("f32", 100003, 5)))).kernels, options)
    assert made.ranged and "udiv" in made.llvm_ir and "urem" not in made.llvm_ir
