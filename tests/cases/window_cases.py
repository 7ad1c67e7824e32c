"""Random reduce-windows: every attribute of a window, dtypes, layouts, computations of one op and of several."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from ...hlo.dtypes import DType

REGIONS = {
    "add": "ROOT r = {t} add(a, b)",
    "top": "ROOT r = {t} maximum(b, a)",
    "low": "ROOT r = {t} minimum(a, b)",
    "product": "ROOT r = {t} multiply(a, b)",
    "mix": "m = {t} subtract(a, b)\n  ROOT r = {t} maximum(m, a)",
    "last": "ROOT r = {t} add(b, b)",
}
LOGIC = {"any": "ROOT r = {t} or(a, b)", "all": "ROOT r = {t} and(b, a)", "odd": "ROOT r = {t} xor(a, b)"}
DTYPES = (DType.F32, DType.S32, DType.U8, DType.F64, DType.BF16, DType.F16, DType.S64, DType.C64, DType.PRED)

TWO = """by {{
  a = {t} parameter(0)
  i = s32[] parameter(1)
  b = {t} parameter(2)
  j = s32[] parameter(3)
  p = pred[] compare(a, b), direction=GE
  v = {t} select(p, a, b)
  k = s32[] select(p, i, j)
  ROOT r = ({t}, s32[]) tuple(v, k)
}}"""


@st.composite
def windows(draw: st.DrawFn, longest: int = 9, most_dims: int = 3) -> tuple[str, list[np.ndarray]]:
    """HLO text and inputs of a module with one reduce-window, of one array or of values with their positions."""
    dims, parts, out = [], [], []
    for _ in range(draw(st.integers(1, most_dims))):
        n, size, stride, low, high, holes, dilation, back = draw(dimension(longest))
        padded, reach = (n - 1) * holes + 1 + low + high, (size - 1) * dilation + 1
        if padded < reach:
            low, padded = low + reach - padded, reach
        dims.append(n)
        out.append((padded - reach) // stride + 1)
        parts.append((size, stride, f"{low}_{high}", holes, dilation, back))
    names = ("size", "stride", "pad", "lhs_dilate", "rhs_dilate", "rhs_reversal")
    window = " ".join(f"{k}={'x'.join(str(p[n]) for p in parts)}" for n, k in enumerate(names))
    two = draw(st.sampled_from([False, False, True]))
    dtype = draw(st.sampled_from((DType.F32, DType.S32) if two else DTYPES))
    regions = LOGIC if dtype is DType.PRED else REGIONS
    names_ = sorted(regions) if not dtype.is_complex else ["add", "product", "last"]
    source, result = shape(draw, dtype, dims), shape(draw, dtype, out)
    scalar = f"{dtype.value}[]"
    start = draw(st.sampled_from(["0", "1", "3"]))
    start = f"({start}, 0)" if dtype.is_complex else start
    start = draw(st.sampled_from(["true", "false"])) if dtype is DType.PRED else start
    turn = draw(st.sampled_from([f"reverse(p), dimensions={{{len(dims) - 1}}}", "copy(p)"]))
    lines = [f"  p = {source} parameter(0)", f"  x = {source} {turn}", f"  z = {scalar} constant({start})"]
    if two:
        spots = ",".join(map(str, dims))
        lines += [f"  y = s32[{spots}] iota(), iota_dimension=0", "  o = s32[] constant(-1)"]
        region = TWO.format(t=scalar)
        call, result = "x, y, z, o", f"({result}, {shape(draw, DType.S32, out)})"
    else:
        body = regions[draw(st.sampled_from(names_))].format(t=scalar)
        region = f"by {{\n  a = {scalar} parameter(0)\n  b = {scalar} parameter(1)\n  {body}\n}}"
        call = "x, z"
    lines.append(f"  ROOT r = {result} reduce-window({call}), window={{{window}}}, to_apply=by")
    text = "\n".join(["HloModule m", region, "ENTRY e {", *lines, "}"])
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = random.integers(-3 if not dtype.is_unsigned else 0, 4, dims)
    return text, [values.astype(dtype.numpy)]


@st.composite
def pools(draw: st.DrawFn) -> tuple[str, list[np.ndarray]]:
    """One reduce-window with many results along memory, whose windows overlap, or are strides apart, or lie in padding
    of any width, in up to two dimensions; floats with NaN, infinities and zeros of both signs.
    """
    dims, parts, out = [], [], []
    for most in (draw(st.sampled_from([1, 5, 9])), draw(st.sampled_from([40, 150, 300]))):
        n, size, stride = draw(st.integers(1, most)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
        low, high = draw(st.sampled_from([0, 1, 2, 3, 90, -1])), draw(st.sampled_from([0, 1, 2, 70, 140, -1]))
        dilation = draw(st.sampled_from([1, 1, 1, 2]))
        low, high = (low, high) if n > 2 else (abs(low), abs(high))
        low += max(0, (size - 1) * dilation + 1 - (n + low + high))
        dims.append(n)
        out.append((n + low + high - ((size - 1) * dilation + 1)) // stride + 1)
        parts.append((size, stride, f"{low}_{high}", dilation))
    names = ("size", "stride", "pad", "rhs_dilate")
    window = " ".join(f"{k}={'x'.join(str(p[n]) for p in parts)}" for n, k in enumerate(names))
    dtype = draw(st.sampled_from(DTYPES))
    regions = LOGIC if dtype is DType.PRED else {name: REGIONS[name] for name in ("add", "top", "low", "product")}
    picked = draw(st.sampled_from(sorted(regions) if not dtype.is_complex else ["add", "product"]))
    scalar, given = f"{dtype.value}[]", ",".join(map(str, dims))
    start = "true" if dtype is DType.PRED else draw(st.sampled_from(["0", "-0", "2"] if dtype.is_float else ["0", "2"]))
    start = f"({start}, 0)" if dtype.is_complex else start
    text = f"""HloModule m
