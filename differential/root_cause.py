"""The root cause of a small finding: the one rewrite, form or rule whose absence mends it and whose presence alone
breaks it; and groups of findings by their root causes.

The bisector (bisect.py) says which part is guilty. Here single rewrites and forms of that part are switched off, one
after the other; then all others are. What no switch mends has the name of the part and of what the case holds of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..hlo.dtypes import BY_NAME
from ..hlo.errors import TestbedError
from ..hlo.ir import Module
from ..hlo.opcodes import BY_NAME as OPCODES
from ..hlo.opcodes import Op
from ..hlo.opset import OPSET
from ..hlo.opset_rows import Family
from ..migration.flags import Flags
from ..passes.fuel import Fuel, limited, without
from ..passes.pipeline import complete, default_passes, select
from .bisect import LIMIT, RUN, Bisected
from .child import Child
from .finding import Finding
from .outcome import Outcome
from .patience import Patience
from .preserving import Meaning
from .setting import Setting, other_stack

STEPS = (Op.WHILE, Op.CONDITIONAL, Op.COPY, Op.CONSTANT, Op.DYNAMIC_UPDATE_SLICE)
"""Opcodes whose thunks, places in memory and host code are kinds of their own."""


@dataclass(frozen=True)
class Root:
    """name: of the group. switch: the option with which the finding goes away; empty if no switch mends it. alone:
    whether it breaks the case where all others of its kind are switched off; None: not asked. only: stacks that have no
    other rule of the guilty stack, in the setting; empty where that is not said by stacks.
    """

    name: str
    switch: str = ""
    alone: bool | None = None
    only: tuple[str, ...] = ()
    setting: Setting | None = None

    @property
    def proved(self) -> bool:
        """Whether its absence mends the case, and its presence alone breaks it."""
        return bool(self.switch) and self.alone is True


@dataclass
class Group:
    """Findings of one root cause. smallest: the one with the fewest instructions, which stands for the group."""

    root: Root
    members: list[str] = field(default_factory=list)
    smallest: str = ""
    size: int = 0

    def add(self, member: str, size: int, root: Root) -> None:
        if not self.members or size < self.size:
            self.smallest, self.size = member, size
        if root.proved and not self.root.proved:
            self.root = root
        self.members.append(member)


def grouped(findings: Iterable[tuple[str, int, Root]]) -> list[Group]:
    """Groups of (name, instructions, root cause), the largest first."""
    groups: dict[str, Group] = {}
    for name, size, root in findings:
        groups.setdefault(root.name, Group(root)).add(name, size, root)
    return sorted(groups.values(), key=lambda group: (-len(group.members), group.root.name))


def root_cause(case: Finding, found: Bisected, child: Child, limit_s: float = LIMIT) -> Root | None:
    """Of a small finding that was bisected. None if that named no culprit. child: where the experiments run."""
    if not found.culprit:
        return None
    asked = _Asked(case, child, limit_s)
    if found.rewrite:
        return asked.rewrite(found.rewrite)
    if found.kernel is not None:
        return asked.form(found) or asked.rule(found)
    held = case.module.opcodes
    steps = ", ".join(op.value for op in STEPS if op in held)
    return Root(f"{found.culprit}{f' with {steps}' if steps else ''}", found.toggles)


class _Asked:
    def __init__(self, case: Finding, child: Child, limit_s: float):
        self.case, self.child, self.limit = case, child, limit_s

    def outcome(self, stack: str, setting: Setting) -> Outcome:
        stacks, patience = ("evaluator", stack), Patience(self.limit, RUN)
        return self.child.outcome(self.case.module, self.case.inputs, stacks, patience, setting)

    # -- passes -------------------------------------------------------------------------------------------------------
    def rewrite(self, name: str) -> Root:
        """The rewrite that breaks the case first."""
        setting = self.case.setting
        off = replace(setting, without_rewrites=(*setting.without_rewrites, name))
        mends = not self.outcome("optimized", off).is_finding
        arguments = self.case.module, self.case.inputs, setting.budget, name, setting.without_rewrites
        alone = self.child.call(breaks_alone, *arguments, limit_s=self.limit * 4)
        return Root(f"rewrite {name}", f"--without-rewrite {name}" if mends else "", alone is True)

    # -- stacks -------------------------------------------------------------------------------------------------------
    def form(self, found: Bisected) -> Root | None:
        """The form without which the kernel is right."""
        assert found.setting is not None
        run = self.outcome(found.stack, found.setting).runs.get(found.stack)
        names = sorted(form for stack, form in run.forms if stack == found.stack) if run is not None else []
        for name in names:
            off = self._without(found.setting, [f"{found.stack}:{name}"])
            if not self.outcome(found.stack, off).is_finding:
                others = [f"{found.stack}:{n}" for n in names if n != name]
                alone = self.outcome(found.stack, self._without(found.setting, others)).is_finding
                return Root(f"{found.stack} form {name}", f"--without-form {found.stack}:{name}", alone)
        return None

    def _without(self, setting: Setting, forms: Sequence[str]) -> Setting:
        return replace(setting, without_forms=tuple(dict.fromkeys((*setting.without_forms, *forms))))

    def rule(self, found: Bisected) -> Root:
        """The rules of the kernel's opcodes, in all forms: the other stack emits it right."""
        assert found.kernel is not None and found.setting is not None
        kernel, other = found.kernel, other_stack(found.stack)
        moves = all(OPSET[OPCODES[op]].family is Family.SHAPE for op in kernel.ops)  # alike for all types
        types = "" if moves else f" of {', '.join(classes(kernel.dtypes))}"
        name = f"{found.stack} rule {', '.join(kernel.ops)}{types}"
        switch = ",".join([found.stack, *(f"{op}={other}" for op in kernel.ops)])
        mends = not self.outcome(switch, found.setting).is_finding
        rest = ",".join([other, *(f"{op}={found.stack}" for op in kernel.ops)])
        alone = self.outcome(rest, found.setting).is_finding
        only = ("evaluator", rest) if alone else ()
        return Root(name, f"--emitters {switch}" if mends else "", alone, only, found.setting)

    def apart(self, root: Root, small: Finding) -> Root:
        """The root cause of a case that was made small with `only` its rule, whether it is mended without it."""
        other = Flags.parse(root.only[1]).default
        self.case, rules = small, root.only[1].partition(",")[2]
        assert root.setting is not None
        if self.outcome(other, root.setting).is_finding:
            return root
        ops = [rule.partition("=")[0] for rule in rules.split(",")]
        flags = ",".join([other_stack(other), *(f"{op}={other}" for op in ops)])
        return replace(root, switch=f"--emitters {flags}")


