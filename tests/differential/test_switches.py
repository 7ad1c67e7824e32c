"""Single rewrites and single forms switched off: what changes in the plan and in the code, and what cannot be."""

from dataclasses import replace

import numpy as np
import pytest

from ...codegen.options import EmitOptions
from ...differential.outcome import OutcomeKind, RunKind, outcome
from ...differential.setting import Setting, plan_of_setting
from ...differential.shared import Shared
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError
from ...hlo.opcodes import Op
from ...passes.fuel import Fuel, limited, without
from ...passes.pipeline import PASSES, PipelineOptions, optimize
from ...passes.rewrites import checked, rewrites

DOT = """HloModule m

ENTRY e {
  p = f32[64,64] parameter(0)
  q = f32[64,64] parameter(1)
  ROOT r = f32[64,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""

ZERO = """HloModule m

ENTRY e {
  p = s32[8] parameter(0)
  z = s32[] constant(0)
  b = s32[8] broadcast(z), dimensions={}
  t = s32[8] add(p, b)
  u = s32[4,2] reshape(t)
  v = s32[8] reshape(u)
  ROOT r = s32[8] multiply(v, p)
}
"""


def opcodes(module) -> list[str]:
    return [i.opcode.value for i in module.entry.instructions if i.opcode is not Op.PARAMETER]


def test_a_rule_of_algebra_is_left_out():
    module = parse_module(ZERO)
    with limited(Fuel()) as fuel:
        done = PASSES["algebra"].run(module)
    assert fuel.names == ["algebra/add_zero"] and "add" not in opcodes(PASSES["dce"].run(done))
    with without(["algebra/add_zero"]), limited(Fuel()) as fuel:
        assert PASSES["algebra"].run(module) is module and fuel.names == []


def test_another_rule_is_asked_where_one_is_off():
    """x - x is of two rules' opcodes."""
    text = ZERO.replace("add(p, b)", "subtract(p, p)")
    with limited(Fuel()) as fuel:
        PASSES["algebra"].run(parse_module(text))
    assert "algebra/subtract_itself" in fuel.names
    with without(fuel.names), limited(Fuel()) as fuel:
        PASSES["algebra"].run(parse_module(text))
    assert "algebra/subtract_itself" not in fuel.names


@pytest.mark.parametrize("names", [("simplify/reshape",), ("simplify",)])
def test_a_simplification_and_a_pass_are_left_out(names):
    module = parse_module(ZERO)
    passes = ("flatten", "dce", "simplify", "dce")
    assert "reshape" not in opcodes(optimize(module, PipelineOptions(passes)))
    assert opcodes(optimize(module, PipelineOptions(passes, without=frozenset(names)))).count("reshape") == 2


def test_a_setting_leaves_rewrites_out_of_plans_and_of_the_optimised_module():
    module, off = parse_module(ZERO), Setting(cache=False, without_rewrites=("algebra/add_zero",))
    for setting, adds in ((Setting(cache=False), False), (off, True)):
        assert any(i.opcode is Op.ADD for i in plan_of_setting(module, setting).module.instructions()) == adds
    inputs = [np.arange(8, dtype=np.int32)]
    assert outcome(module, inputs, ("evaluator", "optimized", "legacy", "mlir"), off).kind is OutcomeKind.AGREE


def test_names_of_rewrites():
    assert {"simplify/transpose", "algebra/add_zero", "cse", "loops/unroll"} <= set(rewrites())
    assert not {"flatten", "dce", "fuse"} & set(rewrites())
    with pytest.raises(InputError, match="did you mean algebra/add_zero"):
        checked(("algebra/add_zer",))
    assert checked(("cse",)) == ("cse",)


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_form_is_declined_so_that_the_next_one_is_taken(stack):
    first = "dot/tiled"
    module, inputs = parse_module(DOT), [np.ones((64, 64), np.float32)] * 2
    usual = run_forms(module, inputs, stack, ())
    assert usual == {first}
    others = run_forms(module, inputs, stack, (f"{stack}:{first}",))
    assert others and first not in others
    other = {"legacy": "mlir", "mlir": "legacy"}[stack]
    assert run_forms(module, inputs, stack, (f"{other}:{first}",)) == {first}  # each stack has its own switches


def run_forms(module, inputs, stack, off) -> set[str]:
    found = outcome(module, inputs, ("evaluator", stack), Setting(cache=False, optimized=False, without_forms=off))
    assert found.kind is OutcomeKind.AGREE, found.sentence
    return {form for _, form in found.runs[stack].forms}


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_a_kernel_without_any_form_is_refused(stack):
    text = "HloModule m\n\nENTRY e {\n  p = f32[8] parameter(0)\n  ROOT r = f32[8] negate(p)\n}\n"
    module, off = parse_module(text), tuple(f"{stack}:nest/{n}" for n in ("linear", "plain", "tiles", "blocks"))
    found = outcome(module, [np.ones(8, np.float32)], ("evaluator", stack), Setting(cache=False, without_forms=off))
    assert found.runs[stack].kind is RunKind.REFUSED and "without the forms nest/blocks" in found.runs[stack].reason


def test_code_without_a_form_is_no_other_codes_in_the_cache():
    options = EmitOptions.host()
    assert repr(options) != repr(replace(options, without_forms=("mlir:dot/tiled",)))
    assert Shared(parse_module(DOT), Setting(without_forms=("mlir:dot/tiled",))).options().emit.without_forms
