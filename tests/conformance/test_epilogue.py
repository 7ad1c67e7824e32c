"""A dot or convolution and the elementwise ops behind it are one kernel on both stacks, and keep their result."""

import pytest

from ... import legacy
from ...codegen.options import EmitOptions, Target
from ...hlo.opcodes import Op
from ...lhlo import from_kernels, parse_text, to_kernels
from ...planning.plan import KernelRequest
from ...planning.planner import plan
from ..support.check import check, parsed

DOTS = {
    "matrix": ("{t}[37,70]", "{t}[70,45]", "[37,45]", "lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"),
    "transposed": ("{t}[70,37]", "{t}[45,70]", "[37,45]", "lhs_contracting_dims={{0}}, rhs_contracting_dims={{1}}"),
    "deep": ("{t}[9,700]", "{t}[700,130]", "[9,130]", "lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"),
    "heads": ("{t}[2,9,40]", "{t}[40,4,16]", "[2,9,4,16]", "lhs_contracting_dims={{2}}, rhs_contracting_dims={{0}}"),
    "batch": (
        "{t}[3,19,30]", "{t}[3,30,40]", "[3,19,40]",
        "lhs_batch_dims={{0}}, rhs_batch_dims={{0}}, lhs_contracting_dims={{2}}, rhs_contracting_dims={{1}}",
    ),
    "two contracted": (
        "{t}[20,6,8]", "{t}[6,8,33]", "[20,33]",
        "lhs_contracting_dims={{1,2}}, rhs_contracting_dims={{0,1}}",
    ),
    "vector": ("{t}[50]", "{t}[50,64]", "[64]", "lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}}"),
    "narrow": ("{t}[64,50]", "{t}[50,3]", "[64,3]", "lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}"),
}  # fmt: skip


def dot_text(form: str, kind: str) -> str:
    """min(a², a) - max(r, 0) with a = x·w + bias. The array max(r, 0) has its last use here."""
    left, right, dims, numbers = (part.format(t=kind) for part in DOTS[form])
    shape, last = f"{kind}{dims}", dims[1:-1].split(",")
    return f"""HloModule m
ENTRY e {{
  x = {left} parameter(0)
  w = {right} parameter(1)
  bias = {kind}[{last[-1]}] parameter(2)
  r = {shape} parameter(3)
  zero = {kind}[] constant(0)
  z = {shape} broadcast(zero), dimensions={{}}
  dying = {shape} maximum(r, z)
  d = {shape} dot(x, w), {numbers}
  b = {shape} broadcast(bias), dimensions={{{len(last) - 1}}}
  a = {shape} add(d, b)
  s = {shape} multiply(a, a)
  n = {shape} minimum(s, a)
  ROOT o = {shape} subtract(n, dying)
}}
"""


def product_kernel(text: str) -> KernelRequest:
    """The only kernel of the plan, a fusion with a dot or convolution."""
    (kernel,) = plan(parsed(text)).kernels
    assert kernel.body is not None
    assert {Op.DOT, Op.CONVOLUTION} & {i.opcode for i in kernel.body.instructions}
    assert kernel.instruction.attributes["kind"] == "kOutput"
    return kernel


@pytest.mark.parametrize("kind", ["f32", "f64", "bf16", "s8", "c64"])
@pytest.mark.parametrize("form", DOTS)
def test_dots(form, kind):
    if kind == "c64":
        text = dot_text(form, kind).replace("maximum(r, z)", "negate(r)").replace("minimum(s, a)", "add(s, a)")
    else:
        text = dot_text(form, kind)
    product_kernel(text)
    check(text)


@pytest.mark.parametrize("layout", ["0,1", "1,0"])
@pytest.mark.parametrize("square", [True, False])
def test_results_whose_columns_are_the_left_operands(layout, square):
    """With and without an epilogue. square: a product of one operand with itself."""
    right, inner = ("x", 1) if square else ("w", 0)
    text = f"""HloModule m
ENTRY e {{
  x = f32[37,70] parameter(0)
  w = f32[70,37] parameter(1)
  d = f32[37,37]{{{layout}}} dot(x, {right}), lhs_contracting_dims={{1}}, rhs_contracting_dims={{{inner}}}
  c = f32[37,37]{{{layout}}} dot(w, x), lhs_contracting_dims={{0}}, rhs_contracting_dims={{1}}
  n = f32[37,37]{{{layout}}} tanh(c)
  ROOT t = (f32[37,37]{{{layout}}}, f32[37,37]{{{layout}}}) tuple(d, n)
}}
"""
    check(text)


