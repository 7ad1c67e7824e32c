"""What became of a case: a module on inputs, run on several stacks and judged. The words of `testbed fuzz`, `reduce`
and `bisect`.

A stack is `evaluator`, `optimized` (the evaluator after all passes), `xla` (where jaxlib is installed), or flags of a
compiled run: `legacy`, `mlir`, `mlir,reduce=legacy`. Results that the bounds of the module or XLA's float rules permit
are no difference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

import numpy as np

from ..backends.xla import XlaCrashed
from ..hlo.errors import InputError, OutOfMemoryError, TestbedError, UnsupportedError
from ..hlo.ir import Module
from ..migration.flags import FlagError
from ..migration.platforms import keeps_subnormals
from .blame import NOT_OURS, blamed_for
from .bounds import bounds_of
from .execute import execute
from .permitted import BUDGET, Permitted
from .precision import Exact, less_accurate
from .setting import USUAL, Setting
from .shared import Shared
from .verdict import Verdict, judge

STACKS = ("evaluator", "legacy", "mlir")


class RunKind(StrEnum):
    """How a run on one stack ended. refused: with an error that says what the stack does not support. failed: with any
    other error. crashed: its process died. hung: no answer within the limit.
    """

    RAN = "ran"
    REFUSED = "refused"
    FAILED = "failed"
    CRASHED = "crashed"
    HUNG = "hung"


@dataclass(frozen=True)
class Run:
    """One stack on a case. results: empty unless it ran. reason: empty if it ran. seconds: compilation included."""

    kind: RunKind
    results: tuple[np.ndarray, ...] = field(default=(), repr=False)
    reason: str = ""
    seconds: float = 0.0


class OutcomeKind(StrEnum):
    """inaccurate: all agree, but are much farther off than XLA. crash: a stack crashed, or failed with an error that is
    no refusal.
    """

    AGREE = "agree"
    DIFFER = "differ"
    INACCURATE = "inaccurate"
    ALL_REFUSE = "all refuse"
    ONE_REFUSES = "one refuses"
    CRASH = "crash"
    HANG = "hang"


@dataclass(frozen=True)
class Outcome:
    """kind; blamed: the stacks to suspect, sorted (several: what they share, or no majority); sentence: both in words.

    runs: by stack, in the order they were asked for. flaky: another run ended otherwise.
    """

    kind: OutcomeKind
    blamed: tuple[str, ...]
    sentence: str
    runs: Mapping[str, Run]
    verdict: Verdict | None = field(default=None, repr=False)
    flaky: bool = False

    @property
    def is_finding(self) -> bool:
        return self.kind not in (OutcomeKind.AGREE, OutcomeKind.ALL_REFUSE)

    @property
    def signature(self) -> tuple[str, ...]:
        """What stays when a case is made smaller: kind, blame and, where a stack did not run, why, without numbers."""
        reasons = {f"{name}: {cause_of(self.runs[name])}" for name in self.blamed if self.runs[name].reason}
        return (self.kind.value, *self.blamed, *sorted(reasons))


def cause_of(run: Run) -> str:
    """The reason of a run without what a smaller module would change: names in quotes, numbers, places."""
    import re

    text = re.sub(r"\([^()]*\)|'[^']*'|\"[^\"]*\"|\[[^\]]*\]", "", run.reason)
    return " ".join(re.sub(r"%?[\w.-]*\d[\w.-]*", "", text).split()[:8])


def outcome(
    module: Module,
    inputs: Sequence[np.ndarray],
    stacks: Sequence[str] = STACKS,
    setting: Setting = USUAL,
    *,
    again: bool = False,
) -> Outcome:
    """Run a case on stacks in this process and judge it; a crash or a hang is this process's. child.py survives them.

    again: run a finding once more, to see whether it is flaky. Raises InputError or VerificationError for a case that
    is not one: an invalid module, unfit inputs, an unknown stack.
    """
    from ..hlo.verify.verifier import verify

    verify(module)

    def once() -> Outcome:
        shared = Shared(module, setting, stacks)
        runs = {stack: run_stack(module, inputs, stack, setting, shared) for stack in stacks}
        return concluded(module, inputs, runs)

    return confirmed(once(), once) if again else once()


def confirmed(found: Outcome, once: Callable[[], Outcome]) -> Outcome:
    """The outcome; if it is a finding, with whether it is flaky. once: runs the case again."""
    return replace(found, flaky=once().signature != found.signature) if found.is_finding else found


def run_stack(
    module: Module,
    inputs: Sequence[np.ndarray],
    stack: str,
    setting: Setting = USUAL,
    shared: Shared | None = None,
) -> Run:
    """Compile and run a verified case on one stack; errors become the run's kind and reason.

    shared: as of `execute`.
    """
    start = time.perf_counter()

    def ended(kind: RunKind, reason: str = "", results: Sequence[np.ndarray] = ()) -> Run:
        return Run(kind, tuple(results), " ".join(reason.split())[:400], time.perf_counter() - start)

    try:
        with np.errstate(all="ignore"):
            return ended(RunKind.RAN, results=execute(module, inputs, stack, setting, shared))
    except XlaCrashed as error:
        return ended(RunKind.HUNG if "no answer" in error.what else RunKind.CRASHED, error.what)
    except FlagError as error:
        raise InputError(f"unknown stack {stack!r}: {error.message}", remedy=error.remedy) from None
    except (UnsupportedError, OutOfMemoryError, InputError) as error:
        return ended(RunKind.REFUSED, error.message)
    except TestbedError as error:
        return ended(RunKind.FAILED, f"{type(error).__name__}: {error.message}")
    except MemoryError:
        return ended(RunKind.REFUSED, "out of memory")
    except Exception as error:  # a bug of the testbed, which is what cases are run for
        return ended(RunKind.FAILED, f"{type(error).__name__}: {error}{_where(error)}")


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f" in {Path(trace.tb_frame.f_code.co_filename).name}" if trace is not None else ""


def concluded(module: Module, inputs: Sequence[np.ndarray], runs: Mapping[str, Run]) -> Outcome:
    """The outcome of runs that have ended."""
    by_kind = {kind: tuple(sorted(n for n, r in runs.items() if r.kind is kind)) for kind in RunKind}
    dead = tuple(sorted(by_kind[RunKind.CRASHED] + by_kind[RunKind.FAILED]))
    for kind, names, verb in ((OutcomeKind.CRASH, dead, "failed"), (OutcomeKind.HANG, by_kind[RunKind.HUNG], "hung")):
        if names:
            return Outcome(kind, names, f"{', '.join(names)} {verb}: {runs[names[0]].reason}", runs)
    refused = tuple(n for n in by_kind[RunKind.REFUSED] if n not in NOT_OURS)
    ran = {name: run.results for name, run in runs.items() if run.kind is RunKind.RAN}
    if not any(name not in NOT_OURS for name in ran):
        reason = next((runs[n].reason for n in refused), "no stack was asked")
        return Outcome(OutcomeKind.ALL_REFUSE, (), f"{', '.join(refused)} refuse: {reason}", runs)
    permitted = Permitted(module, inputs, budget=BUDGET, subnormals=any(map(keeps_subnormals, ran)))
    verdict = judge(ran, bounds_of(module), permitted)
    if not verdict.agrees:
        blamed, sentence = blamed_for(module, inputs, ran, verdict)
        if permitted.skipped is not None:
            sentence = f"{sentence}; not compared with what the float rules permit: {permitted.skipped}"
        return Outcome(OutcomeKind.DIFFER, blamed, sentence, runs, verdict)
    if refused:
        sentence = f"{', '.join(refused)} refused what {', '.join(ran)} ran: {runs[refused[0]].reason}"
        return Outcome(OutcomeKind.ONE_REFUSES, refused, sentence, runs, verdict)
    worse = less_accurate(Exact(module, inputs), ran, "xla") if "xla" in ran else {}
    if worse:
        name, times = max(worse.items(), key=lambda item: item[1])
        sentence = f"all agree, but the error of {name} in double precision is {times:.0f} times XLA's"
        return Outcome(OutcomeKind.INACCURATE, tuple(sorted(worse)), sentence, runs, verdict)
    return Outcome(OutcomeKind.AGREE, (), verdict.sentence, runs, verdict)
