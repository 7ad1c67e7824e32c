"""Finds by itself what is guilty of a finding: a change of a pass, an emitter, buffer reuse, the host program, threads.

Each question is an experiment: the case run with one thing changed. Where the mismatch goes away, the thing is guilty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..hlo.ir import Instruction, Module
from ..hlo.opcodes import Op
from ..migration.choose import STRUCTURE
from ..migration.flags import STACK_NAMES, Flags
from ..passes.fuel import Fuel, limited
from ..passes.pipeline import complete, default_passes, select
from .child import Child
from .finding import Finding
from .llvm_passes import guilty_llvm_pass
from .outcome import Outcome, OutcomeKind
from .patience import Patience
from .preserving import Meaning, find_rewrite
from .setting import Setting, is_compiled, other_stack, plan_of_setting, xla_of_setting

LIMIT = 30.0
"""Seconds that a stack has for an experiment."""

RUN = 2.0
"""Seconds that its run has, besides what Patience adds for slow ones."""


@dataclass(frozen=True)
class Experiment:
    """changed: what differs from the case, in words; empty for the case itself. shows: whether it is a finding then."""

    changed: str
    shows: bool
    sentence: str


@dataclass
class Bisected:
    """culprit: what is guilty, in a few words; empty if the case is no finding. sentence: why. toggles: the least that
    shows it, as options of testbed commands. suspects: the stacks that the culprit is a part of: several, where it is
    what they share, even if it shows on one only.
    """

    outcome: Outcome
    culprit: str = ""
    sentence: str = ""
    toggles: str = ""
    evidence: list[Experiment] = field(default_factory=list)
    suspects: tuple[str, ...] = ()


@dataclass(frozen=True)
class Kernel:
    """A kernel of a plan: its name, opcodes and element types."""

    name: str
    ops: tuple[str, ...]
    dtypes: tuple[str, ...]


def bisect(
    finding: Finding, child: Child, limit_s: float = LIMIT, on_step: Callable[[str], object] = lambda text: None
) -> Bisected:
    """What is guilty. child: where the experiments run. on_step: called with what is being done, in words."""
    bisector = _Bisector(finding, child, limit_s, on_step)
    try:
        return bisector.run()
    except _Undecided as stop:
        return Bisected(stop.outcome, evidence=bisector.evidence)


CHANGES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "threads": ("on one thread", "--threads", {"threads": 1}),
    "buffer reuse": ("every value in memory of its own", "", {"reuse": False}),
    "compiled host program": ("thunks interpreted", "--host-program interpreted", {"host_program": "interpreted"}),
}
"""What may be guilty besides stacks and passes → the run without it in words, as options, as fields of Setting."""


class _Undecided(Exception):
    """An experiment gave no answer."""

    def __init__(self, outcome: Outcome):
        self.outcome = outcome


class _Bisector:
    def __init__(self, finding: Finding, child: Child, limit_s: float, on_step: Callable[[str], object]):
        self.case, self.child, self.limit, self._on_step = finding, child, limit_s, on_step
        self.evidence: list[Experiment] = []
        self.setting = finding.setting
        self.reference = "evaluator"

    def run(self) -> Bisected:
        self._tell("the case as it is, twice")
        outcome = self._outcome(self.case.stacks, self.setting, again=True)
        self.found = Bisected(outcome, evidence=self.evidence, suspects=outcome.blamed)
        self._note("", outcome)
        if not outcome.is_finding:
            return self.found
        outcome = self._asked_evaluator(outcome)
        guilty = [name for name in outcome.blamed if is_compiled(name)]
        if not guilty:
            return self._conclude(
                outcome.blamed[0], f"{', '.join(outcome.blamed)} is no compiled stack: {outcome.sentence}"
            )
        plain = [name for name in guilty if name in STACK_NAMES]  # mixtures have the faults of what they mix
        self.stack = (plain or guilty)[0]
        both = len(plain) > 1
        unknown = other_stack(self.stack) not in self.case.stacks
        return ((both or unknown) and self._by_pass()) or self._by_setting() or self._by_kernel(both)

    def _asked_evaluator(self, outcome: Outcome) -> Outcome:
        """Where stacks differ and the evaluator is none of them, it says which is wrong."""
        if outcome.kind is not OutcomeKind.DIFFER or self.reference in self.case.stacks:
            return outcome
        asked = self._outcome((self.reference, *self.case.stacks), self.setting)
        if not self._note("with the evaluator beside them", asked) or asked.kind is not OutcomeKind.DIFFER:
            return outcome
        self.found.outcome, self.found.suspects = asked, asked.blamed
        return asked

    def _conclude(self, culprit: str, sentence: str, toggles: str = "", *, shared: bool = False) -> Bisected:
        """shared: the culprit is a part of all compiled stacks of the case."""
        self.found.culprit, self.found.sentence, self.found.toggles = culprit, sentence, toggles
        if shared:
            self.found.suspects = tuple(sorted(name for name in self.case.stacks if name in STACK_NAMES))
        return self.found

    def _outcome(self, stacks: Sequence[str], setting: Setting, *, again: bool = False) -> Outcome:
        return self.child.outcome(
            self.case.module, self.case.inputs, stacks, Patience(self.limit, RUN), setting, again=again
        )

    def _tell(self, doing: str) -> None:
        """Say what runs next, and what is known so far."""
        seen = self.evidence
        last = f"; {seen[-1].changed or 'as it is'}: {'wrong' if seen[-1].shows else 'right'}" if seen else ""
        self._on_step(f"run {len(seen) + 1}: {doing}{last}")

    def _note(self, changed: str, outcome: Outcome) -> bool:
        """Whether it is a finding. Raises _Undecided: without an answer, whatever was changed might be accused."""
        self.found.evidence.append(Experiment(changed, outcome.is_finding, outcome.sentence))
        if outcome.kind is OutcomeKind.UNDECIDED:
            raise _Undecided(outcome)
        return outcome.is_finding

    def _shows(self, changed: str, stack: str, setting: Setting) -> bool:
        """Whether the stack and the evaluator still disagree, with this changed."""
        self._tell(changed)
        return self._note(changed, self._outcome((self.reference, stack), setting))

    # -- passes -------------------------------------------------------------------------------------------------------
    def _by_pass(self) -> Bisected | None:
        self._tell("the evaluator after all passes")
        if not self._note("the evaluator after all passes", self._outcome((self.reference, "optimized"), self.setting)):
            return None
        self._tell("which pass, and which of its changes")
        answer = self.child.call(
            guilty_change, self.case.module, self.case.inputs, self.setting.budget, limit_s=self.limit * 4
        )
        if answer is None or isinstance(answer, str):
            return self._conclude(
                "passes", f"the passes change the results; which one is not known: {answer or 'none'}", shared=True
            )
        name, passes, number, rewrites, lines = answer
        sentence = f"pass {name} changes the results with its change {number} of {rewrites}: {'; '.join(lines[:4])}"
        toggles = f"testbed opt --passes {','.join(passes)} --evaluate-each"
        return self._conclude(f"pass {name}", sentence, toggles, shared=True)

    # -- settings -----------------------------------------------------------------------------------------------------
    def _by_setting(self) -> Bisected | None:
        for culprit, (words, toggles, change) in CHANGES.items():
            if all(getattr(self.setting, key) == value for key, value in change.items()):
                continue
            if not self._shows(words, self.stack, replace(self.setting, **change)):
                what = f"{self.stack} is right with {words}: suspect {culprit}"
                return self._conclude(culprit, what, toggles, shared=True)
        return None

    def _by_optimizer(self, setting: Setting) -> str:
        """What to add to a sentence where the mismatch shows only where LLVM optimises: the emitter promises too much
        (no alias, no overflow), or LLVM is wrong.
        """
        if not setting.optimized:
            return ""
        if self._shows("without LLVM's optimiser", self.stack, replace(setting, optimized=False)):
            return ""
        found = guilty_llvm_pass(self.child.begin, self.case, (self.reference, self.stack), setting, self.limit)
        which = f" from its pass {found} on" if found else ""
        return f"; right without LLVM's optimiser, wrong{which}: suspect what the emitter promises to it, or LLVM"

    # -- kernels ------------------------------------------------------------------------------------------------------
    def _by_kernel(self, shared: bool) -> Bisected:
        other = other_stack(self.stack)
        if shared or self._shows(f"{other} in place of {self.stack}", other, self.setting):
            where = "thunks, plan or what else the stacks share below the passes"
            return self._conclude(
                "thunks", f"both stacks are wrong, the passes are right: suspect {where}", shared=True
            )
        for fusion in (True,) if Flags.parse(self.stack).xla else (False, True):
            setting = replace(self.setting, fusion=fusion)
            alone = "each op a kernel of its own" if not fusion else "fused as usual"
            if not self._shows(alone, self.stack, setting):
                continue
            kernels = self.child.call(kernels_of, self.case.module, setting, self.stack, limit_s=self.limit)
            if not isinstance(kernels, str):
                return self._guilty_kernel(kernels, setting, other)
        return self._conclude(self.stack, f"{self.stack} is wrong with its own fusions only, not kernel by kernel")

    def _guilty_kernel(self, kernels: Sequence[Kernel], setting: Setting, other: str) -> Bisected:
        low, high = 0, len(kernels)
        while high - low > 1:
            middle = (low + high) // 2
            words = f"the first {middle} of {len(kernels)} kernels by {self.stack}"
            if self._shows(words, self.stack, replace(setting, kernels=middle)):
                high = middle
            else:
                low = middle
        kernel = kernels[high - 1]
        ops, types = ", ".join(kernel.ops), ", ".join(kernel.dtypes)
        toggles = self._op_toggle(kernel, setting, other)
        which = f"kernel {kernel.name} ({ops} of {types}), number {high} of {len(kernels)}"
        sentence = f"{which}, is wrong as {self.stack} emits it{self._by_optimizer(setting)}"
        return self._conclude(f"{self.stack}: {ops} of {types}", sentence, toggles)

    def _op_toggle(self, kernel: Kernel, setting: Setting, other: str) -> str:
        """The flags with which the mismatch goes away, as an option."""
        for op in kernel.ops:
            flags = f"{self.stack},{op}={other}"
            if not self._shows(f"--emitters {flags}", flags, setting):
                return f"--emitters {flags}"
        return f"--emitters {other}"


def guilty_change(
    module: Module, inputs: Sequence[np.ndarray], budget: float
) -> tuple[str, list[str], int, int, tuple[str, ...]] | None:
    """(Pass, passes up to it, number of its guilty change, its changes, lines of difference); None: none is guilty."""
    meaning, now, names = Meaning.of(module, inputs, budget), module, []
    for step in complete(select(default_passes(module))):
        names.append(step.name)
        with limited(Fuel()) as fuel:
            done = step.run(now)
        if done is not now and meaning.change(done) is not None:
            rewrites = max(fuel.spent, 1)
            culprit = find_rewrite(meaning, step.run, now, rewrites)
            return step.name, names, culprit.number, rewrites, culprit.difference
        now = done
    return None


IDLE = STRUCTURE | {Op.BITCAST}
"""Ops of a kernel's body that compute nothing."""


def kernels_of(module: Module, setting: Setting, stack: str = STACK_NAMES[0]) -> list[Kernel]:
    """The kernels of the module's plan for a stack, in order; XLA's by its instructions."""
    flags = Flags.parse(stack)
    if flags.xla:
        return [kernel_of(i.name, i) for i in xla_of_setting(module, flags, setting).instructions]
    return [kernel_of(request.name, request.instruction) for request in plan_of_setting(module, setting).kernels]


def kernel_of(name: str, instruction: Instruction) -> Kernel:
    """A kernel by its instruction."""
    members = instruction.called()[0].instructions if instruction.opcode is Op.FUSION else (instruction,)
    ops = dict.fromkeys(i.opcode.value for i in members if i.opcode not in IDLE)
    types = dict.fromkeys(s.dtype.value for i in members for _, s in i.shape.leaves())
    return Kernel(name, tuple(ops) or (instruction.opcode.value,), tuple(types))
