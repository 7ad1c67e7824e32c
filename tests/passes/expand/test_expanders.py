"""Expanders: every form of the opcode is removed, and the results are unchanged."""

import numpy as np
import pytest

from .... import legacy, mlir_emitters
from ....codegen import library
from ....evaluator.evaluator import evaluate
from ....formats.text.parser import parse_module
from ....hlo.dtypes import DType
from ....hlo.ir import Instruction
from ....hlo.library.calls import LIBRARY
from ....hlo.opcodes import Op
from ....hlo.verify.verifier import verify
from ....passes.building import Builder
from ....passes.expansion import expand_ops
from ....passes.pipeline import EXPAND, run_pipeline, select
from ....planning.planner import plan
from ...support.hlo_corpus import CorpusCase, each, evaluable
from ...support.passes import agree, fill, opcodes, run, same

REGIONS = """HloModule m
add { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] add(p, q) }
top { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = f32[] maximum(p, q) }
less { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT s = pred[] compare(p, q), direction=LT }
put { p = f32[] parameter(0)
  ROOT q = f32[] parameter(1) }
mix { p = f32[] parameter(0)
  q = f32[] parameter(1)
  t = f32[] constant(0.5)
  m = f32[] multiply(p, t)
  ROOT s = f32[] subtract(m, q) }
"""


def entry(*lines: str) -> str:
    return REGIONS + "ENTRY e {\n" + "\n".join(lines) + "\n}\n"


# --- what all share --------------------------------------------------------------------------------------------------


def test_an_expander_keeps_name_and_control_dependencies():
    text = entry(
        "x = f32[5,4] parameter(0)", "n = f32[5,4] tanh(x)", "g = f32[5,4] negate(x), control-predecessors={n}",
        "a = f32[5,4] abs(g), control-predecessors={g}", "ROOT t = (f32[5,4], f32[5,4]) tuple(a, n)",
    )  # fmt: skip

    def negate(i: Instruction, b: Builder) -> Instruction:
        return b.binary(Op.MULTIPLY, i.operands[0], -1)

    module = expand_ops(parse_module(text), {Op.NEGATE: negate})
    verify(module)
    product = module.entry.by_name["g"]
    assert product.opcode is Op.MULTIPLY and product.attributes["control-predecessors"] == ("n",)
    assert module.entry.by_name["a"].attributes["control-predecessors"] == ("g",)


# --- topk ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("largest", ["true", "false"])
def test_topk_becomes_a_sort_and_slices(largest):
    text = entry(
        "x = f32[3,12] parameter(0)",
        f"ROOT t = (f32[3,5], s32[3,5]) topk(x), k=5, largest={largest}",
    )  # fmt: skip
    for special in (False, True):
        after = same(text, fill(parse_module(text), 1, special=special), "expand-topk", exact=True)
    assert Op.TOPK not in opcodes(after)


# --- rng -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u8", "s16", "u32", "s32", "u64"])
@pytest.mark.parametrize("dims", ["", "3", "5,4", "3,3"])
@pytest.mark.parametrize(
    ("algorithm", "state"),
    [("rng_three_fry", "u64[2]"), ("rng_three_fry", "u32[4]"), ("rng_philox", "u64[3]"), ("rng_philox", "u64[2]"),
     ("rng_default", "u32[6]")],
)  # fmt: skip
def test_random_bits_are_the_same_bits(dtype, dims, algorithm, state):
    text = entry(
        f"k = {state} parameter(0)",
        f"ROOT r = ({state}, {dtype}[{dims}]) rng-bit-generator(k), algorithm={algorithm}",
    )
    module = parse_module(text)
    kind = module.entry.parameters[0].shape
    for last in (1234567, 2**kind.dtype.bits - 2):  # the second makes the counter carry
        key = np.full(kind.dims, last, kind.dtype.numpy)
        after = same(text, [key], "expand-rng", exact=True)
    assert Op.RNG_BIT_GENERATOR not in opcodes(after)


# --- annotations -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["Sharding", "MoveToHost", "annotate_device_placement"])
def test_an_annotation_is_its_operand(target):
    call = f'custom-call(x), custom_call_target="{target}", sharding={{replicated}}'
    text = entry("x = f32[3,4]{0,1} parameter(0)", f"y = f32[3,4] {call}", "ROOT z = f32[3,4] negate(y)")
    after = same(text, [np.arange(12, dtype=np.float32).reshape(3, 4)], "flatten", "expand-async", exact=True)
    assert Op.CUSTOM_CALL not in opcodes(after)


@pytest.mark.parametrize(
    ("shape", "target", "stays"), [("f32[3]", "Sharding", False), ("f32[6]", "SPMDShardToFullShape", True)]
)
def test_an_annotation_goes_with_its_side_effect_and_stays_where_it_changes_the_shape(shape, target, stays):
    call = f'custom-call(x), custom_call_target="{target}", custom_call_has_side_effect=true'
    after = run(entry("x = f32[3] parameter(0)", f"ROOT y = {shape} {call}"), "flatten", "expand-async")
    assert (Op.CUSTOM_CALL in opcodes(after)) == stays


# --- linear algebra --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["f16", "bf16"])
def test_linear_algebra_of_narrow_floats_is_done_in_f32(kind):
    text = entry(
        f"a = {kind}[3,3] parameter(0)", f"b = {kind}[3,2] parameter(1)",
        f"c = {kind}[3,3] cholesky(a), lower=true",
        f"ROOT x = {kind}[3,2] triangular-solve(c, b), left_side=true, lower=true, unit_diagonal=false, "
        "transpose_a=NO_TRANSPOSE",
    )  # fmt: skip
    dtype = parse_module(text).entry.parameters[0].shape.dtype.numpy
    a = np.array([[4, 0, 0], [2, 5, 0], [1, 2, 6]]).astype(dtype)
    after = same(text, [a, np.arange(6).reshape(3, 2).astype(dtype)], "expand-linalg")
    found = [i.shape.dtype for i in after.instructions() if i.opcode in (Op.CHOLESKY, Op.TRIANGULAR_SOLVE)]
    assert found == [DType.F32, DType.F32]


# --- the whole -------------------------------------------------------------------------------------------------------


EXPANDED = (Op.TOPK, Op.RNG_BIT_GENERATOR)


def expands(case: CorpusCase) -> bool:
    return evaluable(case) and any(f" {opcode.value}(" in case.text for opcode in EXPANDED)


@each("xla_modules", 30, biggest=8_000, seed=5, where=expands)
def test_modules_of_the_corpus_keep_their_meaning(case):
    module, inputs = case.module(), case.inputs()
    done = run_pipeline(module, select(("flatten", *EXPAND)))
    verify(done)
    agree(module, evaluate(module, inputs), evaluate(done, inputs))


@each("xla_modules", 60, biggest=20_000, seed=11)
def test_nobody_refuses_a_module_of_the_corpus(case):
    requests = plan(case.module()).kernels
    ours = [r for r in requests if r.instruction.opcode not in LIBRARY]
    missing = [e for stack in (legacy, mlir_emitters) for e in stack.unsupported(ours)]
    missing += library.unsupported([r for r in requests if r.instruction.opcode in LIBRARY])
    assert [str(e) for e in missing] == []
