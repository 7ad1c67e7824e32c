"""An estimate of how long a run may take before Python handles signals; it decides which thread runs it."""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

from ...hlo.analysis.cost_analysis import CostAnalysis
from ...hlo.library.calls import LIBRARY, is_foreign, is_sealed
from ...hlo.opcodes import Op
from ...planning.plan import KernelStep, Plan

FLOPS, TRANSCENDENTALS, BYTES, COMPARISONS = 1e9, 2e7, 1e9, 2.5e8
"""Work a second that kernels do at least, far below what is usual: an estimate is to be too long, not too short. A run
that is estimated at LONG (interruptible.py) takes some ms or more; where it is QUICK, the next one needs no thread.
"""

CALL = 1.1e-3
"""Seconds for a call of a handler, which may end the run: what follows looks whether it did."""


def estimated_seconds(plan: Plan) -> float:
    """Seconds that a run may take between two times at which Python handles signals.

    Each kernel counts once, because signals are handled in loops (thunks/rounds.py).
    """
    seconds = seconds_by_kernel(plan)
    return sum(seconds[step.kernel.name] for step in plan.walk() if isinstance(step, KernelStep))


def seconds_by_kernel(plan: Plan) -> Mapping[str, float]:
    """Seconds that each kernel may take, by its name. A plan is often compiled on several stacks, and asked twice."""
    found = _KNOWN.get(plan)
    if found is None:
        found = _KNOWN[plan] = _seconds_by_kernel(plan)
    return found


_KNOWN: WeakKeyDictionary[Plan, Mapping[str, float]] = WeakKeyDictionary()


def _seconds_by_kernel(plan: Plan) -> dict[str, float]:
    costs = CostAnalysis()
    found: dict[str, float] = {}
    for step in plan.walk():
        if isinstance(step, KernelStep) and step.kernel.name not in found:
            cost, instruction = costs.of(step.instruction), step.instruction
            rate = COMPARISONS if instruction.opcode in (Op.SORT, Op.FUSION) and _sorts(step) else FLOPS
            seconds = cost.flops / rate + cost.transcendentals / TRANSCENDENTALS + cost.bytes / BYTES
            if is_foreign(instruction):
                seconds += CALL
            elif instruction.opcode in LIBRARY and not is_sealed(instruction):
                elements = max((leaf.size for o in instruction.operands for _, leaf in o.shape.leaves()), default=0)
                seconds += 10 * elements**1.5 / FLOPS  # a factorisation of a square matrix
            found[step.kernel.name] = seconds
    return found


def _sorts(step: KernelStep) -> bool:
    body = step.kernel.body
    return body is None or any(i.opcode is Op.SORT for i in body.instructions)
