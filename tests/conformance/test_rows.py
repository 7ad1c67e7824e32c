"""Rows of both stacks inside fusions that stay as written: each op is read element by element, and results are exact.

The optimiser would move or fold many of these ops, so that they never met a kernel in this form.
"""

import numpy as np
import pytest

from ...backends.base import CompileOptions
from ...backends.host.compiler import HostCompiler
from ...codegen.options import EmitOptions, Target
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.dtypes import DType
from ...hlo.errors import UnsupportedError
from ...migration.choose import emitter
from ...passes.pipeline import PipelineOptions
from ...planning.planner import PlanOptions, plan
from ..support.check import make_inputs

WRITTEN = PlanOptions(PipelineOptions(("flatten", "layouts")))
STACKS = ("legacy", "mlir")

REGIONS = """minus { p = s32[] parameter(0)
  q = s32[] parameter(1)
  ROOT s = s32[] subtract(p, q) }
sum { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
"""

# (name, parameters, the fusion's body: on p0, p1, …; its last line is read once more before it is the result)
MOVEMENT = [
    ("constant", "s32[2,3]", "c = s32[2,3] constant({{1,2,3},{40,50,60}}); r = s32[2,3] subtract(p0, c)"),
    ("dynamic-update-slice", "s32[4,6] s32[2,3] s32[]", "r = s32[4,6] dynamic-update-slice(p0, p1, p2, p2)"),
    ("dynamic-slice", "s32[4,6] s32[]", "r = s32[2,3] dynamic-slice(p0, p1, p1), dynamic_slice_sizes={2,3}"),
    ("map", "s32[2,3] s32[2,3]", "r = s32[2,3] map(p0, p1), dimensions={0,1}, to_apply=minus"),
    (
        "dot",
        "s32[3,3] s32[3,3]",
        "r = s32[3,3] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}",
    ),
    (
        "convolution of batch groups",
        "s32[4,5,3] s32[2,3,4]",
        "r = s32[2,4,4] convolution(p0, p1), window={size=2}, dim_labels=b0f_0io->b0f, batch_group_count=2",
    ),
    (
        "convolution of feature groups",
        "s32[2,5,4] s32[2,2,6]",
        "r = s32[2,4,6] convolution(p0, p1), window={size=2}, dim_labels=b0f_0io->b0f, feature_group_count=2",
    ),
    ("transpose", "s32[3,5]", "r = s32[5,3] transpose(p0), dimensions={1,0}"),
    ("pad", "s32[3,5] s32[]", "r = s32[6,9] pad(p0, p1), padding=1_0_1x1_3"),
    ("reverse", "s32[3,5]", "r = s32[3,5] reverse(p0), dimensions={1}"),
    ("concatenate", "s32[3,5] s32[3,2]", "r = s32[3,7] concatenate(p0, p1), dimensions={1}"),
    ("iota", "s32[3,5]", "i = s32[3,5] iota(), iota_dimension=1; r = s32[3,5] subtract(i, p0)"),
    ("bitcast", "s32[3,4]", "r = s32[12] bitcast(p0)"),
    ("reshape", "s32[3,4]", "r = s32[2,6] reshape(p0)"),
    ("broadcast", "s32[4]", "r = s32[4,3] broadcast(p0), dimensions={0}"),
    ("slice", "s32[5,7]", "r = s32[2,3] slice(p0), slice={[1:5:2],[2:5]}"),
    ("copy", "s32[3,5]", "r = s32[3,5] copy(p0)"),
    ("select", "pred[3,5] s32[3,5] s32[3,5]", "r = s32[3,5] select(p0, p1, p2)"),
    (
        "tuple",
        "s32[3] s32[3]",
        "t = (s32[3], s32[3]) tuple(p0, p1); g = s32[3] get-tuple-element(t), index=1; r = s32[3] subtract(p0, g)",
    ),
    ("real of a real number", "f32[8]", "r = f32[8] real(p0)"),
    ("imag of a real number", "f32[8]", "i = f32[8] imag(p0); r = f32[8] add(i, p0)"),
    ("wider complex numbers", "c64[8]", "r = c128[8] convert(p0)"),
]


