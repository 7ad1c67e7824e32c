"""Programs of numerics.py: a sum in a reduction of several operands, next to a sum, a maximum or an arg max."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .cases import SQUARE, Case, LongPrograms, Make, square_shape, uniform, wide

PROGRAMS = LongPrograms()

OTHERS = {"sum of x²": "add(b, d)", "max of x²": "maximum(b, d)", "arg max of x²": "select(p, b, d)"}
"""What stands beside the sum of x, and how the region makes it."""


def _pairs(other: str, shape: Callable[[int], tuple[int, ...]], dimensions: tuple[int, ...]) -> Make:
    """Σ x and something of x² in one reduction, as one array: the sums first. The index of an arg max is not shown."""
    indices = other.startswith("arg")

    def make(n: int, g: np.random.Generator) -> Case:
        dims = shape(n)
        x = uniform(g, *dims)
        kept = ",".join(str(size) for d, size in enumerate(dims) if d not in dimensions)
        s, k, r = f"f32[{','.join(map(str, dims))}]", f"s32[{','.join(map(str, dims))}]", f"f32[{kept}]"
        results = f"({r}, {r}, s32[{kept}])" if indices else f"({r}, {r})"
        both = f"f32[2{',' if kept else ''}{kept}]"
        rows = f"f32[1{',' if kept else ''}{kept}]"
        text = f"""HloModule long

{_region(other)}
ENTRY e {{
  x = {s} parameter(0)
  {SQUARE.format(s=s)}
  zero = f32[] constant(0)
  {f"i = {k} iota(), iota_dimension={dimensions[-1]}" if indices else ""}
  {"none = s32[] constant(0)" if indices else ""}
  t = {results} reduce(x, v, {"i, zero, zero, none" if indices else "zero, zero"}),
      dimensions={{{",".join(map(str, dimensions))}}}, to_apply=region
  first = {r} get-tuple-element(t), index=0
  second = {r} get-tuple-element(t), index=1
  a = {rows} reshape(first)
  b = {rows} reshape(second)
  ROOT r = {both} concatenate(a, b), dimensions={{0}}
}}
"""
        return Case(text, (x,), lambda: _exact(x, other, dimensions))

    return make


def _region(other: str) -> str:
    """Of (sum, other) or (sum, other, index) accumulators and elements."""
    if not other.startswith("arg"):
        return f"""region {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  c = f32[] parameter(2)
  d = f32[] parameter(3)
  x = f32[] add(a, c)
  y = f32[] {OTHERS[other]}
  ROOT t = (f32[], f32[]) tuple(x, y)
}}
"""
    return f"""region {{
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  i = s32[] parameter(2)
  c = f32[] parameter(3)
  d = f32[] parameter(4)
  j = s32[] parameter(5)
  x = f32[] add(a, c)
  p = pred[] compare(b, d), direction=GE
  y = f32[] {OTHERS[other]}
  k = s32[] select(p, i, j)
  ROOT t = (f32[], f32[], s32[]) tuple(x, y, k)
}}
"""


def _exact(x: np.ndarray, other: str, dimensions: tuple[int, ...]) -> np.ndarray:
    """In f64; NumPy adds up in pairs along rows, in order along columns."""
    squares = wide(x * x)
    second = squares.sum(dimensions) if other == "sum of x²" else squares.max(dimensions)
    return np.stack([wide(x).sum(dimensions), second])


for _other in OTHERS:
    PROGRAMS.add(f"sum of x and {_other}")(_pairs(_other, lambda n: (n,), (0,)))
    PROGRAMS.add(f"sum of x and {_other}, rows")(_pairs(_other, square_shape, (1,)))
    PROGRAMS.add(f"sum of x and {_other}, columns")(_pairs(_other, lambda n: (n // 16, 16), (0,)))
