"""Plan → thunks. It does not depend on the stacks, so one plan gives the same thunks for every stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..planning.plan import ConditionalStep, CopyStep, KernelStep, Plan, ProfileStep, Step, WhileStep
from .kinds import (
    ConditionalThunk,
    CopyThunk,
    KernelThunk,
    ProfileThunk,
    SequentialThunk,
    Thunk,
    WhileThunk,
    read,
    write,
)


def from_plan(plan: Plan, symbols: Mapping[str, str] | None = None) -> SequentialThunk:
    """The thunks of a program. symbols: kernel name → symbol, for kernels where the two differ."""
    return _sequence(plan.steps, symbols or {})


def _sequence(steps: Sequence[Step], symbols: Mapping[str, str], name: str = "sequence") -> SequentialThunk:
    return SequentialThunk(tuple(_FROM_STEP[type(step)](step, symbols) for step in steps), name)


def _kernel(step: KernelStep, symbols: Mapping[str, str]) -> Thunk:
    kernel = step.kernel
    uses = (write(s) if a.written else read(s) for s, a in zip(step.arguments, kernel.arguments, strict=True))
    return KernelThunk(step.instruction.name, symbols.get(kernel.name, kernel.name), tuple(uses))


def _copy(step: CopyStep, symbols: Mapping[str, str]) -> Thunk:
    return CopyThunk(step.instruction.name, step.source, step.destination)


def _while(step: WhileStep, symbols: Mapping[str, str]) -> Thunk:
    condition = _sequence(step.condition, symbols, "condition")
    body = _sequence(step.body, symbols, "body")
    return WhileThunk(step.instruction.name, condition, body, step.predicate, step.trip_count)


def _conditional(step: ConditionalStep, symbols: Mapping[str, str]) -> Thunk:
    branches = tuple(_sequence(branch, symbols, f"branch {i}") for i, branch in enumerate(step.branches))
    return ConditionalThunk(step.instruction.name, step.selector, step.selector_is_pred, branches)


def _profile(step: ProfileStep, symbols: Mapping[str, str]) -> Thunk:
    return ProfileThunk(step.name, step.id, step.begin)


_FROM_STEP: dict[type, Callable[..., Thunk]] = {
    KernelStep: _kernel,
    CopyStep: _copy,
    WhileStep: _while,
    ConditionalStep: _conditional,
    ProfileStep: _profile,
}