def fusion(parameters: str, body: str) -> str:
    """A module of one fusion; what the body makes is negated twice, or read through a copy where it has no sign."""
    shapes = parameters.split()
    lines = [line.strip() for line in body.split(";")]
    shape = lines[-1].split()[2]
    given = "".join(f"  p{n} = {s} parameter({n})\n" for n, s in enumerate(shapes))
    inside = "".join(f"  {line}\n" for line in lines)
    names = ", ".join(f"p{n}" for n in range(len(shapes)))
    return (
        f"HloModule m\n{REGIONS}fused {{\n{given}{inside}  n = {shape} negate(r)\n  ROOT out = {shape} negate(n) }}\n"
        f"ENTRY e {{\n{given}  ROOT f = {shape} fusion({names}), kind=kLoop, calls=fused }}\n"
    )


def run_as_written(text: str, stack: str, inputs: list[np.ndarray]) -> list[np.ndarray]:
    row = emitter(stack)
    return HostCompiler().compile(plan(parse_module(text), WRITTEN), lambda _: row, CompileOptions()).execute(inputs)


CASES = [(stack, *rest) for _, *rest in MOVEMENT for stack in STACKS]
CASES.append(("legacy", "s32[8]", "r = s32[8] opt-barrier(p0)"))  # LHLO has no such op
NAMES = [f"{name}-{stack}" for name, *_ in MOVEMENT for stack in STACKS] + ["opt-barrier-legacy"]


@pytest.mark.parametrize(("stack", "parameters", "body"), CASES, ids=NAMES)
def test_a_row_inside_a_fusion(stack, parameters, body):
    text = fusion(parameters, body)
    module = parse_module(text)
    inputs = [x * 7 - 3 if x.dtype == np.int32 and x.ndim else x for x in make_inputs(module, 5)]
    expected, found = evaluate(module, inputs), run_as_written(text, stack, inputs)
    for e, f in zip(expected, found, strict=True):
        assert e.dtype == f.dtype
        np.testing.assert_array_equal(f, e)


@pytest.mark.parametrize("stack", STACKS)
def test_a_sort_that_is_no_result_of_its_kernel_is_refused(stack):
    less = "less { p = s32[] parameter(0)\n  q = s32[] parameter(1)\n  ROOT s = pred[] compare(p, q), direction=LT }\n"
    text = fusion("s32[3,5]", "r = s32[3,5] sort(p0), dimensions={1}, to_apply=less").replace(REGIONS, less)
    with pytest.raises(UnsupportedError, match="sort inside a fusion"):
        emitter(stack).emit(plan(parse_module(text), WRITTEN).kernels, EmitOptions(Target.host()))


UNARY = """acos acosh asin asinh atanh cbrt cosine cosh erf exponential exponential-minus-one log log-plus-one
logistic rsqrt sine sinh sqrt tan tanh"""
BINARY = "add atan2 divide multiply power subtract"


@pytest.mark.parametrize("stack", STACKS)
@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@pytest.mark.parametrize("name", f"{UNARY} {BINARY}".split())
def test_results_of_narrow_floats_have_no_more_digits_than_the_type(name, dtype, stack):
    """Seen through a conversion in the same kernel, where a register could still hold more."""
    operands = "p0, p1" if name in BINARY.split() else "p0"
    text = fusion(f"{dtype}[64] {dtype}[64]", f"v = {dtype}[64] {name}({operands}); r = f32[64] convert(v)")
    x = np.linspace(1.01, 1.99, 64) if name == "acosh" else np.linspace(0.01, 0.99, 64)
    kind = DType(dtype).numpy
    inputs = [x.astype(kind), (0.137 * x + 0.01).astype(kind)]
    (found,) = run_as_written(text, stack, inputs)
    np.testing.assert_array_equal(found.astype(kind).astype(np.float32), found)
    assert np.isfinite(found).all()
