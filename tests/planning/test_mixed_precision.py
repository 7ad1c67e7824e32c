"""An op whose floats have several element types is refused before any pass, and in LHLO: stacks store what they get."""

from __future__ import annotations

import pytest

from testbed.formats.text.parser import parse_module
from testbed.hlo.errors import UnsupportedError, VerificationError
from testbed.lhlo import parse_text
from testbed.planning.planner import plan

MIXED = {
    "narrower result": ("p = bf16[5] parameter(0)", "ROOT r = f8e4m3fn[5] cosine(p)", "cosine of bf16 and f8e4m3fn"),
    "wider result": ("p = f32[5] parameter(0)", "ROOT r = f64[5] add(p, p)", "add of f32 and f64"),
    "operands": (
        "p = f32[5] parameter(0) q = bf16[5] parameter(1)",
        "ROOT r = f32[5] add(p, q)",
        "add of bf16 and f32",
    ),
    "copy": ("p = f32[5] parameter(0)", "ROOT r = bf16[5] copy(p)", "copy of bf16 and f32"),
    "select": (
        "c = pred[5] parameter(0) p = f32[5] parameter(1) q = f16[5] parameter(2)",
        "ROOT r = f32[5] select(c, p, q)",
        "select of f16 and f32",
    ),
}


REGION = """HloModule m
f {{ x = {region}[] parameter(0)
  y = {region}[] parameter(1)
  ROOT z = {result}[] {op}(x, y){more} }}
ENTRY e {{ a = f32[3,5] parameter(0)
  b = {init}[] constant(0)
  ROOT r = {root} }}"""
SORT = {"op": "compare", "more": ", direction=LT", "result": "pred"}
SORT |= {"root": "f32[3,5] sort(a), dimensions={1}, to_apply=f"}
REDUCE = {"op": "add", "more": "", "root": "f32[3] reduce(a, b), dimensions={1}, to_apply=f"}
REGIONS = {
    "a comparator": (SORT | {"region": "f8e4m3", "init": "f32"}, "sort of f32 and f8e4m3"),
    "a sum": (REDUCE | {"region": "bf16", "result": "bf16", "init": "f32"}, "reduce of bf16 and f32"),
    "an initial value": (REDUCE | {"region": "f32", "result": "f32", "init": "f16"}, "reduce of f16 and f32"),
}


@pytest.mark.parametrize("case", REGIONS)
def test_a_region_that_computes_in_another_type(case):
    parts, message = REGIONS[case]
    with pytest.raises(UnsupportedError, match=message) as found:
        plan(parse_module(REGION.format(**parts)))
    assert found.value.location is not None and found.value.location.line == 7


@pytest.mark.parametrize("parts", [SORT, REDUCE | {"result": "f32"}])
def test_a_region_of_the_same_type_is_planned(parts):
    assert plan(parse_module(REGION.format(**parts, region="f32", init="f32"))).kernels


@pytest.mark.parametrize("case", MIXED)
def test_hlo(case):
    parameters, root, message = MIXED[case]
    with pytest.raises(UnsupportedError, match=message) as found:
        plan(parse_module(f"HloModule m\nENTRY e {{ {parameters}\n{root} }}"))
    assert found.value.location is not None and found.value.location.line == 3


def test_lhlo():
    text = """func.func @k(%x: memref<5xbf16>, %y: memref<5xf8E4M3FN>) attributes {lhlo.kernel} {
  "lhlo.cosine"(%x, %y) : (memref<5xbf16>, memref<5xf8E4M3FN>) -> ()
  return
}"""
    with pytest.raises(VerificationError, match=r"bf16 and f8e4m3fn \[PRECISION1\]") as found:
        parse_text(text)
    assert found.value.location is not None and found.value.location.line == 2


def test_what_converts_is_planned():
    text = "HloModule m\nENTRY e { p = f32[5] parameter(0)\n b = bf16[5] convert(p)\n ROOT r = f32[5] convert(b) }"
    assert plan(parse_module(text)).kernels
