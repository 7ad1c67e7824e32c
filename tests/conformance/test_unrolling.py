"""Loops that LLVM must not unroll too early: short rows of convolutions become vectors, copies stay loops."""

from __future__ import annotations

import re

import numpy as np
import pytest

from ... import legacy, mlir_emitters
from ...backends.base import CompileOptions
from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...formats.text.parser import parse_module
from ...migration import Flags, compile_module
from ...planning.planner import plan
from ..support.check import check

STACKS = ["legacy", "mlir"]

CONVOLUTION = """HloModule m

ENTRY e {{
  x = f32[1,9,{w},8] parameter(0)
  k = f32[3,3,8,{o}] parameter(1)
  ROOT c = f32[1,9,{w},{o}] convolution(x, k), window={{size=3x3 pad=1_1x{pad}}}, dim_labels=b01f_01io->b01f
}}
"""

PRODUCT = """HloModule m

ENTRY e {{
  x = f32[{r},{d}] parameter(0)
  y = f32[{d},{c}] parameter(1)
  p = f32[{r},{c}] dot(x, y), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}
  ROOT result = f32[{r},{c}] {after}
}}
"""


def optimized(text: str, stack: str) -> str:
    options = CompileOptions(cache=None, keep_stages=True)
    stages = compile_module(parse_module(text), Flags.parse(stack), options).stages
    (found,) = [t for name, t in stages if name.endswith("optimized.ll")]
    return found


def with_functions(text: str, stack: str) -> str:
    """The same with the functions that the kernel shares with others."""
    stages = compile_module(parse_module(text), Flags.parse(stack), CompileOptions(cache=None, keep_stages=True)).stages
    helpers = [optimize(t, EmitOptions.host()) for name, t in stages if re.search(r"helper\d+\.ll$", name)]
    return "\n".join([optimized(text, stack), *helpers])


def numbers(text: str) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = [tuple(map(int, d.split(","))) for d in re.findall(r"f32\[([\d,]+)\] parameter", text)]
    return [rng.normal(size=shape).astype(np.float32) for shape in shapes]


@pytest.mark.skipif(Target.host().vector_bits < 256, reason="eight floats are no vector here")
@pytest.mark.parametrize("stack", STACKS)
def test_eight_output_features_are_one_vector(stack):
    """If unrolled before vectorisation, they become scalars, which SLP combines in other ways, with shuffles."""
    text = with_functions(CONVOLUTION.format(w=9, pad="1_1", o=8), stack)
    sums = re.findall(r"= (?:fadd|fmul|(?:tail )?call)[^\n]*?(<\d+ x float>|float) ", text)
    assert "<8 x float>" in sums and "float" not in sums


@pytest.mark.parametrize(
    ("w", "pad", "o"), [(9, "1_1", 8), (6, "0_2", 6), (5, "2_0", 16), (7, "3_2", 3), (2, "1_1", 4)]
)
def test_positions_beside_those_whose_window_is_inside(w, pad, o):
    """Border positions at both ends, at one end, at several: they share their code."""
    low, high = map(int, pad.split("_"))
    text = CONVOLUTION.format(w=w, pad=pad, o=o).replace(f"[1,9,{w},{o}]", f"[1,9,{w + low + high - 2},{o}]")
    check(text, numbers(text))


@pytest.mark.parametrize("after", ["copy(p)", "tanh(p)"])
@pytest.mark.parametrize(("r", "d", "c"), [(37, 37, 37), (20, 300, 21), (7, 520, 76), (4, 64, 70), (5, 30, 129)])
def test_products_whose_last_panel_is_narrow(r, d, c, after):
    """One block of the depth, or several; a partial vector at the end, or several."""
    text = PRODUCT.format(r=r, d=d, c=c, after=after)
    check(text, numbers(text))


@pytest.mark.parametrize("cpu, most", [("x86-64-v2", 500), ("x86-64-v3", 900), ("x86-64-v4", 450)])
@pytest.mark.parametrize("stack", STACKS)
def test_the_copies_around_a_tile_stay_small(stack, cpu, most):
    """37 columns do not fill a panel. Unrolled copies would be larger than the code of the product."""
    options = EmitOptions(Target.level(cpu))
    kernels = plan(parse_module(PRODUCT.format(r=37, d=37, c=37, after="copy(p)"))).kernels
    emitted = {"legacy": legacy, "mlir": mlir_emitters}[stack].emit(kernels, options)
    text = optimize(emitted.llvm_ir, options)
    assert len(re.findall(r"^  \S", text, re.MULTILINE)) < most


@pytest.mark.parametrize("result, order", [("3,3,48,40", (2, 3, 1, 0)), ("5,3,3,64", (3, 0, 1, 2))])
@pytest.mark.parametrize("stack", STACKS)
def test_transposes_of_small_windows_are_not_copied_for_each_position(stack, result, order):
    """Each copy would put vectors together element by element."""
    sizes = result.split(",")
    operand = ",".join(sizes[order.index(d)] for d in range(4))
    dimensions = ",".join(map(str, order))
    text = f"""HloModule m
    ENTRY e {{ x = f32[{operand}] parameter(0)
      ROOT r = f32[{result}] transpose(x), dimensions={{{dimensions}}} }}"""
    assert len(re.findall(r"^  \S", optimized(text, stack), re.MULTILINE)) < 250
    check(text)
