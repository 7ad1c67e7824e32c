"""Sorts of many short rows: several rows in vectors side by side, stable, whatever their number."""

import numpy as np
import pytest

from ... import legacy
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...legacy.sorts.sort_network import exchanges
from ...legacy.sorts.sort_side import MAXIMUM_LENGTH, MINIMUM_ROWS
from ...planning.planner import plan
from ..support.check import check
from ..support.processors import code_for


def sort(
    dtype: str, dims: str, dimension: int, compare: str = "direction=LT", result: str = "", name: str = "m"
) -> str:
    """A sort of one array. result: a slice of it, as the text behind the equals sign."""
    body = f"s = {dtype}[{dims}] sort(x), dimensions={{{dimension}}}, to_apply=less"
    return f"""HloModule {name}
less {{ a = {dtype}[] parameter(0)
  b = {dtype}[] parameter(1)
  ROOT c = pred[] compare(a, b), {compare} }}
ENTRY e {{ x = {dtype}[{dims}] parameter(0)
  {body if result else "ROOT " + body}
  {"ROOT r = " + result if result else ""} }}
"""


def emitted(text: str, level: str = "x86-64-v4", ranges: bool = False) -> str:
    (request,) = plan(parse_module(text)).kernels
    return legacy.emit([request], EmitOptions(Target.level(level), ranges=ranges)).llvm_ir


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("dtype", "lanes"), [("f32", 16), ("f64", 8), ("bf16", 32), ("u8", 64)])
def test_a_line_of_keys_is_compared_at_once(dtype: str, lanes: int, level: str):
    for text in (sort(dtype, "3,4096", 0), sort(dtype, "4096,3", 1)):
        assert f"icmp sgt <{lanes} x i" in emitted(text, level)


@pytest.mark.parametrize(
    ("level", "dtype", "length", "numbered"),
    [
        ("x86-64-v4", "f32", 33, False),
        ("x86-64-v4", "f32", 34, True),
        ("x86-64-v4", "u8", 64, False),
        ("x86-64-v4", "f64", 16, False),
        ("x86-64-v4", "f64", 17, True),
        ("x86-64-v3", "f32", 9, False),
        ("x86-64-v3", "f32", 10, True),
        ("x86-64-v3", "f64", 7, False),
        ("x86-64-v3", "u8", 39, False),
        ("x86-64-v3", "u8", 40, True),
    ],
)
def test_keys_of_longer_rows_tell_their_places(level: str, dtype: str, length: int, numbered: bool):
    text = emitted(sort(dtype, f"4096,{length}", 1), level)
    assert (f"exchanges.{length}.0.{length}" in text) is numbered


def test_operands_beside_keys_are_fetched_and_not_exchanged():
    text = """HloModule m
less { a = u32[] parameter(0)
  b = u32[] parameter(1)
  c = s64[] parameter(2)
  d = s64[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e { x = u32[32,64,32] parameter(0)
  y = s64[32,64,32] parameter(1)
  ROOT s = (u32[32,64,32], s64[32,64,32]) sort(x, y), dimensions={1}, to_apply=less }
"""
    for level in ("x86-64-v3", "x86-64-v4"):
        assert emitted(text, level).count("select  <4 x i1>") == 2
    few = text.replace("64,32]", "6,32]")
    assert emitted(few, "x86-64-v3").count("select  <16 x i1>") == 12


def test_pairs_on_which_no_wanted_place_depends_are_left_out():
    for length in (2, 3, 8, 17, 40, 64):
        rng, whole = np.random.default_rng(length), exchanges(length, 0, length)
        start = length // 3
        few = exchanges(length, start, start + 1)
        assert len(few) < len(whole) or length < 4
        for _ in range(50):
            x = rng.integers(0, 2, length)
            for pairs, wanted in ((whole, slice(0, length)), (few, slice(start, start + 1))):
                y = x.copy()
                for first, second in pairs:
                    y[first], y[second] = min(y[first], y[second]), max(y[first], y[second])
                assert (y[wanted] == np.sort(x)[wanted]).all()


