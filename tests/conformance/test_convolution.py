"""Convolutions of every form agree on the evaluator and both stacks: windows, dilations, groups, layouts, dtypes."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ... import legacy
from ...codegen.optimize import optimize
from ...codegen.options import EmitOptions, Target
from ...hlo.opcodes import Op
from ...lhlo import from_kernels, parse_text, to_kernels
from ...migration.choose import emitter
from ...planning.planner import plan
from ..support.check import check, make_inputs, parsed, run_stack
from ..support.convolutions import Spatial, text_of

KINDS = ("f32", "f64", "s32", "u8", "bf16", "f16", "c64", "f8e4m3fn", "s4", "pred")


@st.composite
def spatial(draw, largest: int) -> Spatial:
    numbers = [draw(st.integers(*r)) for r in ((1, largest), (1, 4), (1, 3), (-2, 4), (-2, 4), (1, 3), (1, 3), (0, 1))]
    return Spatial(*numbers)


@st.composite
def convolutions(draw) -> str:
    rank = draw(st.integers(0, 3))
    axes = [draw(spatial(6 if rank > 1 else 30)) for _ in range(rank)]
    features, batches = draw(st.sampled_from([(1, 1), (1, 1), (3, 1), (9, 1), (1, 2)]))
    ins, outs = draw(st.sampled_from([1, 2, 5, 16])), draw(st.sampled_from([1, 2, 9, 4, 8, 16, 32]))
    batch = draw(st.integers(1, 2))
    places = [str(n) for n in range(rank)]
    orders = [draw(st.permutations(["b", "f", *places])), draw(st.permutations(["i", "o", *places]))]
    orders.append(draw(st.permutations(["b", "f", *places])))
    layouts = [draw(st.permutations(range(rank + 2))) for _ in range(3)] if draw(st.booleans()) else None
    return text_of(draw(st.sampled_from(KINDS)), axes, batch, ins, outs, (features, batches), orders, layouts)


@settings(max_examples=settings().max_examples * 4 // 3)
@given(convolutions(), st.integers(0, 99))
def test_random_convolutions(text, seed):
    check(text, seed=seed)


FORMS = {
    "dense, features last": ("b01f", "01io", "b01f", 8, 20, (1, 1)),
    "dense, features first": ("bf01", "oi01", "bf01", 6, 9, (1, 1)),
    "depthwise, features last": ("b01f", "01io", "b01f", 1, 1, (40, 1)),
    "depthwise, features first": ("bf01", "oi01", "bf01", 1, 1, (12, 1)),
    "depthwise, several a group": ("b01f", "01io", "b01f", 1, 2, (10, 1)),
    "one feature": ("b01f", "01io", "b01f", 1, 1, (1, 1)),
    "gradient of the kernel": ("f01b", "i01o", "01bf", 6, 9, (1, 1)),
    "gradient of the input": ("b01f", "01oi", "b01f", 9, 6, (1, 1)),
    "batch groups": ("b01f", "01io", "b01f", 5, 9, (1, 3)),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", ["f32", "bf16", "s8"])
def test_forms_large_enough_for_tiles(form, kind):
    left, right, result, ins, outs, groups = FORMS[form]
    axes = [Spatial(13, 3, 1, 1, 1, 1, 1, 0), Spatial(17, 5, 2, 3, 2, 1, 1, 0)]
    check(text_of(kind, axes, 2, ins, outs, groups, [list(left), list(right), list(result)]))


IN_REGISTERS = {
    "a vector": (13, 16),
    "part of a vector": (13, 8),
    "vectors and a part": (5, 36),
    "no whole vector": (6, 10),
    "several tiles": (3, 160),
    "many input features": (700, 24),
}
"""Input and output features of convolutions whose sums are held in vector registers."""


@pytest.mark.parametrize("features", IN_REGISTERS)
@pytest.mark.parametrize("kind", ["f32", "f64", "bf16", "f16"])
def test_sums_in_registers(features, kind):
    ins, outs = IN_REGISTERS[features]
    axes = [Spatial(6, 3, 1, 1, 1, 1, 1, 0), Spatial(11, 3, 1, 1, 1, 1, 1, 0)]
    check(text_of(kind, axes, 2, ins, outs, (1, 1), [list("b01f"), list("01io"), list("b01f")]))


@pytest.mark.parametrize(
    "axis",
    [
        Spatial(11, 4, 2, 1, 2, 1, 1, 1),
        Spatial(8, 3, 1, 2, 1, 2, 1, 0),
        Spatial(13, 3, 3, 0, -1, 1, 2, 0),
        Spatial(2, 2, 1, 1, 1, 1, 1, 0),
    ],
)
def test_sums_in_registers_for_windows_of_every_kind(axis):
    orders = [list("b01f"), list("01io"), list("b01f")]
    check(text_of("f32", [Spatial(5, 2, 1, 0, 1, 1, 1, 0), axis], 7, 33, 32, (1, 1), orders))


WITH_EPILOGUE = """HloModule m
ENTRY e {
  x = f32[2,12,12,16] parameter(0)
  k = f32[3,3,16,16] parameter(1)
  bias = f32[16] parameter(2)
  c = f32[2,12,12,16] convolution(x, k), window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f
  b = f32[2,12,12,16] broadcast(bias), dimensions={3}
  s = f32[2,12,12,16] add(c, b)
  ROOT r = f32[2,12,12,16] add(s, x)
}
"""


@pytest.mark.parametrize("features", [16, 17, 35])
def test_ops_that_follow_sums_in_registers_see_each_result_once(features):
    """17, 35: the last vector holds features that the one before it has stored."""
    check(WITH_EPILOGUE.replace("16", str(features)))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_code_does_not_grow_with_the_sizes_of_a_convolution(stack):
    """What a convolution takes to compile: products in the IR, which LLVM neither unrolls nor multiplies."""

    def products(size: int, features: int) -> int:
        axes = [Spatial(size, 3, 1, 1, 1, 1, 1, 0)] * 2
        text = text_of("f32", axes, 2, features, features, (1, 1), [list("b01f"), list("01io"), list("b01f")])
        options = EmitOptions(Target.level("x86-64-v3"))
        emitted = emitter(stack).emit(plan(parsed(text)).kernels, options)
        lines = [line for t in (emitted.llvm_ir, *emitted.helpers) for line in optimize(t, options).splitlines()]
        return sum("fmul" in line or "llvm.fma" in line for line in lines if not line.startswith("declare"))

    small, large, odd = products(16, 32), products(100, 256), products(29, 65)
    assert 0 < small < 40 and 0 < large < 40 and 0 < odd < 60


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_tiles_and_the_positions_beside_them_share_a_call(stack):
    """LLVM copies it neither for the border nor for conditions that are the same in all iterations."""
    axes = [Spatial(40, 3, 1, 1, 1, 1, 1, 0)] * 2
    text = text_of("f32", axes, 2, 64, 64, (1, 1), [list("b01f"), list("01io"), list("b01f")])
    options = EmitOptions(Target.level("x86-64-v4"))
    emitted = emitter(stack).emit(plan(parsed(text)).kernels, options)
    assert len(re.findall(r"call .*@\"?(?:legacy|mlir)\.window", optimize(emitted.llvm_ir, options))) == 1


@pytest.mark.parametrize("low", [1, 4])
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16"])
def test_tiles_and_the_positions_beside_them(dtype, low):
    """low: 4 positions of padding, more than the window has: some results are sums of nothing."""
    axes = [Spatial(6, 3, 1, low, low, 1, 1, 0), Spatial(23, 3, 1, 1, 1, 1, 1, 0)]
    orders = [list("b01f"), list("01io"), list("b01f")]
    check(text_of(dtype, axes, 2, 70, 64, (1, 1), orders))


CHANNELS_LAST = [list("b01f"), list("01io"), list("b01f")]


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_depthwise_convolutions_share_their_products(stack):
    """A kernel calls them once, and has none itself; the function is the same for images and channels of any size."""

    def emitted(size: int, channels: int):
        axes = [Spatial(size, 3, 1, 1, 1, 1, 1, 0)] * 2
        text = text_of("f32", axes, 2, 1, 1, (channels, 1), CHANNELS_LAST)
        return emitter(stack).emit(plan(parsed(text)).kernels, options)

    options = EmitOptions(Target.level("x86-64-v3"))
    small, large = emitted(18, 64), emitted(34, 192)
    assert len(small.helpers) == 1 and small.helpers == large.helpers
    for module in (small, large):
        code = optimize(module.llvm_ir, options)
        assert len(re.findall(r"call .*@\"?(?:legacy|mlir)\.channels", code)) == 1
        assert "fmul" not in code and "llvm.fma" not in code


DEPTHWISE = {
    "taps share": (Spatial(21, 3, 1, 1, 1, 1, 1, 0), 64),
    "many taps share": (Spatial(19, 5, 1, 2, 2, 1, 1, 0), 32),
    "reversed": (Spatial(14, 4, 1, 1, 2, 1, 1, 1), 64),
    "stride": (Spatial(31, 3, 2, 1, 1, 1, 1, 0), 96),
    "stride and dilation": (Spatial(33, 3, 2, 2, 1, 1, 2, 0), 48),
    "holes": (Spatial(12, 3, 1, 2, 2, 2, 1, 0), 64),
    "nothing whole": (Spatial(4, 9, 1, 4, 4, 1, 1, 0), 128),
    "no border": (Spatial(14, 3, 1, 0, 0, 1, 1, 0), 64),
    "sums of nothing": (Spatial(16, 3, 1, 5, 4, 1, 1, 0), 64),
    "runs of channels and a rest": (Spatial(6, 3, 1, 1, 1, 1, 1, 0), 528),
    "channels that fill no vector": (Spatial(16, 3, 1, 1, 1, 1, 1, 0), 67),
}


@pytest.mark.parametrize("form", DEPTHWISE)
@pytest.mark.parametrize("dtype", ["f32", "f64", "bf16", "f16"])
def test_depthwise_convolutions(dtype, form):
    axis, channels = DEPTHWISE[form]
    check(text_of(dtype, [Spatial(6, 3, 1, 1, 1, 1, 1, 0), axis], 2, 1, 1, (channels, 1), CHANNELS_LAST))


def test_depthwise_convolutions_of_one_dimension_and_of_a_batch_of_places():
    for axis in (Spatial(200, 4, 1, 3, 0, 1, 1, 0), Spatial(2, 2, 1, 0, 0, 1, 1, 0)):
        check(text_of("f32", [axis], 40, 1, 1, (256, 1), [list("b0f"), list("0io"), list("b0f")]))


GROUPED_INSIDE = """HloModule m, is_scheduled=true
inside {
  x = f32[4,5,2]{2,1,0} parameter(0)
  k = f32[3,%d,6]{2,1,0} parameter(1)
  c = f32[%d,3,6]{2,1,0} convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f, %s
  s = f32[%d,2,6]{2,1,0} slice(c), slice={[0:%d], [1:3], [0:6]}
  ROOT r = f32[%d,2,6]{2,1,0} reverse(s), dimensions={1,2}
}
ENTRY e {
  x = f32[4,5,2]{2,1,0} parameter(0)
  k = f32[3,%d,6]{2,1,0} parameter(1)
  ROOT f = f32[%d,2,6]{2,1,0} fusion(x, k), kind=kLoop, calls=inside
}
"""


@pytest.mark.parametrize("group, ins, batch", [("batch_group_count=2", 2, 2), ("feature_group_count=2", 1, 4)])
def test_groups_of_a_convolution_whose_elements_are_read_by_others(group, ins, batch):
    check(GROUPED_INSIDE % (ins, batch, group, batch, batch, batch, ins, batch))


@pytest.mark.parametrize("axis", [Spatial(3, 2, 1, -2, -2, 1, 1, 0), Spatial(0, 2, 1, 2, 2, 1, 1, 0)])
def test_nothing_to_read(axis):
    check(text_of("f32", [axis], 1, 2, 9, (1, 1), [list("b0f"), list("0io"), list("b0f")]))


@pytest.mark.parametrize("kind", ["f8e4m3fn", "f8e5m2"])
def test_sums_of_small_floats_round_through_f16(kind):
    """XLA:CPU rounds this way. The comparison rule alone would accept a wrong last bit."""
    axes = [Spatial(16, 3, 1, 1, 1, 1, 1, 0), Spatial(16, 3, 1, 1, 1, 1, 1, 0)]
    text = text_of(kind, axes, 1, 16, 16, (2, 1), [list("b01f"), list("01io"), list("b01f")])
    inputs = make_inputs(parsed(text), 3)
    expected, *others = (run_stack(text, stack, inputs)[0].tobytes() for stack in ("evaluator", "legacy", "mlir"))
    assert others == [expected, expected]


@pytest.mark.parametrize("form", FORMS)
def test_padding_and_holes_are_not_multiplied_with_weights_that_are_not_finite(form):
    left, right, result, ins, outs, groups = FORMS[form]
    axes = [Spatial(5, 3, 1, 1, 1, 1, 1, 0), Spatial(6, 2, 1, 1, 1, 2, 1, 0)]
    text = text_of("f32", axes, 2, ins, outs, groups, [list(left), list(right), list(result)])
    x, k = make_inputs(parsed(text), 1)
    k[(0,) * 4], k[(-1,) * 4], k[tuple(n // 2 for n in k.shape)] = np.inf, np.nan, -np.inf
    check(text, [x, k])


@pytest.mark.parametrize("form", ["dense, features last", "depthwise, features first", "gradient of the input"])
def test_the_same_llvm_ir_from_hlo_and_lhlo(form):
    left, right, result, ins, outs, groups = FORMS[form]
    axes = [Spatial(9, 3, 1, 1, -1, 2, 1, 1), Spatial(7, 2, 2, 0, 2, 1, 2, 0)]
    text = text_of("f32", axes, 2, ins, outs, groups, [list(left), list(right), list(result)])
    (kernel,) = plan(parsed(text)).kernels
    assert kernel.instruction.opcode is Op.CONVOLUTION
    (read_back,) = to_kernels(parse_text(from_kernels([kernel]).to_text()))
    options = EmitOptions(Target.host())
    assert legacy.emit([read_back], options) == legacy.emit([kernel], options)


def test_operands_of_two_types():
    check(
        """HloModule m
