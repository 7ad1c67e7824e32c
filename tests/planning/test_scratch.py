"""Scratch memory of kernels in the plan, its checker and reports, LHLO, both stacks' signatures, and red zones."""

import dataclasses
import re
from importlib import import_module

import numpy as np
import pytest

from ... import legacy, mlir_emitters
from ...backends.base import CompileOptions
from ...codegen.options import EmitOptions
from ...evaluator.evaluator import evaluate
from ...formats.text.parser import parse_module
from ...hlo.errors import VerificationError
from ...hlo.opcodes import Op
from ...lhlo import from_kernels, from_plan, parse_text, to_kernels
from ...migration import Flags, compile_module
from ...planning.assignment_checker import check_assignment
from ...planning.buffer_report import report_buffers, report_to_text
from ...planning.plan import AllocationKind, KernelRequest, KernelStep, Plan
from ...planning.plan_text import plan_to_text
from ...planning.planner import plan
from ...planning.scratch import COUNTS, ON_STACK, SCRATCH, scratch_bound, scratch_bytes
from ..support.lhlo_requests import assert_program_kernels, assert_same_request
from ..support.plan_interpreter import run_plan

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
    assert arena.size < 2 * BYTES + 3 * 1024  # the kernels share it
    np.testing.assert_allclose(run_plan(made, [X])[0], X @ X @ X @ X @ X, atol=1e-5)


def test_equal_kernels_are_one_whatever_their_scratch_lies(made):
    kernels = {s.kernel.name for s in kernel_steps(made)[1:3]}
    assert len(kernels) == 1


def test_reports_say_so(made):
    piece = kernel_steps(made)[0].kernel.arguments[-1].slice
    assert f"scratch {piece.allocation}[{piece.offset}:{piece.offset + BYTES}] align 64" in plan_to_text(made)
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
    """The result of x overlaps the scratch memory of a later kernel, so the checker refuses a later reader of x."""
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


# Sorts ----------------------------------------------------------------------------------------------------------------

SORT = """HloModule m
by {{ a = f32[] parameter(0)
  b = f32[] parameter(1)
  {pairs}
  {comparison} }}
ENTRY e {{ x = f32[{dims}] parameter(0)
  {parameters}
  s = (f32[{dims}], {types}) sort(x, {payloads}), dimensions={{{d}}}, is_stable=true, to_apply=by
  {root} }}"""
WHOLE = "ROOT r = (f32[{dims}], {types}) tuple(k, {results})"
PARTS = """f = f32[2,3] slice(k), slice={{[0:2], [1:4]}}
  g = c128[2,3] slice(r0), slice={{[0:2], [0:3]}}
  ROOT r = (f32[2,3], c128[2,3]) tuple(f, g)"""


ONE_COMPARISON = "ROOT s = pred[] compare(a, b), direction=LT, type=TOTALORDER"
SEVERAL = """l = pred[] compare(a, b), direction=LT, type=TOTALORDER
  e = pred[] compare(a, b), direction=EQ, type=TOTALORDER
  n = pred[] constant(false)
  ROOT s = pred[] select(e, n, l)"""


def sort_text(dims: str, d: int, payloads: int = 1, root: str = WHOLE, comparison: str = ONE_COMPARISON) -> str:
    """A sort of f32 keys with `payloads` c128 arrays as further operands."""
    numbers, types = range(payloads), ", ".join([f"c128[{dims}]"] * payloads)
    results = [f"r{n} = c128[{dims}] get-tuple-element(s), index={n + 1}" for n in numbers]
    given = root.format(dims=dims, types=types, results=", ".join(f"r{n}" for n in numbers))
    return SORT.format(
        pairs="\n  ".join(f"p{n} = c128[] parameter({n})" for n in range(2, 2 * payloads + 2)),
        comparison=comparison,
        dims=dims,
        d=d,
        types=types,
        parameters="\n  ".join(f"y{n} = c128[{dims}] parameter({n + 1})" for n in numbers),
        payloads=", ".join(f"y{n}" for n in numbers),
        root="\n  ".join([f"k = f32[{dims}] get-tuple-element(s), index=0", *results, given]),
    )


