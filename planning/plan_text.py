"""Text of a Plan (allocations, kernels, steps with their slices), for reading and for comparing two plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..hlo.ir import Instruction
from ..hlo.shapes import shape_to_text
from .plan import (
    Allocation,
    BufferSlice,
    ConditionalStep,
    CopyStep,
    KernelRequest,
    KernelStep,
    Plan,
    ProfileStep,
    Step,
    WhileStep,
)


def plan_to_text(plan: Plan) -> str:
    """The whole plan, one line per allocation, kernel and step; nested steps are indented."""
    lines = [f"plan {plan.module.name} {{"]
    lines += [f"  {_allocation(a)}" for a in plan.assignment.allocations]
    lines += [f"  {_kernel(k)}" for k in plan.kernels]
    lines += ["  steps {", *_steps(plan.steps, 2), "  }", "}"]
    return "\n".join(lines) + "\n"


def _allocation(a: Allocation) -> str:
    number = f" {a.number}" if a.number >= 0 else ""
    shape = f" {shape_to_text(a.shape)}" if a.shape is not None else ""
    given = f" becomes result {a.result}" if a.result >= 0 else ""
    return f"allocation {a.index} = {a.kind.value}{number}{given}{shape} size={a.size} align={a.alignment}"


def _kernel(k: KernelRequest) -> str:
    arguments = ", ".join(f"{_use(k, n)} {a.slice.size} align {a.alignment}" for n, a in enumerate(k.arguments))
    numbers = f"operands={list(k.operands)} results={list(k.results)}"
    split = f" split: {k.partition}" if k.partition is not None else ""
    return f"kernel @{k.name}({arguments}) {numbers}{split} = {_head(k.instruction)}"


def _use(k: KernelRequest, n: int) -> str:
    if n == k.scratch:
        return "scratch"
    if not k.arguments[n].written:
        return "in"
    return "inout" if n in k.operands else "out"


def _head(i: Instruction) -> str:
    operands = ", ".join(shape_to_text(o.shape) for o in i.operands)
    body = (
        f" of {len(i.called()[0].instructions)} at {i.called()[0].root.opcode.value}"
        if i.opcode.value == "fusion"
        else ""
    )
    return f"{i.opcode.value}({operands}) -> {shape_to_text(i.shape)}{body}"


def _slice(s: BufferSlice) -> str:
    return f"{s.allocation}[{s.offset}:{s.offset + s.size}]"


def _steps(steps: Sequence[Step], depth: int) -> Iterator[str]:
    pad = "  " * depth
    for step in steps:
        if isinstance(step, KernelStep):
            arguments = ", ".join(map(_slice, step.arguments))
            yield f"{pad}kernel @{step.kernel.name}({arguments})  # {step.instruction.name}"
        elif isinstance(step, CopyStep):
            yield f"{pad}copy {_slice(step.source)} -> {_slice(step.destination)}  # {step.instruction.name}"
        elif isinstance(step, WhileStep):
            count = f" trip_count={step.trip_count}" if step.trip_count is not None else ""
            yield f"{pad}while {_slice(step.predicate)}{count} {{  # {step.instruction.name}"
            yield from _steps(step.condition, depth + 1)
            yield f"{pad}}} do {{"
            yield from _steps(step.body, depth + 1)
            yield f"{pad}}}"
        elif isinstance(step, ConditionalStep):
            kind = "pred" if step.selector_is_pred else "index"
            yield f"{pad}conditional {kind} {_slice(step.selector)} {{  # {step.instruction.name}"
            for n, branch in enumerate(step.branches):
                yield f"{pad}  branch {n} {{"
                yield from _steps(branch, depth + 2)
                yield f"{pad}  }}"
            yield f"{pad}}}"
        elif isinstance(step, ProfileStep):
            yield f"{pad}profile {'begin' if step.begin else 'end'} {step.id}  # {step.name}"
