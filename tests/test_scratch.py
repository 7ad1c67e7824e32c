"""Scratch memory of kernels: in the plan, its checker and reports, in LHLO, in both stacks' signatures, under guard."""

import dataclasses
import re

import numpy as np
import pytest

from ..backends.base import CompileOptions
from ..hlo.assignment_checker import check_assignment
from ..hlo.buffer_report import report_buffers, report_to_text
from ..hlo.errors import VerificationError
from ..hlo.opcodes import Op
from ..hlo.parser import parse_module
from ..hlo.plan import AllocationKind, KernelStep, Plan
from ..hlo.plan_text import plan_to_text
from ..hlo.planning import plan
from ..hlo.scratch import SCRATCH, scratch_bytes
from ..lhlo import from_kernels, from_plan, parse_text, to_kernels
from ..migration import Flags, compile_module
from .lhlo_requests import assert_program_kernels, assert_same_request
from .plan_interpreter import run_plan

BYTES = 5000
DOTS = """HloModule m
ENTRY e { x = f32[16,16] parameter(0)
  a = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[16,16] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[16,16] dot(b, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[16,16] dot(c, x), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""
X = np.linspace(-0.2, 0.2, 256, dtype=np.float32).reshape(16, 16)


@pytest.fixture
def made(monkeypatch) -> Plan:
    """A plan in which every dot has scratch memory."""
    monkeypatch.setitem(SCRATCH, Op.DOT, lambda i: BYTES)
    return plan(parse_module(DOTS))


def kernel_steps(made: Plan) -> list[KernelStep]:
    return [s for s in made.steps if isinstance(s, KernelStep)]


def test_what_needs_none():
    module = parse_module(DOTS)
    assert all(scratch_bytes(i) == 0 for i in module.entry.instructions if i.opcode is Op.PARAMETER)


def test_an_empty_result_needs_none(monkeypatch):
    monkeypatch.setitem(SCRATCH, Op.NEGATE, lambda i: BYTES)
    module = parse_module("HloModule m\nENTRY e { x = f32[0] parameter(0)\n ROOT n = f32[0] negate(x) }")
    assert scratch_bytes(module.entry.root) == 0


def test_the_plan_gives_each_kernel_its_bytes_for_its_own_time(made):
    check_assignment(made)
    steps = kernel_steps(made)
    assert len(steps) == 4
    for step in steps:
        argument, place = step.kernel.arguments[-1], step.arguments[-1]
        assert step.kernel.scratch == len(step.arguments) - 1
        assert argument.written and argument.alignment == 64 and place.size == BYTES
    (arena,) = (a for a in made.assignment.allocations if a.kind is AllocationKind.TEMPORARY)
    assert arena.size < 2 * BYTES + 3 * 1024  # the kernels take turns in it
    np.testing.assert_allclose(run_plan(made, [X])[0], X @ X @ X @ X @ X, atol=1e-5)


def test_equal_kernels_are_one_whatever_their_scratch_lies(made):
    kernels = {s.kernel.name for s in kernel_steps(made)[1:3]}
    assert len(kernels) == 1


def test_reports_say_so(made):
    assert f"scratch {BYTES} align 64" in plan_to_text(made)
    assert "scratch of " in report_to_text(report_buffers(made))


def test_the_checker_refuses_scratch_over_a_live_value_and_too_little(made):
    step = kernel_steps(made)[1]
    number = step.kernel.scratch
    live = step.arguments[step.kernel.operands[0]]
    short = dataclasses.replace(step.arguments[number], size=64)
    none = dataclasses.replace(step.kernel, scratch=-1)
    for victim, words in (
        (with_scratch(step, dataclasses.replace(live, size=BYTES)), "overlap|lies outside|does not hold"),
        (with_scratch(step, short), "differs from the shared kernel|lacks its 5000 bytes"),
        (dataclasses.replace(step, kernel=none), "lacks its 5000 bytes|differs from the shared"),
    ):
        steps = tuple(victim if s is step else s for s in made.steps)
        with pytest.raises(VerificationError, match=words):
            check_assignment(dataclasses.replace(made, steps=steps))


def with_scratch(step: KernelStep, place) -> KernelStep:
    return dataclasses.replace(step, arguments=(*step.arguments[:-1], place))


def test_a_value_under_scratch_memory_is_lost(made):
    """x's result lies where a later kernel has its scratch memory: whoever reads it then is refused."""
    first, second, third = kernel_steps(made)[:3]
    over = first.arguments[first.kernel.results[0]]
    wide = dataclasses.replace(over, size=BYTES)
    broken = with_scratch(second, wide)
    with pytest.raises(VerificationError):
        check_assignment(dataclasses.replace(made, steps=(first, broken, third, *made.steps[3:])))


def test_lhlo_keeps_it(made):
    text = from_kernels(made.kernels).to_text()
    assert f"memref<{BYTES}xi8>" in text and "lhlo.scratch" in text
    found = to_kernels(parse_text(text))
    for expected, actual in zip(made.kernels, found, strict=True):
        assert_same_request(expected, actual)
        assert actual.scratch == expected.scratch >= 0


def test_a_program_in_lhlo_keeps_it(made):
    lhlo = from_plan(made)
    assert re.search(rf"scratch = array<i64: \d+, \d+, {BYTES}>", lhlo.to_text())
    assert_program_kernels(made, lhlo)
    found = {k.name: k.scratch for k in to_kernels(lhlo)}
    assert found == {k.name: k.scratch for k in made.kernels}


def test_lhlo_without_it_is_refused(made):
    text = from_kernels(made.kernels).to_text()
    with pytest.raises(VerificationError, match=r"\[SCRATCH2\]"):
        parse_text(text.replace("lhlo.scratch, ", ""))
    with pytest.raises(VerificationError, match=r"\[SCRATCH1\]"):
        parse_text(re.sub(r", scratch = array<i64: [\d, ]+>", "", from_plan(made).to_text()))


@pytest.mark.parametrize("stack", ["legacy", "mlir"])
def test_kernels_take_it_and_run_between_red_zones(stack, made):
    options = CompileOptions(cache=None, red_zones=True, keep_stages=True)
    executable = compile_module(parse_module(DOTS), Flags.parse(stack), options)
    np.testing.assert_allclose(executable.execute([X])[0], X @ X @ X @ X @ X, atol=1e-5)
    ir = next(text for name, text in executable.stages if name.endswith(".ll"))
    assert re.search(rf"dereferenceable\({BYTES}\)", ir)
