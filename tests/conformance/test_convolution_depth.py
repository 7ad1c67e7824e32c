"""Convolutions whose vectors are along the depth: of few features, or of weights whose features are apart in memory."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...backends.base import CompileOptions
from ...backends.host.compiler import HostCompiler
from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, make_inputs, parsed
from ..support.convolutions import Spatial, text_of

ORDERS = {
    "weights by feature": [list("b01f"), list("o01i"), list("b01f")],
    "features innermost": [list("b01f"), list("01io"), list("b01f")],
    "images innermost in the result": [list("b01f"), list("o01i"), list("f01b")],
}
AXES = {
    "plain": Spatial(13, 3, 1, 1, 1, 1, 1, 0),
    "stride": Spatial(17, 3, 2, 1, 2, 1, 1, 0),
    "dilated": Spatial(15, 3, 1, 2, 2, 1, 2, 0),
    "reversed": Spatial(12, 4, 1, 1, 2, 1, 1, 1),
    "holes": Spatial(11, 4, 1, 2, 2, 2, 1, 0),
    "holes and a stride": Spatial(11, 3, 3, 2, 2, 2, 1, 0),
    "mostly padding": Spatial(3, 9, 1, 6, 6, 1, 1, 0),
    "sums of nothing": Spatial(9, 2, 1, 4, 4, 1, 1, 0),
    "cut": Spatial(16, 3, 1, -2, -1, 1, 1, 0),
    "one tap": Spatial(14, 1, 1, 0, 0, 1, 1, 0),
}
OTHER = Spatial(7, 3, 1, 1, 1, 1, 1, 0)


@pytest.mark.parametrize("axis", AXES)
@pytest.mark.parametrize("ins, outs", [(16, 1), (20, 3), (33, 13), (5, 2)])
def test_windows_of_every_kind(axis, ins, outs):
    for dtype in ("f32", "bf16"):
        check(text_of(dtype, [OTHER, AXES[axis]], 2, ins, outs, (1, 1), ORDERS["weights by feature"]))


@pytest.mark.parametrize("orders", ORDERS)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
@pytest.mark.parametrize("features", [(64, 1), (24, 2), (48, 5), (17, 7), (16, 12)])
def test_orders_and_dtypes(dtype, orders, features):
    ins, outs = features
    check(text_of(dtype, [OTHER, AXES["plain"]], 3, ins, outs, (1, 1), ORDERS[orders]))


@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_groups_and_long_sums(dtype):
    check(text_of(dtype, [OTHER, AXES["plain"]], 2, 24, 9, (3, 1), ORDERS["weights by feature"]))
    check(text_of(dtype, [Spatial(5, 5, 1, 1, 1, 1, 1, 0)] * 2, 2, 700, 6, (1, 1), ORDERS["weights by feature"]))
    check(text_of(dtype, [Spatial(9, 1, 1, 0, 0, 1, 1, 0)] * 2, 2, 9001, 2, (1, 1), ORDERS["weights by feature"]))


@pytest.mark.parametrize("rank", [1, 3])
def test_other_numbers_of_dimensions(rank):
    axes, places = [Spatial(60 if rank == 1 else 6, 3, 1, 1, 1, 1, 1, 0)] * rank, list("012"[:rank])
    orders = [["b", *places, "f"], ["o", *places, "i"], ["b", *places, "f"]]
    check(text_of("f32", axes, 4, 40, 3, (1, 1), orders))


@pytest.mark.parametrize("ins, outs", [(16, 1), (20, 3), (19, 11)])
def test_padding_is_not_multiplied_with_weights_that_are_not_finite(ins, outs):
    text = text_of("f32", [OTHER, AXES["plain"]], 2, ins, outs, (1, 1), ORDERS["weights by feature"])
    x, k = make_inputs(parsed(text), 1)
    k[0, 0, 0, 0], k[-1, -1, -1, -1], x[1, 3, 4, ins // 2] = np.inf, np.nan, -np.inf
    check(text, [x, k])


def _draw_axis(draw, most: int) -> Spatial:
    bounds = ((1, most), (1, 4), (1, 3), (-1, 4), (-1, 4), (1, 2), (1, 2), (0, 1))
    return Spatial(*(draw(st.integers(*b)) for b in bounds))


@st.composite
def deep(draw) -> str:
    axes = [_draw_axis(draw, 6), _draw_axis(draw, 20)]
    ins, outs = draw(st.integers(8, 70)), draw(st.integers(1, 9))
    groups = draw(st.sampled_from([(1, 1), (1, 1), (2, 1), (1, 2)]))
    orders = ORDERS[draw(st.sampled_from(sorted(ORDERS)))]
    kind = draw(st.sampled_from(("f32", "f64", "bf16", "f16", "s32", "s8", "f8e4m3fn", "c64")))
    return text_of(kind, axes, draw(st.integers(1, 5)), ins, outs, groups, orders)


@given(deep(), st.integers(0, 99))
def test_random_depths(text, seed):
    check(text, seed=seed)


EPILOGUE = """HloModule m
ENTRY e {
  x = f32[1,18,19,32] parameter(0)
  k = f32[3,3,32,3] parameter(1)
  bias = f32[3] parameter(2)
  c = f32[1,18,19,3] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  b = f32[1,18,19,3] broadcast(bias), dimensions={3}
  s = f32[1,18,19,3] add(c, b)
  ROOT r = f32[1,18,19,3] tanh(s)
}
"""


def test_ops_that_follow():
    check(EPILOGUE)


@pytest.mark.parametrize("cpu", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_programs_share_the_products(stack, cpu):
    """A kernel has none itself; the function is the same for images and depths of any size."""
    options = EmitOptions(Target.level(cpu))

    def emitted(size: int, ins: int):
        text = text_of("f32", [Spatial(size, 3, 1, 1, 1, 1, 1, 0)] * 2, 1, ins, 3, (1, 1), ORDERS["weights by feature"])
        return emitter(stack).emit(plan(parsed(text)).kernels, options)

    small, large = emitted(18, 64), emitted(42, 192)
    assert len(small.helpers) == 1 and small.helpers == large.helpers
    for module in (small, large):
        code = optimize(module.llvm_ir, options)
        assert len(re.findall(r"call .*@\"?(?:legacy|mlir)\.depth", code)) == 1
        assert "fmul" not in code and "llvm.fma" not in code


FOR_THREADS = {
    "rows": ("f32[1,65,67,16]", "f32[1,3,3,16]", "f32[1,65,67,1]", "size=3x3 pad=1_1x1_1"),
    "features of one position": ("f32[1,7,7,512]", "f32[512,7,7,512]", "f32[1,1,1,512]", "size=7x7"),
    "features of few images": ("f32[3,3,3,512]", "f32[510,3,3,512]", "f32[3,1,1,510]", "size=3x3"),
}


@pytest.mark.parametrize("case", FOR_THREADS)
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_threads_share_them(stack, case):
    x, k, r, window = FOR_THREADS[case]
    text = f"""HloModule m
    ENTRY e {{ x = {x} parameter(0)
      k = {k} parameter(1)
      ROOT r = {r} convolution(x, k), window={{{window}}}, dim_labels=b01f_o01i->b01f }}"""
    for cpu in ("x86-64-v3", "x86-64-v4"):
        options = EmitOptions(Target.level(cpu), ranges=True)
        (kernel,) = HostCompiler().run_hlo_passes(parsed(text), CompileOptions(emit=options)).kernels
        assert kernel.partition is not None
        assert kernel.name in emitter(stack).emit([kernel], options).ranged
    check(text)
