"""Programs that back ends run: each with its name, its text, and what it is about. The evaluator has the results."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.ir import Module
from ...hlo.shapes import Shape


@dataclass(frozen=True, slots=True)
class Program:
    """tolerance: relative, of floats; 0 for the same values."""

    text: str
    tolerance: float = 0.0

    def module(self) -> Module:
        return parse_module(self.text)

    def inputs(self, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng(seed)
        shapes = [leaf for shape in self.module().parameter_shapes for _, leaf in shape.leaves() if leaf.is_array]
        return [drawn(rng, shape) for shape in shapes]


def drawn(rng: np.random.Generator, shape: Shape) -> np.ndarray:
    """Small numbers of a shape's type, of both signs where it has them."""
    dtype = shape.dtype
    low, high = -4, 4
    if dtype.is_integer or dtype is DType.PRED:
        most = 1 << min(dtype.bits - dtype.is_signed, 3)
        low, high = -min(most, 4) if dtype.is_signed else 0, most
    if dtype is DType.F8E8M0FNU:  # powers of two
        low = 1
    values = rng.integers(low, high, shape.dims)
    if dtype.is_complex:
        values = values + 1j * rng.integers(low, high, shape.dims)
    return np.asarray(values).astype(dtype.numpy)


def _entry(body: str, before: str = "") -> str:
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    return f"HloModule program\n{before}\nENTRY main {{\n{lines}\n}}\n"


ADD = "add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }"
LESS = "less { a = s32[] parameter(0) b = s32[] parameter(1) ROOT c = pred[] compare(a, b), direction=LT }"
BODY = """
body { t = (s32[], f32[4]) parameter(0) n = s32[] get-tuple-element(t), index=0 x = f32[4] get-tuple-element(t), index=1
one = s32[] constant(1) m = s32[] add(n, one) y = f32[4] add(x, x) ROOT r = (s32[], f32[4]) tuple(m, y) }
more { t = (s32[], f32[4]) parameter(0) n = s32[] get-tuple-element(t), index=0 k = s32[] constant(5)
ROOT c = pred[] compare(n, k), direction=LT }
"""
BRANCHES = """
twice { x = f32[4] parameter(0) ROOT y = f32[4] add(x, x) }
minus { x = f32[4] parameter(0) ROOT y = f32[4] negate(x) }
"""

PROGRAMS: dict[str, Program] = {
    "negate": Program(_entry("x = f32[8] parameter(0)\nROOT y = f32[8] negate(x)")),
    "constant": Program(_entry("ROOT c = f32[3] constant({1, -2.5, inf})")),
    "arithmetic": Program(
        _entry("""x = f32[2,3] parameter(0)\ny = f32[2,3] parameter(1)\ns = f32[2,3] add(x, y)
        d = f32[2,3] subtract(s, y)\nROOT m = f32[2,3] multiply(d, s)"""),
    ),
    "empty": Program(_entry("x = f32[0,4] parameter(0)\nROOT y = f32[0,4] negate(x)")),
    "scalar": Program(_entry("x = f32[] parameter(0)\nROOT y = f32[] add(x, x)")),
    "integers": Program(
        _entry("""x = s32[5] parameter(0)\ny = s32[5] parameter(1)\nROOT q = s32[5] divide(x, y)"""),
    ),
    "passed through": Program(_entry("x = f32[4] parameter(0)\nROOT r = (f32[4], f32[4]) tuple(x, x)")),
    "tuple": Program(
        _entry("""t = (f32[4], (s32[2], u8[3])) parameter(0)\na = f32[4] get-tuple-element(t), index=0
        u = (s32[2], u8[3]) get-tuple-element(t), index=1\nb = f32[4] negate(a)
        ROOT r = ((s32[2], u8[3]), f32[4]) tuple(u, b)"""),
    ),
    "tokens": Program(
        _entry("""k = token[] parameter(0)\nx = f32[4] parameter(1)\nt = (token[], s32[3]) parameter(2)
        i = s32[3] get-tuple-element(t), index=1\nn = f32[4] negate(x)\nj = s32[3] add(i, i)
        ROOT r = (token[], s32[3], token[], f32[4]) tuple(k, j, k, n)"""),
    ),
    "layouts": Program(
        _entry("""x = f32[2,3]{0,1} parameter(0)\ny = f32[2,3]{1,0} copy(x)\nROOT r = f32[2,3]{0,1} add(x, y)"""),
    ),
    "reduce": Program(
        _entry(
            """x = f32[6,5] parameter(0)\nz = f32[] constant(0)
        ROOT r = f32[6] reduce(x, z), dimensions={1}, to_apply=add""",
            ADD,
        ),
        1e-6,
    ),
    "dot": Program(
        _entry("""x = f32[4,6] parameter(0)\ny = f32[6,5] parameter(1)
        ROOT r = f32[4,5] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}"""),
        1e-6,
    ),
    "exponential": Program(_entry("x = f32[9] parameter(0)\nROOT y = f32[9] exponential(x)"), 1e-5),
    "sort": Program(_entry("x = s32[9] parameter(0)\nROOT y = s32[9] sort(x), dimensions={0}, to_apply=less", LESS)),
    "gather": Program(
        _entry("""x = f32[7,3] parameter(0)\ni = s32[4] parameter(1)
        ROOT r = f32[4,3] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0},
        index_vector_dim=1, slice_sizes={1,3}"""),
    ),
    "while": Program(
        _entry(
            """x = f32[4] parameter(0)\nn = s32[] constant(0)\nt = (s32[], f32[4]) tuple(n, x)
        ROOT w = (s32[], f32[4]) while(t), condition=more, body=body""",
            BODY,
        ),
    ),
    "conditional": Program(
        _entry(
            """p = pred[] parameter(0)\nx = f32[4] parameter(1)
        ROOT r = f32[4] conditional(p, x, x), true_computation=twice, false_computation=minus""",
            BRANCHES,
        ),
    ),
    **{
        f"copy of {dtype.value}": Program(
            _entry(f"x = {dtype.value}[3,2] parameter(0)\nROOT y = {dtype.value}[2,3] transpose(x), dimensions={{1,0}}")
        )
        for dtype in DType
        if dtype.is_array
    },
}
"""Name → program."""

FED = _entry("""t = token[] after-all()\ni = (f32[3], token[]) infeed(t)\nx = f32[3] get-tuple-element(i), index=0
y = f32[3] negate(x)\nu = token[] get-tuple-element(i), index=1\no = token[] outfeed(y, u), outfeed_shape=f32[3]
ROOT r = f32[3] add(x, x)""")
"""Reads its infeed, writes its outfeed."""
