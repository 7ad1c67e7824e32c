"""Convolutions whose result has its dimensions in any order, and groups of features before what is behind them.

Vectors of sums go to memory as they are only where output features are neighbours in the result.
"""

import itertools

import pytest

from ..support.check import check
from ..support.convolutions import Spatial, text_of
from ..support.processors import code_for

LEVELS = ("x86-64-v3", "x86-64-v4")


@pytest.mark.parametrize("order", ["".join(order) for order in itertools.permutations("bf0")])
@pytest.mark.parametrize("ins, outs, window, dtype", [(5, 4, 1, "f32"), (16, 32, 3, "f32"), (8, 8, 3, "f64")])
def test_results_in_each_order(order, ins, outs, window, dtype):
    axes = [Spatial(9, window, 1, 1, 0, 1, 1, 0)]
    text = text_of(dtype, axes, 2, ins, outs, (1, 1), [list("b0f"), list("0io"), list(order)])
    for level in LEVELS:
        with code_for(level):
            check(text.replace("HloModule m", f"HloModule m{order}_{dtype}_{level.replace('-', '_')}"))


@pytest.mark.parametrize("order", ["b01f", "bf01", "fb01", "01fb", "10bf"])
@pytest.mark.parametrize("layout", [[3, 2, 1, 0], [1, 2, 3, 0], [0, 3, 1, 2]])
def test_results_in_other_layouts(order, layout):
    axes = [Spatial(6, 3, 1, 1, 1, 1, 1, 0), Spatial(7, 2, 2, 0, 1, 1, 1, 1)]
    row_major = [3, 2, 1, 0]
    orders = [list("b01f"), list("01io"), list(order)]
    check(text_of("f32", axes, 1, 12, 24, (1, 1), orders, [row_major, row_major, layout]))


BEHIND = """HloModule m
ENTRY e {
  x = f32[1,5,SIZE,INS] parameter(0)
  w = f32[1,1,GIVEN,32] parameter(1)
  row = f32[ROW] parameter(2)
  rows = f32[1,RESULT] broadcast(row), dimensions={COLUMN}
  zero = f32[] constant(0)
  zeros = f32[1,RESULT] broadcast(zero), dimensions={}
  c = f32[1,RESULT] convolution(x, w), window={size=1x1 pad=1_0x0_1 lhs_dilate=1x2}, dim_labels=b01f_01io->LABELS,
    feature_group_count=GROUPS
  s = f32[1,RESULT] add(c, rows)
  ROOT r = f32[1,RESULT] maximum(s, zeros)
}"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize(
    "labels, result, column", [("b01f", "6,{n},32", 3), ("bf01", "32,6,{n}", 1), ("b0f1", "6,32,{n}", 2)]
)
def test_a_row_of_features_behind_groups(labels, result, column, size, groups, level):
    """The row's elements are those of the group; and where one position is all, features are neighbours anyway."""
    ins = 16
    replaced = {
        "SIZE": size, "INS": ins, "GIVEN": ins // groups, "ROW": 32, "COLUMN": column, "LABELS": labels,
        "RESULT": result.format(n=2 * size), "GROUPS": groups,
    }  # fmt: skip
    text = BEHIND
    for name, value in replaced.items():
        text = text.replace(name, str(value))
    with code_for(level):
        check(text.replace("HloModule m", f"HloModule m_{level.replace('-', '_')}"))


@pytest.mark.parametrize("order, result", [("b0f", "1,1,8"), ("bf0", "1,8,1"), ("f0b", "8,1,1")])
def test_a_row_of_places_behind_one_position(order, result):
    """Features are neighbours although a dimension of size 1 is the fastest: the row is along that one."""
    column = order.index("0")
    check(f"""HloModule m
ENTRY e {{
  x = f32[1,3,16] parameter(0)
  w = f32[3,16,8] parameter(1)
  row = f32[1] parameter(2)
  rows = f32[{result}] broadcast(row), dimensions={{{column}}}
  c = f32[{result}] convolution(x, w), window={{size=3}}, dim_labels=b0f_0io->{order}
  ROOT s = f32[{result}] multiply(c, rows)
}}""")
