"""input_output_alias: parameters that become results are updated in place, with and without donation by the caller."""

import re

import numpy as np
import pytest

from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import InputError, UnsupportedError
from ...hlo.opcodes import Op
from ...migration import Flags, compile_module
from ...planning.assignment_checker import check_assignment
from ...planning.plan import AllocationKind, CopyStep, Plan
from ...planning.plan_text import plan_to_text
from ...planning.planner import plan
from ..support.check import check
from ..support.passes import agree
from ..support.plan_interpreter import run_plan

STEP = """HloModule step, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, must-alias) }
ENTRY e {
  w = f32[256] parameter(0)
  m = f32[256] parameter(1)
  g = f32[256] parameter(2)
  m2 = f32[256] add(m, g)
  w2 = f32[256] subtract(w, m2)
  ROOT t = (f32[256], f32[256]) tuple(w2, m2)
}
"""
SWAP = """HloModule swap, input_output_alias={ {0}: (0, {}), {1}: (1, {}) }
ENTRY e {
  a = f32[16] parameter(0)
  b = f32[16] parameter(1)
  ROOT t = (f32[16], f32[16], f32[16]) tuple(b, a, a)
}
"""
LOOP = """HloModule loop, input_output_alias={ {}: (0, {}) }
c { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(5)
  ROOT l = pred[] compare(i, n), direction=LT }
b { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  one = s32[] constant(1)
  j = s32[] add(i, one)
  x = f32[64] get-tuple-element(s), index=1
  y = f32[64] sine(x)
  ROOT t = (s32[], f32[64]) tuple(j, y) }
ENTRY e { x = f32[64] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[64]) tuple(z, x)
  w = (s32[], f32[64]) while(t), condition=c, body=b
  ROOT r = f32[64] get-tuple-element(w), index=1
}
"""


def inputs_of(text: str) -> list[np.ndarray]:
    generator = np.random.default_rng(1)
    shapes = [s.dims for s in parse_module(text).parameter_shapes]
    return [generator.uniform(-1, 1, dims).astype(np.float32) for dims in shapes]


def proved(text: str) -> Plan:
    """A plan that the checker accepts and that runs correctly on buffers."""
    module = parse_module(text)
    made = plan(module)
    check_assignment(made)
    agree(module, evaluate(module, inputs_of(text)), run_plan(made, inputs_of(text)))
    return made


@pytest.mark.parametrize("text", [STEP, SWAP, LOOP])
def test_an_aliased_parameter_is_its_results_memory(text):
    made = proved(text)
    aliases = made.module.attributes["input_output_alias"]
    owned = [a for a in made.assignment.allocations if a.result >= 0]
    assert len(owned) == len(aliases) and all(a.kind is AllocationKind.PARAMETER for a in owned)
    results = {a.number for a in made.assignment.allocations if a.kind is AllocationKind.RESULT}
    assert not results & {a.result for a in owned}
    assert f"parameter 0 becomes result {owned[0].result}" in plan_to_text(made)


def test_updates_need_no_copy_and_a_swap_needs_a_spare():
    assert not [s for s in proved(STEP).walk() if isinstance(s, CopyStep)]
    assert not [s for s in proved(LOOP).walk() if isinstance(s, CopyStep) and s.source.size > 4]
    assert [s.source.size for s in proved(SWAP).walk() if isinstance(s, CopyStep)] == [64] * 4


def test_without_an_alias_parameters_are_never_written():
    text = re.sub(r", input_output_alias=.*", "", STEP)
    assert all(a.result < 0 for a in proved(text).assignment.allocations)


@pytest.mark.parametrize("text", [STEP, SWAP, LOOP])
def test_inputs_that_are_not_donated_stay_as_they_are(text):
    module, values = parse_module(text), inputs_of(text)
    executable = compile_module(module, Flags.parse("legacy"))
    before = [v.copy() for v in values]
    for _ in range(2):
        results = executable.execute(values)
        agree(module, evaluate(module, before), results)
        for old, value in zip(before, values):
            np.testing.assert_array_equal(old, value)
        assert not any(np.shares_memory(r, v) for r in results for v in values)