SORTS = {
    "short": sort_text("2,12", 1),
    "short, strided": sort_text("12,2", 0),
    "short, parts": sort_text("2,12", 1, root=PARTS),
    "short, many": sort_text("15,2", 0, payloads=9),
    "on the stack": sort_text("2,150", 1, comparison=SEVERAL),
    "on the stack, strided": sort_text("75,2", 0, comparison=SEVERAL),
    "on the stack, parts": sort_text("2,75", 1, root=PARTS, comparison=SEVERAL),
    "long": sort_text("2,700", 1),
    "long, strided": sort_text("700,2", 0),
    "long, parts": sort_text("2,700", 1, root=PARTS),
    "long, by digits": sort_text("2,60", 1),
    "long, by digits, strided": sort_text("60,2", 0),
    "long, by digits, parts": sort_text("2,60", 1, root=PARTS),
}


def sort_kernel(made: Plan) -> KernelRequest:
    opcodes = {k: {k.instruction.opcode, *(k.body.opcodes if k.body is not None else ())} for k in made.kernels}
    (found,) = (k for k in made.kernels if Op.SORT in opcodes[k])
    return found


def stack_bytes(ir: str) -> int:
    """Bytes of the stack that kernels allocate. The IR has no other alloca than scratch memory and pointers to it."""
    found = re.findall(r"= alloca \[(\d+) x i8\]|= alloca i8, i64 (\d+)", ir)
    assert len(found) + len(re.findall(r"= alloca \[\d+ x ptr\]", ir)) == ir.count(" alloca ")
    return sum(int(a or b) for a, b in found)


@pytest.mark.parametrize("run", [1, 256])  # the stacks' own lengths lie between
@pytest.mark.parametrize("stack", ["legacy", "mlir"])
@pytest.mark.parametrize("name", SORTS)
def test_a_sort_stays_within_the_bound_whatever_its_runs(monkeypatch, name, stack, run):
    """run: number of elements that a stack sorts by insertion. Only the stacks know it."""
    room = {"legacy": legacy, "mlir": mlir_emitters}[stack]
    monkeypatch.setattr(import_module(f"{room.__name__}.sorts.sort"), "MAXIMUM_RUN_ELEMENTS", run)
    module = parse_module(SORTS[name])
    request = sort_kernel(plan(module))
    options = CompileOptions(cache=None, red_zones=True, keep_stages=True)
    executable = compile_module(module, Flags.parse(stack), options)
    used = stack_bytes(next(text for stage, text in executable.stages if stage.endswith(".ll")))
    assert used <= (0 if request.scratch_bytes else min(ON_STACK, scratch_bound(request.instruction)))
    assert used or not (name.startswith("on the stack") and run < 75)
    shapes, rng = [p.shape for p in module.entry.parameters], np.random.default_rng(run)
    inputs = [rng.integers(-9, 9, shape.dims).astype(shape.dtype.numpy) for shape in shapes]
    for actual, expected in zip(executable.execute(inputs), evaluate(module, inputs), strict=True):
        np.testing.assert_array_equal(actual, expected)


def test_the_plan_offers_what_exceeds_the_stack():
    offered = {name: sort_kernel(plan(parse_module(text))).scratch_bytes for name, text in SORTS.items()}
    assert {name for name, size in offered.items() if size} == {n for n in SORTS if "long" in n or "many" in n}
    counts = COUNTS
    assert offered["long, strided"] == offered["long, parts"] == (offered["long"] - counts) * 2 + counts


@pytest.mark.parametrize("stack", [legacy, mlir_emitters])
def test_a_kernel_that_would_exceed_its_bound_is_not_emitted(stack):
    request = sort_kernel(plan(parse_module(SORTS["long"])))
    last = request.arguments[-1]
    little = dataclasses.replace(last, slice=dataclasses.replace(last.slice, size=ON_STACK))
    short = dataclasses.replace(request, arguments=(*request.arguments[:-1], little))
    with pytest.raises(AssertionError, match=f"the Plan bounds it by {ON_STACK}"):
        stack.emit([short], EmitOptions.host())


@pytest.mark.parametrize("name", SORTS)
def test_legacy_lays_out_scratch_memory_of_hlo_and_lhlo_alike(name):
    kernels = plan(parse_module(SORTS[name])).kernels
    read_back = to_kernels(parse_text(from_kernels(kernels).to_text()))
    assert legacy.emit(read_back, EmitOptions.host()).llvm_ir == legacy.emit(kernels, EmitOptions.host()).llvm_ir
