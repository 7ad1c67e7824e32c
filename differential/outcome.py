"""What became of a case: a module on inputs, run on several stacks and judged. The words of `testbed fuzz`, `reduce`
and `bisect`.

A stack is `evaluator`, `optimized` (the evaluator after all passes), `xla` (where jaxlib is installed), or flags of a
compiled run: `legacy`, `mlir`, `mlir,reduce=legacy`. Results that the bounds of the module or XLA's float rules permit
are no difference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path

import numpy as np

from ..backends.xla import XlaCrashed
from ..hlo.errors import InputError, OutOfMemoryError, TestbedError, UnsupportedError
from ..hlo.ir import Module
from ..migration.flags import FlagError
from ..migration.platforms import keeps_subnormals
from .blame import NOT_OURS, blamed_for
from .bounds import bounds_of
from .doubts import doubted_stacks
from .execute import execute
from .patience import Clock, Patience, TooLong, clock
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


DEAD = (RunKind.CRASHED, RunKind.FAILED)


@dataclass(frozen=True)
class Run:
    """One stack on a case. results: empty unless it ran. reason: empty if it ran. seconds: compilation included. forms:
    (stack, form) of the kernels that this run and those before it had.
    """

    kind: RunKind
    results: tuple[np.ndarray, ...] = field(default=(), repr=False)
    reason: str = ""
    seconds: float = 0.0
    forms: frozenset[tuple[str, str]] = frozenset()


class OutcomeKind(StrEnum):
    """inaccurate: all agree, but are much farther off than XLA. crash: a stack crashed, or failed with an error that is
    no refusal. undecided: results differ, and whether the float rules permit it was not found out.
    """

    AGREE = "agree"
    DIFFER = "differ"
    INACCURATE = "inaccurate"
    ALL_REFUSE = "all refuse"
    ONE_REFUSES = "one refuses"
    CRASH = "crash"
    HANG = "hang"
    UNDECIDED = "undecided"


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
        return self.kind not in (OutcomeKind.AGREE, OutcomeKind.ALL_REFUSE, OutcomeKind.UNDECIDED)

    @property
    def signature(self) -> tuple[str, ...]:
        """What stays when a case is made smaller: kind, blame and, where a stack did not run, why, without numbers."""
        reasons = {f"{name}: {cause_of(self.runs[name])}" for name in self.blamed if self.runs[name].reason}
        return (self.kind.value, *self.blamed, *sorted(reasons))

    def may_have(self, name: str, run: Run) -> bool:
        """Whether an outcome of this signature may have this run of a stack."""
        dead, hung, guilty = run.kind in DEAD, run.kind is RunKind.HUNG, name in self.blamed
        if self.kind is OutcomeKind.CRASH:
            return dead == guilty
        return not dead and hung == (guilty and self.kind is OutcomeKind.HANG)


SMALL_RUN, SMALL_LEAST, SMALL_TIMES = 0.5, 3.0, 10.0
"""Of a case that is made smaller: a run has SMALL_RUN seconds; a stack SMALL_LEAST, and SMALL_TIMES those of the
slowest stack that ended on the case itself.
"""


def patience_with_smaller(found: Outcome, most: float) -> Patience:
    """How long smaller cases than that of an outcome may take. most: seconds of a stack."""
    ended = [run.seconds for run in found.runs.values() if run.kind is RunKind.RAN]
    return Patience(min(most, SMALL_LEAST + SMALL_TIMES * max(ended, default=most)), SMALL_RUN)


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
    patience: Patience | None = None,
) -> Outcome:
    """Run a case on stacks in this process and judge it; a crash or a hang is this process's. child.py survives them.

    again: run a finding once more, to see whether it is flaky. patience: ends loops that take longer. Raises InputError
    or VerificationError for a case that is not one: an invalid module, unfit inputs, an unknown stack.
    """
    from ..hlo.verify.verifier import verify

    verify(module)

    def once() -> Outcome:
        return concluded(module, inputs, dict(runs_of(module, inputs, stacks, setting, patience)), setting.budget)

    return confirmed(once(), once) if again else once()


def confirmed(found: Outcome, once: Callable[[], Outcome]) -> Outcome:
    """The outcome; if it is a finding, with whether it is flaky. once: runs the case again."""
    return replace(found, flaky=once().signature != found.signature) if found.is_finding else found


def runs_of(
    module: Module,
    inputs: Sequence[np.ndarray],
    stacks: Sequence[str],
    setting: Setting,
    patience: Patience | None = None,
    known: Mapping[str, Run] = {},
    on_limit: Callable[[str, float], object] = lambda stack, seconds: None,
) -> Iterator[tuple[str, Run]]:
    """The run of each stack, by its name, one after the other. known: those that are known already.

    on_limit: called with a stack, and the seconds that it has from now on.
    """
    shared = Shared(module, setting, stacks)
    slowest: float | None = None
    for stack in stacks:
        if stack in known:
            run = known[stack]
        elif patience is None:
            run = run_stack(module, inputs, stack, setting, shared)
        else:

            def begin(limited: Clock, seconds: float, stack: str = stack) -> None:
                on_limit(stack, seconds)
                limited.allow(seconds)

            try:
                with clock() as limited:
                    begin(limited, patience.whole)
                    on_run = partial(begin, limited, patience.run(slowest))
                    run = run_stack(module, inputs, stack, setting, shared, on_run)
            except TooLong as late:  # just when it had ended
                run = Run(RunKind.HUNG, reason=late.reason)
        if run.kind is RunKind.RAN:
            slowest = max(run.seconds, slowest or 0.0)
        yield stack, run


def run_stack(
    module: Module,
    inputs: Sequence[np.ndarray],
    stack: str,
    setting: Setting = USUAL,
    shared: Shared | None = None,
    on_run: Callable[[], object] = lambda: None,
) -> Run:
    """Compile and run a verified case on one stack; errors, and TooLong, become the run's kind and reason.

    shared, on_run: as of `execute`.
    """
    start, shared = time.perf_counter(), shared or Shared(module, setting)

    def ended(kind: RunKind, reason: str = "", results: Sequence[np.ndarray] = ()) -> Run:
        seconds, forms = time.perf_counter() - start, frozenset(shared.forms)
        return Run(kind, tuple(results), " ".join(reason.split())[:400], seconds, forms)

    try:
        with np.errstate(all="ignore"):
            return ended(RunKind.RAN, results=execute(module, inputs, stack, setting, shared, on_run))
    except TooLong as late:
        return ended(RunKind.HUNG, late.reason)
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


def concluded(module: Module, inputs: Sequence[np.ndarray], runs: Mapping[str, Run], budget: float = BUDGET) -> Outcome:
    """The outcome of runs that have ended. budget: as of Setting."""
    by_kind = {kind: tuple(sorted(n for n, r in runs.items() if r.kind is kind)) for kind in RunKind}
    dead = tuple(sorted(name for kind in DEAD for name in by_kind[kind]))
    for kind, names, verb in ((OutcomeKind.CRASH, dead, "failed"), (OutcomeKind.HANG, by_kind[RunKind.HUNG], "hung")):
        if names:
            return Outcome(kind, names, f"{', '.join(names)} {verb}: {runs[names[0]].reason}", runs)
    refused = tuple(n for n in by_kind[RunKind.REFUSED] if n not in NOT_OURS)
    ran = {name: run.results for name, run in runs.items() if run.kind is RunKind.RAN}
    if not any(name not in NOT_OURS for name in ran):
        reason = next((runs[n].reason for n in refused), "no stack was asked")
        return Outcome(OutcomeKind.ALL_REFUSE, (), f"{', '.join(refused)} refuse: {reason}", runs)
    permitted = Permitted(module, inputs, budget=budget, subnormals=any(map(keeps_subnormals, ran)))
    verdict = judge(ran, bounds_of(module), permitted, doubted_stacks(module, ran))
    if len(verdict.groups) > 1:
        blamed, sentence = blamed_for(module, inputs, ran, verdict)
        return Outcome(OutcomeKind.DIFFER, blamed, sentence, runs, verdict)
    if refused:
        sentence = f"{', '.join(refused)} refused what {', '.join(ran)} ran: {runs[refused[0]].reason}"
        return Outcome(OutcomeKind.ONE_REFUSES, refused, sentence, runs, verdict)
    if verdict.undecided:
        return Outcome(OutcomeKind.UNDECIDED, (), verdict.sentence, runs, verdict)
    worse = less_accurate(Exact(module, inputs), ran, "xla") if "xla" in ran else {}
    if worse:
        name, times = max(worse.items(), key=lambda item: item[1])
        sentence = f"all agree, but the error of {name} in double precision is {times:.0f} times XLA's"
        return Outcome(OutcomeKind.INACCURATE, tuple(sorted(worse)), sentence, runs, verdict)
    return Outcome(OutcomeKind.AGREE, (), verdict.sentence, runs, verdict)