def apart(root: Root, small: Finding, child: Child, limit_s: float = LIMIT) -> Root:
    """As of _Asked."""
    return _Asked(small, child, limit_s).apart(root, small)


def classes(dtypes: Iterable[str]) -> list[str]:
    """The classes of types that rules tell apart; narrow floats are by name, and preds only where nothing else is."""
    found = set()
    for name in dtypes:
        dtype = BY_NAME[name]
        if dtype.is_complex:
            found.add("complex")
        elif dtype.is_float:
            found.add("floats" if dtype.bits >= 32 else name)
        elif dtype.is_integer:
            found.add("signed" if dtype.is_signed else "unsigned")
    return sorted(found) or ["pred"]


def breaks_alone(
    module: Module, inputs: Sequence[np.ndarray], budget: float, name: str, off: Sequence[str] = ()
) -> bool:
    """Whether a kind of rewrite changes the results of the module as it is when it is first done wrongly, with all
    other kinds of its pass switched off.
    """
    with without(off):
        meaning, now = Meaning.of(module, inputs, budget), module
        for step in complete(select(default_passes(module))):
            if step.name != name.partition("/")[0]:
                now = step.run(now)
                continue
            with limited(Fuel()) as fuel:
                done = step.run(now)
            if done is now or meaning.change(done) is None:
                now = done
                continue
            before = now
            for number, kind in enumerate(fuel.names, 1):  # up to the first wrong one, all kinds prepare for it
                if kind in (name, "") and _changes(meaning, step.run, now, number):
                    break
                with limited(Fuel(number)):
                    before = step.run(now)
            with without(set(fuel.names) - {name, ""}):
                return meaning.change(step.run(before)) is not None
    return False


def _changes(meaning: Meaning, run: Callable[[Module], Module], module: Module, limit: int) -> bool:
    with limited(Fuel(limit)):
        try:
            return meaning.change(run(module)) is not None
        except TestbedError:
            return False