ENTRY e {
  x = s8[2,9,4] parameter(0)
  k = s8[3,4,16] parameter(1)
  ROOT c = s32[2,7,16] convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f
}
""",
    )


@pytest.mark.parametrize("attribute", ["algorithm=dot_bf16_bf16_f32", "algorithm=dot_f64_f64_f64"])
def test_an_algorithm_is_a_hint_that_changes_no_number(attribute):
    """As on XLA:CPU, where f32 factors are not rounded to bf16 for it."""
    text = """HloModule m
    ENTRY e {{
      x = f32[2,9,3] parameter(0)
      k = f32[2,3,4] parameter(1)
      ROOT c = f32[2,8,4] convolution(x, k), window={{size=2}}, dim_labels=b0f_0io->b0f{}
    }}"""
    inputs = make_inputs(parsed(text.format("")))
    check(text.format(f", {attribute}"), inputs)
    for stack in ("evaluator", "legacy", "mlir"):
        with_it = run_stack(text.format(f", {attribute}"), stack, inputs)
        np.testing.assert_array_equal(with_it, run_stack(text.format(""), stack, inputs))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_neighbours_of_bf16_are_read_as_words_where_registers_are_few(stack):
    """A factor is then one operation, not the four that bring a number from an integer register into each lane."""
    axes = [Spatial(20, 3, 1, 1, 1, 1, 1, 0)] * 2
    text = text_of("bf16", axes, 1, 32, 32, (1, 1), CHANNELS_LAST)
    options = EmitOptions(Target.level("x86-64-v3"))
    (helper,) = emitter(stack).emit(plan(parsed(text)).kernels, options).helpers
    code = optimize(helper, options)
    assert re.search(r"load <(?:1 x i32|2 x i16)>", code) and not re.search(r"load i16|zext i16", code)


@pytest.mark.parametrize("ins", [32, 33, 402, 642])
def test_odd_and_even_numbers_of_bf16(ins):
    """402, 642: they are added up in parts."""
    axes = [Spatial(5, 3, 1, 1, 1, 1, 1, 0), Spatial(13, 3, 1, 1, 1, 1, 1, 0)]
    check(text_of("bf16", axes, 1, ins, 32, (1, 1), CHANNELS_LAST))
