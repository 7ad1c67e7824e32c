"""Checks in a program: what a rewrite of its thunks needs to know of the plan."""

from __future__ import annotations

from ...planning.allocation import AllocationKind, BufferSlice
from ...planning.plan import KernelRequest, Plan
from ...thunks.insert_checks import Context, Memory, Value, with_checks
from ...thunks.kinds import SequentialThunk


def checked(thunks: SequentialThunk, plan: Plan, kind: str, memory: Memory) -> SequentialThunk:
    """The thunks of a plan with checks of a DebugKind. memory: receives what these need."""
    results = {kernel.name: results_of(kernel) for kernel in plan.kernels}
    return with_checks(thunks, kind, Context(results, _parameters(plan), memory))


def results_of(kernel: KernelRequest) -> tuple[tuple[int, str], ...]:
    """The number of the argument that receives each result, and its type."""
    pairs = zip(kernel.results, kernel.result_shapes, strict=True)
    return tuple((n, shape.dtype.value) for n, shape in pairs if n >= 0)


def _parameters(plan: Plan) -> list[Value]:
    names = [p.name for p in plan.module.entry.parameters for _, s in p.shape.leaves() if s.is_array]
    given = [a for a in plan.assignment.allocations if a.kind is AllocationKind.PARAMETER]
    return [
        Value(names[a.number], BufferSlice(a.index, 0, a.size), a.shape.dtype.value)
        for a in sorted(given, key=lambda a: a.number)
        if a.shape is not None
    ]
