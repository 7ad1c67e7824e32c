"""Plan → thunks. It does not depend on the stacks, so one plan gives the same thunks for every stack."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence

from ..hlo.devices import ONE_DEVICE, Devices
from ..hlo.opclasses import OUTSIDE
from ..hlo.records import dataclass, field
from ..planning.plan import ConditionalStep, CopyStep, KernelRequest, KernelStep, Plan, ProfileStep, Step, WhileStep
from .exchanges import overlapped, thunks_of
from .kinds import (
    ConditionalThunk,
    CopyThunk,
    KernelThunk,
    ProfileThunk,
    SequentialThunk,
    Split,
    Thunk,
    WhileThunk,
    read,
    write,
)


def from_plan(
    plan: Plan,
    symbols: Mapping[str, str] | None = None,
    ranged: Container[str] = (),
    devices: Devices = ONE_DEVICE,
) -> SequentialThunk:
    """The thunks of a program. symbols: kernel name → symbol, for kernels where the two differ. ranged: names of the
    kernels whose functions take ranges (EmittedModule.ranged). devices: those that it was planned for.
    """
    return _sequence(plan.steps, _Code(symbols or {}, ranged, devices))


@dataclass(frozen=True, slots=True)
class _Code:
    """What is known of the kernels' functions and of the devices."""

    symbols: Mapping[str, str] = field(default_factory=dict)
    ranged: Container[str] = ()
    devices: Devices = ONE_DEVICE


def split_of(kernel: KernelRequest) -> Split | None:
    """How threads share a kernel that takes ranges; None if it must not be split."""
    partition = kernel.partition
    return None if partition is None else Split(partition.extent, partition.least, kernel.scratch_bytes)


def _sequence(steps: Sequence[Step], code: _Code, name: str = "sequence") -> SequentialThunk:
    return SequentialThunk(overlapped(thunk for step in steps for thunk in _thunks(step, code)), name)


def _thunks(step: Step, code: _Code) -> tuple[Thunk, ...]:
    if isinstance(step, KernelStep) and step.instruction.opcode in OUTSIDE:
        return thunks_of(step, code.devices)
    return (_FROM_STEP[type(step)](step, code),)


def _kernel(step: KernelStep, code: _Code) -> Thunk:
    kernel = step.kernel
    uses = (write(s) if a.written else read(s) for s, a in zip(step.arguments, kernel.arguments, strict=True))
    split = split_of(kernel) if kernel.name in code.ranged else None
    return KernelThunk(step.instruction.name, code.symbols.get(kernel.name, kernel.name), tuple(uses), split)


def _copy(step: CopyStep, code: _Code) -> Thunk:
    return CopyThunk(step.instruction.name, step.source, step.destination)


def _while(step: WhileStep, code: _Code) -> Thunk:
    condition = _sequence(step.condition, code, "condition")
    body = _sequence(step.body, code, "body")
    return WhileThunk(step.instruction.name, condition, body, step.predicate, step.trip_count)


def _conditional(step: ConditionalStep, code: _Code) -> Thunk:
    branches = tuple(_sequence(branch, code, f"branch {i}") for i, branch in enumerate(step.branches))
    return ConditionalThunk(step.instruction.name, step.selector, step.selector_is_pred, branches)


def _profile(step: ProfileStep, code: _Code) -> Thunk:
    return ProfileThunk(step.name, step.id, step.begin)


_FROM_STEP: dict[type, Callable[..., Thunk]] = {
    KernelStep: _kernel,
    CopyStep: _copy,
    WhileStep: _while,
    ConditionalStep: _conditional,
    ProfileStep: _profile,
}
