"""The checker of buffer assignments accepts plans and refuses damaged plans."""

import dataclasses

import pytest

from ...formats.text.parser import parse_module
from ...hlo.errors import VerificationError
from ...planning.assignment_checker import check_assignment
from ...planning.plan import BufferSlice, CopyStep, KernelStep, Plan, WhileStep
from ...planning.planner import plan
from ..support.passes import AS_WRITTEN
from ..support.planned import loop


def moved(made: Plan, victim: KernelStep, number: int, to: BufferSlice) -> Plan:
    """The plan with one result of one kernel written elsewhere; all tables agree with the change."""
    index = next(k for k, v in made.assignment.slices.items() if k[0] is victim.instruction)
    slices = dict(made.assignment.slices) | {index: to}
    step = dataclasses.replace(victim, arguments=(*victim.arguments[:number], to, *victim.arguments[number + 1 :]))
    steps = tuple(step if s is victim else s for s in made.steps)
    return dataclasses.replace(made, steps=steps, assignment=dataclasses.replace(made.assignment, slices=slices))


STRAIGHT = """HloModule m
ENTRY e { x = f32[16,16] parameter(0)
  a = f32[16,16] dot(x, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b = f32[16,16] dot(a, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[16,16] dot(b, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT d = f32[16,16] dot(c, b), lhs_contracting_dims={1}, rhs_contracting_dims={0} }"""


def test_the_checker_accepts_the_plan_and_refuses_it_with_a_live_buffer_overwritten():
    made = plan(parse_module(STRAIGHT))
    check_assignment(made)
    first, second = made.steps[0], made.steps[1]
    where = first.arguments[first.kernel.results[0]]
    with pytest.raises(VerificationError, match=r"overwritten while it is read|does not hold|overlap|lies at"):
        check_assignment(moved(made, second, second.kernel.results[0], where))


def test_the_checker_refuses_overlap_wrong_order_missing_steps_and_writes_to_parameters():
    made = plan(parse_module(STRAIGHT))
    second = made.steps[1]
    number = second.kernel.results[0]
    half = dataclasses.replace(second.arguments[second.kernel.operands[0]], offset=512)
    for broken in (
        moved(made, second, number, half),
        moved(made, second, number, BufferSlice(0, 0, 1024)),
        moved(made, second, number, BufferSlice(second.arguments[number].allocation, 1 << 20, 1024)),
        dataclasses.replace(made, steps=made.steps[1:]),
        dataclasses.replace(made, steps=made.steps[:-1]),
        dataclasses.replace(made, steps=(made.steps[1], made.steps[0], *made.steps[2:])),
    ):
        with pytest.raises(VerificationError):
            check_assignment(broken)


def test_the_checker_refuses_loops_whose_copies_are_left_out_or_reordered():
    text = loop(
        "f32[8], f32[8]",
        "x, y",
        "n = f32[8] add(s1, s2) -> s2, s1",
        "ROOT r = (f32[8], f32[8]) tuple(o1, o2)",
        head="x = f32[8] parameter(0)\n y = f32[8] parameter(1)",
    )
    made = plan(parse_module(text), AS_WRITTEN)
    (at,) = [n for n, s in enumerate(made.steps) if isinstance(s, WhileStep)]
    loops = made.steps[at]
    moves = [n for n, s in enumerate(loops.body) if isinstance(s, CopyStep)]
    for dropped in moves:
        body = loops.body[:dropped] + loops.body[dropped + 1 :]
        with pytest.raises(VerificationError):
            check_assignment(with_step(made, at, dataclasses.replace(loops, body=body)))
    backwards = loops.body[: moves[0]] + tuple(reversed(loops.body[moves[0] :]))
    with pytest.raises(VerificationError):
        check_assignment(with_step(made, at, dataclasses.replace(loops, body=backwards)))
    for n in (n for n, s in enumerate(made.steps) if isinstance(s, CopyStep)):
        with pytest.raises(VerificationError):
            check_assignment(dataclasses.replace(made, steps=made.steps[:n] + made.steps[n + 1 :]))


def with_step(made: Plan, at: int, step) -> Plan:
    return dataclasses.replace(made, steps=(*made.steps[:at], step, *made.steps[at + 1 :]))
