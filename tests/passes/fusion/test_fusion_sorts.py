"""Slices of sorted rows (top-k): the sorting kernel writes only the slices; the full sorted arrays are never stored."""

from __future__ import annotations

import re

import numpy as np
import pytest

from .... import legacy
from ....codegen.options import EmitOptions, Target
from ....formats.text.parser import parse_module
from ....formats.text.printer import print_module
from ....hlo.opcodes import Op
from ....lhlo import from_kernels, parse_text, to_kernels
from ....passes.pipeline import optimize
from ....planning.planner import plan
from ....planning.scratch import ON_STACK, scratch_bytes
from ...support.check import check

ORDER = """HloModule m
alone { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT less = pred[] compare(p, q), direction=GT, type=TOTALORDER }
pairs { p = f32[] parameter(0)
  q = f32[] parameter(1)
  n = s32[] parameter(2)
  m = s32[] parameter(3)
  ROOT less = pred[] compare(p, q), direction=GT, type=TOTALORDER }
"""

TOPK = """HloModule m
ENTRY e {{
  x = f32[{dims}] parameter(0)
  ROOT best = (f32[{cut}], s32[{cut}]) topk(x), k={k}, largest=true
}}
"""

PAIRS = """ENTRY e {{
  x = f32[{dims}]{layout} parameter(0)
  n = s32[{dims}]{layout} iota(), iota_dimension={d}
  both = (f32[{dims}]{layout}, s32[{dims}]{layout}) sort(x, n), dimensions={{{d}}}, is_stable=true, to_apply=pairs
  v = f32[{dims}]{layout} get-tuple-element(both), index=0
  i = s32[{dims}]{layout} get-tuple-element(both), index=1
  first = f32[{a}]{layout} slice(v), slice={{{va}}}
  last = s32[{b}]{layout} slice(i), slice={{{vb}}}
  ROOT t = (f32[{a}]{layout}, s32[{b}]{layout}) tuple(first, last)
}}
"""

ALONE = """ENTRY e {{
  x = f32[6,{n}] parameter(0)
  y = f32[6,{n}] negate(x)
  s = f32[6,{n}] sort(y), dimensions={{1}}, to_apply=alone
  {rest}
}}
"""


def rows(*dims: int) -> np.ndarray:
    """Rows with many equal values, zeros of both signs and special values."""
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, dims).astype(np.float32)
    flat = x.reshape(-1)
    flat[rng.random(flat.size) < 0.1] = -0.0
    flat[:: max(flat.size // 7, 1)] = np.nan
    flat[1 :: max(flat.size // 5, 2)] = -np.inf
    return x


def pairs(dims: tuple[int, ...], d: int, v: tuple[int, int], i: tuple[int, int], layout: str = "") -> str:
    def cut(bounds: tuple[int, int]) -> tuple[str, str]:
        sizes = [bounds[1] - bounds[0] if k == d else size for k, size in enumerate(dims)]
        spans = [bounds if k == d else (0, size) for k, size in enumerate(dims)]
        return ",".join(map(str, sizes)), ", ".join(f"[{a}:{b}]" for a, b in spans)

    (a, va), (b, vb) = cut(v), cut(i)
    text = PAIRS.format(dims=",".join(map(str, dims)), layout=layout, d=d, a=a, b=b, va=va, vb=vb)
    return ORDER + text


@pytest.mark.parametrize(("n", "k"), [(64, 5), (16, 3), (17, 16), (2, 1), (1500, 9), (40, 40)])
def test_topk(n, k):
    text = TOPK.format(dims=f"7,{n}", cut=f"7,{k}", k=k)
    made = plan(parse_module(text))
    (step,) = made.walk()
    arena = sum(a.size for a in made.assignment.allocations if a.kind.value == "temporary")
    assert arena == scratch_bytes(step.instruction)
    assert (arena > ON_STACK) == (n >= 40)  # such rows may go by digits, and have room for counts
    check(text, [rows(7, n)])


@pytest.mark.parametrize(
    ("dims", "d", "v", "i", "layout"),
    [
        ((5, 70), 1, (3, 9), (60, 70), ""),
        ((70, 5), 0, (0, 33), (1, 2), ""),
        ((3, 20, 4), 1, (19, 20), (0, 19), ""),
        ((5, 70), 1, (0, 6), (6, 70), "{0,1}"),
        ((30,), 0, (10, 12), (0, 30), ""),
        ((4, 9), 1, (2, 3), (8, 9), ""),
    ],
)
def test_parts_differ(dims, d, v, i, layout):
    """Slices anywhere in the row, of other sizes; any dimension and layout; short rows and a single row."""
    text = pairs(dims, d, v, i, layout)
    check(text, [rows(*dims)])


def kernels(rest: str) -> list[list[Op]]:
    made = plan(parse_module(ORDER + ALONE.format(n=50, rest=rest)))
    steps = [s.instruction for s in made.walk()]
    bodies = [s.called()[0].instructions if s.opcode is Op.FUSION else (s,) for s in steps]
    return [[i.opcode for i in body if i.opcode in (Op.SORT, Op.SLICE)] for body in bodies]


def test_what_is_read_whole_or_twice_is_stored():
    one = "ROOT p = f32[6,4] slice(s), slice={[0:6], [3:7]}"
    assert kernels(one) == [[Op.SORT, Op.SLICE]]
    assert kernels(one.replace("ROOT ", "") + "\n e = f32[6,4] exponential(p)\n ROOT t = f32[6,4] add(p, e)") == [
        [Op.SORT, Op.SLICE],
        [],
    ]
    both = one.replace("ROOT ", "") + "\n q = f32[6,4] slice(s), slice={[0:6], [46:50]}\n ROOT t = f32[6,4] add(p, q)"
    assert kernels(both) == [[Op.SORT], [Op.SLICE, Op.SLICE]]
    for rest in (
        one.replace("ROOT ", "") + "\n ROOT t = (f32[6,4], f32[6,50]) tuple(p, s)",
        "ROOT p = f32[6,10] slice(s), slice={[0:6], [0:50:5]}",
        "ROOT p = f32[3,4] slice(s), slice={[0:3], [0:4]}",
    ):
        assert [Op.SORT] in kernels(rest)
        check(ORDER + ALONE.format(n=50, rest=rest), [rows(6, 50)])
    check(ORDER + ALONE.format(n=50, rest=one), [rows(6, 50)])


def test_same_llvm_ir_from_lhlo():
    kernels_ = plan(parse_module(pairs((5, 18), 1, (3, 9), (10, 18)))).kernels
    options = EmitOptions(Target.host())
    read_back = to_kernels(parse_text(from_kernels(kernels_).to_text()))
    text = legacy.emit(kernels_, options).llvm_ir
    assert legacy.emit(read_back, options).llvm_ir == text
    assert len(re.findall(r"alloca", text)) == 1


@pytest.mark.parametrize("pieces", ["both", "one"])
def test_a_scheduled_modules_own_fusion_is_one_kernel(pieces):
    """A fusion made by `fuse` stays unchanged after printing and parsing."""
    text = pairs((5, 70), 1, (3, 9), (60, 70))
    if pieces == "one":
        text = ORDER + ALONE.format(n=50, rest="ROOT p = f32[6,4] slice(s), slice={[0:6], [3:7]}")
    fused = optimize(parse_module(text))
    printed = print_module(fused).replace("HloModule m", "HloModule m, is_scheduled=true", 1)
    assert "is_scheduled" in printed
    assert len(list(plan(parse_module(printed)).walk())) == 1
    check(printed)