def test_a_donated_array_becomes_the_result():
    module, values = parse_module(STEP), inputs_of(STEP)
    executable = compile_module(module, Flags.parse("legacy"))
    expected = evaluate(module, [v.copy() for v in values])
    w, m, g = (executable.execute(values)[0] * 0 + v for v in values)  # arrays with the right alignment
    results = executable.execute([w, m, g], donated=[0, 1])
    assert results[0] is w and results[1] is m
    agree(module, expected, results)


def test_what_cannot_be_given_up_is_copied():
    module, values = parse_module(STEP), inputs_of(STEP)
    executable = compile_module(module, Flags.parse("legacy"))
    expected = evaluate(module, [values[0], values[0], values[2]])
    shared = values[0].copy()
    results = executable.execute([shared, shared, values[2]], donated=[0, 1])  # one array, twice
    agree(module, expected, results)
    np.testing.assert_array_equal(shared, values[0])
    locked = values[0].copy()
    locked.flags.writeable = False
    out = executable.execute(values)  # arrays with the right alignment
    results = executable.execute([locked, values[1], values[2]], [None, out[1]], donated=[0, 1])
    assert results[1] is out[1] and not np.shares_memory(results[0], locked)
    np.testing.assert_array_equal(locked, values[0])


def test_a_number_that_is_no_input_is_refused():
    executable = compile_module(parse_module(STEP), Flags.parse("legacy"))
    with pytest.raises(InputError, match="input 3 is donated"):
        executable.execute(inputs_of(STEP), donated=[3])


def test_a_must_alias_between_two_layouts_is_refused_and_a_may_alias_left_out():
    text = """HloModule m, input_output_alias={ {}: (0, {}, KIND) }
ENTRY e { x = f32[4,8]{1,0} parameter(0)
  ROOT y = f32[4,8]{0,1} copy(x) }
"""
    made = plan(parse_module(text.replace("KIND", "may-alias")))
    assert all(a.result < 0 for a in made.assignment.allocations)
    with pytest.raises(UnsupportedError, match="must-alias"):
        plan(parse_module(text.replace("KIND", "must-alias")))


def test_dead_temporaries_lie_in_results_that_are_not_written_yet():
    text = """HloModule m
ENTRY e { x = f32[64,64] parameter(0)
  a = f32[64,64] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[64,64] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[64,64] dot(b, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[64,64] dot(c, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }
"""
    made = proved(text)
    (arena,) = [a.size for a in made.assignment.allocations if a.kind is AllocationKind.TEMPORARY]
    assert arena == 64 * 64 * 4  # two of a, b and c are never alive at once; the result's memory holds one of them


@pytest.mark.parametrize(
    "root", ["negate(p)", "dynamic-update-slice(p, k, z, z)"], ids=["element by element", "an update"]
)
def test_a_fusion_with_another_layout_than_its_computation_has_it_from_a_copy(root):
    """Element k of its operand in memory is not element k of its result, so nothing may be overwritten."""
    text = f"""HloModule m, is_scheduled=true
f {{ p = f32[3,9]{{1,0}} parameter(0)
  k = f32[2,2]{{1,0}} constant({{{{1, 2}}, {{3, 4}}}})
  z = s32[] constant(1)
  ROOT r = f32[3,9]{{1,0}} {root} }}
ENTRY e {{ x = f32[3,9]{{1,0}} parameter(0)
  y = f32[3,9]{{1,0}} sine(x)
  t = f32[3,9]{{0,1}} fusion(y), kind=kLoop, calls=f
  ROOT c = f32[3,9]{{1,0}} negate(t) }}
"""
    made = plan(parse_module(text))
    check_assignment(made)
    (fused,) = (i for i in made.module.entry.instructions if i.opcode is Op.FUSION)
    assert fused.shape.layout == fused.called()[0].root.shape.layout
    check(text)
