"""Plan → Plan with a profile step before and after each step. lhlo/passes/insert_profile.py does the same to LHLO."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from ..hlo.records import replace
from ..planning.plan import ConditionalStep, Plan, ProfileStep, Step, WhileStep


def profiled(plan: Plan) -> Plan:
    """The plan with its kernels, copies, loops and conditionals marked, and the steps inside those.

    A plan with profile steps, as LHLO with a profiler has, stays as it is.
    """
    if any(isinstance(step, ProfileStep) for step in plan.walk()):
        return plan
    return replace(plan, steps=_marked(plan.steps, count()))


def _marked(steps: Sequence[Step], numbers: Iterator[int]) -> tuple[Step, ...]:
    found: list[Step] = []
    for step in steps:
        assert not isinstance(step, ProfileStep)
        number, name = next(numbers), step.instruction.name
        if isinstance(step, WhileStep):
            step = replace(step, condition=_marked(step.condition, numbers), body=_marked(step.body, numbers))
        elif isinstance(step, ConditionalStep):
            step = replace(step, branches=tuple(_marked(branch, numbers) for branch in step.branches))
        found += [ProfileStep(name, number, True), step, ProfileStep(name, number, False)]
    return tuple(found)
