"""Elements that padding sets apart in memory: a loop over them writes each with its gap, with no division a place."""

import re
from dataclasses import replace

import pytest

from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration.choose import emitter
from ...passes.pipeline import optimize
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for
from ..support.ranges import check_ranges_alone, check_threads, number_of_threads

FIXED = EmitOptions(Target("x86_64-unknown-linux-gnu", "x86-64-v4", "+avx512f,+fma", 512), ranges=True)

CASES = {
    "a row": "p = s8[9] parameter(0); z = s8[] parameter(1); ROOT a = s8[17] pad(p, z), padding=0_0_1",
    "two elements, wide gaps": "p = bf16[5,2] parameter(0); z = bf16[] parameter(1); "
    "ROOT a = bf16[5,20] pad(p, z), padding=0_0x3_8_7",
    "gaps in both dimensions": "p = bf16[200,150] parameter(0); z = bf16[] parameter(1); "
    "ROOT a = bf16[399,299] pad(p, z), padding=0_0_1x0_0_1",
    "edges and gaps": "p = f32[20,30] parameter(0); z = f32[] parameter(1); "
    "ROOT a = f32[61,96] pad(p, z), padding=1_2_2x3_5_2",
    "gaps that end with the row": "p = f16[40,33] parameter(0); z = f16[] constant(nan); "
    "ROOT a = f16[40,99] pad(p, z), padding=0_0x0_2_2",
    "cropped on both sides": "p = s32[30,40] parameter(0); z = s32[] parameter(1); "
    "ROOT a = s32[54,69] pad(p, z), padding=-3_-2_1x-5_-5_1",
    "cropped to a gap": "p = s32[30,40] parameter(0); z = s32[] parameter(1); "
    "ROOT a = s32[30,2] pad(p, z), padding=0_0x-1_-76_1",
    "beside all elements": "p = f64[3,4] parameter(0); z = f64[] parameter(1); "
    "ROOT a = f64[3,5] pad(p, z), padding=0_0x12_-14_1",
    "complex": "p = c64[30,9] parameter(0); z = c64[] parameter(1); ROOT a = c64[30,18] pad(p, z), padding=0_0x1_0_1",
    "columns first": "p = f32[20,30]{0,1} parameter(0); z = f32[] parameter(1); "
    "ROOT a = f32[41,30]{0,1} pad(p, z), padding=1_1_1x0_0",
    "what is computed": "p = f32[20,30] parameter(0); q = f32[30] parameter(1); z = f32[] constant(-0); "
    "b = f32[20,30] broadcast(q), dimensions={1}; m = f32[20,30] multiply(p, b); "
    "ROOT a = f32[20,60] pad(m, z), padding=0_0x0_1_1",
    "steps of one dimension": "p = s8[400001] parameter(0); z = s8[] parameter(1); "
    "ROOT a = s8[1200011] pad(p, z), padding=3_7_2",
    "steps of rows": "p = f32[700,301] parameter(0); z = f32[] parameter(1); "
    "ROOT a = f32[1401,601] pad(p, z), padding=1_1_1x0_0_1",
    "steps of all dimensions": "p = f32[2,3,70000] parameter(0); z = f32[] parameter(1); "
    "ROOT a = f32[3,3,140000] pad(p, z), padding=0_0_1x0_0x2_-1_1",
}
"""What it is → instructions."""

PLACES = {
    "beside another result": "p = f32[20,30] parameter(0); q = f32[20,59] parameter(1); z = f32[] constant(1); "
    "a = f32[20,59] pad(p, z), padding=0_0x0_0_1; s = f32[20,59] add(a, q); "
    "ROOT r = (f32[20,59], f32[20,59]) tuple(a, s)",
    "gaps too wide": "p = f32[20,30] parameter(0); z = f32[] parameter(1); "
    "ROOT a = f32[20,262] pad(p, z), padding=0_0x0_0_8",
    "one element a row": "p = f32[200,1] parameter(0); z = f32[] parameter(1); "
    "ROOT a = f32[200,3] pad(p, z), padding=0_0x1_1_1",
    "no elements": "p = f32[20,0] parameter(0); z = f32[] parameter(1); ROOT a = f32[20,4] pad(p, z), padding=0_0x2_2",
}
"""Of which each place is computed by itself."""


