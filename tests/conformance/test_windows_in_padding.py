"""Windows that meet one row of the input, or none: rows in the padding or in holes hold the initial value only."""

import numpy as np
import pytest

from ...hlo.dtypes import DType
from ..support.check import check

ROWS = {
    "after": (3, 5, "size=1 pad=0_2"),
    "before": (3, 5, "size=1 pad=2_0"),
    "on both sides": (2, 8, "size=1 pad=3_3"),
    "strides apart": (5, 4, "size=1 stride=3 pad=2_4"),
    "of a cut input": (5, 4, "size=1 pad=-2_1"),
    "between": (3, 5, "size=1 lhs_dilate=2"),
    "between and around": (3, 6, "size=1 stride=2 pad=2_3 lhs_dilate=3"),
    "under every window": (2, 2, "size=1 stride=5 pad=3_3"),
    "none": (3, 3, "size=1"),
}
"""(Rows of the input, of the result, the window along them)."""

COLUMNS = {
    "narrow": (10, 9, "size=2"),
    "padded": (33, 33, "size=3 pad=1_1"),
    "strides apart": (33, 17, "size=3 stride=2 pad=2_0"),
    "several tiles": (150, 151, "size=4 pad=2_2"),
    "all before": (12, 12, "size=12 pad=11_0"),
}

OPS = [("add", DType.F32, "0"), ("add", DType.BF16, "1"), ("maximum", DType.F64, "-inf"), ("minimum", DType.F16, "3"),
       ("add", DType.S32, "5"), ("or", DType.PRED, "false"), ("add", DType.C64, "(0, 0)")]  # fmt: skip


def text_of(dims: str, result: str, window: str, op: str, dtype: DType, start: str, made: str = "copy(p)") -> str:
    t = dtype.value
    return f"""HloModule m
by {{ a = {t}[] parameter(0)
  b = {t}[] parameter(1)
  ROOT r = {t}[] {op}(a, b) }}
ENTRY e {{ p = {t}[{dims}] parameter(0)
  x = {t}[{dims}] {made}
  z = {t}[] constant({start})
  ROOT r = {t}[{result}] reduce-window(x, z), window={{{window}}}, to_apply=by }}"""


def joined(*windows: str) -> str:
    """The window of several dimensions, each given alone."""
    parts = [dict(item.split("=") for item in window.split()) for window in windows]
    usual = {"size": "1", "stride": "1", "pad": "0_0", "lhs_dilate": "1"}
    return " ".join(f"{key}={'x'.join(part.get(key, value) for part in parts)}" for key, value in usual.items())


def numbers(dtype: DType, *dims: int) -> np.ndarray:
    """No zeros: what is left in memory that nothing wrote shows."""
    if dtype is DType.PRED:
        return np.ones(dims, bool)
    return np.random.default_rng(0).integers(1, 9, dims).astype(dtype.numpy)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("rows", ROWS)
def test_rows_without_an_element(rows, columns):
    """A window of one row combined no rows: a row in the padding left the line on the stack as it was before."""
    (n, out, down), (m, wide, along) = ROWS[rows], COLUMNS[columns]
    for op, dtype, start in OPS:
        text = text_of(f"{n},{m}", f"{out},{wide}", joined(down, along), op, dtype, start)
        check(text, [numbers(dtype, n, m)])


@pytest.mark.parametrize("layouts", [("{0,1}", "{0,1}"), ("{1,0}", "{0,1}"), ("{0,1}", "{1,0}")])
def test_columns_without_an_element(layouts):
    source, result = layouts
    for along, across, dims, out in (
        ("size=3 pad=1_1", "size=1 pad=1_2", "33,3", "33,6"),
        ("size=1 pad=1_2", "size=3 pad=1_1", "3,33", "6,33"),
    ):
        text = text_of(dims, out, joined(along, across), "maximum", DType.F32, "-inf")
        text = text.replace(f"[{dims}]", f"[{dims}]{source}").replace(f"[{out}]", f"[{out}]{result}")
        check(text, [numbers(DType.F32, *map(int, dims.split(",")))])


@pytest.mark.parametrize("made", ["exponential(p)", "reverse(p), dimensions={0,2}", "add(p, p)"])
def test_planes_without_an_element(made):
    window = joined("size=1 pad=1_1", "size=1 lhs_dilate=2", "size=2")
    check(text_of("2,3,17", "4,5,16", window, "add", DType.F32, "0", made), [numbers(DType.F32, 2, 3, 17)])


def test_windows_behind_a_product_and_a_gather():
    check("""HloModule m
by { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT r = f32[] add(a, b) }
ENTRY e { p = f32[3,4] parameter(0)
  q = f32[4,20] parameter(1)
  d = f32[3,20] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  k = s32[2,1] constant({{2},{0}})
  g = f32[2,20] gather(d, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,20}
  c = f32[5,20] concatenate(d, g), dimensions={0}
  z = f32[] constant(0)
  r = f32[5,19] reduce-window(g, z), window={size=1x2 pad=1_2x0_0}, to_apply=by
  s = f32[9,20] reduce-window(c, z), window={size=1x3 pad=0_0x0_2 lhs_dilate=2x1}, to_apply=by
  ROOT t = (f32[5,19], f32[9,20]) tuple(r, s) }""")  # fmt: skip  # noqa: E501
