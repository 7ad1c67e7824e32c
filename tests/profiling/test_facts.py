"""Facts of steps: opcodes, sources, work; the shares of a fusion's instructions, which add up to one."""

from dataclasses import replace

import pytest

from ...formats.text.parser import parse_module
from ...planning.planner import plan
from ...profiling.facts import Known, facts_of
from ...profiling.insert import profiled
from ..support.lhlo_programs import SMALL_LOOP

FUSED = """HloModule fused
ENTRY e { x = f32[64,64] parameter(0)
  y = f32[64,64] tanh(x), metadata={op_name="jit(f)/tanh" source_file="f.py" source_line=3}
  z = f32[64,64] add(y, y), metadata={op_name="jit(f)/add" source_file="f.py" source_line=4}
  ROOT t = f32[64,64] transpose(z), dimensions={1,0} }"""

SOLVED = """HloModule solved
ENTRY e { a = f32[4,4] parameter(0)
  ROOT c = (f32[4,4], s32[4], s32[]) custom-call(a), custom_call_target="lapack_sgetrf_ffi",
    api_version=API_VERSION_TYPED_FFI }"""


def facts(text, **stacks):
    made = plan(parse_module(text))
    return facts_of(made, dict.fromkeys([k.name for k in made.kernels], "legacy") | stacks, made.module.attributes)


def test_a_fusion_has_the_shares_of_its_instructions():
    (step,) = [s for s in facts(FUSED) if s.parts]
    assert (step.kind, step.facts.opcode, step.stack, step.shape) == ("kernel", "fusion", "legacy", "f32[64,64]")
    assert sum(part.share for part in step.parts) == pytest.approx(1)
    shares = {part.facts.opcode: part.share for part in step.parts}
    assert shares["tanh"] > shares["add"] > 0  # a transcendental costs more than a sum
    found = {part.facts.opcode: (part.facts.op_name, part.facts.source) for part in step.parts}
    assert found["tanh"] == ("jit(f)/tanh", "f.py:3") and found["add"] == ("jit(f)/add", "f.py:4")
    assert step.work.bytes == 2 * 4 * 64 * 64 and step.work.transcendentals == 64 * 64


def test_steps_are_those_of_the_plan_without_its_marks():
    plain = plan(parse_module(SMALL_LOOP))
    stacks = {kernel.name: "mlir" for kernel in plain.kernels}
    found = facts_of(plain, stacks, {})
    assert found == facts_of(profiled(plain), stacks, {})
    assert [s.kind for s in found] == [type(s).__name__.removesuffix("Step").lower() for s in plain.walk()]
    (loop,) = [s for s in found if s.kind == "while"]
    assert (loop.facts.opcode, loop.facts.family, loop.stack, loop.work.bytes) == ("while", "control", "", 0)
    copies = [s for s in found if s.kind == "copy"]
    assert {s.facts.opcode for s in copies} == {"copy"} and {s.work.bytes for s in copies} == {8.0, 64.0}


def test_a_custom_call_has_its_target_and_the_bytes_of_its_buffers():
    (step,) = [s for s in facts(SOLVED) if s.kind == "kernel" and "custom-call" in s.facts.opcode]
    assert step.facts.opcode == "custom-call lapack_sgetrf_ffi"
    assert step.work.bytes >= 4 * 4 * 4 + 4 * 4 and step.work.flops == 0


def test_steps_of_one_name_take_their_facts_in_order_and_exchanges_share_theirs():
    first, second = facts(FUSED)[0], facts(SMALL_LOOP)[0]
    second = replace(second, facts=replace(second.facts, name=first.facts.name), kind="kernel")
    known = Known([first, second])
    done = known.take(first.facts.name, "collectivedone")
    assert done == replace(first, kind="collectivedone", stack="") and known.take(first.facts.name, "copy") is None
    assert [known.take(first.facts.name, "kernel") for _ in range(3)] == [first, second, None]
