"""Long runs that Ctrl-C interrupts: on a thread of their own, while the caller waits. docs/adr/0026-ctrl-c.md."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

from ...hlo.analysis.cost_analysis import CostAnalysis
from ...hlo.library.calls import LIBRARY
from ...hlo.opcodes import Op
from ...planning.plan import KernelStep, Plan

LONG = 0.3
"""Estimated seconds from which a run counts as long."""

FLOPS, TRANSCENDENTALS, BYTES, COMPARISONS = 1e9, 2e7, 1e9, 2.5e8
"""Work a second that kernels do at least, far below what is usual: an estimate is to be too long, not too short. A run
that is estimated at LONG takes 5 ms or more, against which 0.1 ms for a thread does not count.
"""

STOPPING = 0.1
"""Seconds to wait for the kernel that is running when Ctrl-C comes."""


def estimated_seconds(plan: Plan) -> float:
    """Seconds that a run may take between two times at which Python handles signals.

    Each kernel counts once, because signals are handled in loops (thunks/executor.py).
    """
    costs, total = CostAnalysis(), 0.0
    for step in plan.walk():
        if isinstance(step, KernelStep):
            cost = costs.of(step.instruction)
            rate = COMPARISONS if step.instruction.opcode in (Op.SORT, Op.FUSION) and _sorts(step) else FLOPS
            total += cost.flops / rate + cost.transcendentals / TRANSCENDENTALS + cost.bytes / BYTES
            if step.instruction.opcode in LIBRARY:
                elements = max(
                    (leaf.size for o in step.instruction.operands for _, leaf in o.shape.leaves()), default=0
                )
                total += 10 * elements**1.5 / FLOPS  # a factorisation of a square matrix
    return total


def _sorts(step: KernelStep) -> bool:
    body = step.kernel.body
    return body is None or any(i.opcode is Op.SORT for i in body.instructions)


def in_main_thread() -> bool:
    """Whether this thread is the one in which Python handles signals."""
    return threading.current_thread() is threading.main_thread()


def run_aside(work: Callable[[], None], stop: Callable[[], None], end: Callable[[], None], keep: object) -> None:
    """Run `work` on another thread and wait for it. Raises what it raises.

    If a signal's handler raises here meanwhile, call `stop`, which lets `work` end soon, and raise that. `work` may go
    on for a while then. end: called after `work` has ended, and never during `stop` or before it. keep: what `work`
    uses without a reference.
    """
    errors: list[BaseException] = []
    done = threading.Event()
    ending = threading.Lock()

    def body(keep: object) -> None:
        if hasattr(signal, "pthread_sigmask"):  # signals are for the main thread
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            work()
        except BaseException as error:
            errors.append(error)
        with ending:
            end()
            done.set()

    try:
        threading.Thread(target=body, args=(keep,), name="run", daemon=True).start()
        done.wait()
    except BaseException:
        with ending:
            if not done.is_set():
                stop()
        done.wait(STOPPING)
        raise
    if errors:
        raise errors[0]