NARROW = {
    "rows of narrow elements": "p = s8[9,30,28] parameter(0); z = s8[] parameter(1); "
    "ROOT a = s8[9,34,30] pad(p, z), padding=0_0x1_3x1_1",
    "rows padded in four dimensions": "p = s8[20,20,60,60] parameter(0); z = s8[] parameter(1); "
    "ROOT a = s8[22,22,62,62] pad(p, z), padding=1_1x1_1x1_1x1_1",
    "cut off and added": "p = bf16[90,60] parameter(0); z = bf16[] parameter(1); "
    "ROOT a = bf16[85,60] pad(p, z), padding=-2_-3x-3_3",
    "preds": "p = pred[80,60] parameter(0); z = pred[] parameter(1); ROOT a = pred[82,64] pad(p, z), padding=1_1x3_1",
}
"""Rows with loops of their own where processors have no masks."""

PLAIN = {
    "few elements": "p = s8[20,30] parameter(0); z = s8[] parameter(1); ROOT a = s8[20,32] pad(p, z), padding=0_0x1_1",
    "short rows": "p = s8[9,900,7] parameter(0); z = s8[] parameter(1); "
    "ROOT a = s8[9,902,9] pad(p, z), padding=0_0x1_1x1_1",
    "wide elements": "p = f32[300,28] parameter(0); z = f32[] parameter(1); "
    "ROOT a = f32[302,30] pad(p, z), padding=1_1x1_1",
}


def text_of(body: str) -> str:
    lines = "\n".join(f"  {line.strip()}" for line in body.split(";") if line.strip())
    return f"HloModule m\nENTRY e {{\n{lines}\n}}\n"


def emitted(body: str, options: EmitOptions = FIXED):
    (request,) = plan(optimize(parse_module(text_of(body)))).kernels
    return emitter("mlir").emit([request], replace(options, keep_stages=True))


def elements_have_branches(body: str, options: EmitOptions = FIXED) -> bool:
    return re.search(r"scf\.if [^\n]*->", dict(emitted(body, options).stages)["mlir"]) is not None


@pytest.mark.parametrize("name", CASES | PLACES | NARROW | PLAIN)
def test_values(name):
    check(text_of((CASES | PLACES | NARROW | PLAIN)[name]))


@pytest.mark.parametrize("name", CASES | PLACES | NARROW | PLAIN)
def test_values_without_masks(name):
    for level in ("x86-64-v2", "x86-64-v3"):
        with code_for(level):
            check(text_of((CASES | PLACES | NARROW | PLAIN)[name]).replace("HloModule m", f"HloModule m{level[-1]}"))


@pytest.mark.parametrize("name", CASES)
def test_no_element_has_a_branch(name):
    assert not elements_have_branches(CASES[name])


@pytest.mark.parametrize("name", NARROW)
def test_narrow_elements_have_none_without_masks(name):
    options = replace(FIXED, target=Target.level("x86-64-v3"))
    assert not elements_have_branches(NARROW[name], options) and elements_have_branches(NARROW[name])


@pytest.mark.parametrize("name", PLAIN)
def test_the_plain_nest_where_rows_do_not_pay(name):
    assert elements_have_branches(PLAIN[name], replace(FIXED, target=Target.level("x86-64-v3")))


def test_the_gaps_are_written_with_their_elements():
    body = dict(emitted(CASES["gaps that end with the row"]).stages)["mlir"]
    stores = [loop.count("memref.store") for loop in body.split("scf.for")[1:]]
    assert 3 in stores, "one loop writes an element and two gaps"


@pytest.mark.parametrize("name", ["steps of one dimension", "steps of rows", "steps of all dimensions"])
def test_rows_take_ranges(name):
    assert emitted(CASES[name]).ranged
    with number_of_threads():
        executable = check_threads(parse_module(text_of(CASES[name])), "mlir")
    check_ranges_alone(executable)


def test_narrow_rows_take_ranges():
    body = NARROW["rows padded in four dimensions"]
    assert emitted(body, replace(FIXED, target=Target.level("x86-64-v3"))).ranged
    with code_for("x86-64-v3"), number_of_threads():
        executable = check_threads(parse_module(text_of(body)), "mlir")
        check_ranges_alone(executable)
