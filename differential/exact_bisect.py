"""Finds what is guilty of a difference over finite fields: a rewrite of a pass, a kernel with its form, or the plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..hlo.ir import Module
from . import bisect as usual
from .bisect import LIMIT, Bisected, Experiment, Kernel, kernel_of
from .child import Child
from .exact.check import HLO, Row, Status, check_kernel
from .exact.program import PASSES, check_all, check_program
from .exact_outcome import BLAMED
from .finding import Finding
from .outcome import Outcome
from .setting import Setting, plan_of_setting

LIMITS = 4
"""The factor by which a question about all kernels of a case may exceed the seconds of one experiment."""


def bisect(
    finding: Finding, child: Child, limit_s: float = LIMIT, on_step: Callable[[str], object] = lambda text: None
) -> Bisected:
    """As `bisect.bisect`, and over fields for a case whose setting says so."""
    if not finding.setting.exact:
        return usual.bisect(finding, child, limit_s, on_step)
    on_step("the case as it is, twice")
    module, setting = finding.module, finding.setting
    outcome = child.outcome(module, finding.inputs, finding.stacks, limit_s, setting, again=True)
    found = Bisected(outcome, evidence=[_experiment("", outcome)], suspects=outcome.blamed)
    if not outcome.is_finding:
        return found
    on_step("kernel by kernel, then the plan and the passes")
    answer = child.call(guilty, module, setting, limit_s=LIMITS * limit_s)
    if isinstance(answer, str):
        found.culprit, found.sentence = outcome.blamed[0], f"which part is not known: {answer}"
        return found
    found.culprit, found.sentence, found.toggles = answer.culprit, answer.sentence, answer.toggles
    found.suspects = answer.suspects or found.suspects
    found.evidence += answer.evidence
    return found


@dataclass(frozen=True)
class Guilty:
    """As of Bisected."""

    culprit: str
    sentence: str
    toggles: str
    suspects: tuple[str, ...]
    evidence: tuple[Experiment, ...]


def guilty(module: Module, setting: Setting) -> Guilty:
    """What is guilty of a module that differs: the first kernel that does, or what the whole program says."""
    evidence: list[Experiment] = []

    def note(changed: str, row: Row) -> bool:
        wrong = row.status is Status.DIFFER
        evidence.append(Experiment(changed, wrong, row.reason or f"equal on {row.draws} draws"))
        return wrong

    def apart() -> bool:
        rows = check_all(module, plan_of_setting(module, replace(setting, reuse=False)))
        return note("every value in memory of its own", rows[-1])

    for fusion in (False, True):
        plan = plan_of_setting(module, replace(setting, fusion=fusion))
        for request in plan.emitted:
            row = check_kernel(request)
            if note(f"kernel {request.name} alone{'' if fusion else ', each op a kernel of its own'}", row):
                if set(request.operands) & set(request.results) and not apart():
                    return _reuse(row, evidence)
                return _kernel(row, kernel_of(request.name, request.instruction), evidence)
    row = check_program(module, plan=plan_of_setting(module, setting))
    note("the program", row)
    if PASSES in row.blamed:
        name = row.reason.partition(" changes it")[0].partition(" is declared")[0]
        return Guilty(f"pass {name}", row.reason, "", BLAMED[PASSES], tuple(evidence))
    if not apart():
        return _reuse(row, evidence)
    return Guilty("thunks", f"each kernel is right alone, the plan is not: {row.reason}", "", (), tuple(evidence))


def _reuse(row: Row, evidence: Sequence[Experiment]) -> Guilty:
    sentence = f"right with every value in memory of its own: {row.reason}"
    return Guilty("buffer reuse", sentence, "", BLAMED[HLO], tuple(evidence))


def _kernel(row: Row, kernel: Kernel, evidence: Sequence[Experiment]) -> Guilty:
    stacks = sorted({name for who in row.blamed for name in BLAMED.get(who, (who,))})
    ops, types = ", ".join(kernel.ops), ", ".join(kernel.dtypes)
    forms = "; ".join(f"{stack} in form {form}" for stack, form in row.forms if stack in stacks)
    sentence = f"kernel {row.kernel} ({ops} of {types}; {forms or 'no form'}): {row.reason}"
    return Guilty(f"{' and '.join(stacks)}: {ops} of {types}", sentence, "", tuple(stacks), tuple(evidence))


def _experiment(changed: str, outcome: Outcome) -> Experiment:
    return Experiment(changed, outcome.is_finding, outcome.sentence)