def test_operands_share_the_room_beside_the_rows():
    text = """HloModule m
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e { x = f32[4096,40] parameter(0)
  i = s32[4096,40] iota(), iota_dimension=1
  ROOT s = (f32[4096,40], s32[4096,40]) sort(x, i), dimensions={1}, to_apply=less }
"""
    assert "icmp sgt <8 x i64>" in emitted(text)  # keys that tell their places


def test_long_rows_and_few_rows_are_sorted_one_by_one():
    vectors = "icmp sgt <"
    assert vectors in emitted(sort("f32", f"4096,{MAXIMUM_LENGTH}", 1)) and vectors not in emitted(
        sort("f32", f"4096,{MAXIMUM_LENGTH + 1}", 1)
    )
    assert vectors in emitted(sort("f32", f"{MINIMUM_ROWS},8", 1)) and vectors not in emitted(
        sort("f32", f"{MINIMUM_ROWS - 1},8", 1)
    )
    assert vectors not in emitted(sort("c64", "4096,8", 1, "direction=EQ"))


FLOATS = ("f16", "bf16", "f32", "f64")
DTYPES = ("pred", "s4", "u4", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", *FLOATS)


@pytest.mark.parametrize("level", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_values(dtype: str, level: str):
    name = level.replace("-", "_")
    with code_for(level):
        check(sort(dtype, "33,7", 1, name=f"a_{name}"))
        check(sort(dtype, "16,40", 0, "direction=GT", name=f"b_{name}"))
        if dtype not in FLOATS:  # the evaluator's subnormals are zeros
            check(sort(dtype, "37,64", 1, "direction=GT", name=f"e_{name}"))
        check(sort(dtype, "3,2,70,5", 1, name=f"c_{name}"))
        check(sort(dtype, "5,13,9", 1, name=f"d_{name}"))


@pytest.mark.parametrize("dtype", ["f16", "f32", "f64"])
def test_values_in_the_total_order(dtype: str):
    pool = np.array(
        [0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0], {"f16": "f2", "f32": "f4", "f64": "f8"}[dtype]
    )
    for direction in ("LT", "GT"):
        x = np.random.default_rng(0).choice(pool, (50, 64))
        found = check(sort(dtype, "50,64", 1, f"direction={direction}, type=TOTALORDER"), [x])[0]
        assert np.isnan(found).any() and np.signbit(found).any()


@pytest.mark.parametrize("length", [2, 3, 8, 15, 16, 17, 31, 32, 33, 63, 64])
def test_equal_keys_keep_their_order(length: int):
    text = f"""HloModule m
less {{ a = s8[] parameter(0)
  b = s8[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  e = f64[] parameter(4)
  f = f64[] parameter(5)
  ROOT r = pred[] compare(a, b), direction=GT }}
ENTRY e {{ x = s8[37,{length}] parameter(0)
  i = s32[37,{length}] iota(), iota_dimension=1
  y = f64[37,{length}] parameter(1)
  ROOT s = (s8[37,{length}], s32[37,{length}], f64[37,{length}]) sort(x, i, y), dimensions={{1}}, to_apply=less }}
"""
    rng = np.random.default_rng(length)
    x = rng.integers(0, 3, (37, length)).astype(np.int8)
    keys, places, _ = check(text, [x, rng.standard_normal((37, length))])
    assert (places == np.argsort(-x, 1, kind="stable")).all() and (keys == -np.sort(-x, 1)).all()


def test_parts_of_rows():
    check(sort("f32", "100,20", 1, "direction=GT", "f32[100,3] slice(s), slice={[0:100], [0:3]}"))
    check(sort("bf16", "20,100", 0, "direction=LT", "bf16[5,100] slice(s), slice={[7:12], [0:100]}", "p"))
    check(sort("s64", "64,50", 0, "direction=GT", "s64[2,50] slice(s), slice={[60:62], [0:50]}", "q"))
    check(sort("u32", "100,40", 1, "direction=LT", "u32[100,1] slice(s), slice={[0:100], [39:40]}", "r"))


def test_producers_are_sorted_too():
    text = (
        sort("f32", "64,9", 1)
        .replace("sort(x)", "sort(y)")
        .replace("  ROOT s", "  y = f32[64,9] multiply(x, x)\n  ROOT s")
    )
    check(text)