by {{
  a = {scalar} parameter(0)
  b = {scalar} parameter(1)
  {regions[picked].format(t=scalar)}
}}
ENTRY e {{
  p = {dtype.value}[{given}] parameter(0)
  x = {dtype.value}[{given}] {draw(st.sampled_from(["copy", "reverse"]))}(p)
  z = {scalar} constant({start})
  ROOT r = {dtype.value}[{",".join(map(str, out))}] reduce-window(x, z), window={{{window}}}, to_apply=by
}}""".replace("reverse(p)", "reverse(p), dimensions={1}")
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = random.integers(-3 if not dtype.is_unsigned else 0, 4, dims).astype(dtype.numpy)
    if dtype.is_float and picked in ("top", "low", "add"):
        odd = random.random(dims) < draw(st.sampled_from([0, 0.02]))
        values[odd] = random.choice(np.array([np.nan, np.inf, -0.0]), odd.sum()).astype(dtype.numpy)
        values[values == 0] *= random.choice([1, -1], (values == 0).sum()).astype(dtype.numpy)
    return text, [values]


@st.composite
def dimension(draw: st.DrawFn, longest: int) -> tuple[int, ...]:
    """(size of the operand, window, stride, low, high, base dilation, window dilation, reversed)."""
    n = draw(st.integers(1, longest))
    kind = draw(st.sampled_from(["any", "any", "prefix", "suffix", "none", "disjoint"]))
    if kind == "prefix":
        return n, n, 1, n - 1, 0, 1, 1, 0
    if kind == "suffix":
        return n, n, 1, 0, n - 1, 1, 1, 0
    if kind == "none":
        return n, 1, 1, 0, 0, 1, 1, 0
    if kind == "disjoint":
        size = draw(st.integers(1, n))
        return n, size, size, 0, 0, 1, 1, 0
    size, stride = draw(st.integers(1, longest)), draw(st.integers(1, 3))
    low, high = draw(st.integers(-min(1, n - 1), 5)), draw(st.integers(0, 5))
    return n, size, stride, low, high, draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(0, 1))


def shape(draw: st.DrawFn, dtype: DType, dims: list[int]) -> str:
    layout = draw(st.permutations(range(len(dims)))) if draw(st.booleans()) else range(len(dims))[::-1]
    return f"{dtype.value}[{','.join(map(str, dims))}]{{{','.join(map(str, layout))}}}"