@pytest.mark.parametrize("form", ["matrix", "batch", "heads"])
def test_the_same_llvm_ir_from_hlo_and_lhlo(form):
    kernel = product_kernel(dot_text(form, "f32"))
    (read_back,) = to_kernels(parse_text(from_kernels([kernel]).to_text()))
    options = EmitOptions(Target.host())
    assert legacy.emit([read_back], options) == legacy.emit([kernel], options)


@pytest.mark.parametrize("labels", ["b01f_01io->b01f", "bf01_oi01->bf01"])
@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_convolutions(labels, kind):
    features_last = labels.startswith("b01f")
    x, k, y, d = ("2,9,11,6", "3,3,6,20", "2,9,11,20", 3) if features_last else ("2,6,9,11", "20,6,3,3", "2,20,9,11", 1)
    text = f"""HloModule m
ENTRY e {{
  x = {kind}[{x}] parameter(0)
  k = {kind}[{k}] parameter(1)
  bias = {kind}[20] parameter(2)
  r = {kind}[{y}] parameter(3)
  c = {kind}[{y}] convolution(x, k), window={{size=3x3 pad=1_1x1_1}}, dim_labels={labels}
  b = {kind}[{y}] broadcast(bias), dimensions={{{d}}}
  a = {kind}[{y}] add(c, b)
  zero = {kind}[] constant(0)
  z = {kind}[{y}] broadcast(zero), dimensions={{}}
  m = {kind}[{y}] maximum(a, z)
  ROOT o = {kind}[{y}] add(m, r)
}}
"""
    product_kernel(text)
    check(text)


def test_a_result_of_another_type():
    text = """HloModule m
ENTRY e {
  x = s8[33,40] parameter(0)
  w = s8[40,50] parameter(1)
  scale = f32[50] parameter(2)
  d = s32[33,50] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  f = f32[33,50] convert(d)
  b = f32[33,50] broadcast(scale), dimensions={1}
  ROOT o = f32[33,50] multiply(f, b)
}
"""
    product_kernel(text)
    check(text)


def test_what_a_product_reads_and_what_reads_it_elsewhere_is_stored():
    text = """HloModule m
ENTRY e {
  x = f32[33,33] parameter(0)
  n = f32[33,33] negate(x)
  d = f32[33,33] dot(n, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  a = f32[33,33] add(d, n)
  t = f32[33,33] transpose(d), dimensions={1,0}
  ROOT o = (f32[33,33], f32[33,33]) tuple(a, t)
}
"""
    assert len(plan(parsed(text)).kernels) == 4
    check(text)


def test_a_fusion_that_gives_the_product_too():
    check(
        """HloModule m
f {
  x = f32[33,40] parameter(0)
  w = f32[40,50] parameter(1)
  d = f32[33,50] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[33,50] tanh(d)
  ROOT o = (f32[33,50], f32[33,50]) tuple(d, t)
}
ENTRY e {
  x = f32[33,40] parameter(0)
  w = f32[40,50] parameter(1)
  ROOT o = (f32[33,50], f32[33,50]) fusion(x, w), kind=kOutput, calls=f
}
"""
    )


def test_two_products_of_one_kernel_have_loops_of_their_own():
    """Results of one shape that depend on one dot, on both, or on none."""
    check(
        """HloModule m
f {
  x = f32[16,40] parameter(0)
  w = f32[40,24] parameter(1)
  v = f32[40,24] parameter(2)
  b = f32[16,24] parameter(3)
  d = f32[16,24] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[16,24] dot(x, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  t = f32[16,24] tanh(d)
  s = f32[16,24] add(c, b)
  n = f32[16,24] negate(b)
  m = f32[16,24] multiply(d, c)
  ROOT o = (f32[16,24], f32[16,24], f32[16,24], f32[16,24]) tuple(t, s, n, m)
}
ENTRY e {
  x = f32[16,40] parameter(0)
  w = f32[40,24] parameter(1)
  v = f32[40,24] parameter(2)
  b = f32[16,24] parameter(3)
  ROOT o = (f32[16,24], f32[16,24], f32[16,24], f32[16,24]) fusion(x, w, v, b), kind=kOutput, calls=f
}
"""
    )


def test_a_dot_too_deep_for_one_panel_in_a_given_fusion():
    check(
        """HloModule m
f {
  x = f32[9,2500] parameter(0)
  w = f32[2500,20] parameter(1)
  d = f32[9,20] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = f32[9,20] negate(d)
}
ENTRY e {
  x = f32[9,2500] parameter(0)
  w = f32[2500,20] parameter(1)
  ROOT o = f32[9,20] fusion(x, w), kind=kOutput, calls=f
}
"""
    )
